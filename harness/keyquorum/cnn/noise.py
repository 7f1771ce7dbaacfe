"""The noise of the logits' ciphertexts, estimated for images and a model in clear: what the bound of the key's flooding is chosen by.

The network's weights are independent encryptions, or plaintexts. A bound of :mod:`keyquorum.schemes.seal.noise`, which holds for any encryptions and for the
largest value of every message, is far too large for sums of 64 products. So this estimate follows the *variance* of the noise e(z) in every slot z
(canonical embedding: the mean of |e(z)|^2 over slots is N times the mean square over coefficients) and takes as independent: different encryptions,
key switches and roundings; and one noise at different slots, which is what rotations add up. tests/cnn/test_cnn.py compares it with measured noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.schemes.seal.noise import fresh_rms, key_switch, rounding

from . import network, packing
from .model import Model
from .weights import operands

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimated:
    """A ciphertext or weight: its message and the variance of its noise in each slot [packing.SLOTS], its scale, and its primes."""

    slots: Floats
    variance: Floats
    scale: float
    primes: int

    def rms(self, ring_degree: int) -> float:
        """Root mean square of the noise over coefficients."""
        return math.sqrt(float(self.variance.mean()) / ring_degree)


class NoiseArithmetic:
    """The operations on messages and variances. ``encrypted``: whether the weights are, so that sums of products are relinearised."""

    def __init__(self, parameters: ParameterSet, encrypted: bool) -> None:
        self._parameters, self._encrypted, self._degree = parameters, encrypted, parameters.ring_degree

    def source(self, values: Floats, scale: float, primes: int, encrypted: bool = True) -> Estimated:
        """A fresh encryption, or a plaintext with the rounding of its encoder."""
        rms = fresh_rms(self._parameters) if encrypted else math.sqrt(1 / 12)
        return Estimated(values, np.full(len(values), self._degree * rms**2), scale, primes)

    def product(self, x: Estimated, y: Estimated) -> Estimated:
        """m e' + m' e + e e'."""
        variance = (x.scale * x.slots) ** 2 * y.variance + (y.scale * y.slots) ** 2 * x.variance + x.variance * y.variance
        return Estimated(x.slots * y.slots, variance, x.scale * y.scale, x.primes)

    def products(self, inputs: Sequence[Estimated], weights: Sequence[Estimated]) -> Estimated:
        """The sum of inputs times weights."""
        terms = [self.product(x, w) for x, w in zip(inputs, weights, strict=True)]
        total = terms[0]
        for term in terms[1:]:
            total = self.add(total, term)
        return self._switched(total) if self._encrypted else total

    def biased(self, ciphertext: Estimated, bias: Estimated) -> Estimated:
        """The sum of a ciphertext and a bias."""
        return self.add(ciphertext, bias)

    def add(self, a: Estimated, b: Estimated) -> Estimated:
        """The sum."""
        return Estimated(a.slots + b.slots, a.variance + b.variance, a.scale, a.primes)

    def square(self, ciphertext: Estimated) -> Estimated:
        """2 m e + e^2, and a relinearisation."""
        variance = 4 * (ciphertext.scale * ciphertext.slots) ** 2 * ciphertext.variance + 2 * ciphertext.variance**2
        return self._switched(Estimated(ciphertext.slots**2, variance, ciphertext.scale**2, ciphertext.primes))

    def rescaled(self, ciphertext: Estimated) -> Estimated:
        """Everything over the last prime, and a rounding."""
        q = self._parameters.coeff_modulus[ciphertext.primes - 1]
        variance = ciphertext.variance / float(q) ** 2 + self._degree * rounding(self._degree) ** 2
        return Estimated(ciphertext.slots, variance, ciphertext.scale / q, ciphertext.primes - 1)

    def rotated(self, ciphertext: Estimated, step: int) -> Estimated:
        """The slots, moved to the left, and a key switch."""
        return self._switched(replace(ciphertext, slots=np.roll(ciphertext.slots, -step), variance=np.roll(ciphertext.variance, -step)))

    def _switched(self, ciphertext: Estimated) -> Estimated:
        added = self._degree * key_switch(self._parameters, ciphertext.primes) ** 2
        return replace(ciphertext, variance=ciphertext.variance + added)


def estimated(parameters: ParameterSet, model: Model, images: Floats, encrypted_model: bool) -> Estimated:
    """The logits' ciphertext of at most packing.IMAGES images [image, 28, 28], with the estimate of its noise."""
    arithmetic = NoiseArithmetic(parameters, encrypted_model)
    layers = operands(parameters, model).mapped(lambda w: arithmetic.source(w.values, w.scale, parameters.levels - w.depth, encrypted_model))
    inputs = [arithmetic.source(values, parameters.scale, parameters.levels) for values in packing.pack_images(images)]
    return network.logits(arithmetic, layers, inputs)
