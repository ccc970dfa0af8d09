"""One process of a race: at each shot it decides many times at once, and says what came of it.

    python -m tests.approvals.racer USER:ACTION ...

Prints a line when it is ready. Reads a JSON line a round: `interrupt`, `digest`, `start_at` (in
seconds of the epoch). Prints a JSON line a round: a list of [user, action, outcome].
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid

import django

Outcomes = list[tuple[str, str, str]]


def main(*racers: str) -> None:
    django.setup()
    # Everything that a decision needs is loaded before the first shot.

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        given = json.loads(line)
        outcomes = start_all([tuple(one.split(":")) for one in racers], **given)
        sys.stdout.write(json.dumps(outcomes) + "\n")
        sys.stdout.flush()


def start_all(
    opinions: list[tuple[str, ...]], interrupt: str, digest: str, start_at: float
) -> Outcomes:
    """A thread for each opinion, all at the same moment; their outcomes."""
    outcomes: Outcomes = []
    shot = (uuid.UUID(interrupt), digest, start_at)
    threads = [
        threading.Thread(target=race, args=(*shot, name, action, outcomes))
        for name, action in opinions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def race(
    interrupt_id: uuid.UUID,
    digest: str,
    start_at: float,
    name: str,
    action: str,
    outcomes: Outcomes,
) -> None:
    """Decide at the shot over a connection that is open already."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from approvals.deciding.commands import Opinion, decide
    from runtime_core.errors import InterlockError
    from runtime_core.values import Actor

    user = get_user_model().objects.get(username=name)
    opinion = Opinion(
        action,
        1,
        digest,
        args={"path": "calc.py", "content": "edited\n"} if action == "edit" else None,
        response="Not now." if action == "respond" else None,
        reason="No." if action == "reject" else "",
    )
    time.sleep(max(0.0, start_at - time.time()))
    try:
        decide(Actor(user.pk, name, "api"), interrupt_id, opinion)
        outcomes.append((name, action, "won"))
    except InterlockError as error:
        outcomes.append((name, action, error.code))
    finally:
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
