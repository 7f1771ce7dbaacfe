"""Writes harness/keyquorum/programs/signatures.py, a typed function for each program, from the headers of Programs/Source/*.mpc."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from keyquorum.model.errors import ProgramError
from keyquorum.programs.declared import name_of
from keyquorum.programs.header import Argument, Header, collection, header

TARGET = Path(__file__).resolve().parent.parent / "harness" / "keyquorum" / "programs" / "signatures.py"
WIDTH = 145
ROUNDS = ("rounds", "offline rounds", "online rounds")
"""The costs in the docstrings."""
TOP = '''"""A function for each program of ``Programs/Source``. Made from their headers by ``Scripts/program_signatures.py``: do not edit.

Each gives a :class:`.Call` that :meth:`.Backend.run` takes. Arguments have the names of the header; in place of a position in the share file stands
the segment that is read there, by its own name. Without it the program reads at its default position. The header states bytes and segments too.
"""

# ruff: noqa: E741
# fmt: off
# mypy: disable-error-code=empty-body

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .call import Call, Segment
from .declared import program
'''


class _Signature:
    """The function of one program."""

    def __init__(self, head: Header) -> None:
        self.head = head
        self.read_at = {read.at: read for read in head.reads}
        names = {argument.name for argument in head.arguments}
        unknown = set(self.read_at) - names
        if unknown:
            raise ProgramError(f"{head.program}: reads names {', '.join(sorted(unknown))}, which is no argument")
        for name in names - set(self.read_at):
            if name == "at" or name.endswith("_at"):
                raise ProgramError(f"{head.program}: no line of reads says what is read at {name}")

    def _name(self, argument: Argument) -> str:
        read = self.read_at.get(argument.name)
        return read.name if read else name_of(argument)

    def _parameter(self, argument: Argument) -> str:
        name = self._name(argument)
        if argument.name in self.read_at:
            return f"{name}: Segment" if argument.default is None else f"{name}: Segment | None = None"
        number = any(word in ("party", "odd") for word in argument.words)
        words = [word for word in argument.words if word not in ("party", "odd")]
        kinds = (["int"] if number or not words else []) + ([f"Literal[{', '.join(map(_quoted, words))}]"] if words else [])
        if argument.rest:
            return f"{name}: Sequence[{' | '.join(kinds)}]"
        default = "" if argument.default is None else f" = {_quoted(argument.default) if words else argument.default}"
        return f"{name}: {' | '.join(kinds)}{default}"

    def text(self) -> str:
        """The function's source."""
        head = self.head
        parameters = [self._parameter(a) for a in head.arguments]
        start = f"def {head.program}(*, {', '.join(parameters)}) -> Call:"
        lines = [start] if len(start) <= WIDTH else [f"def {head.program}(", "    *,", *(f"    {p}," for p in parameters), ") -> Call:"]
        return "\n".join(["@program", *lines, *self._docstring()])

    def _docstring(self) -> list[str]:
        rounds = []
        for field in self.head.fields:
            if field.key in ROUNDS:
                of = f" of {', '.join(field.variants)}" if field.variants else ""
                rounds.append(f"{field.key.capitalize()}{of}: ``{field.value}``")
        made = "\n".join([self.head.summary, *([""] if rounds else []), *rounds])
        wrapped = [
            piece for line in made.split("\n") for piece in (textwrap.wrap(line, WIDTH - 4, break_long_words=False, break_on_hyphens=False) or [""])
        ]
        wrapped[0] = f'"""{wrapped[0]}'
        wrapped[-1] += '"""' if len(wrapped) == 1 else ""
        return [f"    {line}".rstrip() for line in (wrapped if len(wrapped) == 1 else [*wrapped, '"""'])]


def _quoted(word: str) -> str:
    return f'"{word}"'


def module() -> str:
    """The source of the module."""
    functions = [_Signature(header(program)) for program in collection()]
    return TOP + "".join(f"\n\n{function.text()}\n" for function in functions)


def main() -> int:
    """Writes the module; with --check only compares it with the file."""
    text = module()
    if "--check" in sys.argv:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("error: harness/keyquorum/programs/signatures.py is out of date: run Scripts/program_signatures.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
