"""Tells what a file or folder is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from keyquorum import _engine
from keyquorum.fhe.errors import SealFormatError
from keyquorum.fhe.parameters import ParameterSet, list_parameter_sets
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext, read_public_key, read_switch_keys
from keyquorum.model.committee import OPENINGS, PROTOCOLS, Committee
from keyquorum.model.errors import KeyFileError
from keyquorum.parties import mac_key

from .keys import FloodPolicy, load_key
from .masked import MASKED, most_masked
from .policy import decryptions_used
from .precision import expectation, key_precision, precision


def promise(policy: FloodPolicy) -> str:
    """What a CKKS key's policy holds, in one line: s is no probability, so the advantage stands beside it."""
    return (
        f"flooding of {policy.bits} bits (advantage about 2^{policy.advantage:.0f} over all decryptions together) while the noise of ciphertexts is at "
        f"most 2^{policy.noise_bits}"
    )


def describe(path: Path) -> Iterator[str]:
    """Lines about a committee folder, key folder, share file, or SEAL file; refuses anything else with the reason."""
    if not path.exists():
        raise KeyFileError(f"{path}: no such file or folder")
    if path.is_dir():
        yield from _folder(path)
        return
    start = path.open("rb").read(8)
    if start.startswith(b"KQSHARE"):
        header = _engine.ShareFile.header(str(path))
        yield f"share file of party {header['party']} of {header['parties']}, {header['protocol']}, threshold {header['threshold']}"
        yield f"{header['length']} elements of {header['domain']}, key {header['key_id']}"
    elif start.startswith(b"-----BEG"):
        yield f"identity of a party, certificate {_engine.identity_fingerprint(str(path))}"
    else:
        yield from _seal_object(path)


def _seal_object(path: Path) -> Iterator[str]:
    """Tries the shipped parameter sets, and the set of the key folder that the file lies in."""
    data = path.read_bytes()
    sets: list[ParameterSet] = []
    info = load_key(path.parent) if (path.parent / "key.json").exists() else None
    if info is not None:
        sets.append(info.parameters)
    sets += [load_parameters(name, warn=False) for name in list_parameter_sets()]
    for parameters in sets:
        try:
            yield _describe_as(parameters, data)
        except SealFormatError:
            continue
        scale, plain = _scale_of(parameters, data)
        if scale and plain:
            found = precision(parameters, FloodPolicy(), 2, scale) if info is None else key_precision(info, scale)
            under = "under the default policy, with 2 contributors (the key is not known)" if info is None else "decrypted under this key"
            yield f"{under}: {found.text()}"
        elif scale and info is not None:
            yield expectation(info, scale)
        elif scale:
            found = precision(parameters, FloodPolicy().for_set(parameters), 2, scale)
            yield f"under the default policy, with 2 contributors (the key is not known): {found.text()}"
        return
    raise KeyFileError(
        f"{path}: neither a file of KeyQuorum, nor an undamaged one of SEAL under a shipped parameter set"
    )


def _scale_of(parameters: ParameterSet, data: bytes) -> tuple[float | None, bool]:
    """The scale of a CKKS ciphertext or plaintext, None for all else; and whether it is a plaintext."""
    if parameters.scheme == "ckks":
        with suppress(SealFormatError):
            return read_ciphertext(parameters, data).scale, False
        with suppress(SealFormatError):
            return read_plaintext(parameters, data).scale, True
    return None, False


def _describe_as(parameters: ParameterSet, data: bytes) -> str:
    """One line about a SEAL object of this set; SealFormatError if it is none."""
    name, n = parameters.name, parameters.ring_degree
    try:
        ciphertext = read_ciphertext(parameters, data)
        form = "NTT" if ciphertext.is_ntt else "coefficient"
        return f"SEAL ciphertext, {name}, N = {n}, {ciphertext.level_primes} primes, {form} form, scale {ciphertext.scale:g}"
    except SealFormatError:
        pass
    try:
        read_public_key(parameters, data)
        return f"SEAL public key, {name}, N = {n}"
    except SealFormatError:
        pass
    try:
        keys = read_switch_keys(parameters, data)
        return f"SEAL relinearisation or Galois keys, {name}, N = {n}, for {len(keys.groups)} target(s)"
    except SealFormatError:
        pass
    plaintext = read_plaintext(parameters, data)
    return f"SEAL plaintext, {name}, N = {n}, {plaintext.data.size} words"


def _mac_key(committee: Committee, party: int) -> str:
    try:
        mac_key.check_party(committee, party)
    except KeyFileError as error:
        return f"party {party}: {error}"
    return f"party {party}: its MAC key is not burned"


def _folder(path: Path) -> Iterator[str]:
    if (path / "committee.toml").exists():
        committee = Committee.load(path)
        yield f"committee {committee.name}: {committee.protocol} ({PROTOCOLS[committee.protocol]}), t = {committee.threshold}"
        if committee.openings != "direct":
            yield f"openings: {committee.openings} ({OPENINGS[committee.openings]})"
        for party in committee.parties:
            here = "here" if party.index in committee.local_parties() else "elsewhere"
            yield f"party {party.index} ({here}) {party.host}:{party.port} {party.fingerprint or 'fingerprint missing'}"
        for party_index in committee.local_parties():
            if committee.authenticated:
                yield _mac_key(committee, party_index)
            for folder in sorted((committee.party_folder(party_index) / "keys").glob("*/key.json")):
                yield f"party {party_index} has key {folder.parent.name}"
    elif (path / "key.json").exists():
        info = load_key(path)
        parameters = info.parameters
        yield f"key {info.key_id}, {parameters.scheme} {parameters.name}, N = {parameters.ring_degree}"
        yield f"made by {info.parties} parties, {info.protocol}, threshold {info.threshold}, error law {info.error_law}"
        yield f"relinearisation key: {'yes' if info.relin else 'no'}; Galois elements: {list(info.galois_elements) or 'none'}"
        if parameters.scheme == "ckks":
            used = decryptions_used(path, info)
            yield f"{promise(info.policy)}; {used} of {info.policy.decryptions} decryptions used"
            yield from (f"WARNING: {weakness}" for weakness in info.policy.weaknesses(parameters))
            yield f"at scale 2^{parameters.scale_bits}: {key_precision(info).text()}"
            if info.policy.approvals:
                yield "ciphertexts must be approved at every party (keyquorum approve), with a noise up to that bound"
        elif (path / "decryptions.json").exists():
            most = most_masked(parameters)
            yield f"{decryptions_used(path, info)} of {most:,} decryptions by {MASKED} used; those of round_ltz_circuit are not counted"
        for name, digest in info.files.items():
            yield f"{name} sha256 {digest}"
        shares = sorted(path.glob("share-*.kqs"))
        yield f"{len(shares)} share files"
    else:
        raise KeyFileError(f"{path}: neither a committee (committee.toml) nor a key (key.json)")
