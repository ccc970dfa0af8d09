"""A person's own settings: kept in this browser, read by the server, and a way to end one's own tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.test import Client

from runtime_core.ids import new_id
from runtime_core.models import ApiToken
from tests.approvals.world import audited
from tests.pages.world import World

AsUser = Callable[[Any], Client]


def theme_of(client: Client) -> str | None:
    found = re.search(r'<html[^>]* data-theme="(\w+)"', client.get("/").content.decode())
    return found and found[1]


def test_choices_hold_from_the_next_page_on_without_javascript(
    world: World, as_user: AsUser
) -> None:
    client = as_user(world.viewer)
    assert theme_of(client) is None

    answer = client.post("/settings/", {"theme": "dark", "keys": "off", "zone": "utc"}, follow=True)

    page = answer.content.decode()
    assert re.findall(r'value="(\w+)" checked', page) == ["dark", "off", "utc"]
    assert theme_of(client) == "dark"


def test_what_is_not_a_choice_changes_nothing(world: World, as_user: AsUser) -> None:
    client = as_user(world.viewer)
    client.post("/settings/", {"theme": '"><script>', "keys": "", "zone": "mars"})
    assert not [name for name in client.cookies if name.startswith("interlock_")]

    client.cookies["interlock_theme"] = "neon"
    assert theme_of(client) is None


def test_settings_are_for_those_who_are_signed_in() -> None:
    assert Client().get("/settings/").headers["Location"] == "/login/?next=/settings/"


def test_a_person_ends_a_token_of_their_own_and_it_is_audited(
    world: World, as_user: AsUser
) -> None:
    token, text = ApiToken.issue(world.operator, name="laptop")
    caller = Client(headers={"Authorization": f"Bearer {text}"})
    assert caller.get("/api/v1/runs").status_code == 200

    client = as_user(world.operator)
    assert "laptop" in client.get("/settings/").content.decode()
    answer = client.post("/settings/", {"token": str(token.id)}, follow=True)

    assert "no longer lets anybody in" in answer.content.decode()
    assert caller.get("/api/v1/runs").status_code == 401
    assert [(one["actor"], one["object"]) for one in audited("token.revoked")] == [
        ("ana", str(token.id))
    ]


def test_nobody_ends_the_token_of_somebody_else(world: World, as_user: AsUser) -> None:
    token, _ = ApiToken.issue(world.operator, name="laptop")
    client = as_user(world.viewer)
    assert "laptop" not in client.get("/settings/").content.decode()

    for wanted in (str(token.id), str(new_id()), "nonsense"):
        answer = client.post("/settings/", {"token": wanted}, follow=True)
        assert "there is no such token of yours" in answer.content.decode()

    token.refresh_from_db()
    assert token.revoked_at is None
    assert audited("token.revoked") == []
