"""Runs: the list, the form that starts one, the page that follows one, the forms that steer it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runtime_core import clock
from runtime_core.ids import new_id
from runtime_core.models import ProjectQueue, Run, Worker
from runtime_core.scheduling import queue
from tests.pages.world import World

Login = Callable[[Any], Client]


def form_of(page: bytes) -> dict[str, str]:
    key = re.search(rb'name="key" value="([^"]+)"', page)
    assert key
    return {"key": key[1].decode()}


def test_it_starts_a_run_and_shows_it(world: World, as_user: Login) -> None:
    client = as_user(world.operator)
    data = form_of(client.get("/runs/new/?agent=code-fixer").content)
    data |= {"agent": str(world.agent.id), "input": "Mend it.\r\nPlease.", "max_steps": "7",
             "max_cost_usd": "0.5", "deadline_min": "2"}  # fmt: skip

    answer = client.post("/runs/new/", data, follow=True)

    run = Run.objects.get()
    assert answer.redirect_chain == [(f"/runs/{run.id}/", 302)]
    assert (run.input, run.created_by) == ("Mend it.\nPlease.", world.operator)
    assert (run.max_steps, run.max_cost_microusd, run.deadline_s) == (7, 500_000, 120)
    assert b"Queued" in answer.content


def test_the_same_form_sent_twice_starts_one_run(world: World, as_user: Login) -> None:
    client = as_user(world.operator)
    data = form_of(client.get("/runs/new/").content) | {"agent": str(world.agent.id), "input": "x"}

    first, second = client.post("/runs/new/", data), client.post("/runs/new/", data)

    assert first["Location"] == second["Location"]
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("input", "", "Say what the agent should do"),
        ("input", " \n ", "Say what the agent should do"),
        ("input", "x" * 200_001, "bytes are too many"),
        ("max_steps", "0", "greater than or equal to 1"),
        ("max_steps", "many", "Enter a whole number"),
        ("max_tokens", "-1", "greater than or equal to 1"),
        ("max_cost_usd", "NaN", "Enter a number"),
        ("deadline_min", "99999999", "less than or equal to"),
        ("agent", "0190b5a0-0000-7000-8000-000000000000", "Select a valid choice"),
        ("agent", "'; DROP TABLE run", "not"),
    ],
)
def test_errors_stand_beside_their_field_and_the_text_stays(
    world: World, as_user: Login, field: str, value: str, says: str
) -> None:
    client = as_user(world.operator)
    data = {"key": str(new_id()), "agent": str(world.agent.id), "input": "keep me", field: value}

    answer = client.post("/runs/new/", data)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert f'id="id_{field}_error"' in page
    assert says in page
    assert 'aria-invalid="true"' in page
    assert field == "input" or "keep me" in page
    assert not Run.objects.exists()


def test_an_agent_of_another_project_cannot_be_started(world: World, as_user: Login) -> None:
    other = World.__new__(World)
    other.project = type(world.project).objects.create(slug="other", name="Other")
    foreign = other.make_agent("foreign")
    client = as_user(world.operator)

    data = {"key": str(new_id()), "agent": str(foreign.id), "input": "x"}

    assert client.post("/runs/new/", data).status_code == 422
    assert b"foreign" not in client.get("/runs/new/").content
    assert not Run.objects.exists()


def test_it_filters_and_pages_by_address(
    world: World, as_user: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(55):
        world.run("completed", title=f"Run number {number}")
    world.run("failed", title="The broken one")
    client = as_user(world.viewer)

    first = client.get("/runs/").content.decode()
    after = re.search(r'href="(\?cursor=[^"]+)" rel="next"', first)
    assert after
    second = client.get("/runs/" + after[1]).content.decode()
    failed = client.get("/runs/?status=failed").content.decode()

    assert first.count("data-key-row") == 50
    assert second.count("data-key-row") == 6
    assert "The broken one" in failed
    assert "Run number" not in failed
    assert "No results" in client.get("/runs/?status=paused").content.decode()
    assert client.get("/runs/?status=nonsense&agent=%00").status_code == 200
    assert client.get("/runs/?cursor=nonsense").status_code == 422


def test_the_run_page_shows_where_the_run_is(world: World, as_user: Login) -> None:
    run = world.run("interrupted", last_seq=0)
    world.step(run, 0)
    world.call(run)
    one = world.ask(run)
    world.event(run, "run_status", {"from": "pending", "to": "running", "cause": "claim"})
    world.event(run, "step_start", {"kind": "model", "index": 0}, 0)
    for offset, text in ((0, "I look "), (7, "at it"), (12, ".")):
        world.event(run, "text_delta", {"step": 0, "offset": offset, "text": text}, 0)
    world.event(
        run, "interrupt", {"id": str(one.id), "kind": "tool_approval", "tool": "write_file"}
    )

    page = as_user(world.operator).get(f"/runs/{run.id}/").content.decode()

    assert "Waiting for approval" in page
    assert f'data-live-run="{run.id}" data-after="6"' in page
    assert f'href="/inbox/{one.id}/"' in page
    assert 'data-step="0" data-offset="13"' in page
    assert ">I look at it.</div>" in page
    assert page.count('data-seq="') == 4  # the three pieces of text are one line
    assert 'data-open-dialog="cancel-dialog"' in page
    assert 'data-open-dialog="pause-dialog"' not in page


def test_it_pages_back_through_the_events(world: World, as_user: Login) -> None:
    run = world.run()
    for number in range(350):
        world.event(run, "progress", {"message": f"at number {number:03}"})
    client = as_user(world.viewer)

    page = client.get(f"/runs/{run.id}/").content.decode()
    earlier = client.get(f"/runs/{run.id}/?before=51").content.decode()

    assert "at number 349" in page
    assert "at number 049" not in page
    assert f'href="/runs/{run.id}/?before=51"' in page
    assert "at number 049" in earlier
    assert "data-live-run" not in earlier
    assert client.get(f"/runs/{run.id}/?before=x").status_code == 422


def test_a_finished_run_shows_its_answer_and_offers_nothing_but_what_helps(
    world: World, as_user: Login
) -> None:
    done = world.run("completed", output="All **good** <b>now</b>")
    broken = world.run("failed", error={"code": "model_unavailable", "message": "No answer."})
    client = as_user(world.operator)

    page = client.get(f"/runs/{done.id}/").content.decode()
    failed = client.get(f"/runs/{broken.id}/").content.decode()

    assert "All <strong>good</strong> &lt;b&gt;now&lt;/b&gt;" in page
    assert 'href="/runs/' + str(done.id) + '/cancel/"' not in page
    assert "No answer." in failed
    assert 'data-open-dialog="retry-dialog"' in failed


def test_the_forms_steer_the_run_and_work_without_javascript(world: World, as_user: Login) -> None:
    run = world.run("pending", started_at=None)
    client = as_user(world.operator)

    assert b"Stays done" in client.get(f"/runs/{run.id}/cancel/").content
    client.post(f"/runs/{run.id}/pause/")
    assert Run.objects.get(id=run.id).status == "paused"
    client.post(f"/runs/{run.id}/resume/", {"max_steps": "60"})
    assert Run.objects.values_list("status", "max_steps").get(id=run.id) == ("pending", 60)
    client.post(f"/runs/{run.id}/cancel/")
    assert Run.objects.get(id=run.id).status == "cancelled"


def test_what_the_state_does_not_allow_is_said_on_the_page(world: World, as_user: Login) -> None:
    run = world.run("completed")

    answer = as_user(world.operator).post(f"/runs/{run.id}/cancel/", follow=True)

    assert answer.status_code == 200
    assert b"Nothing was done: The run has ended already" in answer.content


def test_a_top_up_that_is_no_number_comes_back_with_its_error(world: World, as_user: Login) -> None:
    run = world.run("paused")

    answer = as_user(world.operator).post(f"/runs/{run.id}/resume/", {"max_tokens": "lots"})

    assert answer.status_code == 422
    assert b"id_max_tokens_error" in answer.content


def test_a_get_never_steers(world: World, as_user: Login) -> None:
    run = world.run("pending")
    client = as_user(world.operator)

    for step in ("cancel", "force-stop", "pause", "resume", "retry"):
        client.get(f"/runs/{run.id}/{step}/")

    assert Run.objects.get(id=run.id).status == "pending"


def test_the_runs_that_work_for_a_run_are_linked_both_ways_and_named_before_a_cancel(
    world: World, as_user: Login
) -> None:
    parent = world.run("waiting")
    child = world.run(
        "pending", title="Part of it", parent=parent, parent_call=new_id(), path=[["lead", "c1"]]
    )
    fork = world.run("pending", title="A fork of it", parent=parent)
    client = as_user(world.operator)

    page = client.get(f"/runs/{parent.id}/").content.decode()
    of_child = client.get(f"/runs/{child.id}/").content.decode()

    assert f'href="/runs/{child.id}/"' in page and "Runs that work for it" in page
    assert "1 run that works for it" in page
    assert f'href="/runs/{fork.id}/"' not in page
    assert "Works for" in of_child and f'href="/runs/{parent.id}/"' in of_child
    assert "Forked from" in client.get(f"/runs/{fork.id}/").content.decode()


def test_force_stop_is_offered_only_for_what_has_not_stopped_for_long(
    world: World, as_user: Login
) -> None:
    asked = [clock.now() - dt.timedelta(seconds=seconds) for seconds in (2, 12)]
    just, long_ago = (world.run("running", cancel_requested_at=at) for at in asked)
    client = as_user(world.operator)

    assert b"force-stop/" not in client.get(f"/runs/{just.id}/").content.split(b"<dialog")[0]
    page = client.get(f"/runs/{long_ago.id}/").content.split(b"<dialog")[0]
    assert b"force-stop/" in page and b"Cancelling" in page
    assert b"Force stop" in client.get(f"/runs/{long_ago.id}/force-stop/").content


def test_a_queued_run_says_how_many_are_ahead_and_why_it_waits(
    world: World, as_user: Login
) -> None:
    operator = as_user(world.operator)
    world.run("pending")
    run = world.run("pending")
    page = operator.get(f"/runs/{run.id}/").content.decode()
    assert "1 ahead, no worker is running" in page
    assert "1 ahead, no worker is running" in operator.get("/runs/").content.decode()
    Worker.objects.create(name="w", slots=1)
    page = operator.get(f"/runs/{run.id}/").content.decode()
    assert "1 ahead" in page and "no worker" not in page


def test_a_full_queue_refuses_the_form_and_says_when_to_come_back(
    world: World, as_user: Login
) -> None:
    ProjectQueue.objects.create(project=world.project, most=1)
    world.run("pending")
    queue.count()
    client = as_user(world.operator)
    data = form_of(client.get("/runs/new/?agent=code-fixer").content)
    data |= {"agent": str(world.agent.id), "input": "One more"}

    answer = client.post("/runs/new/", data)

    assert answer.status_code == 429, answer.content.decode()[-2500:]
    assert answer["Retry-After"] == "5"
    assert "queue is full: 1 of 1 runs wait" in answer.content.decode()
    assert "One more" in answer.content.decode(), "what was typed is kept"
    assert Run.objects.count() == 1
