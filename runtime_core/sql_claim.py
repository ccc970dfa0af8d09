"""The claim: which due run a worker takes next, and the places that it takes with it, in one statement.

`ready` steps through the distinct projects and agents that have a run in the queue, one index probe each, however long
their queues are. `turns` puts the projects in order: whose last claim is longest ago is first, so that a project with
thousands of runs in its queue has one turn like all others. A project or agent whose quota has no free place is passed
over. What is picked is locked with SKIP LOCKED: no claim ever waits for another one.

A quota that was lowered has retired places, held by runs that began before; nothing is taken from it while it has.
"""

from __future__ import annotations

LEASE = "clock_timestamp() + make_interval(secs => %(lease_seconds)s)"

_DUE = "status = 'pending' AND available_at <= clock_timestamp()"
_IN_ORDER = "ORDER BY priority DESC, available_at, id"

_READY = """
WITH RECURSIVE ready AS (
    (SELECT project_id, agent_id FROM run WHERE status = 'pending'
     ORDER BY project_id, agent_id LIMIT 1)
    UNION ALL
    SELECT following.project_id, following.agent_id FROM ready, LATERAL (
        SELECT project_id, agent_id FROM run
        WHERE status = 'pending' AND (project_id, agent_id) > (ready.project_id, ready.agent_id)
        ORDER BY project_id, agent_id LIMIT 1
    ) AS following
)
"""
_READY_ONE = """
WITH ready AS (
    SELECT project_id, agent_id FROM run WHERE id = %(run)s AND status = 'pending'
)
"""


def _has_room(kind: str, key: str) -> str:
    """True unless there is a quota and it is full: a scalar, so that it is asked row by row, as rows are needed."""
    return f"""COALESCE((
        SELECT EXISTS (SELECT FROM permit WHERE quota_id = quota.id AND held_by IS NULL AND NOT retired)
           AND NOT EXISTS (SELECT FROM permit WHERE quota_id = quota.id AND held_by IS NOT NULL AND retired)
        FROM quota WHERE kind = '{kind}' AND key = {key}), true)"""


def _place(name: str, kind: str, key: str) -> str:
    """A free place of the quota, locked; no row where there is none."""
    return f"""
    LEFT JOIN LATERAL (
        SELECT permit.id FROM permit JOIN quota ON quota.id = permit.quota_id
        WHERE quota.kind = '{kind}' AND quota.key = {key} AND permit.held_by IS NULL AND NOT permit.retired
        LIMIT 1 FOR UPDATE OF permit SKIP LOCKED
    ) AS {name} ON true"""


def _needs(name: str, kind: str, key: str) -> str:
    """Where a quota came or went since it was looked at, its place is still what decides."""
    return f"""({name}.id IS NOT NULL OR NOT EXISTS (
        SELECT FROM quota WHERE kind = '{kind}' AND key = {key}))"""


_ALL = ("all", "''")
_PROJECT = ("project", "turns.project_id::text")
_AGENT = ("agent", "lane.agent_id::text")

# The statements of a deployment without such quotas ask nothing more: where there is one, they find and do nothing.
_ANY_QUOTA = "SELECT FROM quota WHERE kind IN ('all', 'project', 'agent')"


def _turns(may: str) -> str:
    return f"""turns AS MATERIALIZED (
    SELECT project_id, last_claimed
    FROM (SELECT DISTINCT project_id FROM ready) AS distinct_ones
    LEFT JOIN project_queue USING (project_id)
    WHERE {may}
    ORDER BY last_claimed NULLS FIRST, project_id
)"""


def _lanes(may: str, only: str = "") -> str:
    """The queues of a project whose turn it is, one an agent, and their first runs, which are compared."""
    return f"""turns, LATERAL (
        SELECT ready.agent_id, head.* FROM ready, LATERAL (
            SELECT priority, available_at, id FROM run
            WHERE {_DUE} AND project_id = ready.project_id AND agent_id = ready.agent_id {only}
            {_IN_ORDER} LIMIT 1
        ) AS head
        WHERE ready.project_id = turns.project_id AND {may}
        ORDER BY head.priority DESC, head.available_at, head.id
    ) AS lane"""


def _first(may: str, only: str = "") -> str:
    """The first run of a lane that nobody else is taking, locked."""
    return f"""LATERAL (
        SELECT id FROM run
        WHERE {_DUE} AND project_id = turns.project_id AND agent_id = lane.agent_id {only} AND {may}
        {_IN_ORDER} LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS one"""


_MOVED = f"""moved AS (
    UPDATE run SET
        status = 'running',
        version = version + 1,
        lease_epoch = lease_epoch + 1,
        claims_without_progress = claims_without_progress + 1,
        started_at = COALESCE(started_at, clock_timestamp()),
        deadline_at = COALESCE(deadline_at, clock_timestamp() + make_interval(secs => deadline_s)),
        last_seq = last_seq + 1
    FROM picked WHERE run.id = picked.id
    RETURNING run.id, run.lease_epoch, run.last_seq, run.project_id
), leased AS (
    INSERT INTO run_lease (run_id, epoch, worker, until)
    SELECT id, lease_epoch, %(worker)s, {LEASE} FROM moved
    ON CONFLICT (run_id) DO UPDATE SET
        epoch = EXCLUDED.epoch, worker = EXCLUDED.worker, until = EXCLUDED.until
), told AS (
    INSERT INTO event (run_id, seq, type, ts, data)
    SELECT id, last_seq, 'run_status', clock_timestamp(),
           jsonb_build_object('from', 'pending', 'to', 'running', 'cause', 'claim')
    FROM moved
)"""
# Only where projects take turns. Another claim that writes the same is as good: nobody waits.
_TURNED = """turned AS (
    UPDATE project_queue SET last_claimed = clock_timestamp() WHERE project_id = (
        SELECT mine.project_id FROM project_queue AS mine
        WHERE mine.project_id = (SELECT project_id FROM moved) AND (SELECT count(*) FROM turns) > 1
        FOR UPDATE SKIP LOCKED)
)"""
# A row without a run says that there are quotas, and that it takes the other statement.
_OR_LIMITED = f"""
SELECT id, lease_epoch, last_seq, project_id, '{{}}'::bigint[] FROM moved
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL WHERE EXISTS ({_ANY_QUOTA})
"""
CLAIM_ANY = f"""
{_READY}, {_turns(f"NOT EXISTS ({_ANY_QUOTA})")}, picked AS MATERIALIZED (
    SELECT one.id FROM {_lanes("true")}, {_first("true")} LIMIT 1
), {_MOVED}, {_TURNED} {_OR_LIMITED}
"""
CLAIM_ONE = f"""
WITH picked AS MATERIALIZED (
    SELECT id FROM run WHERE id = %(run)s AND {_DUE} AND NOT EXISTS ({_ANY_QUOTA})
    FOR UPDATE SKIP LOCKED
), {_MOVED} {_OR_LIMITED}
"""


def _limited(ready: str, only: str = "") -> str:
    """The claim under quotas: with a place of each that there is for the run, or not at all."""
    return f"""
{ready}, {_turns(_has_room(*_ALL))}, picked AS MATERIALIZED (
    SELECT one.id, ARRAY[of_all.id, of_project.id, of_agent.id] AS places
    FROM {_lanes(_has_room(*_PROJECT), only)}, {_first(_has_room(*_AGENT), only)}
    {_place("of_all", *_ALL)}
    {_place("of_project", *_PROJECT)}
    {_place("of_agent", *_AGENT)}
    WHERE {_needs("of_all", *_ALL)}
      AND {_needs("of_project", *_PROJECT)}
      AND {_needs("of_agent", *_AGENT)}
    LIMIT 1
), {_MOVED}, {_TURNED}, taken AS (
    UPDATE permit SET held_by = moved.id, epoch = moved.lease_epoch, taken_at = clock_timestamp()
    FROM moved, picked WHERE permit.id = ANY(picked.places)
    RETURNING permit.id
)
SELECT id, lease_epoch, last_seq, project_id, ARRAY(SELECT id FROM taken) FROM moved
"""


CLAIM_ANY_LIMITED = _limited(_READY)
CLAIM_ONE_LIMITED = _limited(_READY_ONE, "AND id = %(run)s")

# The runs to hint at: those that a claim would take, in turn, a few of each agent.
DUE = f"""
{_READY}, {_turns(_has_room(*_ALL))}
SELECT one.id FROM {_lanes(_has_room(*_PROJECT))}, LATERAL (
    SELECT id, row_number() OVER () AS nth FROM (
        SELECT id FROM run
        WHERE {_DUE} AND project_id = turns.project_id AND agent_id = lane.agent_id
          AND {_has_room(*_AGENT)}
        {_IN_ORDER} LIMIT %(most)s
    ) AS first_ones
) AS one
ORDER BY one.nth, turns.last_claimed NULLS FIRST LIMIT %(most)s
"""

# A place for a call of a tool or a request to a model. Behind those that wait already, unless it has waited itself.
TAKE = """
WITH ours AS (
    SELECT id FROM run
    WHERE id = %(run)s AND lease_epoch = %(epoch)s AND status = 'running' FOR UPDATE
), free AS (
    SELECT permit.id FROM permit JOIN quota ON quota.id = permit.quota_id
    WHERE quota.kind = %(kind)s AND quota.key = %(key)s AND permit.held_by IS NULL AND NOT permit.retired
      AND NOT EXISTS (SELECT FROM permit AS old
                      WHERE old.quota_id = quota.id AND old.retired AND old.held_by IS NOT NULL)
      AND (%(waited)s OR NOT EXISTS (SELECT FROM run WHERE status = 'waiting' AND waits_for <> ''
                                     AND waits_for = %(kind)s || ':' || %(key)s))
    LIMIT 1 FOR UPDATE OF permit SKIP LOCKED
), taken AS (
    UPDATE permit SET held_by = ours.id, epoch = %(epoch)s, taken_at = clock_timestamp()
    FROM ours, free WHERE permit.id = free.id
    RETURNING permit.id
)
SELECT (SELECT id FROM ours),
       (SELECT id FROM taken),
       EXISTS (SELECT FROM quota WHERE kind = %(kind)s AND key = %(key)s)
"""

# Places whose holder is not at the claim any more under which it took them: what a crash between two statements left.
# The values are compared again, so that a place which somebody has taken meanwhile stays theirs.
FREE_LEFT = """
UPDATE permit SET held_by = NULL
FROM (SELECT id, held_by, epoch, taken_at FROM permit
      WHERE held_by IS NOT NULL AND NOT EXISTS (
          SELECT FROM run WHERE run.id = permit.held_by AND run.status = 'running'
          AND run.lease_epoch = permit.epoch)) AS was
WHERE permit.id = was.id AND permit.held_by = was.held_by AND permit.epoch = was.epoch
  AND permit.taken_at = was.taken_at
"""

# Where runs stand: those of the project that would go first, and which of their quotas has a place.
LOOK = f"""
SELECT turns.id,
    CASE WHEN turns.status = 'waiting' THEN (SELECT count(*) FROM (
        SELECT FROM run WHERE status = 'waiting' AND waits_for <> '' AND waits_for = turns.waits_for
        AND (available_at, id) < (turns.available_at, turns.id) LIMIT %(most)s) AS before)
    ELSE (SELECT count(*) FROM (
        SELECT FROM run WHERE status = 'pending' AND project_id = turns.project_id
        AND (-priority, available_at, id) < (-turns.priority, turns.available_at, turns.id)
        LIMIT %(most)s) AS before) END,
    CASE WHEN turns.status = 'waiting' THEN turns.waits_for ELSE '' END,
    turns.available_at > clock_timestamp(),
    {_has_room(*_ALL)}, {_has_room(*_PROJECT)}, {_has_room("agent", "turns.agent_id::text")}
FROM run AS turns WHERE turns.id = ANY(%(runs)s::uuid[])
"""

# The queue of each project, with what is counted anyway and the age of what is due.
QUEUES = f"""
SELECT turns.name, turns.queued, turns.most, turns.waiting, turns.oldest,
    {_has_room(*_ALL)}, {_has_room(*_PROJECT)}
FROM (
    SELECT project.id AS project_id, project.name,
        COALESCE(project_queue.queued, 0) AS queued, COALESCE(project_queue.most, %(length)s) AS most,
        (SELECT count(*) FROM run
         WHERE run.project_id = project.id AND status = 'waiting' AND waits_for <> '') AS waiting,
        COALESCE((SELECT extract(epoch FROM clock_timestamp() - min(available_at)) FROM run
                  WHERE run.project_id = project.id AND {_DUE}), 0)::float8 AS oldest
    FROM project LEFT JOIN project_queue ON project_queue.project_id = project.id
    WHERE project.id = ANY(%(projects)s::uuid[])
) AS turns
ORDER BY turns.oldest DESC, turns.name LIMIT %(most)s
"""
