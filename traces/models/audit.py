"""The audit: entries that are only ever added, and their payloads in a side table."""

from __future__ import annotations

from django.db import models

from runtime_core.ids import new_id


class AuditEntry(models.Model):
    """One thing that happened, and its place in the hash chain once the sealer has given it one.

    People and projects are plain ids, not foreign keys: an entry outlives what it tells of.
    Triggers refuse every UPDATE but the sealing, and every DELETE and TRUNCATE.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    seq = models.PositiveBigIntegerField(null=True, unique=True)
    at = models.DateTimeField()
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150, help_text="For display; bound with the payload.")
    via = models.CharField(max_length=16)
    action = models.CharField(max_length=40)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=200)
    project_id = models.UUIDField(null=True)
    run_id = models.UUIDField(null=True)
    payload_commit = models.CharField(max_length=64)
    prev_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64, blank=True)

    class Meta:
        db_table = "audit_entry"
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(seq__isnull=True, hash="", prev_hash="")
                | (models.Q(seq__gt=0) & ~models.Q(hash="") & ~models.Q(prev_hash="")),
                name="audit_entry_sealed_whole",
            ),
        ]
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(seq__isnull=True), name="audit_entry_unsealed"
            ),
            models.Index(fields=["project_id", "-id"], name="audit_entry_of_project"),
            models.Index(fields=["run_id", "-id"], name="audit_entry_of_run"),
            models.Index(fields=["action", "-id"], name="audit_entry_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.object_type} {self.object_id}"


class AuditPayload(models.Model):
    """The redacted facts of one entry as canonical text, with the salt of its commitment."""

    entry = models.OneToOneField(
        AuditEntry, models.DO_NOTHING, primary_key=True, related_name="payload"
    )
    body = models.TextField()
    salt = models.BinaryField(max_length=32)

    class Meta:
        db_table = "audit_payload"

    def __str__(self) -> str:
        return f"payload of {self.entry_id}"
