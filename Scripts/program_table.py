"""Writes docs/pages/programs.md from the headers of Programs/Source/*.mpc."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

from keyquorum.model.protocols import COMMITTEES, Protocol
from keyquorum.programs.header import FIELDS, NEEDS, SYMBOLS, Header, collection, header

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "pages" / "programs.md"


def escaped(text: str) -> str:
    """Prose for Markdown: outside of code spans a ``<`` that would begin a tag is escaped, and so is a ``&`` that would begin an entity."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)", lambda m: html.escape(m[0]), part) for part in parts)


def cell(head: Header, variant: str, protocol: Protocol) -> str:
    """Where a variant runs on a protocol."""
    return "yes" if head.runs_on(protocol, variant) else "MP-SPDZ" if head.runs_on(protocol, variant, on_mp_spdz=True) else ""


def permissions() -> list[str]:
    """The lines of the table of programs and protocols."""
    lines = [f"| program | {' | '.join(COMMITTEES)} |", f"|{' --- |' * (1 + len(COMMITTEES))}"]
    for head in map(header, collection()):
        rows: dict[tuple[str, ...], list[str]] = {}
        for variant in head.variants:
            rows.setdefault(tuple(cell(head, variant, protocol) for protocol in COMMITTEES.values()), []).append(variant)
        for cells, variants in rows.items():
            of = f" of {', '.join(variants)}" if len(rows) > 1 else ""
            lines.append(f"| [{head.program}](#{head.program}){of} | {' | '.join(cells)} |")
    return lines


def table() -> str:
    """The page."""
    parts = [
        "# Programs\n",
        "Made from the headers of `Programs/Source` by `Scripts/program_table.py`. Tests check that rounds and bytes are what the engine counts "
        "(`spdz2k` and `mascot` add their checks). For additive sharing rounds and bytes are those of the online phase. A field may be "
        "`of` a method. [Adding a program](adding-a-program.md) says how a header is written.\n",
        "## Fields\n",
        "| field | meaning |\n| --- | --- |",
        *(f"| {key} | {escaped(meaning)} |" for key, meaning in FIELDS.items()),
        "\n## Needs\n",
        "A program names no protocol. Its field `needs` has some of these words, and the [descriptor](adding-a-protocol.md) of a protocol says which of them it has.\n",
        "| word | the protocol has |\n| --- | --- |",
        *(f"| `{word}` | {meaning} |" for word, (meaning, _) in NEEDS.items()),
        "",
        "So these protocols of committees run a program. *MP-SPDZ*: there alone. Clear text (`emulate`) runs every program.\n",
        *permissions(),
        "\n## Symbols\n",
        "Formulas are Python expressions in the arguments, the abbreviations of `where`, and these names. An operation that costs elements takes "
        "that many times w bytes for each entry of a vector, of all parties together; `Programs/README.md` has the costs of each protocol.\n",
        "| symbol | meaning |\n| --- | --- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in SYMBOLS.items()),
        "",
    ]
    for program in collection():
        head = header(program)
        parts.append(f"## {program}\n\n{escaped(head.summary)}\n")
        for field in head.fields:
            of = f" of {', '.join(field.variants)}" if field.variants else ""
            prose = field.key in ("private input of each contributor", "public input", "output", "timers")
            value = escaped(field.value) if prose else f"`{field.value}`"
            more = f" {escaped(field.more)}" if field.more else ""
            parts.append(f"* **{field.key}{of}**: {value}{more}")
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
