"""Served committees that verify products: a receiver gets the messages, finds a wrong share of any party, and gets wrong messages only where it does not compare copies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.lwe import encrypt
from keyquorum.fhe.lwe_sets import LweParameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError, PartyError
from keyquorum.parties import run_in_process
from keyquorum.plans.keygen import keygen_job
from keyquorum.schemes import encryption_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.schemes.lwe.field_variant import FIELD
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.serve import copies, daemon, kinds, sessions
from keyquorum.serve.client import Receiver, fetch, make_receiver
from keyquorum.serve.copies import DifferentCopies, WrongDegree, answer_bytes, answer_of, summands_of
from keyquorum.serve.kinds import Service, decryption, open_kind
from keyquorum.serve.lending import Lent
from keyquorum.sharing.variants import combine

from tests.adversaries.lwe_plans import toy_lwe
from tests.adversaries.plans import Decryption, key_info, toy_set
from tests.adversaries.plans import decryption as toy_decryption
from tests.long import LONG

from .daemons import Threads

COUNT, BITS = 5, 26
LIAR = 1
MESSAGES = np.array([0, 1, 1, 0, 1])


def committee_of(folder: Path, protocol: str = "mal-rep-field", parties: int = 3) -> Committee:
    api.init(folder, parties, protocol)
    return Committee.load(folder)


def answers_of(committee: Committee, messages: np.ndarray, seed: int = 1) -> list[bytes]:
    """Answers of honest parties that hold fresh shares of these messages."""
    rng = np.random.default_rng(seed)
    parts = rng.integers(0, 1 << BITS, (3, messages.size), dtype=np.uint64)
    parts[0] = (messages.astype(np.uint64) - parts[1] - parts[2]) & np.uint64((1 << BITS) - 1)
    held = [committee.capabilities.held(party, 3, 1) for party in range(3)]
    return [answer_of(committee, parts[list(numbers)]) for numbers in held]


def received(committee: Committee, answers: list[bytes]) -> list[int]:
    return [int(word) for word in combine(summands_of(committee, answers, COUNT, 1 << BITS), BITS)]


def lies(answers: list[bytes], party: int, others: list[bytes]) -> Iterator[bytes]:
    """Other answers of a party: every byte changed, halves of another request, another party's answer, zeros."""
    mine = answers[party]
    for place in range(len(mine)):
        yield mine[:place] + bytes([mine[place] ^ 1]) + mine[place + 1 :]
    yield others[party]
    yield others[party][: 8 * COUNT] + mine[8 * COUNT :]
    yield mine[: 8 * COUNT] + others[party][8 * COUNT :]
    yield answers[(party + 1) % 3]
    yield answers[(party + 2) % 3]
    yield bytes(len(mine))


def test_a_receiver_finds_every_wrong_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By any party, of any form. Without the comparison the same answers give other messages."""
    committee, messages = committee_of(tmp_path / "c"), np.arange(COUNT) * 77
    answers, others = answers_of(committee, messages), answers_of(committee, messages[::-1], 2)
    assert received(committee, answers) == messages.tolist()
    assert all(len(answer) == answer_bytes(committee, COUNT) == 8 * COUNT + 32 for answer in answers)
    for party in range(3):
        tried = [[lie if i == party else answer for i, answer in enumerate(answers)] for lie in lies(answers, party, others)]
        for wrong in tried:
            with pytest.raises(DifferentCopies, match="different copies of a share, so one of them cheats"):
                received(committee, wrong)
        with monkeypatch.context() as patch:
            patch.setattr(copies, "compare", lambda *arguments: None)
            assert sum(received(committee, wrong) != messages.tolist() for wrong in tried) >= 8 * COUNT // 2


T = 257


def polynomials(messages: np.ndarray, parties: int, threshold: int, seed: int = 1, modulus: int = T) -> list[bytes]:
    """Answers of honest parties with shares of these messages by Shamir's scheme."""
    coefficients = np.random.default_rng(seed).integers(0, modulus, (threshold, messages.size))
    shares = [(messages + sum(c * (party + 1) ** (i + 1) for i, c in enumerate(coefficients))) % modulus for party in range(parties)]
    return [share.astype("<u8").tobytes() for share in shares]


def added(committee: Committee, answers: list[bytes]) -> list[int]:
    return [int(word) % T for word in np.sum([part[0] for part in summands_of(committee, answers, COUNT, T)], axis=0)]


@pytest.mark.parametrize("parties", [3, 5, 4])
def test_a_receiver_checks_the_degree(parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other answer of any t parties, each word in turn: found; without the check of the degree the message is another one if one of the first t + 1 parties lies."""
    committee = api.in_process_committee(parties, "mal-shamir")
    t = committee.threshold
    messages = np.arange(COUNT) * 7 % T
    answers = polynomials(messages, parties, t)
    assert added(committee, answers) == messages.tolist() and answer_bytes(committee, COUNT) == 8 * COUNT
    for liars in combinations(range(parties), t):
        for place in range(COUNT):
            wrong = [np.frombuffer(answer, "<u8").copy() for answer in answers]
            for liar in liars:
                wrong[liar][place] = (wrong[liar][place] + 1 + liar) % T
            tried = [words.tobytes() for words in wrong]
            with pytest.raises(WrongDegree, match="do not belong together"):
                added(committee, tried)
            with monkeypatch.context() as patch:
                patch.setattr(copies, "degree_holds", lambda *arguments: True)
                if liars == tuple(range(t)):
                    assert added(committee, tried) != messages.tolist()
    words = np.frombuffer(answers[0], "<u8").copy()
    words[0] += T  # the same residue, not canonical
    with pytest.raises(WrongDegree):
        added(committee, [words.tobytes(), *answers[1:]])


def test_semi_honest_committees_answer_as_before(tmp_path: Path) -> None:
    """One summand, and nothing to compare."""
    committee = committee_of(tmp_path / "c", "rep-field")
    shares = np.arange(2 * COUNT, dtype=np.uint64).reshape(2, COUNT)
    assert answer_of(committee, shares) == shares[0].astype("<u8").tobytes()
    assert answer_bytes(committee, COUNT) == 8 * COUNT


def made(folder: Path, parameters: str, protocol: str = "mal-rep-field", parties: int = 3, **options: Any) -> tuple[Committee, Path]:
    """A committee with a key, and the identity of a receiver."""
    committee = committee_of(folder, protocol, parties)
    run_in_process(committee, lambda context: keygen_job(context, api.keygen_job("key", api.load_parameters(parameters), **options)))
    return committee, make_receiver(committee, "web")[0]


@pytest.fixture(scope="module")
def lwe(tmp_path_factory: pytest.TempPathFactory) -> tuple[Committee, Path, bytes]:
    folder = tmp_path_factory.mktemp("verified") / "c"
    committee, identity = made(folder, "lwe64-p2")
    api.encrypt(folder, "key", MESSAGES, folder / "c.lwe")
    return committee, identity, (folder / "c.lwe").read_bytes()


def served(lwe: tuple[Committee, Path, bytes]) -> Threads:
    return Threads(lwe[0], Service("key", keep=32, chunk=32))


def asked(lwe: tuple[Committee, Path, bytes]) -> list[int]:
    committee, identity, data = lwe
    result = fetch(committee, identity, data, wait=20.0)
    assert isinstance(result, LweDecrypted)
    return [int(message) for message in result.messages]


def lying(threads: Threads, liar: int, monkeypatch: pytest.MonkeyPatch, other: Callable[[np.ndarray], np.ndarray]) -> None:
    """From here on party ``liar`` answers with ``other`` shares."""
    honest, truly = decryption.answer_of, decryption.ServedKey.run
    corrupted = threads._daemons[liar].served_key
    caller: ContextVar[decryption.ServedKey | None] = ContextVar("caller", default=None)  # of a thread

    def answer(committee: Committee, shares: np.ndarray) -> bytes:
        """All parties have one committee object here, so the caller tells which of them it is."""
        return honest(committee, other(shares) if caller.get() is corrupted else shares)

    def run(self: decryption.ServedKey, *arguments: Any) -> list[bytes]:
        caller.set(self)
        return truly(self, *arguments)

    monkeypatch.setattr(decryption.ServedKey, "run", run)
    monkeypatch.setattr(decryption, "answer_of", answer)


def test_a_served_committee_and_a_lying_party(lwe: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS: right messages, twice; then a party answers with another share: the receiver stops. If it does not compare, it has another message."""
    with served(lwe) as threads:
        assert asked(lwe) == asked(lwe) == MESSAGES.tolist()
        lying(threads, LIAR, monkeypatch, lambda shares: shares + np.uint64(1 << 63))
        for _ in range(2):
            with pytest.raises(DifferentCopies) as caught:
                asked(lwe)
            accused = re.match(r"parties (\d) and (\d) sent different copies", str(caught.value))
            assert accused is not None and LIAR in map(int, accused.groups()) and len(set(accused.groups())) == 2
        monkeypatch.setattr(copies, "compare", lambda *arguments: None)
        assert asked(lwe) != MESSAGES.tolist()
    assert not threads.failures


@pytest.mark.parametrize("parties", [3, *([5] if LONG else [])])
def test_lwe_of_mal_shamir_is_served(tmp_path: Path, parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS: right messages, twice; then a party answers with other shares: the receiver stops. If it does not check the degree, it has other messages, or numbers that are none."""
    folder, values = tmp_path / "c", np.arange(16)
    committee, identity = made(folder, "lwe53-p16", "mal-shamir", parties)
    api.encrypt(folder, "key", values, folder / "c.lwe")
    lwe = committee, identity, (folder / "c.lwe").read_bytes()
    with served(lwe) as threads:
        assert asked(lwe) == asked(lwe) == values.tolist()
        by = np.where(values < 15, 1, -1)
        lying(threads, 0, monkeypatch, lambda shares: np.frombuffer(moved(committee, shares[0].tobytes(), 16, by), "<u8")[None, :])
        for _ in range(2):
            with pytest.raises(WrongDegree, match="do not belong together"):
                asked(lwe)
        monkeypatch.setattr(copies, "degree_holds", lambda *arguments: True)
        assert asked(lwe) == (values + by).tolist()
        by[:] = 1
        with pytest.raises(PartyError, match="a result is no message of 4 bits"):
            asked(lwe)
    assert not threads.failures


class Broken:
    """A session of three parties that fails as soon as it is used."""

    party, parties = 0, 3

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error

    def abort(self, reason: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def alone(lwe: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Alone]:
    made = Alone(lwe[0], monkeypatch)
    yield made
    made.record.unlink(missing_ok=True)


class Alone:
    """Party 0, whose sessions are given. ``tries``: errors of sessions in their order; None: the session is not connected. The record is removed after a test."""

    def __init__(self, committee: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
        self.committee, self.tries = committee, list[Exception | None]()
        self.record = committee.party_folder(0) / sessions.NAME
        self.record.unlink(missing_ok=True)
        self.counts = list[int]()
        """What was on the disk when a session began."""
        monkeypatch.setattr(daemon, "open_session", self.open)

    def open(self, *arguments: Any) -> Any:
        self.counts.append(sessions.read_sessions(self.record)[0])
        error = self.tries.pop(0)
        if error is None:
            raise _engine.NetworkError("nobody is there")
        return Broken(error)

    def served(self) -> daemon.Daemon:
        return daemon.Daemon(self.committee, 0, Service("key"))

    def run(self, *tries: Exception | None) -> None:
        self.tries[:] = tries
        self.served().run()

    def refused(self, match: str) -> None:
        with pytest.raises(CommitteeError, match=match) as caught:
            self.served()
        assert str(self.record) in str(caught.value) and "remove" in str(caught.value) and "\n" not in str(caught.value)


def test_a_failed_check_ends_the_service(alone: Alone) -> None:
    """No new session after a failed check, by this daemon or by one that is started after it, until the record is removed."""
    with pytest.raises(_engine.CheckError, match="cheats"):
        alone.run(_engine.NetworkError("lost"), _engine.CheckError("party 1\ncheats"), _engine.NetworkError("never tried"))
    assert len(alone.tries) == 1 and alone.counts == [1, 2]
    for _ in range(2):
        alone.refused(r"a check failed in a served session, so a party cheats \(party 1 cheats\)")
    alone.record.unlink()
    with pytest.raises(_engine.CheckError):
        alone.run(_engine.CheckError("again"))


def test_sessions_that_broke_off_are_counted(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over starts of the party, and before it connects. A session that did not begin is not counted; a daemon that has none left ends, and no other one is begun."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 3)
    lost, late = _engine.NetworkError("lost"), ParameterError("ends the daemon")
    with pytest.raises(ParameterError):
        alone.run(None, None, lost, None, late)
    assert alone.counts == [1, 1, 1, 2, 2] and sessions.read_sessions(alone.record) == (2, "")
    with pytest.raises(_engine.NetworkError, match="lost"):
        alone.run(None, lost, lost)
    assert alone.counts[5:] == [3, 3] and len(alone.tries) == 1
    alone.refused("3 served sessions broke off, the limit is 3")
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 4)
    again = alone.served()
    again.stop()
    again.run()
    alone.record.write_bytes(alone.record.read_bytes()[:9])
    alone.refused("damaged")


def test_a_session_that_its_party_ends(lwe: tuple[Committee, Path, bytes], alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing runs, it is not counted; in the middle of a batch it is."""
    made = alone.served()
    ended, lost = KeyboardInterrupt(), _engine.NetworkError("lost")
    for busy, error in ((False, ended), (True, ended), (False, lost), (False, Lent("party 0 changes its shares")), (True, Lent("it does"))):
        assert made._record is not None
        made._record.claim()
        made._busy = busy
        made._note(error)
        made._record.close()
    assert sessions.read_sessions(alone.record) == (3, "")
    made.stop()
    made.run()
    alone.record.unlink()
    monkeypatch.undo()
    threads = served(lwe)
    with threads:
        asked(lwe)
        for daemon_ in threads._daemons:
            assert sessions.read_sessions(lwe[0].party_folder(daemon_.party) / sessions.NAME)[0] >= 1
        threads._daemons[0].stop()
        threads._threads[0].join(30)
        assert sessions.read_sessions(alone.record) == (0, "")
    for party in (1, 2):
        (lwe[0].party_folder(party) / sessions.NAME).unlink()


def test_a_semi_honest_committee_has_no_record(tmp_path: Path) -> None:
    """Its promise does not rest on checks."""
    committee = committee_of(tmp_path / "c", "rep-field")
    run_in_process(committee, lambda context: keygen_job(context, api.keygen_job("key", api.load_parameters("lwe64-p2"))))
    make_receiver(committee, "web")
    assert daemon.Daemon(committee, 0, Service("key"))._record is None


def test_what_is_refused(lwe: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of another length; roundings whose errors leak, of BFV and of LWE; CKKS; tables without shares modulo 2^k."""
    committee, identity, data = lwe
    receiver = Receiver(committee, identity)
    receiver.ask = lambda bodies, head: [bytearray(40)] * 3  # type: ignore[method-assign]
    with pytest.raises(PartyError, match="sent 40 bytes for 5 messages"):
        receiver.decrypt(data)
    for rounding in ("round_mask_open", "round_flood"):
        with pytest.raises(
            ParameterError, match=f"{rounding} tells of the noise, .*mal-rep-field serves LWE with round_ltz_circuit or round_ltz_table"
        ):
            open_kind(committee, 0, Service("key", rounding=rounding))
        encryption_of(load_key(committee.key_folder(0, "key"))).check_served(api.in_process_committee(3, "rep-field"), rounding)
    toy = planned_toy()
    ckks = replace(toy, parameters=replace(toy_set(256), scheme="ckks", plain_modulus=0, scale_bits=40))
    shamir = api.in_process_committee(3, "mal-shamir")
    others = replace(load_key(committee.key_folder(0, "key")), protocol="mal-shamir", parameters=api.load_parameters("lwe53-p16"))  # type: ignore[type-var]
    for where, key, rounding, said in (
        (committee, toy, "round_mask_open", "round_mask_open is sometimes wrong, and its errors tell of the secret key"),
        (committee, ckks, "round_ltz_circuit", "CKKS"),
        (shamir, toy, "round_mask_open", "round_mask_open is sometimes wrong"),
        (shamir, ckks, "round_ltz_circuit", "CKKS"),
        (shamir, others, "round_ltz_table", "mal-shamir: there is no round_ltz_table over prime fields alone"),
        (shamir, others, "round_mask_open", "round_mask_open tells of the noise, .*mal-shamir serves LWE with round_ltz_circuit$"),
        (shamir, others, "round_flood", "round_flood tells of the noise, .*mal-shamir serves LWE with round_ltz_circuit$"),
    ):
        monkeypatch.setattr(decryption, "load_key_as", lambda *arguments, key=key: key)
        monkeypatch.setattr(kinds, "load_key", lambda *arguments, key=key: key)
        with pytest.raises((ParameterError, CommitteeError), match=said):
            open_kind(where, 0, Service("key", rounding=rounding))


def shares_of(committee: Committee, messages: np.ndarray, seed: int = 3) -> list[bytes]:
    """Answers of mal-shamir for messages of LWE."""
    return polynomials(messages, committee.size, committee.threshold, seed, FIELD)


def moved(committee: Committee, answer: bytes, count: int, by: np.ndarray) -> bytes:
    """Another answer of party 0 that adds ``by`` to the messages of a receiver who does not check the degree."""
    factor = pow(copies.factors(range(1, committee.threshold + 2), 0, FIELD)[0], -1, FIELD)
    shares = np.frombuffer(answer[: 8 * count], "<u8").astype(np.int64)
    return ((shares + by % FIELD * factor) % FIELD).astype("<u8").tobytes()


@pytest.mark.parametrize("parties", [3, 5])
def test_a_receiver_of_lwe_checks_the_degree_and_the_range(parties: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of answers of mal-shamir. Without the check of the degree, wrong answers give other messages, or numbers that are none."""
    committee = committee_of(tmp_path / "c", "mal-shamir", parties)
    identity, _ = make_receiver(committee, "web")
    parameters = api.load_parameters("lwe53-p16")
    assert isinstance(parameters, LweParameters)
    rng, messages = np.random.default_rng(1), np.array([0, 1, 7, 8, 15])
    data = encrypt(parameters, rng.integers(0, 2, parameters.dimension), messages, rng).to_bytes("0" * 32)
    receiver = Receiver(committee, identity)

    def decrypted(answers: list[bytes]) -> list[int]:
        receiver.ask = lambda bodies, head: [bytearray(answer) for answer in answers]  # type: ignore[method-assign]
        result = receiver.decrypt(data)
        assert isinstance(result, LweDecrypted)
        return [int(message) for message in result.messages]

    honest = shares_of(committee, messages)
    assert decrypted(honest) == messages.tolist()
    for party in range(parties):
        not_canonical = honest[party][:-8] + (int.from_bytes(honest[party][-8:], "little") + FIELD).to_bytes(8, "little")  # the same residue
        for wrong in (shares_of(committee, messages, 4)[party], bytes(len(honest[party])), not_canonical):
            answers = [wrong if i == party else answer for i, answer in enumerate(honest)]
            with pytest.raises(WrongDegree, match="do not belong together"):
                decrypted(answers)
    unchecked = [moved(committee, honest[0], messages.size, by) for by in (np.array([1, 1, 1, 1, -1]), np.array([0, 0, 0, 0, 1]))]
    with monkeypatch.context() as patch:
        patch.setattr(copies, "degree_holds", lambda *arguments: True)
        assert decrypted([unchecked[0], *honest[1:]]) == [1, 2, 8, 9, 14]
        with pytest.raises(PartyError, match="a result is no message of 4 bits"):
            decrypted([unchecked[1], *honest[1:]])
    with pytest.raises(PartyError, match="a result is no message of 4 bits"):
        decrypted(shares_of(committee, messages + 1))


def planned_toy() -> SealKeyInfo:
    """Metadata of a BFV key."""
    plan = toy_decryption("mal-rep-field", 3).job
    assert isinstance(plan, Decryption)
    return key_info(plan)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("protocol", "parties"), [("mal-shamir", 3), *([("mal-rep-field", 3), ("mal-shamir", 4)] if LONG else [])])
def test_bfv_is_served(tmp_path: Path, protocol: str, parties: int) -> None:
    """A ciphertext of SEAL, to a receiver outside. With Shamir's sharing all parties answer, also where t + 1 of them would do."""
    folder, values = tmp_path / "c", np.arange(-50, 50)
    committee, identity = made(folder, "bfv-4096", protocol, parties, relin=False)
    api.encrypt(folder, "key", values, tmp_path / "c.seal")
    info = api.load_key(committee.key_folder(0, "key"))
    from keyquorum.schemes import encryption_of

    body = encryption_of(info).request_body(info, tmp_path / "c.seal", (tmp_path / "c.seal").read_bytes())
    with Threads(committee, Service("key", keep=4096, chunk=4096, patience=300.0)):
        result = fetch(committee, identity, body, wait=300.0, info=info)
    (tmp_path / "m.plain").write_bytes(result.plaintext)
    assert np.array_equal(api.decode(folder, "key", tmp_path / "m.plain", len(values)), values)


assert toy_lwe("prime").ring_bits == BITS
