"""Tries to make a vector that the old committee of a resharing does not have (:meth:`.KeyScheme.make_last`). Each opens less than a test of shares against the public key, and is counted as one, by all old members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PolicyError
from keyquorum.parties.context import PartyContext
from keyquorum.plans.epochs.prove import raise_count
from keyquorum.plans.epochs.stated import Stated
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.schemes.counts import PROOFS
from keyquorum.schemes.keys import KeyInfo

KEPT_BACK = 4
"""Tests of a key that no try uses up. A member of either committee can end tries as often as somebody begins one, and where recoveries test shares, a key without tests left is lost with the next disk. Not more
are kept back: a standby begins with half of all tests, and must be able to pass the key on to a committee with MACs."""
MOST_TRIES = FIT_RUNS - KEPT_BACK
"""Tests and tries of a key from which on it has no more tries."""


@dataclass(frozen=True)
class Tries:
    """The tries of one resharing. ``runs``: by key, what the old members have counted when they have counted this try as well."""

    runs: Mapping[str, int]

    @staticmethod
    def of(infos: Mapping[str, KeyInfo], stated: Mapping[str, Stated], made: Mapping[str, bool]) -> Tries:
        """``stated``: of the old members, before a standby gets a part of their counts; ``made``: whether the new members make a vector of a key. Raises PolicyError for a key without tries left."""
        runs = {key: stated[key].counts[PROOFS] for key in infos if made[key]}
        for key, used in runs.items():
            if used >= MOST_TRIES:
                raise PolicyError(
                    f"key {infos[key].key_id}: its shares were tested {used} times, tries to pass it on to a committee with MACs included, and {KEPT_BACK} of {FIT_RUNS} tests are kept back for recoveries: "
                    "choose a committee without MACs, or make a new key"
                )
        return Tries({key: used + 1 for key, used in runs.items()})

    def counted(self, key: str, stated: Stated) -> Stated:
        """What new members go on from: with this try."""
        return replace(stated, counts={**stated.counts, PROOFS: stated.counts[PROOFS] + 1}) if key in self.runs else stated

    def count(self, context: PartyContext, old: tuple[Committee, int] | None, infos: Mapping[str, KeyInfo], digest: bytes) -> None:
        """Counts the try at every old member, after the transfer check and before anything of a secret is opened: all wait until all have. Before that all bring their counts up to what they agreed on: so who breaks off sets
        honest members one apart and no more. Whoever breaks off before the transfer check has passed uses up nothing. ``old``: the committee of an old member, and its number. Rounds: 2."""
        for name, added in (("counts of tries", 0), ("tries counted", 1)):
            if old is not None:
                for key, runs in self.runs.items():
                    raise_count(old[0].key_folder(old[1], key), infos[key], runs - 1 + added)
                reached("reshare/counted" if added else "reshare/level")
            context.session.compare(name, digest)


__all__ = ["KEPT_BACK", "MOST_TRIES", "Tries"]
