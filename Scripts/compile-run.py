#!/usr/bin/env python3
"""MP-SPDZ's command line on the embedded engine: commands from its documentation run unchanged, for programs of the subset.

    Scripts/compile-run.py -E rep-field sample_cbd 16384 bits -- -P 1152921504606584833

Compile options and the protocol come before the program, its arguments after it, run-time options after ``--``. ``--help`` lists options that are
used, accepted without effect, and refused. Needs the environment that ``make demo`` builds (.venv), and re-executes itself in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def enter_environment() -> None:
    """Re-executes in the project's virtual environment if keyquorum is not installed here."""
    try:
        import keyquorum._engine  # noqa: F401
    except ImportError:
        python = ROOT / ".venv" / "bin" / "python"
        if not python.exists() or sys.executable == str(python):
            sys.exit("error: keyquorum is not built: run make demo first")
        os.execv(python, [str(python), *sys.argv])


if __name__ == "__main__":
    enter_environment()
    from keyquorum.cli.compile_run import main

    sys.exit(main())
