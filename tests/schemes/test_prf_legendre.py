"""The Legendre PRF under a shared key: what receivers compute, what they refuse, and what copies of summands that differ would tell."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import StoreError
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, ParameterError, PartyError
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.schemes import load_parameters, scheme_of
from keyquorum.schemes.key_folder import load_key, load_shares, write_share
from keyquorum.schemes.prf.function import held_by
from keyquorum.schemes.prf.key import LEGENDRE, LegendreParameters, load_prf_key, parameters_from_json
from keyquorum.schemes.prf.legendre import LegendrePrf
from keyquorum.schemes.subset_shares import check_subsets
from keyquorum.toprf import toprf_keygen

from .test_prf import committee_with_key

P = (1 << 127) - 1
PRF = LegendrePrf(LEGENDRE)
RNG = np.random.default_rng(127)


def elements(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]


def encoded(values: list[int]) -> bytes:
    return b"".join((v % P).to_bytes(16, "little") for v in values)


def uniform(count: int) -> list[int]:
    return [int.from_bytes(RNG.bytes(32)) % P for _ in range(count)]


def legendre_key(committee: Committee, key: str = "prf") -> list[int]:
    """Constant terms and linear coefficients, from the share files of all parties: for tests alone."""
    summands: dict[int, list[int]] = {}
    for party in range(committee.size):
        folder = committee.key_folder(party, key)
        (share,) = load_shares(folder, load_key(folder), party)
        held = held_by(committee, party)
        for number, words in zip(held, share.words.copy(), strict=True):
            mine = elements(words.astype("<u8").tobytes())
            assert summands.setdefault(number, mine) == mine
    return [sum(column) % P for column in zip(*summands.values(), strict=True)]


def symbol_bits(values: list[int]) -> bytes:
    symbols = [pow(v % P, P // 2, P) for v in values]
    assert all(s in (1, P - 1) for s in symbols)
    return np.packbits(np.array(symbols, object) != 1, bitorder="little").tobytes()


def reference(key: list[int], data: bytes, domain: bytes = b"", length: int = 32, derives: bool = False) -> bytes:
    """The function as its documentation has it, with Python's integers."""
    digest = hashlib.sha256(b"keyquorum toprf input v1" + bytes([len(domain)]) + domain + data).digest()
    x = int.from_bytes(digest, "little") % P
    bits = symbol_bits([x * (x + a) + b for b, a in zip(key[: 8 * length], key[256:], strict=False)])
    said = bytes([length, len(domain)]) + domain + len(data).to_bytes(8, "little") + data + bits
    return hashlib.sha256((b"keyquorum toprf derive v1" if derives else b"keyquorum toprf output v1") + said).digest()[:length]


def dealt(committee: Committee, summands: list[list[int]], party: int) -> np.ndarray:
    """The bytes of the summands that a party holds, [held, elements, 16]."""
    return np.stack([np.frombuffer(encoded(summands[j]), np.uint8).reshape(-1, 16) for j in held_by(committee, party)])


def split(values: list[int]) -> list[list[int]]:
    one, two = uniform(len(values)), uniform(len(values))
    return [one, two, [(v - a - b) % P for v, a, b in zip(values, one, two, strict=True)]]


def evaluated(
    key: list[list[int]], points: list[list[int]], blocks: list[int], change: tuple[int, int, int] | None = None
) -> tuple[bytes, list[bytes]]:
    """Blocks, and the answers, from summands of key and points. ``change``: party, index of its summand, and what is added to that copy of the points."""
    committee = api.in_process_committee(3, "rep-field")

    def job(context: PartyContext) -> bytes:
        mine = dealt(committee, points, context.party).copy()
        if change is not None and change[0] == context.party:
            wrong = [v + change[2] for v in elements(mine[change[1]].tobytes())]
            mine[change[1]] = np.frombuffer(encoded(wrong), np.uint8).reshape(-1, 16)
        words = dealt(committee, key, context.party).reshape(2, -1).view("<u8")
        before = context.backend.stats()["rounds"]
        result = PRF.evaluated(context, ShareVector.from_words(words, 2), mine, blocks, b"test")
        assert context.backend.stats()["rounds"] - before == 2
        return result.tobytes()

    answers = run_in_process(committee, job, timeout=60)
    return PRF.combined(committee, answers, sum(blocks)), answers


def test_evaluation_of_values_of_both_lengths() -> None:
    """Two rounds. Blocks beyond the length of a value are not in the answer; equal points have equal blocks from other shares."""
    key, points = uniform(512), uniform(3)
    points.append(points[0])
    blocks, answers = evaluated(split(key), split(points), [2, 1, 1, 2])
    want = [[x * (x + a) + b for b, a in zip(key[:256], key[256:], strict=True)] for x in points]
    assert blocks == b"".join(symbol_bits(values[:used]) for values, used in zip(want, [256, 128, 128, 256], strict=True))
    sums = [sum(column) % P for column in zip(*(elements(a[: len(a) // 2]) for a in answers), strict=True)]
    assert len(set(sums)) == len(sums) == 6 * 128 and not set(sums) & {v % P for values in want for v in values}
    first, last = sums[:256], sums[-256:]
    assert all(a != b for a, b in zip(first, last, strict=True))


def test_sharing_points_and_refusing_answers() -> None:
    committee = api.in_process_committee(3, "rep-field")
    points = [PRF.point(bytes([i]), b"", 32) for i in range(3)]
    bodies = PRF.shared(committee, points)
    summands = {j: body[48 * i : 48 * i + 48] for p, body in enumerate(bodies) for i, j in enumerate(held_by(committee, p))}
    assert [sum(column) % P for column in zip(*map(elements, summands.values()), strict=True)] == elements(b"".join(points))
    assert PRF.shared(committee, points) != bodies
    values = uniform(128)
    good = [dealt(committee, parts, party).tobytes() for parts in [split(values)] for party in range(3)]
    assert PRF.combined(committee, good, 1) == symbol_bits(values)
    wrong = bytearray(good[1])
    wrong[5] ^= 1
    with pytest.raises(PartyError, match=r"parties \d and \d sent different copies of summand"):
        PRF.combined(committee, [good[0], bytes(wrong), good[2]], 1)
    with pytest.raises(PartyError, match="sent 4095 bytes for 1 blocks"):
        PRF.combined(committee, [good[0][1:], *good[1:]], 1)
    with pytest.raises(PartyError, match="is zero, which practically never occurs"):
        PRF.combined(committee, [dealt(committee, parts, p).tobytes() for parts in [split([0, *values[1:]])] for p in range(3)], 1)
    with pytest.raises(PartyError, match="no element of the field"):
        PRF.combined(committee, [b"\xff" * 4096] * 3, 1)


@pytest.mark.parametrize("value", [P, P + 1, (1 << 128) - 1])
def test_shares_that_are_no_elements(value: int) -> None:
    shares = np.frombuffer(encoded([1, P - 1]) + value.to_bytes(16, "little") + bytes(16), np.uint8).reshape(2, 2, 16)
    with pytest.raises(CiphertextError, match="no elements of the field"):
        PRF.check_points(shares)
    PRF.check_points(np.frombuffer(encoded([P - 1, 0, (1 << 126), (1 << 64) - 1]), np.uint8).reshape(2, 2, 16))


@pytest.mark.parametrize("victim", range(3))
def test_what_copies_that_differ_would_tell(victim: int) -> None:
    """A receiver that sends x_j + d to one of two holders of summand j gets the symbols of f(x) + d (2 x_i + a_i): x_i is its own summand, a_i one of
    the key. As it chooses x_i alone, this is the Legendre PRF of degree 1 with the key f(x)/d + a_i, which takes about the square root of the work. So served
    parties compare copies: ``tests/serve/test_toprf_legendre.py`` sends such copies, which are refused."""
    key, (x,), d = split(uniform(512)), uniform(1), 12345
    points = split([x])
    i, _ = held_by(api.in_process_committee(3, "rep-field"), victim)
    total = [sum(column) for column in zip(*key, strict=True)]
    f = [x * (x + a) + b for b, a in zip(total[:256], total[256:], strict=True)]
    told = [v + d * (2 * points[i][0] + a) for v, a in zip(f, key[i][256:], strict=True)]
    blocks, _ = evaluated(key, points, [2], (victim, 1, d))
    assert blocks == symbol_bits(told) != symbol_bits(f)


def test_keys_and_their_files(tmp_path: Path) -> None:
    committee = committee_with_key(tmp_path, "rep-field", 3, LEGENDRE.name)
    folder = committee.key_folder(0, "prf")
    info: Any = load_prf_key(folder)
    assert info.parameters == LEGENDRE and info.parameters.prime == P
    key = legendre_key(committee)
    assert len(set(key)) == 512 and max(key) > 1 << 120
    with pytest.raises(ParameterError, match="that of this version"):
        parameters_from_json({**vars(LEGENDRE), "prime": (1 << 61) - 1})
    (share,) = load_shares(folder, info, 0)
    with pytest.raises(StoreError, match="foreign file, its party is 0, not 1"):
        load_shares(folder, info, 1)
    write_share(tmp_path, info, 0, 0, share)
    assert (tmp_path / "share-0.kqs").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ParameterError, match="rep-field: any 2 parties use keys with their own shares"):
        check_subsets(committee, info, 2)
    assert scheme_of(LEGENDRE).texts.key(info)[0].endswith("prf-legendre127")


def test_committees_and_methods_that_are_refused(tmp_path: Path) -> None:
    assert isinstance(load_parameters(LEGENDRE.name), LegendreParameters)
    for protocol, parties in (("semi", 2), ("shamir", 3), ("mascot", 2)):
        committee = api.init(tmp_path / protocol, parties, protocol)
        with pytest.raises(
            ParameterError,
            match=r"has no shares modulo primes of 127 bits, which prf-legendre127 needs: take a committee of ring, rep-field, mal-rep-ring, mal-rep-field$",
        ):
            toprf_keygen(committee, "prf", prf="legendre")
        with pytest.raises(ParameterError, match="no shares modulo primes of 127 bits"):
            PRF.check(committee, "circuit")
    committee = api.init(tmp_path / "rep", 3, "rep-field")
    with pytest.raises(ParameterError, match="unknown function 'des': choose one of aes, legendre"):
        toprf_keygen(committee, "prf", prf="des")
    PRF.check(committee, "circuit")
    with pytest.raises(ParameterError, match="one-time tables are of AES"):
        PRF.check(committee, "table")
