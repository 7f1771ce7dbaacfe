"""The network as a circuit on packed ciphertexts, over any arithmetic: SEAL's (``encrypted``), or one that counts operations (``counts``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from .weights import Layers

C = TypeVar("C")
W = TypeVar("W")
W_contra = TypeVar("W_contra", contravariant=True)


class Arithmetic(Protocol[C, W_contra]):
    """Operations on ciphertexts C of two parts, and weights W in clear or encrypted."""

    def products(self, inputs: Sequence[C], weights: Sequence[W_contra]) -> C:
        """The sum of inputs times weights, not rescaled."""

    def biased(self, ciphertext: C, bias: W_contra) -> C:
        """The sum of a ciphertext and a bias."""

    def add(self, a: C, b: C) -> C:
        """The sum."""

    def square(self, ciphertext: C) -> C:
        """The square, relinearised, not rescaled."""

    def rescaled(self, ciphertext: C) -> C:
        """The ciphertext divided by the last prime of its level."""

    def rotated(self, ciphertext: C, step: int) -> C:
        """The slots, moved to the left."""


def logits(arithmetic: Arithmetic[C, W], layers: Layers[W], inputs: Sequence[C]) -> C:
    """The logits of the 25 ciphertexts of :func:`packing.pack_images`, at the fifth level below theirs; slots as of
    :func:`packing.unpack_logits`."""
    maps = arithmetic.biased(arithmetic.rescaled(arithmetic.products(inputs, layers.conv)), layers.conv_bias)
    features = arithmetic.rescaled(arithmetic.square(maps))
    wide = arithmetic.rescaled(_layer(arithmetic, features, layers.hidden))
    summed = _sum_of_rotations(arithmetic, _sum_of_rotations(arithmetic, wide, 64, 4), 256, 4)
    hidden = arithmetic.rescaled(arithmetic.square(arithmetic.biased(summed, layers.hidden_bias)))
    wide = arithmetic.rescaled(_layer(arithmetic, hidden, layers.output))
    # Five rows of neurons: four of them by Horner's rule, and the fifth.
    summed = arithmetic.add(_sum_of_rotations(arithmetic, wide, 16, 4), arithmetic.rotated(wide, 64))
    return arithmetic.biased(summed, layers.output_bias)


def _layer(arithmetic: Arithmetic[C, W], ciphertext: C, diagonals: list[list[W]]) -> C:
    """sum_d D_d rot_d(x), not rescaled."""
    turned = [ciphertext]
    for _ in range(3):
        turned.append(arithmetic.rotated(turned[-1], 1))
    result = arithmetic.products(turned, diagonals[-1])
    for row in reversed(diagonals[:-1]):
        result = arithmetic.add(arithmetic.rotated(result, 4), arithmetic.products(turned, row))
    return result


def _sum_of_rotations(arithmetic: Arithmetic[C, W], ciphertext: C, step: int, count: int) -> C:
    """x + rot(x) + ... : ``count`` terms."""
    result = ciphertext
    for _ in range(count - 1):
        result = arithmetic.add(arithmetic.rotated(result, step), ciphertext)
    return result
