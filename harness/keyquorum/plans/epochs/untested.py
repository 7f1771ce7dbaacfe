"""Which members have shares that may not fit to those of others: what parties note of tested recoveries with fewer than 2t helpers (:func:`.determines`).

There corrupt helpers may bring the lost parties onto another polynomial of the same secret, of which a share of before is none: a few parties with shares of both would accept a wrong result. So before anything
is sent all that take part note who does not, as *untested*, and whom they recover. While anybody is untested, all that are recovered are noted. A refresh ends both. An untested party that keeps no share may be recovered itself.
And if all that were recovered are lost again, and keep no share, or are absent, none but the absent ones may have a share of another polynomial: they are untested then, and the others are not.
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


def for_recovery(here: Epoch, lost: Collection[int], absent: Collection[int]) -> Epoch:
    """The epoch as a recovery has it, if these lost parties keep no share. Where none but absent parties may have a share of another polynomial, these are untested, and nobody else is."""
    if not here.recovered or set(here.recovered) - {*lost, *absent}:
        return here
    return with_notes(here, set(here.recovered) & set(absent), ())


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
    """What helpers said. A number counts if |H| - t of them said it, as all honest ones do: those have the notes of all recoveries by which they got shares, or in which they helped. No helper is untested, as they do not
    help beside one: so t corrupt ones add nobody whose shares are needed."""

    def __init__(self, committee: Committee, helpers: Collection[int]) -> None:
        self._helpers = set(helpers)
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
        untested, recovered = ({number for number, times in counter.items() if times >= self._needed} for counter in self._said)
        return [untested - self._helpers, recovered]


class Notes:
    """A party's notes in a recovery. ``absent``: who takes no part; ``noted``: whether the helpers do not determine the shares."""

    def __init__(self, committee: Committee, party: int, lost: Collection[int], absent: Collection[int], noted: bool) -> None:
        self._committee, self._party, self._folder = committee, party, committee.party_folder(party)
        self._lost, self._away, self._noted = set(lost), set(absent), noted
        self._known: Epoch | None = None
        self._before: Epoch | None = None

    def agree(self, missing: Mapping[int, list[str]], keys: Collection[str], helpers: Collection[int]) -> None:
        """At a helper, when the lost parties said of which ``keys`` they lack shares. Raises EpochError for parties whose shares may not fit."""
        lacking = without_shares(missing, keys)
        self._known = known = for_recovery(read_epoch(self._folder), lacking, self._away)
        check_helpers(self._committee, helpers, known, {*self._away, *missing})
        for lost in sorted((set(known.untested) & set(missing)) - lacking):
            kept = sorted(set(keys) - set(missing[lost]))
            check_hold([lost], known, f"or move its folder of key {kept[0]} away")

    def hear(self, heard: HeardNotes, missing: Mapping[int, list[str]], keys: Collection[str]) -> None:
        """At a lost party: what helpers said holds for shares that they send, and what it knows itself for those that it keeps."""
        kept = {path.name for path in (self._folder / "keys").glob("*") if holds_a_key(path)} - set(missing[self._party])
        here = read_epoch(self._folder)
        others = for_recovery(with_notes(here, *heard.counted()), without_shares(missing, keys), self._away)
        own = here if kept else with_notes(here, (), ())
        self._known = with_notes(here, {*own.untested, *others.untested}, {*own.recovered, *others.recovered})

    def begin(self) -> None:
        """Before anything is sent: what holds if the run breaks off. While anybody is untested, who is recovered may have a share of another polynomial."""
        here = read_epoch(self._folder)
        self._before = here if self._noted else None
        base = here if self._party in self._lost or self._known is None else self._known
        self._write(here, self._grown(base))

    def _grown(self, base: Epoch) -> Epoch:
        untested = {*base.untested, *(self._away if self._noted else ())}
        return with_notes(base, untested, {*base.recovered, *(self._lost if self._noted or base.untested else ())})

    def _write(self, here: Epoch, after: Epoch) -> None:
        if after != here:
            write_epoch(self._folder, after)

    def take_back(self) -> None:
        """The run broke off before anybody can have kept a share."""
        if self._before is not None:
            write_epoch(self._folder, self._before)

    def end(self, missing: Collection[int] | None = None) -> None:
        """The lost parties have shares that fit to those of all that took part, or are about to keep them. ``missing``: also who has no shares of this epoch."""
        here = read_epoch(self._folder)
        after = self._grown(self._known or here)  # who neither helps nor is lost has what it had
        after = with_notes(here, set(after.untested) - self._lost, after.recovered)
        self._write(here, after if missing is None else replace(after, missing=tuple(sorted(missing))))


__all__ = ["HeardNotes", "Notes", "check_helpers", "for_recovery", "said_notes"]
