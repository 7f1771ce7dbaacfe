"""A fake of a built checkout of MP-SPDZ, whose party executables run .mpc files as Python: enough for tests of the code around
MP-SPDZ."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

COMPILER = """
import sys
from pathlib import Path
words = sys.argv[1:]
program = words[words.index("-E") + 2]
if "broken" in (Path("Programs/Source") / (program + ".mpc")).read_text():
    print("Compiling file", program)
    print("Traceback (most recent call last):", '  File "x.py", line 3, in y', sep="\\n", file=sys.stderr)
    sys.exit("Compiler.exceptions.CompilerError: this program is broken")
"""
PARTY = """#!{python}
import sys, time
from pathlib import Path
party, name = int(sys.argv[1]), sys.argv[2]
options = sys.argv[3:]
exec((Path("Programs/Source") / (name.split("-")[0] + ".mpc")).read_text())
"""


def fake_checkout(folder: Path, binaries: Sequence[str] = ("semi-party.x", "semi2k-party.x"), version: str = "0.4.2") -> Path:
    """Makes the folder; returns it."""
    (folder / "Compiler").mkdir(parents=True)
    (folder / "Scripts").mkdir()
    (folder / "Programs" / "Source").mkdir(parents=True)
    (folder / "Scripts" / "compile-run.py").write_text("raise SystemExit('not part of the fake')\n")
    (folder / "compile.py").write_text(COMPILER)
    (folder / "CHANGELOG.md").write_text(f"Changes.\n\n## {version} (Jan 1, 2026)\n\n- Something\n\n## 0.0.1\n")
    for name in binaries:
        (folder / name).write_text(PARTY.format(python=sys.executable))
        (folder / name).chmod(0o755)
    return folder
