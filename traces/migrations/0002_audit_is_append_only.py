"""PostgreSQL itself refuses to change the audit: rows are added, and sealed once, and nothing else."""

from __future__ import annotations

from django.db import migrations

GUARD = """
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION audit_seal_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.seq IS NULL AND NEW.seq IS NOT NULL
        AND to_jsonb(NEW) - '{seq,prev_hash,hash}'::text[] = to_jsonb(OLD) - '{seq,prev_hash,hash}'::text[]
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER audit_entry_added_unsealed BEFORE INSERT ON audit_entry
    FOR EACH ROW WHEN (NEW.seq IS NOT NULL) EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_entry_sealed_once BEFORE UPDATE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_seal_only();
CREATE TRIGGER audit_entry_kept BEFORE DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_entry_not_emptied BEFORE TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

CREATE TRIGGER audit_payload_kept BEFORE UPDATE OR DELETE ON audit_payload
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_payload_not_emptied BEFORE TRUNCATE ON audit_payload
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
"""

UNGUARD = """
DROP TRIGGER audit_payload_not_emptied ON audit_payload;
DROP TRIGGER audit_payload_kept ON audit_payload;
DROP TRIGGER audit_entry_not_emptied ON audit_entry;
DROP TRIGGER audit_entry_kept ON audit_entry;
DROP TRIGGER audit_entry_sealed_once ON audit_entry;
DROP TRIGGER audit_entry_added_unsealed ON audit_entry;
DROP FUNCTION audit_seal_only();
DROP FUNCTION audit_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("traces", "0001_audit_and_spans")]

    operations = [migrations.RunSQL(GUARD, UNGUARD)]
