"""One process of a race: waits for the shot, decides many times at once, prints what came of it.

    python -m tests.approvals.racer INTERRUPT VERSION DIGEST START_AT USER:ACTION ...

START_AT is in seconds of the epoch. Prints one JSON list of [user, action, outcome].
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid

import django


def main(interrupt: str, version: str, digest: str, start_at: str, *racers: str) -> None:
    django.setup()
    from django.db import connection

    outcomes: list[tuple[str, str, str]] = []
    opinions = [one.split(":") for one in racers]
    threads = [
        threading.Thread(
            target=race,
            args=(
                uuid.UUID(interrupt),
                int(version),
                digest,
                float(start_at),
                user,
                action,
                outcomes,
            ),
        )
        for user, action in opinions
    ]
    connection.close()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps(outcomes))


def race(
    interrupt_id: uuid.UUID,
    version: int,
    digest: str,
    start_at: float,
    name: str,
    action: str,
    outcomes: list[tuple[str, str, str]],
) -> None:
    """Decide at the starting shot over a connection that is open already."""
    from django.contrib.auth import get_user_model
    from django.db import connection

    from approvals.commands import Opinion, decide
    from runtime_core.errors import InterlockError
    from runtime_core.values import Actor

    user = get_user_model().objects.get(username=name)
    opinion = Opinion(
        action,
        version,
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
