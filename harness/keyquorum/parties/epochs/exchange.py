"""What parties show each other of several changes: a line of JSON for each (:meth:`.Change.show`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keyquorum.model.errors import EpochError

from .change import Change

MOST_SHOWN = 1 << 20
"""Bytes of the statements that a party shows of a change."""


def show_all(changes: Iterable[Change]) -> bytes:
    """All statements that there are of these changes."""
    return b"".join(change.show() + b"\n" for change in changes)


def hear_all(changes: Sequence[Change], data: bytes, where: str) -> list[EpochError]:
    """Brings what :func:`show_all` gave to the changes that it is of; returns what was wrong, since one bad statement must not keep others from being heard. Lines of other changes count for nothing; it is
    wrong if all are."""
    meant = [(change, line) for line in data.splitlines() for change in changes if change.record.name.encode() in line]
    return [error for change, line in meant or [(changes[0], data)] if (error := _heard(change, line, where))]


def _heard(change: Change, data: bytes, where: str) -> EpochError | None:
    try:
        change.hear(data, where)
    except EpochError as error:
        return error
    return None
