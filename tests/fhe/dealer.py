"""A trusted dealer that stands in for the quorum: it knows the secret, and its randomness is fixed. Tests only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np
from keyquorum.fhe import _arith
from keyquorum.fhe._arith import Ints, Words
from keyquorum.fhe.keys import assemble_galois_keys, assemble_public_key, assemble_relin_keys, expand_a
from keyquorum.fhe.parameters import ParameterSet, Scheme, load
from keyquorum.fhe.seal_format import SecretKey

T = 65537


class Dealer:
    """Keys of one secret, by the conventions in docs/pages/formats.md, SEAL's bytes."""

    def __init__(self, parameters: ParameterSet, seed: int = 1) -> None:
        self.parameters = parameters
        self.moduli = parameters.coeff_modulus
        self._random = np.random.default_rng(seed)
        self._count = 0
        coefficients = self._random.integers(-1, 2, parameters.ring_degree)
        self.secret = SecretKey(_arith.ntt(_arith.small(coefficients, self.moduli), self.moduli), coefficients)
        self.errors: list[Ints] = []

    def _error(self) -> Ints:
        """Centred binomial of 21 + 21 bits."""
        n = self.parameters.ring_degree
        e = self._random.binomial(21, 0.5, n) - self._random.binomial(21, 0.5, n)
        self.errors.append(e)
        return e

    def zero(self) -> tuple[bytes, Words]:
        """Seed and c0 = -(a s + f e)."""
        self._count += 1
        seed = hashlib.sha512(f"{self.parameters.name} {self._count}".encode()).digest()
        a = expand_a(seed, self.parameters.ring_degree, self.moduli)
        e = _arith.small(self._error(), self.moduli)
        noise = _arith.scale(_arith.ntt(e, self.moduli), self.parameters.noise_factor, self.moduli)
        total = _arith.add(_arith.mul(a, self.secret.ntt, self.moduli), noise, self.moduli)
        return seed, _arith.sub(np.zeros_like(total), total, self.moduli)

    def switch_key(self, target: Words) -> list[tuple[bytes, Words]]:
        """The L digits for a target in NTT form."""
        digits = []
        for i in range(self.parameters.levels):
            seed, c0 = self.zero()
            one = self.moduli[i : i + 1]
            gadget = _arith.scale(target[i : i + 1], self.parameters.special_prime, one)
            c0[i : i + 1] = _arith.add(c0[i : i + 1], gadget, one)
            digits.append((seed, c0))
        return digits

    def public_key(self) -> bytes:
        return assemble_public_key(self.parameters, *self.zero())

    def relin_digits(self) -> list[tuple[bytes, Words]]:
        return self.switch_key(_arith.mul(self.secret.ntt, self.secret.ntt, self.moduli))

    def relin_keys(self) -> bytes:
        return assemble_relin_keys(self.parameters, self.relin_digits())

    def galois_keys(self, elements: Iterable[int]) -> bytes:
        s = _arith.small(self.secret.coefficients, self.moduli)
        return assemble_galois_keys(
            self.parameters,
            {g: self.switch_key(_arith.ntt(_arith.automorphism(s, g, self.moduli), self.moduli)) for g in elements},
        )


def find_primes(ring_degree: int, bits: int, count: int) -> list[int]:
    """The largest primes of ``bits`` bits that are 1 mod 2N, ascending."""
    step = 2 * ring_degree
    found: list[int] = []
    candidate = ((1 << bits) - 2) // step * step + 1
    while len(found) < count:
        if _arith.is_prime(candidate):
            found.append(candidate)
        candidate -= step
    return found[::-1]


def tiny(scheme: Scheme, primes: int = 3, ring_degree: int = 256) -> ParameterSet:
    """A small insecure set: a 50-bit prime, 40-bit ones up to ``primes``, and a 51-bit special prime."""
    below, above = find_primes(ring_degree, 40, primes - 1), find_primes(ring_degree, 51, 1)
    moduli = (*find_primes(ring_degree, 50, 1), *below, *above)
    t, scale = (0, 40) if scheme == "ckks" else (T, 0)
    return ParameterSet(f"tiny-{scheme}", scheme, ring_degree, moduli, t, scale, "none", "tests")


def narrow(name: str) -> ParameterSet:
    """A shipped set of N = 4096 at scale 2^30: one multiplication, and a modulus that is too small for flooding. For tests only."""
    return replace(load(name), name=f"{name}-narrow", scale_bits=30)


@cache
def dealer(name: str) -> Dealer:
    """A dealer of a shipped set, or of ``tiny-ckks``, ``tiny-bfv``, ``tiny-bgv``; made once."""
    kind, _, rest = name.partition("-")
    if kind == "tiny":
        assert rest in ("ckks", "bfv", "bgv")
        return Dealer(tiny(rest, ring_degree=1024))  # type: ignore[arg-type]
    if name.endswith("-narrow"):
        return Dealer(narrow(name.removesuffix("-narrow")))
    return Dealer(load(name))


@cache
def keys(name: str, steps: tuple[int, ...] = (1, -3, 0)) -> tuple[bytes, bytes, bytes]:
    """Public key, relinearisation keys and Galois keys of :func:`dealer`, made once."""
    from keyquorum.fhe.keys import galois_elements

    d = dealer(name)
    elements = galois_elements(steps, d.parameters.ring_degree)
    return d.public_key(), d.relin_keys(), d.galois_keys(elements)


def as_written(data: bytes) -> bytes:
    """The bytes with every header's version 4.4 set to 4.1, the version that KeyQuorum writes."""
    return data.replace(bytes.fromhex("5ea1100404000000"), bytes.fromhex("5ea1100401000000"))
