"""Examines the keys and pools of a party: that every file is there, whole, its own, and closed to others. For ``keyquorum doctor``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from keyquorum._engine import EngineError
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyFileError, KeyQuorumError, MovedError
from keyquorum.parties.doctor import Finding
from keyquorum.schemes import scheme_of
from keyquorum.schemes.base import EXACT
from keyquorum.schemes.counts import SPLIT_FILE, decryptions_used
from keyquorum.schemes.holding import shares_in
from keyquorum.schemes.key_folder import METADATA, check_made_by, check_public_file, holds_a_key, load_key, load_shares
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.subset_shares import SUBSETS, SubsetSharing, check_shares

from .pool_store import pool_status
from .pools import pools_folder

PRIVATE = ("*.kqs", "decryptions.json", "approved.json", "noise-checks.json", "proofs.json", SPLIT_FILE, SUBSETS)
"""Files of a key that only its party may read."""


def examine_keys(committee: Committee, parties: Sequence[int]) -> Iterator[Finding]:
    """Looks at every key and pool of ``parties``, all on this host; and whether they have the same keys."""
    seen: dict[str, tuple[int, bytes]] = {}
    shared: dict[str, tuple[int, SubsetSharing | None]] = {}
    for party in parties:
        for folder in sorted(p for p in (committee.party_folder(party) / "keys").glob("*") if p.is_dir()):
            if not holds_a_key(folder):
                yield Finding(False, f"party {party}: {folder} holds no key: a key generation did not end; remove it if none is under way")
                continue
            try:
                info, found = _examine_key(committee, party, folder)
                first, digest = seen.setdefault(folder.name, (party, info.digest))
                if digest != info.digest:
                    raise KeyFileError(f"{folder}: its metadata is not that of party {first}: restore {METADATA} from a backup")
                sharing = check_shares(folder, info, party)
                other, known = shared.setdefault(folder.name, (party, sharing))
                if known != sharing:
                    raise KeyFileError(
                        f"its shares for subsets are not of the run that those of party {other} are of: keyquorum share makes them anew"
                    )
                if sharing is not None:
                    found += f", shares for every {sharing.members} parties"
                reason = scheme_of(info).undecryptable(info, committee)
                if reason:
                    raise KeyFileError(f"nothing that is encrypted under it can be decrypted: {reason}")
                yield Finding(True, f"party {party}: key {folder.name} ({info.key_id}): {found}")
            except MovedError as moved:
                yield Finding(True, f"party {party}: key {folder.name}: {moved}")
            except (KeyQuorumError, EngineError, OSError) as error:
                yield Finding(False, f"party {party}: key {folder.name}: {error}")
        yield from _pools(committee, party)
    for party in parties:
        for name in seen:
            folder = committee.party_folder(party) / "keys" / name
            if not folder.is_dir():
                yield Finding(
                    False, f"party {party}: {folder} is missing, party {seen[name][0]} has this key: restore it from a backup of party {party}"
                )


def _examine_key(committee: Committee, party: int, folder: Path) -> tuple[KeyInfo, str]:
    """The metadata, and what was found in order."""
    info = load_key(folder)
    scheme = scheme_of(info)
    check_made_by(committee, info, folder, leaving=True)
    for share in load_shares(folder, info, party):
        share.wipe()
    scheme.check_public(folder, info)
    for name in info.files:
        check_public_file(folder, info, name)
    said = scheme.texts.shares(info)
    limit = info.most_decryptions(EXACT)
    if limit is not None:
        said += f", {decryptions_used(folder, info)} of {limit} decryptions used"
    _check_modes(folder)
    return info, said


def _check_modes(folder: Path) -> None:
    folders = sorted({folder, shares_in(folder)})
    for path in (*folders, *(path for place in folders for pattern in PRIVATE for path in sorted(place.glob(pattern)))):
        if path.stat().st_mode & 0o077:
            raise KeyFileError(f"{path} is open to others: run chmod {700 if path in folders else 600} {path}")


def _pools(committee: Committee, party: int) -> Iterator[Finding]:
    try:
        place = pools_folder(committee, party)
    except EpochError:
        return  # the examination of epochs tells it
    for folder in sorted(p for p in place.glob("*") if (p / "pool.json").exists()):
        try:
            made, used = pool_status(folder)
            yield Finding(True, f"party {party}: pool {folder.name}: {max(0, made - used):,} items left of {made:,}")
        except (KeyQuorumError, EngineError, OSError) as error:
            yield Finding(False, f"party {party}: pool {folder.name}: {error}")
