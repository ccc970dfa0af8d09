"""Policies in the admin: an edit is a new version on the record, and nonsense is refused by its field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from approvals.models import ApprovalPolicy, ApproverGroup
from approvals.policy.steps import problems_of
from tests.approvals.world import World, audited

ADDRESS = "/admin/approvals/approvalpolicy/"
STEP = {"after_minutes": 30, "action": "notify", "roles": ["admin"]}


@pytest.fixture
def root(world: World) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


def filled(**fields: Any) -> dict[str, Any]:
    """The form as an admin sends it."""
    return {
        "name": "Refunds",
        "conditions": "{}",
        "required": "1",
        "expires_minutes": "60",
        "on_expiry": "reject",
        "escalation": "[]",
        "undo_seconds": "5",
        **fields,
    }


def test_an_edit_makes_the_next_version_and_is_on_the_record(root: Client, world: World) -> None:
    group = ApproverGroup.objects.create(project=world.project, name="finance")
    form = filled(
        project=world.project.id,
        tool="issue_refund",
        groups=[str(group.id)],
        people=[world.approver.pk],
        roles=["admin"],
        escalation=json.dumps([{**STEP, "people": ["approver2"], "groups": ["finance"]}]),
    )
    assert root.post(f"{ADDRESS}add/", form).status_code == 302
    first = ApprovalPolicy.objects.get()
    assert (first.groups, first.people, first.roles) == (
        [str(group.id)], [world.approver.pk], ["admin"],
    )  # fmt: skip
    page = root.get(f"{ADDRESS}{first.pk}/change/").content.decode()
    assert f'<option value="{group.id}" selected' in page
    assert f'<option value="{world.approver.pk}" selected' in page

    root.post(f"{ADDRESS}{first.pk}/change/", form)
    assert ApprovalPolicy.objects.count() == 1  # nothing was changed
    root.post(f"{ADDRESS}{first.pk}/change/", {**form, "required": "2"})

    second = ApprovalPolicy.objects.get(superseded_at=None)
    assert (second.lineage, second.number, second.required) == (first.lineage, 2, 2)
    first.refresh_from_db()
    assert (first.required, first.superseded_at is None) == (1, False)
    assert (
        root.get(f"{ADDRESS}{first.pk}/change/").status_code == 302
    )  # a superseded one is not there
    entries = audited("policy.changed")
    assert [(e["version"], e["actor"]) for e in entries] == [(1, "root"), (2, "root")]
    assert (entries[1]["before"]["required"], entries[1]["after"]["required"]) == (1, 2)

    root.post(ADDRESS, {"action": "retire", "_selected_action": [str(second.pk)]})
    third = ApprovalPolicy.objects.get(superseded_at=None)
    assert (third.number, third.retired) == (3, True)
    assert root.post(f"{ADDRESS}{third.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("conditions", '{"amount": {"above": 3}}'),
        ("conditions", '{"amount": 3}'),
        ("required", "0"),
        ("required", "10"),
        ("expires_minutes", "0"),
        ("undo_seconds", "121"),
        ("risk", "enormous"),
        ("escalation", '[{"after_minutes": 90, "action": "notify", "roles": ["admin"]}]'),
        ("escalation", '[{"after_minutes": 5, "action": "notify", "people": ["nobody"]}]'),
        ("escalation", '[{"after_minutes": 5, "action": "widen", "groups": ["none"]}]'),
    ],
)
def test_what_cannot_be_followed_is_refused_beside_its_field(
    root: Client, field: str, value: str
) -> None:
    answer = root.post(f"{ADDRESS}add/", filled(**{field: value}))

    assert answer.status_code == 200
    assert set(answer.context["adminform"].form.errors) == {field}
    assert not ApprovalPolicy.objects.exists()


def test_people_who_could_never_be_enough_and_groups_of_others_are_refused(
    root: Client, world: World
) -> None:
    group = ApproverGroup.objects.create(project=world.project, name="finance")
    few = filled(required="2", people=[world.approver.pk])
    elsewhere = filled(project=type(world.project).objects.create(slug="x", name="X").id,
                       groups=[str(group.id)])  # fmt: skip

    for form, field in ((few, "people"), (elsewhere, "groups")):
        errors = root.post(f"{ADDRESS}add/", form).context["adminform"].form.errors
        assert set(errors) == {field}


def test_who_comes_into_a_group_is_on_the_record(root: Client, world: World) -> None:
    form = {"project": world.project.id, "name": "finance", "members": [world.viewer.pk]}

    root.post("/admin/approvals/approvergroup/add/", form)

    assert list(ApproverGroup.objects.get().members.all()) == [world.viewer]
    changes = [e["after"] for e in audited("permission.changed")]
    assert {"members": [world.viewer.pk]} in changes


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ({}, "Give a list"),
        ([STEP] * 6, "At most 5"),
        (["notify"], "Step 1: write"),
        ([{**STEP, "when": 3}], "'when' is not one of"),
        ([{**STEP, "after_minutes": True}], "whole number"),
        ([{**STEP, "after_minutes": 60}], "whole number below the expiry"),
        ([{**STEP, "action": "shout"}], "action must be one of"),
        ([{**STEP, "roles": ["boss"]}], "'boss' is not a role"),
        ([{**STEP, "roles": "admin"}], "lists of names"),
        ([{**STEP, "roles": []}], "name roles, groups or people"),
        ([STEP, STEP], "later than the one before"),
    ],
)
def test_steps_that_cannot_be_followed_are_named(steps: Any, problem: str) -> None:
    assert any(problem in found for found in problems_of(steps, 60))
    assert problems_of([STEP, {**STEP, "after_minutes": 45, "action": "raise"}], 60) == []
