"""How a committee holds a key: what may change while the key, its public files and its metadata stay the same.

``key.json`` names the committee that made a key. Who holds the key is in ``epoch.json`` of the party's folder, which lists every key that was passed on to the party's epoch; the shares of
such a key lie in ``shares-E`` in its folder. A key that is not listed is held as it was made: epoch 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.model.domains import Domain
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError
from keyquorum.model.plain import Json, is_count, is_hex
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties.epochs.record import EPOCH_FILE, Epoch, read_epoch, shares_name

from .keys import KeyInfo, SecretVector

RING_SECRET, LIFT_TESTED = "ring_secret", "lift_tested"
MADE = (RING_SECRET, LIFT_TESTED)
"""Fields of metadata that say how the shares were made, for keys that have them: of committees with MACs alone."""
CORRECT = "correct"
"""Flag of a key whose shares are known to be those that it was made with, as far as its committee's protocol promises: made here, or passed on by a committee for malicious parties that knew it, with the transfer check."""
FLAGS = (*MADE, CORRECT)


@dataclass(frozen=True)
class Holding:
    """A key as its parties have it.

    ``protocol``, ``parties``, ``threshold``: of the committee that holds it; ``vectors``: of which it has shares; ``flags``: names out of :data:`FLAGS`; ``epoch``: number of the epoch;
    ``sharing``: name of the sharing, 32 hexadecimal digits; ``members``: digest of the committee, 64 of them. In epoch 0 both are empty."""

    key_id: str
    protocol: str
    parties: int
    threshold: int
    vectors: tuple[SecretVector, ...]
    flags: tuple[str, ...] = ()
    epoch: int = 0
    sharing: str = ""
    members: str = ""

    @staticmethod
    def as_made(info: KeyInfo) -> Holding:
        """A key in epoch 0."""
        flags = tuple(name for name in MADE if getattr(info, name, False))
        return Holding(info.key_id, info.protocol, info.parties, info.threshold, info.secrets, (*flags, CORRECT))

    @property
    def shape(self) -> CommitteeShape:
        """Protocol, size and threshold of the committee."""
        return CommitteeShape(self.protocol, self.parties, self.threshold)

    def share_header(self, party: int, index: int) -> Json:
        """Header of the share file of a vector."""
        vector = self.vectors[index]
        header: Json = {
            "protocol": self.protocol, "domain": vector.domain, "parties": self.parties, "threshold": self.threshold, "party": party, "key_id": self.key_id, "length": vector.length,
        }  # fmt: skip
        return {**header, "epoch": self.epoch, "sharing": self.sharing, "members": self.members} if self.epoch else header

    def folder(self, key_folder: Path) -> Path:
        """The folder of the share files."""
        return key_folder / shares_name(self.sharing) if self.sharing else key_folder

    @property
    def statement(self) -> bytes:
        """What parties compare before they use shares, besides the metadata: nothing in epoch 0, else number and name, 24 bytes."""
        return self.epoch.to_bytes(8, "little") + bytes.fromhex(self.sharing) if self.epoch else b""

    def to_json(self) -> Json:
        """As ``epoch.json`` has it."""
        return {**vars(self), "vectors": [[v.domain, v.length] for v in self.vectors], "flags": list(self.flags)}

    @staticmethod
    def from_json(data: Json) -> Holding:
        """Inverse of :meth:`to_json`. Raises ValueError, TypeError, KeyError or ParameterError."""
        vectors = tuple(SecretVector(Domain.parse(domain), length) for domain, length in data["vectors"])
        held = Holding(**{**data, "vectors": vectors, "flags": tuple(data["flags"])})
        counts = [held.parties, held.threshold, held.epoch, *(v.length for v in vectors)]
        digits = is_hex(held.key_id, 32) and is_hex(held.sharing, 32) and is_hex(held.members, 64)
        if not digits or not all(map(is_count, counts)) or held.protocol not in PROTOCOLS or not set(held.flags) <= set(FLAGS):
            raise ValueError("entries of other types")
        return held


def epoch_of(key_folder: Path) -> Epoch:
    """The epoch of the party whose folder has this key's. Raises EpochError for a damaged file."""
    return read_epoch(key_folder.parent.parent)


def shares_in(key_folder: Path) -> Path:
    """The folder of a key's share files in the party's epoch. Raises EpochError."""
    held = epoch_of(key_folder).keys.get(key_folder.name)
    return key_folder if held is None else key_folder / shares_name(held["sharing"])


def check_hold(numbers: Iterable[int], here: Epoch, cure: str = "or leave it out (--parties)", keys: Iterable[str] | None = None) -> None:
    """Refuses parties with these numbers that were absent when the shares of an epoch were made, and have none since, or whose shares are untested. ``cure``: another one than to recover them; ``keys``: those that are used, by default all. Raises EpochError."""
    for number in sorted(set(numbers) & set(here.untested)):
        raise EpochError(
            f"party {number} took no part in the test after which shares of epoch {here.number} were recovered, and its own may not fit: keyquorum refresh-shares COMMITTEE --absent {','.join(map(str, here.untested))} first, {cure}"
        )
    if keys is not None and not set(keys) & set(here.keys):
        return  # made in this epoch, by all parties
    for number in sorted(set(numbers) & set(here.missing)):
        raise EpochError(
            f"party {number} was absent when the shares of epoch {here.number} were made, and has none: keyquorum recover COMMITTEE {number} first, {cure}"
        )


def holding_of(key_folder: Path, info: KeyInfo) -> Holding:
    """How the party whose folder has this key holds it. Raises EpochError for a damaged file, and KeyFileError for another key of this name."""
    data = epoch_of(key_folder).keys.get(key_folder.name)
    if data is None:
        return Holding.as_made(info)
    path = key_folder.parent.parent / EPOCH_FILE
    try:
        held = Holding.from_json(data)
    except (ValueError, TypeError, KeyError, ParameterError) as error:
        raise EpochError(f"{path}: key {key_folder.name}: damaged ({error}): restore it from a backup of this party") from None
    if held.key_id != info.key_id:
        raise KeyFileError(
            f"{key_folder}: the key {info.key_id}, but {path} lists {held.key_id}: restore the folder of the key from a backup of this epoch"
        )
    return held


def held_flags(info: KeyInfo, held: Holding) -> Json:
    """The fields of metadata that say how the shares were made, as they are true of this holding."""
    return {name: name in held.flags for name in MADE if hasattr(info, name)}


def require_shares(vectors: tuple[SecretVector, ...], committee: Committee) -> tuple[SecretVector, ...]:
    """Refuses vectors of which a committee has no shares. Returns them. Raises ParameterError."""
    for vector in vectors:
        domain = Domain.parse(vector.domain)
        if domain.prime is None and committee.ring_protocol is None:
            raise ParameterError(
                f"{committee.protocol} shares over prime fields alone, and this key has shares over {domain}: choose a committee with a ring"
            )
        if domain.prime is not None and domain.bits > 64 and not PROTOCOLS[committee.field_protocol].wide_fields:
            raise ParameterError(
                f"{committee.protocol} has no shares modulo primes of {domain.bits} bits, which this key has: choose another committee"
            )
    return vectors


__all__ = [
    "CORRECT",
    "FLAGS",
    "LIFT_TESTED",
    "RING_SECRET",
    "Holding",
    "check_hold",
    "epoch_of",
    "held_flags",
    "holding_of",
    "require_shares",
    "shares_in",
]
