"""Encryption and evaluation with the public keys of FHEW-like keys, without any secret.

The kernel is the engine's (``Source/math/src/fhew.rs``). A look-up switches a ciphertext to the short secret, rounds it modulo 2N, rotates the test
vector blindly, and extracts a coefficient: its noise is then that of the bootstrapping key alone (:func:`.fhew.evaluated_deviation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from keyquorum._engine import Fhew
from keyquorum.model.errors import CiphertextError, ParameterError

from .fhew import BOOTSTRAPPING, PUBLIC, SWITCHING, FhewKeyFile
from .lwe import FhewParameters, Ints, LweCiphertexts, Words, encode

TOGETHER = 1024
"""Messages that are encrypted together: the masks of the public key are expanded once for them."""


def kernel(parameters: FhewParameters) -> Fhew:
    """The kernel for a set."""
    p = parameters
    return Fhew(p.prime, p.dimension, p.lwe_dimension, (p.base_log, p.levels), (p.switch_base_log, p.switch_levels))


def encrypt(public: FhewKeyFile, messages: Ints | Sequence[int]) -> LweCiphertexts:
    """A fresh ciphertext for each message, integers from 0 to 2^plain_bits - 1 (a vector): the sum of a random subset of the public key's samples, plus
    the message. The subsets come from the operating system's randomness. The noise has half the samples' variance each."""
    assert public.kind == PUBLIC
    p, a, b = public.parameters, [], []
    scaled, made = encode(p, np.asarray(messages, dtype=np.int64)), kernel(p)
    for first in range(0, scaled.size, TOGETHER):
        mask, body = made.encrypt(public.seed, public.bodies, p.dimension, scaled[first : first + TOGETHER])
        a.append(mask.reshape(-1, p.dimension))
        b.append(body)
    return LweCiphertexts(p, np.concatenate(a), np.concatenate(b))


def add(x: LweCiphertexts, y: LweCiphertexts) -> LweCiphertexts:
    """Ciphertexts of the sums modulo 2^plain_bits. Raises CiphertextError for vectors that do not go together."""
    if x.parameters != y.parameters or x.count != y.count:
        raise CiphertextError(f"{x.count} ciphertexts of {x.parameters.name} and {y.count} of {y.parameters.name} do not add up: give two alike")
    q = np.uint64(x.parameters.modulus)
    return replace(x, a=(x.a + y.a) % q, b=(x.b + y.b) % q, noise_bits=None)


class Evaluation:
    """Look-ups under a key, whose bootstrapping and key-switching keys these are."""

    def __init__(self, bootstrapping: FhewKeyFile, switching: FhewKeyFile) -> None:
        assert (bootstrapping.kind, switching.kind) == (BOOTSTRAPPING, SWITCHING)
        if (bootstrapping.key_id, bootstrapping.parameters) != (switching.key_id, switching.parameters):
            raise CiphertextError(f"the keys are of {bootstrapping.key_id} and of {switching.key_id}: take the files of one key")
        self.parameters, self._bootstrapping, self._switching = bootstrapping.parameters, bootstrapping, switching
        self._kernel = kernel(self.parameters)

    def test_vector(self, table: Sequence[int]) -> Words:
        """The polynomial of a table: equally many coefficients for each of its values. Raises ParameterError unless it has one value below
        2^plain_bits for each message of the lower half."""
        p = self.parameters
        half = 1 << (p.plain_bits - 1)
        if len(table) != half or not all(0 <= value < 2 * half for value in table):
            raise ParameterError(f"a table of {p.name} has {half} values from 0 to {2 * half - 1}, of the messages below {half}")
        return np.repeat(encode(p, np.array(table, dtype=np.int64)), p.dimension // half)

    def apply(self, ciphertexts: LweCiphertexts, table: Sequence[int]) -> LweCiphertexts:
        """Ciphertexts of ``table[m]`` for each message m of the lower half, where the highest bit of a message is a free carry. A message h + m of the
        upper half, from h on, gives the negative of ``table[m]``. Raises ParameterError or CiphertextError."""
        p, test = self.parameters, self.test_vector(table)
        if ciphertexts.parameters != p:
            raise CiphertextError(f"ciphertexts of {ciphertexts.parameters.name}, and a key of {p.name}: take those of the key")
        # half a step, so that noise of either sign stays among the coefficients of a message
        step = np.uint64(p.prime >> (p.plain_bits + 1))
        switched = self._kernel.switch(
            self._switching.seed, self._switching.bodies, np.ascontiguousarray(ciphertexts.a).reshape(-1), np.ascontiguousarray(ciphertexts.b)
        )
        body = (switched[1] + step) % np.uint64(p.prime)
        a, b = self._kernel.bootstrap(self._bootstrapping.seed, self._bootstrapping.bodies, switched[0], body, test)
        return replace(ciphertexts, a=a.reshape(-1, p.dimension), b=b, noise_bits=None)


__all__ = ["Evaluation", "add", "encrypt", "kernel"]
