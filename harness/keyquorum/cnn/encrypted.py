"""The network on encrypted images, by stock SEAL: five multiplicative levels of CKKS at N = 16384. This module uses no secret key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_types import SealCiphertext, SealContext, SealEvaluator, SealPlaintext

from . import network
from .model import Model
from .weights import EncryptedWeights, operands


class SealArithmetic:
    """SEAL's operations on ciphertexts."""

    def __init__(self, context: SealContext, relin_keys: bytes, galois_keys: bytes) -> None:
        self.evaluator: SealEvaluator = seal.require_seal().Evaluator(context)
        self.relin, self._galois = context.from_relin_str(relin_keys), context.from_galois_str(galois_keys)

    def add(self, a: SealCiphertext, b: SealCiphertext) -> SealCiphertext:
        """The sum."""
        return self.evaluator.add(a, b)

    def square(self, ciphertext: SealCiphertext) -> SealCiphertext:
        """The square, relinearised."""
        return self.evaluator.relinearize(self.evaluator.square(ciphertext), self.relin)

    def rescaled(self, ciphertext: SealCiphertext) -> SealCiphertext:
        """The ciphertext at the next level."""
        return self.evaluator.rescale_to_next(ciphertext)

    def rotated(self, ciphertext: SealCiphertext, step: int) -> SealCiphertext:
        """The slots, moved to the left."""
        return self.evaluator.rotate_vector(ciphertext, step, self._galois)


class PlaintextProducts(SealArithmetic):
    """Weights in clear: products with plaintexts."""

    def products(self, inputs: Sequence[SealCiphertext], weights: Sequence[SealPlaintext]) -> SealCiphertext:
        """The sum of inputs times weights."""
        return self.evaluator.add_many([self.evaluator.multiply_plain(x, w) for x, w in zip(inputs, weights, strict=True)])

    def biased(self, ciphertext: SealCiphertext, bias: SealPlaintext) -> SealCiphertext:
        """The sum of a ciphertext and a bias."""
        return self.evaluator.add_plain(ciphertext, bias)


class CiphertextProducts(SealArithmetic):
    """Encrypted weights: products of ciphertexts are added as three parts each, and relinearised once."""

    def products(self, inputs: Sequence[SealCiphertext], weights: Sequence[SealCiphertext]) -> SealCiphertext:
        """The sum of inputs times weights."""
        total = self.evaluator.add_many([self.evaluator.multiply(x, w) for x, w in zip(inputs, weights, strict=True)])
        return self.evaluator.relinearize(total, self.relin)

    def biased(self, ciphertext: SealCiphertext, bias: SealCiphertext) -> SealCiphertext:
        """The sum of a ciphertext and a bias."""
        return self.evaluator.add(ciphertext, bias)


class NetworkEvaluator:
    """Evaluates the network under a key, on encrypted images. ``weights``: a model in clear, or one that its owner encrypted
    (:func:`keyquorum.cnn.weights.encrypt_weights`); the latter costs 21 relinearisations more."""

    def __init__(self, parameters: ParameterSet, weights: Model | EncryptedWeights, relin_keys: bytes, galois_keys: bytes) -> None:
        self._parameters, self._context = parameters, seal.context(parameters)
        if isinstance(weights, Model):
            encoded = operands(parameters, weights).mapped(lambda w: seal.encode(parameters, w.values, w.scale, parameters.levels - w.depth))
            by_plaintexts = PlaintextProducts(self._context, relin_keys, galois_keys)
            self._logits: Callable[[list[SealCiphertext]], SealCiphertext] = lambda inputs: network.logits(by_plaintexts, encoded, inputs)
        else:
            loaded = weights.mapped(self._context.from_cipher_str)
            by_ciphertexts = CiphertextProducts(self._context, relin_keys, galois_keys)
            self._logits = lambda inputs: network.logits(by_ciphertexts, loaded, inputs)

    def logits(self, inputs: Sequence[bytes]) -> bytes:
        """A ciphertext at the last level of the logits of up to 8 images, of the 25 ciphertexts of :func:`packing.pack_images`; see
        :func:`packing.unpack_logits`."""
        result = self._logits([self._context.from_cipher_str(data) for data in inputs])
        evaluator: SealEvaluator = seal.require_seal().Evaluator(self._context)
        return evaluator.mod_switch_to(result, seal.level_id(self._parameters, 1)).to_string()
