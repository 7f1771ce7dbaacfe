"""The Python interface: all that the command line does.

```python
from pathlib import Path

import keyquorum
from keyquorum.fhe import seal

committee = keyquorum.init("committee", parties=3)
made = keyquorum.keygen(committee, "key", "bfv-4096", relin=False)
public_key = (made.folder / "public.key").read_bytes()
Path("sum.ct").write_bytes(seal.encrypt(made.info.parameters, public_key, [3, 1, 4]))
keyquorum.decrypt(committee, "key", ["sum.ct"], receiver=0, outputs=["sum.plain"])
print(seal.decode(made.info.parameters, Path("sum.plain").read_bytes())[:3])
```

Parties are separate processes over TLS by default; :func:`keygen_in_process` and :func:`decrypt_in_process` run them as
threads, for notebooks and tests. All functions are in one module, which is the page of the interface in the documentation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keyquorum._engine import Engine, EngineError
from keyquorum.backends import check_backend
from keyquorum.dsl import Origin, ShareVector
from keyquorum.fhe.block_types import typed_values
from keyquorum.fhe.errors import (
    SealFormatError,
    SealMissingError,
    SealOperationError,
    SecurityWarning,
    UnknownParameterSetError,
    ValuesError,
)
from keyquorum.fhe.keys import galois_element
from keyquorum.fhe.lwe import LweParameters, read_messages
from keyquorum.fhe.noise_bgv import BgvNoise
from keyquorum.fhe.noise_bound import NoiseEstimate
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import OPERATIONS
from keyquorum.fhe.values import Numbers
from keyquorum.in_process import decrypt_in_process, in_process_committee, keygen_in_process
from keyquorum.model.arguments import checked
from keyquorum.model.bridge import ACCEPTED, KEPT, bridge_job
from keyquorum.model.committee import Committee, CommitteeShape, Party, check_name, require_embedded, write_atomically
from keyquorum.model.errors import (
    ApprovalError,
    AuditError,
    BackendError,
    BurnedKeyError,
    CiphertextError,
    CommitteeError,
    EpochError,
    KeyFileError,
    KeyInUseError,
    KeyQuorumError,
    MovedError,
    OutputError,
    ParameterError,
    PartyError,
    PartyInterrupted,
    PolicyError,
    PoolCannotGrow,
    PoolError,
    PoolLost,
    PoolTooSmall,
    PoolUnwritable,
    ProgramError,
    ResourceError,
)
from keyquorum.model.links import check_link
from keyquorum.model.needs import Needs, require_disk, require_memory
from keyquorum.model.plain import Json
from keyquorum.model.protocols import MpSpdz, Protocol
from keyquorum.model.subset import ABSENT, parties_of, present_of
from keyquorum.parties import RunReport, mac_key, run_party, run_processes
from keyquorum.parties.context import PhaseReport, Progress
from keyquorum.parties.jobs import relative_to, subset_field
from keyquorum.parties.setup import address, fingerprint, init, init_after, move, trust
from keyquorum.plans.epochs import orders
from keyquorum.plans.epochs.origins import check_origin, origin_weaknesses
from keyquorum.plans.epochs.recover import ALSO, helpers_of
from keyquorum.plans.epochs.refresh import HOLD, absent_weaknesses, check_members
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.masked import warn_of_rounding
from keyquorum.plans.noise_check import refuse_noise_check
from keyquorum.plans.pool_jobs import check_fill
from keyquorum.plans.pool_store import chunks_bytes, drop_pool, pool_status
from keyquorum.plans.pool_variants import variant_for
from keyquorum.plans.pools import pools_folder
from keyquorum.plans.program import ProgramRequest
from keyquorum.plans.program import run_locally as run
from keyquorum.plans.public import export_key
from keyquorum.plans.weakness import warn_all
from keyquorum.schemes import encryption_of, load_parameters, parameter_set_names, scheme_of
from keyquorum.schemes import key_folder as _key_folder
from keyquorum.schemes.base import Decrypted, EncryptedFile, ErrorBound
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import holds_a_key
from keyquorum.schemes.keys import KeyInfo, KeyMaterial, KeyRequest, Parameters, SecretVector
from keyquorum.schemes.seal import approvals
from keyquorum.schemes.seal.decrypt import SealDecrypted
from keyquorum.schemes.seal.files import CiphertextFile, evaluate_to
from keyquorum.schemes.seal.key import SealKeyInfo, load_seal_key
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.noise import Noise
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.schemes.seal.precision import Precision
from keyquorum.schemes.seal.receipts import check_receipt, write_receipt
from keyquorum.schemes.subset_keys import check_decryptions, info_in, load_key_as
from keyquorum.schemes.subset_shares import check_subsets
from keyquorum.sharing.variants import VARIANTS

PathLike = str | Path


@dataclass(frozen=True)
class KeygenResult:
    """A new key: the folder of its public files, its metadata, and the cost at each party."""

    folder: Path
    info: KeyInfo
    reports: list[RunReport]

    @property
    def precision(self) -> ErrorBound | None:
        """The error of the key's decryptions, at the scale of its parameter set; None for exact schemes."""
        return scheme_of(self.info).key_error(self.info)


@dataclass(frozen=True)
class DecryptResult:
    """Plaintext files that the receiver wrote, the cost at each party, and for CKKS the error that the flooding added to each."""

    outputs: list[Path]
    reports: list[RunReport]
    precisions: Sequence[ErrorBound] | None = None


def as_committee(committee: Committee | PathLike) -> Committee:
    """The committee itself, or the one that is loaded from a folder."""
    return committee if isinstance(committee, Committee) else Committee.load(Path(committee))


def key_folder(committee: Committee | PathLike, key: str) -> Path:
    """Folder with the public files of a key. On a host with parties it is the folder of one of them. On a host without parties it is ``keys/KEY`` in
    the committee's folder, with a copy of ``key.json`` and of the public keys. Raises CommitteeError if there is none."""
    committee = as_committee(committee)
    folders = [committee.key_folder(party, key) for party in committee.local_parties()]
    for folder in [*folders, committee.folder / "keys" / check_name(key, "key name")]:
        if holds_a_key(folder):
            return folder
    raise CommitteeError(
        f"{committee.folder}: no key {key!r} at any party of this host: make it with keyquorum keygen, or copy its public files to {folder}"
    )


@checked
def load_key(folder: PathLike) -> KeyInfo:
    """The metadata of the key in a folder. Raises KeyFileError."""
    return _key_folder.load_key(Path(folder))


@checked
def load_public_file(folder: PathLike, info: KeyInfo, name: str) -> bytes:
    """A public file of a key, compared with the metadata. Raises KeyFileError."""
    return _key_folder.load_public_file(Path(folder), info, name)


@dataclass(frozen=True)
class Place:
    """Where the programs of a job run: the backend, its checkout of MP-SPDZ on this host, and simulated links."""

    backend: str
    mp_spdz: PathLike | None
    link: str | None

    def fields(self, **local: object) -> Json:
        """Fields of a job. ``local``: further fields for this host alone."""
        checkout = {} if self.mp_spdz is None else {"mp_spdz": str(Path(self.mp_spdz).resolve())}
        return {"backend": self.backend, "link": self.link, "local": {**checkout, **local}}


def _request(parameters: Parameters | str | Path, **options: object) -> KeyRequest:
    """The request for a new key; the options are those of :func:`keygen`."""
    chosen = load_parameters(parameters) if isinstance(parameters, (str, Path)) else parameters
    return scheme_of(chosen).request(chosen, options)


@checked
def keygen_job(
    key: str,
    parameters: Parameters | str | Path,
    relin: bool = True,
    galois_elements: Sequence[int] = (),
    error_law: str = "cbd",
    policy: FloodPolicy | None = None,
    *,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
    **options: object,
) -> Json:
    """The job of :func:`keygen` as plain data. ``mp_spdz``, under ``local``, may be edited on each host."""
    request = _request(parameters, relin=relin, galois_elements=galois_elements, error_law=error_law, policy=policy, **options)
    return _keygen_job(key, request, Place(backend, mp_spdz, link))


def _keygen_job(key: str, request: KeyRequest, place: Place) -> Json:
    check_name(key, "key name")
    scheme_of(request).check_backend(request.parameters, place.backend, place.link)
    request.check()
    check_link(place.link, place.backend)
    warn_all(request.warnings())
    return {"kind": "keygen", "key": key, **request.to_json(), **place.fields()}


@checked
def galois_elements(parameters: ParameterSet, steps: Sequence[int]) -> tuple[int, ...]:
    """Galois elements of rotation steps; step 0 is conjugation (CKKS) or the column swap (BFV, BGV)."""
    return tuple(dict.fromkeys(galois_element(step, parameters.ring_degree) for step in steps))


@checked
def keygen_needs(
    committee: Committee | PathLike,
    parameters: Parameters | str | Path,
    relin: bool = True,
    galois_elements: Sequence[int] = (),
    error_law: str = "cbd",
    policy: FloodPolicy | None = None,
    **options: object,
) -> Needs | None:
    """Upper bounds on the memory and disk that :func:`keygen` needs at each party, on the embedded engine. None: next to nothing."""
    request = _request(parameters, relin=relin, galois_elements=galois_elements, error_law=error_law, policy=policy, **options)
    return request.needs(as_committee(committee))


@checked
def keygen(
    committee: Committee | PathLike,
    key: str,
    parameters: Parameters | str | Path,
    relin: bool = True,
    galois_elements: Sequence[int] = (),
    error_law: str = "cbd",
    policy: FloodPolicy | None = None,
    *,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
    **options: object,
) -> KeygenResult:
    """Makes a key among all parties of this host, each a process of its own, over TLS.

    ``parameters``: a set of any scheme. ``relin``, ``galois_elements``, ``error_law`` (the distribution of the noise) and ``policy``: options of keys
    for SEAL, ignored by other schemes. ``options``: options of other schemes. ``backend``: ``embedded`` or ``mp-spdz``. ``mp_spdz``: the checkout of
    MP-SPDZ (default: MP_SPDZ_HOME). ``link``: simulated links, a profile of :mod:`keyquorum.model.links` or ``rtt=MS,mbit=RATE``.
    """
    committee = as_committee(committee)
    request = _request(parameters, relin=relin, galois_elements=galois_elements, error_law=error_law, policy=policy, **options)
    scheme_of(request).check_backend(request.parameters, backend, link)
    check_backend(backend, committee, mp_spdz)
    job = _keygen_job(key, request, Place(backend, mp_spdz, link))
    request.check(committee.threshold + 1)
    for party in committee.local_parties():
        if holds_a_key(committee.key_folder(party, key)):
            raise CommitteeError(f"{committee.folder}: there is a key {key!r} already: choose another name")
    request.check_plan(committee)
    needs, here = request.needs(committee), len(committee.local_parties())
    warn_all(request.warnings(committee))
    if needs is not None:
        if backend == "embedded":
            require_memory(needs, here)
        require_disk(f"key generation of {here} parties", here * needs.disk, committee.folder)
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    folder = committee.key_folder(0, key)
    return KeygenResult(folder, load_key(folder), [RunReport.from_json(r["report"]) for r in results])


@checked
def share_job(committee: Committee | PathLike, key: str, members: int) -> Json:
    """The job of :func:`share` as plain data."""
    committee = as_committee(committee)
    check_subsets(committee, load_key(key_folder(committee, key)), members)
    return {"kind": "share", "key": key, "members": members}


@checked
def share(committee: Committee | PathLike, key: str, members: int, progress: Progress | None = None) -> int:
    """Makes shares of a key of LWE, TFHE or a PRF for every subset of ``members`` parties, among all parties of this host, each a process of its own, over
    TLS. From then on any ``members`` parties use the key without the others (``parties`` of :func:`decrypt`), and any ``members`` together have it.
    Returns the bytes stored at each party. An earlier sharing is replaced.

    Raises ParameterError for committees with MACs, those whose parties need none (shamir, rep-field), keys over prime fields, less than 2 or more than threshold members, and above 64 MB a party."""
    committee = as_committee(committee)
    job = share_job(committee, key, members)
    run_processes(committee.folder, job, progress)
    return check_subsets(committee, load_key(key_folder(committee, key)), members)


@dataclass(frozen=True)
class RefreshResult:
    """Shares that were refreshed: number and name of the new epoch, names of the keys, bytes of old shares that a party erased, the cost at each party, and the items of pools of the new epoch by their names."""

    epoch: int
    name: str
    keys: list[str]
    bytes_erased: int
    reports: list[RunReport]
    pools: dict[str, int] = field(default_factory=dict)


@checked
def refresh_shares_job(committee: Committee | PathLike, absent: Sequence[int] = (), hold: bool = False) -> Json:
    """The job of :func:`refresh_shares` as plain data."""
    there = present_of(as_committee(committee), absent)
    check_members(there)
    warn_all(absent_weaknesses(there))
    return {"kind": "refresh_shares", **({ABSENT: sorted(absent)} if absent else {}), **({HOLD: True} if hold else {})}


@checked
def refresh_shares(
    committee: Committee | PathLike, progress: Progress | None = None, io_timeout: float = 120.0, absent: Sequence[int] = (), hold: bool = False
) -> RefreshResult:
    """New shares of all keys of a committee, among all parties of this host, each a process of its own, over TLS. Keys, public files and ciphertexts stay as they are. Old shares and shares for
    subsets are erased, and pools are dropped: fill them again, or ``hold``: then the parties fill pools of the new epoch before they vote, as many items as are left in those of the old one. ``absent``: parties of Shamir's sharing that are away, at most t, and of a committee for malicious parties so few that 2t + 1 are left. They have no shares afterwards, until
    :func:`recover` brings them into the new epoch. Until then their old shares count as stolen.

    Raises ParameterError for committees with MACs, for too many parties, and for absent ones that are needed, KeyFileError where there is no key, EpochError where a change is unfinished, and PoolCannotGrow
    where a party has no room for the pools: the old epoch goes on then."""
    committee = as_committee(committee)
    results = run_processes(committee.folder, refresh_shares_job(committee, absent, hold), progress, io_timeout=io_timeout)
    first, reports = results[0], [RunReport.from_json(r["report"]) for r in results]
    return RefreshResult(first["epoch"], first["name"], first["keys"], first["bytes_erased"], reports, first["pools"])


@dataclass(frozen=True)
class RecoverResult:
    """Parties that were recovered: the number of the first, names of the keys of which they lacked shares, number and name of the epoch (empty as keygen left it), the cost at each party, and the numbers of all."""

    party: int
    keys: list[str]
    epoch: int
    name: str
    reports: list[RunReport]
    parties: tuple[int, ...] = ()


@checked
def recover_job(
    committee: Committee | PathLike, party: int | Sequence[int], helpers: Sequence[int] | None = None, absent: Sequence[int] = ()
) -> Json:
    """The job of :func:`recover` as plain data."""
    whole = as_committee(committee)
    present_of(whole, absent)
    lost = [party] if isinstance(party, int) else sorted(party)
    if not lost:
        raise ParameterError("no party to recover: name one or more")
    first, *also = lost
    return {
        "kind": "recover",
        "party": first,
        "helpers": helpers_of(whole, first, helpers, also, absent),
        **({ALSO: also} if also else {}),
        **({ABSENT: sorted(absent)} if absent else {}),
    }


@checked
def recover(
    committee: Committee | PathLike,
    party: int | Sequence[int],
    helpers: Sequence[int] | None = None,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
    absent: Sequence[int] = (),
) -> RecoverResult:
    """Gives a party that lost its folder, but has its ``identity.pem`` again, its shares of all keys, among all parties of this host, each a process of its own, over TLS. The secret is not
    rebuilt anywhere. ``helpers``: parties that send shares (default: all others). ``party``: several where parties may be malicious, and fewer than 2t + 1 others have shares: those of all are tested together before any is kept. ``absent``: parties of Shamir's sharing whose hosts are down, and that take no part.

    Raises ParameterError for additive sharing and MACs, for too few helpers, and for keys that must be tested and cannot be; CommitteeError without the identity; EpochError where a change is
    unfinished, or helpers are in other epochs; KeyFileError where there is no key, or another one of the name."""
    committee = as_committee(committee)
    job = recover_job(committee, party, helpers, absent)
    gone = [job["party"], *job.get(ALSO, ())]
    for identity in map(committee.identity_path, gone):
        if not identity.exists():
            raise CommitteeError(
                f"{identity}: missing: restore it from its backup, as the others know the party by it; without one make new keys in a new committee"
            )
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    found = next(result for result in results if gone[0] == result["report"]["party"])
    return RecoverResult(gone[0], found["keys"], found["epoch"], found["name"], [RunReport.from_json(r["report"]) for r in results], tuple(gone))


@dataclass(frozen=True)
class ReshareResult:
    """Keys that were passed on: number and name of the new epoch, names of the keys, bytes of old shares that an old member erased, and the cost at each party, old members first."""

    epoch: int
    name: str
    keys: list[str]
    bytes_erased: int
    reports: list[RunReport]


@checked
def reshare_job(
    old: Committee | PathLike,
    new: Committee | PathLike,
    dealers: Sequence[int] | None = None,
    accept_origin: str | None = None,
    keep_old: bool = False,
) -> Json:
    """The job of :func:`reshare` as plain data. Old members that take part start it with the folder of their committee, and new ones with theirs."""
    between = bridge(as_committee(old), as_committee(new), dealers)
    check_origin(*between.sides, accept_origin)
    warn_all(origin_weaknesses(*between.sides, accept_origin))
    accepted = {} if accept_origin is None else {ACCEPTED: accept_origin}
    kept = {KEPT: True} if keep_old else {}
    return {"kind": "reshare", **bridge_job(*between.sides, between.numbers), **accepted, **kept}


@checked
def reshare(
    old: Committee | PathLike,
    new: Committee | PathLike,
    dealers: Sequence[int] | None = None,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
    accept_origin: str | None = None,
    keep_old: bool = False,
) -> ReshareResult:
    """Passes all keys of a committee on to a new one without any, which may have another protocol and other members (:func:`init` with ``after``), among all parties of this host, each a process of its own,
    over TLS. Keys, public files and ciphertexts stay as they are, and no secret is rebuilt anywhere. The old members erase their shares. ``dealers``: the old members that take part, by default all; absent ones keep
    their old shares. Where parties of one of the committees may be malicious, the new ones check that their shares are of the old ones' secrets, and all old members of such a committee take part. ``accept_origin``:
    ``"semi-honest"`` to pass keys of a committee whose parties follow the protocol on to one for malicious parties, which cannot promise more for them; ``"burned"``
    to pass keys of a committee with a burned MAC key on without its MACs, as if its parties followed the protocol. ``keep_old``: the old members keep their shares and go on, and the new committee is a standby: the keys fall if either
    does, and each may use half of what their policies and tests leave.

    Warns with SecurityWarning where the new committee promises less. Raises ParameterError for keys that the new committee cannot hold, too few dealers, and an origin that is not accepted; CommitteeError for committees that share an identity or an address;
    KeyFileError where there is no key, or the new committee has one; EpochError where a change is unfinished, and where the check fails: the old committee goes on then."""
    between = bridge(as_committee(old), as_committee(new), dealers)
    job = reshare_job(*between.sides, between.numbers, accept_origin, keep_old)
    results = run_processes(between, job, progress, io_timeout=io_timeout)
    first = results[0]
    return ReshareResult(first["epoch"], first["name"], first["keys"], first["bytes_erased"], [RunReport.from_json(r["report"]) for r in results])


@checked
def pool_needs(
    committee: Committee | PathLike, parameters: str, rounding: str, items: int, width: int = 8, levels: int = 2, chunk: int = 4096,
    *, parties: Sequence[int] | None = None,
) -> int:  # fmt: skip
    """Bytes of disk that the items of :func:`pool_fill` take at each party that rounds: all parties, t + 1 of a committee of shamir, or ``parties``."""
    committee = parties_of(as_committee(committee), parties)
    check_fill(items, chunk)
    sections = variant_for(committee, rounding, load_parameters(parameters), width, levels).sections
    return chunks_bytes(sections, committee.share_parts, items, chunk)


@checked
def pool_fill_job(
    committee: Committee | PathLike, parameters: str, rounding: str, items: int, width: int = 8, levels: int = 2, chunk: int = 4096,
    *, parties: Sequence[int] | None = None,
) -> Json:  # fmt: skip
    """The job of :func:`pool_fill` as plain data. It contains a set that is no shipped one, so the other hosts need not have its file."""
    chosen = load_parameters(parameters)
    check_fill(items, chunk)
    variant_for(parties_of(as_committee(committee), parties), rounding, chosen, width, levels)
    warn_of_rounding(rounding, chosen)
    named = chosen.to_toml() if isinstance(chosen, ParameterSet) and chosen.name != parameters else parameters
    return {
        "kind": "pool_fill", "parameters": named, "rounding": rounding, "width": width, "levels": levels, "count": items, "chunk": chunk,
        **subset_field(parties),
    }  # fmt: skip


@checked
def pool_fill(
    committee: Committee | PathLike,
    parameters: str,
    rounding: str,
    items: int,
    width: int = 8,
    levels: int = 2,
    chunk: int = 4096,
    *,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
    parties: Sequence[int] | None = None,
) -> list[RunReport]:
    """Makes ``items`` pool items for decryptions among all parties of this host, each a process of its own, over TLS. ``parties``: a subset, for its
    decryptions (t + 1 parties of a committee of shamir or rep-field, or :func:`share`)."""
    committee = as_committee(committee)
    job = pool_fill_job(committee, parameters, rounding, items, width, levels, chunk, parties=parties)
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    return [RunReport.from_json(r["report"]) for r in results]


@checked
def pool_list(committee: Committee | PathLike) -> list[Json]:
    """The pools of each party of this host: ``party``, ``pool``, ``left`` and ``made`` (items); or ``party`` and ``error``, where the MAC key is
    burned."""
    committee = as_committee(committee)
    found: list[Json] = []
    for party in committee.local_parties():
        try:
            mac_key.check_party(committee, party)
        except KeyFileError as error:
            found.append({"party": party, "error": str(error)})
            continue
        for folder in sorted(p for p in pools_folder(committee, party).glob("*") if (p / "pool.json").exists()):
            made, used = pool_status(folder)
            found.append({"party": party, "pool": folder.name, "left": max(0, made - used), "made": made})
    return found


@checked
def pool_lines(committee: Committee | PathLike) -> list[str]:
    """A line for each pool of each party of this host."""
    lines = [
        f"party {p['party']}: {p['error']}" if "error" in p else f"party {p['party']}: {p['pool']}: {p['left']:,} items left of {p['made']:,}"
        for p in pool_list(committee)
    ]
    return lines or [f"{as_committee(committee).folder}: no pools"]


@checked
def pool_drop(committee: Committee | PathLike, name: str) -> list[int]:
    """Deletes a pool at all parties of this host that have it; returns their numbers."""
    committee = as_committee(committee)
    check_name(name, "pool name")
    folders = {party: pools_folder(committee, party) / name for party in committee.local_parties()}
    having = [party for party, folder in folders.items() if folder.is_dir()]
    if not having:
        raise PoolError(f"{committee.folder}: no pool {name!r} at any party of this host: see keyquorum pool status")
    for party in having:
        drop_pool(folders[party])
    return having


@checked
def epoch_status(committee: Committee | PathLike) -> list[Json]:
    """The epoch of each party of this host: ``number``, ``epoch``, ``keys``, ``unfinished``, ``unerased``, ``backups_before``. Raises EpochError for a damaged file."""
    committee = as_committee(committee)
    return [orders.status(committee, party) for party in committee.local_parties()]


@checked
def epoch_lines(status: Json) -> list[str]:
    """An entry of :func:`epoch_status` for people. Raises ParameterError for anything else."""
    try:
        return list(orders.status_lines(status))
    except (KeyError, TypeError, AttributeError):
        raise ParameterError("epoch_lines: status is not an entry of what epoch_status returns: call epoch_status first") from None


@checked
def epoch_history(committee: Committee | PathLike) -> list[Json]:
    """What the parties of this host signed and heard of changes of the epoch: ``party``, ``date``, ``epoch``, ``who``, ``state``. Raises EpochError."""
    committee = as_committee(committee)
    return [line for party in committee.local_parties() for line in orders.history(committee, party)]


@checked
def epoch_commit(committee: Committee | PathLike, files: Sequence[PathLike] = (), output: PathLike | None = None) -> list[Json]:
    """Goes on with an unfinished change at the parties of this host: who has the votes of all new members commits. ``files``: statements of parties elsewhere, written there as ``output``. Returns
    ``party``, ``epoch`` and ``stage`` of each. Raises EpochError."""
    return orders.commit(as_committee(committee), [Path(f) for f in files], None if output is None else Path(output))


@checked
def epoch_give_up(
    committee: Committee | PathLike, lost: Sequence[int | str], files: Sequence[PathLike] = (), output: PathLike | None = None
) -> list[Json]:
    """Gives an unfinished change up at the parties of this host, since the parties ``lost`` never return (numbers; of members of another committee the first 16 digits of their fingerprints); as :func:`epoch_commit`. Raises EpochError where the rules forbid it."""
    return orders.give_up(as_committee(committee), lost, [Path(f) for f in files], None if output is None else Path(output))


@checked
def epoch_erase(committee: Committee | PathLike, files: Sequence[PathLike] = ()) -> list[Json]:
    """Erases the old shares of the parties of this host, and drops their pools, after all new members have committed; returns ``party``, ``epoch`` and ``bytes`` of each. Raises EpochError before."""
    return orders.erase(as_committee(committee), [Path(f) for f in files])


@dataclass(frozen=True)
class ProveResult:
    """Shares that fit their public key: how often those of the key were tested by now, and the cost at each party."""

    runs: int
    reports: list[RunReport]


@checked
def epoch_prove_job(committee: Committee | PathLike, key: str) -> Json:
    """The job of :func:`epoch_prove` as plain data."""
    committee = as_committee(committee)
    info = load_key(key_folder(committee, key))
    scheme_of(info).check_fit(info, committee)
    return {"kind": "epoch_prove", "key": key}


@checked
def epoch_prove(committee: Committee | PathLike, key: str, progress: Progress | None = None, io_timeout: float = 120.0) -> ProveResult:
    """Tests whether the parties' shares of a key for SEAL are those of the secret of its public key, among all parties of this host, each a process of its own, over TLS. Nothing of the key is opened.

    Raises ParameterError for committees with MACs, for other keys and for primes of too few bits together, PolicyError after 16 tests of a key, PartyError if the shares do not fit, and CommitteeError
    beside a daemon."""
    committee = as_committee(committee)
    results = run_processes(committee.folder, epoch_prove_job(committee, key), progress, io_timeout=io_timeout)
    return ProveResult(results[0]["runs"], [RunReport.from_json(r["report"]) for r in results])


@checked
def encrypt(committee: Committee | PathLike, key: str, values: Any, output: PathLike, bound: float | None = None) -> EncryptedFile:
    """Encrypts numbers under a key's public key, into the file ``output``. Needs the public folder of the key, and no party.

    ``values``: integers modulo t, at most N (BFV, BGV); reals or complex numbers, at most N/2 (CKKS); integers from 0 to 2^plain_bits - 1, each of
    which becomes one ciphertext of the file (LWE). ``bound``: a bound on the absolute values of CKKS, for estimates of noise (default: 1, or the
    next power of two). With stock SEAL a receipt is written beside the file. Raises ValuesError, ParameterError, CommitteeError, KeyFileError."""
    folder = key_folder(committee, key)
    info = load_key(folder)
    return encryption_of(info).encrypt_to(folder, info, values, Path(output), bound)


@checked
def evaluate(
    committee: Committee | PathLike, key: str, operation: str, ciphertexts: Sequence[PathLike], output: PathLike, step: int = 1
) -> CiphertextFile:
    """Computes on one or two ciphertext files with stock SEAL, into the file ``output`` with a receipt beside it. Needs no party.

    ``operation``: one of :data:`keyquorum.fhe.seal.OPERATIONS`; products are relinearised (and rescaled, CKKS). ``step``: slots that rotate moves to
    the left.
    Raises CiphertextError, KeyFileError (the key lacks what the operation takes), SealOperationError."""
    folder = key_folder(committee, key)
    return evaluate_to(folder, load_seal_key(folder), operation, [Path(c) for c in ciphertexts], Path(output), step)


@checked
def decode(committee: Committee | PathLike, key: str, plaintext: PathLike, count: int = 0) -> Numbers:
    """The first ``count`` numbers (0: all) of a decrypted plaintext file: int64 centred modulo t (BFV, BGV), float64 (CKKS), int64 from 0 (LWE)."""
    info = load_key(key_folder(committee, key))
    return encryption_of(info).decode_file(info, Path(plaintext), count)[0]


@checked
def decode_values(committee: Committee | PathLike, key: str, plaintext: PathLike, type: str | None = None) -> tuple[list[int | bool], list[str]]:
    """The values of a decrypted file of LWE or TFHE, and the type of each. ``type``: ``bool``, ``block`` (each ciphertext alone), ``uintN`` or ``intN`` (two's
    complement) for all values; default: the types in the file, which :func:`decrypt` keeps of TFHE-rs's, or ``block``.

    Raises ParameterError for another type, or another number of blocks; CiphertextError for a block that is too large for the type."""
    info = load_key(key_folder(committee, key))
    if not isinstance(info.parameters, LweParameters):
        raise ParameterError(f"{info.parameters.name}: plaintexts of {info.parameters.scheme.upper()} have no types: use keyquorum.decode")
    messages, types = read_messages(Path(plaintext))
    names = [type] if type is not None else list(types) or ["block"]
    values = typed_values(names, messages, info.parameters.block_bits, str(plaintext))
    return values, names if len(names) == len(values) else names * len(values)


@checked
def decrypt_job(
    committee: Committee | PathLike,
    key: str,
    ciphertexts: Sequence[PathLike],
    receiver: int,
    outputs: Sequence[PathLike],
    rounding: str = "round_ltz_circuit",
    *,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
    pool: bool = False,
    width: int = 8,
    levels: int = 2,
    parties: Sequence[int] | None = None,
    check_noise: bool = False,
) -> Json:
    """The job of :func:`decrypt` as plain data; the ciphertexts are read and checked here. Every party needs a copy of them."""
    committee = parties_of(as_committee(committee), parties)
    check_link(link, backend)
    require_embedded(committee, backend)
    folder = key_folder(committee.whole, key)
    stored = load_key_as(committee, folder)
    info = info_in(stored, committee, holding_of(folder, stored))
    check_decryptions(committee, info, rounding)
    scheme = encryption_of(info)
    pool = scheme.pooled(info, pool)
    if pool:
        variant_for(committee, rounding, info.parameters, width, levels)
        if backend != "embedded":
            raise ParameterError("pools are the embedded engine's: leave out --backend, or --pool")
        if committee.capabilities.quorum is not None and receiver > committee.threshold:
            raise ParameterError(f"with a pool parties 0 to {committee.threshold} round: choose one of them as the receiver, not {receiver}")
    if check_noise:
        refuse_noise_check(committee, info, backend)
    if len(outputs) != len(ciphertexts) or not ciphertexts:
        raise ParameterError(f"{len(outputs)} outputs for {len(ciphertexts)} ciphertexts: name one output for each")
    digests, parsed = [], []
    for path in map(Path, ciphertexts):
        if not path.exists():
            raise CiphertextError(f"{path}: no such file")
        data = path.read_bytes()
        parsed.append(scheme.read_ciphertext(info, path, data, rounding))
        digests.append(hashlib.sha256(data).hexdigest())
    scheme.check_decryption(info, parsed, committee.index_of(receiver), rounding)
    warn_all(scheme.warnings(info))
    warn_of_rounding(rounding, info.parameters)
    return {
        "kind": "decrypt",
        "key": key,
        "receiver": receiver,
        "rounding": rounding,
        "width": width,
        "levels": levels,
        "sha256": digests,
        "pool": pool,
        **({"check_noise": True} if check_noise else {}),
        **subset_field(parties),
        **Place(backend, mp_spdz, link).fields(
            ciphertexts=[str(Path(c).resolve()) for c in ciphertexts], outputs=[str(Path(o).resolve()) for o in outputs]
        ),
    }


@checked
def decrypt(
    committee: Committee | PathLike,
    key: str,
    ciphertexts: Sequence[PathLike],
    receiver: int,
    outputs: Sequence[PathLike],
    rounding: str = "round_ltz_circuit",
    *,
    progress: Progress | None = None,
    io_timeout: float = 120.0,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
    pool: bool = False,
    width: int = 8,
    levels: int = 2,
    parties: Sequence[int] | None = None,
    check_noise: bool = False,
) -> DecryptResult:
    """Decrypts ciphertext files. The receiver's process writes the plaintexts (mode 0600), in SEAL's format, or the messages of LWE as JSON.

    A key can be used on both backends, whichever made it. ``pool``: BFV and BGV take their masks from the committee's pool (:func:`pool_fill`); LWE
    always does. ``width``, ``levels``: bits of a block and levels of the tables of round_ltz_table.
    ``parties``: decrypt without the others, t + 1 of a committee of shamir or rep-field, or with shares of :func:`share`, and with a pool of these parties. ``check_noise``: BFV and BGV: first check jointly, by one bit, that all
    ciphertexts have less than half of the noise that they may have (:func:`keyquorum.plans.noise_check.check_noise`): CiphertextError, and nothing is decrypted, where not."""
    committee = as_committee(committee)
    if pool and backend != "embedded":
        raise ParameterError("pools are the embedded engine's: leave out --backend, or --pool")
    check_backend(backend, committee, mp_spdz)
    job = decrypt_job(
        committee, key, ciphertexts, receiver, outputs, rounding, backend=backend, mp_spdz=mp_spdz, link=link, pool=pool, width=width, levels=levels,
        parties=parties, check_noise=check_noise,
    )  # fmt: skip
    info = info_in(load_key(key_folder(committee, key)), parties_of(committee, parties))
    precisions = encryption_of(info).errors(info, [Path(c) for c in ciphertexts])
    results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
    return DecryptResult([Path(o) for o in outputs], [RunReport.from_json(r["report"]) for r in results], precisions)


@checked
def approve(
    committee: Committee | PathLike,
    key: str,
    ciphertext: PathLike,
    parties: Sequence[int] | None = None,
    operation: str | None = None,
    inputs: Sequence[PathLike] = (),
    step: int | None = None,
    *,
    message: float = 1.0,
    noise_bits: float | None = None,
) -> tuple[str, list[int]]:
    """Notes that parties of this host (default: all of them) agree to decrypt a CKKS ciphertext under a key. Returns its SHA-256 and the parties.

    The ciphertext counts as a fresh encryption of values up to ``message`` (default 1), or as one of noise 2^``noise_bits``. With ``operation`` and
    ``inputs`` the operation is computed again on inputs that were approved before (``step``: for rotate). The result must be this ciphertext. Its
    bounds follow from those of the inputs, and noise above the policy's bound is refused."""
    committee = as_committee(committee)
    here = committee.local_parties()
    chosen = list(here if parties is None else parties)
    for party in chosen:
        if party not in here:
            raise CommitteeError(f"party {party} is not on this host: approve there")
    if not chosen:
        raise CommitteeError(f"{committee.folder}: no party of the committee is on this host: approve on the hosts of the parties")
    for path in map(Path, (ciphertext, *inputs)):
        if not path.exists():
            raise CiphertextError(f"{path}: no such file")
    data, digest = Path(ciphertext).read_bytes(), ""
    for party in chosen:
        folder = committee.key_folder(party, key)
        info = load_seal_key(folder)
        if not info.policy.approvals:
            raise PolicyError(f"the policy of key {key!r} wants no approvals: make a CKKS key with keyquorum keygen --approvals")
        check_receipt(Path(ciphertext), data, info)
        if operation is None:
            digest = approvals.approve(folder, info, data, message, noise_bits)
        else:
            digest = approvals.approve_derived(folder, info, data, operation, [Path(i).read_bytes() for i in inputs], step)
    return digest, chosen


@checked
def write_job(path: PathLike, job: Json) -> None:
    """Writes a job file for ``keyquorum party``. Names of files under ``local`` are relative to the job file, and may be edited on each host."""
    job = relative_to(job, Path(path).absolute().parent)
    write_atomically(Path(path), json.dumps(job, indent=1).encode() + b"\n")


__all__ = [
    "OPERATIONS",
    "VARIANTS",
    "ApprovalError",
    "AuditError",
    "BackendError",
    "BgvNoise",
    "BurnedKeyError",
    "CiphertextError",
    "CiphertextFile",
    "Committee",
    "CommitteeError",
    "CommitteeShape",
    "DecryptResult",
    "Decrypted",
    "EncryptedFile",
    "Engine",
    "EngineError",
    "EpochError",
    "ErrorBound",
    "FloodPolicy",
    "KeyFileError",
    "KeyInUseError",
    "KeyInfo",
    "KeyMaterial",
    "KeyQuorumError",
    "KeyRequest",
    "KeygenResult",
    "MovedError",
    "MpSpdz",
    "Needs",
    "Noise",
    "NoiseEstimate",
    "Origin",
    "OutputError",
    "ParameterError",
    "ParameterSet",
    "Parameters",
    "Party",
    "PartyError",
    "PartyInterrupted",
    "PhaseReport",
    "PolicyError",
    "PoolCannotGrow",
    "PoolError",
    "PoolLost",
    "PoolTooSmall",
    "PoolUnwritable",
    "Precision",
    "ProgramError",
    "ProgramRequest",
    "Progress",
    "Protocol",
    "ProveResult",
    "RecoverResult",
    "RefreshResult",
    "ReshareResult",
    "ResourceError",
    "RunReport",
    "SealDecrypted",
    "SealFormatError",
    "SealKeyInfo",
    "SealMissingError",
    "SealOperationError",
    "SealRequest",
    "SecretVector",
    "SecurityWarning",
    "ShareVector",
    "UnknownParameterSetError",
    "ValuesError",
    "address",
    "approve",
    "check_receipt",
    "decode",
    "decode_values",
    "decrypt",
    "decrypt_in_process",
    "decrypt_job",
    "encrypt",
    "epoch_commit",
    "epoch_erase",
    "epoch_give_up",
    "epoch_history",
    "epoch_lines",
    "epoch_prove",
    "epoch_prove_job",
    "epoch_status",
    "evaluate",
    "export_key",
    "fingerprint",
    "galois_elements",
    "in_process_committee",
    "init",
    "init_after",
    "keygen",
    "keygen_in_process",
    "keygen_job",
    "keygen_needs",
    "load_key",
    "load_parameters",
    "load_public_file",
    "move",
    "parameter_set_names",
    "pool_drop",
    "pool_fill",
    "pool_fill_job",
    "pool_lines",
    "pool_list",
    "pool_needs",
    "recover",
    "recover_job",
    "refresh_shares",
    "refresh_shares_job",
    "reshare",
    "reshare_job",
    "run",
    "run_party",
    "share",
    "share_job",
    "trust",
    "write_job",
    "write_receipt",
]
