"""The bound on BGV's noise, beside the noise that a dealer's secret key measures after SEAL's operations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import seal as stock
from keyquorum.fhe import noise_bgv, noise_bound, seal
from keyquorum.fhe.errors import SealOperationError
from keyquorum.fhe.keys import galois_element
from keyquorum.fhe.noise import ciphertext_noise
from keyquorum.fhe.noise_bgv import BgvNoise
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import read_ciphertext, write_secret_key

from .dealer import Dealer, dealer, find_primes, tiny

OPERATIONS = ["add", "subtract", "multiply", "square", "negate", "rotate", "swap", "next-level"]
WEIGHTS = [0.15, 0.15, 0.2, 0.15, 0.03, 0.1, 0.07, 0.15]


@dataclass
class Made:
    """A ciphertext, its bound, and the most products behind one of its values since its last modulus switch."""

    data: bytes
    noise: BgvNoise
    products: int


class Circuits:
    """Random circuits of SEAL under a new secret."""

    def __init__(self, parameters: ParameterSet, seed: int) -> None:
        self.parameters, self.dealer, self.random = parameters, Dealer(parameters, seed), np.random.default_rng(seed)
        self.public, self.relin = self.dealer.public_key(), self.dealer.relin_keys()
        self.galois = self.dealer.galois_keys([galois_element(step, parameters.ring_degree) for step in (1, 0)])

    def fresh(self) -> Made:
        """Constant messages of one size and random ones, alike often."""
        t, slots = self.parameters.plain_modulus, self.parameters.slots
        values = np.full(slots, t // 2) if self.random.random() < 0.25 else self.random.integers(-(t // 2), t // 2, slots)
        noise = noise_bound.fresh(self.parameters)
        assert isinstance(noise, BgvNoise)
        return Made(seal.encrypt(self.parameters, self.public, values), noise, 0)

    def apply(self, operation: str, x: Made, y: Made) -> Made:
        two = operation in ("add", "subtract", "multiply")
        inputs = [x, y] if two else [x]
        data = seal.evaluate(self.parameters, operation, [i.data for i in inputs], self.relin, self.galois, 1)
        primes = read_ciphertext(self.parameters, data).level_primes
        noise = noise_bound.after(self.parameters, operation, [i.noise for i in inputs], primes)
        assert isinstance(noise, BgvNoise)
        products = max(0 if i.noise.primes > primes else i.products for i in inputs)
        return Made(data, noise, products + (operation in ("multiply", "square")))

    def measured(self, made: Made) -> float:
        """log2 of the largest coefficient of the phase."""
        found = ciphertext_noise(self.parameters, self.dealer.secret, read_ciphertext(self.parameters, made.data))
        return math.log2(max(abs(int(v)) for v in found))

    def run(self, length: int) -> list[tuple[str, Made]]:
        """What a random circuit makes, without what exceeds the modulus by its bound."""
        kept, steps = [self.fresh(), self.fresh()], []
        for _ in range(length):
            operation = str(self.random.choice(OPERATIONS, p=WEIGHTS))
            x, y = (kept[int(i)] for i in self.random.integers(0, len(kept), 2))
            try:
                made = self.apply(operation, x, y)
            except SealOperationError as error:  # x - x, and the last level
                assert "transparent" in str(error) or "last level already" in str(error)
                continue
            if noise_bound.final_budget(self.parameters, made.noise) > 0:
                kept.append(made)
                steps.append((operation, made))
        return steps
