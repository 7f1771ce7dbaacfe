"""The parties' side: keys, policies, what is counted, and one-time material."""

from __future__ import annotations

import hashlib
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum import api
from keyquorum.api import KeygenResult, PathLike
from keyquorum.model.arguments import checked
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError
from keyquorum.model.needs import require_disk
from keyquorum.model.outputs import save_file
from keyquorum.model.plain import Json, is_hex
from keyquorum.model.subset import members_of
from keyquorum.parties import run_processes
from keyquorum.parties.context import Progress, RunReport
from keyquorum.parties.jobs import subset_field
from keyquorum.plans.pool_jobs import check_fill
from keyquorum.plans.pool_store import chunks_bytes
from keyquorum.schemes.circuit import aes_circuit
from keyquorum.schemes.prf.evaluate import check_evaluation
from keyquorum.schemes.prf.evaluations import JOURNAL, read_journal
from keyquorum.schemes.prf.key import AES, LEGENDRE, load_prf_key
from keyquorum.schemes.prf.policy import HOUR, POLICY, EvaluationPolicy, read_policy, write_policy
from keyquorum.schemes.prf.tables import CHUNK, aes_tables
from keyquorum.schemes.tfhe.boolean import bootstraps_of
from keyquorum.schemes.tfhe.key import TFHE_KEYS
from keyquorum.serve.wire import certificate_of

FUNCTIONS = {"aes": AES.name, "legendre": LEGENDRE.name}
"""Names of functions, with their parameter sets."""


@checked
def toprf_keygen(committee: Committee | PathLike, key: str, progress: Progress | None = None, prf: str = "aes") -> KeygenResult:
    """Makes a key among all parties of this host, each a process of its own, over TLS. Nothing of it is ever opened. ``prf``: the function, ``aes`` (AES-128)
    or ``legendre`` (the Legendre PRF). It is :func:`keyquorum.keygen` with the parameter set ``prf-aes128`` or ``prf-legendre127``. Raises ParameterError for
    another name, and for a committee that has no shares of such keys."""
    return api.keygen(committee, key, _parameters_of(prf), progress=progress)


@checked
def toprf_keygen_job(key: str, prf: str = "aes") -> Json:
    """The job of :func:`toprf_keygen` as plain data."""
    return api.keygen_job(key, _parameters_of(prf))


def _parameters_of(prf: str) -> str:
    if prf not in FUNCTIONS:
        raise ParameterError(f"unknown function {prf!r}: choose one of {', '.join(FUNCTIONS)}")
    return FUNCTIONS[prf]


@checked
def toprf_share(committee: Committee | PathLike, key: str, members: int, progress: Progress | None = None) -> int:
    """Makes shares of a key for every subset of ``members`` parties, among all parties of this host, each a process of its own, over TLS. From then on
    any ``members`` parties evaluate, and any ``members`` together have the key. It is :func:`keyquorum.share`, for a key of a PRF."""
    load_prf_key(api.key_folder(committee, key))
    return api.share(committee, key, members, progress)


@checked
def toprf_encrypt_job(committee: Committee | PathLike, key: str, tfhe: str) -> Json:
    """The job of :func:`toprf_encrypt` as plain data."""
    load_prf_key(api.key_folder(committee, key))
    TFHE_KEYS.load(api.key_folder(committee, tfhe))
    return {"kind": "toprf_encrypt", "key": key, "tfhe": tfhe}


@checked
def toprf_encrypt(committee: Committee | PathLike, key: str, tfhe: str, progress: Progress | None = None) -> Path:
    """Encrypts the round keys of a key of AES-128 under a key for TFHE-rs of the same committee, among all parties of this host, each a process of its own, over TLS:
    whoever has the public files evaluates the function on encrypted inputs. Returns the file of 1,408 ciphertexts, in the folder of the key ``tfhe``.

    Raises ParameterError for committees that cannot make such keys, KeyFileError for keys of other schemes."""
    committee = api.as_committee(committee)
    results = run_processes(committee.folder, toprf_encrypt_job(committee, key, tfhe), progress)
    return api.key_folder(committee, tfhe) / str(results[0]["file"])


@checked
def write_circuit(file: PathLike) -> int:
    """Writes AES-128 as bootstraps of TFHE-rs, for ``keyquorum-tfhe circuit``: inputs are the 128 bits of a block, from the lowest bit of its first byte, and those of the round keys.
    Returns the number of bootstraps. A few MB at most; no party is needed."""
    schedule = bootstraps_of(aes_circuit())
    save_file(Path(file), "".join(f"{line}\n" for line in schedule.lines()).encode())
    return len(schedule.bootstraps)


@dataclass(frozen=True)
class Filled:
    """One-time material that was made. ``made``: blocks; ``pool``: their pool, empty where the method has none; ``left``: blocks in it now; ``reports``: costs
    at each party."""

    method: str
    made: int
    line: str
    pool: str = ""
    left: int = 0
    reports: tuple[RunReport, ...] = ()


@checked
def toprf_fill_job(
    committee: Committee | PathLike, items: int, method: str = "table", chunk: int = CHUNK, parties: Sequence[int] | None = None
) -> Json:
    """The job of :func:`toprf_fill` as plain data. Raises ParameterError for a method that takes no one-time material from a pool."""
    members = members_of(api.as_committee(committee), parties)
    nothing = _nothing_to_make(members, items, method)
    if nothing:
        raise ParameterError(nothing)
    check_fill(items, chunk)
    return {"kind": "toprf_fill", "count": items, "chunk": chunk, **subset_field(parties)}


def _nothing_to_make(committee: Committee, items: int, method: str) -> str:
    """Why a method has nothing to make ahead; empty if it has. Raises ParameterError for what the committee cannot evaluate."""
    if items < 1:
        raise ParameterError(f"{items} items: choose at least 1")
    check_evaluation(committee, method)
    if method == "table":
        return ""
    why = f"the triples of {committee.protocol} are made while the parties evaluate"
    if not committee.rounds_with_triples:
        why = f"ANDs of {committee.protocol} need no one-time material"
    return f"method {method}: nothing to make ahead, {why}"


@checked
def toprf_fill(
    committee: Committee | PathLike,
    items: int,
    method: str = "table",
    chunk: int = CHUNK,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
    parties: Sequence[int] | None = None,
) -> Filled:
    """Makes one-time material for ``items`` blocks among all parties of this host, each a process of its own, over TLS. ``table`` takes a value of 16
    bytes from one item, and one of 32 bytes from two; all keys of the committee share the pool. ``circuit`` takes none from a pool: ANDs of replicated shares
    need none, and additive shares get triples while the parties evaluate. ``chunk``: blocks that are made at a time, which bounds the memory.
    ``parties``: a subset makes them, for its evaluations (:func:`toprf_share`), in a pool of its own.

    Raises ParameterError, ResourceError without room on the disk, and PoolError while a party uses the pool: then serve with ``--keep``."""
    committee = members_of(api.as_committee(committee), parties)
    nothing = _nothing_to_make(committee, items, method)
    if nothing:
        return Filled(method, 0, nothing)
    job = toprf_fill_job(committee.whole, items, method, chunk, parties)
    here = committee.local_parties()
    tables = aes_tables(committee)
    require_disk(f"a pool of {items:,} items more", len(here) * chunks_bytes(tables.sections, committee.share_parts, items, chunk), committee.folder)
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    pool, left = results[0]["pool"], results[0]["available"]
    reports = tuple(RunReport.from_json(result["report"]) for result in results)
    return Filled(method, items, f"pool {pool}: {items:,} items made, {left:,} left; a block takes one", pool, left, reports)


@checked
def set_policy(
    committee: Committee | PathLike, party: int, key: str, rate: int, total: int | None = None, receivers: Sequence[str] | None = None
) -> EvaluationPolicy:
    """Writes the policy of a party of this host for a key; :class:`.EvaluationPolicy` has the limits. ``receivers``: names of receivers that the
    party admits, or SHA-256 of their certificates (None: all that it admits). A running party reads it at its next start."""
    committee = api.as_committee(committee)
    folder = committee.key_folder(party, key)
    info = load_prf_key(folder)
    chosen = None if receivers is None else tuple(_fingerprint(committee, party, receiver) for receiver in receivers)
    policy = EvaluationPolicy(info.key_id, rate, total, chosen)
    write_policy(folder, policy)
    return policy


def _fingerprint(committee: Committee, party: int, receiver: str) -> str:
    if is_hex(receiver, 64):
        return receiver
    path = committee.party_folder(party) / "receivers" / f"receiver-{receiver}.crt"
    if not path.is_file():
        raise CommitteeError(f"{path}: party {party} admits no receiver of this name: keyquorum receiver makes one, or give its SHA-256")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(path))).hexdigest()


@dataclass(frozen=True)
class EvaluationStatus:
    """What a party of this host has counted. ``prf``: the parameter set of the function. ``last_hour``: evaluations by receiver (SHA-256 of its
    certificate)."""

    party: int
    prf: str
    policy: EvaluationPolicy | None
    total: int
    last_hour: dict[str, int]


@checked
def toprf_status(committee: Committee | PathLike, key: str) -> list[EvaluationStatus]:
    """Policy and count of each party of this host. Raises KeyFileError for damaged files."""
    committee, found, now = api.as_committee(committee), [], time.time()
    for party in committee.local_parties():
        folder = committee.key_folder(party, key)
        info = load_prf_key(folder)
        counts = read_journal(folder / JOURNAL, info.key_id)
        policy = read_policy(folder / POLICY, info.key_id) if (folder / POLICY).exists() else None
        recent = {line.receiver: counts.used(line.receiver, now) for line in counts.lines if line.time > now - HOUR}
        found.append(EvaluationStatus(party, info.parameters.name, policy, counts.total, recent))
    if not found:
        raise CommitteeError(f"{committee.folder}: no party of the committee is on this host")
    return found


__all__ = [
    "FUNCTIONS", "EvaluationStatus", "Filled", "set_policy", "toprf_encrypt", "toprf_encrypt_job", "toprf_fill", "toprf_fill_job", "toprf_keygen",
    "toprf_keygen_job", "toprf_share", "toprf_status", "write_circuit",
]  # fmt: skip
