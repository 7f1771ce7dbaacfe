"""Parties as processes of a module of tests, which kill themselves at a point."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.commands import started

ROOT = Path(__file__).resolve().parents[2]


def run_workers(module: str, folder: Path, kill: Mapping[int, str], *options: str, parties: Sequence[int] = (0, 1)) -> list[dict[str, Any] | None]:
    """What each party printed; None if it was killed, as ``kill`` says. ``options``: of the worker."""
    words = {party: (folder, party, kill.get(party, "-"), folder / f"used-{party}") for party in parties}
    workers = [started(ROOT, f"tests.faults.{module}", *words[party], *options) for party in parties]
    ended = [worker.ended(60) for worker in workers]
    assert all((done.returncode == -signal.SIGKILL) == (party in kill) for party, done in zip(parties, ended, strict=True)), ended
    return [json.loads(done.stdout) if done.stdout.strip() else None for done in ended]
