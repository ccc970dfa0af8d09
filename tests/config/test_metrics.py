"""/metrics: figures for a scraper, nothing for anybody else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runtime_core.models import Project, ProjectQueue, Quota
from runtime_core.scheduling import queue, quotas


@pytest.mark.django_db
def test_a_scraper_with_the_token_reads_the_figures(client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "scrape-me"

    answer = client.get("/metrics", headers={"authorization": "Bearer scrape-me"})

    assert answer.status_code == 200
    assert "interlock_interrupts_open 0.0" in answer.text
    page = Path(settings.BASE_DIR, "docs/operations.md").read_text()
    for name in re.findall(r"^# TYPE (\S+)", answer.text, re.M):
        assert f"`{name}" in page, f"{name} is explained nowhere"


@pytest.mark.django_db
def test_queues_quotas_and_lost_runs_have_their_figures(client: Client, settings: Any) -> None:
    settings.METRICS_TOKEN = "scrape-me"
    project = Project.objects.create(slug="p", name="P")
    ProjectQueue.objects.create(project=project, queued=3)
    queue.count_reaped([project.id, project.id])
    queue.count_reaped([Project.objects.create(slug="q", name="Q").id])
    quota = Quota.objects.create(kind="tool", key="charge", name="charge", at_once=2)
    quotas.apply(quota)

    text = client.get("/metrics", headers={"authorization": "Bearer scrape-me"}).text

    assert 'interlock_queue_depth{project="p"} 3.0' in text
    assert 'interlock_runs_reaped_total{project="p"} 2.0' in text
    assert 'interlock_runs_reaped_total{project="q"} 1.0' in text
    assert 'interlock_permits{key="charge",kind="tool"} 2.0' in text
    assert 'interlock_permits_in_use{key="charge",kind="tool"} 0.0' in text


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
