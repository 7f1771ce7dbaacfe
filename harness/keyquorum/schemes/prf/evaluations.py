"""The count of the evaluations of a key at one party, on the disk before an answer leaves.

``evaluations.journal``: a line of JSON with a checksum for each counted request. The first line has the key, and the evaluations of lines that were
dropped because they are older than two hours. Those of the last hour count for the limit of a receiver; the others show that a request was counted to a party whose clock is behind. A line is appended and synced before the parties compute. A line that a crash cut off was not synced: no
answer left for it, and it is removed when the count is opened. Any other damaged line is refused: what it counted is not known.

A counted request keeps its time. The clock of a count is the later of two: the system's, and the latest time that was counted plus what passed since then. So a clock that is set back, at a
start too, makes no request older. Parties that evaluate without the others learn from one another what was counted while one of them was absent (:meth:`Evaluations.learn`). After a clock that was ahead, what was counted then is free again after an hour in which the party serves.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import CiphertextError, KeyFileError, KeyQuorumError, PolicyError
from keyquorum.model.plain import Json, is_count, is_hex, json_loads

from .policy import HOUR, EvaluationPolicy

JOURNAL = "evaluations.journal"
KEPT = 2 * HOUR
"""Seconds for which a line is kept."""
LATEST = 1 << 40
"""Seconds of the epoch that no clock shows."""
SPARE_LINES = 10_000
"""Lines older than :data:`KEPT` that a journal has at most, about, before it is written anew."""


@dataclass(frozen=True)
class Counted:
    """A request that was counted: ``count`` evaluations at ``time`` (seconds of the Unix epoch) for a receiver (SHA-256 of its certificate)."""

    time: float
    receiver: str
    id: str
    count: int


@dataclass
class Counts:
    """The content of a journal. ``dropped``: evaluations of lines that are gone; ``length``: bytes up to a line that is cut off (``torn``)."""

    key_id: str
    dropped: int
    lines: list[Counted] = field(default_factory=list)
    length: int = 0
    torn: bool = False

    @property
    def total(self) -> int:
        """Evaluations ever counted."""
        return self.dropped + sum(line.count for line in self.lines)

    @property
    def ids(self) -> set[str]:
        """Receivers and ids of the requests, as ``receiver/id``."""
        return {f"{line.receiver}/{line.id}" for line in self.lines}

    def used(self, receiver: str, now: float) -> int:
        """Evaluations of a receiver in the last hour. Lines of the future count: the clock was set back."""
        return sum(line.count for line in self.lines if line.receiver == receiver and line.time > now - HOUR)


def _line(key_id: str, entry: Json) -> bytes:
    text = json.dumps(entry, separators=(",", ":"))
    return f"{_checksum(key_id, text)} {text}\n".encode()


def _checksum(key_id: str, text: str) -> str:
    return hashlib.sha256(f"keyquorum evaluation {key_id} {text}".encode()).hexdigest()[:32]


def _first(key_id: str, dropped: int) -> bytes:
    return _line("", {"key_id": key_id, "dropped": dropped})


def start_evaluations(folder: Path, key_id: str, used: int = 0, lines: Sequence[Counted] = ()) -> None:
    """Starts the count of a new key, or at a new party of one with ``used`` evaluations, or as many as ``lines`` have, if these are more. Lines of the future count from now on."""
    dropped, now = max(0, used - sum(line.count for line in lines)), time.time()
    kept = sorted((replace(line, time=min(line.time, now)) for line in lines), key=lambda line: line.time)
    write_atomically(folder / JOURNAL, _first(key_id, dropped) + b"".join(_line(key_id, vars(line)) for line in kept), 0o600)


def read_journal(path: Path, key_id: str | None = None) -> Counts:
    """The content of a journal. Raises KeyFileError where there is none, or it is damaged or of another key."""
    if not path.exists():
        raise KeyFileError(f"{path} is missing: without the count of evaluations the key is not served (docs/pages/toprf.md, A lost count)")
    data = path.read_bytes()
    damaged = KeyFileError(f"{path} is damaged, so what was evaluated is not known: the key is not served (docs/pages/toprf.md, A lost count)")
    *lines, last = data.split(b"\n")
    try:
        entry = _entry("", lines[0])
        counts = Counts(entry["key_id"], entry["dropped"], length=len(data) - len(last), torn=bool(last))
        if not (is_hex(counts.key_id, 32) and is_count(counts.dropped)):
            raise damaged
        for line in lines[1:]:
            counts.lines.append(counted(_entry(counts.key_id, line)))
    except (ValueError, KeyError, TypeError, IndexError):
        raise damaged from None
    if key_id is not None and counts.key_id != key_id:
        raise KeyFileError(f"{path} is of another key: restore the file of key {key_id}")
    return counts


def _entry(key_id: str, line: bytes) -> Json:
    checksum, _, text = line.decode().partition(" ")
    entry = json_loads(text)
    if checksum != _checksum(key_id, text) or not isinstance(entry, dict):
        raise ValueError("a line with another checksum")
    return entry


def counted(entry: Json) -> Counted:
    """A line from its JSON. Raises ValueError, TypeError or KeyError."""
    found = Counted(**entry)
    numbers = isinstance(found.time, (int, float)) and 0 <= found.time < LATEST and is_count(found.count, 1)
    if not (numbers and is_hex(found.receiver, 64) and isinstance(found.id, str)):
        raise ValueError("entries of other types")
    return found


def read_known(said: bytes) -> tuple[int, list[Counted]]:
    """The total and the lines of :meth:`Evaluations.known`. Raises ValueError for other bytes."""
    data = json_loads(said)
    try:
        total, lines = data["total"], [counted(line) for line in data["lines"]]
    except (KeyError, TypeError) as error:
        raise ValueError("entries of other types") from error
    if not is_count(total) or len({(line.receiver, line.id) for line in lines}) < len(lines):
        raise ValueError("a total or lines that cannot be")
    return total, lines


class Evaluations:
    """The count of a party that serves a key, with its policy. One process has it open (the lock on serving). Thread-safe. ``clock``: seconds of the
    epoch; ``steady``: seconds that are never set."""

    def __init__(
        self, folder: Path, policy: EvaluationPolicy, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self.policy, self._wall, self._steady, self._path = policy, clock, steady, folder / JOURNAL
        self._latest = 0.0, steady()
        """The latest time so far, and when that was."""
        found = read_journal(self._path, policy.key_id)
        self._failed, self._lock = False, threading.RLock()
        self._restore(found)
        self._rewrite(self._kept())  # in place of a line that was cut off, and of old ones

    def _restore(self, found: Counts) -> None:
        self.total = found.total
        self._recent: dict[str, list[tuple[float, int, Counted]]] = {}  # heaps: the oldest first, also after the clock was set
        self._older: deque[Counted] = deque()
        """Lines of before the last hour, about the oldest first."""
        self._used: dict[str, int] = {}
        self._ids: set[str] = set()
        self._lines, self._order = 0, 0
        self._latest = max((line.time for line in found.lines), default=0.0), self._steady()
        for line in found.lines:
            self._add(line)

    def _clock(self) -> float:
        """Seconds of the epoch, never less than before, nor than the time of a counted request."""
        steady = self._steady()
        latest, since = self._latest
        self._latest = max(self._wall(), latest + max(0.0, steady - since)), steady
        return self._latest[0]

    def _add(self, line: Counted) -> None:
        heapq.heappush(self._recent.setdefault(line.receiver, []), (line.time, self._order, line))
        self._order += 1
        self._used[line.receiver] = self._used.get(line.receiver, 0) + line.count
        self._ids.add(f"{line.receiver}/{line.id}")
        self._lines += 1

    def _forget_old(self, receiver: str, now: float) -> None:
        recent = self._recent.get(receiver, [])
        while recent and recent[0][0] <= now - HOUR:
            _, _, old = heapq.heappop(recent)
            self._used[receiver] -= old.count
            self._older.append(old)
        while self._older and self._older[0].time <= now - KEPT:
            gone = self._older.popleft()
            self._ids.discard(f"{gone.receiver}/{gone.id}")

    def refusal(self, receiver: str, name: str, count: int, taken: Sequence[tuple[str, int]] = ()) -> KeyQuorumError | None:
        """Why ``count`` evaluations for a receiver, in the request ``name``, are refused; None if they are not. ``taken``: (receiver, count) of
        requests that will be counted before."""
        with self._lock:
            return self._refusal(receiver, name, count, taken)

    def _refusal(self, receiver: str, name: str, count: int, taken: Sequence[tuple[str, int]]) -> KeyQuorumError | None:
        try:
            self.policy.require_allowed(receiver)
        except PolicyError as error:
            return error
        now, policy = self._clock(), self.policy
        self._forget_old(receiver, now)
        if f"{receiver}/{name}" in self._ids:
            return CiphertextError("a request of this id was counted already: take another id")
        if count > policy.rate:
            return PolicyError(f"{count:,} evaluations in one request, the policy allows {policy.rate:,} an hour: send fewer at a time")
        if policy.total is not None and self.total + sum(c for _, c in taken) + count > policy.total:
            return PolicyError(
                f"key {policy.key_id} has fewer than {count:,} of its evaluations left: ask who runs the party for another limit, or for another key"
            )
        used = self._used.get(receiver, 0) + sum(c for r, c in taken if r == receiver)
        if used + count <= policy.rate:
            return None
        return PolicyError(
            f"the policy allows this receiver {policy.rate:,} evaluations an hour and {used:,} are used: {count:,} more are refused until "
            f"{time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(self._free_again(receiver, now, used + count - policy.rate) - now + self._wall() + 1))}"
        )

    def _free_again(self, receiver: str, now: float, excess: int) -> float:
        """When ``excess`` evaluations of a receiver are older than an hour. Those of this very moment are the last."""
        for _, _, line in sorted(self._recent.get(receiver, [])):
            excess -= line.count
            if excess <= 0:
                return max(now, line.time + HOUR)
        return now + HOUR

    def known(self) -> bytes:
        """All that is counted, for :meth:`learn` at parties that were absent: the total, and the lines of the last hour."""
        with self._lock:
            lines = sorted(self._last_hour(), key=lambda line: (line.time, line.receiver, line.id))
            return json.dumps({"total": self.total, "lines": [vars(line) for line in lines]}, separators=(",", ":")).encode()

    def known_digest(self) -> bytes:
        """32 bytes, the same at parties of which none would :meth:`learn` anything from the others. Without times: each party counts a request at a time of its own, and keeps that."""
        with self._lock:
            lines = sorted(f"{line.receiver}/{line.id} {line.count}" for line in self._last_hour())
            return hashlib.sha256(json.dumps([self.total, lines]).encode()).digest()

    def _last_hour(self) -> list[Counted]:
        now = self._clock()
        return [line for line in self._kept() if line.time > now - HOUR]

    def learn(self, said: bytes) -> None:
        """Counts what another party has counted and this one has not, and returns when it is on the disk. Lines have one id wherever they are counted. A total above what these explain is of lines that are older than an
        hour here. Raises ValueError for bytes that are not those of :meth:`known`, and PolicyError if nothing can be written."""
        total, lines = read_known(said)
        with self._lock:
            now = self._clock()
            for receiver in self._recent:
                self._forget_old(receiver, now)
            missing = (line for line in lines if line.time > now - HOUR and f"{line.receiver}/{line.id}" not in self._ids)
            new = [replace(line, time=min(line.time, now)) for line in missing]
            if not new and total <= self.total:
                return
            for line in new:
                self._add(line)
            self.total = max(self.total + sum(line.count for line in new), total)
            try:
                self._rewrite(self._kept())
            except OSError as error:
                self._failed = True
                raise _unwritable(error) from None

    def claim(self, requests: Sequence[tuple[str, str, int]]) -> None:
        """Counts requests (receiver, id, evaluations), and returns when they are on the disk. Raises PolicyError if they are not, and nothing may be
        answered then."""
        with self._lock:
            self._claim(requests)

    def _claim(self, requests: Sequence[tuple[str, str, int]]) -> None:
        now = self._clock()
        lines = [Counted(now, *request) for request in requests]
        reached("count/before")
        self._append(b"".join(_line(self.policy.key_id, vars(line)) for line in lines))
        for line in lines:
            self._add(line)
            self.total += line.count
        reached("count/durable")
        for receiver in self._recent:
            self._forget_old(receiver, now)
        if self._lines > len(self._kept()) + SPARE_LINES:
            try:
                self._rewrite(self._kept())
            except OSError:  # these requests are counted; the next ones wait until the file can be written
                self._failed = True

    def _kept(self) -> list[Counted]:
        return [*self._older, *(line for recent in self._recent.values() for _, _, line in recent)]

    def require(self) -> None:
        """Raises PolicyError while the count cannot be written."""
        with self._lock:
            if not self._failed:
                return
            try:
                self._rewrite(self._kept())
            except OSError as error:
                raise _unwritable(error) from None
            self._failed = False

    def _append(self, data: bytes) -> None:
        file = -1
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            length, half, view = os.fstat(file).st_size, len(data) // 2, memoryview(data)
            try:
                _write(file, view[:half])
                reached("count/half")
                _write(file, view[half:])
                reached("count/written")
                os.fsync(file)
            except OSError:
                with suppress(OSError):  # else the file is written anew before the next line
                    os.ftruncate(file, length)
                raise
        except OSError as error:
            self._failed = True
            raise _unwritable(error) from None
        finally:
            if file >= 0:
                os.close(file)

    def _rewrite(self, lines: Sequence[Counted]) -> None:
        """Writes the journal anew, with the lines that are kept."""
        now, key_id = self._clock(), self.policy.key_id
        kept = sorted((line for line in lines if line.time > now - KEPT), key=lambda line: line.time)
        dropped = self.total - sum(line.count for line in kept)
        write_atomically(self._path, _first(key_id, dropped) + b"".join(_line(key_id, vars(line)) for line in kept), 0o600)
        self._lines = len(kept)


def _unwritable(error: OSError) -> PolicyError:
    return PolicyError(f"this party cannot write its count of evaluations ({error.strerror}), and answers nothing until it can: ask who runs it")


def _write(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]


__all__ = ["JOURNAL", "Counted", "Counts", "Evaluations", "counted", "read_journal", "read_known", "start_evaluations"]
