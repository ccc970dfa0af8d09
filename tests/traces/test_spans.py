"""The span sink: takes spans without waiting, redacts them, closes them once."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from runtime_core import clock
from runtime_core.ids import new_id
from runtime_core.values import Span, Usage
from traces.models import SpanPayload, SpanRow
from traces.spans import buffer, table
from traces.spans.buffer import Sink

TOKEN = "ghp_" + "a8Kq2Zr7Lw9Xc3Vb5Nm1Tp4Ys6Hd0Gf2Je8u"
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def span(**fields: object) -> Span:
    given = {
        "id": new_id(), "run_id": new_id(), "parent_id": None, "kind": "tool", "name": "read_file",
        "started_at": START,
    }  # fmt: skip
    return Span(**{**given, **fields})  # type: ignore[arg-type]


def closed(start: Span, **fields: object) -> Span:
    given = {name: getattr(start, name) for name in Span.__slots__}
    given |= {"ended_at": START + dt.timedelta(seconds=2), "status": "ok"}
    return Span(**{**given, **fields})  # type: ignore[arg-type]


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.flush()


@pytest.mark.django_db(transaction=True)
def test_it_writes_a_start_and_then_its_end(sink: Sink) -> None:
    start = span(input={"path": "a.py"})

    sink.write([start])
    sink.flush()
    assert SpanRow.objects.get().status == "open"
    sink.write([closed(start, usage=Usage(3, 4, 5), output="text")])
    sink.flush()

    row = SpanRow.objects.get()
    assert (row.status, row.ended_at) == ("ok", START + dt.timedelta(seconds=2))
    assert (row.input_tokens, row.output_tokens, row.cost_microusd) == (3, 4, 5)
    parts = dict(SpanPayload.objects.values_list("part", "body"))
    assert parts == {"input": '{"path": "a.py"}', "output": '"text"'}


@pytest.mark.django_db
def test_a_late_start_does_not_open_what_has_ended() -> None:
    start = span()

    table.upsert([closed(start), start])

    assert SpanRow.objects.get().status == "ok"


@pytest.mark.django_db
def test_a_retried_run_is_open_again_whatever_comes_late() -> None:
    first = span(kind="run", epoch=1)
    again = span(id=first.id, run_id=first.run_id, kind="run", epoch=2)

    table.upsert([first, closed(first, status="error")])
    table.upsert([again, first])

    assert SpanRow.objects.values_list("status", "epoch").get() == ("open", 2)
    table.upsert([closed(again)])
    assert SpanRow.objects.get().status == "ok"


@pytest.mark.django_db
def test_h8_the_same_id_in_another_run_changes_nothing() -> None:
    start = span(name="mine", input="mine")

    table.upsert([start, closed(start, run_id=new_id(), name="theirs", input="theirs")])

    assert SpanRow.objects.get().name == "mine"
    assert SpanPayload.objects.get().body == '"mine"'


@pytest.mark.django_db
def test_h2_no_secret_reaches_a_span() -> None:
    table.upsert(
        [
            span(
                name=f"fetch {TOKEN}",
                input={"url": f"https://h/?key={TOKEN}", "nested": [{"a": TOKEN}], TOKEN: 1},
                output=f"HTTPError for url https://h/?key={TOKEN}",
                attrs={"header": f"Bearer {TOKEN}"},
            )
        ]
    )

    stored = [*SpanRow.objects.values(), *SpanPayload.objects.values("body")]
    assert TOKEN not in str(stored)
    assert sum(SpanRow.objects.get().redactions.values()) >= 5


@pytest.mark.django_db
def test_it_stores_what_postgresql_cannot_hold() -> None:
    table.upsert(
        [span(name="a\x00b", input={"k\x00": "\ud800", "n": float("nan")}, output=b"\xff")]
    )

    assert SpanRow.objects.get().name == "a␀b"


@pytest.mark.django_db
def test_it_cuts_what_is_too_large() -> None:
    table.upsert([span(output="word " * 100_000, attrs={"big": "word " * 10_000})])

    payload = SpanPayload.objects.get()
    assert payload.truncated
    assert len(payload.body) < table.PAYLOAD_BYTES + 200
    assert SpanRow.objects.get().attrs["withheld"] == "too large"


@pytest.mark.django_db
def test_abandon_closes_only_what_a_lost_worker_left_open() -> None:
    run = new_id()
    lost = span(run_id=run, epoch=1)
    alive = span(run_id=run, epoch=2)
    root = span(run_id=run, epoch=0, kind="run")
    wait = span(run_id=run, epoch=1, kind="interrupt")
    other = span(epoch=1)
    table.upsert([lost, alive, root, wait, other, closed(span(run_id=run, epoch=1))])

    assert len(table.abandon(run, 2, clock.now())) == 1

    still_open = SpanRow.objects.filter(ended_at=None).values_list("id", flat=True)
    assert set(still_open) == {alive.id, root.id, wait.id, other.id}
    table.upsert([closed(lost)])
    assert SpanRow.objects.get(id=lost.id).status == "abandoned"


def test_it_never_makes_the_caller_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(table, "upsert", lambda batch: gate.wait(20))
    monkeypatch.setattr(buffer, "QUEUE_SPANS", 100)
    made = Sink()

    began = time.monotonic()
    made.write([span() for _ in range(1_000)])
    made.write([span(input="x" * 40_000_000)])

    assert time.monotonic() - began < 1
    assert made.dropped >= 801
    gate.set()
    made.flush()


def test_it_goes_on_after_the_database_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[uuid.UUID] = []
    failures = iter([OperationalError("gone"), OperationalError("gone")])

    def upsert(batch: list[Span]) -> None:
        for error in failures:
            raise error
        seen.extend(s.id for s in batch)

    monkeypatch.setattr(table, "upsert", upsert)
    made = Sink()
    one = span()
    made.write([one])
    made.flush()

    assert seen == [one.id]
    assert made.dropped == 0
