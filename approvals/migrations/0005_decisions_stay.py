from __future__ import annotations

from django.db import migrations

# What somebody decided is evidence: all that may be written to a row later is that an account is gone.
STAYS = """
CREATE FUNCTION decision_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - 'actor_id' - 'seat_id' IS DISTINCT FROM to_jsonb(OLD) - 'actor_id' - 'seat_id'
        OR (NEW.actor_id IS DISTINCT FROM OLD.actor_id AND NEW.actor_id IS NOT NULL)
        OR (NEW.seat_id IS DISTINCT FROM OLD.seat_id AND NEW.seat_id IS NOT NULL) THEN
        RAISE EXCEPTION 'a decision never changes; decide again';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER decision_stays BEFORE UPDATE ON decision
FOR EACH ROW EXECUTE FUNCTION decision_stays();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_sharing")]

    operations = [
        migrations.RunSQL(
            STAYS, "DROP TRIGGER decision_stays ON decision; DROP FUNCTION decision_stays();"
        ),
    ]
