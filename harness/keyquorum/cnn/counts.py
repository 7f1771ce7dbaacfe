"""Operations of the network on one set of ciphertexts: what its evaluation under another scheme costs is these numbers times the times of single operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from keyquorum.fhe.parameters import ParameterSet

from . import network
from .model import CLASSES, FEATURES, HIDDEN, KERNEL, MAPS, Model
from .weights import operands


@dataclass(frozen=True)
class Counts:
    """Products of a ciphertext by a plaintext, of two ciphertexts, and squares; relinearisations; rotations (a key switch each); rescalings; sums."""

    plain_products: int = 0
    products: int = 0
    squares: int = 0
    relinearisations: int = 0
    rotations: int = 0
    rescalings: int = 0
    sums: int = 0

    def seconds(self, each: Mapping[str, float]) -> float:
        """The time of all operations; ``each``: seconds of one operation by the name of its count, of all whose count is not 0."""
        return float(sum(count * each[name] for name, count in asdict(self).items() if count))


class CountingArithmetic:
    """Counts operations; ciphertexts and weights are ignored. ``encrypted``: whether the weights are."""

    def __init__(self, encrypted: bool) -> None:
        self._encrypted = encrypted
        self.counts = Counts()

    def _count(self, **more: int) -> None:
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + count for name, count in more.items()})

    def products(self, inputs: Sequence[None], weights: Sequence[object]) -> None:
        """Products, their sum, and one relinearisation if the weights are encrypted."""
        del inputs
        kind = {"products": len(weights), "relinearisations": 1} if self._encrypted else {"plain_products": len(weights)}
        self._count(**kind, sums=len(weights) - 1)

    def biased(self, ciphertext: None, bias: object) -> None:
        """A sum."""
        del ciphertext, bias
        self._count(sums=1)

    def add(self, a: None, b: None) -> None:
        """A sum."""
        del a, b
        self._count(sums=1)

    def square(self, ciphertext: None) -> None:
        """A square and a relinearisation."""
        del ciphertext
        self._count(squares=1, relinearisations=1)

    def rescaled(self, ciphertext: None) -> None:
        """A rescaling."""
        del ciphertext
        self._count(rescalings=1)

    def rotated(self, ciphertext: None, step: int) -> None:
        """A rotation."""
        del ciphertext, step
        self._count(rotations=1)


def counts(parameters: ParameterSet, encrypted_model: bool) -> Counts:
    """The operations of one evaluation."""
    shapes = ((MAPS, KERNEL**2), (MAPS,), (HIDDEN, FEATURES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
    layers = operands(parameters, Model(*(np.zeros(shape) for shape in shapes)))
    arithmetic = CountingArithmetic(encrypted_model)
    network.logits(arithmetic, layers, [None] * len(layers.conv))
    return arithmetic.counts
