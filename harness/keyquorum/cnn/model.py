"""The network in clear: convolution 5 x 5 with stride 2 and 5 maps, square, 64 neurons, square, 10 logits.

GMPFHE (paper 004), section 6.2.1; the layers of Chen et al. (CCS 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.errors import KeyQuorumError

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
SIDE, KERNEL, STRIDE, MAPS = 28, 5, 2, 5
POSITIONS = ((SIDE - KERNEL) // STRIDE + 1) ** 2
"""Positions of the kernel: 12 x 12."""
FEATURES, HIDDEN, CLASSES = MAPS * POSITIONS, 64, 10
TEST_STRIDE = 5
"""Every fifth digit is a test digit."""


class ModelError(KeyQuorumError):
    """A file of weights is missing or damaged."""


def patches(images: Floats) -> Floats:
    """The patches under the kernel, [image, position, index in the kernel], of images [image, 28, 28]."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (KERNEL, KERNEL), axis=(1, 2))[:, ::STRIDE, ::STRIDE]
    return np.ascontiguousarray(windows.reshape(len(images), POSITIONS, KERNEL * KERNEL))


def split(pixels: Floats, labels: Labels) -> tuple[tuple[Floats, Labels], tuple[Floats, Labels]]:
    """Digits for training and for tests; pixels [image, 784] in 0..255 become images in 0..1. The test digits are in a fixed random order."""
    images = pixels.reshape(-1, SIDE, SIDE) / 255
    chosen = np.arange(len(images)) % TEST_STRIDE == 0
    order = np.random.default_rng(0).permutation(int(chosen.sum()))
    return (images[~chosen], labels[~chosen]), (images[chosen][order], labels[chosen][order])


@dataclass
class Model:
    """Weights: ``conv`` [5, 25], ``hidden`` [64, 720] (columns: map by map), ``output`` [10, 64], and biases."""

    conv: Floats
    conv_bias: Floats
    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: Floats

    def logits(self, images: Floats) -> Floats:
        """[image, class]."""
        maps = np.einsum("npk,mk->nmp", patches(images), self.conv) + self.conv_bias[:, None]
        hidden = (maps**2).reshape(len(images), -1) @ self.hidden.T + self.hidden_bias
        result: Floats = hidden**2 @ self.output.T + self.output_bias
        return result

    def accuracy(self, images: Floats, labels: Labels) -> float:
        """Share of the digits that are classified correctly."""
        return float((self.logits(images).argmax(1) == labels).mean())

    def save(self, path: Path) -> None:
        """Writes the weights, rounded to 16 bits."""
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, allow_pickle=False, **{name: values.astype(np.float16) for name, values in vars(self).items()})

    @staticmethod
    def load(path: Path) -> Model:
        """Reads weights. Raises ModelError."""
        shapes = {
            "conv": (MAPS, KERNEL**2), "conv_bias": (MAPS,), "hidden": (HIDDEN, FEATURES), "hidden_bias": (HIDDEN,),
            "output": (CLASSES, HIDDEN), "output_bias": (CLASSES,),
        }  # fmt: skip
        try:
            with np.load(path, allow_pickle=False) as data:
                weights = {name: data[name].astype(np.float64) for name in shapes}
        except Exception as error:  # the parsers of the archive and of headers raise many types
            raise ModelError(f"{path}: no weights ({error}): make them with Scripts/train_cnn.py") from error
        for name, shape in shapes.items():
            if weights[name].shape != shape or not np.isfinite(weights[name]).all():
                raise ModelError(f"{path}: {name} is not of shape {shape}: make the weights with Scripts/train_cnn.py")
        return Model(**weights)
