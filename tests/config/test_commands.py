"""What every command says when it cannot work: one line with the way out, and status 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.stack_process import manage


def test_without_a_secret_key_nothing_starts(tmp_path: Path) -> None:
    answer = manage("check", folder=tmp_path)

    assert answer.returncode == 1
    assert "SECRET_KEY is not set and DEBUG is off" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_an_empty_secret_key_is_none(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("left by an earlier start")

    answer = manage("check", folder=tmp_path, more={"SECRET_KEY": ""})

    assert answer.returncode == 1
    assert "SECRET_KEY" in answer.stderr


def test_without_a_running_database_it_says_how_to_start_one(tmp_path: Path) -> None:
    answer = manage("migrate", folder=tmp_path, more={"SECRET_KEY": "x" * 50})

    assert answer.returncode == 1
    assert "the database is not running; start it with `make up`" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize("url", ["nonsense", "postgresql://user:hidden-word@host:no-port/x"])
def test_an_unreadable_database_url_is_not_repeated(tmp_path: Path, url: str) -> None:
    answer = manage("migrate", folder=tmp_path, more={"SECRET_KEY": "x" * 50, "DATABASE_URL": url})

    assert answer.returncode == 1
    assert "DATABASE_URL" in answer.stderr
    assert "hidden-word" not in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_another_kind_of_database_is_refused(tmp_path: Path) -> None:
    more = {"SECRET_KEY": "x" * 50, "DATABASE_URL": f"sqlite:///{tmp_path}/x.db"}

    answer = manage("migrate", folder=tmp_path, more=more)

    assert answer.returncode == 1
    assert "PostgreSQL" in answer.stderr


def test_j1_any_host_is_refused(tmp_path: Path) -> None:
    answer = manage("check", folder=tmp_path, more={"SECRET_KEY": "x" * 50, "ALLOWED_HOSTS": "*"})

    assert answer.returncode == 1
    assert "config.E002" in answer.stderr


def test_an_unknown_command_has_no_traceback(tmp_path: Path) -> None:
    answer = manage("no-such-command", folder=tmp_path, more={"SECRET_KEY": "x" * 50})

    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    answer = manage("up", folder=tmp_path / "file" / "data")

    assert answer.returncode == 1
    assert str(tmp_path / "file") in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
