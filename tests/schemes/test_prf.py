"""Keys of the pseudorandom function: what receivers compute, policies, counts on the disk, and keys of every committee."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from keyquorum import api
from keyquorum.inspection import examine
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError, PartyError, PolicyError
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.schemes import load_parameters, scheme_of
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.prf import function
from keyquorum.schemes.prf.evaluate import check_evaluation, second_blocks
from keyquorum.schemes.prf.evaluations import JOURNAL, Evaluations, read_journal, start_evaluations
from keyquorum.schemes.prf.policy import POLICY, EvaluationPolicy, parse_rate, read_policy, write_policy
from keyquorum.toprf import set_policy, toprf_fill, toprf_status
from keyquorum.toprf.client import hkdf

from tests.long import LONG

KEY_ID, ALICE, BOB = "ab" * 16, "0a" * 32, "0b" * 32
COMMITTEES = pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("semi", 2), ("semi2k", 4)])


def committee_with_key(folder: Path, protocol: str, parties: int, name: str = "prf-aes128") -> Committee:
    """A committee in a folder, with a key that threads of this process made."""
    made = api.init(folder / "committee", parties, protocol)
    job = api.keygen_job("prf", name)
    run_in_process(made, lambda context: run_job(context, job), timeout=60)
    return made


def key_of(committee: Committee) -> bytes:
    """The key of AES, from the share files of all parties: for tests alone."""
    summands: dict[int, Any] = {}
    for party in range(committee.size):
        info = load_key(committee.key_folder(party, "prf"))
        (share,) = load_shares(committee.key_folder(party, "prf"), info, party)
        summands |= dict(zip(function.held_by(committee, party), share.words.copy(), strict=True))
    assert len(summands) == committee.summands
    return np.packbits((np.bitwise_xor.reduce(list(summands.values()))[:128] & 1).astype(np.uint8), bitorder="little").tobytes()


def reference(key: bytes, data: bytes, domain: bytes = b"", length: int = 32, derives: bool = False) -> bytes:
    """The function as its documentation has it, with AES of another library. ``derives``: the value from which keys are derived."""
    x = hashlib.sha256(b"keyquorum toprf input v1" + bytes([len(domain)]) + domain + data).digest()[:16]
    encrypt = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update
    if length == 32:
        x = x[:15] + bytes([x[15] & 0xFE])
        blocks = encrypt(x) + encrypt(x[:15] + bytes([x[15] | 1]))
    else:
        blocks = encrypt(x)
    said = bytes([length, len(domain)]) + domain + len(data).to_bytes(8, "little") + data + blocks
    return hashlib.sha256((b"keyquorum toprf derive v1" if derives else b"keyquorum toprf output v1") + said).digest()[:length]


@COMMITTEES
def test_sharing_and_combining(protocol: str, parties: int) -> None:
    """Without AES between them they are inverse. Every party gets the summands that it holds; the second block differs in one bit."""
    committee = api.in_process_committee(parties, protocol)
    points = [function.point_of(bytes([i]), b"", 32) for i in range(3)]
    bodies = function.shared_points(committee, points)
    assert function.combined(committee, bodies, 3) == b"".join(points)
    doubled = []
    for party, body in enumerate(bodies):
        held = function.held_by(committee, party)
        shares = np.frombuffer(body, np.uint8).reshape(len(held), 3, 16)
        assert np.array_equal(function.blocks_of(function.rows_of(shares)), shares)
        doubled.append(second_blocks(shares, held).tobytes())
    both = function.combined(committee, doubled, 6)
    for i, point in enumerate(points):
        assert both[32 * i : 32 * i + 32] == point + point[:15] + bytes([point[15] ^ 1])
    with pytest.raises(PartyError, match=r"party 1 sent 5 bytes for 3 blocks"):
        function.combined(committee, [bodies[0], bytes(5), *bodies[2:]], 3)
    if protocol == "rep-field":
        wrong = bytes([bodies[1][0] ^ 1]) + bodies[1][1:]
        with pytest.raises(PartyError, match=r"parties \d and \d sent different copies of summand \d of the result"):
            function.combined(committee, [bodies[0], wrong, bodies[2]], 3)


@COMMITTEES
def test_shares_at_corrupt_parties_are_uniform(protocol: str, parties: int) -> None:
    """For one input, the bits of what t parties get: chi squared of each byte value, which is above 400 with probability 10^-8 for uniform bytes."""
    committee = api.in_process_committee(parties, protocol)
    points = [bytes(16)] * 4096
    bodies = function.shared_points(committee, points)
    for honest in range(parties):
        corrupt = [p for p in range(parties) if p != honest] if protocol != "rep-field" else [honest]
        seen: dict[int, Any] = {}
        for party in corrupt:
            held = function.held_by(committee, party)
            seen |= dict(zip(held, np.frombuffer(bodies[party], np.uint8).reshape(len(held), -1), strict=True))
        assert len(seen) == committee.summands - 1  # one summand is missing
        for summand in [*seen.values(), np.bitwise_xor.reduce(list(seen.values()))]:
            counts = np.bincount(summand, minlength=256)
            assert ((counts - summand.size / 256) ** 2 / (summand.size / 256)).sum() < 400


def test_outputs_are_bound_to_input_domain_and_length() -> None:
    assert function.point_of(b"x", b"", 16)[:15] == function.point_of(b"x", b"", 32)[:15]
    assert function.point_of(b"x", b"d", 16) != function.point_of(b"dx", b"", 16)
    values = {function.finalised(m, d, 16, bytes(16)) for m in (b"", b"x", b"xy") for d in (b"", b"x", b"xy")}
    assert len(values) == 9 and function.finalised(b"", b"", 32, bytes(32))[:16] not in values
    for wrong in (lambda: function.point_of(b"", bytes(256), 32), lambda: function.check_output(24)):
        with pytest.raises(ParameterError, match=r"at most 255|choose 16 or 32"):
            wrong()


@pytest.mark.parametrize(("length", "salt"), [(1, b""), (32, b"salt"), (100, b""), (8160, b"x" * 99)])
def test_derived_keys_are_those_of_hkdf(length: int, salt: bytes) -> None:
    assert hkdf(b"value", b"use", salt, length) == HKDF(SHA256(), length, salt or None, b"use").derive(b"value")
    with pytest.raises(ParameterError, match="choose 1 to 8160"):
        hkdf(b"value", b"", b"", 8161)


@COMMITTEES
def test_a_key_is_nowhere(tmp_path: Path, protocol: str, parties: int) -> None:
    """No file of a party has the key, as bytes, as bits or as words, nor a round key; all parties together have one."""
    committee = committee_with_key(tmp_path, protocol, parties)
    key = key_of(committee)
    bits = np.unpackbits(np.frombuffer(key, np.uint8), bitorder="little")
    forms = [key, bits.tobytes(), np.packbits(bits).tobytes(), bits.astype("<u8").tobytes(), key.hex().encode()]
    for party in range(parties):
        for path in committee.party_folder(party).rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert not any(form in content for form in forms), path
    folder = committee.key_folder(0, "prf")
    seen = examine(folder)
    assert seen.kind == "key folder" and seen.lines[0].startswith("PRF key ") and "0 evaluations counted" in seen.lines
    where, info = api.export_key(committee, "prf", folder, tmp_path / "public")
    assert info == load_key(folder) and [path.name for path in where.iterdir()] == ["key.json"]
    assert examine(where).kind == "key folder"
    with pytest.raises(ParameterError, match="keys of PRF encrypt nothing: evaluate the function with keyquorum toprf"):
        api.encrypt(committee, "prf", [1], tmp_path / "x")
    filled = toprf_fill(committee, 5, "circuit")
    assert filled.made == 0 and ("need no one-time material" in filled.line or "are made while the parties evaluate" in filled.line)
    assert [(s.total, s.policy) for s in toprf_status(committee, "prf")] == [(0, None)] * parties
    set_policy(committee, 0, "prf", 5, 7, [ALICE])
    assert toprf_status(committee, "prf")[0].policy == EvaluationPolicy(info.key_id, 5, 7, (ALICE,))


def test_committees_and_methods_that_do_not_serve() -> None:
    parameters = load_parameters("prf-aes128")
    shamir, macs = api.in_process_committee(3, "shamir"), api.in_process_committee(2, "spdz2k")
    with pytest.raises(ParameterError, match=r"^shamir shares over prime fields alone, and AES computes on shares of bits: take a committee of"):
        scheme_of(parameters).request(parameters, {}).check_committee(shamir)
    for committee, method, reason in (
        (shamir, "circuit", "over prime fields alone"), (macs, "table", "one-time tables with MACs are not made"),
        (api.in_process_committee(3, "mal-rep-ring"), "table", "one-time tables are semi-honest so far"), (api.in_process_committee(3), "dance", "choose one of circuit, table"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=reason):
            check_evaluation(committee, method)
    with pytest.raises(ParameterError, match="noise is no option of keys of PRF"):
        api.keygen_job("key", "prf-aes128", noise=3)


@pytest.mark.skipif(not LONG, reason="seconds of oblivious transfer: KEYQUORUM_LONG=1")
def test_a_key_with_macs() -> None:
    """Its first round key is the one of the standard."""
    committee = api.in_process_committee(2, "spdz2k")
    request = scheme_of(load_parameters("prf-aes128")).request(load_parameters("prf-aes128"), {})
    assert not request.warnings(committee)
    made = api.keygen_in_process(committee, request)
    words = sum(material.shares[0].words[0].astype(object) for material in made)  # the values' part, two words an element
    bits = np.array([int(words[2 * i] & 1) for i in range(1408)], np.uint8)
    round_keys = np.packbits(bits, bitorder="little").tobytes()
    assert round_keys[16:20] == _next_word(round_keys[:16])


def _next_word(key: bytes) -> bytes:
    """The first word of round key 1, from FIPS-197, section 5.2: w4 = w0 xor SubWord(RotWord(w3)) xor 01000000."""
    logarithms, powers, x = {}, [], 1
    for i in range(255):  # powers of the generator 3 of GF(256)
        powers.append(x)
        logarithms[x] = i
        x ^= x << 1 ^ (0x11B if x >> 7 else 0)

    def substituted(x: int) -> int:
        y = powers[-logarithms[x] % 255] if x else 0
        return sum((bin(y & sum(1 << (i + s) % 8 for s in (0, 4, 5, 6, 7))).count("1") + (0x63 >> i) & 1) << i for i in range(8))

    rotated = [substituted(byte) for byte in (*key[13:16], key[12])]
    return bytes(a ^ b ^ c for a, b, c in zip(key[:4], rotated, (1, 0, 0, 0), strict=True))


class Clock:
    """A clock that a test sets, beside one that only runs."""

    def __init__(self) -> None:
        self.now, self._steady = 1_800_000_000.0, 0.0

    def __call__(self) -> float:
        return self.now

    def steady(self) -> float:
        return self._steady

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self._steady += seconds


def opened(folder: Path, clock: Clock, rate: int = 10, total: int | None = None, receivers: tuple[str, ...] | None = None) -> Evaluations:
    return Evaluations(folder, EvaluationPolicy(KEY_ID, rate, total, receivers), clock, clock.steady)


def test_rate_total_and_receivers(tmp_path: Path) -> None:
    """Each limit is named, with the time at which it is free again; counts outlive the process."""
    clock = Clock()
    start_evaluations(tmp_path, KEY_ID)
    count = opened(tmp_path, clock, 10, 25, (ALICE, BOB))
    assert str(count.refusal("0c" * 32, "request", 1)).startswith("this receiver (0c0c0c0c0c0c0c0c...) may not evaluate under key abab")
    count.claim([(ALICE, "one", 6)])
    clock.now += 60
    count.claim([(ALICE, "two", 3), (BOB, "one", 8)])
    assert count.refusal(ALICE, "three", 1) is None
    assert isinstance(count.refusal(ALICE, "three", 1, [(ALICE, 1)]), PolicyError)
    for again in range(2):  # the second time from the disk
        refused = count.refusal(ALICE, "three", 2)
        assert isinstance(refused, PolicyError) and str(refused) == (
            "the policy allows this receiver 10 evaluations an hour and 9 are used: 2 more are refused until 2027-01-15 09:00:01 UTC"
        )
        refused = count.refusal(ALICE, "three", 8)
        assert str(refused).endswith("2027-01-15 09:01:01 UTC")
        assert "send fewer at a time" in str(count.refusal(ALICE, "three", 11))
        assert isinstance(count.refusal(ALICE, "two", 1), CiphertextError) and count.refusal(BOB, "two", 1) is None
        if not again:
            count = opened(tmp_path, clock, 10, 25, (ALICE, BOB))
    clock.now += 3541  # the first request is an hour old
    assert count.refusal(ALICE, "three", 7) is None and "counted already" in str(count.refusal(ALICE, "one", 1))
    count.claim([(ALICE, "three", 7)])
    assert (
        str(count.refusal(BOB, "three", 2))
        == f"key {KEY_ID} has fewer than 2 of its evaluations left: ask who runs the party for another limit, or for another key"
    )
    clock.now -= 86400  # set back: nothing becomes free
    assert count.refusal(ALICE, "four", 1) is not None
    assert opened(tmp_path, clock, 10, 25).refusal(ALICE, "four", 1) is not None


def test_a_line_of_the_future_does_not_block_for_ever(tmp_path: Path) -> None:
    """The clock was years ahead for a moment. What was counted is free after an hour in which the party serves, also after a start."""
    clock = Clock()
    start_evaluations(tmp_path, KEY_ID)
    count = opened(tmp_path, clock)
    clock.now += 1e8
    count.claim([(ALICE, "ahead", 4)])
    clock.now -= 1e8
    count.claim([(ALICE, "now", 6)])
    refused = str(count.refusal(ALICE, "more", 1))
    assert refused.endswith("are refused until 2027-01-15 09:00:01 UTC"), "as the clock on the wall will show it"
    clock.passes(3601)
    assert count.refusal(ALICE, "more", 10) is None
    count = opened(tmp_path, clock)
    clock.passes(3599)
    assert count.refusal(ALICE, "more", 1) is not None
    clock.passes(2)
    assert count.refusal(ALICE, "more", 10) is None and count.total == 10


def test_a_clock_that_was_behind_at_a_start_frees_nothing(tmp_path: Path) -> None:
    """A host starts without a battery and without NTP: the clock is three days behind, and right a moment later. Five an hour stay five."""
    clock = Clock()
    start_evaluations(tmp_path, KEY_ID)
    opened(tmp_path, clock, 5).claim([(ALICE, "true", 4)])
    clock.now -= 3 * 86400
    count = opened(tmp_path, clock, 5)
    count.claim([(ALICE, "behind", 1)])
    assert count.refusal(ALICE, "more", 1) is not None
    clock.now += 3 * 86400
    for _ in range(2):
        clock.passes(3)
        assert count.refusal(ALICE, "more", 1) is not None
        count = opened(tmp_path, clock, 5)  # from the disk
    clock.passes(3600)
    assert count.refusal(ALICE, "more", 5) is None


def test_a_count_that_cannot_be_tidied_up_goes_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests are counted, and their answers may leave; nothing more is counted until the journal can be written anew."""
    clock = Clock()
    start_evaluations(tmp_path, KEY_ID)
    count = opened(tmp_path, clock)
    with monkeypatch.context() as patch:
        patch.setattr("keyquorum.schemes.prf.evaluations.SPARE_LINES", 0)
        count.claim([(ALICE, "one", 1)])
        clock.now += 7201

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr("keyquorum.schemes.prf.evaluations.write_atomically", full)
        count.claim([(ALICE, "two", 1)])
        with pytest.raises(PolicyError, match="cannot write its count of evaluations"):
            count.require()
    count.require()
    assert opened(tmp_path, clock).total == 2


def test_old_lines_are_dropped_but_counted(tmp_path: Path) -> None:
    clock = Clock()
    start_evaluations(tmp_path, KEY_ID)
    count = opened(tmp_path, clock)
    for i in range(5):
        count.claim([(ALICE, f"request{i}", 2)])
        clock.now += 2000
    assert count.total == 10
    again = opened(tmp_path, clock)
    found = read_journal(tmp_path / JOURNAL)
    assert again.total == found.total == 10 and len(found.lines) == 3 and found.dropped == 4
    assert examine(tmp_path / JOURNAL).details == {"key_id": KEY_ID, "total": 10}


def test_damaged_counts_are_refused(tmp_path: Path) -> None:
    """A cut off end is what a crash leaves; every other change is refused, and so is a file that is gone or of another key."""
    clock, path = Clock(), tmp_path / JOURNAL
    start_evaluations(tmp_path, KEY_ID)
    opened(tmp_path, clock).claim([(ALICE, "request1", 1), (BOB, "request2", 1)])
    data = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    for end in sorted({*range(ends[0], len(data), 29), *ends, ends[1] - 1, ends[1] + 1}):
        path.write_bytes(data[:end])
        assert read_journal(path).torn == (end not in ends)
        assert opened(tmp_path, clock).total == sum(end >= e for e in ends[1:])
    for position in range(len(data) - 1):
        path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(KeyFileError, match="is damaged, so what was evaluated is not known"):
            read_journal(path)
    path.write_bytes(data)
    with pytest.raises(KeyFileError, match="is of another key"):
        Evaluations(tmp_path, EvaluationPolicy("cd" * 16, 5), clock)
    path.unlink()
    with pytest.raises(KeyFileError, match="without the count of evaluations the key is not served"):
        opened(tmp_path, clock)


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """Nothing is counted and nothing may be answered; when there is room again, the journal is whole."""
    start_evaluations(tmp_path, KEY_ID)
    count, working = opened(tmp_path, Clock()), getattr(os, fails)
    count.claim([(ALICE, "request1", 1)])

    def full(descriptor: int, *data: Any) -> Any:
        if fails == "write":
            working(descriptor, bytes(data[0])[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, fails, full)
        for _ in range(2):
            with pytest.raises(PolicyError, match="cannot write its count of evaluations"):
                count.claim([(ALICE, "request2", 1)])
        if fails == "fsync":  # the file is written anew as a whole, by other calls
            with pytest.raises(PolicyError, match="cannot write its count of evaluations"):
                count.require()
    count.require()
    count.claim([(ALICE, "request3", 1)])
    assert count.total == read_journal(tmp_path / JOURNAL).total == 2 and not read_journal(tmp_path / JOURNAL).torn


def test_killed_while_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that stops at any point of a count leaves a journal with the request or without it, never with half of it."""

    class Stopped(BaseException):
        pass

    for point in ("count/before", "count/half", "count/written", "count/durable"):
        folder = tmp_path / point.replace("/", "-")
        folder.mkdir()
        start_evaluations(folder, KEY_ID)
        count = opened(folder, Clock())
        count.claim([(ALICE, "request1", 1)])

        def stop(name: str, point: str = point) -> None:
            if name == point:
                raise Stopped

        monkeypatch.setattr(checkpoints, "hook", stop)
        with pytest.raises(Stopped):
            count.claim([(ALICE, "request2", 1)])
        monkeypatch.setattr(checkpoints, "hook", None)
        shutil.copytree(folder, tmp_path / "copy", dirs_exist_ok=True)
        assert opened(folder, Clock()).total == (2 if point in ("count/written", "count/durable") else 1)


def test_policies(tmp_path: Path) -> None:
    policy = EvaluationPolicy(KEY_ID, 100, None, (ALICE,))
    write_policy(tmp_path, policy)
    path = tmp_path / POLICY
    assert read_policy(path, KEY_ID) == policy and path.stat().st_mode & 0o777 == 0o600
    assert examine(path).lines == [f"policy of key {KEY_ID}: 100/h for each of 1 receivers, any number in all"]
    assert parse_rate("100/h") == 100
    for text in ("100", "-1/h", "1/m", "1.5/h", "1/h ", ""):
        with pytest.raises(ParameterError, match="give evaluations an hour, as 100/h"):
            parse_rate(text)
    for wrong in ({"rate": 0}, {"rate": 10_000_001}, {"total": 0}):
        with pytest.raises(ParameterError, match="choose"):
            replace(policy, **wrong)  # type: ignore[arg-type]
    for entry, value in (("rate", 0), ("rate", "5"), ("total", -1), ("receivers", ["x"]), ("key_id", "x"), ("rate", True)):
        path.write_text(json.dumps({**policy.to_json(), entry: value}))
        with pytest.raises(KeyFileError, match="is damaged: write it again"):
            read_policy(path)
    write_policy(tmp_path, policy)
    with pytest.raises(KeyFileError, match="of another key"):
        read_policy(path, "cd" * 16)
    with pytest.raises(PolicyError, match="this party has no policy for the key: name one, keyquorum toprf serve"):
        read_policy(tmp_path / "none")
