"""Writes docs/pages/programs.md from the headers of Programs/Source/*.mpc."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "pages" / "programs.md"
FIELDS = ("arguments", "protocols", "on MP-SPDZ", "rounds", "bytes")


def header(path: Path) -> list[str]:
    """The comment at the head of a program, without the marks."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:].removeprefix(" "))
    return lines


def table() -> str:
    """The page."""
    parts = ["# Programs\n"]
    parts.append(
        "Made from the headers of `Programs/Source` by `Scripts/program_table.py`; tests check that rounds and bytes are what the engine counts (`spdz2k` and `mascot` add their checks).\n"
    )
    for path in sorted((ROOT / "Programs" / "Source").glob("*.mpc")):
        lines = header(path)
        first = " ".join(lines).split(". ")[0].split(" arguments:")[0]
        parts.append(f"## {path.stem}\n\n{first.rstrip('.')}.\n")
        for line in lines:
            match = re.match(rf"({'|'.join(FIELDS)})(?: of [\w, ]+)?: +(.+)", line)
            if match:
                parts.append(f"* **{line.split(':')[0]}**: `{match.group(2).strip()}`")
        parts.append("")
    return "\n".join(parts)


def main() -> int:
    """Writes the page; with --check tells whether it is up to date."""
    page = table()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != page:
            print("error: docs/pages/programs.md is out of date: run Scripts/program_table.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
