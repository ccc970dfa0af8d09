"""Personal data is masked for everybody; an auditor may see it for a reason that the audit keeps, and secrets never."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from runtime_core import ports
from runtime_core.models import ApiToken, Event, Membership, Run
from tests.runtime.world import call, drive, make_world
from traces.models import AuditEntry, AuditPayload, RedactionPolicy, RedactionRule
from traces.policies.current import current

pytestmark = pytest.mark.django_db(transaction=True)

MAIL, CARD = "ann.lee@example.org", "4539 1488 0343 6467"
TOKEN = "ghp_R7kq2LmZ0vXyT4bNs8WdPc1Hf6JuEa9Gi5Mo"
TURNS = [
    {"text": f"I write to {MAIL}.", "calls": [call("note", text=f"{CARD} and {TOKEN}")]},
    {"text": "Done."},
]


@pytest.fixture
def people() -> Iterator[tuple[Run, dict[str, Any]]]:
    current.forget()
    world = make_world()
    run = drive(world.start(TURNS, input=f"Tell {MAIL} the token {TOKEN}"))
    Membership.objects.create(project=world.project, user=world.victor, role="auditor")
    viewer = make_world().victor
    Membership.objects.create(project=world.project, user=viewer, role="viewer")
    yield (
        run,
        {
            "auditor": world.victor,
            "viewer": viewer,
            "stranger": world.carol,
            "operator": world.alice,
        },
    )
    ports.spans().flush()
    current.forget()


def client_of(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_who_may_see_personal_data_and_who_may_not(people: tuple[Run, dict[str, Any]]) -> None:
    run, users = people
    page, api = f"/runs/{run.id}/personal/", f"/api/v1/runs/{run.id}/personal"
    for name, status in {"viewer": 403, "operator": 403, "stranger": 404}.items():
        client = client_of(users[name])
        assert (
            client.get(page).status_code == client.post(page, {"reason": "x"}).status_code == status
        )
        bearer = {"Authorization": f"Bearer {ApiToken.issue(users[name])[1]}"}
        answer = client.post(api, {"reason": "x"}, "application/json", headers=bearer)
        assert answer.status_code == status
        assert MAIL not in client.get(f"/runs/{run.id}/").content.decode()
        assert b"/personal/" not in client.get(f"/runs/{run.id}/").content
    assert Client().get(page).status_code == 302
    assert not AuditEntry.objects.filter(action="personal.viewed").exists()
    assert AuditEntry.objects.filter(action="access.denied").count() >= 4

    client = client_of(users["auditor"])
    assert MAIL not in client.get(f"/runs/{run.id}/").content.decode(), "not without a reason"
    assert f"{page}".encode() in client.get(f"/runs/{run.id}/").content
    assert MAIL not in client.get(page).content.decode()
    assert client.post(page, {"reason": "  "}).status_code == 422
    shown = client.post(page, {"reason": "complaint 77"})
    text = shown.content.decode()
    assert shown.status_code == 200 and "no-store" in shown["Cache-Control"]
    assert MAIL in text and CARD in text and "note calls" in text
    assert TOKEN not in text and "github" in text
    bearer = {"Authorization": f"Bearer {ApiToken.issue(users['auditor'])[1]}"}
    answer = client.post(
        api, {"reason": f"it is about {TOKEN}"}, "application/json", headers=bearer
    )
    assert MAIL in answer.content.decode() and TOKEN not in answer.content.decode()
    kept = AuditPayload.objects.filter(entry__action="personal.viewed").values_list(
        "body", flat=True
    )
    assert len(kept) == 2 and "complaint 77" in kept[0] and TOKEN not in str(list(kept))


def test_what_was_stored_before_a_rule_passes_it_when_it_is_shown(
    people: tuple[Run, dict[str, Any]],
) -> None:
    run, users = people
    ports.spans().flush()
    client = client_of(users["viewer"])
    bearer = {"Authorization": f"Bearer {ApiToken.issue(users['viewer'])[1]}"}
    addresses = [
        f"/runs/{run.id}/",
        f"/api/v1/runs/{run.id}/events",
        f"/api/v1/runs/{run.id}/trace",
    ]

    def shown() -> list[bool]:
        return [
            "write to" in client.get(a, headers=bearer if "api" in a else {}).content.decode()
            for a in addresses
        ]

    assert shown() == [True] * 3
    row = RedactionPolicy.objects.create(name="words", scope="project", project=run.project)
    RedactionRule.objects.create(policy=row, kind="regex", label="words", pattern="write to")
    current.forget()
    assert shown() == [False] * 3
    events = client.get(addresses[1], headers=bearer).json()["events"]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert "[REDACTED:words]" in json.dumps(events)
    assert any("write to" in json.dumps(e.data) for e in Event.objects.filter(run=run)), (
        "the rows are as they were"
    )
