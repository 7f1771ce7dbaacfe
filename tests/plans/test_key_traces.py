"""Key traces: hashes of every scheme's key generation under each kind of committee, compared with the checked-in file ``key_traces.txt``.

A change of a key, or of what its plan asks of the engine, is a changed line there. After an intended one, write the file anew::

    KEY_TRACES=write .venv/bin/python -m pytest -q tests/plans/test_key_traces.py

All randomness is fixed: engines have a seed, tosses and the operating system's bytes come from streams of it, and so do MAC keys. A line has five
hashes, each over all parties:

* ``key``: the metadata, with key id and transcript;
* ``public``: the bytes of the public files;
* ``shares``: the share files. Names of runs are tossed, and no seed fixes what oblivious transfer makes: of the first the length counts, and of
  shares that were made with the second the values;
* ``steps``: what the plan asks for, in order: phases, comparisons, tosses, joint integers; and of every run its protocol, domain, program, private
  and public inputs, options, the length of its share file and the words that it opens;
* ``cost``: of every phase its rounds and bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.baselines.toprf_lwe.keygen import GateRequest
from bench.baselines.toprf_lwe.keygen import generate as generate_gates
from keyquorum import api
from keyquorum.backends.base import ONCE
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.parties import PartyContext, mac_key
from keyquorum.schemes import scheme_of
from keyquorum.schemes.fhew import keygen as fhew
from keyquorum.schemes.fhew.keygen import FhewRequest
from keyquorum.schemes.keys import KeyMaterial, KeyRequest
from keyquorum.schemes.lwe.keygen import LweRequest
from keyquorum.schemes.prf.key import AES, LEGENDRE
from keyquorum.schemes.prf.keygen import PrfRequest
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.tfhe import keygen as tfhe
from keyquorum.schemes.tfhe.keygen import TfheRequest
from keyquorum.sharing import randomness

from tests.fhe.dealer import tiny
from tests.schemes.test_fhew import TINY as FHEW
from tests.schemes.test_prf_lwe import TOY as GATES
from tests.schemes.test_tfhe import TINY as TFHE

from .quorum import WEAK, run_fixed

FILE = Path(__file__).with_name("key_traces.txt")
SEED = b"key traces"
HEAD = f"""\
# Key traces: see tests/plans/{Path(__file__).name}. After an intended change, write this file anew:
#   KEY_TRACES=write .venv/bin/python -m pytest -q tests/plans/{Path(__file__).name}
# scheme protocol parties: halves of SHA-256
"""


def _seal(scheme: str = "bfv", error_law: str = "cbd", galois: tuple[int, ...] = (3,)) -> SealRequest:
    return SealRequest(tiny(scheme, 2, 1024), True, galois, error_law, WEAK)  # type: ignore[arg-type]


CASES: dict[str, tuple[KeyRequest, str, int]] = {
    **{f"seal-bfv {protocol} {n}": (_seal(), protocol, n) for protocol, n in (
        ("rep-field", 3), ("shamir", 3), ("shamir", 5), ("semi", 2), ("mascot", 2), ("mal-rep-field", 3), ("mal-shamir", 3), ("mal-shamir", 5),
    )},
    **{f"seal-bgv {protocol} 3": (_seal("bgv"), protocol, 3) for protocol in ("rep-field", "mal-rep-field")},
    **{f"seal-ckks {protocol} {n}": (_seal("ckks"), protocol, n) for protocol, n in (("rep-field", 3), ("mascot", 2), ("mal-shamir", 4))},
    "seal-gaussian rep-field 3": (_seal(error_law="gaussian"), "rep-field", 3),
    **{f"lwe64-p2 {protocol} {n}": (LweRequest(lwe_parameters("lwe64-p2")), protocol, n) for protocol, n in (
        ("rep-field", 3), ("semi", 2), ("mascot", 2), ("mal-rep-field", 3),
    )},
    **{f"lwe53-p16 {protocol} 3": (LweRequest(lwe_parameters("lwe53-p16")), protocol, 3) for protocol in ("shamir", "mal-shamir")},
    **{f"tfhe-bits {protocol} {n}": (TfheRequest(TFHE), protocol, n) for protocol, n in (("rep-field", 3), ("semi", 2))},
    "tfhe-carry rep-field 3": (TfheRequest(TFHE, "carry"), "rep-field", 3),
    **{f"fhew-{noise} {protocol} 3": (FhewRequest(FHEW, noise), protocol, 3) for protocol, noise in (
        ("shamir", "local"), ("rep-field", "local"), ("rep-field", "exact"),
    )},
    **{f"prf-aes {protocol} {n}": (PrfRequest(AES), protocol, n) for protocol, n in (
        ("rep-field", 3), ("semi", 2), ("mascot", 2), ("mal-rep-field", 3),
    )},
    **{f"prf-legendre {protocol} 3": (PrfRequest(LEGENDRE), protocol, 3) for protocol in ("rep-field", "mal-rep-field")},
    **{f"gates {protocol} {n}": (GateRequest(GATES), protocol, n) for protocol, n in (("rep-field", 3), ("semi", 2))},
}  # fmt: skip
"""Requests, protocols and numbers of parties, by the words with which their lines begin."""


class _Log:
    """A hash of what happened, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *parts: object) -> None:
        for part in parts:
            data = _bytes(part)
            self._hash.update(len(data).to_bytes(8, "little") + data)

    def __str__(self) -> str:
        return self._hash.hexdigest()[:32]


def _bytes(part: object) -> bytes:
    if isinstance(part, bytes):
        return part
    if isinstance(part, np.ndarray):
        return str(part.shape).encode() + np.ascontiguousarray(part).tobytes()
    if isinstance(part, list | tuple):
        return b"".join(len(data := _bytes(each)).to_bytes(8, "little") + data for each in part)
    return str(part).encode()


class _Session:
    """A session whose plan is logged, with fixed tosses."""

    def __init__(self, core: Any, log: _Log) -> None:
        self._core, self._log, self._tosses = core, log, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._core, name)
        if not callable(found):
            return found

        def logged(*args: Any) -> Any:
            self._log.add(name, [arg for arg in args if arg is not None])
            return found(*args)

        return logged

    def toss(self, nbytes: int) -> bytes:
        self._core.toss(nbytes)  # the messages stay
        self._tosses += 1
        self._log.add("toss", nbytes)
        return hashlib.shake_256(SEED + bytes([self._tosses])).digest(nbytes)


class _Backend:
    """A backend whose runs are logged."""

    def __init__(self, core: Any, log: _Log) -> None:
        self._core, self._log = core, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def run(self, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        given = {name: value for name, value in vars(options.get("mode", ONCE)).items() if value is not None}
        given = {name: value for name, value in given.items() if (name, value) not in (("keep", False), ("purpose", b""))}
        shares = options.get("shares")
        self._log.add("run", protocol, domain, call.program, call.words, sorted(given.items()))
        self._log.add([] if options.get("private") is None else options["private"], list(options.get("public", ())))
        self._log.add(0 if shares is None else shares.length)
        made = self._core.run(protocol, domain, call, **options)
        self._log.add(made.words, 0 if shares is None else shares.length)
        return made


def _logged(context: PartyContext, log: _Log) -> PartyContext:
    """The same context with such a session and backend; phases are logged too."""
    changed, phase = copy(context), context.phase

    @contextmanager
    def logged(name: str, steps: int = 1) -> Iterator[Callable[[], None]]:
        log.add("phase", name, steps)
        with phase(name, steps) as step:

            def noted() -> None:
                log.add("step")
                step()

            yield noted
        log.add("end")

    vars(changed).update(session=_Session(context.session, log), backend=_Backend(context.backend, log), phase=logged)
    return changed


@contextmanager
def _fixed(members: Committee) -> Iterator[None]:
    """MAC keys and deviates of tables are fixed, as :func:`.run_fixed` fixes other randomness."""
    drawn = threading.local()

    def symmetric(thresholds: Any, size: int) -> Any:
        drawn.count = getattr(drawn, "count", 0) + 1
        return np.random.default_rng(drawn.count).integers(-2, 3, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "sample_symmetric", symmetric)
        for party in range(members.size):
            patch.setitem(mac_key._IN_PROCESS, (members.digest, party), hashlib.sha256(SEED + bytes([party])).digest()[: mac_key.BYTES])
        yield


@dataclass
class _Made:
    """What one party has in the end."""

    material: KeyMaterial[Any]
    steps: str
    cost: str


def _trace(request: KeyRequest, protocol: str, parties: int) -> str:
    members = api.in_process_committee(parties, protocol)

    def job(context: PartyContext) -> _Made:
        log = _Log()
        logged = _logged(context, log)
        if isinstance(request, GateRequest):  # a baseline, whose plan is called directly
            material: KeyMaterial[Any] = generate_gates(logged, request)
        else:
            material = scheme_of(request).generate(logged, request)
        cost = [(p.name, p.rounds, p.bytes_sent, p.bytes_received) for p in context.report.phases]
        return _Made(material, str(log), str(cost))

    with _fixed(members):
        made = run_fixed(members, job, SEED)
    logs = {name: _Log() for name in ("key", "public", "shares", "steps", "cost")}
    for party in made:
        material = party.material
        logs["key"].add(json.dumps(material.info.to_json(), sort_keys=True))
        logs["public"].add([part for name in sorted(material.public) for part in (name, material.public[name])], sorted(material.written))
        logs["steps"].add(party.steps)
        logs["cost"].add(party.cost)
    for secret, *shares in zip(made[0].material.info.secrets, *(party.material.shares for party in made), strict=True):
        words = [share.words for share in shares]
        if members.capabilities.oblivious_transfer:
            words = [np.array([str(v) for v in sum(w[0, :: shares[0].element_words].astype(object) for w in words) % _modulus(secret.domain)])]
        logs["shares"].add(secret.domain, words, [(share.element_words, len(share.export_mac())) for share in shares])
    return " ".join(f"{name}={log}" for name, log in logs.items())


def _modulus(domain: str) -> int:
    return 1 << int(domain[3:]) if domain.startswith("Z2^") else int(domain[2:])


def _lines() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in FILE.read_text().splitlines() if not line.startswith("#"))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few rows, of which the last is not full."""
    for chunk in ("BOOTSTRAPPING_CHUNK", "CARRY_CHUNK"):
        monkeypatch.setattr(tfhe, chunk, 4 * 2 * TFHE.pbs_level * TFHE.dimension)
    monkeypatch.setattr(tfhe, "SWITCHING_CHUNK", 5 * TFHE.ks_level * TFHE.lwe_dimension)
    monkeypatch.setattr(fhew, "BODIES", 4 * 2 * FHEW.levels * FHEW.dimension)
    monkeypatch.setattr(fhew, "MASKS", 70 * FHEW.dimension)


@pytest.mark.skipif(os.environ.get("KEY_TRACES") == "write", reason="the file is written anew")
@pytest.mark.parametrize("case", CASES)
def test_keys_are_those_of_the_file(case: str) -> None:
    found = _trace(*CASES[case])
    expected = _lines().get(case)
    assert found == expected, f"the key of {case} has another trace: after an intended change, write {FILE.name} anew (its head says how)"


def test_the_file_has_these_cases_alone() -> None:
    if os.environ.get("KEY_TRACES") == "write":
        FILE.write_text(HEAD + "".join(f"{case}: {_trace(*given)}\n" for case, given in CASES.items()))
    assert list(_lines()) == list(CASES)


def test_a_trace_tells_what_a_plan_does() -> None:
    """Another order of runs, another input, or another toss is another trace."""
    traces = set()
    for words in ([1, 2], [2, 1], [1, 3]):
        log = _Log()
        backend = _Backend(_Core(), log)
        for word in words:
            backend.run("semi", "F_97", _Call, private=np.array([word]))
        traces.add(str(log))
    assert len(traces) == 3


class _Call:
    program, words = "sample_bits", ("4",)


class _Core:
    def run(self, *args: Any, **options: Any) -> Any:
        return self

    words = np.empty(0, dtype=np.int64)
