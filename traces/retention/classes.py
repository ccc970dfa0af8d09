"""Where the data of each class is: statements over `due`, the runs whose time is over.

`some` tells whether a run has any of it, `doomed` lists what goes, `gone` deletes it. Pieces of text and progress are
not lost but folded: of those in a row the last one stays, with the text of all and the number of the first as `since`.
It stands for every number from there to its own, so that whoever reads the events of a run still knows of a hole.
"""

from __future__ import annotations

from dataclasses import dataclass

from traces.models import DataClass


@dataclass(frozen=True, slots=True)
class Statements:
    """One class of data in SQL; `pages` is how many runs go in one transaction."""

    some: str
    doomed: str
    gone: str
    page: int = 100
    count: str = "count(*)"


_FOLDED = "('text_delta', 'progress')"

_EVENTS = Statements(
    some=f"""SELECT 1 FROM event a JOIN event b ON b.run_id = a.run_id AND b.seq = a.seq + 1 AND b.type = a.type
        AND b.step IS NOT DISTINCT FROM a.step WHERE a.run_id = run.id AND a.type IN {_FOLDED}""",  # noqa: S608
    doomed=f"""SELECT run_id, type, min(COALESCE((data->>'since')::bigint, seq)) AS since, min(seq) AS first,
            max(seq) AS last, count(*) - 1 AS n, string_agg(data->>'text', '' ORDER BY seq) AS text,
            (array_agg(data->'offset' ORDER BY seq))[1] AS starts
        FROM (
            SELECT event.*, seq - row_number() OVER (PARTITION BY run_id, type, step ORDER BY seq) AS row
            FROM due JOIN event ON run_id = due.id WHERE type IN {_FOLDED}
        ) piece GROUP BY run_id, type, step, row HAVING count(*) > 1""",  # noqa: S608
    gone="""folded AS (
            UPDATE event SET data = event.data || jsonb_build_object('since', since) || CASE
                WHEN doomed.type = 'text_delta' THEN jsonb_build_object('offset', starts, 'text', text)
                ELSE '{}' END
            FROM doomed WHERE event.run_id = doomed.run_id AND event.seq = doomed.last
        ), gone AS (
            DELETE FROM event USING doomed
            WHERE event.run_id = doomed.run_id AND event.seq >= doomed.first AND event.seq < doomed.last
            RETURNING 1
        )""",
    page=20,
    count="COALESCE(sum(n), 0)",
)
_SPAN_PAYLOADS = Statements(
    some="SELECT 1 FROM span JOIN span_payload ON span_id = span.id WHERE span.run_id = run.id",
    doomed="SELECT span_id, part FROM due JOIN span ON span.run_id = due.id JOIN span_payload ON span_id = span.id",
    gone="""gone AS (DELETE FROM span_payload p USING doomed d WHERE p.span_id = d.span_id AND p.part = d.part
        RETURNING 1)""",
)
_SPANS = Statements(
    some="SELECT 1 FROM span WHERE span.run_id = run.id",
    doomed="SELECT span.id FROM due JOIN span ON span.run_id = due.id",
    gone="""emptied AS (DELETE FROM span_payload USING doomed WHERE span_id = doomed.id),
        gone AS (DELETE FROM span USING doomed WHERE span.id = doomed.id RETURNING 1)""",
)
# The newest stays: from it a failed run can be tried again. A graph's state is put together from its last whole on.
_OLD = """c.id <> (SELECT id FROM checkpoint WHERE run_id = c.run_id ORDER BY epoch DESC, id DESC LIMIT 1)
        AND NOT c.pinned AND NOT (c.reason IN ('node', 'state') AND c.step >= COALESCE(
            (SELECT max(step) FROM checkpoint WHERE run_id = c.run_id AND reason = 'state'), 0))"""
_CHECKPOINTS = Statements(
    some=f"SELECT 1 FROM checkpoint c WHERE c.run_id = run.id AND {_OLD}",  # noqa: S608
    doomed=f"SELECT c.id FROM due JOIN checkpoint c ON c.run_id = due.id WHERE {_OLD}",  # noqa: S608
    gone="gone AS (DELETE FROM checkpoint USING doomed WHERE checkpoint.id = doomed.id RETURNING 1)",
)

STATEMENTS = {
    DataClass.EVENTS: _EVENTS,
    DataClass.SPAN_PAYLOADS: _SPAN_PAYLOADS,
    DataClass.SPANS: _SPANS,
    DataClass.CHECKPOINTS: _CHECKPOINTS,
}
