"""What is not deleted, and why; and a person's data as a whole."""

from __future__ import annotations

import io

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from approvals.models import Decision
from runtime_core import commands
from runtime_core.errors import Held, InvalidInput, NotEnded, NotFound
from runtime_core.ids import new_id
from runtime_core.models import ApiToken, Checkpoint, Membership, Run, Thread
from runtime_core.values import Actor
from tests.api.room import Api
from tests.deletion.test_plan import targets
from tests.deletion.test_run import CANARY, delete, manager, told
from tests.deletion.traces_left import where
from tests.runtime.world import World, actor, drive, together
from traces import holds
from traces.deletion.person import delete_person
from traces.deletion.plan import OF_PERSON, STAYS_OF_PERSON
from traces.deletion.purge import purge_due
from traces.deletion.requests import delete_run
from traces.models import AuditEntry, DeletionRequest, LegalHold

pytestmark = pytest.mark.timeout(180)
ROOT = Actor(None, "root", via="command")


def test_what_goes_on_or_is_held_stays_and_is_said(world: World) -> None:
    dora = manager(world)
    api = Api(dora)
    run = told(world)
    going = world.start([{"text": "Later."}], thread_id=run.thread_id)

    status, answer = delete(api, f"/runs/{run.id}")
    assert (status, answer["code"], answer["run_id"]) == (409, "not_ended", str(going.id))
    assert Api(dora).get(f"/runs/{run.id}")[0] == 200
    commands.cancel_run(actor(world.alice), going)

    for kind, object_id in (
        ("run", run.id),
        ("thread", run.thread_id),
        ("user", world.alice.pk),
        ("project", world.project.id),
    ):
        hold = LegalHold(kind=kind, object_id=str(object_id), reason="a lawsuit")
        holds.put(hold, actor(dora), world.project.id)
        for path in (f"/runs/{run.id}", f"/threads/{run.thread_id}"):
            status, answer = delete(api, path)
            assert (status, answer["code"]) == (409, "held"), kind
        assert holds.release(hold, actor(dora), world.project.id)
    assert delete(api, f"/runs/{new_id()}")[0] == 404
    assert delete(api, f"/threads/{new_id()}")[0] == 404

    # Held between asking and deleting: hidden, and not one row goes until the hold is released.
    asked = delete_run(ROOT, run.id)
    hold = LegalHold(kind="run", object_id=str(run.id), reason="a lawsuit")
    holds.put(hold, actor(dora), world.project.id)
    purge_due()
    assert Run.everything.filter(id=run.id).exists()
    holds.release(hold, actor(dora), world.project.id)
    purge_due()
    asked.refresh_from_db()
    assert (asked.state, Run.everything.filter(id=run.id).exists()) == ("done", False)
    assert api.get(f"/deletions/{asked.id}")[1]["receipt"] == asked.receipt
    assert Api(world.alice).get(f"/deletions/{asked.id}")[0] == 403
    assert Api(world.carol).get(f"/deletions/{asked.id}")[0] == 404


@pytest.mark.race
def test_a_fork_and_a_deletion_at_once_leave_nothing_behind(world: World) -> None:
    for _ in range(3):
        run = drive(world.start([{"text": "Short."}]))
        point = Checkpoint.objects.filter(run=run).latest("id")
        outcomes = together(
            lambda run=run, point=point: commands.fork_run(actor(world.alice), run, point.id, {}),
            lambda run=run: delete_run(ROOT, run.id),
            lambda run=run: world.run_of(run.agent.name, thread_id=run.thread_id),
        )
        assert all(isinstance(one, Run | DeletionRequest | NotFound | NotEnded) for one in outcomes)
        purge_due()
        left = Run.everything.filter(id=run.id).exists()
        assert left == isinstance(outcomes[1], NotEnded), outcomes
        if not left:
            assert not Run.everything.filter(thread=run.thread_id).exists()
            assert isinstance(outcomes[0], NotFound)


def test_a_person_goes_with_what_is_theirs_and_what_they_decided_stays(world: World) -> None:
    mine, other = told(world), told(world, "marigold")
    root = User.objects.create_superuser("root", password="pw")
    Run.everything.filter(id=other.id).update(created_by=world.victor)
    Thread.everything.filter(id=other.thread_id).update(created_by=world.victor)
    User.objects.filter(pk=world.alice.pk).update(email="alice@example.org", first_name="Alicia")
    ApiToken.issue(world.alice, None)
    browser = Client()
    browser.force_login(world.alice)
    with pytest.raises(InvalidInput):
        delete_person(Actor(root.pk, "root"), root.pk)
    with pytest.raises(CommandError, match="no such person"):
        call_command("data", "delete", "user", "999999999")

    out = io.StringIO()
    call_command("data", "delete", "user", str(world.alice.pk), stdout=out)

    assert "receipt" in out.getvalue()
    assert not Run.everything.filter(id=mine.id).exists()
    assert Run.objects.filter(id=other.id).exists()
    person = User.objects.get(pk=world.alice.pk)
    assert (person.username, person.email, person.is_active) == (f"deleted-{person.pk}", "", False)
    assert browser.get("/").status_code == 302
    assert not ApiToken.objects.filter(user=person).exists()
    assert not Membership.objects.filter(user=person).exists()
    assert where([CANARY, "alicia", "alice@example"]).keys() <= {"agent_version"}
    assert Decision.objects.filter(actor=world.bob).exists()
    with pytest.raises(Held):
        LegalHold.objects.create(kind="user", object_id=str(world.bob.pk), reason="a lawsuit")
        delete_person(ROOT, world.bob.pk)
    assert AuditEntry.objects.filter(action="data.deleted", object_type="user").count() == 1


def test_the_page_asks_first_and_deletes_for_those_who_manage(world: World) -> None:
    run = told(world)
    dora = manager(world)
    path = f"/runs/{run.id}/delete/"
    found = {}
    for user in (world.carol, world.alice, dora):
        client = Client()
        client.force_login(user)
        found[user.pk] = client.get(path).status_code, client.post(path).status_code
    assert found == {world.carol.pk: (404, 404), world.alice.pk: (403, 403), dora.pk: (200, 302)}
    assert client.get(f"/runs/{run.id}/").status_code == 404


def test_every_table_that_names_people_says_what_becomes_of_them() -> None:
    listed = {rows.model for rows in OF_PERSON} | STAYS_OF_PERSON
    for model in apps.get_models():
        if "auth.User" in targets(model) and model._meta.app_label != "auth":
            assert model._meta.label in listed, f"{model._meta.label}: say so in plan.py"
    assert not {rows.model for rows in OF_PERSON} & STAYS_OF_PERSON
