"""Evaluation of a circuit on LWE ciphertexts by the parties that share the secret, in layers of ANDs.

A ciphertext of x xor y is the sum of those of x and y. For an AND of x and y, the encrypted masks r0 and r1 are added, both sums are decrypted to all
parties by an exact rounding, and u = x xor r0, v = y xor r1 choose the entry (u, v) of the gate's table: a ciphertext of x and y. All gates of a layer
are decrypted together.

Phases b - <a, s> are linear. So a party computes its share of the phase of each ciphertext once, and the phase of a sum is the sum of phases, bit for bit that
of the sum of the ciphertexts. Sums are reduced modulo 2, so that no ciphertext is in a sum twice.

What is opened, at keys, inputs, gates and outputs, is a bit under a mask that serves once. Noise has a bound that is never exceeded
(:meth:`.GateParameters.check_sums`), so no rounding is wrong, and which gates are rounded says nothing about noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.model.domains import Domain, Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import lwe_phase, open_masked
from keyquorum.schemes.circuit import Forms, Sums
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import Preprocessing

from .encryption import AT_ONCE, EncryptedBits, Runs, runs_of
from .key import BITS
from .public import GateCiphertexts
from .tables import GateTables

Words = NDArray[np.uint64]
Half = NDArray[np.uint32]
Indices = NDArray[np.int64]
Item = tuple[Words, EncryptedBits]
"""Of :meth:`.GateTables.item`."""


class Masks(Protocol):
    """Claimed items of a rounding, each of which serves once."""

    def take(self, count: int) -> tuple[Preprocessing, bytes]:
        """The next ``count`` items, and the context of the messages that use them."""


def open_masked_bits(run: Runs, bits: Words, masks: Words, **options: Any) -> Words:
    """Bits xor masks, [size], from our shares modulo 2 of both, [parts, size]; every party calls this. One round."""
    size = bits.shape[1]
    layout = Layout(bits=size, masks=size)
    file = ShareVector.from_words(np.concatenate([bits, masks], axis=1).astype(np.uint64))
    try:
        return run(open_masked(size=size, x=layout["bits"], r=layout["masks"]), shares=file, **options).astype(np.uint64) & np.uint64(1)
    finally:
        file.wipe()


class Evaluator:
    """A circuit under a key, at one party. ``secret``: our components of s, [parts, n]; ``constants``: ciphertexts of the inputs that are the same in all
    evaluations, the last inputs of the circuit. Close it to wipe the secret."""

    def __init__(
        self,
        context: PartyContext,
        group: RoundingGroup,
        forms: Forms,
        secret: Words,
        constants: EncryptedBits | None,
        kind: GateTables,
        rounding: LweVariant,
    ) -> None:
        self.parameters, self.forms, self.kind, self.rounding, self.group = kind.parameters, forms, kind, rounding, group
        self._context, self._secret = context, secret.copy()
        count = 0 if constants is None else constants.bodies.size
        self.fresh = forms.inputs - count
        if kind.ands != forms.ands or kind.masks != self.fresh + forms.outputs.starts.size:
            raise ParameterError(f"{kind.name}: items for another circuit: take those of this one")
        self.parameters.check_sums(forms.longest)
        self._constants = np.zeros((secret.shape[0], 0), np.uint32) if constants is None else self.phases(constants, np.arange(count))

    def close(self) -> None:
        """Wipes the secret and the phases."""
        self._secret.fill(0)
        self._constants.fill(0)

    @property
    def decryptions(self) -> int:
        """Roundings of an evaluation."""
        return 2 * self.forms.ands + self.forms.outputs.starts.size

    def _run(self, domain: Domain, call: Call, **options: Any) -> NDArray[np.int64]:
        run = runs_of(self.group.over(Sharing(self.kind.protocol, domain)))
        return run(call, keep=True, **options)

    @property
    def decryptions_encrypted(self) -> int:
        """Roundings of an evaluation of encrypted inputs."""
        return self.decryptions + self.fresh

    def phases(self, bits: EncryptedBits | GateCiphertexts, indices: Indices) -> Half:
        """Our components of the phases b - <a, s> of ciphertexts, [parts, count]. Local."""
        file = ShareVector.from_words(self._secret.copy())
        call = lwe_phase(n=self.parameters.dimension, count=indices.size, block=AT_ONCE)
        self._run(self.parameters.domain, call, public=bits.words(indices), shares=file)
        made = file.tail(indices.size).astype(np.uint32)
        file.wipe()
        return made

    def evaluate(self, bits: Words, tables: Preprocessing, masks: Masks, context: bytes = b"") -> Words:
        """Our shares modulo 2 of the outputs, [parts, outputs, batch], from those of the fresh inputs, [parts, fresh, batch]; every party calls this.

        ``tables``: an item of the kind for each evaluation of the batch; ``masks``: claimed items of the rounding, :attr:`decryptions` for each. Both have been claimed.
        ``context``: bound to the first message. An opening of the inputs; then each layer takes the rounds of the rounding."""
        batch, parts = bits.shape[2], bits.shape[0]
        if bits.shape[1] != self.fresh or tables[0].shape[2] != batch:
            raise ParameterError(f"{tables[0].shape[2]} items for {batch} evaluations: each takes one")

        def opened(items: Sequence[Item]) -> Words:
            shared = np.stack([mask for mask, _ in items], axis=2)[:, : self.fresh].reshape(parts, -1)
            try:
                return open_masked_bits(partial(self._run, BITS), bits.reshape(parts, -1), shared, context=context).reshape(-1, batch)
            finally:
                shared.fill(0)

        return self._evaluated([self.kind.item(tables, i) for i in range(batch)], opened, masks)

    def evaluate_encrypted(self, inputs: Sequence[GateCiphertexts], tables: Preprocessing, masks: Masks) -> Words:
        """The same of inputs that somebody encrypted under the public key, :attr:`fresh` ciphertexts for each evaluation of the batch. **Whoever encrypts is
        trusted**: see :mod:`.public`. Each input is decrypted with an encrypted mask to all parties, in one rounding more (:attr:`decryptions_encrypted`)."""
        batch = len(inputs)
        if tables[0].shape[2] != batch:
            raise ParameterError(f"{tables[0].shape[2]} items for {batch} evaluations: each takes one")
        for each in inputs:
            if each.parameters != self.parameters or each.b.size != self.fresh:
                raise ParameterError(
                    f"{each.b.size} ciphertexts of {each.parameters.name}: an evaluation takes {self.fresh} of {self.parameters.name}"
                )
        own = np.arange(self.fresh)

        def opened(items: Sequence[Item]) -> Words:
            return self._decrypt(np.stack([self.phases(each, own) for each in inputs], axis=2) + self._each(items, own), masks)

        return self._evaluated([self.kind.item(tables, i) for i in range(batch)], opened, masks)

    def _evaluated(self, items: Sequence[Item], open_inputs: Callable[[Sequence[Item]], Words], masks: Masks) -> Words:
        """See :meth:`evaluate`. ``open_inputs``: gives the inputs xor the masks of the items, [fresh, batch]."""
        shared, batch = np.stack([mask for mask, _ in items], axis=2), len(items)
        parts = shared.shape[0]
        known = np.zeros((parts, self.forms.inputs + self.forms.ands, batch), np.uint32)
        try:
            opened = open_inputs(items)
            known[:, : self.fresh] = self._each(items, np.arange(self.fresh))
            self._add(known[:, : self.fresh], opened)
            known[:, self.fresh : self.forms.inputs] = self._constants[:, :, None]
            first = 0
            for sums, width in zip(self.forms.layers, self.forms.widths, strict=True):
                gates = first + np.arange(width)
                pair = np.concatenate([self._number(0, gates), self._number(1, gates)])
                seen = self._decrypt(self._sums(sums, known) + self._each(items, pair), masks)
                entry = 2 + 2 * seen[:width] + seen[width:]
                chosen = [self._number(entry[:, i].astype(np.int64), gates) for i in range(batch)]
                known[:, self.forms.inputs + gates] = self._each(items, *chosen)
                first += width
            out = np.arange(self.fresh, self.kind.masks)
            seen = self._decrypt(self._sums(self.forms.outputs, known) + self._each(items, out), masks)
            result = shared[:, self.fresh :].copy()
            if 0 in self.group.held:
                result[self.group.held.index(0)] ^= seen
            return result
        finally:
            for mask, _ in items:
                mask.fill(0)
            known.fill(0)
            shared.fill(0)

    def _number(self, kind: int | Indices, gates: Indices) -> Indices:
        """Numbers of ciphertexts of gates in an item: of kind 0 and 1 the masks, from 2 on the entries of the table."""
        made: Indices = self.kind.masks + kind * self.forms.ands + gates
        return made

    def _sums(self, sums: Sums, known: Half) -> Half:
        """Phases of sums of ciphertexts."""
        made = sums.evaluate(known)
        self._add(made, np.broadcast_to(sums.constants.astype(np.uint64)[:, None], made.shape[1:]))
        return made

    def _add(self, phases: Half, bits: Words) -> None:
        """Adds public bits to the summand 0, at every party that holds it."""
        if 0 in self.group.held:
            phases[self.group.held.index(0)] += (bits << np.uint64(self.parameters.noise_length)).astype(np.uint32)

    def _each(self, items: Sequence[Item], *indices: Indices) -> Half:
        """Phases of ciphertexts of every item, [parts, count, batch]; ``indices``: one for all items, or one for each."""
        chosen = indices * len(items) if len(indices) == 1 else indices
        return np.stack([self.phases(bits, mine) for (_, bits), mine in zip(items, chosen, strict=True)], axis=2)

    def _decrypt(self, phases: Half, masks: Masks) -> Words:
        """The bits of phases, which all parties see: [count, batch]."""
        count, batch = phases.shape[1:]
        z = phases.reshape(phases.shape[0], -1).astype(np.uint64)
        if 0 in self.group.held:
            part = z[self.group.held.index(0)]
            part += np.uint64(1 << (self.parameters.noise_length - 1))
            part &= np.uint64(self.parameters.modulus - 1)
        preprocessing, bound = masks.take(count * batch)
        words = self.rounding.use(self.group, z, preprocessing, "all", purpose=bound)
        assert words is not None
        return self.rounding.messages(words[0]).astype(np.uint64).reshape(count, batch)


__all__ = ["Evaluator", "open_masked_bits"]
