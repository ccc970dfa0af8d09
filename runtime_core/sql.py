"""The hot statements, each one round trip and one commit, reviewed together.

Every statement that writes for a worker starts from `moved`: an UPDATE of the run row that carries the worker's
epoch. Where that finds no row, nothing after it writes anything, and the caller raises `Fenced`.
Raw texts come sealed, in base64.
Lock order everywhere: run, run_lease, permit, interrupt, tool_call, event.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from runtime_core.sql_claim import LEASE as _LEASE

# One step, one transaction: the run row, and beside it the parts that the step has, named as below. A part costs its
# setting up even where it writes nothing, so each combination is a statement of its own, planned once a connection.
_MOVED = """
moved AS (
    UPDATE run SET
        version = version + 1,
        status = %(to)s::text,
        next_step = %(next_step)s,
        steps = steps + %(steps_done)s,
        last_seq = last_seq + %(n_events)s,
        input_tokens = input_tokens + %(input_tokens)s,
        output_tokens = output_tokens + %(output_tokens)s,
        cost_microusd = cost_microusd + %(cost_microusd)s,
        model_failures = %(model_failures)s,
        claims_without_progress =
            CASE WHEN %(progress)s THEN 0 ELSE claims_without_progress END,
        available_at = COALESCE(
            clock_timestamp() + make_interval(secs => %(available_in)s::float8), available_at),
        output = COALESCE(%(output)s, output),
        error = %(error)s::jsonb,
        waits_for = %(waits_for)s,
        pause_requested_at = CASE WHEN %(to)s::text = 'running' THEN pause_requested_at END,
        stopped_at = CASE WHEN %(stopped)s THEN clock_timestamp() END,
        ended_at = CASE WHEN %(ended)s THEN clock_timestamp() END
    WHERE id = %(run)s AND lease_epoch = %(epoch)s AND version = %(version)s AND status = 'running'
    RETURNING id, thread_id, project_id, version, last_seq,
              cancel_requested_at, pause_requested_at
)
"""
_PARTS = {
    "kept": f"""
kept AS (
    UPDATE run_lease SET until = {_LEASE}
    FROM moved WHERE run_id = moved.id AND epoch = %(epoch)s AND %(to)s::text = 'running'
)
""",
    "released": """
released AS (
    DELETE FROM run_lease USING moved
    WHERE run_id = moved.id AND %(to)s::text <> 'running'
)
""",
    "freed": """
freed AS (
    UPDATE permit SET held_by = NULL FROM moved
    WHERE permit.id = ANY(%(places)s::bigint[]) AND permit.held_by = moved.id AND permit.epoch = %(epoch)s
)
""",
    "stepped": """
stepped AS (
    INSERT INTO step (id, run_id, index, kind, status, epoch, attempt, name, detail, started_at, ended_at)
    SELECT x.id, moved.id, x.index, x.kind, x.status, %(epoch)s, x.attempt, x.name, x.detail,
           x.started_at, clock_timestamp()
    FROM moved, jsonb_to_recordset(%(steps)s::jsonb) AS x(
        id uuid, index int, kind text, status text, attempt int, name text, detail jsonb,
        started_at timestamptz)
)
""",
    "said": """
said AS (
    INSERT INTO message (thread_id, position, run_id, step, body, created_at)
    SELECT moved.thread_id, x.position, moved.id, x.step, decode(x.body, 'base64'), clock_timestamp()
    FROM moved, jsonb_to_recordset(%(messages)s::jsonb) AS x(position int, step int, body text)
)
""",
    "proposed": """
proposed AS (
    INSERT INTO tool_call (id, run_id, step, position, call_id, tool, effect, risk, status, args_text,
        args_digest, args_redacted, schema_digest, idempotency_key, verdict_reason, grant_id, attempts,
        epoch, error_code, result_text, result_redacted, truncated, worker, edited, created_at, started_at, ended_at)
    SELECT x.id, moved.id, x.step, x.position, x.call_id, x.tool, x.effect, x.risk, x.status,
        decode(x.args_text, 'base64'),
        x.args_digest, COALESCE(x.args_redacted, 'null'), x.schema_digest, x.idempotency_key,
        x.verdict_reason, x.grant_id,
        CASE WHEN x.status = 'executing' THEN 1 ELSE 0 END, %(epoch)s, x.error_code,
        decode(x.result_text, 'base64'), x.result_redacted, x.truncated, x.worker, false, clock_timestamp(),
        CASE WHEN x.status = 'executing' THEN clock_timestamp() END,
        CASE WHEN x.ended THEN clock_timestamp() END
    FROM moved, jsonb_to_recordset(%(new_calls)s::jsonb) AS x(
        id uuid, step int, position int, call_id text, tool text, effect text, risk text, status text,
        args_text text, args_digest text, args_redacted jsonb, schema_digest text, idempotency_key text,
        verdict_reason text, grant_id uuid, error_code text, result_text text, result_redacted jsonb,
        truncated bool, worker text, ended bool)
)
""",
    "changed": """
changed AS (
    UPDATE tool_call SET
        status = x.status,
        epoch = %(epoch)s,
        attempts = tool_call.attempts + CASE WHEN x.status = 'executing' THEN 1 ELSE 0 END,
        error_code = x.error_code,
        result_text = decode(x.result_text, 'base64'),
        result_redacted = x.result_redacted,
        truncated = x.truncated,
        worker = x.worker,
        schema_digest = x.schema_digest,
        effect = x.effect,
        risk = x.risk,
        started_at = CASE WHEN x.status = 'executing'
            THEN COALESCE(tool_call.started_at, clock_timestamp()) ELSE tool_call.started_at END,
        ended_at = CASE WHEN x.ended THEN clock_timestamp() END
    FROM moved, jsonb_to_recordset(%(changed_calls)s::jsonb) AS x(
        id uuid, seen text, status text, error_code text, result_text text, result_redacted jsonb,
        truncated bool, schema_digest text, effect text, risk text, worker text, ended bool)
    WHERE tool_call.id = x.id AND tool_call.run_id = moved.id AND tool_call.status = x.seen
)
""",
    "asked": """
asked AS (
    INSERT INTO interrupt (id, project_id, run_id, tool_call_id, kind, status, version, digest, risk,
        reason, required, policy, terms, requester_may, bound, detail, created_at, expires_at, action,
        comment)
    SELECT x.id, moved.project_id, moved.id, x.tool_call, x.kind, 'open', 1, x.digest, x.risk, x.reason,
        x.required, x.policy, x.terms, x.requester_may, x.bound, x.detail, clock_timestamp(),
        clock_timestamp() + make_interval(secs => x.expires_s), '', ''
    FROM moved, jsonb_to_recordset(%(interrupts)s::jsonb) AS x(
        id uuid, tool_call uuid, kind text, digest text, risk text, reason text, required int,
        policy uuid, terms jsonb, requester_may bool, bound jsonb, detail jsonb,
        expires_s double precision)
)
""",
    "saved": """
saved AS (
    INSERT INTO checkpoint (id, run_id, step, epoch, reason, schema_version, messages, state, digest,
        created_at)
    SELECT x.id, moved.id, x.step, %(epoch)s, x.reason, x.schema_version, x.messages,
        decode(x.state, 'base64'), x.digest,
        clock_timestamp()
    FROM moved, jsonb_to_recordset(%(checkpoints)s::jsonb) AS x(
        id uuid, step int, reason text, schema_version int, messages int, state text, digest text)
)
""",
    "told": """
told AS (
    INSERT INTO event (run_id, seq, type, ts, step, data)
    SELECT moved.id, moved.last_seq - %(n_events)s + x.nth, x.event->>'type', clock_timestamp(),
        (x.event->>'step')::int, x.event->'data'
    FROM moved, jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS x(event, nth)
)
""",
}
_ANSWER = """
SELECT version, last_seq, cancel_requested_at IS NOT NULL, pause_requested_at IS NOT NULL FROM moved
"""


@functools.cache
def commit_step(parts: frozenset[str]) -> str:
    """The statement of a step that has these parts; ValueError if one is unknown."""
    return _joined(_MOVED, _PARTS, parts)


# The same for a node of a graph that changes nothing but the state: scalars, as most of its cost is reading its values.
_NODE_MOVED = """
moved AS (
    UPDATE run SET
        version = version + 1,
        next_step = %(next_step)s,
        steps = steps + 1,
        last_seq = last_seq + %(n_events)s,
        model_failures = 0,
        claims_without_progress = 0,
        error = NULL
    WHERE id = %(run)s AND lease_epoch = %(epoch)s AND version = %(version)s AND status = 'running'
    RETURNING id, version, last_seq, cancel_requested_at, pause_requested_at
), stepped AS (
    INSERT INTO step (id, run_id, index, kind, status, epoch, attempt, name, detail, started_at, ended_at)
    SELECT %(step_id)s, moved.id, %(index)s, 'node', 'succeeded', %(epoch)s, %(attempt)s, %(name)s,
        '{}', %(started_at)s, clock_timestamp()
    FROM moved
), saved AS (
    INSERT INTO checkpoint (id, run_id, step, epoch, reason, schema_version, messages, state, digest,
        created_at)
    SELECT %(checkpoint_id)s, moved.id, %(index)s, %(epoch)s, %(reason)s, %(schema_version)s,
        %(messages)s, %(state)s::bytea, %(digest)s, clock_timestamp()
    FROM moved
)
"""
_NODE_PARTS = {
    # The lease is renewed now and then, not by each node.
    "kept": f"""
kept AS (
    UPDATE run_lease SET until = {_LEASE}
    FROM moved WHERE run_id = moved.id AND epoch = %(epoch)s
)
""",
    "told_one": """
told AS (
    INSERT INTO event (run_id, seq, type, ts, step, data)
    SELECT moved.id, moved.last_seq, %(event_type)s, clock_timestamp(), %(event_step)s, %(event_data)s::jsonb
    FROM moved
)
""",
    "told": _PARTS["told"],
}


@functools.cache
def commit_node(parts: frozenset[str]) -> str:
    """The statement of a node with these of the parts `kept`, `told_one`, `told`."""
    return _joined(_NODE_MOVED, _NODE_PARTS, parts)


def _joined(moved: str, known: Mapping[str, str], parts: frozenset[str]) -> str:
    if unknown := parts - known.keys():
        raise ValueError(f"no parts of a step: {sorted(unknown)}")
    wanted = (text.strip() for name, text in known.items() if name in parts)
    return f"WITH {', '.join((moved.strip(), *wanted))}{_ANSWER}"


# Events of a step that still goes on. Not synced to disk: the step's own commit, later in the log, syncs these too.
APPEND_EVENTS = """
WITH relaxed AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true) AS v
), moved AS (
    UPDATE run SET
        last_seq = last_seq + %(n_events)s,
        next_step = GREATEST(next_step, %(next_step)s)
    FROM relaxed
    WHERE id = %(run)s AND lease_epoch = %(epoch)s AND status = 'running' AND relaxed.v = 'off'
    RETURNING id, last_seq
), told AS (
    INSERT INTO event (run_id, seq, type, ts, step, data)
    SELECT moved.id, moved.last_seq - %(n_events)s + x.nth, x.event->>'type', clock_timestamp(),
        (x.event->>'step')::int, x.event->'data'
    FROM moved, jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS x(event, nth)
)
SELECT last_seq FROM moved
"""

# What a commit whose outcome is unknown is settled by: the lock waits for the backend that may still be committing.
READ_BACK = """
SELECT version, last_seq, cancel_requested_at IS NOT NULL, pause_requested_at IS NOT NULL, lease_epoch, status
FROM run WHERE id = %(run)s FOR UPDATE
"""

HEARTBEAT = f"""
UPDATE run_lease SET until = {_LEASE}
FROM unnest(%(runs)s::uuid[], %(epochs)s::bigint[]) AS held(run, epoch)
WHERE run_lease.run_id = held.run AND run_lease.epoch = held.epoch
RETURNING run_lease.run_id
"""

WISHES = """
SELECT id, lease_epoch, status, cancel_requested_at IS NOT NULL, pause_requested_at IS NOT NULL,
       deadline_at < clock_timestamp()
FROM run WHERE id = ANY(%(runs)s::uuid[])
"""

# Runs whose worker is gone, or gave them back: only re-queued; they come back through the ordinary claim.
REAP = """
WITH lost AS (
    SELECT run.id FROM run JOIN run_lease ON run_lease.run_id = run.id
    WHERE run.status = 'running' AND {which}
    ORDER BY run.id LIMIT 100 FOR UPDATE OF run SKIP LOCKED
), moved AS (
    UPDATE run SET
        status = 'pending', version = version + 1, lease_epoch = lease_epoch + 1,
        available_at = clock_timestamp(), last_seq = last_seq + 1
    FROM lost WHERE run.id = lost.id
    RETURNING run.id, run.last_seq, run.lease_epoch, run.project_id
), freed AS (
    DELETE FROM run_lease USING moved WHERE run_lease.run_id = moved.id
), places AS (
    UPDATE permit SET held_by = NULL FROM moved WHERE permit.held_by = moved.id
), told AS (
    INSERT INTO event (run_id, seq, type, ts, data)
    SELECT id, last_seq, 'run_status', clock_timestamp(),
           jsonb_build_object('from', 'running', 'to', 'pending', 'cause', %(cause)s::text)
    FROM moved
)
SELECT id, last_seq, lease_epoch, project_id FROM moved
"""
REAP_LOST = REAP.format(
    which="(run_lease.until < clock_timestamp() OR run_lease.worker = ANY(%(dead)s::text[]))"
)
RELEASE = REAP.format(which="run.id = %(run)s AND run.lease_epoch = %(epoch)s")

# A run that no worker holds changes its status. `sources` are those that the table of moves allows.
MOVE = """
WITH was AS (
    SELECT id, status FROM run WHERE id = %(run)s FOR UPDATE
), moved AS (
    UPDATE run SET
        status = %(to)s,
        version = version + 1,
        attempt = attempt + %(attempts)s,
        last_seq = last_seq + %(n_events)s + 1,
        -- Nothing that was decided takes effect while it may still be taken back.
        available_at = GREATEST(clock_timestamp(),
            (SELECT max(undo_until) FROM interrupt WHERE run_id = was.id)),
        deadline_at = CASE
            WHEN %(to)s = 'pending' AND stopped_at IS NOT NULL
                THEN deadline_at + GREATEST(interval '0', clock_timestamp() - stopped_at
                    - make_interval(secs => %(worked_seconds)s))
            WHEN %(attempts)s > 0 THEN clock_timestamp() + make_interval(secs => deadline_s)
            ELSE deadline_at END,
        stopped_at = CASE WHEN %(to)s IN ('interrupted', 'paused')
            THEN COALESCE(stopped_at, clock_timestamp()) END,
        claims_without_progress = 0,
        -- One that only waited for its next try goes on counting.
        model_failures = CASE WHEN run.status = 'waiting' THEN run.model_failures ELSE 0 END,
        cancel_requested_at = CASE WHEN %(attempts)s > 0 THEN NULL ELSE cancel_requested_at END,
        pause_requested_at = NULL,
        error = COALESCE(%(error)s::jsonb, CASE WHEN %(attempts)s > 0 THEN NULL ELSE error END),
        output = CASE WHEN %(attempts)s > 0 THEN NULL ELSE output END,
        ended_at = CASE WHEN %(ended)s THEN clock_timestamp() END
    FROM was
    WHERE run.id = was.id AND was.status = ANY(%(sources)s)
    RETURNING run.id, run.last_seq, run.version, run.project_id, was.status AS source
), told AS (
    INSERT INTO event (run_id, seq, type, ts, data)
    SELECT id, last_seq - %(n_events)s, 'run_status', clock_timestamp(),
           jsonb_build_object('from', source, 'to', %(to)s::text, 'cause', %(cause)s::text)
    FROM moved
), more AS (
    INSERT INTO event (run_id, seq, type, ts, data)
    SELECT moved.id, moved.last_seq - %(n_events)s + x.nth, x.event->>'type', clock_timestamp(),
        x.event->'data'
    FROM moved, jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS x(event, nth)
)
SELECT last_seq, version, project_id, source FROM moved
"""

# What another run has taken back, in the commit that says so.
TAKEN_BACK = """
UPDATE tool_call SET status = 'compensated' WHERE id = ANY(%(calls)s::uuid[]) AND status <> 'compensated'
"""

# Events about a run that no worker holds, in the transaction of the change that they tell of.
TELL = """
WITH moved AS (
    UPDATE run SET last_seq = last_seq + %(n_events)s WHERE id = %(run)s RETURNING id, last_seq
), told AS (
    INSERT INTO event (run_id, seq, type, ts, data)
    SELECT moved.id, moved.last_seq - %(n_events)s + x.nth, x.event->>'type', clock_timestamp(),
        x.event->'data'
    FROM moved, jsonb_array_elements(%(events)s::jsonb) WITH ORDINALITY AS x(event, nth)
)
SELECT last_seq FROM moved
"""
