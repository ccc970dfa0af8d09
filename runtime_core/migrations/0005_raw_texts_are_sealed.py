from django.db import migrations

import runtime_core.models.sealed

SEALED = {
    "message": {"body": "body"},
    "tool_call": {"args_text": "args_text", "result_text": "result_text"},
    "checkpoint": {"state": "state::text"},
    "agent_version": {"definition": "definition::text"},
}


def _to_bytes(table, columns):
    # A leading zero marks what the next migration has to seal; nothing opens such a value.
    changes = (
        f"ALTER COLUMN {column} TYPE bytea USING '\\x00'::bytea || convert_to({text}, 'UTF8')"
        for column, text in columns.items()
    )
    return f"ALTER TABLE {table} {', '.join(changes)}"


class Migration(migrations.Migration):
    dependencies = [("runtime_core", "0004_graph_nodes")]

    operations = [
        migrations.RunSQL("SET LOCAL statement_timeout = 0"),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(_to_bytes(table, columns)) for table, columns in SEALED.items()
            ],
            state_operations=[
                migrations.AlterField(
                    "message",
                    "body",
                    runtime_core.models.sealed.SealedField(identity=("run_id", "position")),
                ),
                migrations.AlterField(
                    "toolcall", "args_text", runtime_core.models.sealed.SealedField()
                ),
                migrations.AlterField(
                    "toolcall", "result_text", runtime_core.models.sealed.SealedField(null=True)
                ),
                migrations.AlterField(
                    "checkpoint", "state", runtime_core.models.sealed.SealedField(as_json=True)
                ),
                migrations.AlterField(
                    "agentversion",
                    "definition",
                    runtime_core.models.sealed.SealedField(as_json=True),
                ),
            ],
        ),
    ]
