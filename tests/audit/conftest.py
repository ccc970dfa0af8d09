"""What the tests of the audit start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from traces.audit import anchors


@pytest.fixture(autouse=True)
def anchor_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An anchor file of the test's own."""
    path = tmp_path / "anchors.jsonl"
    monkeypatch.setattr(anchors, "anchor_file", lambda: path)
    yield path
