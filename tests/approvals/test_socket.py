"""The inbox's socket: each person hears of what waits for them, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from approvals.teamwork.presence import place_of
from runtime_core.events.publish import announce
from runtime_core.models import ApiToken, Interrupt, Project
from tests.approvals.world import World
from tests.conftest import environment
from tests.live.web import Web


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[Web]:
    web = Web(environment())
    yield web
    web.stop()


@pytest.fixture
def world(transactional_db: None) -> World:
    return World()


def listen(web: Web, user: Any) -> ClientConnection:
    client = Client()
    client.force_login(user)
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    return web.socket("/ws/inbox/", headers={"Cookie": cookie, "Origin": web.origin})


def told(socket: ClientConnection) -> tuple[int, list[str]]:
    """The next count and ids."""
    while True:
        frame = json.loads(socket.recv(10))
        if frame["type"] == "inbox":
            return frame["open"], frame["ids"]


def tell(interrupt: Interrupt) -> None:
    announce(interrupt.run_id, 1, interrupt.project_id, inbox=True)


def test_it_greets_with_the_servers_time_then_tells_what_waits(world: World, web: Web) -> None:
    interrupt = world.ask()

    with listen(web, world.approver) as socket:
        hello = json.loads(socket.recv(10))
        assert (hello["type"], set(hello)) == ("hello", {"type", "server_time"})
        assert told(socket) == (1, [str(interrupt.id)])


def test_a4_only_those_who_may_decide_hear_of_a_request(world: World, web: Web) -> None:
    own = world.ask(run=world.run(by=world.approver), risk="high")

    with (
        listen(web, world.approver) as requester,
        listen(web, world.approver2) as other,
        listen(web, world.viewer) as viewer,
        listen(web, world.stranger) as stranger,
    ):
        assert told(requester) == (0, [])
        assert told(other) == (1, [str(own.id)])
        assert told(viewer) == (0, [])
        assert told(stranger) == (0, [])


def test_j2_who_leaves_the_project_hears_nothing_of_it_any_more(world: World, web: Web) -> None:
    first = world.ask()

    with listen(web, world.approver) as socket:
        assert told(socket) == (1, [str(first.id)])
        world.approver.memberships.all().delete()
        tell(world.ask())

        assert told(socket) == (0, [])


def test_j2_a_switched_off_account_is_hung_up_on(world: World, web: Web) -> None:
    with listen(web, world.approver) as socket:
        assert told(socket) == (0, [])
        world.approver.is_active = False
        world.approver.save()

        with pytest.raises(ConnectionClosed):
            told(socket)
        assert socket.close_code == 4401


def looking(socket: ClientConnection) -> list[dict[str, str]]:
    """Who is where by the next frame that says so."""
    while True:
        frame = json.loads(socket.recv(10))
        if frame["type"] == "presence":
            return frame["looking"]


def test_only_the_projects_people_see_who_looks_and_nonsense_counts_for_nothing(
    world: World, web: Web
) -> None:
    interrupt = world.ask()
    said = {"type": "looking", "id": str(interrupt.id), "mode": "editing"}

    with listen(web, world.approver) as mine, listen(web, world.viewer) as other:
        with listen(web, world.stranger) as stranger:
            assert told(stranger) == (0, [])
            assert told(mine)[0] == 1
            for nonsense in ("{", "[]", json.dumps({**said, "mode": "x"}), "x" * 5_000):
                mine.send(nonsense)
            stranger.send(json.dumps(said))
            wait_out(mine)
            mine.send(json.dumps(said))

            seen = [{"id": str(interrupt.id), "who": "approver", "mode": "editing"}]
            assert looking(other) == seen
            # The next that the stranger hears of is their own membership, then the very same.
            world.project.memberships.create(user=world.stranger, role="viewer")
            assert looking(stranger) == seen
        mine.close()
        assert looking(other) == []


def wait_out(socket: ClientConnection) -> None:
    """Until what was sent before has been read: the server answers a ping in order."""
    assert socket.ping().wait(10)


def test_a_token_of_one_project_neither_hears_of_another_nor_is_seen_there(
    world: World, web: Web
) -> None:
    interrupt = world.ask()
    other = Project.objects.create(slug="other", name="Other")
    other.memberships.create(user=world.approver, role="approver")
    said = json.dumps({"type": "looking", "id": str(interrupt.id), "mode": "editing"})

    with web.socket("/ws/inbox/", ApiToken.issue(world.approver, other)[1]) as socket:
        assert told(socket) == (0, [])
    with web.socket("/ws/inbox/", ApiToken.issue(world.approver, world.project)[1]) as socket:
        assert told(socket) == (1, [str(interrupt.id)])
    assert place_of(world.approver, said, world.project.id) is not None
    assert place_of(world.approver, said, other.id) is None
