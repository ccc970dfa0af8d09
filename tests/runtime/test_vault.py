"""Raw texts are sealed in the database, open only in their own row, and follow the keys."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from runtime_core import commands, resealing, vault
from runtime_core.errors import SealBroken
from runtime_core.models import AgentVersion, Message, ToolCall
from tests.runtime.test_steps import PAY
from tests.runtime.world import World, actor, calls, decide_on, drive, fresh, open_interrupts

pytestmark = pytest.mark.django_db(transaction=True)

RAW = ("message.body", "tool_call.args_text", "tool_call.result_text", "checkpoint.state",
       "agent_version.definition")  # fmt: skip
NEW_KEY = "a-new-data-key-that-is-long-enough-for-it"


@pytest.fixture
def data_keys(settings: Any) -> Iterator[Any]:
    before = settings.SECRET_KEY
    yield settings
    under(settings, secret_key=before)


def under(settings: Any, *data_keys: str, secret_key: str = "") -> None:
    settings.INTERLOCK_DATA_KEYS = list(data_keys)
    if secret_key:
        settings.SECRET_KEY = secret_key
    vault.forget_keys()


@pytest.mark.parametrize("text", ["", "short", "ü\u2400" * 40, "long " * 1_000, "\ud800"])
def test_what_is_sealed_opens_and_shows_nothing(text: str) -> None:
    sealed = vault.seal(text, "tool_call/1/args_text")
    assert vault.open(sealed, "tool_call/1/args_text") == text
    assert not text or text.encode("utf-8", "surrogatepass") not in sealed
    assert vault.seal(text, "tool_call/1/args_text") != sealed
    assert len(sealed) < len(text.encode("utf-8", "surrogatepass")) + 60


def test_any_changed_byte_and_any_other_place_is_refused() -> None:
    sealed = vault.seal("pay 5 to A" * 300, "message/r/1/body")
    for n in (*range(60), len(sealed) - 1):
        broken = sealed[:n] + bytes([sealed[n] ^ 1]) + sealed[n + 1 :]
        with pytest.raises(SealBroken):
            vault.open(broken, "message/r/1/body")
    for context in ("message/r/2/body", "message/q/1/body", "tool_call/r/1/body"):
        with pytest.raises(SealBroken):
            vault.open(sealed, context)
    for cut in (b"", sealed[:10], sealed[:50], b"\x00plain text" * 20):
        with pytest.raises(SealBroken):
            vault.open(cut, "message/r/1/body")


def test_every_raw_column_is_sealed_and_rows_read_as_before(world: World) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    assert drive(run).status == "completed"

    columns = {str(column): column for column in resealing.columns()}
    for name in RAW:
        assert set(resealing.counts(columns[name])) == {vault.ring()[0].id}, name
    [call] = calls(run)
    assert "text" in call.args_text and call.result_text
    with pytest.raises(TypeError, match="sealed by its row"):
        ToolCall.objects.filter(run=run).update(args_text="plain")


def test_a_rotation_brings_everything_under_the_new_key(world: World, data_keys: Any) -> None:
    run = drive(world.start(PAY))
    old_secret = data_keys.SECRET_KEY
    under(data_keys, NEW_KEY)
    decide_on(open_interrupts(run)[0], world.bob)  # written under the new key, read under both
    assert drive(run).status == "completed"

    said = io.StringIO()
    call_command("vault", "rotate", stdout=said)
    assert "message.body: " in said.getvalue()
    first = vault.ring()[0].id
    assert all(set(resealing.counts(column)) <= {first} for column in resealing.columns())
    under(data_keys, NEW_KEY, secret_key="another-secret-key-that-never-sealed-anything")
    assert all(message.body for message in Message.objects.all())
    again = io.StringIO()
    call_command("vault", "rotate", stdout=again)
    assert "message.body: " not in again.getvalue(), "nothing is left to do"

    under(data_keys, secret_key=old_secret)
    with pytest.raises(CommandError, match="cannot be opened with the keys given"):
        call_command("vault", "status", stdout=io.StringIO())


def test_a_run_whose_key_is_gone_stops_where_a_person_sees_it(world: World, data_keys: Any) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    before = data_keys.SECRET_KEY
    under(data_keys, secret_key="another-secret-key-that-never-sealed-anything")
    run = drive(run)
    assert (run.status, run.error and run.error["code"]) == ("paused", "state_unusable")
    assert "INTERLOCK_DATA_KEYS" in (run.error or {})["message"]
    assert Message.objects.filter(run=run).count() == 2, "nothing was begun anew"

    under(data_keys, secret_key=before)
    commands.resume_run(actor(world.alice), run)
    assert drive(run).status == "completed"


def test_an_upgrade_seals_what_was_there(world: World) -> None:
    run = drive(world.start(PAY))
    decide_on(open_interrupts(run)[0], world.bob)
    plain = {message.id: message.body for message in Message.objects.all()}
    definition = AgentVersion.objects.get().definition
    unsealed = bytes([vault.UNSEALED])
    with connection.cursor() as cursor:
        for id, body in plain.items():
            cursor.execute(
                "UPDATE message SET body = %s WHERE id = %s", [unsealed + body.encode(), id]
            )
        cursor.execute(
            "UPDATE agent_version SET definition = %s || convert_to(%s, 'UTF8')",
            [unsealed, '{"a": 1}'],
        )

    migration = importlib.import_module("runtime_core.migrations.0006_seal_raw_texts")
    migration.seal(apps, None)
    migration.seal(apps, None)

    assert {message.id: message.body for message in Message.objects.all()} == plain
    version = AgentVersion.objects.get()
    assert version.definition == {"a": 1}
    version.definition = definition
    version.save()
    assert drive(fresh(run)).status == "completed"
