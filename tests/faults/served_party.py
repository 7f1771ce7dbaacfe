"""``keyquorum serve`` of one party that logs the hash of each item of its pool before the item is used. Tests only.

Arguments: the log, then the arguments of ``keyquorum serve``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from keyquorum.cli import main as keyquorum
from keyquorum.plans.pools import ClaimedItems

from tests.faults.killing import log_used


def main() -> None:
    log = Path(sys.argv[1])
    take = ClaimedItems.take

    def logged(self: ClaimedItems, count: int) -> Any:
        material, bound = take(self, count)
        log_used(log, (material[0][:, :, item].tobytes() for item in range(count)))
        return material, bound

    ClaimedItems.take = logged  # type: ignore[method-assign]
    sys.argv[1:] = ["serve", *sys.argv[2:]]
    keyquorum()


if __name__ == "__main__":
    main()
