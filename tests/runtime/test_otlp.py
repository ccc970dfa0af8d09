"""Spans at an OpenTelemetry receiver: what arrives there, over HTTP, as protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from runtime_core import clock, ports
from runtime_core.ids import new_id
from runtime_core.models import Interrupt, Run
from tests.notify.receiver import Receiver, receiving
from tests.runtime.test_children import family, go_on, supervisor, worker_agent
from tests.runtime.world import World, calls, decide_on, drive
from traces import gate, otlp
from traces.models import SpanPayload, SpanRow
from traces.otlp import queue
from traces.otlp.queue import Exporter
from traces.spans import sink

TOKEN = "ghp_" + "a8Kq2Zr7Lw9Xc3Vb5Nm1Tp4Ys6Hd0Gf2Je8u"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def arrived(receiver: Receiver) -> list[Span]:
    spans: list[Span] = []
    for posted in receiver.posted:
        assert posted.path == "/v1/traces"
        assert posted.headers["content-type"] == "application/x-protobuf"
        for resource in ExportTraceServiceRequest.FromString(posted.body).resource_spans:
            assert [(a.key, a.value.string_value) for a in resource.resource.attributes] == [
                ("service.name", "interlock")
            ]
            for scope in resource.scope_spans:
                spans += scope.spans
    return spans


def attributes(span: Span) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


def of_kind(spans: list[Span], kind: str, run: Run) -> Span:
    mine = {"interlock.span.kind": kind, "interlock.run_id": str(run.id)}
    return [span for span in spans if mine.items() <= attributes(span).items()][-1]


def stored(run: Run, **fields: Any) -> SpanRow:
    """A span of the run as an older version may have stored it: past the gate."""
    given = {
        "id": new_id(),
        "run_id": run.id,
        "kind": "tool",
        "name": "say",
        "status": "ok",
        "epoch": 1,
    }
    at = clock.now()
    row = SpanRow.objects.create(**{**given, "started_at": at, "ended_at": at, **fields})
    SpanPayload.objects.create(span=row, part="output", body=f'"kept {TOKEN}"')
    return row


def test_a_family_of_runs_arrives_as_one_trace_without_what_was_said(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = Exporter(receiver.url, headers={"authorization": "Bearer abc"})
    monkeypatch.setattr(ports.spans(), "_exporter", exporter)
    worker_agent(world)
    run = drive(supervisor(world, "1"))
    go_on()
    for one in Interrupt.objects.filter(status="open"):
        decide_on(one, world.bob, "approve")
    go_on()
    [child] = family(run)
    ports.spans().flush()
    exporter.flush(20)

    spans = arrived(receiver)
    ids = {span.span_id for span in spans}
    assert receiver.posted[0].headers["authorization"] == "Bearer abc"
    assert {span.trace_id for span in spans} == {run.id.bytes}
    assert len(ids) == SpanRow.objects.filter(ended_at__isnull=False).count() > 8
    assert exporter.sent >= len(ids) and exporter.dropped == 0
    assert [span.name for span in spans if span.parent_span_id not in ids] == [
        of_kind(spans, "run", run).name
    ], "everything but the first run hangs on something that came too"

    root, handed, below = (
        of_kind(spans, "run", run), of_kind(spans, "subagent", run), of_kind(spans, "run", child)
    )  # fmt: skip
    assert (root.span_id, root.parent_span_id) == (run.id.bytes[8:], b"")
    assert root.name.startswith("invoke_agent ") and run.title not in root.name
    assert below.parent_span_id == handed.span_id
    assert attributes(below)["gen_ai.agent.name"] == "Worker"
    assert attributes(below)["gen_ai.conversation.id"] == str(child.thread_id)
    asked = of_kind(spans, "llm", child)
    said = attributes(asked)
    assert (asked.kind, said["gen_ai.operation.name"]) == (Span.SPAN_KIND_CLIENT, "chat")
    assert asked.name == f"chat {said['gen_ai.response.model']}"
    counted = [attributes(span).get("gen_ai.usage.input_tokens", 0) for span in spans
               if attributes(span)["interlock.run_id"] == str(child.id)]  # fmt: skip
    assert sum(counted) == Run.objects.get(id=child.id).input_tokens > 0
    tool = of_kind(spans, "tool", child)
    assert attributes(tool)["gen_ai.tool.call.id"] == str(calls(child)[-1].id)
    assert tool.name == f"execute_tool {calls(child)[-1].tool}"
    assert 0 < tool.start_time_unix_nano <= tool.end_time_unix_nano
    keys = {key for span in spans for key in attributes(span)}
    assert not keys & {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "interlock.attrs.why",
                       "interlock.input", "interlock.output"}  # fmt: skip


def test_content_goes_only_where_asked_for_and_redacted_by_the_rules_of_today(
    world: World, receiver: Receiver
) -> None:
    run = world.start([{"text": "done"}])
    row = stored(run, attrs={"why": f"because {TOKEN}", "error": "late"}, status="error")
    open_one = stored(run, ended_at=None, status="open")
    for content in (False, True):
        exporter = Exporter(receiver.url + "/v1/traces", content=content)
        exporter.offer([row.id, row.id, open_one.id, new_id()])
        exporter.flush(20)
        assert exporter.sent == 1

    without, whole = arrived(receiver)
    assert "kept" not in str(without) and "because" not in str(without)
    assert attributes(whole)["gen_ai.tool.call.result"].startswith("kept [REDACTED:")
    assert attributes(whole)["interlock.attrs.why"].startswith("because [REDACTED:")
    assert attributes(whole)["error.type"] == "late"
    assert whole.status.code == without.status.code == whole.status.STATUS_CODE_ERROR
    assert not any(TOKEN.encode() in posted.body for posted in receiver.posted)


def test_what_is_not_taken_is_dropped_and_counted(
    world: World,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = world.start([{"text": "done"}])
    row = stored(run)
    receiver.answers.append((400, {}))
    exporter = Exporter(receiver.url)
    exporter.offer([row.id])
    exporter.flush(20)
    assert (exporter.sent, exporter.dropped) == (0, 1)
    assert "1 spans not exported, 1 since the start" in caplog.text

    exporter.offer([row.id])
    exporter.flush(20)
    assert (exporter.sent, exporter.dropped) == (1, 1), "its thread goes on"
    monkeypatch.setattr(queue, "QUEUE_SPANS", 2)
    exporter.offer([new_id() for _ in range(5)])
    assert exporter.dropped == 4
    exporter.flush(20)


def test_spans_of_a_lost_worker_are_sent_as_such(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = Exporter(receiver.url)
    monkeypatch.setattr(ports.spans(), "_exporter", exporter)
    run = world.start([{"text": "done"}])
    stored(run, ended_at=None, status="open")
    ports.spans().abandon(run.id, 2)
    exporter.flush(20)

    [sent] = arrived(receiver)
    assert (
        attributes(sent)["error.type"] == attributes(sent)["interlock.span.status"] == "abandoned"
    )


def test_the_receivers_credentials_are_known_to_the_redactor(settings: Any) -> None:
    settings.INTERLOCK_OTLP_HEADERS = {
        "authorization": "Bearer blue-42-harbour",
        "x-tenant": "harbour-works",
    }
    known = set(gate._credentials())
    assert {"Bearer blue-42-harbour", "blue-42-harbour"} <= known and "harbour-works" not in known


def test_nothing_is_exported_unless_the_settings_name_a_receiver(
    world: World, receiver: Receiver, settings: Any
) -> None:
    assert otlp.exporter() is None and sink()._exporter is None
    settings.INTERLOCK_OTLP_ENDPOINT, settings.INTERLOCK_OTLP_CONTENT = receiver.url + "/", True
    settings.INTERLOCK_OTLP_HEADERS = {"x-tenant": "blue"}
    exporter = otlp.exporter.__wrapped__()
    exporter.offer([stored(world.start([{"text": "done"}])).id])
    exporter.flush(20)

    [sent] = arrived(receiver)
    assert "gen_ai.tool.call.result" in attributes(sent)
    assert receiver.posted[0].headers["x-tenant"] == "blue"
