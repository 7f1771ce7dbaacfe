"""SEAL's files, receipts and approvals to ``keyquorum inspect``."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from keyquorum.fhe.errors import SealFormatError
from keyquorum.fhe.parameters import ParameterSet, list_parameter_sets
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext, read_public_key, read_switch_keys
from keyquorum.fhe.seal_parms import Parms, read_parms
from keyquorum.model.errors import CiphertextError
from keyquorum.model.inspected import STRUCTURE, Candidate, Kind, Report, openness, require
from keyquorum.model.plain import is_hex
from keyquorum.schemes.key_folder import load_public_file

from .approvals import approved
from .foreign import FOREIGN, sets_near
from .key import PARMS, load_seal_key
from .noise import Noise
from .policy import FloodPolicy
from .precision import expectation, key_precision, precision

SEAL_MAGIC = b"\x5e\xa1"
SEAL_CIPHERTEXT, SEAL_PUBLIC, SEAL_SWITCH, SEAL_PLAINTEXT = "SEAL ciphertext", "SEAL public key", "SEAL key-switching keys", "SEAL plaintext"


def _sets_for(path: Path) -> list[ParameterSet]:
    """The set of the key folder that a file lies in, the shipped ones, and those near it."""
    own = [load_seal_key(path.parent).parameters] if (path.parent / "key.json").exists() else []
    return [*own, *(load_parameters(name, warn=False) for name in list_parameter_sets()), *sets_near(path.parent)]


def seal_object(candidate: Candidate) -> tuple[str, ParameterSet, str] | None:
    """Kind, set and a line about an object of SEAL; None for what is none, or damaged. Found once for a candidate."""
    if "seal" not in vars(candidate):
        found = None
        if candidate.head[:2] == SEAL_MAGIC:
            for parameters in _sets_for(candidate.path):
                with suppress(SealFormatError):
                    found = _object_of(parameters, candidate.data)
                    break
        vars(candidate)["seal"] = found
    result: tuple[str, ParameterSet, str] | None = vars(candidate)["seal"]
    return result


def _object_of(parameters: ParameterSet, data: bytes) -> tuple[str, ParameterSet, str]:
    name, n = parameters.name, parameters.ring_degree
    with suppress(SealFormatError):
        ciphertext = read_ciphertext(parameters, data)
        form = "NTT" if ciphertext.is_ntt else "coefficient"
        line = f"{SEAL_CIPHERTEXT}, {name}, N = {n}, {ciphertext.level_primes} primes, {form} form, scale {ciphertext.scale:g}"
        return SEAL_CIPHERTEXT, parameters, line
    with suppress(SealFormatError):
        read_public_key(parameters, data)
        return SEAL_PUBLIC, parameters, f"{SEAL_PUBLIC}, {name}, N = {n}"
    with suppress(SealFormatError):
        keys = read_switch_keys(parameters, data)
        return SEAL_SWITCH, parameters, f"SEAL relinearisation or Galois keys, {name}, N = {n}, for {len(keys.groups)} target(s)"
    plaintext = read_plaintext(parameters, data)
    return SEAL_PLAINTEXT, parameters, f"{SEAL_PLAINTEXT}, {name}, N = {n}, {plaintext.data.size} words"


def _seal(candidate: Candidate) -> Report:
    found = seal_object(candidate)
    assert found is not None
    kind, parameters, line = found
    path, lines, checked = candidate.path, [line], STRUCTURE
    info = load_seal_key(path.parent) if (path.parent / "key.json").exists() else None
    if info is not None and path.name in info.files:
        load_public_file(path.parent, info, path.name)
        lines, checked = [*lines, f"of key {info.key_id}"], "sha256 of key.json"
    if Path(f"{path}.json").is_file():
        key_id, _ = _check_receipt(Path(f"{path}.json"))
        lines, checked = [*lines, f"under key {key_id}, by its receipt"], "sha256 of its receipt"
    if parameters.scheme == "ckks" and kind in (SEAL_CIPHERTEXT, SEAL_PLAINTEXT):
        read = read_ciphertext if kind == SEAL_CIPHERTEXT else read_plaintext
        scale = read(parameters, candidate.data).scale
        default = "under the default policy, with 2 contributors (the key is not known)"
        if scale and kind == SEAL_PLAINTEXT:
            error = precision(parameters, FloodPolicy(), 2, scale) if info is None else key_precision(info, scale)
            lines.append(f"{default if info is None else 'decrypted under this key'}: {error.text()}")
        elif scale and info is not None:
            lines.append(expectation(info, scale))
        elif scale:
            lines.append(f"{default}: {precision(parameters, FloodPolicy().for_set(parameters), 2, scale).text()}")
    return Report(lines, checked, {"parameters": parameters.name, "scheme": parameters.scheme})


def _parms(candidate: Candidate) -> Report:
    path, found = candidate.path, read_parms(candidate.data, str(candidate.path))
    if candidate.beside("key.json"):
        parameters = load_seal_key(path.parent).parameters
        require(found == Parms.of(parameters), path, "keyquorum export writes it again, into a new folder")
        return Report(
            [f"SEAL encryption parameters, {parameters.name}, N = {parameters.ring_degree}"], "against key.json", {"parameters": parameters.name}
        )
    lines = [f"SEAL encryption parameters, {found.scheme}, N = {found.ring_degree}, {len(found.coeff_modulus)} primes"]
    return Report(lines, details={"scheme": found.scheme, "ring_degree": found.ring_degree})


def _check_receipt(receipt: Path) -> tuple[str, bool]:
    """The key that a receipt names, and whether its ciphertext is there. Refuses a receipt of other bytes than its ciphertext."""
    noted = Candidate(receipt)
    path = receipt.with_suffix("")
    require(noted.has("key_id", "sha256"), receipt, f"remove it if you know which key {path} is for")
    key_id, digest = noted.json["key_id"], noted.json["sha256"]
    require(is_hex(key_id, 32) and is_hex(digest, 64), receipt, f"remove it if you know which key {path} is for")
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise CiphertextError(
            f"{receipt} is of another ciphertext than {path} (their SHA-256 differ): one of them was changed or replaced: write {path} again"
        )
    return str(key_id), path.is_file()


def _receipt(candidate: Candidate) -> Report:
    key_id, there = _check_receipt(candidate.path)
    name = candidate.path.with_suffix("").name
    lines = [f"receipt of {name}, a ciphertext under key {key_id}", f"sha256 {candidate.json['sha256']}" + ("" if there else f"; {name} is not here")]
    if "noise" in candidate.json:
        lines.append("it notes the noise of the ciphertext")
    return Report(lines, "sha256 of the ciphertext" if there else STRUCTURE, {"key_id": key_id, "sha256": candidate.json["sha256"]})


def _approvals(candidate: Candidate) -> Report:
    path, again = candidate.path, "delete it, and approve again with keyquorum approve"
    if candidate.beside("key.json"):
        known = approved(path.parent, load_seal_key(path.parent))
    else:
        require(candidate.has("key_id", "noise") and isinstance(candidate.json["noise"], dict), path, again)
        known = {str(digest): Noise.from_json(noise) for digest, noise in candidate.json["noise"].items()}
    require(all(is_hex(digest, 64) for digest in known), path, again)
    return Report([f"{len(known)} ciphertexts approved at this party", *openness(path)], STRUCTURE, {"approved": sorted(known)})


KINDS = (
    Kind("approvals", lambda c: c.named("approved.json"), _approvals, ("schemes/seal/approvals",)),
    Kind("SEAL encryption parameters", lambda c: c.named(PARMS), _parms, ("plans/public",)),
    Kind(SEAL_CIPHERTEXT, lambda c: (seal_object(c) or ("",))[0] == SEAL_CIPHERTEXT, _seal, ("schemes/seal/files", "cli/demo", "cnn/run")),
    Kind(SEAL_PUBLIC, lambda c: (seal_object(c) or ("",))[0] == SEAL_PUBLIC, _seal, ("schemes/key_folder",)),
    Kind(SEAL_SWITCH, lambda c: (seal_object(c) or ("",))[0] == SEAL_SWITCH, _seal, ("schemes/key_folder",)),
    Kind(SEAL_PLAINTEXT, lambda c: (seal_object(c) or ("",))[0] == SEAL_PLAINTEXT, _seal, ("model/outputs", "plans/decrypt", "cli/data")),
    Kind("receipt", lambda c: c.has("key_id", "sha256") and c.path.suffix == ".json", _receipt, ("schemes/seal/receipts",)),
    FOREIGN,
)
