"""The chain: sealed without gaps, and every way of rewriting it is found."""

# ruff: noqa: S608 (the attacks are SQL)
from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from runtime_core import clock, ports
from runtime_core.values import SYSTEM, Audit
from traces.audit import sealer
from traces.audit.anchors import append_anchor
from traces.audit.chain import GENESIS, entry_hash
from traces.audit.sealer import seal
from traces.audit.verify import verify
from traces.models import AuditEntry

pytestmark = pytest.mark.django_db
FOURTH = "(SELECT id FROM audit_entry WHERE seq = 4)"


def record(count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        ports.audit().record(
            [Audit("run.started", SYSTEM, "run", f"r{number}", data={"n": number})]
        )


def as_owner(sql: str) -> None:
    """What the tables' owner, or whoever has their password, can do in spite of the triggers."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in ("audit_entry", "audit_payload"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(sql)
        for table in ("audit_entry", "audit_payload"):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def rechain() -> None:
    """Compute everything anew, as an attacker who has read the source would."""
    as_owner("UPDATE audit_entry SET seq = seq + 1000000 WHERE seq IS NOT NULL")
    head, updates = GENESIS, []
    entries = AuditEntry.objects.exclude(seq=None).order_by("seq")
    for seq, entry in enumerate(entries, start=1):
        prev, head = head, entry_hash(entry, seq, head)
        updates.append(sealed_as(entry, seq, prev, head))
    as_owner("; ".join(updates))


def sealed_as(entry: AuditEntry, seq: int, prev: str, head: str) -> str:
    return (
        f"UPDATE audit_entry SET seq={seq}, prev_hash='{prev}', hash='{head}' WHERE id='{entry.id}'"
    )


def test_it_is_whole_when_nobody_touched_it() -> None:
    record(7)

    assert seal() == 7
    assert seal() == 0

    report = verify()
    assert (report.entries, report.tampered, report.unsealed) == (7, [], [])
    assert report.exit_status == 0
    assert report.unanchored == 0


def test_it_seals_more_than_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traces.audit.sealer.BATCH", 3)
    record(8)

    assert seal() == 8
    assert verify().exit_status == 0


def edit() -> None:
    as_owner("UPDATE audit_entry SET object_id = 'other' WHERE seq = 4")


def edit_name() -> None:
    as_owner(f"UPDATE audit_entry SET actor_name = 'somebody else' WHERE id = {FOURTH}")


def edit_payload() -> None:
    as_owner(f"UPDATE audit_payload SET body = '{{}}' WHERE entry_id = {FOURTH}")


def delete_middle() -> None:
    as_owner(
        f"DELETE FROM audit_payload WHERE entry_id = {FOURTH};DELETE FROM audit_entry WHERE seq = 4"
    )


def swap() -> None:
    as_owner("UPDATE audit_entry SET seq = 999 WHERE seq = 4")
    as_owner("UPDATE audit_entry SET seq = 4 WHERE seq = 5")
    as_owner("UPDATE audit_entry SET seq = 5 WHERE seq = 999")


def edit_and_rechain() -> None:
    edit()
    rechain()


def delete_and_rechain() -> None:
    delete_middle()
    rechain()


def truncate_tail() -> None:
    as_owner(
        "DELETE FROM audit_payload WHERE entry_id IN (SELECT id FROM audit_entry WHERE seq > 7);"
        "DELETE FROM audit_entry WHERE seq > 7"
    )


def truncate_and_append() -> None:
    truncate_tail()
    record(3, start=50)
    rechain_unsealed()


def rechain_unsealed() -> None:
    last = AuditEntry.objects.exclude(seq=None).order_by("-seq")[0]
    seq, head = last.seq or 0, last.hash
    for entry in AuditEntry.objects.filter(seq=None).order_by("id"):
        seq, prev = seq + 1, head
        head = entry_hash(entry, seq, prev)
        as_owner(sealed_as(entry, seq, prev, head))


def edit_the_newest_and_rechain() -> None:
    as_owner("UPDATE audit_entry SET object_id = 'other' WHERE seq = 10")
    rechain()


def insert_in_the_middle_and_rechain() -> None:
    record(1, start=77)
    as_owner("UPDATE audit_entry SET seq = seq + 1000000 WHERE seq > 6")
    as_owner("UPDATE audit_entry SET seq = 7, prev_hash = 'x', hash = 'x' WHERE seq IS NULL")
    rechain()


def erase_payload() -> None:
    as_owner(
        "DELETE FROM audit_payload WHERE entry_id = (SELECT id FROM audit_entry WHERE seq = 4)"
    )


@pytest.mark.parametrize(
    "attack",
    [
        edit, edit_name, edit_payload, delete_middle, swap, edit_and_rechain, delete_and_rechain,
        truncate_tail, truncate_and_append, erase_payload,
        edit_the_newest_and_rechain, insert_in_the_middle_and_rechain,
    ],
)  # fmt: skip
def test_it_finds_every_attack(attack: Callable[[], None]) -> None:
    record(10)
    seal()
    assert verify().exit_status == 0

    attack()

    report = verify()
    assert report.exit_status == 1
    assert report.tampered


def test_it_finds_a_forged_anchor(anchor_file: Path) -> None:
    record(3)
    seal()
    with anchor_file.open("a") as file:
        file.write(
            json.dumps({"chain": "audit", "seq": 3, "hash": "f" * 64, "at": "now", "sig": "00"})
            + "\n"
        )

    assert verify().tampered == ["anchor line 2 has a wrong signature"]


def test_it_finds_that_the_anchors_are_gone(anchor_file: Path) -> None:
    record(3)
    seal()
    anchor_file.unlink()

    assert "no anchor" in verify().tampered[0]


def test_it_finds_anchors_that_disagree() -> None:
    record(3)
    seal()
    append_anchor(3, "e" * 64)

    assert verify().tampered == ["two anchors disagree about entry 3"]


def test_a_copy_of_the_anchors_shows_what_their_owner_cut_off(
    anchor_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(4)
    seal()
    early = anchor_file.read_text()
    record(6, start=4)
    seal()
    copy = tmp_path / "copy.jsonl"
    copy.write_text(anchor_file.read_text())
    call_command("audit", "verify", "--anchors", str(copy), "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_status"], told["entries"], told["anchors"]) == (0, 10, 2)

    truncate_tail()
    as_owner(
        "DELETE FROM audit_payload WHERE entry_id IN (SELECT id FROM audit_entry WHERE seq > 4);"
        "DELETE FROM audit_entry WHERE seq > 4"
    )
    anchor_file.write_text(early)

    assert verify().exit_status == 0, "what is here fits together: nothing here can tell"
    with pytest.raises(SystemExit) as ended:
        call_command("audit", "verify", "--anchors", str(copy), "--json")
    assert ended.value.code == 1
    assert "truncated" in json.loads(capsys.readouterr().out)["tampered"][0]


def test_a_head_that_a_crash_left_unanchored_is_anchored_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    record(3)
    seal()
    record(2, start=3)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sealer, "append_anchor", killed)
        seal()
    assert verify().unanchored == 2

    with caplog.at_level("INFO", "traces.audit.anchors"):
        assert seal() == 0

    assert verify().unanchored == 0
    assert verify().head in caplog.text


def killed(seq: int, head: str) -> None:
    raise KeyboardInterrupt


def test_sealing_never_anchors_a_chain_whose_anchors_are_gone(anchor_file: Path) -> None:
    record(3)
    seal()
    anchor_file.unlink()

    seal()

    assert verify().exit_status == 1


def test_it_says_what_waits_too_long_for_its_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = clock.now() - dt.timedelta(minutes=5)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: long_ago)
        record(1)
    record(1)

    report = verify()

    assert report.exit_status == 2
    assert report.waiting == 2
    assert len(report.unsealed) == 1


def test_the_command_says_it_in_its_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    record(5)
    seal()
    call_command("audit", "verify")
    assert "5 entries" in capsys.readouterr().out

    edit()
    with pytest.raises(SystemExit) as ended:
        call_command("audit", "verify")

    assert ended.value.code == 1
    assert "entry 4 was changed" in capsys.readouterr().out


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_eight_writers_and_two_sealers_make_one_chain_without_gaps() -> None:
    failures: list[BaseException] = []
    written = threading.Event()

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)
        finally:
            connection.close()

    def write(writer: int) -> None:
        guarded(lambda: record(500, start=writer * 500))

    def keep_sealing() -> None:
        def work() -> None:
            while not written.is_set():
                seal()

        guarded(work)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    sealers = [threading.Thread(target=keep_sealing) for _ in range(2)]
    for thread in (*writers, *sealers):
        thread.start()
    for thread in writers:
        thread.join(50)
    written.set()
    for thread in sealers:
        thread.join(50)
    seal()

    report = verify()
    assert not failures
    assert (report.entries, report.waiting, report.tampered) == (4_000, 0, [])
