"""Rows from headers: a program whose results depend on its inputs alone states a sample, and runs with random inputs (docs/pages/adding-a-program.md)."""

from __future__ import annotations

from collections.abc import Iterator

from keyquorum.model.errors import ProgramError
from keyquorum.programs import Call
from keyquorum.programs.header import Header, collection, header

COUNTS = ("private", "public", "shares", "stores")
"""Words of a sample that are no arguments: private words of each contributor, public words, stored shares before the run, and shares that it appends."""
BITS = 20
"""Of a random input."""


def sample_of(head: Header, text: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """The arguments of a sample in the order of the command line, and its counts. Raises ProgramError for a sample that does not fit the header."""
    given = dict(word.partition("=")[::2] for word in text.split())
    counts = {name: int(given.pop(name, 0)) for name in COUNTS}
    if list(given) != [argument.name for argument in head.arguments][: len(given)]:
        raise ProgramError(
            f"{head.program}: sample {text!r}: write the first arguments in their order as name=value, then counts: {', '.join(COUNTS)}"
        )
    return tuple(given.values()), counts


def samples() -> Iterator[tuple[Call, str, dict[str, int]]]:
    """Of each program whose header has a sample: the call, the variant, and the counts."""
    for program in collection():
        head = header(program)
        for variant, text in head.values("sample").items():
            words, counts = sample_of(head, text)
            yield Call(program, words, {}), variant, counts


__all__ = ["BITS", "COUNTS", "sample_of", "samples"]
