"""What a run leaves in the database: JSON that parses, without the secrets in it, and pages that show odd bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client

from runtime_core import ports
from tests.runtime.world import World, call, calls, drive, events, make_world
from traces.models import SpanPayload

pytestmark = pytest.mark.django_db(transaction=True)

KEY_LINES = ["MIIEowIBAAKCAQEAqk3vQ1hJt3YwXb0N", "nS5rLq7uEoPaGd2cVfMiTyRjHk8Zk3vQ"]
VALUES = [
    {"command": 'echo "=== deploy token ==="'},
    {"password": 'foo"bar_secret_value'},
    {"headers": {"Authorization": ["Bearer x7Kq9", "Bearer y8Lr0"], "z": 1}, "tail": "kept"},
    {"X-Api-Key": 739126480},
    {"PASSWORD": "bar_secret_value"},
    {"nested": json.dumps({"password": 'foo"bar_secret_value', "tail": "kept"})},
    {
        "a": f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_LINES[0]}",
        "b": f"{KEY_LINES[1]}\n-----END RSA PRIVATE KEY-----",
    },
]
GONE = ("bar_secret_value", "739126480", "x7Kq9", "y8Lr0", *KEY_LINES)


@pytest.fixture
def world() -> Iterator[World]:
    yield make_world()
    ports.spans().flush()


def every_table() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        written = []
        for table in tables:
            cursor.execute(f'SELECT string_agg(x::text, chr(10)) FROM "{table}" x')  # noqa: S608 - from the catalogue
            written.append(cursor.fetchone()[0] or "")
    return "\n".join(written)


def test_h1_stored_json_parses_keeps_its_shape_and_holds_no_secret(world: World) -> None:
    asked = [call("look", at=json.dumps(value)) for value in VALUES]
    run = drive(world.start([{"text": "I look.", "calls": asked}, {"text": "ok"}]))
    assert run.status == "completed"
    ports.spans().flush()

    for value, stored in zip(VALUES, calls(run), strict=True):
        shown = json.loads(stored.args_redacted["at"])
        assert shown.keys() == value.keys()
        assert json.loads(stored.result_redacted["seen"]).keys() == value.keys()
    headers = json.loads(calls(run)[2].args_redacted["at"])
    assert (headers["headers"]["z"], headers["tail"]) == (1, "kept")
    assert json.loads(calls(run)[0].args_redacted["at"]) == VALUES[0], (
        "harmless, so it is as it was"
    )
    assert json.loads(json.loads(calls(run)[5].args_redacted["at"])["nested"])["tail"] == "kept"
    for body in SpanPayload.objects.values_list("body", flat=True):
        json.loads(body)
    everything = every_table()
    assert "kept" in everything
    assert [secret for secret in GONE if secret in everything] == []


def test_b1_every_page_of_a_run_with_odd_bytes_is_shown(world: World) -> None:
    odd = [call("say", what=what) for what in ("nul", "key", "bytes", "raise", "literal")]
    run = drive(
        world.start([{"text": "a\x00b", "calls": odd}, {"text": "q\x00"}], input="in\x00put")
    )
    assert run.status == "completed"
    ports.spans().flush()
    client = Client()
    client.force_login(world.alice)
    for address in (f"/runs/{run.id}/", f"/traces/{run.id}/", f"/audit/?run={run.id}", "/runs/"):
        page = client.get(address)
        assert page.status_code == 200, address
        assert "\x00" not in page.content.decode()
    assert calls(run)[4].result_text == "\\u0000"
    assert "\u2400" in json.dumps([e.data for e in events(run)], ensure_ascii=False)
