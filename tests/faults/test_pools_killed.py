"""A party that is killed at any point of filling and decrypting: no mask is ever used twice, and the next run goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from keyquorum.api import init
from keyquorum.model.committee import Committee

WORKER = Path(__file__).parent / "pool_worker.py"
POINTS = [
    "agree/before", "agree/after", "fill/started", "fill/tossed", "fill/made", "fill/stored", "fill/compared", "fill/added", "claim/before",
    "claim/half", "claim/written", "claim/durable", "take/read", "decrypt/before", "decrypt/after", "decrypt/removed",
    "agree/before@4", "claim/durable@2", "take/read@3", "decrypt/after@3", "agree/after@4", "take/read@4", "claim/durable@3", "take/read@5",
]  # fmt: skip


def run(folder: Path, kill: dict[int, str]) -> list[dict[str, object] | None]:
    """What each party printed; None if it was killed."""
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(folder), str(party), kill.get(party, "-"), str(folder / f"used-{party}")],
            stdout=subprocess.PIPE, text=True,
        )
        for party in (0, 1)
    ]  # fmt: skip
    outputs = [worker.communicate(timeout=60)[0] for worker in workers]
    for party, worker in enumerate(workers):
        assert worker.returncode == -signal.SIGKILL or party not in kill or worker.returncode in (0, 1)
    return [json.loads(text) if text.strip() else None for text in outputs]


def used(folder: Path, party: int) -> list[str]:
    log = folder / f"used-{party}"
    return log.read_text().split() if log.exists() else []


@pytest.mark.timeout(240)
def test_killed_anywhere(tmp_path: Path) -> None:
    folder = tmp_path / "committee"
    committee: Committee = init(folder, 2, "semi")
    killed = 0
    for point in POINTS:
        for party in (0, 1):
            if point == "fill/started" and party == 1:
                continue  # a pool starts once
            if point == "fill/started":
                for index in (0, 1):
                    for path in (committee.party_folder(index) / "pools").glob("*/*"):
                        path.unlink()
            done = run(folder, {party: point})
            assert done[party] is None, (point, party, done)
            killed += 1
            other = done[1 - party]
            assert other is not None
            # The other party ends with a clear error, or with the right result if it had received all messages.
            assert other.get("messages") == [0, 1, 0] or "party" in str(other["error"]), (point, other)
    assert killed >= 47
    assert run(folder, {}) == [{"messages": [0, 1, 0]}] * 2
    for party in (0, 1):
        masks = used(folder, party)
        assert len(masks) > 3 and len(set(masks)) == len(masks)
