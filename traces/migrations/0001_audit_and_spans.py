from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import runtime_core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=runtime_core.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seq", models.PositiveBigIntegerField(null=True, unique=True)),
                ("at", models.DateTimeField()),
                ("actor_id", models.BigIntegerField(null=True)),
                (
                    "actor_name",
                    models.CharField(
                        help_text="For display; bound with the payload.", max_length=150
                    ),
                ),
                ("via", models.CharField(max_length=16)),
                ("action", models.CharField(max_length=40)),
                ("object_type", models.CharField(max_length=40)),
                ("object_id", models.CharField(max_length=200)),
                ("project_id", models.UUIDField(null=True)),
                ("run_id", models.UUIDField(null=True)),
                ("payload_commit", models.CharField(max_length=64)),
                ("prev_hash", models.CharField(blank=True, max_length=64)),
                ("hash", models.CharField(blank=True, max_length=64)),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "db_table": "audit_entry",
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="SpanRow",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("run_id", models.UUIDField()),
                ("parent_id", models.UUIDField(null=True)),
                ("kind", models.CharField(max_length=16)),
                ("name", models.CharField(max_length=200)),
                ("status", models.CharField(max_length=10)),
                ("epoch", models.PositiveBigIntegerField(default=0)),
                ("step", models.PositiveIntegerField(null=True)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("input_tokens", models.PositiveBigIntegerField(default=0)),
                ("output_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost_microusd", models.PositiveBigIntegerField(default=0)),
                ("attrs", models.JSONField(default=dict)),
                (
                    "redactions",
                    models.JSONField(
                        default=dict, help_text="How many values of each class were taken out."
                    ),
                ),
            ],
            options={
                "verbose_name": "span",
                "db_table": "span",
                "ordering": ["started_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="SpanPayload",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "span_id",
                        "part",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "span",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="payloads",
                        to="traces.spanrow",
                    ),
                ),
                ("part", models.CharField(max_length=8)),
                ("body", models.TextField()),
                ("truncated", models.BooleanField(default=False)),
            ],
            options={
                "db_table": "span_payload",
            },
        ),
        migrations.CreateModel(
            name="AuditPayload",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="payload",
                        serialize=False,
                        to="traces.auditentry",
                    ),
                ),
                ("body", models.TextField()),
                ("salt", models.BinaryField(max_length=32)),
            ],
            options={
                "db_table": "audit_payload",
            },
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(("seq__isnull", True)),
                fields=["id"],
                name="audit_entry_unsealed",
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["project_id", "-id"], name="audit_entry_of_project"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["run_id", "-id"], name="audit_entry_of_run"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["action", "-id"], name="audit_entry_action"),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("hash", ""), ("prev_hash", ""), ("seq__isnull", True)),
                    models.Q(
                        ("seq__gt", 0),
                        models.Q(("hash", ""), _negated=True),
                        models.Q(("prev_hash", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="audit_entry_sealed_whole",
            ),
        ),
        migrations.AddIndex(
            model_name="spanrow",
            index=models.Index(fields=["run_id", "started_at", "id"], name="span_of_run"),
        ),
        migrations.AddIndex(
            model_name="spanrow",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)), fields=["run_id"], name="span_open"
            ),
        ),
        migrations.AddIndex(
            model_name="spanrow",
            index=models.Index(
                condition=models.Q(("status", "error")), fields=["-started_at"], name="span_error"
            ),
        ),
        migrations.AddConstraint(
            model_name="spanrow",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ("open", "ok", "error", "cancelled", "abandoned"))
                ),
                name="span_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="spanpayload",
            constraint=models.CheckConstraint(
                condition=models.Q(("part__in", ["input", "output"])),
                name="span_payload_part_known",
            ),
        ),
    ]
