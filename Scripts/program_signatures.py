"""Writes harness/keyquorum/programs/signatures.py, a typed function for each program, from the headers of Programs/Source/*.mpc."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from keyquorum.model.errors import ProgramError
from keyquorum.programs.header import FORMULAS, Argument, Header, collection, header

TARGET = Path(__file__).resolve().parent.parent / "harness" / "keyquorum" / "programs" / "signatures.py"
WIDTH = 145
TOP = '''"""A function for each program of ``Programs/Source``. Made from their headers by ``Scripts/program_signatures.py``: do not edit.

Each gives a :class:`.Call` that :meth:`.Backend.run` takes. Arguments have the names of the header; in place of a position in the share file stands
the segment that is read there, by its own name. Without it the program reads at its default position.
"""

# ruff: noqa: E741
# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .call import Call, Segment, given, position
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
        return read.name if read else f"{argument.name}s" if argument.rest else argument.name

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

    def _value(self, argument: Argument) -> str:
        read = self.read_at.get(argument.name)
        if read is None:
            return self._name(argument)
        size = "None" if read.size is None else read.size
        return f"position({_quoted(self.head.program)}, {_quoted(read.name)}, {read.name}, {argument.default or 0}, {_python(size)})"

    def text(self) -> str:
        """The function's source."""
        head = self.head
        required = [a for a in head.arguments if a.default is None and not a.rest]
        optional = [a for a in head.arguments if a.default is not None]
        rest = [a for a in head.arguments if a.rest]
        parameters = [self._parameter(a) for a in head.arguments]
        start = f"def {head.program}(*, {', '.join(parameters)}) -> Call:"
        lines = [start] if len(start) <= WIDTH else [f"def {head.program}(", "    *,", *(f"    {p}," for p in parameters), ") -> Call:"]
        lines += self._docstring()
        args = [self._value(a) for a in required] + [f"*{self._name(a)}" for a in rest]
        if optional:
            lines += ["    optional = given(", *(f"        ({self._value(a)}, {self._default(a)})," for a in optional), "    )"]
            args.append("*optional")
        writes = "".join(f", {_quoted(w.name)}: {'None' if w.size is None else _python(w.size)}" for w in head.writes).removeprefix(", ")
        pieces = [_quoted(head.program), f"[{', '.join(args)}]", *([f"{{{writes}}}"] if writes else [])]
        call = f"    return Call({', '.join(pieces)})"
        if len(call) > WIDTH:
            pieces[1] = "[\n" + "".join(f"            {arg},\n" for arg in args) + "        ]"
        lines += [call] if len(call) <= WIDTH else ["    return Call(", *(f"        {piece}," for piece in pieces), "    )"]
        return "\n".join(lines)

    @staticmethod
    def _default(argument: Argument) -> str:
        assert argument.default is not None
        return _quoted(argument.default) if argument.words else argument.default

    def _docstring(self) -> list[str]:
        head = self.head
        made = head.summary + "\n"
        for field in head.fields:
            if field.key in FORMULAS:
                of = f" of {', '.join(field.variants)}" if field.variants else ""
                made += f"\n{field.key.capitalize()}{of}: ``{field.value}``"
        made += _notes(head, "arguments")
        for read in head.reads:
            size = "" if read.size is None else f" ({read.size} shares)"
            made += f"\nReads {read.name}{size} at ``{read.at}``."
        made += _notes(head, "reads")
        for write in head.writes:
            made += f"\nWrites {write.name}{'' if write.size is None else f' ({write.size} shares)'}."
        made += _notes(head, "writes")
        made += f"\nOutput: {head.value('output')}." if head.has("output") else ""
        wrapped = [
            piece for line in made.split("\n") for piece in (textwrap.wrap(line, WIDTH - 4, break_long_words=False, break_on_hyphens=False) or [""])
        ]
        wrapped[0] = f'"""{wrapped[0]}'
        return [f"    {line}".rstrip() for line in [*wrapped, '"""']]


def _notes(head: Header, key: str) -> str:
    """What continues the fields of a key, a line each, with a capital and a full stop."""
    notes = [field.more.removeprefix("(").removesuffix(")") for field in head.fields if field.key == key and field.more]
    return "".join(f"\n{note}." for note in notes)


def _quoted(word: str) -> str:
    return f'"{word}"'


def _python(expression: str) -> str:
    return re.sub("'(.*?)'", r'"\1"', expression)


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
