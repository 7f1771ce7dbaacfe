"""Workloads of the job ``sweep:decrypt``: LWE ciphertexts, or BFV and BGV ciphertexts, whose items are coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.fhe import seal
from keyquorum.fhe.lwe import LweCiphertexts, encrypt
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext
from keyquorum.parties.context import PartyContext
from keyquorum.schemes import encryption_of
from keyquorum.schemes.base import MASKED, MASKED_ONE
from keyquorum.schemes.lwe.field_variant import LweFieldVariant
from keyquorum.schemes.lwe.keygen import make_lwe_key
from keyquorum.schemes.lwe.phases import lwe_phases, phases_modulo_q
from keyquorum.schemes.lwe.variant import LweVariant, messages_of
from keyquorum.schemes.seal.field_variant import SealFieldVariant
from keyquorum.schemes.seal.keygen import SealRequest, generate
from keyquorum.schemes.seal.phases import plain_coefficients
from keyquorum.schemes.seal.ring_variant import RingVariant
from keyquorum.schemes.seal.variant import SealVariant
from keyquorum.serve.copies import factors
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import Variant

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
CIPHERTEXT_LIMIT = 1 << 24


@dataclass(frozen=True)
class Batch:
    """Ciphertexts and their messages."""

    ciphertexts: Any
    messages: Ints


def noise_for(variant: LweVariant | LweFieldVariant, size: int, rng: np.random.Generator, fraction: float = 0.0) -> Ints | None:
    """Noise in the range that a rounding allows, a quarter of it at each end. The range ends at D/2, or at the bound that `round_flood` relies on.
    For `round_mask_open` the noise is +-D ``fraction``, or fresh (None) if ``fraction`` is 0."""
    p = variant.parameters
    if variant.rounding in (MASKED, MASKED_ONE):
        return rng.choice(np.array([-1, 1]), size) * int(p.delta * fraction) if fraction else None
    half = 1 << p.noise_bits if variant.rounding == "round_flood" else p.delta // 2 - p.margin
    noise = rng.integers(-half, half, size)
    noise[::4], noise[1::4] = half - 1, -half
    return noise


class LweWork:
    """LWE ciphertexts of random messages. Every party knows the secret, to encrypt: a key of a benchmark needs no protection."""

    item_count = 1
    """Items of the pool that a ciphertext takes."""

    def __init__(self, context: PartyContext, group: RoundingGroup, variant: LweVariant | LweFieldVariant, fraction: float) -> None:
        self._context, self._group, self._variant, self._fraction = context, group, variant, fraction
        self._rng, self._parameters = np.random.default_rng(1), variant.parameters
        _, self._share = make_lwe_key(context, self._parameters)
        n, q = self._parameters.dimension, self._parameters.modulus
        if isinstance(variant, LweFieldVariant):
            mine = self._of_shamir(group, n, q)
        elif group.points:
            mine = group.summands_of(self._share.words[:, :n], q) if group.member else np.zeros((1, n), np.uint64)
        else:
            width = self._share.element_words
            mine = self._share.words[:1, : n * width : width]
        parts = context.session.all_gather(np.ascontiguousarray(mine[0]).tobytes())
        total = sum(np.frombuffer(p, np.uint64).astype(object) for p in parts)
        self._secret = np.array([int(v) % q for v in np.asarray(total)], dtype=np.int64)

    def _of_shamir(self, group: RoundingGroup, n: int, q: int) -> Words:
        """This party's summand of the secret, [1, n]: t + 1 parties have one."""
        assert group.me is not None
        points = range(1, group.contributors + 1)
        factor = dict(zip(points, factors(points, 0, q), strict=True)).get(group.me + 1, 0)
        return mulmod_scalar(np.ascontiguousarray(self._share.words[0, :n]), factor, q)[None, :]

    def batch(self, size: int) -> Batch:
        """Ciphertexts for ``size`` items."""
        p, rng = self._parameters, self._rng
        messages = rng.integers(0, 1 << p.plain_bits, size)
        ciphertexts: LweCiphertexts = encrypt(p, self._secret, messages, rng, noise_for(self._variant, size, rng, self._fraction))
        return Batch(ciphertexts, messages)

    def phases(self, batch: Batch) -> Words:
        """This party's summands of the phases, in the form that the variant takes."""
        phases = phases_modulo_q if isinstance(self._variant, LweFieldVariant) else lwe_phases
        return phases(self._context, self._group, self._share, batch.ciphertexts)

    def wrong(self, batch: Batch, words: Words) -> int:
        """Number of wrong messages among the opened ones."""
        return int(np.count_nonzero(messages_of(self._parameters, words[0]) != batch.messages))


class SealWork:
    """Fresh BFV or BGV ciphertexts of stock SEAL under a joint key, by party 0, at the last level."""

    def __init__(self, context: PartyContext, group: RoundingGroup, variant: SealVariant | SealFieldVariant | RingVariant) -> None:
        self._context, self._group, self._variant = context, group, variant
        self._parameters, self._rng = variant.parameters, np.random.default_rng(1)
        self._key = generate(context, SealRequest(self._parameters, False))
        self.item_count = self._parameters.ring_degree

    def batch(self, size: int) -> Batch:
        """Ciphertexts for ``size`` items, a multiple of N."""
        set_, session = self._parameters, self._context.session
        values = self._rng.integers(0, set_.plain_modulus, (size // set_.ring_degree, set_.ring_degree))
        ciphertexts = []
        for row in values:
            data = b""
            if session.party == 0:
                data = seal.Evaluator(set_).last_level(seal.encrypt(set_, self._key.public["public.key"], row))
                for other in range(1, session.parties):
                    session.send(other, data)
            else:
                data = session.recv(0, CIPHERTEXT_LIMIT)
            ciphertexts.append(read_ciphertext(set_, data))
        return Batch(ciphertexts, values)

    def phases(self, batch: Batch) -> Words:
        """See :meth:`LweWork.phases`."""
        key = self._key
        return encryption_of(key.info).phases(self._context, self._group, key.info, key.shares, self._variant, batch.ciphertexts, keep=True)

    def wrong(self, batch: Batch, words: Words) -> int:
        """Number of wrong coefficients among the opened ones."""
        set_, n = self._parameters, self._parameters.ring_degree
        wrong = 0
        for i, (ciphertext, values) in enumerate(zip(batch.ciphertexts, batch.messages, strict=True)):
            coefficients = plain_coefficients(set_, ciphertext, words[0, i * n : (i + 1) * n].view(np.int64))
            data = read_plaintext(set_, bytes(seal.encode(set_, values).to_bytes())).data
            wrong += int(np.count_nonzero(coefficients[: data.size] != data) + np.count_nonzero(coefficients[data.size :]))
        return wrong


def workload(context: PartyContext, group: RoundingGroup, variant: Variant, fraction: float = 0.0) -> LweWork | SealWork:
    """The workload of a variant. ``fraction``: see :func:`noise_for`."""
    if isinstance(variant, LweVariant | LweFieldVariant):
        return LweWork(context, group, variant, fraction)
    assert isinstance(variant, SealVariant | SealFieldVariant | RingVariant)
    return SealWork(context, group, variant)
