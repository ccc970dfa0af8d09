"""The gate: the process's own credentials and every log line pass through the redactor."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
from collections.abc import Iterator

import pytest
import structlog
from django.conf import settings

from traces import gate

TOKEN = "ghp_" + "a8Kq2Zr7Lw9Xc3Vb5Nm1Tp4Ys6Hd0Gf2Je8u"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the settings' own formatter and handler write."""
    text = io.StringIO()
    handler = gate.SafeStreamHandler(text)
    options = dict(settings.LOGGING["formatters"]["structured"])
    handler.setFormatter(options.pop("()")(**options))
    root = logging.getLogger()
    root.addHandler(handler)
    yield text
    root.removeHandler(handler)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    value = "Zx-mother-of-pearl-77-unlike-any-token"
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", value)
    gate.engine.cache_clear()
    yield value
    gate.engine.cache_clear()


def test_it_knows_the_credentials_of_the_process(known: str) -> None:
    clean = gate.redactor()

    assert known not in clean.text(f"I was told {known}.")
    assert settings.SECRET_KEY not in clean.text(f"key={settings.SECRET_KEY}")
    assert known not in json.dumps(clean.redact({"deep": [{"x": f"a{known}b"}]}).value)


def test_h2_no_secret_leaves_in_a_log_line(log: io.StringIO, known: str) -> None:
    logger = logging.getLogger("some.library")
    try:
        try:
            raise ValueError(f"inner {TOKEN}")
        except ValueError as inner:
            raise RuntimeError(f"HTTPError for url https://h/?key={TOKEN}") from inner
    except RuntimeError:
        logger.exception("failed with %s", TOKEN, extra={"header": f"Bearer {TOKEN}"})
    structlog.get_logger("ours").warning("tool failed", stderr=f"x {TOKEN}", tokens=[known], n=3)
    logger.warning({"a": TOKEN})
    logger.warning(RuntimeError(TOKEN))

    written = log.getvalue()
    assert "RuntimeError" in written
    assert "tool failed" in written
    assert TOKEN not in written
    assert known not in written


def test_a_redactor_that_fails_lets_nothing_pass(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr(gate, "redactor", broken)

    logging.getLogger("x").warning("a harmless line with %s", TOKEN)

    assert TOKEN not in log.getvalue()
    assert gate.WITHHELD in log.getvalue()


def test_a_line_that_cannot_be_formatted_is_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = io.StringIO()
    record = logging.LogRecord("x", logging.WARNING, "x.py", 7, "%d", (TOKEN,), None)

    gate.SafeStreamHandler(written).handle(record)

    shown = written.getvalue() + capsys.readouterr().err
    assert "log line withheld: x:7" in shown
    assert TOKEN not in shown


def test_uncaught_exceptions_go_through_the_log(log: io.StringIO) -> None:
    error = RuntimeError(f"at the top {TOKEN}")

    gate._log_uncaught(RuntimeError, error, None)
    gate._log_uncaught_in_thread(
        threading.ExceptHookArgs((RuntimeError, error, None, threading.current_thread()))
    )

    assert log.getvalue().count("RuntimeError") >= 2
    assert TOKEN not in log.getvalue()
    assert sys.excepthook is not None
