"""Leaves out indexes that others begin with, and holds keys once by an index of their hashes."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runtime_core", "0012_checkpoint_order"),
    ]

    operations = [
        migrations.AlterField(
            model_name="checkpoint",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="checkpoints",
                to="runtime_core.run",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="runtime_core.run",
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="thread",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="runtime_core.thread",
            ),
        ),
        migrations.AlterField(
            model_name="step",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="step_rows",
                to="runtime_core.run",
            ),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="idempotency_key",
            field=models.CharField(max_length=64),
        ),
        migrations.AlterField(
            model_name="toolcall",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tool_calls",
                to="runtime_core.run",
            ),
        ),
        # Read backwards as well as forwards, and filled at its end instead of in its middle.
        migrations.RemoveIndex(model_name="checkpoint", name="checkpoint_newest"),
        migrations.AddIndex(
            model_name="checkpoint",
            index=models.Index(fields=["run", "epoch", "id"], name="checkpoint_in_order"),
        ),
        migrations.RunSQL(
            "ALTER TABLE tool_call ADD CONSTRAINT tool_call_key_once"
            " EXCLUDE USING hash (idempotency_key WITH =)",
            "ALTER TABLE tool_call DROP CONSTRAINT tool_call_key_once",
        ),
    ]
