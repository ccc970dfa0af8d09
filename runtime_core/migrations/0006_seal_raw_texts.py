from django.db import connection, migrations

from runtime_core.resealing import Column, seal_first

COLUMNS = (
    Column("message", "body", ("run_id", "position")),
    Column("tool_call", "args_text"),
    Column("tool_call", "result_text"),
    Column("checkpoint", "state"),
    Column("agent_version", "definition"),
)


def seal(apps, schema_editor):
    """In batches, each a transaction: stopped in the middle, it goes on where it was."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        for column in COLUMNS:
            if sum(seal_first(column)):
                # Replaced rows still hold the plain texts until the file is written anew.
                cursor.execute(f"VACUUM FULL {column.table}")
        cursor.execute("RESET statement_timeout")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runtime_core", "0005_raw_texts_are_sealed")]

    operations = [migrations.RunPython(seal)]
