"""Targets of fuzzing: every parser of files and of messages in Python, with its valid inputs.

Files are in memory if a reader only reads them. After a parser has accepted an input, the code that uses the result runs at once, so that a
wrong type is found here.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import struct
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import zstandard
from keyquorum._engine import ShareFile, make_identity
from keyquorum.backends.embedded import Embedded
from keyquorum.fhe._stream import HEADER_BYTES
from keyquorum.fhe.keys import galois_element, validate_galois_keys, validate_public_key, validate_relin_keys
from keyquorum.fhe.lwe import encrypt, lwe_parameters, read_lwe
from keyquorum.fhe.lwe_public import LwePublicKey, read_lwe_public_key
from keyquorum.fhe.parameters import ParameterSet, from_toml
from keyquorum.fhe.seal_format import (
    Ciphertext,
    read_ciphertext,
    read_plaintext,
    read_public_key,
    read_switch_keys,
    write_ciphertext,
)
from keyquorum.fhe.values import fit_values, read_values
from keyquorum.model.committee import Committee, Party
from keyquorum.model.errors import CommitteeError, PolicyError
from keyquorum.model.plain import json_loads
from keyquorum.parties import jobs
from keyquorum.plans import pool_list, pool_store, pools
from keyquorum.schemes import counts as policy
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import check_made_by, load_key, load_public_file, write_info
from keyquorum.schemes.lwe.key import LweKeyInfo
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.prf import evaluations
from keyquorum.schemes.prf import policy as evaluation_policy
from keyquorum.schemes.prf.evaluations import Counted, read_known
from keyquorum.schemes.prf.functions import inner_of
from keyquorum.schemes.prf.key import LEGENDRE
from keyquorum.schemes.seal import receipts
from keyquorum.schemes.seal.key import SealKeyInfo, parameters_to_json
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.serve import admission, limits, listener, wire
from keyquorum.serve.kinds import base, decryption, toprf, toprf_macs
from keyquorum.serve.live import choice
from keyquorum.serve.plan import read_plan

from tests.fhe.dealer import Dealer

from .driver import FILE_ERRORS, Target
from .memory import Channel, MemoryFile, MemoryFolder

# A small set whose modulus fits the flooding of the default policy.
_CKKS = ParameterSet("tiny-ckks", "ckks", 1024, (144115188075134977, 4503599626682369, 144115188075593729), scale_bits=52, security="none")
_BFV = ParameterSet("tiny-bfv", "bfv", 1024, (833537, 858113), plain_modulus=12289, security="none")
_BGV = replace(_BFV, name="tiny-bgv", scheme="bgv")
_SETS = (_CKKS, _BFV, _BGV)
_POOL_ID = "0123456789abcdef" * 2


@cache
def _key_info() -> SealKeyInfo:
    return SealKeyInfo(
        key_id="ab" * 16, parameters=_CKKS, protocol="rep-field", parties=3, threshold=1, error_law="cbd", relin=True,
        galois_elements=(galois_element(1, 1024),), policy=FloodPolicy(noise_bits=11), transcript="cd" * 32, files={"public.key": "ef" * 32},
    )  # fmt: skip


def _committee(folder: Path = Path("folder")) -> Committee:
    parties = tuple(Party(i, "127.0.0.1", 7000 + i, f"{i:064x}") for i in range(3))
    return Committee(folder, "fuzz", "rep-field", 1, parties)


# Pools


def _parse_journal(data: bytes) -> None:
    claim = pool_store.last_claim(MemoryFile("cursor.journal", data), _POOL_ID)  # type: ignore[arg-type]
    if claim is None:
        raise pool_store.PoolError("the journal is missing or damaged")
    assert 0 <= claim.start <= claim.end
    assert isinstance(claim.chain, str)
    assert pool_store.last_claim(MemoryFile("cursor.journal", claim.to_line(_POOL_ID)), _POOL_ID) == claim  # type: ignore[arg-type]


def _journals() -> list[bytes]:
    lines = [
        pool_store.Claim(0, 0, "ab" * 32),
        pool_store.Claim(0, 7, "cd" * 32, [(0, "ab" * 32), (0, "ab" * 32)]),
        pool_store.Claim(7, 4096, "ef" * 32, [(7, "cd" * 32), (7, "cd" * 32)]),
    ]
    texts = [line.to_line(_POOL_ID) for line in lines]
    return [texts[0], b"".join(texts), texts[2], texts[1] + texts[2][:40]]


def _mend_journal(data: bytes) -> bytes:
    """Gives the last line its right checksum."""
    first, _, last = data.removesuffix(b"\n").rpartition(b"\n")
    text = last.partition(b" ")[2]
    checksum = hashlib.sha256(f"keyquorum claim {_POOL_ID} ".encode() + text).hexdigest()[:32].encode()
    return (first + b"\n" if first else b"") + checksum + b" " + text + b"\n"


def _parse_pool(data: bytes) -> None:
    read = pool_list.read_pool(MemoryFolder(pool_json=data))  # type: ignore[arg-type]
    assert read is not None
    chunks = read.chunks
    assert chunks.items == chunks.gone_items + sum(chunk.count for chunk in chunks.listed) >= chunks.gone
    assert all(chunk.id.isalnum() for chunk in chunks.listed)
    again = {"id": read.id, "kind": read.kind, **chunks.to_json()}
    written = pool_list.read_pool(MemoryFolder(pool_json=json.dumps(again).encode()))  # type: ignore[arg-type]
    assert written is not None and (written.chunks.items, written.chunks.digest) == (chunks.items, chunks.digest)


def _pool_files() -> list[bytes]:
    kind = {"variant": "lwe64-p2-round_ltz_circuit", "sections": [[3, 64], [1, 1]], "protocol": "ring", "members": [0, 1, 2], "party": 0}
    chunks = [{"id": "ab" * 16, "count": 4096}, {"id": "cd" * 16, "count": 17}]
    gone = {"chunks": 2, "items": 4100, "chain": "ef" * 32}
    earlier: list[dict[str, Any]] = [{"chunks": chunks}, {"chunks": []}]  # version 1
    return [
        json.dumps({"id": _POOL_ID, "kind": kind, **e}, indent=1).encode() + b"\n" for e in (*earlier, {"version": 2, "gone": gone, "chunks": chunks})
    ]


class _Reports:
    """A session whose other party sends the given bytes."""

    parties, party = 2, 0

    def __init__(self, data: bytes) -> None:
        self._data = data

    def send(self, to: int, data: bytes) -> None: ...

    def recv(self, peer: int, limit: int) -> bytes:
        return self._data


def _report(**changes: Any) -> pools.Report:
    fields = {
        "purpose": "decrypt 3 items, x", "pool_id": _POOL_ID, "chunks": [("ab" * 16, 7)], "end": 7, "chain": "cd" * 32,
        "before": [(0, "ab" * 32), (0, "ab" * 32)], "start": 0, "next": 7, "ahead": 2, "nonce": "12" * 16,
    }  # fmt: skip
    return pools.Report(**{**fields, **changes})


def _parse_report(data: bytes) -> None:
    pool = object.__new__(pools.Pool)
    pool.session, pool.group = _Reports(data), SimpleNamespace(numbers=(0, 1))  # type: ignore[assignment]
    pool._names = [0, 1]
    reports = pool._all_reports(_report())
    pools.judge(reports, (0, 1))


def _reports() -> list[bytes]:
    changed = (
        {},
        {"next": 5},
        {"start": 7, "end": 9, "before": [(7, "cd" * 32), (7, "cd" * 32)], "chain": "ef" * 32, "next": 9},
        {"gone": (1, 7), "chunks": []},
    )
    return [json.dumps(vars(_report(**c))).encode() for c in changed]


# Bytes of SEAL


def _compressed(data: bytes) -> list[bytes]:
    """The same object in SEAL's other two modes."""
    packed = [zlib.compress(data[HEADER_BYTES:], 1), zstandard.ZstdCompressor(1).compress(data[HEADER_BYTES:])]
    return [data[:5] + bytes([mode]) + data[6:8] + struct.pack("<Q", HEADER_BYTES + len(p)) + p for mode, p in enumerate(packed, 1)]


def _ciphertexts(parameters: ParameterSet) -> list[bytes]:
    rng = np.random.default_rng(1)
    moduli = np.array(parameters.coeff_modulus[:-1], dtype=np.uint64)[:, None]
    found = []
    for primes in range(1, parameters.levels + 1):
        words = rng.integers(0, 1 << 60, (2, primes, parameters.ring_degree), dtype=np.uint64) % moduli[:primes]
        ckks = parameters.scheme == "ckks"
        found.append(write_ciphertext(parameters, Ciphertext(primes, words, ckks, 2.0**parameters.scale_bits if ckks else 1.0, 1)))
    zeros = Ciphertext(1, np.zeros((2, 1, parameters.ring_degree), np.uint64), parameters.scheme == "ckks", 1.0, 1)
    return [*found, *_compressed(write_ciphertext(parameters, zeros))]


def _tagged(found: Sequence[tuple[int, bytes]]) -> list[bytes]:
    """A first byte says which reader an input is for."""
    return [bytes([tag]) + data for tag, data in found]


def _mend_seal(data: bytes) -> bytes:
    """The length that the bytes have, in the outermost header."""
    return data[:9] + struct.pack("<Q", len(data) - 1) + data[17:] if len(data) > 17 else data


def _parse_ciphertext(data: bytes) -> None:
    if not data:
        raise pool_store.PoolError("no input")
    read_ciphertext(_SETS[data[0] % 3], memoryview(data)[1:], "the file")


def _galois() -> list[int]:
    return [galois_element(1, 1024), galois_element(-2, 1024)]


def _parse_key(data: bytes) -> None:
    if not data:
        raise pool_store.PoolError("no input")
    body, parameters = memoryview(data)[1:], _SETS[data[0] // 8 % 3]
    (
        lambda: validate_public_key(parameters, body),
        lambda: validate_relin_keys(parameters, body),
        lambda: validate_galois_keys(parameters, body, _galois()),
        lambda: read_switch_keys(parameters, body),
        lambda: read_public_key(parameters, body),
        lambda: read_plaintext(parameters, body),
    )[data[0] % 8 % 6]()  # fmt: skip


def _keys() -> list[bytes]:
    found = []
    for index, parameters in enumerate(_SETS):
        dealer = Dealer(parameters)
        public = dealer.public_key()
        found.append((8 * index, public))
        found += [(8 * index + 4, data) for data in _compressed(public)]
        relin = dealer.relin_keys()
        found += [(8 * index + 1, relin), (8 * index + 3, _compressed(relin)[1])]
    found.append((2, Dealer(_CKKS).galois_keys(_galois())))
    return _tagged(found)


# Ciphertexts of LWE, values


def _parse_lwe(data: bytes) -> None:
    ciphertexts, key_id = read_lwe(data, "the file")
    assert ciphertexts.a.shape == (ciphertexts.count, ciphertexts.parameters.dimension)
    ciphertexts.digest()
    assert isinstance(key_id, str)


def _lwe_files() -> list[bytes]:
    rng = np.random.default_rng(1)
    found = []
    for name, count in (("lwe64-p2", 1), ("lwe53-p16", 1), ("lwe64-p2", 2)):
        parameters = lwe_parameters(name)
        secret = rng.integers(0, 2, parameters.dimension)
        found.append(encrypt(parameters, secret, rng.integers(0, 2, count), rng).to_bytes("ab" * 16))
    return found


def _mend_lwe(data: bytes) -> bytes:
    """The length that the header has, and the digest at the end."""
    end = data.find(b"}", 12)
    if end < 0:
        return data
    mended = (data[:8] + (end - 11).to_bytes(4, "little") + data[12:])[:-32]
    return mended + hashlib.sha256(mended).digest()


def _parse_lwe_public_key(data: bytes) -> None:
    key = read_lwe_public_key(data, "the file")
    assert key.body.size == key.parameters.dimension
    assert len(key.seed) == 64 and isinstance(key.key_id, str)


def _lwe_public_keys() -> list[bytes]:
    rng = np.random.default_rng(2)
    sets = [lwe_parameters(name) for name in ("lwe64-p2", "lwe53-p16")]
    return [LwePublicKey(p, "ab" * 16, rng.bytes(64), rng.integers(0, p.modulus - 1, p.dimension, dtype=np.uint64)).to_bytes() for p in sets]


class _Scratch:
    """A folder in memory that goes with the process."""

    def __init__(self) -> None:
        shm = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(prefix="kq-fuzz-", dir=shm if shm.is_dir() else None)
        self.path = Path(self._folder.name)


@cache
def _scratch() -> Path:
    scratch = _Scratch()
    _KEPT.append(scratch)
    return scratch.path


_KEPT: list[_Scratch] = []


def _parse_values(data: bytes) -> None:
    if not data:
        raise pool_store.PoolError("no input")
    path = _scratch() / f"values{('.json', '.csv', '.npy')[data[0] % 3]}"
    path.write_bytes(data[1:])
    values = read_values(path)
    fit_values(_SETS[data[0] // 3 % 3], values[:512])


def _values() -> list[bytes]:
    path = _scratch() / "v.npy"
    found = [(0, b"[1, 2.5, -3]"), (3, b"[1, 2, 3]\n"), (1, b"1,2.5,-3\n1e3,1+2j\n"), (4, b"1,2\n3\n")]
    for array in (np.arange(6).reshape(2, 3), np.linspace(0, 1, 5)):
        np.save(path, array)
        found.append((2, path.read_bytes()))
    return _tagged(found)


# Files of a committee and its keys


def _parse_committee(data: bytes) -> None:
    committee = Committee.load(MemoryFolder(committee_toml=data))  # type: ignore[arg-type]
    assert len(committee.digest) == 32
    assert committee.protocols
    committee.check_complete()


def _committees() -> list[bytes]:
    folder = _scratch()
    found = []
    for committee in (
        _committee(folder),
        replace(_committee(folder), protocol="shamir", openings="star"),
        replace(_committee(folder), protocol="spdz2k", threshold=2, name="größer"),
    ):
        committee.save()
        found.append((folder / "committee.toml").read_bytes())
    return found


def _parse_parameters(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise pool_store.PoolError("the reader of the file refuses it") from None
    parameters = from_toml(text, "the file")
    assert from_toml(parameters.to_toml(), "the copy") == parameters


def _parameters() -> list[bytes]:
    folder = Path(__file__).resolve().parents[2] / "params"
    files = (path.read_bytes() for path in sorted(folder.glob("*.toml")) if path.stat().st_size < 1500)
    # Sets of these schemes are compared with the shipped ones.
    shipped = [data for data in files if not any(f'scheme = "{scheme}"'.encode() in data for scheme in ("tfhe", "fhew"))]
    return [*(set_.to_toml().encode() for set_ in _SETS), *shipped]


def _parse_key_info(data: bytes) -> None:
    folder: Any = MemoryFolder(key_json=data)
    info = load_key(folder)
    assert len(info.digest) == 32
    assert type(info).from_json(json.loads(json.dumps(info.to_json()))) == info  # type: ignore[attr-defined]
    check_made_by(_committee(), info, folder)
    assert set(info.share_header(0, 0)) > {"key_id"}
    if isinstance(info, SealKeyInfo):
        load_public_file(MemoryFolder(key_json=data, public_key=b"x"), info, "public.key")  # type: ignore[arg-type]


def _key_infos() -> list[bytes]:
    info = replace(_key_info(), files={"public.key": hashlib.sha256(b"x").hexdigest()})
    bfv = replace(info, parameters=_BFV, galois_elements=(), relin=False)
    return [json.dumps(i.to_json(), indent=1).encode() + b"\n" for i in (info, bfv, *map(_lwe_info, ("lwe64-p2", "lwe53-p16")))]


def _lwe_info(name: str) -> LweKeyInfo:
    return LweKeyInfo(key_id="ab" * 16, parameters=lwe_parameters(name), protocol="rep-field", parties=3, threshold=1)


def _parse_receipt(data: bytes) -> None:
    class Beside:
        def __new__(cls, name: str) -> Any:
            return MemoryFile(name, data)

    real, receipts.Path = receipts.Path, Beside  # type: ignore[misc, assignment]
    try:
        receipts.check_receipt.__wrapped__(real("c.ct"), b"a ciphertext", _key_info())  # type: ignore[attr-defined]
    finally:
        receipts.Path = real  # type: ignore[misc]


def _receipts() -> list[bytes]:
    receipt = {"key_id": _key_info().key_id, "sha256": hashlib.sha256(b"a ciphertext").hexdigest()}
    return [json.dumps(receipt, indent=indent).encode() + b"\n" for indent in (None, 1)]


def _parse_count(data: bytes) -> None:
    folder: Any = MemoryFolder(decryptions_json=data)
    assert policy.decryptions_used(folder, _key_info()) >= 0


def _counts() -> list[bytes]:
    return [json.dumps({"key_id": _key_info().key_id, "used": used}).encode() + b"\n" for used in (0, 16)]


# Jobs


class _Reached(Exception):
    """A job has passed all checks before its parties communicate."""


class _Session:
    party, parties = 0, 3

    def compare(self, label: str, digest: bytes) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise _Reached


class _Backend(Embedded):
    def __init__(self) -> None:
        self.session = _Session()  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise _Reached


class _Context:
    """A party whose job ends where it would send its first message with own data."""

    party, session, backend, seed = 0, _Session(), _Backend(), None

    def __init__(self, committee: Committee) -> None:
        self.committee, self.parties = committee, committee.size

    def phase(self, name: str, steps: int = 1) -> Any:
        raise _Reached


_PRODUCT_JOBS = ("keygen", "pool_fill", "toprf_fill", "share", "toprf_encrypt", "decrypt", "program")
"""The others measure, and are written by the program that measures."""


@cache
def _sharing_committee() -> Committee:
    """One whose parties decrypt without the others after ``share`` alone."""
    committee = replace(_committee(_scratch() / "additive"), protocol="semi", threshold=2)
    committee.key_folder(0, "lwe").mkdir(parents=True, exist_ok=True)
    write_info(committee.key_folder(0, "lwe"), replace(_lwe_info("lwe64-p2"), protocol="semi", threshold=2))
    return committee


def _job_committee() -> Committee:
    committee = _committee(_scratch())
    for name in ("ckks", "lwe"):
        committee.key_folder(0, name).mkdir(parents=True, exist_ok=True)
    write_info(committee.key_folder(0, "ckks"), _key_info())
    info = _lwe_info("lwe64-p2")
    write_info(committee.key_folder(0, "lwe"), info)
    ShareFile.write(str(committee.key_folder(0, "lwe") / "share-0.kqs"), info.share_header(0, 0), bytes(2 * 8 * 1024))
    return committee


def _parse_job(data: bytes) -> None:
    job = jobs.read_job(MemoryFile("job.json", data))  # type: ignore[arg-type]
    jobs.check_job(job)
    jobs.link_of(job)
    jobs.backend_of(job)
    jobs.job_entries(job)
    if job["kind"] in _PRODUCT_JOBS:
        with suppress(_Reached):
            committee = _sharing_committee() if job["kind"] == "share" else _job_committee()
            jobs.run_job(_Context(jobs.runs(committee, job)), job)  # type: ignore[arg-type]


def _jobs() -> list[bytes]:
    _job_committee()
    ciphertext, lwe = _scratch() / "c.ct", _scratch() / "c.lwe"
    ciphertext.write_bytes(_ciphertexts(_CKKS)[1])
    lwe.write_bytes(_lwe_files()[0])
    rounds = {"rounding": "round_ltz_circuit", "width": 8, "levels": 2, "parameters": "lwe64-p2"}
    made = [
        {
            "kind": "keygen", "key": "new", "parameters": parameters_to_json(_CKKS), "relin": True, "galois_elements": [3], "error_law": "cbd",
            "policy": asdict(FloodPolicy(noise_bits=11)), "backend": "embedded", "local": {"mp_spdz": None}, "link": "lan",
        },
        {
            "kind": "keygen", "key": "new-lwe", "parameters": asdict(lwe_parameters("lwe64-p2")), "backend": "embedded", "local": {},
        },
        {"kind": "pool_fill", **rounds, "count": 10, "chunk": 4, "link": "rtt=1,mbit=10"},
        {
            "kind": "decrypt", "key": "lwe", "receiver": 0, "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "pool": True,
            "backend": "embedded", "sha256": [hashlib.sha256(lwe.read_bytes()).hexdigest()],
            "local": {"ciphertexts": [str(lwe)], "outputs": ["out.json"]},
        },
        {
            "kind": "decrypt", "key": "ckks", "receiver": 1, "rounding": "round_ltz_circuit", "pool": False, "backend": "embedded",
            "sha256": [hashlib.sha256(ciphertext.read_bytes()).hexdigest()], "local": {"ciphertexts": [str(ciphertext)], "outputs": ["out"]},
        },
        {
            "kind": "program", "link": None, "local": {"folder": "folder"},
            "request": {"program": "millionaires", "args": ["8"], "protocol": "ring", "parties": 3, "ring": 64, "field": None},
        },
        {"kind": "sweep:decrypt", **rounds, "items": 3, "single": True},
        {"kind": "pool_fill", **rounds, "count": 10, "chunk": 4, "subset": [0, 2]},
        {"kind": "share", "key": "lwe", "members": 2},
        {"kind": "toprf_fill", "count": 10, "chunk": 4},
    ]  # fmt: skip
    return [json.dumps(job, indent=1).encode() + b"\n" for job in made]


# Evaluations


def _parse_evaluations(data: bytes) -> None:
    found = evaluations.read_journal(MemoryFile(evaluations.JOURNAL, data))  # type: ignore[arg-type]
    assert found.total >= found.dropped >= 0 and 0 <= found.length <= len(data)
    assert len(found.ids) <= len(found.lines) and found.used("0a" * 32, 1.8e9) <= found.total


def _evaluations() -> list[bytes]:
    first = evaluations._first("ab" * 16, 7)
    lines = [evaluations._line("ab" * 16, vars(evaluations.Counted(1.8e9 + i, f"{i:02x}" * 32, f"request{i}", i + 1))) for i in range(3)]
    return [first, first + lines[0], first + b"".join(lines), first + lines[1] + lines[2][:40]]


def _mend_evaluations(data: bytes) -> bytes:
    """Gives the last line its right checksum."""
    first, _, last = data.removesuffix(b"\n").rpartition(b"\n")
    text = last.partition(b" ")[2]
    key_id = ("ab" * 16).encode() if first else b""
    checksum = hashlib.sha256(b"keyquorum evaluation " + key_id + b" " + text).hexdigest()[:32].encode()
    return (first + b"\n" if first else b"") + checksum + b" " + text + b"\n"


def _parse_evaluation_policy(data: bytes) -> None:
    found = evaluation_policy.read_policy(MemoryFile(evaluation_policy.POLICY, data))  # type: ignore[arg-type]
    assert found.rate >= 1 and found.text().isprintable()
    with suppress(PolicyError):
        found.require_allowed("0a" * 32)


def _evaluation_policies() -> list[bytes]:
    made = (evaluation_policy.EvaluationPolicy("ab" * 16, 100), evaluation_policy.EvaluationPolicy("ab" * 16, 1, 5, ("0a" * 32,)))
    return [json.dumps(policy.to_json()).encode() + b"\n" for policy in made]


def _parse_limits(data: bytes) -> None:
    found = limits.read_limits(MemoryFile(limits.NAME, data))  # type: ignore[arg-type]
    for limit in (*found.all, *(limit for own in found.receivers.values() for limit in own)):
        assert limits.parse_limit(str(limit).replace(",", "")) == limit
    with suppress(PolicyError):
        limits.Meter(found).take("0a" * 32, "receiver-alice", 5, 2)


def _limits() -> list[bytes]:
    made = ({"all": ["20 requests/s", "100000 items/h", "8 waiting"]}, {"receivers": {"receiver-alice": ["5 items/day"], "receiver-bob": []}})
    return [json.dumps(entry).encode() for entry in made]


@cache
def _receivers_folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="kq-fuzz-")
    atexit.register(made.cleanup)
    make_identity(f"{made.name}/alice.pem", "alice")
    return Path(made.name)


def _parse_certificate(data: bytes) -> None:
    """A file in the folder of receivers is admitted or skipped, whatever it has, beside another one that is admitted."""
    folder = _receivers_folder() / "receivers"
    folder.mkdir(exist_ok=True)
    (folder / "bob.crt").write_bytes(_certificates()[0])
    (folder / "alice.crt").write_bytes(data)
    found = admission.read_certificates(folder)
    assert found.admitted and "bob.crt" not in found.skipped
    for name, reason in found.skipped.items():
        raise CommitteeError(admission.skipped_text(folder / name, reason))


@cache
def _certificates() -> list[bytes]:
    return [wire.certificate_of(_receivers_folder() / "alice.pem").encode()]


# What peers and receivers send


@cache
def _lwe_key() -> decryption.ServedKey:
    key = object.__new__(decryption.ServedKey)
    key._info, key.key_id = _lwe_info("lwe64-p2"), "ab" * 16
    key._scheme = scheme_of(key._info)
    key.variant = LweVariant("round_ltz_circuit", lwe_parameters("lwe64-p2"))
    key.unit, key.limit = 1, key._scheme.request_limit(key._info.parameters)
    return key


class _Requests:
    patience = 0.0

    def add(self, key: str, parsed: base.ParsedRequest) -> Any:
        return SimpleNamespace(done=SimpleNamespace(result=lambda timeout: parsed.digest))


def _parse_message(data: bytes) -> None:
    channel, key = Channel(data), _lwe_key()
    server = object.__new__(listener.Listener)
    server._key, server._requests = key, _Requests()  # type: ignore[assignment]
    while (message := wire.receive_message(channel, key.limit)) is not None:  # type: ignore[arg-type]
        head, body = message
        server._request("ab" * 32, head, body)


def _parse_points(data: bytes) -> None:
    channel, kind = Channel(data), object.__new__(toprf.ToprfKind)
    kind.key_id, kind._held, kind.named, kind.limit = "ab" * 16, (0, 1), None, 1 << 15
    kind._inner = inner_of(LEGENDRE)
    while (message := wire.receive_message(channel, kind.limit)) is not None:  # type: ignore[arg-type]
        parsed = kind.read(*message)
        _, _, count = toprf.counted(("0a" * 32 + "/request1", parsed))
        assert 1 <= count <= parsed.count <= 2 * count


def _points() -> list[bytes]:
    found = []
    for output, inputs in ((16, 1), (32, 3)):
        head = json.dumps({"id": "0123456789", "key": "ab" * 16, "output": output}).encode()
        body = bytes(32 * inputs)
        found.append(len(head).to_bytes(4, "little") + len(body).to_bytes(8, "little") + head + body)
    return found


def _parse_masked(data: bytes) -> None:
    channel, kind = Channel(data), object.__new__(toprf_macs.MaskedToprfKind)
    kind.key_id, kind.named, kind.limit = "ab" * 16, None, 1 << 10
    while (message := wire.receive_message(channel, kind.limit)) is not None:  # type: ignore[arg-type]
        parsed = kind.read(*message)
        _, _, count = toprf.counted(("0a" * 32 + "/request1", parsed))
        assert 1 <= count <= parsed.count <= 2 * count and kind._digest(("0a" * 32 + "/request1", parsed), [0])


def _masked() -> list[bytes]:
    found = []
    for head, size in (({"masks": 3}, 0), ({"use": "0123456789"}, 48)):
        text = json.dumps({"id": "0123456789", "key": "ab" * 16, "output": 32, **head}).encode()
        found.append(len(text).to_bytes(4, "little") + size.to_bytes(8, "little") + text + bytes(size))
    return found


def _messages() -> list[bytes]:
    class Kept:
        def __init__(self) -> None:
            self.data = b""

        def sendall(self, data: bytes) -> None:
            self.data += bytes(data)

    found = []
    for head in ({"id": "0123456789"}, {"id": "abcdefgh", "key": "ab" * 16}):
        kept = Kept()
        wire.send_message(kept, head, _lwe_files()[0])  # type: ignore[arg-type]
        found.append(kept.data)
    return found


def _mend_message(data: bytes) -> bytes:
    """Lengths that end head and body where they do."""
    end = data.find(b"}", 12) + 1
    return (end - 12).to_bytes(4, "little") + (len(data) - end).to_bytes(8, "little") + data[12:] if end > 12 else data


def _parse_plan(data: bytes) -> None:
    plan = read_plan(data)
    assert plan.fill >= 0
    for key, digest in plan.decrypt:
        assert isinstance(key, str)
        assert isinstance(digest, str)
    for key, count, left in plan.refuse:
        assert isinstance(key, str)
        assert f"{count:,} {left:,}"


def _plans() -> list[bytes]:
    key = "ab" * 32 + "/0123456789"
    made = [
        {"fill": 0, "decrypt": [], "refuse": []},
        {"fill": 1024, "decrypt": [], "refuse": [[key, 5000, 17]]},
        {"fill": 0, "decrypt": [[key, "cd" * 32], [key + "x", "ef" * 32]], "refuse": []},
    ]
    return [json.dumps(plan).encode() for plan in made]


def _parse_statement(data: bytes) -> None:
    head = json_loads(data)
    if isinstance(head, dict):
        said = choice.read_statement(head, 1, 5, 3)
        assert choice.read_statement(said.to_json(), 1, 5, 3) == said


def _statements() -> list[bytes]:
    view = choice.View(7, (0, 1, 4))
    made = [
        choice.Statement(1, "ab" * 32), choice.Statement(1, "ab" * 32, choice.State.SERVING, view), choice.Statement(1, "cd" * 32, choice.State.IDLE, view, choice.View(8, (1, 2, 3))),
    ]  # fmt: skip
    return [json.dumps(said.to_json()).encode() for said in made]


def _parse_known(data: bytes) -> None:
    total, lines = read_known(data)
    assert total >= 0 and all(line.count > 0 for line in lines)


def _known() -> list[bytes]:
    lines = [vars(Counted(float(i), "ab" * 32, f"request{i}", i + 1)) for i in range(3)]
    return [json.dumps({"total": 10, "lines": lines[:i]}).encode() for i in range(4)]


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("pool-journal", _parse_journal, _journals, text=True, mend=_mend_journal),
        Target("pool-file", _parse_pool, _pool_files, text=True),
        Target("pool-report", _parse_report, _reports, text=True),
        Target(
            "seal-ciphertext", _parse_ciphertext, lambda: _tagged([(i, c) for i, s in enumerate(_SETS) for c in _ciphertexts(s)]), mend=_mend_seal
        ),
        Target("seal-key", _parse_key, _keys, mend=_mend_seal),
        Target("lwe-file", _parse_lwe, _lwe_files, mend=_mend_lwe),
        Target("lwe-public-key", _parse_lwe_public_key, _lwe_public_keys, mend=_mend_lwe),
        Target("job-file", _parse_job, _jobs, text=True, errors=FILE_ERRORS),
        Target("committee", _parse_committee, _committees, text=True),
        Target("parameters", _parse_parameters, _parameters, text=True),
        Target("key-info", _parse_key_info, _key_infos, text=True),
        Target("receipt", _parse_receipt, _receipts, text=True),
        Target("decryption-count", _parse_count, _counts, text=True),
        Target("receiver-message", _parse_message, _messages, mend=_mend_message, errors=(*FILE_ERRORS, ConnectionError)),
        Target("evaluation-count", _parse_evaluations, _evaluations, text=True, mend=_mend_evaluations),
        Target("evaluation-policy", _parse_evaluation_policy, _evaluation_policies, text=True),
        Target("evaluation-request", _parse_points, _points, mend=_mend_message, errors=(*FILE_ERRORS, ConnectionError)),
        Target("masked-request", _parse_masked, _masked, mend=_mend_message, errors=(*FILE_ERRORS, ConnectionError)),
        Target("receiver-limits", _parse_limits, _limits, text=True),
        Target("receiver-certificate", _parse_certificate, _certificates, text=True),
        Target("service-plan", _parse_plan, _plans, text=True),
        Target("live-statement", _parse_statement, _statements, text=True, errors=(*FILE_ERRORS, ValueError)),
        Target("known-evaluations", _parse_known, _known, text=True, errors=(*FILE_ERRORS, ValueError)),
        Target("values", _parse_values, _values),
    )
}
