"""BFV and BGV: joint decryption is SEAL's decryption, coefficient by coefficient, up to the very border of rounding."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import _arith
from keyquorum.fhe.decode import message_of_phase
from keyquorum.fhe.noise import ciphertext_noise
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext, SecretKey, read_ciphertext, write_ciphertext
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.sharing.rounding import rounding_length
from numpy.typing import NDArray

from tests.long import LONG, some

from .distributions import Z99
from .quorum import Seal, committee, decrypt_fixed, make_key, secret_of

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

COEFFICIENTS = 10**6 if LONG else 250_000
MEMBERS = committee("rep-field")
T = 65537


@cache
def key(name: str, relin: bool = True) -> tuple[list[KeyMaterial], SecretKey]:
    """A key of a shipped set, or of ``mixed-bgv``, and its secret."""
    parameters = mixed_bgv() if name == "mixed-bgv" else api.load_parameters(name)
    material = make_key(MEMBERS, SealRequest(parameters, relin), f"exact {name}".encode())
    return material, secret_of(MEMBERS, material)


def mixed_bgv() -> ParameterSet:
    """BGV where only q_0 is 1 mod t: switching levels changes the correction factor."""
    bfv, bgv = api.load_parameters("bfv-8192"), api.load_parameters("bgv-8192")
    return replace(bgv, name="mixed-bgv", coeff_modulus=(bgv.coeff_modulus[0], *bfv.coeff_modulus[1:]))


def encryptions(s: Seal, count: int) -> list[Any]:
    """Fresh encryptions of uniform slots."""
    rng, n = np.random.default_rng(1), s.parameters.ring_degree
    values = (rng.integers(-(T // 2), T // 2 + 1, n) for _ in range(count))
    return [s.encryptor.encrypt(s.encoder.encode(v)) for v in values]


def deepest_circuit(s: Seal) -> tuple[int, bool]:
    """The most squarings that SEAL's noise budget supports, and whether levels are switched in between."""
    best = (0, False)
    for switch in (False, True):
        ciphertext, depth = encryptions(s, 1)[0], 0
        while True:
            try:
                ciphertext = squared(s, ciphertext, switch)
            except (ValueError, RuntimeError):
                break  # no level is left
            if s.budget(s.lowest(ciphertext)) == 0:
                break
            depth += 1
        best = max(best, (depth, switch))
    return best


def squared(s: Seal, ciphertext: Any, switch: bool) -> Any:
    """One level of the circuit."""
    result = s.evaluator.relinearize(s.evaluator.square(ciphertext), s.relin)
    return s.evaluator.mod_switch_to_next(result) if switch else result


def deep(s: Seal, ciphertext: Any, depth: int, switch: bool) -> Any:
    """The circuit of :func:`deepest_circuit`, lowered to the last level, and doubled until one bit of noise budget is left."""
    for _ in range(depth):
        ciphertext = squared(s, ciphertext, switch)
    ciphertext = s.lowest(ciphertext)
    for _ in range(s.budget(ciphertext) - 1):
        ciphertext = s.evaluator.add(ciphertext, ciphertext)
    return ciphertext


@pytest.mark.parametrize(
    ("name", "circuit"), some([("bfv-8192", "fresh"), ("bgv-8192", "deepest"), ("bfv-8192", "deepest"), ("bgv-8192", "fresh")], 1)
)
def test_many_coefficients_are_those_of_seal(name: str, circuit: str) -> None:
    """Fresh, and after the deepest circuit of products that leaves a noise budget, doubled until one bit of it is left:
    250,000 coefficients each (10^6 with KEYQUORUM_LONG=1), 0 mismatches, in one call."""
    material, secret = key(name)
    s = Seal(material[0], secret)
    count = -(-COEFFICIENTS // s.parameters.ring_degree)
    if circuit == "fresh":
        ciphertexts = [s.lowest(c) for c in encryptions(s, count)]
    else:
        depth, switch = deepest_circuit(s)
        assert depth >= {"bfv-8192": 5, "bgv-8192": 3}[name]
        ciphertexts = [deep(s, c, depth, switch) for c in encryptions(s, count)]
        assert {s.budget(c) for c in ciphertexts} == {1}
    data = [c.to_string() for c in ciphertexts]
    opened = decrypt_fixed(MEMBERS, material, data, b"million", receiver=2)
    mismatches = 0
    for ciphertext, result in zip(ciphertexts, opened, strict=True):
        assert result.coefficients is not None
        mismatches += int((result.coefficients != s.coefficients(ciphertext)).sum())
    assert mismatches == 0
    assert count * s.parameters.ring_degree >= COEFFICIENTS


@pytest.mark.parametrize(("backend", "name"), [("shamir-3", "bfv-4096"), ("shamir-5", "bgv-4096")])
def test_shamir_shares_are_rounded_by_some_of_the_parties(backend: str, name: str) -> None:
    """t + 1 parties, the receiver among them, go on with additive shares; every receiver in turn."""
    members = committee(backend)
    material = make_key(members, SealRequest(api.load_parameters(name), relin=False), f"exact {backend}".encode())
    s = Seal(material[0], secret_of(members, material))
    ciphertexts = [s.lowest(c) for c in encryptions(s, members.size)]
    for receiver, ciphertext in enumerate(ciphertexts):
        (result,) = decrypt_fixed(members, material, [ciphertext.to_string()], b"subset", receiver)
        assert result.coefficients is not None
        assert np.array_equal(result.coefficients, s.coefficients(ciphertext))


def test_correction_factors_of_bgv() -> None:
    """Primes that are not 1 mod t leave a correction factor, which is undone."""
    material, secret = key("mixed-bgv")
    s = Seal(material[0], secret)
    ciphertexts = [deep(s, c, 1, False) for c in encryptions(s, 3)]
    data = [c.to_string() for c in ciphertexts]
    assert all(read_ciphertext(s.parameters, d).correction_factor != 1 for d in data)
    for ciphertext, result in zip(ciphertexts, decrypt_fixed(MEMBERS, material, data, b"factor"), strict=True):
        assert result.coefficients is not None
        assert np.array_equal(result.coefficients, s.coefficients(ciphertext))


def with_phase(parameters: ParameterSet, secret: SecretKey, phases: Ints, correction_factor: int = 1) -> list[bytes]:
    """Ciphertexts at the last level with these phases (in [0, q)) as coefficients, c1 random; the end is padded with 0."""
    q, n = parameters.coeff_modulus[0], parameters.ring_degree
    rng, moduli = np.random.default_rng(2), (q,)
    padded = np.zeros(-(-phases.size // n) * n, dtype=np.uint64)
    padded[: phases.size] = phases.astype(np.uint64)
    files = []
    for w in padded.reshape(-1, 1, n):
        c1 = rng.integers(0, q, (1, n), dtype=np.uint64)
        c0 = _arith.sub(_arith.ntt(w, moduli), _arith.mul(c1, secret.ntt[:1], moduli), moduli)
        data = np.stack([c0, c1])
        is_ntt = parameters.scheme == "bgv"
        data = data if is_ntt else _arith.intt(data, moduli)
        files.append(write_ciphertext(parameters, Ciphertext(1, data, is_ntt, 1.0, correction_factor)))
    return files


def opened_coefficients(name: str, phases: Ints, rounding: str = "round_ltz_circuit", correction_factor: int = 1, seed: bytes = b"border") -> Words:
    """What the quorum decrypts these phases to."""
    material, secret = key(name, relin=False)
    data = with_phase(material[0].info.parameters, secret, phases, correction_factor)
    opened = decrypt_fixed(MEMBERS, material, data, seed, receiver=1, rounding=rounding)
    parts = [o.coefficients for o in opened if o.coefficients is not None]
    return np.concatenate(parts)[: phases.size]


@pytest.mark.parametrize(("name", "near"), [("bfv-4096", 3), *((name, 3 if LONG else 1) for name in ("bfv-8192", "bfv-16384"))])
def test_bfv_at_every_rounding_border(name: str, near: int) -> None:
    """All 65537 borders between two messages, the nearest phases on each side: 0 mismatches with exact fractions.

    The nearest of them is 1/(2t) from its border, in units of the phase: the noise is all that it may be.
    """
    q = api.load_parameters(name).coeff_modulus[0]
    borders = np.array([(2 * m + 1) * q // (2 * T) for m in range(T)], dtype=np.int64)
    phases = np.concatenate([(borders + offset) % q for offset in range(1 - near, 1 + near)])
    assert (2 * T * borders.astype(object) % q != 0).all()
    exact = np.array([(2 * T * w + q) // (2 * q) % T for w in phases.tolist()], dtype=np.uint64)
    assert np.array_equal(exact, message_of_phase(api.load_parameters(name), phases.astype(np.uint64)[None]))
    assert (exact[: near * T] != exact[near * T :]).all()
    assert int((opened_coefficients(name, phases) != exact).sum()) == 0


@pytest.mark.parametrize(
    ("name", "correction_factor"),
    some([(f"bgv-{n}", factor) for factors in ((1, 17289, 1), (17289, 1, 17289)) for n, factor in zip((4096, 8192, 16384), factors, strict=True)], 3),
)
def test_bgv_at_both_ends_of_the_modulus(name: str, correction_factor: int) -> None:
    """The 65537 largest and the 65537 smallest centred phases, every message at both borders: 0 mismatches."""
    q = api.load_parameters(name).coeff_modulus[0]
    ends = (q - 1) // 2 - np.arange(T, dtype=np.int64)
    centred = np.concatenate([ends, -ends])
    exact = np.array([w * pow(correction_factor, -1, T) % T for w in centred.tolist()], dtype=np.uint64)
    assert set(exact[:T].tolist()) == set(exact[T:].tolist()) == set(range(T))
    assert int((opened_coefficients(name, centred % q, correction_factor=correction_factor) != exact).sum()) == 0


def test_masked_opening_fails_as_often_as_it_says() -> None:
    """`round_mask_open` is wrong with probability |e|/Delta exactly, by one towards the noise: phases uniform modulo q, in ten
    classes of |e|/Delta from 0 to 1/2, each within its 99 % interval; `round_ltz_circuit` is never wrong, of which 2^16 are tried."""
    name = "bfv-4096"
    q = api.load_parameters(name).coeff_modulus[0]
    phases = np.random.default_rng(3).integers(0, q, 1 << 18)
    message = np.array([(2 * T * w + q) // (2 * q) for w in phases.tolist()], dtype=np.int64)
    noise = np.array([T * w - q * m for w, m in zip(phases.tolist(), message.tolist(), strict=True)], dtype=float) / q
    assert np.array_equal(opened_coefficients(name, phases[: 1 << 16]), message[: 1 << 16] % T)
    got = opened_coefficients(name, phases, "round_mask_open", seed=b"masked").astype(np.int64)
    wrong = got != message % T
    assert np.array_equal(got[wrong], (message + np.sign(noise).astype(np.int64))[wrong] % T)
    rate = np.abs(noise)
    for low in np.arange(10) / 20:
        chosen = (rate >= low) & (rate < low + 0.05)
        deviation = np.sqrt((rate * (1 - rate))[chosen].sum())
        assert abs(wrong[chosen].sum() - rate[chosen].sum()) < Z99 * deviation


def test_masked_opening_on_real_ciphertexts() -> None:
    """250,000 coefficients of BFV ciphertexts of the smallest set, at the last level and doubled six times: as many wrong as the
    sum of |e|/Delta says, within 5 deviations of a Poisson variable (SEAL's noise is not seeded: a false alarm in 10^6 runs)."""
    material, secret = key("bfv-4096", relin=False)
    s = Seal(material[0], secret)
    ciphertexts = []
    for fresh in encryptions(s, -(-250_000 // s.parameters.ring_degree)):
        ciphertext = s.lowest(fresh)
        for _ in range(6):
            ciphertext = s.evaluator.add(ciphertext, ciphertext)
        ciphertexts.append(ciphertext)
    data = [c.to_string() for c in ciphertexts]
    opened = decrypt_fixed(MEMBERS, material, data, b"masked", rounding="round_mask_open")
    wrong, expected = 0, 0.0
    q = s.parameters.coeff_modulus[0]
    for ciphertext, file, result in zip(ciphertexts, data, opened, strict=True):
        noise = ciphertext_noise(s.parameters, secret, read_ciphertext(s.parameters, file))
        assert result.coefficients is not None
        wrong += int((result.coefficients != s.coefficients(ciphertext)).sum())
        expected += float(np.abs(noise).sum()) / q
    assert expected > 50
    assert abs(wrong - expected) < 5 * np.sqrt(expected)


def test_length_of_the_rounding() -> None:
    """2^l exceeds 4 q where that fits; else l fills the words; a set that leaves nothing is refused."""
    for name in ("bfv-4096", "bfv-8192", "bfv-16384", "bgv-4096", "bgv-8192", "bgv-16384"):
        q = api.load_parameters(name).coeff_modulus[0]
        assert 1 << rounding_length(q, T) > 4 * q - 1
    assert rounding_length((1 << 60) - 1, T) == 50
    assert [rounding_length((1 << 57) - 13, 257, n) for n in (3, 8, 9, 16)] == [59, 60, 60, 60]
    with pytest.raises(ParameterError, match="too wide for exact decryption"):
        rounding_length((1 << 60) - 1, (1 << 60) - 3)


def test_refusals() -> None:
    """Typed and one line: level, rounding, receiver, protocol."""
    material, _ = key("bfv-4096", relin=False)
    s = Seal(material[0])
    fresh = encryptions(s, 1)[0]
    high = [fresh.to_string()]
    low = [s.lowest(fresh).to_string()]
    with pytest.raises(CiphertextError, match="level of 2 primes: switch it to the last level first"):
        api.decrypt_in_process(MEMBERS, material, high)
    with pytest.raises(ParameterError, match="unknown rounding 'round': choose one of round_ltz_circuit, round_mask_open"):
        api.decrypt_in_process(MEMBERS, material, low, rounding="round")
    with pytest.raises(ParameterError, match="there is no party 3: choose a receiver from 0 to 2"):
        api.decrypt_in_process(MEMBERS, material, low, receiver=3)
    assert api.decrypt_in_process(MEMBERS, material, []) == []
