"""Key folders and their public files, metadata, counts and approvals."""

from __future__ import annotations

from collections.abc import Callable

from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.fhe.lwe_public import PUBLIC_MAGIC, read_lwe_public_key
from keyquorum.model.errors import KeyFileError, ParameterError, PolicyError
from keyquorum.model.plain import is_count, is_hex
from keyquorum.plans.approvals import approved
from keyquorum.plans.keys import KeyInfo, load_key, load_public_file
from keyquorum.plans.lwe_keys import LweKeyInfo, load_lwe_key, load_lwe_public_key
from keyquorum.plans.masked import MASKED, most_masked
from keyquorum.plans.noise import Noise
from keyquorum.plans.policy import decryptions_used, promise
from keyquorum.plans.precision import key_precision

from .kind import STRUCTURE, Candidate, Kind, Report, openness, require
from .private import AGAIN, folder_lines


def _made_by(info: KeyInfo | LweKeyInfo) -> str:
    return f"made by {info.parties} parties, {info.protocol}, threshold {info.threshold}"


def _key_lines(info: KeyInfo) -> list[str]:
    parameters = info.parameters
    return [
        f"key {info.key_id}, {parameters.scheme} {parameters.name}, N = {parameters.ring_degree}",
        f"{_made_by(info)}, error law {info.error_law}",
        f"relinearisation key: {'yes' if info.relin else 'no'}; Galois elements: {list(info.galois_elements) or 'none'}",
    ]


def _key_details(info: KeyInfo) -> dict[str, object]:
    return {"key_id": info.key_id, "scheme": info.parameters.scheme, "parameters": info.parameters.name, "files": info.files}


def _key_folder(candidate: Candidate) -> Report:
    path = candidate.path
    info = load_key(path)
    parameters, lines = info.parameters, _key_lines(info)
    if parameters.scheme == "ckks":
        if (path / "decryptions.json").exists() or list(path.glob("share-*.kqs")):
            lines.append(f"{promise(info.policy)}; {decryptions_used(path, info)} of {info.policy.decryptions} decryptions used")
        else:  # a copy of the public files
            lines.append(promise(info.policy))
        lines += [f"WARNING: {weakness}" for weakness in info.policy.weaknesses(parameters)]
        lines.append(f"at scale 2^{parameters.scale_bits}: {key_precision(info).text()}")
        if info.policy.approvals:
            lines.append("ciphertexts must be approved at every party (keyquorum approve), with a noise up to that bound")
    elif (path / "decryptions.json").exists():
        most = most_masked(parameters)
        lines.append(f"{decryptions_used(path, info)} of {most:,} decryptions by {MASKED} used; those of round_ltz_circuit are not counted")
    for name, digest in info.files.items():
        if (path / name).exists() or name == "public.key" or (path / "share-0.kqs").exists():
            load_public_file(path, info, name)
        lines.append(f"{name} sha256 {digest}" + ("" if (path / name).exists() else ", which is not here"))
    return Report([*lines, *folder_lines(path)], "sha256 of public files and share files", _key_details(info))


def _key_info(candidate: Candidate) -> Report:
    if candidate.path.name == "key.json":
        info = load_key(candidate.path.parent)
    else:
        info = _parsed(candidate, KeyInfo.from_json)
    return Report(["metadata of a key, as all parties have them", *_key_lines(info)], details=_key_details(info))


def _parsed(candidate: Candidate, read: Callable[[dict[str, object]], KeyInfo]) -> KeyInfo:
    try:
        return read(candidate.json)
    except (ValueError, KeyError, TypeError, AttributeError, ParameterError, PolicyError) as error:
        raise KeyFileError(f"{candidate.path}: not the metadata of a key ({error}): {AGAIN}") from None


def _lwe_lines(info: LweKeyInfo) -> list[str]:
    set_ = lwe_parameters(info.parameters)
    q = f"{set_.prime}" if set_.prime else "2^64"
    public = ", ".join(info.files) or "none: it was made before there were any"
    return [
        f"LWE key {info.key_id}, {set_.name}, n = {set_.dimension}, q = {q}, {set_.plain_bits} bits a message",
        _made_by(info),
        f"public key: {public}",
    ]


def _lwe_details(info: LweKeyInfo) -> dict[str, object]:
    return {"key_id": info.key_id, "scheme": "lwe", "parameters": info.parameters, "files": info.files}


def _lwe_folder(candidate: Candidate) -> Report:
    info = load_lwe_key(candidate.path)
    lines = _lwe_lines(info)
    if info.files:
        load_lwe_public_key(candidate.path, info)
        lines += [f"{name} sha256 {digest}" for name, digest in info.files.items()]
    return Report([*lines, *folder_lines(candidate.path)], "sha256 of public files and share files", _lwe_details(info))


def _lwe_info(candidate: Candidate) -> Report:
    info = load_lwe_key(candidate.path.parent)
    return Report(["metadata of an LWE key, as all parties have them", *_lwe_lines(info)], details=_lwe_details(info))


def _lwe_public(candidate: Candidate) -> Report:
    path, checked = candidate.path, "sha256"
    key = read_lwe_public_key(candidate.data, str(path))
    if (path.parent / "lwe.json").is_file():
        load_lwe_public_key(path.parent, load_lwe_key(path.parent))
        checked = "sha256, also of lwe.json"
    set_ = key.parameters
    lines = [f"public key of LWE, {set_.name}, n = {set_.dimension}", f"of key {key.key_id}"]
    return Report(lines, checked, {"parameters": set_.name, "key_id": key.key_id})


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


def _approvals(candidate: Candidate) -> Report:
    path, again = candidate.path, "delete it, and approve again with keyquorum approve"
    if candidate.beside("key.json"):
        known = approved(path.parent, load_key(path.parent))
    else:
        require(candidate.has("key_id", "noise") and isinstance(candidate.json["noise"], dict), path, again)
        known = {str(digest): Noise.from_json(noise) for digest, noise in candidate.json["noise"].items()}
    require(all(is_hex(digest, 64) for digest in known), path, again)
    return Report([f"{len(known)} ciphertexts approved at this party", *openness(path)], STRUCTURE, {"approved": sorted(known)})


KINDS = (
    Kind("key folder", lambda c: c.holds("key.json"), _key_folder, ("plans/keys", "plans/keygen")),
    Kind("LWE key folder", lambda c: c.holds("lwe.json"), _lwe_folder, ("plans/lwe_keys",)),
    Kind("metadata of a key", lambda c: c.named("key.json") or c.has("key_id", "transcript", "policy"), _key_info, ("plans/keys",)),
    Kind("metadata of an LWE key", lambda c: c.named("lwe.json"), _lwe_info, ("plans/lwe_keys",)),
    Kind("public key of LWE", lambda c: c.head[:8] == PUBLIC_MAGIC, _lwe_public, ("plans/lwe_keys",)),
    Kind("count of decryptions", lambda c: c.named("decryptions.json"), _count, ("plans/policy",)),
    Kind("approvals", lambda c: c.named("approved.json"), _approvals, ("plans/approvals",)),
)
