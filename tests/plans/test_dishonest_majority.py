"""Keys and decryption of every scheme with `semi`, for 2 to 5 parties (with KEYQUORUM_LONG 16) of whom all but one may be corrupt, and with `mascot`;
small insecure sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import _arith
from keyquorum.fhe.parameters import ParameterSet, Scheme
from keyquorum.schemes.seal.keygen import SealRequest

from tests.fhe.dealer import tiny
from tests.long import LONG, some

from .quorum import WEAK as POLICY
from .quorum import Seal, decrypt_fixed, make_key, secret_of
from .test_keygen import flooding_bound

SCHEMES: tuple[Scheme, ...] = ("ckks", "bfv", "bgv")
CASES: list[tuple[int, Scheme, str]] = [
    *((2, scheme, "cbd") for scheme in SCHEMES),
    (2, "ckks", "gaussian"),
    *some([(3, "ckks", "cbd"), (3, "bfv", "cbd"), (5, "bgv", "cbd"), (5, "bfv", "cbd"), (5, "ckks", "cbd"), (3, "bgv", "cbd")], 3),
    *([(16, "ckks", "cbd")] if LONG else []),
]


def small(scheme: Scheme) -> ParameterSet:
    """``tiny``; for BGV with a first prime that is 1 mod t."""
    parameters = tiny(scheme)
    if scheme != "bgv":
        return parameters
    step = 2 * parameters.ring_degree * parameters.plain_modulus
    first = next(q for q in range((1 << 50) // step * step + 1, 0, -step) if _arith.is_prime(q))
    return replace(parameters, coeff_modulus=(first, *parameters.coeff_modulus[1:]))


@pytest.mark.parametrize(("parties", "scheme", "distribution"), CASES)
def test_keys_and_decryption(parties: int, scheme: Scheme, distribution: str) -> None:
    """Product and rotation (16 parties: the product) in stock SEAL."""
    check("semi", parties, scheme, distribution, (3,) if parties < 16 else ())


@pytest.mark.parametrize("scheme", ["ckks", "bfv"])
def test_with_macs(scheme: Scheme) -> None:
    """The product, of two parties."""
    check("mascot", 2, scheme, "cbd", ())


def check(protocol: str, parties: int, scheme: Scheme, distribution: str, elements: tuple[int, ...]) -> None:
    """Product, and rotation if there is a Galois element, opened jointly, to the last party: CKKS within the flooding of all parties, BFV
    and BGV what SEAL's Decryptor gives with the secret, coefficient by coefficient."""
    members, parameters = api.in_process_committee(parties, protocol), small(scheme)
    seed = f"dishonest {parties} {scheme} {distribution}".encode()
    material = make_key(members, SealRequest(parameters, True, elements, distribution, POLICY), seed)
    assert members.threshold == parties - 1 and material[0].info.threshold == parties - 1
    assert all(m.info == material[0].info and m.public == material[0].public for m in material)
    s = Seal(material[0], secret_of(members, material))
    rng, t = np.random.default_rng(parties), parameters.plain_modulus
    if scheme == "ckks":
        x, y = (rng.uniform(-1, 1, parameters.slots) for _ in range(2))
        a, b = (s.encryptor.encrypt(s.encoder.encode(v, parameters.scale)) for v in (x, y))
        product = s.evaluator.rescale_to_next(s.evaluator.relinearize(s.evaluator.multiply(a, b), s.relin))
        results, wanted = [product], [x * y]
        if s.galois is not None:
            results.append(s.evaluator.rotate_vector(product, 1, s.galois))
            wanted.append(np.roll(x * y, -1))
    else:
        x, y = (rng.integers(-(t // 2), t // 2 + 1, parameters.ring_degree) for _ in range(2))
        a, b = (s.encryptor.encrypt(s.encoder.encode(v)) for v in (x, y))
        product = s.evaluator.relinearize(s.evaluator.multiply(a, b), s.relin)
        rows = (x * y % t).reshape(2, -1)
        results, wanted = [s.lowest(product)], [rows.ravel()]
        if s.galois is not None:
            results.append(s.lowest(s.evaluator.rotate_rows(product, 1, s.galois)))
            wanted.append(np.roll(rows, -1, axis=1).ravel())
    opened = decrypt_fixed(members, material, [c.to_string() for c in results], seed, parties - 1)
    for ciphertext, plain, want in zip(results, opened, wanted, strict=True):
        got = np.asarray(s.encoder.decode(s.context.from_plain_str(plain.plaintext)))
        if scheme == "ckks":
            assert np.abs(got - want).max() < flooding_bound(ciphertext.scale(), parameters.ring_degree, parties) < 0.01
        else:
            assert np.array_equal(got % t, want)
            assert np.array_equal(plain.coefficients, s.coefficients(ciphertext))
