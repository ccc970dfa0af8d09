"""`manage.py token create`."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from runtime_core.models import ApiToken
from tests.api.room import Room, project
from traces.models import AuditEntry


def create(*options: str) -> str:
    out = io.StringIO()
    call_command("token", "create", *options, stdout=out)
    return out.getvalue()


def test_it_prints_the_token_alone_and_keeps_its_hash(room: Room) -> None:
    text = create("--user", room.ana.username)

    token = ApiToken.objects.get(user=room.ana)
    assert text == text.strip() + "\n"
    assert token.digest == ApiToken.digest_of(text.strip())
    assert token.project is None


def test_it_can_be_bound_to_a_project_and_is_audited(room: Room) -> None:
    text = create("--user", room.ana.username, "--project", room.project.slug)

    assert ApiToken.objects.get(user=room.ana).project == room.project
    entry = AuditEntry.objects.get(action="token.issued")
    assert text.strip() not in str(vars(entry))


@pytest.mark.parametrize("options", [["--user", "nobody"], ["--user", "ana", "--project", "x"]])
def test_mistakes_are_one_line(room: Room, options: list[str]) -> None:
    project("x")
    options = [room.ana.username if option == "ana" else option for option in options]

    with pytest.raises(CommandError) as error:
        create(*options)

    assert "\n" not in str(error.value)
    assert not ApiToken.objects.exists()
