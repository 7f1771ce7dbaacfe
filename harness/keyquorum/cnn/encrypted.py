"""The network on ciphertexts, by stock SEAL: five multiplicative levels of CKKS at N = 16384. This module uses no secret key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_types import LevelId, SealCiphertext, SealEncoder, SealEvaluator, SealLevel, SealPlaintext
from keyquorum.model.errors import ParameterError

from . import packing
from .model import Model

Floats = NDArray[np.float64]
LEVELS = 5
OUTPUT_SCALE = 2.0**50
"""Scale of the logits: values up to 2^8 fit the last prime of 60 bits."""


class EncryptedModel:
    """The network with encoded weights; :meth:`logits` takes the 25 ciphertexts of :func:`packing.pack_images`."""

    def __init__(self, parameters: ParameterSet, model: Model, relin_keys: bytes, galois_keys: bytes) -> None:
        if parameters.scheme != "ckks" or parameters.ring_degree != 2 * packing.SLOTS or len(parameters.coeff_modulus) < LEVELS + 2:
            raise ParameterError(f"{parameters.name}: the network needs CKKS at N = {2 * packing.SLOTS} with {LEVELS} levels")
        self._parameters = parameters
        library, self._context = seal.require_seal(), seal.context(parameters)
        self._evaluator: SealEvaluator = library.Evaluator(self._context)
        self._encoder: SealEncoder = library.CKKSEncoder(self._context)
        self._relin = self._context.from_relin_str(relin_keys)
        self._galois = self._context.from_galois_str(galois_keys)
        self._ids = self._levels()
        weights, self._conv_bias = packing.convolution(model)
        # The scale of a weight is the prime that the next rescaling drops, so the scale of the ciphertext stays the same.
        self._conv = [self._encoded(w, 0, self._prime(0)) for w in weights]
        hidden = packing.diagonals(model.hidden, packing.HIDDEN_ROWS, packing.FEATURES_AT)
        self._hidden = [[self._encoded(w, 2, self._prime(2)) for w in row] for row in hidden]
        self._hidden_bias = packing.bias(model.hidden_bias, packing.HIDDEN_AT)
        self._output_weights = packing.diagonals(model.output, packing.OUTPUT_ROWS, packing.HIDDEN_AT)
        self._output: list[list[SealPlaintext]] = []
        self._output_bias = packing.bias(model.output_bias, packing.OUTPUT_AT)

    def _levels(self) -> list[LevelId]:
        """SEAL's identifiers of the levels, the highest first."""
        data: SealLevel | None = self._context.first_context_data()
        ids = []
        while data is not None:
            ids.append(data.parms_id())
            data = data.next_context_data()
        return ids

    def _prime(self, depth: int) -> float:
        """The prime that a rescaling at this depth drops."""
        return float(self._parameters.coeff_modulus[-2 - depth])

    def _encoded(self, values: Floats, depth: int, scale: float) -> SealPlaintext:
        plain = self._encoder.encode(values, scale)
        self._evaluator.mod_switch_to_inplace(plain, self._ids[depth])
        return plain

    def _rescaled(self, ciphertext: SealCiphertext, bias: Floats | None = None) -> SealCiphertext:
        result = self._evaluator.rescale_to_next(ciphertext)
        if bias is not None:
            plain = self._encoder.encode(bias, result.scale())
            self._evaluator.mod_switch_to_inplace(plain, result.parms_id())
            self._evaluator.add_plain_inplace(result, plain)
        return result

    def _square(self, ciphertext: SealCiphertext) -> SealCiphertext:
        return self._rescaled(self._evaluator.relinearize(self._evaluator.square(ciphertext), self._relin))

    def _rotated(self, ciphertext: SealCiphertext, step: int) -> SealCiphertext:
        return self._evaluator.rotate_vector(ciphertext, step, self._galois)

    def _products(self, inputs: Sequence[SealCiphertext], plains: Sequence[SealPlaintext]) -> SealCiphertext:
        terms = [self._evaluator.multiply_plain(x, w) for x, w in zip(inputs, plains, strict=True)]
        return self._evaluator.add_many(terms)

    def _sum_of_rotations(self, ciphertext: SealCiphertext, step: int, count: int) -> SealCiphertext:
        """x + rot(x) + ... : ``count`` terms."""
        result = ciphertext
        for _ in range(count - 1):
            result = self._evaluator.add(self._rotated(result, step), ciphertext)
        return result

    def _layer(self, ciphertext: SealCiphertext, plains: list[list[SealPlaintext]]) -> SealCiphertext:
        """sum_d D_d rot_d(x), not rescaled."""
        turned = [ciphertext]
        for _ in range(3):
            turned.append(self._rotated(turned[-1], 1))
        result = self._products(turned, plains[-1])
        for row in reversed(plains[:-1]):
            result = self._evaluator.add(self._rotated(result, 4), self._products(turned, row))
        return result

    def _output_plains(self, scale: float) -> list[list[SealPlaintext]]:
        """The last layer's weights, at the scale that brings the logits to OUTPUT_SCALE."""
        if not self._output:
            wanted = OUTPUT_SCALE * self._prime(4) / scale
            self._output = [[self._encoded(w, 4, wanted) for w in row] for row in self._output_weights]
        return self._output

    def logits(self, inputs: Sequence[bytes]) -> bytes:
        """A ciphertext at the last level of the logits of up to 8 images, see :func:`packing.unpack_logits`."""
        loaded = [self._context.from_cipher_str(data) for data in inputs]
        maps = self._square(self._rescaled(self._products(loaded, self._conv), self._conv_bias))
        wide = self._rescaled(self._layer(maps, self._hidden))
        summed = self._sum_of_rotations(self._sum_of_rotations(wide, 64, 4), 256, 4)
        plain = self._encoder.encode(self._hidden_bias, summed.scale())
        self._evaluator.mod_switch_to_inplace(plain, summed.parms_id())
        hidden = self._square(self._evaluator.add_plain(summed, plain))
        wide = self._rescaled(self._layer(hidden, self._output_plains(hidden.scale())))
        # Five rows of neurons: four of them by Horner's rule, and the fifth.
        summed = self._evaluator.add(self._sum_of_rotations(wide, 16, 4), self._rotated(wide, 64))
        plain = self._encoder.encode(self._output_bias, summed.scale())
        self._evaluator.mod_switch_to_inplace(plain, summed.parms_id())
        result = self._evaluator.add_plain(summed, plain)
        self._evaluator.mod_switch_to_inplace(result, self._ids[-1])
        return result.to_string()
