"""What must hold after every move, whatever happened: each a query that finds nothing unless it is broken.

The numbers are those of docs/invariants.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import connection

# Each names what is wrong and finds the runs of which it is true. `{runs}` is `run.id = ANY(%s)`.
QUERIES: dict[str, str] = {
    "1 the status is not where the told moves led": """
        SELECT run.id FROM run JOIN LATERAL (
            SELECT data->>'to' AS told FROM event
            WHERE run_id = run.id AND type = 'run_status' ORDER BY seq DESC LIMIT 1) last ON true
        WHERE {runs} AND last.told <> run.status""",
    "1 the told moves are no chain": """
        SELECT id FROM (
            SELECT run.id, data->>'from' AS source,
                lag(data->>'to') OVER (PARTITION BY run.id ORDER BY seq) AS before
            FROM event JOIN run ON run.id = event.run_id WHERE type = 'run_status' AND {runs}) moves
        WHERE source IS DISTINCT FROM before""",
    "2 the run has changed hands without a new epoch": """
        SELECT run.id FROM run WHERE {runs} AND lease_epoch <> (
            SELECT count(*) FROM event WHERE run_id = run.id AND type = 'run_status'
            AND data->>'cause' IN ('claim', 'lease_lost', 'released'))""",
    "2 a run is running without its lease": """
        SELECT run.id FROM run LEFT JOIN run_lease ON run_id = run.id AND epoch = lease_epoch
        WHERE {runs} AND status = 'running' AND run_id IS NULL""",
    "3 a told checkpoint is not there": """
        SELECT run.id FROM event JOIN run ON run.id = event.run_id
        LEFT JOIN checkpoint ON checkpoint.id = (data->>'id')::uuid
        WHERE {runs} AND type = 'checkpoint' AND checkpoint.id IS NULL""",
    "3 a stored step is not counted, or the reverse": """
        SELECT run.id FROM run WHERE {runs}
            AND steps <> (SELECT count(*) FROM step WHERE run_id = run.id)""",
    "3 a told result is not in the ledger": """
        SELECT run.id FROM event JOIN run ON run.id = event.run_id
        WHERE {runs} AND type = 'tool_call_result' AND NOT EXISTS (
            SELECT 1 FROM tool_call WHERE run_id = run.id AND call_id = data->>'call_id'
            AND (status = data->>'status' OR data->>'status' = 'unknown'))""",
    "3 a result was told twice": """
        SELECT run.id FROM event JOIN run ON run.id = event.run_id
        WHERE {runs} AND type = 'tool_call_result' AND data->>'status' <> 'unknown'
        GROUP BY run.id, data->>'call_id' HAVING count(*) > 1""",
    "3 the messages have a gap": """
        SELECT run.id FROM run WHERE {runs} AND EXISTS (
            SELECT 1 FROM message WHERE thread_id = run.thread_id
            HAVING count(*) <> max(position) + 1)""",
    "4 a call is executing in a run that nobody will go on with": """
        SELECT run.id FROM run JOIN tool_call ON run_id = run.id
        WHERE {runs} AND tool_call.status = 'executing'
            AND run.status IN ('completed', 'cancelled', 'interrupted')""",
    "4 two calls of a run are in doubt at once": """
        SELECT run.id FROM run JOIN tool_call ON run_id = run.id
        WHERE {runs} AND tool_call.status = 'executing' GROUP BY run.id HAVING count(*) > 1""",
    "6 a run waits for a decision that nobody can find": """
        SELECT run.id FROM run WHERE {runs} AND status = 'interrupted' AND NOT EXISTS (
            SELECT 1 FROM interrupt WHERE run_id = run.id AND status = 'open')""",
    "6 a question is open and its run does not wait for it": """
        SELECT run.id FROM run JOIN interrupt ON run_id = run.id
        WHERE {runs} AND interrupt.status = 'open' AND run.status <> 'interrupted'""",
    "6 a lease is held though nobody works": """
        SELECT run.id FROM run JOIN run_lease ON run_id = run.id
        WHERE {runs} AND status <> 'running'""",
    "7 a settled interrupt has not the one decision that settled it": """
        SELECT run.id FROM run JOIN interrupt ON run_id = run.id
        WHERE {runs} AND (SELECT count(*) FROM decision WHERE interrupt_id = interrupt.id) <>
            CASE WHEN interrupt.status IN ('approved', 'rejected', 'edited', 'answered') THEN 1 ELSE 0 END""",
    "7 more resumes than decisions": """
        SELECT run.id FROM run WHERE {runs} AND (
            SELECT count(*) FROM event WHERE run_id = run.id AND type = 'run_status'
            AND data->>'cause' IN ('decided', 'expired')) > (
            SELECT count(*) FROM interrupt WHERE run_id = run.id AND status NOT IN ('open', 'withdrawn'))""",
    "8 a call that needed a person ran without their yes": """
        SELECT run.id FROM run JOIN tool_call ON run_id = run.id
        WHERE {runs} AND tool_call.tool = 'ledger_append' AND attempts > 0 AND NOT EXISTS (
            SELECT 1 FROM interrupt WHERE tool_call_id = tool_call.id
            AND interrupt.status IN ('approved', 'edited'))""",
    "9 the events are not dense": """
        SELECT run.id FROM run JOIN event ON run_id = run.id WHERE {runs}
        GROUP BY run.id HAVING min(seq) <> 1 OR count(*) <> max(seq) OR max(seq) <> run.last_seq""",
    "9 the text of a step has a gap or a repeat": """
        SELECT id FROM (
            SELECT run.id, (data->>'offset')::int AS at, COALESCE(sum(length(data->>'text')) OVER (
                PARTITION BY run.id, data->>'step' ORDER BY seq
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS said
            FROM event JOIN run ON run.id = event.run_id WHERE {runs} AND type = 'text_delta') pieces
        WHERE at <> said""",
    "9 a step was announced twice": """
        SELECT run.id FROM event JOIN run ON run.id = event.run_id
        WHERE {runs} AND type = 'step_start' GROUP BY run.id, data->>'index' HAVING count(*) > 1""",
    "12 the end was not told once for each end": """
        SELECT run.id FROM run WHERE {runs} AND (
            SELECT count(*) FROM event WHERE run_id = run.id AND type = 'done') <> (
            SELECT count(*) FROM event WHERE run_id = run.id AND type = 'run_status'
            AND data->>'to' IN ('completed', 'failed', 'cancelled', 'timed_out'))""",
    "14 the audit has not each question once": """
        SELECT run.id FROM run JOIN interrupt ON run_id = run.id
        WHERE {runs} AND (SELECT count(*) FROM audit_entry WHERE object_id = interrupt.id::text
            AND action = 'interrupt.opened') <> 1""",
    "14 the audit has not each answer once": """
        SELECT run.id FROM run JOIN interrupt ON run_id = run.id
        WHERE {runs} AND (SELECT count(*) FROM audit_entry WHERE object_id = interrupt.id::text
            AND action IN ('interrupt.decided', 'interrupt.expired', 'interrupt.withdrawn')) <>
            CASE WHEN interrupt.status = 'open' THEN 0 ELSE 1 END""",
    "14 the audit has not each end once": """
        SELECT run.id FROM run WHERE {runs} AND (
            SELECT count(*) FROM audit_entry WHERE run_id = run.id AND action = 'run.ended') <> (
            SELECT count(*) FROM event WHERE run_id = run.id AND type = 'run_status'
            AND data->>'to' IN ('completed', 'failed', 'cancelled', 'timed_out'))""",
}
_EACH = "\nUNION ALL\n".join(
    f"(SELECT '{name}' AS what, id::text FROM ({query.format(runs='run.id = ANY(%(runs)s)')}) x LIMIT 3)"  # noqa: S608 - constants of this module
    for name, query in QUERIES.items()
)


def violations(runs: Sequence[uuid.UUID]) -> list[str]:
    """What is broken in these runs, in words; empty if nothing is."""
    with connection.cursor() as cursor:
        cursor.execute(_EACH, {"runs": list(runs)})
        return [f"{what} (run {run_id})" for what, run_id in cursor.fetchall()]


def deadlocks() -> int:
    """How many deadlocks this database has had to end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
