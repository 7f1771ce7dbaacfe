"""Writers of one journal wait for one another."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest
from keyquorum.model import checkpoints, journal


def test_a_line_waits_for_the_writer_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second line comes while half of the first one is written. Without the lock it cuts that half off, as if a crash had left it."""
    path = tmp_path / "a.journal"
    other = threading.Thread(target=lambda: journal.append(path, "test", "second", "second"))

    def meanwhile(name: str) -> None:
        if name == "first/half":
            other.start()
            other.join(0.2)

    monkeypatch.setattr(checkpoints, "hook", meanwhile)
    journal.append(path, "test", "first", "first")
    other.join(10)
    assert journal.whole_lines("test", path.read_bytes()) == (["first", "second"], b"")


def test_a_writer_that_stands_still_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.journal"
    monkeypatch.setattr(journal, "PATIENCE", 0.0)
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match=r"in use by another process: wait until it ends.*a\.journal"):
            journal.append(path, "test", "line", "test")
    assert path.read_bytes() == b""
    journal.append(path, "test", "line", "test")
