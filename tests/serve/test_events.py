"""The lines of a served party hold it up never, and end it never, whatever becomes of their reader."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum.model.errors import KeyQuorumError
from keyquorum.serve import events
from keyquorum.serve.client import fetch
from keyquorum.serve.events import EventLog

from tests.commands import Forked
from tests.faults.test_served import Served


def full_pipe() -> tuple[int, int, int]:
    """A pipe that takes nothing any more: its ends, and the bytes in it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    size = 0
    try:
        while True:
            size += os.write(writer, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer, size


def until(condition: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_reader_that_stalls_holds_nobody_up() -> None:
    reader, writer, _ = full_pipe()
    log = EventLog(os.fdopen(writer, "w"), str)
    start = time.monotonic()
    for number in range(5000):
        log.write(str(number))
    log.close()
    assert time.monotonic() - start < 20, "a second at the end"
    # The remark that lines were left out may be one of those that wait; one line is being written.
    assert len(log._waiting) <= 1000 + 1
    until(lambda: log._left_out + sum(events for _, events in list(log._waiting)) >= 5000 - 1)
    os.close(reader)


def test_lines_that_were_left_out_are_counted() -> None:
    reader, writer, size = full_pipe()
    log = EventLog(os.fdopen(writer, "w"), lambda event: f"line {event}", 50)
    for number in range(200):
        log.write(str(number))
    while size:
        size -= len(os.read(reader, size))
    until(lambda: not log._waiting)
    log.write("the last")
    text = ""
    while not text.endswith("line the last\n"):
        text += os.read(reader, 1 << 16).decode()
    lines = text.splitlines()
    assert lines[-2].startswith("line 1") and " lines were left out here" in lines[-2]
    missing = int(lines[-2].split()[1])
    assert missing in (149, 150) and lines[:-2] == [f"line {number}" for number in range(200 - missing)] and lines[-1] == "line the last"
    os.close(reader)


def test_a_disk_that_was_full_gets_whole_lines_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = os.write, [10]

    def some(file: int, data: Any) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count, room[0] = write(file, data[: room[0]]), max(0, room[0] - len(data))
        return count

    with (tmp_path / "log").open("w") as file:
        log = EventLog(file, lambda event: f"line {event}")
        monkeypatch.setattr(events.os, "write", some)
        for number in range(5):
            log.write(f"number {number}")
        until(lambda: log._left_out == 5)
        room[0] = 1 << 30
        log.write("whole")
        log.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines == ["line numbe", "line 5 lines were left out here: nothing took the lines of this log", "line whole"], (
        "the torn one is among those left out"
    )


def test_a_reader_that_is_gone_is_no_failure() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    log = EventLog(os.fdopen(writer, "w"), str)
    for _ in range(3):
        log.write("nobody reads this")
    until(lambda: log._left_out == 3)
    log.close()


@pytest.mark.parametrize("reader_is", ["stalls", "gone"])
def test_a_party_serves_whatever_becomes_of_its_log(tmp_path: Path, reader_is: str) -> None:
    """Standard output is a pipe that takes nothing: the first line would hang there, or end the party."""
    s = Served(tmp_path, 0, start=False)
    reader, writer, _ = full_pipe()
    if reader_is == "gone":
        os.close(reader)
    command = [sys.executable, "-c", "from keyquorum.cli import main; main()", "serve", str(s.committee.folder)]
    options = ["key", "--rounding", "round_mask_open", "--keep", "300", "--patience", "20"]
    parties = [Forked([*command, str(party), *options], stdout=writer, stderr=subprocess.DEVNULL) for party in (0, 1)]
    os.close(writer)
    try:
        end, data = time.monotonic() + 90, s.request(5, 1)
        while True:
            try:
                assert np.array_equal(fetch(s.committee, s.identity, data[0]).messages, data[1])
                break
            except KeyQuorumError:
                assert time.monotonic() < end and all(party.poll() is None for party in parties)
                time.sleep(0.2)
        for party in parties:
            party.terminate()
        assert [party.wait(60) for party in parties] == [0, 0]
    finally:
        for party in parties:
            party.kill()
            party.wait()
