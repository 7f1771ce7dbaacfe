"""The Python interface: all that the command line does.

>>> import keyquorum
>>> committee = keyquorum.init("committee", parties=3)                     # doctest: +SKIP
>>> key = keyquorum.keygen(committee, "key", keyquorum.load_parameters("ckks-8192-demo"))   # doctest: +SKIP
>>> keyquorum.decrypt(committee, "key", ["sum.ct"], receiver=0, outputs=["sum.pt"])          # doctest: +SKIP

Parties are separate processes over TLS by default; :func:`keygen_in_process` and :func:`decrypt_in_process` run them as
threads, for notebooks and tests.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum.fhe.keys import galois_element
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.fhe.seal import Evaluator
from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.model.committee import PROTOCOLS, Committee, Party, check_name, write_atomically
from keyquorum.model.errors import CiphertextError, CommitteeError, ParameterError
from keyquorum.parties import RunReport, run_in_process, run_party, run_processes
from keyquorum.parties.context import Progress
from keyquorum.plans.decrypt import Decrypted, decrypt as _decrypt
from keyquorum.plans.keygen import KeyMaterial, Request, generate
from keyquorum.plans.keys import FloodPolicy, KeyInfo, load_key, load_public_file, parameters_to_json

PathLike = str | Path


@dataclass(frozen=True)
class KeygenResult:
    """A key that was made: where its public files are, its metadata, and what it cost at each party."""

    folder: Path
    info: KeyInfo
    reports: list[RunReport]


@dataclass(frozen=True)
class DecryptResult:
    """Plaintext files that the receiver wrote, and the cost at each party."""

    outputs: list[Path]
    reports: list[RunReport]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [int(s.getsockname()[1]) for s in sockets]
    finally:
        for s in sockets:
            s.close()


def init(
    folder: PathLike,
    parties: int = 3,
    protocol: str = "rep-field",
    threshold: int | None = None,
    hosts: Sequence[str] = (),
    me: Sequence[int] | None = None,
    name: str | None = None,
) -> Committee:
    """Makes a committee folder: ``committee.toml`` and an identity for each party of this host.

    ``hosts``: "HOST:PORT" of each party; without, all parties run on this host on free ports. ``me``: the parties whose
    identities are made here (default: all); the fingerprints of the others are added with :func:`trust`.
    """
    root = Path(folder)
    if (root / "committee.toml").exists():
        raise CommitteeError(f"{root}: there is a committee already: choose another folder")
    if protocol not in PROTOCOLS:
        raise CommitteeError(f"unknown protocol {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
    if not 1 <= parties <= 64:
        raise CommitteeError(f"{parties} parties: choose 3 to 64")
    if hosts and len(hosts) != parties:
        raise CommitteeError(f"{len(hosts)} hosts for {parties} parties: name each party's HOST:PORT once")
    t = threshold if threshold is not None else (parties - 1) // 2
    addresses = [_address(h) for h in hosts] or [("127.0.0.1", port) for port in _free_ports(parties)]
    check_name(name or root.name, "committee name")
    members = [Party(i, host, port, "") for i, (host, port) in enumerate(addresses)]
    Committee(root, name or root.name, protocol, t, tuple(members)).check()
    mine = list(range(parties)) if me is None else list(me)
    for i in mine:
        if not 0 <= i < parties:
            raise CommitteeError(f"there is no party {i}: choose 0 to {parties - 1}")
    root.mkdir(parents=True, exist_ok=True)
    committee = Committee(root, name or root.name, protocol, t, tuple(members))
    for i in mine:
        party_folder = committee.party_folder(i)
        party_folder.mkdir(mode=0o700, exist_ok=True)
        fingerprint = _engine.make_identity(str(committee.identity_path(i)), f"{committee.name}-party-{i}")
        members[i] = Party(i, members[i].host, members[i].port, fingerprint)
    committee = Committee(root, committee.name, protocol, t, tuple(members))
    committee.save()
    return committee


def trust(folder: PathLike, party: int, fingerprint: str) -> Committee:
    """Enters the fingerprint of a party that runs elsewhere."""
    committee = Committee.load(Path(folder))
    if not 0 <= party < committee.size:
        raise CommitteeError(f"there is no party {party}: choose 0 to {committee.size - 1}")
    if party in committee.local_parties():
        raise CommitteeError(f"party {party} is on this host: its fingerprint comes from its own identity")
    members = list(committee.parties)
    old = members[party]
    members[party] = Party(party, old.host, old.port, fingerprint.strip().lower().replace(":", ""))
    changed = Committee(committee.folder, committee.name, committee.protocol, committee.threshold, tuple(members))
    changed.check()
    changed.save()
    return changed


def _address(text: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdigit():
        raise CommitteeError(f"{text!r} is no address: write HOST:PORT")
    return host.strip("[]"), int(port)


def as_committee(committee: Committee | PathLike) -> Committee:
    """A committee, given as such or by its folder."""
    return committee if isinstance(committee, Committee) else Committee.load(Path(committee))


def key_folder(committee: Committee | PathLike, key: str) -> Path:
    """Folder with the public files of a key, at a party of this host."""
    committee = as_committee(committee)
    for party in committee.local_parties():
        folder = committee.key_folder(party, key)
        if (folder / "key.json").exists():
            return folder
    raise CommitteeError(f"{committee.folder}: no key {key!r} at any party of this host: make it with keyquorum keygen")


def keygen_job(
    key: str,
    parameters: ParameterSet,
    relin: bool = True,
    galois_elements: Sequence[int] = (),
    error_law: str = "cbd",
    policy: FloodPolicy | None = None,
) -> dict[str, Any]:
    """The job of :func:`keygen` as plain data."""
    check_name(key, "key name")
    request = Request(parameters, relin, tuple(galois_elements), error_law, policy or FloodPolicy())
    request.check()
    return {
        "kind": "keygen",
        "key": key,
        "parameters": parameters_to_json(parameters),
        "relin": relin,
        "galois_elements": list(galois_elements),
        "error_law": error_law,
        "policy": vars(request.policy),
    }


def galois_elements(parameters: ParameterSet, steps: Sequence[int]) -> tuple[int, ...]:
    """Galois elements of rotation steps; step 0 is conjugation (CKKS) or the column swap (BFV, BGV)."""
    return tuple(dict.fromkeys(galois_element(step, parameters.ring_degree) for step in steps))


def keygen(
    committee: Committee | PathLike,
    key: str,
    parameters: ParameterSet | str,
    relin: bool = True,
    galois_elements: Sequence[int] = (),
    error_law: str = "cbd",
    policy: FloodPolicy | None = None,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
) -> KeygenResult:
    """Makes a key among all parties of this host, each a process of its own, over TLS."""
    committee = as_committee(committee)
    chosen = load_parameters(parameters) if isinstance(parameters, str) else parameters
    job = keygen_job(key, chosen, relin, galois_elements, error_law, policy)
    for party in committee.local_parties():
        if (committee.key_folder(party, key) / "key.json").exists():
            raise CommitteeError(f"{committee.folder}: there is a key {key!r} already: choose another name")
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    folder = committee.key_folder(0, key)
    return KeygenResult(folder, load_key(folder), [RunReport.from_json(r["report"]) for r in results])


def decrypt_job(
    committee: Committee | PathLike,
    key: str,
    ciphertexts: Sequence[PathLike],
    receiver: int,
    outputs: Sequence[PathLike],
    rounding: str = "round_ltz_circuit",
) -> dict[str, Any]:
    """The job of :func:`decrypt` as plain data; the ciphertexts are read and checked here."""
    committee = as_committee(committee)
    info = load_key(key_folder(committee, key))
    if len(outputs) != len(ciphertexts) or not ciphertexts:
        raise ParameterError(f"{len(outputs)} outputs for {len(ciphertexts)} ciphertexts: name one output for each")
    digests = []
    for path in map(Path, ciphertexts):
        if not path.exists():
            raise CiphertextError(f"{path}: no such file")
        data = path.read_bytes()
        read_ciphertext(info.parameters, data, str(path))
        check_receipt(path, data, info)
        digests.append(hashlib.sha256(data).hexdigest())
    return {
        "kind": "decrypt",
        "key": key,
        "receiver": receiver,
        "rounding": rounding,
        "sha256": digests,
        "local": {
            "ciphertexts": [str(Path(c).resolve()) for c in ciphertexts],
            "outputs": [str(Path(o).resolve()) for o in outputs],
        },
    }


def decrypt(
    committee: Committee | PathLike,
    key: str,
    ciphertexts: Sequence[PathLike],
    receiver: int,
    outputs: Sequence[PathLike],
    rounding: str = "round_ltz_circuit",
    progress: Progress | None = None,
    io_timeout: float = 120.0,
) -> DecryptResult:
    """Decrypts files with SEAL ciphertexts; the receiver's process writes SEAL plaintexts (mode 0600)."""
    committee = as_committee(committee)
    job = decrypt_job(committee, key, ciphertexts, receiver, outputs, rounding)
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    return DecryptResult([Path(o) for o in outputs], [RunReport.from_json(r["report"]) for r in results])


def write_job(path: PathLike, job: dict[str, Any]) -> None:
    """Writes a job file for ``keyquorum party``; paths under ``local`` may be edited on each host."""
    write_atomically(Path(path), json.dumps(job, indent=1).encode() + b"\n")


def write_receipt(path: PathLike, data: bytes, info: KeyInfo) -> None:
    """Notes beside a ciphertext file which key it is for: SEAL's bytes do not tell."""
    receipt = {"key_id": info.key_id, "sha256": hashlib.sha256(data).hexdigest()}
    Path(f"{path}.json").write_text(json.dumps(receipt) + "\n")


def check_receipt(path: Path, data: bytes, info: KeyInfo) -> None:
    """Refuses a ciphertext whose receipt names another key. Without a receipt (stock SEAL) nothing can be told."""
    receipt = Path(f"{path}.json")
    if not receipt.exists():
        return
    try:
        noted = json.loads(receipt.read_text())
        key_id, digest = str(noted["key_id"]), str(noted["sha256"])
    except (ValueError, KeyError, TypeError):
        raise CiphertextError(f"{receipt}: damaged: remove it if you know which key {path} is for") from None
    if digest == hashlib.sha256(data).hexdigest() and key_id != info.key_id:
        raise CiphertextError(f"{path} is encrypted under another key ({key_id}), not {info.key_id}: name that key")


def lower(info: KeyInfo, path: PathLike) -> Path:
    """A ciphertext file ready for joint decryption: BFV and BGV at the last level, in a file of its own if it was not."""
    source = Path(path)
    if not source.exists():
        raise CiphertextError(f"{source}: no such file")
    data = source.read_bytes()
    check_receipt(source, data, info)
    ciphertext = read_ciphertext(info.parameters, data, str(source))
    if info.parameters.scheme == "ckks" or ciphertext.level_primes == 1:
        return source
    lowered = Evaluator(info.parameters).last_level(data)
    target = source.with_name(source.name + ".last")
    write_atomically(target, lowered)
    write_receipt(target, lowered, info)
    return target


def in_process_committee(parties: int = 3, protocol: str = "rep-field", threshold: int | None = None) -> Committee:
    """A committee without folder or certificates, for :func:`keygen_in_process` and :func:`decrypt_in_process`."""
    t = threshold if threshold is not None else (parties - 1) // 2
    members = tuple(Party(i, "in-process", 1, "") for i in range(parties))
    committee = Committee(Path("in-process"), "in-process", protocol, t, members)
    committee.check()
    return committee


def keygen_in_process(committee: Committee, request: Request, seed: bytes | None = None) -> list[KeyMaterial]:
    """Makes a key among threads of this process; returns each party's material. ``seed``: INSECURE, tests only."""
    return run_in_process(committee, lambda context: generate(context, request, seed))


def decrypt_in_process(
    committee: Committee,
    material: Sequence[KeyMaterial],
    ciphertexts: Sequence[bytes],
    receiver: int = 0,
    rounding: str = "round_ltz_circuit",
) -> list[Decrypted]:
    """Decrypts among threads of this process. CKKS decryptions are flooded by the policy, but not counted: there is no
    key on disk."""
    parsed = [read_ciphertext(material[0].info.parameters, data) for data in ciphertexts]

    def job(context: Any) -> list[Decrypted] | None:
        mine = material[context.party]
        return _decrypt(context, mine.info, mine.shares, parsed, receiver, rounding)

    result: list[Decrypted] = run_in_process(committee, job)[receiver]
    return result


__all__ = [
    "Committee",
    "DecryptResult",
    "Decrypted",
    "FloodPolicy",
    "KeyInfo",
    "KeyMaterial",
    "KeygenResult",
    "ParameterSet",
    "Request",
    "RunReport",
    "decrypt",
    "decrypt_in_process",
    "galois_elements",
    "in_process_committee",
    "init",
    "keygen",
    "keygen_in_process",
    "load_key",
    "load_parameters",
    "load_public_file",
    "run_party",
    "trust",
]
