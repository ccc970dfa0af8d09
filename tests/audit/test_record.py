"""Recording: entries commit with what they tell of, redacted, and can never be changed."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.test import Client

from runtime_core import ports
from runtime_core.values import SYSTEM, Actor, Audit
from traces.audit.sealer import seal
from traces.models import AuditEntry, AuditPayload

pytestmark = pytest.mark.django_db
TOKEN = "ghp_" + "a8Kq2Zr7Lw9Xc3Vb5Nm1Tp4Ys6Hd0Gf2Je8u"


def record(action: str = "run.started", **data: object) -> AuditEntry:
    ports.audit().record([Audit(action, SYSTEM, "run", "r1", data=data)])
    return AuditEntry.objects.get(action=action)


def test_it_keeps_who_did_what_to_which() -> None:
    ports.audit().record([Audit("run.started", Actor(7, "ana"), "run", "r1", data={"agent": "a"})])

    entry = AuditEntry.objects.get()
    assert (entry.actor_id, entry.actor_name, entry.via) == (7, "ana", "web")
    assert (entry.action, entry.object_type, entry.object_id) == ("run.started", "run", "r1")
    assert entry.seq is None
    assert entry.payload.body == '{"agent":"a"}'


def test_it_goes_away_with_the_transaction_it_was_made_in() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record()
        raise ZeroDivisionError

    assert not AuditEntry.objects.exists()


def test_h2_no_secret_reaches_the_audit() -> None:
    ports.audit().record(
        [
            Audit(
                "decision.denied",
                Actor(1, f"ana {TOKEN}"),
                "interrupt",
                "i1",
                data={
                    "comment": f"use {TOKEN}",
                    "password": "hunter2hunter2",
                    "nested": [{TOKEN: 1}],
                },
            )
        ]
    )

    entry = AuditEntry.objects.get()
    assert TOKEN not in entry.payload.body + entry.actor_name
    assert "hunter2" not in entry.payload.body


def test_it_stores_what_json_and_postgresql_cannot_hold() -> None:
    entry = record(nul="a\x00b", lone="\ud800", number=1e308, zero=-0.0)

    assert json.loads(entry.payload.body)["number"] == "1e+308"


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE audit_entry SET action = 'x'",
        "UPDATE audit_entry SET hash = 'x' WHERE seq IS NOT NULL",
        "UPDATE audit_entry SET seq = seq + 1",
        "UPDATE audit_entry SET seq = NULL, hash = '', prev_hash = ''",
        "DELETE FROM audit_entry",
        "TRUNCATE audit_entry CASCADE",
        "UPDATE audit_payload SET body = '{}'",
        "DELETE FROM audit_payload",
        "TRUNCATE audit_payload",
        "INSERT INTO audit_entry SELECT gen_random_uuid(), 9, at, actor_id, actor_name, via,"
        " action, object_type, object_id, project_id, run_id, payload_commit, hash, hash"
        " FROM audit_entry",
    ],
)
def test_the_database_refuses_to_change_it(attack: str) -> None:
    record()
    seal()
    connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")

    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(attack)

    assert AuditEntry.objects.count() == AuditPayload.objects.count() == 1


def test_it_keeps_logins_logouts_and_failures(client: Client) -> None:
    user = User.objects.create_user("ana", password="right-password")

    client.login(username="ana", password="wrong")
    client.login(username="my-secret-password-by-mistake", password="x")
    client.login(username="ana", password="right-password")
    client.logout()

    rows = AuditEntry.objects.order_by("id").values_list("action", "object_id")
    assert list(rows) == [
        ("auth.login_failed", str(user.pk)),
        ("auth.login_failed", "unknown"),
        ("auth.login", str(user.pk)),
        ("auth.logout", str(user.pk)),
    ]
    assert "mistake" not in str(
        list(AuditEntry.objects.values()) + list(AuditPayload.objects.values())
    )
