"""/metrics: figures for a scraper, nothing for anybody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.mark.django_db
def test_a_scraper_with_the_token_reads_the_figures(client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "scrape-me"

    answer = client.get("/metrics", headers={"authorization": "Bearer scrape-me"})

    assert answer.status_code == 200
    assert "interlock_interrupts_open 0.0" in answer.text
    assert "interlock_queue_oldest_seconds" in answer.text


@pytest.mark.django_db
def test_it_is_not_there_for_anybody_else(client: Client, settings: Any) -> None:
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404
    settings.METRICS_TOKEN = "scrape-me"
    assert client.get("/metrics", headers={"authorization": "Bearer other"}).status_code == 404
    client.force_login(User.objects.create_user("somebody"))
    assert client.get("/metrics").status_code == 404


@pytest.mark.django_db
def test_a_superuser_reads_it_in_the_browser(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert client.get("/metrics").status_code == 200
