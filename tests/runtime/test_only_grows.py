"""A conversation only grows: dismissing a question adds to it, and the database refuses to take anything away (B8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.test import Client

from runtime_core import commands
from runtime_core.forget import forgetting
from runtime_core.models import Message, Run, Thread
from runtime_core.values import SYSTEM, Audit
from tests.runtime.world import World, actor, call, drive, open_interrupts
from traces.models import AuditEntry

LOOKS = [{"text": f"Look {n}.", "calls": [call("look", at=str(n))]} for n in range(5)]
TURNS = [
    *LOOKS,
    {"text": "I pay.", "calls": [call("ledger_append", text="pay")]},
    {"text": "Well."},
]


def waiting(world: World) -> Run:
    """A run that waits for a person with twelve messages behind it."""
    run = drive(world.start(TURNS))
    assert run.status == "interrupted"
    assert Message.objects.filter(thread=run.thread_id).count() == 12
    return run


def bodies(run: Run) -> list[Any]:
    return [m.body for m in Message.objects.filter(thread=run.thread_id).order_by("position")]


def by_page(world: World, client: Client, run: Run) -> None:
    [asked] = open_interrupts(run)
    client.force_login(world.bob)
    form = {"action": "reject", "version": asked.version, "digest": asked.digest, "reason": "No."}
    answer = client.post(f"/inbox/{asked.id}/", form)
    assert answer.status_code in (200, 302, 303), answer.content


def by_api(world: World, client: Client, run: Run) -> None:
    [asked] = open_interrupts(run)
    client.force_login(world.bob)
    body = {"action": "reject", "version": asked.version, "digest": asked.digest, "reason": "No."}
    answer = client.post(
        f"/api/v1/interrupts/{asked.id}/decisions", json.dumps(body), "application/json"
    )
    assert answer.status_code == 200, answer.content


def by_cancel(world: World, client: Client, run: Run) -> None:
    commands.cancel_run(actor(world.alice), run)


def test_b8_dismissing_what_waits_only_adds_to_the_conversation(world: World) -> None:
    for dismiss in (by_page, by_api, by_cancel):
        run = waiting(world)
        before = bodies(run)

        dismiss(world, Client(), run)

        assert bodies(run)[:12] == before, dismiss.__name__
        if dismiss is by_cancel:
            assert len(bodies(run)) == 13, "the call's answer, for who goes on in this thread"
            continue
        # What is decided on the page can be taken back for a moment; that moment is over.
        Run.objects.filter(id=run.id).update(available_at=Now())
        ended = drive(run)
        assert (ended.status, len(bodies(run))) == ("completed", 14), dismiss.__name__
        assert bodies(run)[:12] == before


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM message",
        "UPDATE message SET position = position + 100",
        "UPDATE message SET thread_id = gen_random_uuid()",
        "UPDATE message SET run_id = gen_random_uuid()",
    ],
)
def test_b8_the_database_refuses_to_take_a_message_away(world: World, harm: str) -> None:
    run = drive(world.start([{"text": "Hello."}]))

    refused = pytest.raises(DatabaseError, match=r"appended|stays where")
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(harm)

    assert len(bodies(run)) == 2


def test_b8_a_thread_goes_only_on_purpose_and_leaves_an_entry(world: World) -> None:
    run = drive(world.start([{"text": "Hello."}]))
    kept = drive(world.start([{"text": "Hello."}]))
    with pytest.raises(DatabaseError), transaction.atomic():
        Thread.objects.filter(id=run.thread_id).delete()

    with forgetting([Audit("thread.forgotten", SYSTEM, "thread", str(run.thread_id))]):
        Thread.objects.filter(id=run.thread_id).delete()

    assert bodies(run) == []
    assert AuditEntry.objects.filter(action="thread.forgotten").count() == 1
    with pytest.raises(DatabaseError), transaction.atomic():
        Message.objects.filter(run=kept).delete()
    with pytest.raises(ValueError, match="audit"), forgetting([]):
        pass
