"""A party that serves a pseudorandom function, and kills itself with SIGKILL at a named checkpoint. Tests only.

Arguments: folder, party, checkpoint (or -)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.serve.daemon import Service, serve


def main() -> None:
    folder, party, kill_at = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

    def hook(name: str) -> None:
        if name == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.hook = hook
    serve(Committee.load(folder), party, Service("prf", patience=20.0))


if __name__ == "__main__":
    main()
