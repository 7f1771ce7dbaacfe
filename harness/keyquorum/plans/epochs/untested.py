"""Which members have shares that may not fit to those of others: what parties note of tested recoveries with fewer than 2t helpers (:func:`.determines`).

There corrupt helpers may bring the lost parties onto another polynomial of the same secret, of which a share of before is none: a few parties with shares of both would accept a wrong result. So before anything
is sent all that take part note who does not, as *untested*, and whom they recover. A refresh ends both. An untested party that keeps no share may be recovered itself. And if all that were recovered so are lost again, and keep
no share, nobody has a share of another polynomial, and nobody is untested.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import is_count, json_loads
from keyquorum.parties.epochs import Epoch, read_epoch
from keyquorum.parties.epochs.record import write_epoch
from keyquorum.plans.epochs.helpers import must_test
from keyquorum.schemes.holding import check_hold
from keyquorum.schemes.key_folder import holds_a_key

NOTES = ("untested", "recovered")
"""Fields of an epoch."""


def with_notes(here: Epoch, untested: Iterable[int], recovered: Iterable[int]) -> Epoch:
    """The epoch with other notes."""
    return replace(here, untested=tuple(sorted(set(untested))), recovered=tuple(sorted(set(recovered))))


def is_undone(here: Epoch, lost: Collection[int]) -> bool:
    """Whether all that were recovered so are lost again."""
    return bool(here.recovered) and set(here.recovered) <= set(lost)


def for_recovery(here: Epoch, lost: Collection[int]) -> Epoch:
    """The epoch as a recovery has it, if these lost parties keep no share."""
    return with_notes(here, (), ()) if is_undone(here, lost) else here


def without_shares(missing: Mapping[int, list[str]], keys: Collection[str]) -> set[int]:
    """Lost parties that keep no share. ``missing``: keys of which each says that it lacks shares; ``keys``: all."""
    return {lost for lost, names in missing.items() if set(names) >= set(keys)}


def check_helpers(committee: Committee, helpers: Collection[int], here: Epoch, away: Collection[int]) -> None:
    """Refuses helpers that have no shares, or whose shares may not fit, and tested recoveries in which such parties take part. ``away``: those that are absent or lost. Raises EpochError."""
    check_hold(helpers, here, "and name other helpers with --from")
    if must_test(committee, list(helpers)):
        check_hold(set(here.untested) - set(away), here, "or repeat that recovery without it")


def said_notes(here: Epoch) -> bytes:
    """What a helper says of them."""
    return json.dumps([here.untested, here.recovered]).encode()


class HeardNotes:
    """What helpers said. A number counts if so many said it that one of them is honest, or all honest ones: those have the notes of all recoveries by which they got shares, or in which they helped."""

    def __init__(self, committee: Committee, helpers: Collection[int]) -> None:
        self._size, self._needed = committee.size, max(1, len(helpers) - committee.threshold)
        self._said = [Counter[int]() for _ in NOTES]

    def add(self, party: int, data: bytes) -> None:
        """Takes what a helper sent. Raises EpochError for something else."""
        found = None
        with suppress(ValueError):
            found = json_loads(data)
        proper = isinstance(found, list) and len(found) == len(NOTES)
        if not proper or not all(isinstance(each, list) and all(is_count(n) and n < self._size for n in each) for each in found or ()):
            raise EpochError(f"party {party} sent something that is not numbers of parties: run the same version everywhere")
        for counter, numbers in zip(self._said, found or (), strict=True):
            counter.update(set(numbers))

    def counted(self) -> list[set[int]]:
        """The numbers that count, of each note."""
        return [{number for number, times in counter.items() if times >= self._needed} for counter in self._said]


class Notes:
    """A party's notes in a recovery. ``absent``: who takes no part; ``noted``: whether the helpers do not determine the shares."""

    def __init__(self, committee: Committee, party: int, lost: Collection[int], absent: Collection[int], noted: bool) -> None:
        self._committee, self._party, self._folder = committee, party, committee.party_folder(party)
        self._lost, self._away, self._absent = set(lost), set(absent), set(absent) if noted else None
        self._noted: Epoch | None = None
        self._known: Epoch | None = None

    def agree(self, missing: Mapping[int, list[str]], keys: Collection[str], helpers: Collection[int]) -> None:
        """At a helper, when the lost parties said of which ``keys`` they lack shares. Raises EpochError for parties whose shares may not fit."""
        self._known = here = read_epoch(self._folder)
        lacking = without_shares(missing, keys)
        if is_undone(here, lacking):
            self._known = with_notes(here, (), ())
            return
        check_helpers(self._committee, helpers, here, {*self._away, *missing})
        for lost in sorted((set(here.untested) & set(missing)) - lacking):
            kept = sorted(set(keys) - set(missing[lost]))
            check_hold([lost], here, f"or move its folder of key {kept[0]} away")

    def hear(self, heard: HeardNotes, missing: Mapping[int, list[str]], keys: Collection[str]) -> None:
        """At a lost party: what helpers said holds for shares that they send, and what it knows itself for those that it keeps."""
        kept = {path.name for path in (self._folder / "keys").glob("*") if holds_a_key(path)} - set(missing[self._party])
        here, others = read_epoch(self._folder), with_notes(read_epoch(self._folder), *heard.counted())
        if is_undone(others, without_shares(missing, keys)):
            others = with_notes(others, (), ())
        own = here if kept else with_notes(here, (), ())
        self._known = with_notes(here, {*own.untested, *others.untested}, {*own.recovered, *others.recovered})

    def begin(self) -> None:
        """Before anything is sent: who is untested if the run breaks off."""
        if self._absent is None:
            return
        self._noted = here = read_epoch(self._folder)
        write_epoch(self._folder, with_notes(here, {*here.untested, *self._absent}, {*here.recovered, *self._lost}))

    def take_back(self) -> None:
        """The run broke off before anybody can have kept a share."""
        if self._noted is not None:
            write_epoch(self._folder, self._noted)

    def end(self, missing: Collection[int] | None = None) -> None:
        """The lost parties have shares that fit to those of all that took part, or are about to keep them. ``missing``: also who has no shares of this epoch."""
        here = read_epoch(self._folder)
        known = self._known or here  # who neither helps nor is lost has what it had
        absent, lost = (set[int](), set[int]()) if self._absent is None else (self._absent, self._lost)
        after = with_notes(here, ({*known.untested} | absent) - self._lost, {*known.recovered} | lost)
        after = after if missing is None else replace(after, missing=tuple(sorted(missing)))
        if after != here:
            write_epoch(self._folder, after)


__all__ = ["HeardNotes", "Notes", "check_helpers", "for_recovery", "said_notes"]
