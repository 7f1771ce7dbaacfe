"""Key folders, metadata and counts of decryptions, of every scheme."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from keyquorum.model.errors import KeyFileError, ParameterError, PolicyError
from keyquorum.model.inspected import Candidate, Kind, Report, openness, require
from keyquorum.model.plain import is_count, is_hex
from keyquorum.plans.epochs.prove import FILE as PROOFS
from keyquorum.plans.noise_check import FILE, MOST_FAILED
from keyquorum.schemes import scheme_of
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.schemes.counts import decryptions_used
from keyquorum.schemes.holding import holding_of, shares_in
from keyquorum.schemes.key_folder import METADATA, check_public_file, holds_a_key, load_key, parse_key
from keyquorum.schemes.keys import KeyInfo

from .private import AGAIN, folder_lines


def _key_lines(info: KeyInfo) -> list[str]:
    first, *more = scheme_of(info).texts.key(info)
    return [first, f"made by {info.parties} parties, {info.protocol}, threshold {info.threshold}{scheme_of(info).texts.noise(info)}", *more]


def _held_lines(path: Path, info: KeyInfo) -> Iterator[str]:
    """Who holds a key that was passed on."""
    held = holding_of(path, info)
    if held.epoch and held.shape != info.shape:
        yield f"held by {held.parties} parties, {held.protocol}, threshold {held.threshold}, since epoch {held.epoch} or before"


def _key_details(info: KeyInfo) -> dict[str, object]:
    return {"key_id": info.key_id, "scheme": info.parameters.scheme, "parameters": info.parameters.name, "files": info.files}


def _key_folder(candidate: Candidate) -> Report:
    path = candidate.path
    info = load_key(path)
    scheme = scheme_of(info)
    lines = [*_key_lines(info), *_held_lines(path, info), *scheme.texts.state(path, info)]
    shares = shares_in(path)
    whole = (shares / "share-0.kqs").exists()
    for i, (name, digest) in enumerate(info.files.items()):
        if (path / name).exists() or i == 0 or whole:  # a copy has the public key at least
            check_public_file(path, info, name)
        lines.append(f"{name} sha256 {digest}" + ("" if (path / name).exists() else ", which is not here"))
    scheme.check_public(path, info)
    return Report([*lines, *folder_lines(shares)], "sha256 of public files and share files", _key_details(info))


def _key_info(candidate: Candidate) -> Report:
    if candidate.path.name == METADATA:
        info = load_key(candidate.path.parent)
    else:
        try:
            info = parse_key(candidate.json)
        except (ValueError, KeyError, TypeError, AttributeError, ParameterError, PolicyError) as error:
            raise KeyFileError(f"{candidate.path}: not the metadata of a key ({error}): {AGAIN}") from None
    return Report(["metadata of a key, as all parties have them", *_key_lines(info)], details=_key_details(info))


def _count(candidate: Candidate) -> Report:
    path = candidate.path
    if candidate.beside("key.json"):
        info = load_key(path.parent)
        used, key_id = decryptions_used(path.parent, info), info.key_id
    else:
        whole = candidate.has("key_id", "used") and is_hex(candidate.json["key_id"], 32) and is_count(candidate.json["used"])
        require(whole, path, 'restore it, or set "used" to the count of another party')
        used, key_id = candidate.json["used"], candidate.json["key_id"]
    return Report([f"count of decryptions of key {key_id}: {used}", *openness(path)], details={"key_id": key_id, "used": used})


def _noise_checks(candidate: Candidate) -> Report:
    path = candidate.path
    whole = candidate.has("key_id", "failed") and is_hex(candidate.json["key_id"], 32) and is_count(candidate.json["failed"])
    require(whole, path, 'restore it, or set "failed" to the count of another party')
    failed, key_id = candidate.json["failed"], candidate.json["key_id"]
    line = f"failed checks of noise under key {key_id}: {failed} of {MOST_FAILED} that are allowed"
    return Report([line, *openness(path)], details={"key_id": key_id, "failed": failed})


def _proofs(candidate: Candidate) -> Report:
    path = candidate.path
    whole = candidate.has("key_id", "runs") and is_hex(candidate.json["key_id"], 32) and is_count(candidate.json["runs"])
    require(whole, path, 'restore it, or set "runs" to the count of another party')
    runs, key_id = candidate.json["runs"], candidate.json["key_id"]
    passed = ", the last one passed" if candidate.json.get("fits") is True else ""
    line = f"tests of shares of key {key_id} against its public key: {runs} of {FIT_RUNS} that are allowed{passed}"
    return Report([line, *openness(path)], details={"key_id": key_id, "runs": runs})


KINDS = (
    Kind(
        "key folder",
        lambda c: c.is_folder and holds_a_key(c.path),
        _key_folder,
        ("schemes/key_folder", "plans/keygen", "plans/epochs/recover", "plans/epochs/carried"),
    ),
    Kind("metadata of a key", lambda c: c.named(METADATA) or c.has("key_id", "transcript", "parameters"), _key_info, ("schemes/key_folder",)),
    Kind("count of decryptions", lambda c: c.named("decryptions.json"), _count, ("schemes/counts",)),
    Kind("count of failed checks of noise", lambda c: c.named(FILE), _noise_checks, ("plans/noise_check",)),
    Kind("count of tests of shares", lambda c: c.named(PROOFS), _proofs, ("plans/epochs/prove",)),
)
