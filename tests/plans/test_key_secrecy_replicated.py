"""Secrecy of bootstrapping keys with replicated sharing, exhaustively: what a party sees fits every short secret of 8 bits, by exactly one tape.

As tests/plans/test_key_secrecy.py does for Shamir's sharing, by a model of the messages in this process: the engine draws its randomness by itself. Over the
integers modulo 2^16 this is `glwe_bootstrap_key` of TFHE with the products of protocol ring (Araki and others, CCS 2016), over a prime field `rgsw_bodies`
with rep-field. A secret is the sum of three summands, of which party i knows those of numbers i and i + 1. (The program for TFHE reduces the factors of its
products to fewer bits first, which is local.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from .test_key_secrecy import BITS, DEGREE, all_secrets, same

Ints = Any
"""Arrays of Python integers modulo M."""
RING, FIELD = 1 << 16, 97
WEIGHT = 4


@dataclass
class Tape:
    """What is random: summands of s, z and e, [3] arrays each, and the masks of the products from the three keys that two parties share each."""

    s: list[Ints]
    z: list[Ints]
    e: list[Ints]
    masks: list[Ints]


class Model:
    """All messages modulo ``modulus``. ``masked``: whether products are masked with a fresh sharing of zero."""

    def __init__(self, modulus: int, a: Ints, masked: bool = True) -> None:
        self.modulus, self.a, self.masked = modulus, a, masked

    def split(self, value: Ints, known: list[Ints]) -> list[Ints]:
        """The three summands of a value whose summands 0 and 1 are known."""
        return [known[0], known[1], (value - known[0] - known[1]) % self.modulus]

    def linear(self, z: Ints) -> Ints:
        """a z of all rows, [BITS, 2, DEGREE]: at NTT places over the field, negacyclic over the ring."""
        if self.modulus == FIELD:
            return self.a * z % self.modulus
        product = sum(np.roll(np.concatenate([self.a, -self.a], axis=-1), k, axis=-1)[..., :DEGREE] * z[k] for k in range(DEGREE))
        return product % self.modulus

    def constant(self, s: Ints) -> Ints:
        """s_i as a polynomial: everywhere at NTT places, at X^0 among coefficients. [BITS, DEGREE]."""
        made = np.repeat(s[:, None], DEGREE, 1)
        if self.modulus != FIELD:
            made[:, 1:] = 0
        return made

    def bodies(self, z: Ints, e: Ints, s: Ints, products: Ints) -> Ints:
        """Rows 0 and 1 of every bit. Of values, and of summands."""
        plain = np.stack([-WEIGHT * products, WEIGHT * self.constant(s)], axis=1)
        return (self.linear(z) + e + plain) % self.modulus

    def product_summand(self, i: int, tape: Tape) -> Ints:
        """Summand i of s_i z_k, by party i, from what it knows."""
        following = (i + 1) % 3
        s, z = (tape.s[i], tape.s[following]), (tape.z[i], tape.z[following])
        made = np.multiply.outer(s[0], z[0]) + np.multiply.outer(s[0], z[1]) + np.multiply.outer(s[1], z[0])
        return (made + (tape.masks[i] - tape.masks[following] if self.masked else 0)) % self.modulus

    def seen(self, tape: Tape) -> list[Ints]:
        """What party 0 sees: summands 0 and 1 of all inputs, its two masks, summand 1 of the products, and summand 2 of the opened bodies."""
        products = [self.product_summand(i, tape) for i in range(3)]
        opened = [self.bodies(tape.z[i], tape.e[i], tape.s[i], products[i]) for i in range(3)]
        return [*tape.s[:2], *tape.z[:2], *tape.e[:2], *tape.masks[:2], products[1], *opened]

    def tape_for(self, tape: Tape, s: Ints, z: Ints, e: Ints) -> Tape:
        """The only tape under these secrets with the same summands 0 and 1 and the same message with summand 1 of the products."""
        parts = [self.split(value, known) for value, known in ((s, tape.s), (z, tape.z), (e, tape.e))]
        message = self.product_summand(1, tape)
        other = Tape(*parts, [*tape.masks[:2], 0 * tape.masks[2]])
        other.masks[2] = (self.product_summand(1, other) - message) % self.modulus
        return other


def drawn(rng: np.random.Generator, modulus: int) -> tuple[Model, Ints, Ints, Ints, Tape]:
    """A model, secrets and a uniform tape."""

    def uniform(*shape: int, high: int = modulus) -> Ints:
        return rng.integers(0, high, shape).astype(object)

    model = Model(modulus, uniform(BITS, 2, DEGREE))
    s, z, e = uniform(BITS, high=2), uniform(DEGREE), uniform(BITS, 2, DEGREE, high=5)
    parts = [model.split(value, [uniform(*value.shape), uniform(*value.shape)]) for value in (s, z, e)]
    return model, s, z, e, Tape(*parts, [uniform(BITS, DEGREE) for _ in range(3)])


@pytest.mark.parametrize("modulus", [FIELD, RING])
def test_every_secret_is_equally_likely(modulus: int) -> None:
    """All 256 short secrets, each with another ring secret, and all messages. The parties are alike."""
    rng = np.random.default_rng(modulus)
    model, s, z, e, tape = drawn(rng, modulus)
    public, view = model.bodies(z, e, s, np.multiply.outer(s, z)), model.seen(tape)
    assert np.array_equal(sum(view[-3:]) % modulus, public)
    for other in all_secrets():
        ring = rng.integers(0, modulus, DEGREE).astype(object)
        noise = (public - model.bodies(ring, 0 * e, other, np.multiply.outer(other, ring))) % modulus
        assert same(model.seen(model.tape_for(tape, other, ring, noise)), view)


@pytest.mark.parametrize("modulus", [FIELD, RING])
def test_products_without_masks_show_the_secret(modulus: int) -> None:
    """The same search: with its own ring secret no other short secret gives the messages."""
    model, s, z, e, tape = drawn(np.random.default_rng(modulus + 1), modulus)
    model.masked = False
    public, view = model.bodies(z, e, s, np.multiply.outer(s, z)), model.seen(tape)
    fitting = []
    for other in all_secrets():
        noise = (public - model.bodies(z, 0 * e, other, np.multiply.outer(other, z))) % modulus
        if same(model.seen(model.tape_for(tape, other, z, noise)), view):
            fitting.append(other.tolist())
    assert fitting == [s.tolist()]
