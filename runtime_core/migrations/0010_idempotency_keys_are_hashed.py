from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runtime_core", "0009_grant_of_call")]

    operations = [
        migrations.RunSQL(
            "UPDATE idempotency_key SET key = encode(sha256(convert_to(key, 'UTF8')), 'hex')"
        ),
        migrations.AlterField(
            "idempotencykey",
            "key",
            models.CharField(max_length=64, help_text="SHA-256 of what was sent."),
        ),
    ]
