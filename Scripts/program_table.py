"""Writes docs/pages/programs.md from the headers of Programs/Source/*.mpc."""

from __future__ import annotations

import html
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


def escaped(text: str) -> str:
    """Prose for Markdown: outside of code spans a ``<`` that would begin a tag is escaped, and so is a ``&`` that would begin an entity."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)", lambda m: html.escape(m[0]), part) for part in parts)


def table() -> str:
    """The page."""
    parts = ["# Programs\n"]
    parts.append(
        "Made from the headers of `Programs/Source` by `Scripts/program_table.py`; tests check that rounds and bytes are what the engine counts (`spdz2k` and `mascot` add their checks).\n"
    )
    for path in sorted((ROOT / "Programs" / "Source").glob("*.mpc")):
        lines = header(path)
        first = " ".join(lines).split(". ")[0].split(" arguments:")[0]
        parts.append(f"## {path.stem}\n\n{escaped(first.rstrip('.'))}.\n")
        for line in lines:
            match = re.match(rf"({'|'.join(FIELDS)})(?: of [\w, ]+)?: +(.+)", line)
            if match:
                parts.append(f"* **{line.split(':')[0]}**: `{match.group(2).strip()}`")
        parts.append("")
    return "\n".join(parts)


def main() -> int:
    """Writes the page; with --check reports whether it is up to date."""
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
