"""Three parties that verify products, of which party 0 tells two honest ones the requests of a batch in another order: they stop before anything is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.backends.embedded import Embedded
from keyquorum.model.errors import PartyError
from keyquorum.parties import PartyContext
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.field_variant import FIELD, words_of_messages
from keyquorum.schemes.lwe.scheme import SCHEME as LWE
from keyquorum.schemes.seal.scheme import SCHEME as SEAL
from keyquorum.serve.copies import DifferentCopies, summands_of
from keyquorum.serve.kinds import decryption
from keyquorum.serve.kinds.base import Asked, ParsedRequest
from keyquorum.serve.kinds.decryption import ServedKey

from tests.adversaries.lwe_plans import COUNT, LEVELS, WIDTH, LweDecryption, lwe_decryption
from tests.adversaries.plans import Decryption, dealt, pool_of_all
from tests.adversaries.plans import decryption as seal_decryption

BEGUN = "items of the pool, and their purpose"
NAMES = ("aaaaaaaa", "bbbbbbbb")
"""Ids of two requests with the same body."""
Run = tuple[list[Any], list[str]]
"""How each party ends, and the programs that were begun in the batch."""


class Toy(ServedKey):
    """A toy key, dealt by party 1."""

    def __init__(self, plan: LweDecryption | Decryption, context: PartyContext) -> None:
        self._committee, self._info, self._scheme = context.committee, plan.info(), LWE if isinstance(plan, LweDecryption) else SEAL
        self.variant = variant_for(context.committee, plan.rounding, plan.parameters, WIDTH, LEVELS)
        secret = np.array(plan.secret, dtype=np.int64)
        self._shares = [dealt(context.session, protocol, domain, context.committee.threshold, 1, secret) for protocol, domain in plan.sharings()]


def plan_of(scheme: str, protocol: str) -> LweDecryption | Decryption:
    job = (lwe_decryption(protocol, 3, 0, modulus="prime") if scheme == "lwe" else seal_decryption(protocol, 3)).job
    assert isinstance(job, LweDecryption | Decryption)
    return job


def run(plan: LweDecryption | Decryption, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Parties 0 and 1 run the requests in one order, party 2 in the other one, with items that all have claimed ahead: no other exchange comes before."""
    committee = replace(plan.committee, folder=folder)
    content: object = plan.ciphertexts if isinstance(plan, LweDecryption) else plan.ciphertext
    count = len(plan.wanted)
    begun, truly = list[str](), Embedded.run

    def seen(self: Any, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        begun.append(call.program)
        return truly(self, protocol, domain, call, **options)

    sessions: list[Any] = _engine.local_sessions(3)

    def one(party: int) -> Any:
        context = PartyContext(sessions[party], committee)

        def asked(name: str) -> Asked:
            return f"{'f' * 64}/{name}", ParsedRequest(content, count, hashlib.sha256(b"one body").hexdigest())

        kind, group = Toy(plan, context), pool_group(context)
        assert kind.variant is not None
        pool_of_all(context, kind.variant, 3 * count)
        pool = Pool(context, group, kind.variant)
        try:
            pool._handed_out = 3 * count  # what a pool claims ahead grows with what was used
            assert len(kind.run(context, group, pool, [asked("the-first")])) == 1
            assert pool.store.next + 2 * count <= pool._claimed_together
            context.session.compare("end of the first batch", bytes(32))
            monkeypatch.setattr(Embedded, "run", seen)
            context.session.compare("begin of the second batch", bytes(32))
            order = NAMES if party < 2 else NAMES[::-1]
            return kind.run(context, group, pool, [asked(name) for name in order])
        except Exception as error:
            if party:  # the corrupted one stays silent: honest parties find it themselves, or hear it of each other
                context.session.abort(str(error))
            return error
        finally:
            pool.close()

    try:
        with ThreadPoolExecutor(3) as threads:
            ends = list(threads.map(one, range(3)))
    finally:
        for session in sessions:
            session.abort("the test has ended")
    return ends, [name for name in begun if name not in ("lwe_phase", "rlwe_phase")]  # which send nothing


def of_bodies_alone(batch: Sequence[Asked]) -> str:
    """The purpose of earlier builds."""
    return hashlib.sha256("".join(parsed.digest for _, parsed in batch).encode()).hexdigest()


@pytest.mark.parametrize(("scheme", "protocol"), [("lwe", "mal-shamir"), ("bfv", "mal-shamir"), ("lwe", "mal-rep-field")])
def test_requests_of_one_body_in_another_order(scheme: str, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All stop, by what an honest party finds itself or hears of the other one, and nothing was opened."""
    ends, begun = run(plan_of(scheme, protocol), tmp_path, monkeypatch)
    assert not begun
    assert all(isinstance(end, _engine.EngineError) and BEGUN in str(end) for end in ends), ends
    assert any(isinstance(end, _engine.ProtocolError) for end in ends[1:])


def words(answer: bytes, count: int) -> Any:
    return np.frombuffer(answer[: 8 * count], "<u8").astype(object)


@pytest.mark.parametrize("scheme", ["lwe", "bfv"])
def test_shares_of_two_sharings(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bodies alone in the purpose party 0 puts the shares of two sharings on one line: honest parties have f1(2) and f2(3), and it knows f1(1) and f2(1). The check of the degree passes, and the
    receiver of BFV has another message. That of LWE has numbers of which only few are messages."""
    monkeypatch.setattr(decryption, "_purpose", of_bodies_alone)
    plan = plan_of(scheme, "mal-shamir")
    count, modulus = len(plan.wanted), FIELD if isinstance(plan, LweDecryption) else plan.parameters.plain_modulus
    ends, begun = run(plan, tmp_path, monkeypatch)
    assert begun
    (first, second), honest, other = (words(ends[0][i], count) for i in range(2)), ends[1][0], ends[2][1]
    forged = ((first - 3 * (second - first)) % modulus).astype("<u8").tobytes()
    assert ((2 * words(honest, count) - words(other, count) - words(forged, count)) % modulus == 0).all()
    parts = summands_of(plan.committee, [forged, honest, other], count, modulus)
    found = np.sum([part[0].astype(object) for part in parts], axis=0) % modulus
    assert (found != np.array(plan.wanted)).any()
    if isinstance(plan, LweDecryption):
        with pytest.raises(PartyError, match="a result is no message of 3 bits"):  # but with 2^-13 for each number
            words_of_messages(plan.parameters, found.astype(np.uint64)[None, :])
    truthful = summands_of(plan.committee, [ends[0][0], honest, ends[2][0]], count, modulus)  # what one order for all gives
    assert tuple(np.sum([part[0].astype(object) for part in truthful], axis=0) % modulus) == plan.wanted


def test_copies_of_two_sharings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `mal-rep-field` the receiver's error then names two honest parties: party 0 answers as each of the two holders of its summands does."""
    monkeypatch.setattr(decryption, "_purpose", of_bodies_alone)
    plan = plan_of("lwe", "mal-rep-field")
    ends, _ = run(plan, tmp_path, monkeypatch)
    held = [plan.committee.capabilities.held(party, 3, 1) for party in range(3)]
    asked = [0 if number in held[1] else 1 for number in held[0]]  # party 1 has the first order, party 2 the second one
    mine = ends[0][asked[0]][: 8 * COUNT] + ends[0][asked[1]][8 * COUNT :]
    with pytest.raises(DifferentCopies, match=r"parties (1 and 2|2 and 1) sent different copies"):
        summands_of(plan.committee, [mine, ends[1][0], ends[2][1]], COUNT, 0)
