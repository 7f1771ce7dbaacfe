"""The network's weights as SEAL multiplies by them: in clear, as plaintexts, or encrypted by the owner of the model (GMPFHE, paper 004, section 6.2.1:
the works that it compares with have both the images and the model encrypted). This module uses no secret key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.errors import ParameterError

from . import packing
from .model import Model

Floats = NDArray[np.float64]
LEVELS = 5
OUTPUT_SCALE = 2.0**50
"""Scale of the logits: values up to 2^8 fit the last prime of 60 bits."""
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Operand:
    """Slots [packing.SLOTS] that a ciphertext at ``depth`` rescalings is multiplied by, or that are added to it, and their scale."""

    values: Floats
    depth: int
    scale: float


@dataclass(frozen=True)
class Layers(Generic[T]):
    """The 108 operands of the network: ``conv``: 25, one for each index in the kernel; ``hidden``: 64 diagonals [16][4], ``output``: 16 diagonals
    [4][4], of :func:`packing.diagonals`; and a bias for each layer."""

    conv: list[T]
    conv_bias: T
    hidden: list[list[T]]
    hidden_bias: T
    output: list[list[T]]
    output_bias: T

    def mapped(self, change: Callable[[T], U]) -> Layers[U]:
        """The same layers of other objects."""
        return Layers(
            [change(w) for w in self.conv],
            change(self.conv_bias),
            [[change(w) for w in row] for row in self.hidden],
            change(self.hidden_bias),
            [[change(w) for w in row] for row in self.output],
            change(self.output_bias),
        )

    def __iter__(self) -> Iterator[T]:
        yield from self.conv
        yield self.conv_bias
        for row in self.hidden:
            yield from row
        yield self.hidden_bias
        for row in self.output:
            yield from row
        yield self.output_bias


EncryptedWeights = Layers[bytes]
"""SEAL's bytes of the encrypted operands, each at the level where it is used."""


def check_set(parameters: ParameterSet) -> None:
    """Raises ParameterError for a set that the network does not fit."""
    if parameters.scheme != "ckks" or parameters.ring_degree != 2 * packing.SLOTS or len(parameters.coeff_modulus) < LEVELS + 2:
        raise ParameterError(f"{parameters.name}: the network needs CKKS at N = {2 * packing.SLOTS} with {LEVELS} levels")


def operands(parameters: ParameterSet, model: Model) -> Layers[Operand]:
    """The operands, of images encrypted at the scale of the set. Raises ParameterError.

    The scale of a weight is the prime that the next rescaling drops, so that products keep the scale of the ciphertext; only squares change it. The
    weights of the last layer bring the logits to OUTPUT_SCALE. Scales are computed by the divisions of doubles that SEAL makes, since SEAL adds only at
    equal scales.
    """
    check_set(parameters)
    primes = [float(q) for q in parameters.coeff_modulus[-2 : -2 - LEVELS : -1]]
    maps = parameters.scale * primes[0] / primes[0]
    wide = maps * maps / primes[1] * primes[2] / primes[2]
    hidden = wide * wide / primes[3]
    last = OUTPUT_SCALE * primes[4] / hidden
    weights, bias = packing.convolution(model)
    inner = packing.diagonals(model.hidden, packing.HIDDEN_ROWS, packing.FEATURES_AT)
    outer = packing.diagonals(model.output, packing.OUTPUT_ROWS, packing.HIDDEN_AT)
    return Layers(
        conv=[Operand(w, 0, primes[0]) for w in weights],
        conv_bias=Operand(bias, 1, maps),
        hidden=[[Operand(w, 2, primes[2]) for w in row] for row in inner],
        hidden_bias=Operand(packing.bias(model.hidden_bias, packing.HIDDEN_AT), 3, wide),
        output=[[Operand(w, 4, last) for w in row] for row in outer],
        output_bias=Operand(packing.bias(model.output_bias, packing.OUTPUT_AT), 5, hidden * last / primes[4]),
    )


def encrypt_weights(parameters: ParameterSet, public_key: bytes, model: Model) -> EncryptedWeights:
    """The owner of the model encrypts its 108 operands under the joint public key, each at the level where it is used: 146 MB in place of 198 MB at seven
    data primes. Raises ParameterError, SealOperationError."""

    def encrypted(operand: Operand) -> bytes:
        return seal.encrypt(parameters, public_key, operand.values, operand.scale, parameters.levels - operand.depth)

    return operands(parameters, model).mapped(encrypted)
