"""Gives an interrupt its risk as a number, so that a list can be sorted by it."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runtime_core", "0016_lean_checks"),
    ]

    operations = [
        migrations.AddField(
            model_name="interrupt",
            name="risk_order",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(risk="critical", then=models.Value(0)),
                    models.When(risk="high", then=models.Value(1)),
                    models.When(risk="medium", then=models.Value(2)),
                    default=models.Value(3),
                ),
                help_text="The risk as a number to sort by, the highest first.",
                output_field=models.SmallIntegerField(),
            ),
        ),
    ]
