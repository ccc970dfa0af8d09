"""Threads: conversations that runs belong to, and the messages in them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from runtime_core.ids import new_id
from runtime_core.models.kept import Kept
from runtime_core.models.project import Project
from runtime_core.models.sealed import SealedField


class Thread(models.Model):
    """A conversation; at most one of its runs has not ended."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="threads")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(
        null=True, editable=False, help_text="Since then nobody sees it; it is being deleted."
    )

    objects = Kept["Thread"]()
    everything = models.Manager["Thread"]()

    class Meta:
        db_table = "thread"

    def __str__(self) -> str:
        return str(self.id)


class Message(models.Model):
    """One message of a thread as the model sees it, appended once and never changed (raw, so sealed; never rendered).

    `body` is the canonical JSON of a pydantic-ai message, as text so that its digest stays the same.
    """

    # The indexes of (thread, position) and (run, position) begin with them: none of their own.
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages", db_index=False)
    position = models.PositiveIntegerField()
    run = models.ForeignKey(
        "runtime_core.Run", models.CASCADE, related_name="messages", db_index=False
    )
    step = models.IntegerField()
    body = SealedField(identity=("run_id", "position"))
    created_at = models.DateTimeField(db_default=models.functions.Now())

    class Meta:
        db_table = "message"
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "position"], name="message_position_once"),
        ]
        indexes = [models.Index(fields=["run", "position"], name="message_of_run")]

    def __str__(self) -> str:
        return f"message {self.position} of {self.thread_id}"
