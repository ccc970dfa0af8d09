"""A run that is deleted is seen by nobody from that commit on, and then stands in no table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import queries as inbox
from runtime_core import commands, ports, queries
from runtime_core.errors import NotFound
from runtime_core.models import Checkpoint, Interrupt, Membership, Role, Run
from runtime_core.tools import workspace
from tests.api.room import Api, parsed
from tests.deletion.traces_left import where
from tests.runtime.world import World, actor, call, decide_on, drive, open_interrupts
from traces.audit.sealer import seal
from traces.audit.verify import verify
from traces.deletion.purge import left, purge, purge_due, receipt_facts
from traces.models import AuditEntry, DeletionRequest, SpanRow

pytestmark = pytest.mark.timeout(180)  # one world, every page and address of it

CANARY = "heliotrope"


def told(world: World, word: str = CANARY, **more: Any) -> Run:
    """A run that has ended and left something in as many tables as one can."""
    turns = [
        {"calls": [call("ledger_append", text=f"{word}-line"), call("book", place=word)]},
        {"text": f"All about {word} is done."},
    ]
    run = drive(world.start(turns, input=f"Look after {word}", **more))
    [asked] = open_interrupts(run)
    decide_on(asked, world.bob, reason=f"{word} may")
    return drive(run)


def manager(world: World) -> User:
    user = User.objects.create_user(f"dora-{world.project.slug}", password="pw")
    Membership.objects.create(project=world.project, user=user, role=Role.ADMIN)
    return user


def delete(api: Api, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    raw = json.dumps(body or {})
    return parsed(
        api.client.delete(
            f"/api/v1{path}",
            raw,
            content_type="application/json",
            headers={**api.headers, **headers},
        )
    )


def test_nothing_of_a_deleted_run_is_seen_and_then_nothing_is_left(world: World) -> None:
    run, other = told(world), told(world, "marigold")
    later = told(world, thread_id=run.thread_id)
    point = Checkpoint.objects.filter(run=run).latest("id")
    fork = commands.fork_run(actor(world.alice), run, point.id, {})
    commands.cancel_run(actor(world.alice), fork)
    gone = [run, later, fork]
    for one in gone:
        workspace.path_of(one.id).mkdir(parents=True)
        (workspace.path_of(one.id) / "note").write_text(CANARY)
    ports.spans().flush()
    dora = manager(world)
    api = Api(dora)
    interrupts = list(Interrupt.objects.filter(run__in=gone).values_list("id", flat=True))

    assert delete(Api(world.carol), f"/runs/{run.id}")[0] == 404
    assert delete(Api(world.alice), f"/runs/{run.id}")[0] == 403
    key = {"Idempotency-Key": "once"}
    status, answer = delete(api, f"/runs/{run.id}", {"reason": "asked for"}, **key)
    assert (status, answer["state"], answer["runs"]) == (202, "pending", 3)
    assert delete(api, f"/runs/{run.id}", {"reason": "asked for"}, **key)[1] == answer
    assert delete(api, f"/runs/{run.id}")[0] == 404

    everything_is_silent(world, dora, gone, interrupts)
    assert parsed_run(api, other) == 200

    purge_due()

    request = DeletionRequest.objects.get(id=answer["id"])
    assert (request.state, request.runs, left(request)) == ("done", [], {})
    assert request.counts["runtime_core.Run"] == 3
    assert request.counts["runtime_core.Thread"] == 2
    for table in ("Event", "Message", "ToolCall", "Checkpoint", "Step", "Interrupt"):
        assert request.counts[f"runtime_core.{table}"] > 0, table
    ids = [str(one.id) for one in gone] + [str(run.thread_id), str(fork.thread_id)]
    ids += [str(one) for one in interrupts]
    # Ids alone, in what says that it was deleted; the answer to the repeat of the request is one of those.
    says_so = {"audit_entry", "audit_payload", "deletion_request", "idempotency_key"}
    assert where(ids).keys() == says_so
    bodies = AuditEntry.objects.filter(payload__body__contains=str(run.id))
    assert {entry.action for entry in bodies} == {"data.deleted"}
    assert not any(workspace.path_of(one.id).exists() for one in gone)
    assert SpanRow.objects.filter(run_id=other.id).exists()
    the_receipt_verifies(request)


def test_of_a_lone_run_no_word_is_left_in_any_table(world: World) -> None:
    run = told(world)
    ports.spans().flush()
    assert {"run", "event", "tool_call", "interrupt", "decision", "span"} <= where([CANARY]).keys()

    status, answer = delete(Api(manager(world)), f"/threads/{run.thread_id}")
    assert status == 202
    purge_due()

    # What the agent was told to play is its definition's, not the run's.
    assert where([CANARY]).keys() <= {"agent_version"}
    assert DeletionRequest.objects.get(id=answer["id"]).state == "done"
    the_receipt_verifies(DeletionRequest.objects.get(id=answer["id"]))


def everything_is_silent(world: World, dora: User, gone: list[Run], interrupts: list[Any]) -> None:
    """No list, page or address of the product names one of these, for whoever might see most."""
    root = User.objects.create_superuser(f"root-{world.project.slug}", password="pw")
    for user in (dora, root):
        names = [str(one.id) for one in gone] + [str(one) for one in interrupts]
        for path in LISTS:
            text = json.dumps(Api(user).get(path))
            assert not [name for name in [*names, CANARY] if name in text], path
        client = Client()
        client.force_login(user)
        for path in PAGES:
            response = client.get(path)
            assert response.status_code in (200, 302, 403), path
            words = response.content.decode()
            assert CANARY not in words, path
            # The audit names what was deleted, and nothing that was in it.
            if not path.startswith("/audit"):
                assert not [name for name in names if name in words], path
        for one in gone:
            for path in (f"/runs/{one.id}/", f"/traces/{one.id}/", f"/runs/{one.id}/retry/"):
                assert client.get(path).status_code == 404, path
            for path in OF_RUN:
                assert Api(user).get(f"/runs/{one.id}{path}")[0] == 404, path
            assert Api(user).get(f"/traces/{one.id}/spans")[0] == 404
            assert Api(user).post(f"/runs/{one.id}/retry")[0] in (403, 404)
        for asked in interrupts:
            assert client.get(f"/inbox/{asked}/").status_code == 404
            assert Api(user).get(f"/interrupts/{asked}")[0] == 404
        assert not set(interrupts) & set(inbox.visible(user).values_list("id", flat=True))
    for one in gone:
        with pytest.raises(NotFound):  # what both sockets ask before they say anything
            queries.run_head([world.project.id], one.id)


LISTS = ("/runs", "/interrupts", "/traces", "/runs?status=completed", "/runs?status=cancelled")
OF_RUN = ("", "/events", "/tool-calls", "/checkpoints", "/provenance", "/effects")
PAGES = (
    "/",
    "/runs/",
    "/traces/",
    "/inbox/",
    "/inbox/?view=decided",
    "/inbox/?view=all",
    "/audit/",
    "/agents/",
    "/admin/runtime_core/run/",
    "/admin/runtime_core/interrupt/",
    "/admin/runtime_core/toolcall/",
    "/admin/runtime_core/checkpoint/",
    "/admin/runtime_core/step/",
    "/admin/approvals/decision/",
    "/admin/approvals/revision/",
    "/admin/approvals/grant/",
    "/admin/approvals/delivery/",
    "/admin/traces/spanrow/",
)


def parsed_run(api: Api, run: Run) -> int:
    return api.get(f"/runs/{run.id}")[0]


def the_receipt_verifies(request: DeletionRequest) -> None:
    """The audit says what went, and its chain is whole though payloads are gone."""
    seal()
    report = verify()
    assert [line for line in report.tampered if "no anchor" not in line] == []
    entry = AuditEntry.objects.get(action="data.deleted", object_id=request.object_id)
    facts = json.loads(entry.payload.body)
    assert facts == {**receipt_facts(request), "receipt": request.receipt}
    purge(request.id)  # again: nothing more happens
    assert AuditEntry.objects.filter(action="data.deleted").count() == 1
