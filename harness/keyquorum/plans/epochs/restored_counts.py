"""Counts that a party which lost its folder gets back from its helpers: decryptions, checks of noise that said no, and tests of shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, ParameterError
from keyquorum.model.plain import Json, is_count, json_loads
from keyquorum.model.subset import decrypts_apart
from keyquorum.plans.epochs.carried import parsed
from keyquorum.plans.epochs.prove import confirmed_tests, proofs_run, raise_count
from keyquorum.plans.noise_check import failed_checks, set_failed_checks
from keyquorum.schemes.counts import DECRYPTIONS, PROOFS, agreed_count, confirmed, decryptions_used, noted_split, set_count
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.quorum_shares import counting_parties

Said = tuple[int | None, int, int, int, int]
"""Of a key at a helper: decryptions (None for keys whose are not counted), refusals by checks of noise, tests of shares; decryptions and tests as noted for a standby."""


def said_counts(committee: Committee, party: int, keys: Json) -> dict[str, Said]:
    """This helper's counts of each key."""
    places = {name: (committee.key_folder(party, name), parsed(held["info"])) for name, held in keys.items()}
    found = dict[str, Said]()
    for name, (folder, info) in places.items():
        noted = noted_split(folder, info)
        used = decryptions_used(folder, info) if info.counted else None
        found[name] = (used, failed_checks(folder, info), proofs_run(folder, info), noted.get(DECRYPTIONS, 0), noted.get(PROOFS, 0))
    return found


def parsed_counts(party: int, data: bytes) -> dict[str, Said]:
    """What a helper sent. Raises EpochError for something else."""
    try:
        found: dict[str, Said] = {key: (used, *others) for key, (used, *others) in json_loads(data).items()}
        if not all((used is None or is_count(used)) and len(others) == 4 and all(map(is_count, others)) for used, *others in found.values()):
            raise ValueError("no counts")
    except (ValueError, TypeError, AttributeError):
        raise EpochError(f"party {party} sent something that is no counts: run the same version everywhere") from None
    return found


@dataclass(frozen=True)
class RestoredCounts:
    """Counts of a key from which a party goes on."""

    decryptions: int
    refusals: int
    tests: int

    @staticmethod
    def of(committee: Committee, info: KeyInfo, said: Mapping[int, Said]) -> RestoredCounts:
        """The largest ones. ``said``: of the helpers by number. Where parties may be malicious, a count that the others deny is refused, as it could use up the key (PolicyError), and the refusals are those that t + 1 helpers
        reach. Whoever helps knows all tests and tries: at least n - t parties count each (:func:`.bridge`), so t + 1 others have one of them. Raises ParameterError for helpers that may not know of all decryptions."""
        apart, tests = decrypts_apart(committee), {party: counts[2] for party, counts in said.items()}
        used = _decryptions(committee, info, said) if info.counted else 0
        refusals = [counts[1] for counts in said.values()]
        failed = max(refusals) if apart else confirmed(refusals, committee.threshold)
        noted = confirmed([max(counts[2], counts[4]) for counts in said.values()], committee.threshold)
        return RestoredCounts(used, failed, max(tests.values()) if apart else confirmed_tests(info, tests, committee.threshold, noted))

    def start(self, folder: Path, info: KeyInfo) -> None:
        """Writes them for a key that the party did not have."""
        if info.counted:
            set_count(folder, info, self.decryptions)
        self._raise(folder, info)

    def raise_there(self, folder: Path, info: KeyInfo) -> None:
        """Brings a party's own counts up to them."""
        if info.counted:
            set_count(folder, info, max(self.decryptions, decryptions_used(folder, info)))
        self._raise(folder, info)

    def _raise(self, folder: Path, info: KeyInfo) -> None:
        if self.refusals > failed_checks(folder, info):
            set_failed_checks(folder, info, self.refusals)
        raise_count(folder, info, self.tests)


def _decryptions(committee: Committee, info: KeyInfo, said: Mapping[int, Said]) -> int:
    """Where parties decrypt without the others, absent ones lag behind, and the largest count has all decryptions if one helper was among the last that counted."""
    used = {party: counts[0] or 0 for party, counts in said.items()}
    if not decrypts_apart(committee):
        known = confirmed([max(used[party], counts[3]) for party, counts in said.items()], committee.threshold)
        return agreed_count([used.get(party, 0) for party in range(committee.size)], committee.threshold, 0, info, known)
    needed = committee.size - counting_parties(committee) + 1
    if len(used) < needed:
        raise ParameterError(
            f"key {info.key_id}: its decryptions are counted, and {len(used)} helpers may not know of all: name {needed} or more with --from"
        )
    return max(used.values())


__all__ = ["RestoredCounts", "Said", "parsed_counts", "said_counts"]
