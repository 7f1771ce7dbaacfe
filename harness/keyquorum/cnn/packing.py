"""Packing of the network's numbers into ciphertexts of 8192 slots: 8 images, with a block of 1024 slots each.

The convolution has 25 inputs, one for each index k in the kernel. In a block, input k has pixel k of the patch of position p in
slot 128 + 144 m + p for every map m. So the convolution is 25 products with plaintexts, and features need no rearrangement.

A layer of ``rows`` neurons (a power of two) is sum_d D_d * rot_d(x), d < rows, where D_d has the weight of neuron
(s mod rows) for column s + d in slot s; then slots that are ``rows`` apart are added (Halevi and Shoup's diagonals, for wide
matrices). Rotations are by powers of 4 only: d = 4 g + b, with b by single steps and g by Horner's rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .model import CLASSES, FEATURES, HIDDEN, MAPS, Model, patches

Floats = NDArray[np.float64]
SLOTS, BLOCK = 8192, 1024
IMAGES = SLOTS // BLOCK
"""Images in a ciphertext."""
FEATURES_AT, HIDDEN_AT, OUTPUT_AT = 128, 64, 48
"""First slots of features, neurons and logits in a block."""
HIDDEN_ROWS, OUTPUT_ROWS = 64, 16
STEPS = (1, 4, 16, 64, 256, 1024, 4096)
"""Rotation steps with a Galois key: base 4."""


def everywhere(block: Floats) -> Floats:
    """The slots with the same values in every block."""
    return np.tile(block, IMAGES)


def pack_images(images: Floats) -> list[Floats]:
    """The 25 inputs of the convolution, each [SLOTS], of at most IMAGES images [image, 28, 28]."""
    seen = patches(images)
    slots = np.zeros((seen.shape[2], IMAGES, BLOCK))
    for m in range(MAPS):
        start = FEATURES_AT + m * seen.shape[1]
        slots[:, : len(images), start : start + seen.shape[1]] = seen.transpose(2, 0, 1)
    return list(slots.reshape(seen.shape[2], SLOTS))


def unpack_logits(slots: Floats, images: int) -> Floats:
    """[image, class]."""
    return slots.reshape(IMAGES, BLOCK)[:images, OUTPUT_AT : OUTPUT_AT + CLASSES]


def convolution(model: Model) -> tuple[list[Floats], Floats]:
    """The weights for each index in the kernel, and the bias: [SLOTS] each."""

    def spread(values: Floats) -> Floats:
        block = np.zeros(BLOCK)
        block[FEATURES_AT : FEATURES_AT + FEATURES] = np.repeat(values, FEATURES // MAPS)
        return everywhere(block)

    return [spread(model.conv[:, k]) for k in range(model.conv.shape[1])], spread(model.conv_bias)


def diagonals(weights: Floats, rows: int, columns_at: int) -> list[list[Floats]]:
    """The plaintexts [g][b] of a layer whose inputs begin at slot ``columns_at``: D_(4g+b), moved to the right by 4 g."""
    slots, made = np.arange(BLOCK), []
    padded = np.zeros((rows, weights.shape[1]))
    padded[: len(weights)] = weights
    for d in range(rows):
        column = slots + d - columns_at
        there = (column >= 0) & (column < weights.shape[1])
        values = np.where(there, padded[slots % rows, np.clip(column, 0, weights.shape[1] - 1)], 0.0)
        made.append(everywhere(np.roll(values, d // 4 * 4)))
    return [made[at : at + 4] for at in range(0, rows, 4)]


def bias(values: Floats, at: int) -> Floats:
    """Biases of a layer whose results begin at slot ``at``."""
    block = np.zeros(BLOCK)
    block[at : at + len(values)] = values
    return everywhere(block)


__all__ = [
    "CLASSES", "HIDDEN", "HIDDEN_AT", "HIDDEN_ROWS", "IMAGES", "OUTPUT_AT", "OUTPUT_ROWS", "SLOTS", "STEPS",
    "bias", "convolution", "diagonals", "pack_images", "unpack_logits",
]  # fmt: skip
