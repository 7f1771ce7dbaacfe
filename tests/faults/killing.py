"""What workers that kill themselves have in common. Tests only."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keyquorum.model import checkpoints
from keyquorum.plans.pool_store import Claim, PoolStore


def die_at(checkpoint: str) -> None:
    """Sends SIGKILL to this process at a checkpoint: NAME, or NAME@K when it is reached for the K-th time; - for none."""
    point, _, times = checkpoint.partition("@")
    left = int(times or 1)

    def hook(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and not left:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.hook = hook


def forget_claims() -> None:
    """Takes out what the claims are for: those of a process that died are forgotten."""

    def unwritten(self: PoolStore, claim: Claim) -> None:
        self.claim = claim

    PoolStore.claim_items = unwritten  # type: ignore[method-assign]


def log_used(log: Path, items: Iterable[Any]) -> None:
    """Appends the hash of each item (bytes) to a file, and syncs it."""
    with log.open("a") as file:
        for item in items:
            file.write(hashlib.sha256(item).hexdigest() + "\n")
        file.flush()
        os.fsync(file.fileno())
