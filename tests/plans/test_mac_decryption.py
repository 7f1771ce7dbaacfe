"""Exact decryption of BFV and BGV in one ring with MACs: what SEAL's Decryptor gives, and what a corrupted party does is found. Each attack also runs without what finds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.backends.base import ProgramOutput
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ShareVector
from keyquorum.fhe import _arith
from keyquorum.fhe._arith import is_prime
from keyquorum.fhe.parameters import ParameterSet, Scheme, list_parameter_sets, load
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError, PoolError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import decrypt
from keyquorum.plans.pool_variants import variant_for
from keyquorum.programs import Call
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.phases import plain_coefficients
from keyquorum.schemes.seal.ring import RING, decrypts_in_ring, margin, messages, switched, switched_bits
from keyquorum.schemes.seal.ring_variant import BLOCK
from keyquorum.sharing.rounding import rounding_length
from numpy.typing import NDArray

from tests.fhe.dealer import T, find_primes, tiny
from tests.long import LONG

from .corrupted import Change, ends_of, nothing
from .quorum import WEAK, Seal, secret_of
from .test_dishonest_majority import small
from .test_mac_keygen import CORRUPT, PROTOCOL
from .test_odd_pools import fill
from .test_pools import committee

EXACT = "round_ltz_circuit"
HONEST = 0


@cache
def _made(scheme: str = "bfv", parties: int = 2) -> tuple[Committee, Sequence[KeyMaterial]]:
    members = api.in_process_committee(parties, PROTOCOL)
    return members, _keys_of(members, scheme)


def _keys_of(members: Committee, scheme: str) -> Sequence[KeyMaterial]:
    first, *_, special = small(scheme).coeff_modulus  # type: ignore[arg-type]
    parameters = replace(small(scheme), coeff_modulus=(first, special))  # type: ignore[arg-type]
    return api.keygen_in_process(members, SealRequest(parameters, False, (), "cbd", WEAK))


def _encrypted(material: Sequence[KeyMaterial], members: Committee) -> tuple[Any, Any]:
    s = Seal(material[0], secret_of(members, material))
    t = material[0].info.parameters.plain_modulus
    values = np.random.default_rng(5).integers(-(t // 2), t // 2 + 1, s.encoder.slot_count())
    return s, s.lowest(s.encryptor.encrypt(s.encoder.encode(values)))


@pytest.mark.parametrize(("scheme", "parties"), [("bfv", 2), ("bgv", 2), ("bfv", 3)])
@pytest.mark.skipif(not LONG, reason="a minute; the other tests compare with SEAL as well")
def test_what_seal_decrypts(scheme: str, parties: int) -> None:
    """A fresh ciphertext at the last level; receiver is the last party."""
    members, material = _made(scheme, parties)
    assert material[0].info.ring_secret and material[0].info.secrets[-1].domain == RING
    s, ciphertext = _encrypted(material, members)
    [result] = api.decrypt_in_process(members, material, [ciphertext.to_string()], receiver=parties - 1)
    assert np.array_equal(result.coefficients, s.coefficients(ciphertext))


@pytest.mark.parametrize(("scheme", "parties"), [("bfv", 2), ("bgv", 3)])
@pytest.mark.skipif(not LONG, reason="a minute; the matrix of adversaries has decryptions of a toy with a pool")
def test_with_a_pool_as_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, parties: int) -> None:
    """A fresh ciphertext with items of two chunks, which serve once; the online rounds with deferred checks."""
    members = committee(tmp_path, PROTOCOL, parties)
    for party in range(parties):  # MAC keys are in folders from the beginning
        members.party_folder(party).mkdir(parents=True)
    material = _keys_of(members, scheme)
    s, ciphertext = _encrypted(material, members)
    variant = variant_for(members, EXACT, s.parameters)
    fill(members, variant, s.parameters.ring_degree, 600)
    parsed = [read_ciphertext(s.parameters, ciphertext.to_string())]
    rounds, run = [], Embedded.run

    def counted(backend: Embedded, protocol: str, domain: str, call: Call, **options: Any) -> ProgramOutput:
        output = run(backend, protocol, domain, call, **options)
        if call.program == "round_ltz_ring_online":
            rounds.append(output.stats["rounds"])
        return output

    monkeypatch.setattr(Embedded, "run", counted)

    def job(context: PartyContext) -> Any:
        mine = material[context.party]
        return decrypt(context, mine.info, mine.shares, parsed, 1, pool="a test")

    ends = run_in_process(members, job, timeout=120)
    assert ends[0] is None and np.array_equal(ends[1][0].coefficients, s.coefficients(ciphertext))
    # Masked values, and ANDs of blocks in levels, twice, and the message; the rest are checks: of the MAC keys, of as many values as memory may hold, and before and after the message.
    openings = 2 * (1 + (-(-variant.length // BLOCK) - 1).bit_length()) + 1
    assert all(openings < found <= openings + 30 for found in rounds) and len(rounds) == parties
    with pytest.raises(PoolError, match="needs 1,024 items, has 0"):
        run_in_process(members, job, timeout=120)


def test_a_pool_is_for_keys_with_a_secret_in_the_ring(tmp_path: Path) -> None:
    members = committee(tmp_path, PROTOCOL, 2)
    info = replace(_made()[1][0].info, ring_secret=False)

    def job(context: PartyContext) -> Any:
        share = ShareVector()
        return decrypt(context, info, [share], [_parsed()], 0, pool="a test")

    with pytest.raises(ParameterError, match="has no secret in the ring, which decryptions with a pool take: make a new key"):
        run_in_process(members, job, timeout=60)


def _parsed() -> Ciphertext:
    members, material = _made()
    _, ciphertext = _encrypted(material, members)
    return read_ciphertext(material[0].info.parameters, ciphertext.to_string())


def _run(change: Change = nothing, omitted: Sequence[str] = (), ring: bool = True) -> tuple[Any, Any]:
    """What the honest receiver ends with, and what SEAL's Decryptor gives. ``ring``: whether the key has a secret modulo 2^64. ``omitted``: checks that nobody makes."""
    members, material = _made()
    s, ciphertext = _encrypted(material, members)
    parsed = [read_ciphertext(material[0].info.parameters, ciphertext.to_string())]

    def one(context: PartyContext) -> Any:
        info, shares = material[context.party].info, [share.copy() for share in material[context.party].shares]
        if not ring:
            info, shares = replace(info, ring_secret=False), shares[:-1]
        found = decrypt(context, info, shares, parsed, HONEST)
        return None if found is None else found[0].coefficients

    return ends_of(members, one, {CORRUPT: change}, omitted=omitted, silent=False)[HONEST], s.coefficients(ciphertext)


def _another_summand(program: str, domain: str, options: dict[str, Any]) -> None:
    if program == "sum_inputs":
        options["private"] = options["private"].copy()
        options["private"][7] += 1 << rounding_length(small("bfv").coeff_modulus[0], T, 2)  # one carry more


def test_summands_that_are_shared_anew() -> None:
    """The decryption of keys without a secret modulo 2^64: a party inputs another summand of the phase, and the receiver has a wrong message. In the ring nobody inputs anything."""
    end, right = _run(_another_summand, ring=False)
    assert isinstance(end, np.ndarray) and np.flatnonzero(end != right).tolist() == [7]

    def none(program: str, domain: str, options: dict[str, Any]) -> None:
        assert options.get("private") is None

    end, right = _run(none)
    assert np.array_equal(end, right)


def test_sets_that_are_decrypted_in_the_ring() -> None:
    """All shipped ones of BFV and BGV: the switch takes less than 2^-16 of the noise that they allow. With a t of 30 bits it would take too much."""
    for name in list_parameter_sets():
        set_ = load(name, warn=False)
        assert decrypts_in_ring(set_) == (set_.scheme != "ckks")
        if set_.scheme != "ckks":
            assert margin(set_) < 2.0**-16 * set_.coeff_modulus[0] / (2 * set_.plain_modulus)
            assert set_.plain_modulus <= 1 << 64 - switched_bits(set_)
    wide = replace(tiny("bfv"), plain_modulus=next(t for t in range((1 << 29) + 1, 1 << 30, 2048) if is_prime(t)))
    assert not decrypts_in_ring(wide)
    assert any("decryptions under this key are semi-honest" in text for text in SealRequest(wide).warnings(api.in_process_committee(2, PROTOCOL)))


DEGREE = 4096
Ints = NDArray[np.int64]


def _wide(scheme: Scheme) -> ParameterSet:
    """A prime of 50 bits, 1 modulo t: 2^k is so small beside it that the switch takes thousands of units of noise."""
    made = tiny(scheme, 2, DEGREE)
    return replace(made, coeff_modulus=(*find_primes(DEGREE * T, 50, 1), made.coeff_modulus[-1]))


def _opened(parameters: ParameterSet, c: Ciphertext, s: Ints) -> Ints:
    """What the program `round_ltz_ring` opens, in clear: Mod-L of t y, of the phase y of the switched ciphertext."""
    k, n = np.uint64(switched_bits(parameters)), parameters.ring_degree
    low = (np.uint64(1) << k) - np.uint64(1)
    c0, c1 = switched(parameters, c).view(np.uint64).reshape(2, n)
    around = np.concatenate([np.uint64(0) - c1, c1])
    y = c0 + sum((np.uint64(int(s[i]) % (1 << 64)) * around[n - i : 2 * n - i] for i in np.flatnonzero(s)), np.zeros(n, np.uint64))
    x = np.uint64(parameters.plain_modulus) * (y & low)
    return (x - (x & low)).view(np.int64)


def _decrypted(parameters: ParameterSet, s: Ints, c1: NDArray[np.uint64], message: Ints, noise: Ints) -> Ints:
    """The message of an encryption whose phase is nearest to q/t times it plus the noise, by the ring. BGV: with a correction factor."""
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    bgv = parameters.scheme == "bgv"
    factor = 5 if bgv else 1
    m = -message * factor % t if bgv else message
    w = [((2 * int(a) * q + t) // (2 * t) + int(e)) % q for a, e in zip(m, noise, strict=True)]
    if bgv:  # t w = -(factor m) + t e: SEAL's phase is the message and t times the noise
        w = [a * t % q for a in w]
    product = _arith.intt(_arith.mul(_arith.ntt(c1[None], (q,)), _arith.ntt(_arith.small(s, (q,)), (q,)), (q,)), (q,))
    c0 = _arith.sub(np.array([w], np.uint64), product, (q,))
    data = np.stack([c0, c1[None]])
    if bgv:
        data = np.stack([_arith.ntt(part, (q,)) for part in data])
    c = Ciphertext(1, data, bgv, 1.0, factor)
    return plain_coefficients(parameters, c, messages(parameters, _opened(parameters, c, s))).view(np.int64)


@pytest.mark.parametrize("shipped", [False, True])
@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_noise_up_to_the_margin(scheme: Scheme, shipped: bool) -> None:
    """Noise of q/(2t) - margin - 2 of either sign in every coefficient is taken off, with a ternary secret, with one of ones alone, and where all roundings of c1 add up to
    N/2. The margin is tight: with noise that is larger by four of its N + 3 roundings, the last case has a wrong message where all add up, and nowhere else."""
    parameters = load(f"{scheme}-{DEGREE}", warn=False) if shipped else _wide(scheme)
    assert decrypts_in_ring(parameters) and parameters.ring_degree == DEGREE
    q, t, k = parameters.coeff_modulus[0], parameters.plain_modulus, switched_bits(parameters)
    rng, most = np.random.default_rng(8), int(q / (2 * t) - margin(parameters) - 2)
    message, noise = rng.integers(0, t, DEGREE), most * rng.choice([-1, 1], DEGREE)
    ones = np.ones(DEGREE, np.int64)
    for s in (rng.integers(-1, 2, DEGREE), ones, -ones):
        for c1 in (rng.integers(0, q, DEGREE, np.uint64), np.zeros(DEGREE, np.uint64)):
            assert np.array_equal(_decrypted(parameters, s, c1, message, noise), message)
    # 2^k c = (q - 1)/2 modulo q: every coefficient of c1 is rounded down by nearly 1/2, as switched divides it by t first for BGV.
    down = pow(1 << k, -1, q) * (q // 2) * (t if scheme == "bgv" else 1) % q
    c1 = np.full(DEGREE, down, np.uint64)
    assert np.array_equal(_decrypted(parameters, ones, c1, message, -most * ones), message)
    if not shipped:
        above = -most * ones
        above[-1] = -int(q / (2 * t) - q / 2.0**k * (DEGREE - 1) / 2 + 2)
        assert -above[-1] < most + 2 * q / 2.0**k + 6  # of margin = (q/2^k) (N + 3)/2
        found = _decrypted(parameters, ones, c1, message, above)
        assert np.flatnonzero(found != message).tolist() == [DEGREE - 1]


@pytest.fixture
def own_key() -> Any:
    """A key of this test alone, whose MAC keys may be burned."""
    _made.cache_clear()
    yield
    _made.cache_clear()


def _another_share(program: str, domain: str, options: dict[str, Any]) -> None:
    """Another share of a coefficient of the secret, of its lowest bit: the value, not the MAC."""
    if program == "round_ltz_ring":
        options["shares"] = options["shares"].copy()
        options["shares"].words[0, 0] += np.uint64(1)


def _another_ciphertext(program: str, domain: str, options: dict[str, Any]) -> None:
    if program == "round_ltz_ring":
        options["public"] = [options["public"][0].copy()]
        options["public"][0][len(options["public"][0]) // 2 + 7] += 1 << 45  # of c1


MACS = ["ElementMacs", "BitMacs"]


@pytest.mark.parametrize("change", [_another_share, *([_another_ciphertext] if LONG else [])])
def test_another_share_of_the_secret_or_another_ciphertext(own_key: Any, change: Callable[..., None]) -> None:
    """Without the check of MACs the receiver has a wrong message. With it, it has none; the MAC key is burned then."""
    end, right = _run(change, MACS)
    assert isinstance(end, np.ndarray) and not np.array_equal(end, right)
    end, right = _run(change)
    assert isinstance(end, _engine.CheckError) and "cheats" in str(end)
