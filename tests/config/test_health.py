"""Probes: what `/healthz` and `/readyz` answer."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings

from config.services.valkey import Valkey


def test_healthz_asks_nothing_but_the_process(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_says_ok_when_all_parts_answer(client: Client, valkey_server: Valkey) -> None:
    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "database": "ok",
        "broker": "ok",
        "migrations": "ok",
    }


@pytest.mark.django_db
def test_readyz_names_the_part_that_is_down(client: Client) -> None:
    with override_settings(REDIS_URL="unix:///nowhere/valkey.sock"):
        answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["broker"] == "unavailable"
    assert "nowhere" not in answer.content.decode()
