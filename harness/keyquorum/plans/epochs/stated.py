"""What each old member of a resharing says of its keys beyond what all say alike: counts, public files beside a key, and whether its shares are known to be right. A verifying committee's word is that of t + 1 members."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.bridge import Bridge
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import NAME_DIGITS
from keyquorum.model.errors import EpochError, KeyFileError
from keyquorum.model.inspected import sha256_of
from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.plans.epochs.counts import Counts, agreed_counts, agreed_recent, counts_of, recent_of
from keyquorum.plans.epochs.origins import is_assumed
from keyquorum.schemes.counts import noted_split
from keyquorum.schemes.holding import FLAGS
from keyquorum.schemes.keys import KeyInfo

BESIDE = "round-keys-*.lwe"
"""Public files beside a key that its metadata do not list."""
ORIGIN_DIGITS = 32
"""Hexadecimal digits of the name of the run that shares are of."""
Files = Mapping[str, tuple[int, str]]
"""Of files by name: bytes, and SHA-256 in hexadecimal digits."""


@dataclass(frozen=True)
class Stated:
    """Of one key: the ``counts`` from which new members go on, lines of what was counted in the last hour (``recent``), the files ``beside`` it that they get, and whether honest old members know that their shares are those of the key (``correct``)."""

    counts: Counts
    recent: list[Json]
    beside: Files
    correct: bool


def is_proper(said: Json) -> bool:
    """Whether what old members say has the entries of their types that they have: epoch, origin and keys."""
    try:
        (number, name), origin = said["epoch"], said["origin"]
        proper = is_count(number) and (is_hex(name, NAME_DIGITS) if number else name == "") and all(isinstance(text, str) for text in origin)
        for key in said["keys"].values():
            sizes, flags = key["sizes"], key["holding"]["flags"]
            proper = proper and isinstance(key["holding"]["vectors"], list) and set(flags) <= set(FLAGS) and set(sizes) == set(key["info"]["files"])
            proper = proper and key["holding"]["protocol"] in PROTOCOLS and is_count(key["holding"]["epoch"])
            proper = proper and all(map(is_count, sizes.values())) and all(is_hex(name, ORIGIN_DIGITS) for name in key["origins"])
            proper = proper and len(key["origins"]) in (0, len(key["holding"]["vectors"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    return proper


def statement(committee: Committee, party: int, infos: Mapping[str, KeyInfo]) -> bytes:
    """What an old member says."""
    said = {}
    for name, info in infos.items():
        folder = committee.key_folder(party, name)
        beside = {path.name: [path.stat().st_size, sha256_of(path).hex()] for path in sorted(folder.glob(BESIDE))}
        said[name] = {
            "counts": counts_of(folder, info),
            "noted": noted_split(folder, info),
            "recent": recent_of(folder, info),
            "beside": beside,
            "assumed": is_assumed(committee, party, name),
        }
    return json.dumps(said).encode()


def agreed(between: Bridge, infos: Mapping[str, KeyInfo], said: Sequence[bytes], known: bool = True) -> dict[str, Stated]:
    """What follows from the statements of the old members, in the order of the session. ``known``: whether they can know that their shares are right. Raises EpochError, KeyFileError or PolicyError."""
    old, numbers = between.sides[0], between.numbers
    parsed = [_parsed(between.title(party), said[party], infos) for party in between.olds]
    found = {}
    for name, info in infos.items():
        counts, noted = ({number: parsed[party][name][what] for party, number in enumerate(numbers)} for what in ("counts", "noted"))
        agreed_on = agreed_counts(old, info, counts, noted)
        beside = _agreed_files(between, name, [parsed[party][name]["beside"] for party in between.olds])
        recent = agreed_recent(old, info, {number: parsed[party][name]["recent"] for party, number in enumerate(numbers)})
        shown = sum(not parsed[party][name]["assumed"] for party in between.olds)
        if old.threshold == old.size - 1 and old.malicious and 0 < shown < len(parsed):
            _refuse_alone(between, name, [parsed[party][name]["assumed"] for party in between.olds])
        found[name] = Stated(agreed_on, recent, beside, known and old.malicious and shown > old.threshold)
    return found


def _refuse_alone(between: Bridge, key: str, assumed: Sequence[bool]) -> None:
    """Members that are right if one is: their records of the key's origin are the same. So who says something else would take the mark from it for ever. Raises EpochError."""
    yes, no = between.title(assumed.index(True)), between.title(assumed.index(False))
    raise EpochError(
        f"key {key}: {yes} says that nothing shows its shares to be right, and {no} that something does: keyquorum doctor at both; nothing was passed on"
    )


def _parsed(title: str, content: bytes, infos: Mapping[str, KeyInfo]) -> Json:
    try:
        said = json_loads(content)
        proper = said.keys() == infos.keys() and all(each.keys() == {"counts", "noted", "recent", "beside", "assumed"} for each in said.values())
        proper = proper and all(type(each["assumed"]) is bool and all(map(is_count, each["noted"].values())) for each in said.values())
        for each in said.values() if proper else ():
            each["beside"] = {name: (size, digest) for name, (size, digest) in each["beside"].items()}
            proper = proper and all(Path(name).name == name and Path(name).match(BESIDE) for name in each["beside"])
            proper = proper and all(is_count(size) and is_hex(digest, 64) for size, digest in each["beside"].values())
    except (ValueError, TypeError, AttributeError, KeyError):
        proper = False
    if not proper:
        raise EpochError(f"{title} sent something that is not counts and public files of the keys: run the same version everywhere")
    return dict(said)


def _agreed_files(between: Bridge, key: str, said: Sequence[Files]) -> Files:
    """The files that the first old member has and sends, if all that have one of a name have the same, and so many that an honest one is among them."""
    old = between.sides[0]
    least = old.threshold + 1 if old.malicious else 1
    for name, stated in said[0].items():
        having = [party for party, files in enumerate(said) if name in files]
        for party in having:
            if said[party][name] != stated:
                raise KeyFileError(f"key {key}: {between.title(0)} and {between.title(party)} have different files {name}: move the wrong one away")
        if len(having) < least:
            raise KeyFileError(
                f"key {key}: {len(having)} members have {name}, and {least} must state the same one, as {old.threshold} may be corrupt: copy it to others, or move it away"
            )
    return said[0]


__all__ = ["BESIDE", "Stated", "agreed", "is_proper", "statement"]
