"""Where the keys of a committee come from, and what follows: which committees had them, and whether anything shows that the shares which came from another one are those of the key.

A key that a committee made has the shares that it was made with. One that was passed on is *correct* if the committee before verifies products, knew its own shares to be right, and the transfer check passed:
then its holding says so. After another committee it is *assumed* to be right, until ``keyquorum epoch prove`` has tested the shares against the public key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties.epochs import read_epoch
from keyquorum.parties.epochs.record import origin_of
from keyquorum.plans.epochs.passage import Passage
from keyquorum.plans.epochs.prove import shown_to_fit
from keyquorum.schemes.holding import CORRECT, LIFT_TESTED, RING_SECRET
from keyquorum.schemes.key_folder import holds_a_key, load_key
from keyquorum.schemes.keys import KeyInfo

SEMI_HONEST = "semi-honest"
"""The adversary of committees whose parties follow the protocol."""


BURNED = "burned"
"""Accepted of an old committee with MACs: its members do not use their MACs, as one of their keys is burned. It passes keys on as one whose parties follow the protocol does."""
BURNED_ORIGIN = f"passed on without MACs, as a MAC key was burned, which makes it {SEMI_HONEST}"
"""What the origin says of such a committee."""

KEPT_ORIGIN = "a committee that keeps its shares, "
"""Begins what the origin says of one that has a standby."""


def check_origin(old: Committee, new: Committee, accepted: str | None) -> None:
    """Refuses to pass keys of a committee whose parties follow the protocol on to one for malicious parties, unless this is ``accepted``: nothing can show there that they are right, or that nobody knows them. Raises ParameterError."""
    if accepted not in (None, SEMI_HONEST, BURNED):
        raise ParameterError(f"--accept-origin {accepted}: the only origin to accept is {SEMI_HONEST}, or {BURNED} of a committee with MACs")
    if accepted == BURNED and not old.authenticated:
        raise ParameterError(f"--accept-origin {BURNED}: {old.name} is of {old.protocol}, which has no MAC key: leave it out")
    if new.malicious and not old.malicious and accepted is None:
        raise ParameterError(
            f"{old.name} is of {old.protocol}, whose parties follow the protocol, and {new.name} of {new.protocol}: {new.name} could not promise more for these keys than {old.name} did: "
            f"make new keys there, or give --accept-origin {SEMI_HONEST}"
        )


def made_flags(info: KeyInfo, before: Json, origin: Sequence[str], passed: Passage, correct: bool) -> tuple[str, ...]:
    """Flags of a new holding of vectors that come so. ``before``: how the old committee holds it, whose origin is ``origin``; ``correct``: whether the shares are known to be those of the key. The secret of a key of CKKS is the same integer modulo all
    primes if the old committee knew this: it verifies products and made the key, has tested its shares against the public key, got them with this flag, or got them right from one that verifies products and made the key."""
    kept = RING_SECRET in before["flags"] and len(passed.vectors) == len(before["vectors"])
    ring = (RING_SECRET,) if kept or passed.made else ()
    if not correct:
        return ring
    tested = CORRECT not in before["flags"] and any(text.endswith(SEMI_HONEST) for text in origin[:-1])
    one = LIFT_TESTED in before["flags"] or (not PROTOCOLS[before["protocol"]].macs and (not before["epoch"] or tested))
    one |= CORRECT in before["flags"] and PROTOCOLS[info.protocol].verifies_products
    return (*ring, LIFT_TESTED, CORRECT) if one and info.parameters.scheme == "ckks" else (*ring, CORRECT)


def _tested(committee: Committee) -> str:
    """How shares that are only assumed to be right are tested, for people."""
    if committee.capabilities.macs:
        return f"pass the keys on to a committee without MACs and test the shares there with keyquorum epoch prove ({committee.protocol} has no such test)"
    return "test the shares with keyquorum epoch prove"


def origin_weaknesses(old: Committee, new: Committee, accepted: str | None = None) -> list[str]:
    """What users of the keys lose by passing them on, for a warning."""
    found = []
    if old.malicious and not new.malicious:
        found.append(
            f"{new.name} is of {new.protocol}: from now on these keys are for parties that follow the protocol, and this stays in their origin"
        )
    if new.malicious and not old.malicious:
        found.append(
            f"{old.name} is of {old.protocol}: a member that deviated may know these keys, or have changed them, and {new.name} cannot promise more: {_tested(new)}, or make new keys"
        )
    if accepted == BURNED:
        found.append(
            f"{old.name} passes keys on without its MACs: one of its members can change them, and learn of them from wrong decryptions: before anybody decrypts {_tested(new)}, or make new keys"
        )
    if new.threshold == new.size - 1:
        found.append(
            f"{new.name} is of {new.protocol}: all {new.size} parties hold a share that nobody else can make, and a lost one is a lost key: keep backups"
        )
    return found


def is_assumed(committee: Committee, party: int, key: str) -> bool:
    """Whether nothing shows that a party's shares of a key, which another committee passed on, are those of the key. Raises EpochError, and KeyFileError for a damaged count of tests."""
    folder = committee.party_folder(party)
    held = read_epoch(folder).keys.get(key)
    here = committee.digest.hex()
    if held is None or held.get("members", here) != here or CORRECT in held.get("flags", ()):
        return False
    if not any(text.endswith(SEMI_HONEST) for text in origin_of(committee, folder)[:-1]):
        return False
    place = committee.key_folder(party, key)
    return not shown_to_fit(place, load_key(place))


def assumed_keys(committee: Committee, party: int) -> list[str]:
    """The keys of a party of which :func:`is_assumed` is true."""
    folders = sorted(path for path in (committee.party_folder(party) / "keys").glob("*") if holds_a_key(path))
    return [path.name for path in folders if is_assumed(committee, party, path.name)]


def origin_lines(committee: Committee, party: int) -> Iterator[str]:
    """Which committees held the keys of a party before, for people; none where no other one did. Raises EpochError or KeyFileError."""
    said = origin_of(committee, committee.party_folder(party))
    for number, text in enumerate(said) if len(said) > 1 else ():
        yield f"party {party}: keys were {'made by' if number == 0 else 'passed on to'} {text}"
    for key in assumed_keys(committee, party):
        yield f"party {party}: key {key}: correct: assumed: nothing shows that a committee before passed on the right shares ({'there is no test with MACs' if committee.capabilities.macs else 'keyquorum epoch prove tests keys for SEAL'})"


def require_correct(committee: Committee, party: int, key: str, accepted: bool) -> str:
    """Refuses to serve a key that is only assumed to be right in a committee for malicious parties, unless it is ``accepted``. Returns what to say of the key's origin; empty where there is nothing. Raises KeyFileError."""
    if not is_assumed(committee, party, key):
        return ""
    said = f"key {key}: correct: assumed: a committee of semi-honest parties had it before"
    if committee.malicious and not accepted:
        raise KeyFileError(f"{said}, and {committee.protocol} promises more: {_tested(committee)}, make a new key, or serve it with --accept-assumed")
    return said


__all__ = [
    "BURNED",
    "BURNED_ORIGIN",
    "KEPT_ORIGIN",
    "SEMI_HONEST",
    "assumed_keys",
    "check_origin",
    "is_assumed",
    "made_flags",
    "origin_lines",
    "origin_weaknesses",
    "require_correct",
]
