"""Served committees with MACs: a receiver gets the messages under pads of its own, finds wrong shares and wrong results of any party, and gets wrong messages only where it leaves out a check."""

from __future__ import annotations

import hashlib
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import BurnedKeyError, KeyQuorumError, ParameterError, PartyError
from keyquorum.parties import mac_key, run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.plans.keygen import keygen_job
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes import encryption_of
from keyquorum.schemes.lwe.scheme import SCHEME
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.serve import kinds
from keyquorum.serve.client import Receiver, fetch, make_receiver
from keyquorum.serve.daemon import Daemon
from keyquorum.serve.kinds import Service, decryption, decryption_macs, open_kind
from keyquorum.serve.kinds.decryption_macs import PaddedServedKey
from keyquorum.serve.wire import receive_message, send_message
from keyquorum.sharing import receivers
from keyquorum.sharing.receivers import DifferentAnswers, WrongPads, answer_bytes, commitment, factors_of, received_messages
from keyquorum.sharing.variants import PAD_SECURITY, PaddedOutput, low_mask

from tests.adversaries.plans import InRing, decryption_in_ring, pool_of_all, toy_set
from tests.long import LONG
from tests.plans.distributions import chi_square_p, uniform
from tests.plans.quorum import WEAK
from tests.plans.test_dishonest_majority import small

from .daemons import Threads

pytestmark = pytest.mark.timeout(300)
Answers = list[bytes]
COUNT, PARTIES = 5, 3
PADDED = PaddedOutput(64, 48)
MESSAGES = np.arange(COUNT) * 4099 % (1 << 16)
LWE = np.array([0, 1, 1, 0, 1])


# -- what a receiver checks, with answers that are made in clear -------------------------------------------------------------------------


@dataclass
class Transcript:
    """What honest parties would send: shares [parties, rows, count] of pads and masks, to which they committed, and a challenge. ``changed``: shares that are committed to and sent instead."""

    shares: np.ndarray
    nonces: list[bytes]
    challenge: bytes

    @staticmethod
    def made(seed: int = 1) -> Transcript:
        rng = np.random.default_rng(seed)
        shares = rng.integers(0, 1 << 64, (PARTIES, PADDED.rows, COUNT), np.uint64)
        return Transcript(shares, [rng.bytes(32) for _ in range(PARTIES)], rng.bytes(32))

    def answers(self, committed: np.ndarray | None = None, sent: np.ndarray | None = None, messages: np.ndarray = MESSAGES) -> Answers:
        """The answers. ``committed``: the shares to which parties commit; ``sent``: those that they send."""
        committed = self.shares if committed is None else committed
        sent = committed if sent is None else sent
        total = self.shares.sum(axis=0, dtype=np.uint64)
        opened = [(messages.astype(np.uint64) + total[0]) << np.uint64(PADDED.shift)]
        opened += list(total[1:] + factors_of(self.challenge, PADDED, COUNT) * total[0])
        own = [commitment(party, nonce, share.tobytes()) for party, (nonce, share) in enumerate(zip(self.nonces, committed, strict=True))]
        common = b"".join(own) + self.challenge + np.stack(opened).tobytes()
        return [share.tobytes() + nonce + common for share, nonce in zip(sent, self.nonces, strict=True)]


@pytest.fixture(scope="module")
def members() -> Committee:
    return api.in_process_committee(PARTIES, "mascot")


def taken(members: Committee, answers: Sequence[bytes]) -> list[int]:
    return [int(m) for m in received_messages(members, PADDED, answers, COUNT)]


RIGHT = [int(m) for m in MESSAGES]


def test_a_receiver_finds_every_changed_byte(members: Committee) -> None:
    """Of any party, also of the parts that are the same at all; and answers of another request."""
    answers, others = Transcript.made().answers(), Transcript.made(2).answers()
    assert taken(members, answers) == RIGHT and all(len(a) == answer_bytes(PARTIES, PADDED, COUNT) for a in answers)
    for party in range(PARTIES):
        mine = answers[party]
        lies = [mine[:i] + bytes([mine[i] ^ 1]) + mine[i + 1 :] for i in range(len(mine))]
        lies += [others[party], answers[(party + 1) % PARTIES], bytes(len(mine))]
        for lie in lies:
            with pytest.raises((DifferentAnswers, WrongPads), match=r"one of them cheats|it cheats"):
                taken(members, [lie if i == party else answer for i, answer in enumerate(answers)])
        with pytest.raises(PartyError, match=f"party {party} sent {len(mine) - 1} bytes for 5 messages"):
            taken(members, [answer[:-1] if i == party else answer for i, answer in enumerate(answers)])


def test_each_check_is_needed(members: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie that one check finds, and the wrong message that it makes where that check alone is left out."""
    made, wrong = Transcript.made(), MESSAGES + 7
    results = [made.answers(messages=wrong)[0], *made.answers()[1:]]
    committed = made.shares.copy()
    committed[1, 0, 2] -= np.uint64(7)  # before the challenge
    early = made.answers(committed=committed)
    late = committed.copy()
    late[1, 1:] += (made.shares[1, 0] - committed[1, 0]) * factors_of(made.challenge, PADDED, COUNT)  # which hides it, when the challenge is known
    adapted = made.answers(sent=late)
    for check, lie, why in (
        ("same_results", results, "parties 0 and 1 sent different results"),
        ("check_pads", early, "a party sent wrong shares of the pads"),
        ("check_commitment", adapted, "party 1 sent other shares of the pads than it had committed to"),
    ):
        with pytest.raises(PartyError, match=why):
            taken(members, lie)
        with monkeypatch.context() as patch:
            patch.setattr(receivers, check, lambda *arguments: None)
            assert taken(members, lie) != RIGHT


def test_how_often_a_wrong_pad_passes() -> None:
    """In a small ring, every error of a pad and of a mask: those that change the message pass with probability 2^-(shift + 1) at most, and some with that."""
    small = PaddedOutput(8, 3)
    factors, most = np.arange(256), 0
    for d in range(1, 256):
        passing = np.bincount(factors * d % 256, minlength=256).max()
        if d % (1 << (small.bits - small.shift)):
            most = max(most, int(passing))
    assert most == 256 >> (small.shift + 1)
    for padded in (PaddedOutput(64, 48), PaddedOutput(64, 61), PaddedOutput(64, 40)):
        assert padded.checks * (padded.shift + 1) >= PAD_SECURITY


# -- served committees -----------------------------------------------------------------------------------------------------------------


def made(folder: Path, protocol: str, parties: int, parameters: Any, **options: Any) -> tuple[Committee, Path]:
    """A committee with a key, and the identity of a receiver."""
    api.init(folder, parties, protocol)
    committee = Committee.load(folder)
    run_in_process(committee, lambda context: keygen_job(context, api.keygen_job("key", parameters, **options)))
    return committee, make_receiver(committee, "web")[0]


Lwe = tuple[Committee, Path, bytes]


def lwe_of(folder: Path, protocol: str, parties: int) -> Lwe:
    committee, identity = made(folder / "c", protocol, parties, "lwe64-p2")
    api.encrypt(folder / "c", "key", LWE, folder / "c.lwe")
    return committee, identity, (folder / "c.lwe").read_bytes()


@pytest.fixture(scope="module")
def lwe(tmp_path_factory: pytest.TempPathFactory) -> Lwe:
    return lwe_of(tmp_path_factory.mktemp("padded"), "spdz2k", 2)


@pytest.fixture(scope="module")
def running(lwe: Lwe) -> Iterator[Threads]:
    with served(lwe, keep=64) as threads:
        yield threads
    assert not threads.failures, threads.failures


def served(lwe: Lwe, keep: int = 32, rounding: str = "round_ltz_circuit") -> Threads:
    return Threads(lwe[0], Service("key", rounding, width=4, levels=3, keep=keep, chunk=32))


def asked(lwe: Lwe, data: bytes = b"") -> list[int]:
    committee, identity, own = lwe
    result: Any = fetch(committee, identity, data or own, wait=30.0)
    return [int(message) for message in result.messages]


def test_messages_of_several_receivers(lwe: Lwe, running: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS: one after another, several in a batch with pads of their own each, and a file in parts."""
    assert asked(lwe) == asked(lwe) == LWE.tolist()
    with ThreadPoolExecutor(4) as pool:
        assert all(found == LWE.tolist() for found in pool.map(lambda _: asked(lwe), range(4)))
    monkeypatch.setattr("keyquorum.schemes.lwe.ciphertexts.MOST_CIPHERTEXTS", 2)
    assert asked(lwe) == LWE.tolist()
    assert all(isinstance(daemon.served_key, PaddedServedKey) for daemon in running._daemons)


def lying(monkeypatch: pytest.MonkeyPatch, party: int, change: Callable[..., Any]) -> None:
    """The party calls ``change`` with the function that makes answers, and its arguments."""
    truly = decryption_macs.answers_for_receivers

    def instead(group: Any, *arguments: Any) -> Any:
        return change(truly, group, *arguments) if group.me == party else truly(group, *arguments)

    monkeypatch.setattr(decryption_macs, "answers_for_receivers", instead)


def committing_to_another_pad(monkeypatch: pytest.MonkeyPatch, party: int) -> None:
    """The party takes another share of the first pad for what it commits to and sends, and its own one for what is opened."""
    opened = receivers._opened

    def truly_opened(group: Any, padded: Any, messages: Any, rows: Any, *rest: Any) -> Any:
        if group.me == party:
            rows = rows.copy()
            rows[0, 0, 0] -= np.uint64(1)
        return opened(group, padded, messages, rows, *rest)

    class Lying:
        def __init__(self, variant: Any) -> None:
            self._variant = variant

        def __getattr__(self, name: str) -> Any:
            return getattr(self._variant, name)

        def for_receivers(self, preprocessing: Any) -> Any:
            rows = self._variant.for_receivers(preprocessing).copy()
            rows[0, 0, 0] += np.uint64(1)
            return rows

    monkeypatch.setattr(receivers, "_opened", truly_opened)
    lying(monkeypatch, party, lambda truly, group, variant, *rest: truly(group, Lying(variant), *rest))


def answering(place: int, by: int = 1) -> Callable[..., Any]:
    """Another byte in the answer, which is counted from the end if it is negative."""

    def change(truly: Any, *arguments: Any) -> list[bytes]:
        answers = [bytearray(answer) for answer in truly(*arguments)]
        for answer in answers:
            answer[place] ^= by
        return [bytes(answer) for answer in answers]

    return change


OPENED = -8 * SCHEME.padded(lwe_parameters("lwe64-p2")).checks * COUNT - 1
"""The highest byte of the last message under its pad: behind it are the combinations."""


@pytest.mark.parametrize("party", [0, 1])
def test_a_lying_party(lwe: Lwe, running: Threads, monkeypatch: pytest.MonkeyPatch, party: int) -> None:
    """A wrong share of a pad that it commits to, another one than it committed to, wrong combinations, wrong results: the receiver stops, and nothing of it makes an honest
    party stop. Without its check the receiver has a wrong message."""
    for change, why in (
        (None, "a party sent wrong shares of the pads"),
        (answering(0), f"party {party} sent other shares of the pads than it had committed to"),
        (answering(-1), "parties 0 and 1 sent different results"),
        (answering(OPENED, 128), "parties 0 and 1 sent different results"),
    ):
        with monkeypatch.context() as patch:
            if change is None:
                committing_to_another_pad(patch, party)
            else:
                lying(patch, party, change)
            with pytest.raises(PartyError, match=why):
                asked(lwe)
            if change is None:
                patch.setattr(receivers, "check_pads", lambda *arguments: None)
                assert asked(lwe) != LWE.tolist()
        assert asked(lwe) == LWE.tolist()
    lying(monkeypatch, 0, answering(OPENED, 128))
    monkeypatch.setattr(receivers, "same_results", lambda *arguments: None)
    assert asked(lwe) != LWE.tolist()


def left(threads: Threads) -> int:
    """Items of the pool at party 0, when it is filled."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        number = int(threads._daemons[0].metrics.items._value.get())
        if number >= threads._daemons[0].service.keep:
            return number
        time.sleep(0.05)
    raise AssertionError("the pool was not filled")


def test_receivers_cannot_burn_the_key(lwe: Lwe, running: Threads) -> None:
    """Garbage, a receiver that breaks off, and other ciphertexts for each party: refused in one line, and no item is used for them; one that goes away before its answer uses its own items."""
    committee, identity, data = lwe
    items, other = left(running), data[:-1] + bytes([data[-1] ^ 1])
    for bodies, head, why in (
        ([b"garbage"] * 2, {}, "the request"),
        ([data[:-1]] * 2, {}, "the request"),
        ([data] * 2, {"id": "short"}, "a request needs an id of 8 to 64 letters and digits"),
        ([data] * 2, {"parties": [0, 1]}, "the request is for other parties"),
        ([data, other], {}, "another one"),
    ):
        receiver = Receiver(committee, identity, timeout=60.0)
        receiver._connect()
        for channel, body in zip(receiver._channels, bodies, strict=True):
            send_message(channel, {"id": secrets.token_hex(16), **{"id": "0123456789", **head}}, body)
        said = [receive_message(channel, 1 << 20) for channel in receiver._channels]
        receiver.close()
        assert all(answer is not None and answer[0]["status"] == "refused" and "\n" not in answer[0]["error"] for answer in said), (why, said)
        assert any(answer is not None and why in answer[0]["error"] for answer in said), (why, said)
    assert left(running) == items
    gone = Receiver(committee, identity)
    gone._connect()
    for channel in gone._channels:
        send_message(channel, {"id": "0123456789"}, data)
    gone.close()
    half = Receiver(committee, identity)
    half._connect()
    half._channels[0].sendall((20).to_bytes(4, "little"))
    half.close()
    assert asked(lwe) == LWE.tolist()
    assert not running.failures


@pytest.mark.parametrize("rounding", ["round_ltz_circuit", *(["round_ltz_table"] if LONG else [])])
def test_three_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rounding: str) -> None:
    """Two of them may be corrupted: here both hide the same lie, each in its own share of a pad."""
    lwe = lwe_of(tmp_path, "mascot", 3)
    with served(lwe, rounding=rounding) as threads:
        assert asked(lwe) == LWE.tolist()
        committing_to_another_pad(monkeypatch, 0)
        committing_to_another_pad(monkeypatch, 2)
        for _ in range(2):
            with pytest.raises(WrongPads, match="a party sent wrong shares of the pads"):
                asked(lwe)
        monkeypatch.undo()
        assert asked(lwe) == LWE.tolist()
    assert not threads.failures


def small_set(scheme: Any) -> Any:
    """One prime, and the special one."""
    first, *_, special = small(scheme).coeff_modulus
    return replace(small(scheme), coeff_modulus=(first, special))


@pytest.mark.parametrize(("scheme", "parties"), [("bfv", 2), *([("bgv", 2), ("bfv", 3)] if LONG else [])])
def test_seal_ciphertexts(tmp_path: Path, scheme: str, parties: int) -> None:
    """Messages modulo an odd t, as integers under pads modulo 2^(64 - k)."""
    folder, values = tmp_path / "c", np.arange(-50, 50)
    committee, identity = made(folder, "mascot", parties, small_set(scheme), relin=False, policy=WEAK)
    api.encrypt(folder, "key", values, tmp_path / "c.seal")
    info = api.load_key(committee.key_folder(0, "key"))
    body = encryption_of(info).request_body(info, tmp_path / "c.seal", (tmp_path / "c.seal").read_bytes())
    run_in_process(
        committee,
        lambda context: pool_of_all(context, variant_for(context.committee, "round_ltz_circuit", info.parameters), info.parameters.ring_degree),
    )
    with Threads(committee, Service("key")):
        result = fetch(committee, identity, body, wait=30.0, info=info)
    (tmp_path / "m.plain").write_bytes(result.plaintext)
    assert np.array_equal(api.decode(folder, "key", tmp_path / "m.plain", len(values)), values)


def test_what_is_refused(lwe: Lwe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roundings whose results depend on the noise, CKKS, keys of BFV without a secret in the ring; and answers of another length."""
    committee, identity, data = lwe
    receiver = Receiver(committee, identity)
    receiver.ask = lambda bodies, head: [bytearray(40)] * 2  # type: ignore[method-assign]
    with pytest.raises(PartyError, match="party 0 sent 40 bytes for 5 messages"):
        receiver.decrypt(data)
    for rounding in ("round_mask_open", "round_flood"):
        with pytest.raises(ParameterError, match=f"{rounding} tells of the noise, .*spdz2k serves LWE with round_ltz_circuit or round_ltz_table"):
            open_kind(committee, 0, Service("key", rounding=rounding))
    ring = decryption_in_ring(2).job
    assert isinstance(ring, InRing)
    mascot, key = ring.committee, ring.info()
    ckks = replace(key, parameters=replace(toy_set(256), scheme="ckks", plain_modulus=0, scale_bits=40))
    monkeypatch.setattr(PaddedServedKey, "load", lambda *arguments: [])
    for other, rounding, said in (
        (key, "round_mask_open", "round_mask_open is sometimes wrong"),
        (ckks, "round_ltz_circuit", "CKKS has no exact messages"),
        (replace(key, ring_secret=False), "round_ltz_circuit", r"has no secret modulo 2\^64, and decryptions under it are semi-honest"),
    ):
        monkeypatch.setattr(decryption, "load_key_as", lambda *arguments, other=other: other)
        monkeypatch.setattr(kinds, "load_key", lambda *arguments, other=other: other)
        with pytest.raises(ParameterError, match=said):
            open_kind(mascot, 0, Service("key", rounding=rounding))


# -- one session of all parties, without a daemon ---------------------------------------------------------------------------------------


class Direct:
    """The parties of a served key in this process: they answer the batches that they are given. A receiver's checks are those of :func:`.received_messages`."""

    def __init__(self, lwe: Lwe, items: int) -> None:
        self.committee, _, self.data = lwe
        self.parties = self.committee.size
        self.kinds = [PaddedServedKey(self.committee, party, "key", "round_ltz_circuit") for party in range(self.parties)]
        self._sessions: list[Any] = _engine.local_sessions(self.parties)

        def opened(party: int) -> tuple[PartyContext, Any, Pool]:
            mac_key.use(self._sessions[party], self.committee.mac_key_path(party))
            context = PartyContext(self._sessions[party], self.committee)
            group = pool_group(context)
            pool = Pool(context, group, self.kinds[party].variant)
            pool.fill(items, items)
            return context, group, pool

        self._opened = self._all(opened)

    def _all(self, job: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(self.parties) as pool:
            return list(pool.map(job, range(self.parties)))

    def request(self, name: str) -> tuple[str, Any]:
        return name, self.kinds[0].read({}, self.data)

    def run(self, batches: Sequence[Sequence[tuple[str, Any]]]) -> list[Any]:
        """The answers of each party to its batch, or the error with which it ends."""

        def one(party: int) -> Any:
            try:
                return self.kinds[party].run(*self._opened[party], batches[party])
            except Exception as error:
                self._sessions[party].abort(str(error))
                return error

        return self._all(one)

    def messages(self, name: str) -> list[int]:
        """What the receiver of one request has."""
        answers = self.run([[self.request(name)]] * self.parties)
        assert not any(isinstance(answer, BaseException) for answer in answers), answers
        padded = self.kinds[0].variant.padded
        assert padded is not None
        return [int(m) for m in received_messages(self.committee, padded, [answer[0] for answer in answers], COUNT)]

    def close(self) -> None:
        for _, _, pool in self._opened:
            pool.close()
        for kind in self.kinds:
            kind.close()
        for session in self._sessions:
            with suppress(_engine.EngineError):
                session.close()


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> Lwe:
    return lwe_of(tmp_path_factory.mktemp("three"), "spdz2k", 3)


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> Lwe:
    """Another committee than that of the daemons, which hold its MAC key."""
    return lwe_of(tmp_path_factory.mktemp("two"), "spdz2k", 2)


@pytest.fixture
def three(of_three: Lwe) -> Iterator[Direct]:
    made = Direct(of_three, 4 * COUNT)
    yield made
    made.close()


class Proxy:
    """A session that behaves differently in some way."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class TossedFirst(Proxy):
    """What `answers_for_receivers` does if it tosses before the parties commit."""

    def all_gather(self, data: bytes) -> list[bytes]:
        self._tossed = self._session.toss(32)
        said: list[bytes] = self._session.all_gather(data)
        return said

    def toss(self, nbytes: int) -> bytes:
        return bytes(self._tossed[:nbytes])


class Adaptive(Proxy):
    """A corrupted party. It takes one off its share of the first pad, and changes its masks so that the combinations hold under the last toss that it has. To that it commits."""

    tosses: ClassVar[list[bytes]] = []

    def __init__(self, session: Any, me: int, padded: PaddedOutput, shares: np.ndarray, name: str) -> None:
        super().__init__(session)
        self._me, self._padded, self._shares, self._name = me, padded, shares, name
        self.sent = b""

    def all_gather(self, data: bytes) -> list[bytes]:
        factors = factors_of(hashlib.sha256((self.tosses[-1] if self.tosses else bytes(32)) + self._name.encode()).digest(), self._padded, COUNT)
        self._shares[0, 0] -= np.uint64(1)
        self._shares[1:, 0] += factors[:, 0]
        nonce = secrets.token_bytes(32)
        self.sent = self._shares.tobytes() + nonce
        said: list[bytes] = self._session.all_gather(data[:32] + commitment(self._me, nonce, self._shares.tobytes()))
        return said

    def toss(self, nbytes: int) -> bytes:
        self.tosses.append(self._session.toss(nbytes))
        return self.tosses[-1]


def with_sessions(monkeypatch: pytest.MonkeyPatch, change: Callable[[int, Any], Any]) -> None:
    """Each party answers with the session that ``change`` makes of its number and its own one."""
    truly = decryption_macs.answers_for_receivers

    def instead(group: Any, *arguments: Any) -> Any:
        backend = copy(group.backend)
        backend.session = change(group.me, backend.session)
        return truly(replace(group, backend=backend), *arguments)

    monkeypatch.setattr(decryption_macs, "answers_for_receivers", instead)


def adapting(monkeypatch: pytest.MonkeyPatch, corrupt: int) -> None:
    """The party is :class:`Adaptive`."""
    truly = decryption_macs.answers_for_receivers

    def instead(group: Any, variant: Any, z: Any, preprocessing: Any, context: bytes, batch: Any, agreed: bytes) -> Any:
        if group.me != corrupt:
            return truly(group, variant, z, preprocessing, context, batch, agreed)
        padded, backend = variant.padded, copy(group.backend)
        shares = variant.for_receivers(preprocessing)[0, : padded.rows, ::2].astype("<u8")
        session = backend.session = Adaptive(backend.session, corrupt, padded, shares, batch[0].name)
        (answer,) = truly(replace(group, backend=backend), variant, z, preprocessing, context, batch, agreed)
        return [session.sent + answer[len(session.sent) :]]

    monkeypatch.setattr(decryption_macs, "answers_for_receivers", instead)


def test_masks_that_fit_a_toss(three: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who knows the challenge when it commits has a wrong message accepted. The parties toss after the commitments, so the last toss that it has is of another request, and the receiver stops.
    With the two lines swapped the same adversary succeeds."""
    monkeypatch.setattr(Adaptive, "tosses", [])
    with monkeypatch.context() as patch:
        adapting(patch, 1)
        for request in ("first", "second"):
            with pytest.raises(WrongPads, match="a party sent wrong shares of the pads"):
                three.messages(request)
    assert len(Adaptive.tosses) == 2
    with_sessions(monkeypatch, lambda me, session: TossedFirst(session))
    assert three.messages("third") == LWE.tolist()
    adapting(monkeypatch, 1)
    wrong = three.messages("fourth")
    assert wrong[0] != LWE[0] and wrong[1:] == LWE[1:].tolist()


class Told(Proxy):
    """An honest party to which party 1 sends another commitment than to the others."""

    def all_gather(self, data: bytes) -> list[bytes]:
        said: list[bytes] = self._session.all_gather(data)
        said[1] = said[1][:32] + bytes(byte ^ 1 for byte in said[1][32:])
        return said


def test_other_commitments_for_one_party(three: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Party 1 commits to other shares towards party 2: the receiver compares the lists of all parties. Without that nothing notices it."""
    with_sessions(monkeypatch, lambda me, session: Told(session) if me == 2 else session)
    with pytest.raises(DifferentAnswers, match="parties 0 and 2 sent different results"):
        three.messages("first")
    monkeypatch.setattr(receivers, "same_results", lambda *arguments: None)
    assert three.messages("second") == LWE.tolist()


def test_shares_of_a_failed_batch_are_wiped(three: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = list[np.ndarray]()

    def failing(group: Any, padded: Any, messages: Any, rows: Any, *rest: Any) -> Any:
        frame = sys._getframe(1)
        mine = [*frame.f_locals["shares"], frame.f_locals["mine"]]
        assert all(share.any() for share in mine)
        kept.extend(mine)
        raise PartyError("cut off")

    monkeypatch.setattr(receivers, "_opened", failing)
    assert all("cut off" in str(end) or isinstance(end, _engine.EngineError) for end in three.run([[three.request("first")]] * 3))
    assert kept and not any(share.any() for share in kept)


class NotCompared(Proxy):
    """A session in which all seem to have the same batch."""

    def all_gather(self, data: bytes) -> list[bytes]:
        return [data[:32] + theirs[32:] for theirs in self._session.all_gather(data)]


@pytest.mark.parametrize("other", ["reordered", "different"])
@pytest.mark.parametrize("compared", [True, False])
def test_batches_are_compared(of_three: Lwe, monkeypatch: pytest.MonkeyPatch, other: str, compared: bool) -> None:
    """A corrupted party proposed another batch to party 2. The items were claimed ahead, so that no other exchange comes before: no party tosses or opens anything, and the key stays of use.
    Without the comparison they begin to open."""
    three, begun, opened = Direct(of_three, 8 * COUNT), list[bytes](), receivers.Embedded.run
    try:
        for request in range(5):  # the more are used, the more are claimed ahead
            assert three.messages(str(request)) == LWE.tolist()
        a, b, c = (three.request(name) for name in ("aaaa", "bbbb", "cccc"))
        assert all(pool.store.next + 2 * COUNT <= pool._claimed_together for _, _, pool in three._opened)

        def seen(self: Any, protocol: str, domain: str, call: Any, **options: Any) -> Any:
            if call.program != "lwe_phase":  # which sends nothing
                begun.append(call.program)
            return opened(self, protocol, domain, call, **options)

        monkeypatch.setattr(receivers.Embedded, "run", seen)
        if not compared:
            with_sessions(monkeypatch, lambda me, session: NotCompared(session))
        ends = three.run([[a, b], [a, b], [b, a] if other == "reordered" else [a, c]])
        assert all(isinstance(end, (KeyQuorumError, _engine.EngineError)) for end in ends)
        if compared:
            assert not begun
            for end, party in zip(ends, (2, 2, 0), strict=True):  # each finds it itself, or hears of it first
                assert "has other requests in this batch" in str(end) and (not isinstance(end, PartyError) or f"party {party} has" in str(end))
            assert any(isinstance(end, PartyError) for end in ends)
            for party in range(3):
                mac_key.check_party(three.committee, party)
        else:
            assert begun and not any("other requests" in str(end) for end in ends)
    finally:
        three.close()


def repeats(words: np.ndarray) -> bool:
    return np.unique(words).size < words.size


def biased(words: np.ndarray, bits: int) -> bool:
    """Whether the highest bits of words are not uniform: chi-square, false alarm 10^-9."""
    return chi_square_p((words >> np.uint64(64 - bits)).astype(np.int64), uniform(range(1 << bits))) < 1e-9


def one_pad_for_all(rows: np.ndarray) -> None:
    rows[:, 0] = np.tile(rows[:, 0, :2], rows.shape[2] // 2)


def no_pad(rows: np.ndarray) -> None:
    rows[:, 0] = 0


def no_masks(rows: np.ndarray) -> None:
    rows[:, 1:3] = 0


def pads_for_masks(rows: np.ndarray) -> None:
    rows[:, 1:3] = rows[:, :1]


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (None, set()),
        (no_pad, {"pads", "messages"}),
        (one_pad_for_all, {"pads", "messages"}),
        (no_masks, {"masks"}),
        (pads_for_masks, {"masks"}),
    ],
)
def test_pads_hide(of_two: Lwe, monkeypatch: pytest.MonkeyPatch, change: Callable[[np.ndarray], None] | None, seen: set[str]) -> None:
    """One fixed message, 256 times. No pad or mask is there twice; they are uniform, and so are the shares of each party, which hide them from the others; and so is all that is opened.
    Pads of zero, one pad for all of a request, masks of zero, and pads in place of masks do not pass (128 times: a change has MACs that are right)."""
    committee, count, requests = of_two[0], 64, 4 if change is None else 2
    api.encrypt(committee.folder, "key", [1] * count, committee.folder / "ones.lwe")
    made = Direct((committee, of_two[1], (committee.folder / "ones.lwe").read_bytes()), requests * count)
    padded = made.kinds[0].variant.padded
    assert padded is not None
    rows_of, size = LweVariant.for_receivers, 8 * padded.rows * count

    def changed(self: LweVariant, preprocessing: Any) -> Any:
        rows = rows_of(self, preprocessing)
        if change is not None:
            change(rows)
        return rows

    monkeypatch.setattr(LweVariant, "for_receivers", changed)
    sent, said = list[np.ndarray](), list[np.ndarray]()
    for request in range(requests):
        ends = made.run([[made.request(str(request))]] * made.parties)
        sent.append(np.stack([np.frombuffer(answer[:size], "<u8").reshape(padded.rows, count) for (answer,) in ends]))
        said.append(np.frombuffer(ends[0][0][-size:], "<u8").reshape(padded.rows, count))
    made.close()
    shares, opened = np.concatenate(sent, axis=2), np.concatenate(said, axis=1)
    assert not ((opened[0] >> np.uint64(padded.shift)) - shares[:, 0].sum(axis=0, dtype=np.uint64) - np.uint64(1) & low_mask(64 - padded.shift)).any()
    found = set()
    for secret in [*shares, shares.sum(axis=0, dtype=np.uint64)]:
        if repeats(secret[0]) or biased(secret[0], 4):
            found.add("pads")
        if repeats(secret) != repeats(secret[0]) or any(biased(row, 4) for row in secret[1:]):
            found.add("masks")
    if any(biased(words[0], 64 - padded.shift) for words in said):
        found.add("messages")
    if repeats(opened[1:]) or any(biased(row, 4) for row in opened[1:]):
        found.add("combinations")
    assert found == seen


# -- what ends a session: the last tests, each with a committee of its own ----------------------------------------------------------------


def burned(lwe: Lwe, threads: Threads) -> None:
    """The receiver has an error; the parties end, and none starts again."""
    with pytest.raises(KeyQuorumError):
        asked(lwe)
    end = time.monotonic() + 30
    while time.monotonic() < end and len(threads.failures) < 2:
        time.sleep(0.1)
    with pytest.raises(BurnedKeyError):
        Daemon(lwe[0], 0, Service("key"))


def another_item(truly: Any, group: Any, variant: Any, z: Any, preprocessing: Any, *rest: Any) -> Any:
    """The first item in place of the second one: another one than the other parties take."""
    for section in preprocessing:
        section[:, :, 2:4] = section[:, :, :2]
    return truly(group, variant, z, preprocessing, *rest)


def another_ciphertext(truly: Any, group: Any, variant: Any, z: Any, *rest: Any) -> Any:
    """The phase of a ciphertext with another body: a half more."""
    z[0, :1] += np.uint64(1 << 63)
    return truly(group, variant, z, *rest)


def another_opening(truly: Any, group: Any, variant: Any, z: Any, preprocessing: Any, *rest: Any) -> Any:
    """Another share of what is opened to all under the pad."""
    variant.for_receivers(preprocessing)[0, 0, 0] += np.uint64(1)
    return truly(group, variant, z, preprocessing, *rest)


CHEATS = [another_item, another_ciphertext, another_opening]


@pytest.mark.parametrize("change", CHEATS if LONG else CHEATS[1:2])
def test_what_a_check_of_macs_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    """No message leaves, and the MAC key is burned."""
    lwe = lwe_of(tmp_path, "spdz2k", 2)
    with served(lwe) as threads:
        assert asked(lwe) == LWE.tolist()
        lying(monkeypatch, 1, change)
        burned(lwe, threads)
