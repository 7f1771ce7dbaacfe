#!/usr/bin/env python3
"""MP-SPDZ's command line on the embedded engine: a command copied from its documentation runs here, for programs of the subset.

    Scripts/compile-run.py -E rep-field sample_cbd 16384 bits -- -P 1152921504606584833

Compile options before the program, its arguments after it, run-time options after ``--``. Needs the environment that ``make demo``
builds (.venv), and re-executes itself in it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOCOLS = ("ring", "rep-field", "shamir", "emulate")


def parser() -> argparse.ArgumentParser:
    """Compile options of MP-SPDZ that mean something here, or are accepted because what they choose is always on."""
    p = argparse.ArgumentParser(prog="compile-run.py", description="Run a program on the embedded engine.")
    p.add_argument("-E", "--execute", choices=PROTOCOLS, default="ring", help="protocol (default: ring)")
    p.add_argument("-R", "--ring", type=int, help="compute modulo 2^R")
    p.add_argument("-F", "--field", type=int, help="integer bit length over a prime field")
    p.add_argument("-P", "--prime", type=int, help="compute modulo this prime")
    p.add_argument("-X", "--mixed", action="store_true", help="daBits: always on here")
    p.add_argument("-Y", "--edabit", action="store_true", help="edaBits: always on here")
    p.add_argument(
        "-Z", "--split", type=int, help="local share conversion: always on here, for the protocol's own number"
    )
    p.add_argument("program", help="name of a program, or the path of an .mpc file")
    p.add_argument("args", nargs=argparse.REMAINDER, help="its arguments; run-time options after --")
    return p


def run_time_parser() -> argparse.ArgumentParser:
    """Run-time options, after ``--``."""
    p = argparse.ArgumentParser(prog="compile-run.py ... --", description="Run-time options.")
    p.add_argument("-N", "--nparties", type=int, help="number of parties")
    p.add_argument("-T", "--threshold", type=int, help="corruptions (shamir)")
    p.add_argument("-P", "--prime", type=int, help="compute modulo this prime")
    p.add_argument("-e", "--encrypted", action="store_true", help="encrypted channels: always on here")
    p.add_argument("-v", "--verbose", action="store_true", help="accepted")
    return p


def enter_environment() -> None:
    """Re-executes in the project's virtual environment if keyquorum is not installed here."""
    try:
        import keyquorum._engine  # noqa: F401
    except ImportError:
        python = ROOT / ".venv" / "bin" / "python"
        if not python.exists() or sys.executable == str(python):
            sys.exit("error: keyquorum is not built: run make demo first")
        os.execv(python, [str(python), *sys.argv])


def main() -> int:
    """Runs the program; exit code 1 and one line after a mistake."""
    options = parser().parse_args()
    words = list(options.args)
    after = words[words.index("--") + 1 :] if "--" in words else []
    arguments = words[: words.index("--")] if "--" in words else words
    late = run_time_parser().parse_args(after)
    enter_environment()
    from keyquorum._engine import EngineError
    from keyquorum.model.errors import KeyQuorumError
    from keyquorum.plans.program import ProgramRequest, run_locally

    parties = late.nparties or (int(os.environ["PLAYERS"]) if os.environ.get("PLAYERS", "").isdigit() else None)
    request = ProgramRequest(
        options.program,
        tuple(arguments),
        options.execute,
        parties if options.execute != "emulate" else None,
        options.ring,
        options.field,
        late.prime or options.prime,
        late.threshold,
    )
    try:
        for line in run_locally(request):
            print(line)
    except (KeyQuorumError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
