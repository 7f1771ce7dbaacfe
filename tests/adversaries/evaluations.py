"""Evaluations of a pseudorandom function that the adversaries attack, with the receiver's part: each party stands for a receiver that got all answers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum._engine import CheckError
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PartyError
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.prf.client_masks import evaluate_masked, make_masks, opened_masks, same_values
from keyquorum.schemes.prf.function import BLOCK, held_by
from keyquorum.schemes.prf.functions import inner_of
from keyquorum.schemes.prf.key import AES, LEGENDRE, LegendreParameters, PrfParameters
from keyquorum.schemes.prf.keygen import PrfRequest, generate

from .changes import Deviation
from .plans import DeviatingBackend, committee_of
from .runner import Begin, Plan

POINT = bytes(range(BLOCK))


def in_clear(parameters: PrfParameters, key: Sequence[int]) -> bytes:
    """The first block of the point, under a key that is opened before the plan begins."""
    if not isinstance(parameters, LegendreParameters):
        bits = np.array([k & 1 for k in key[:128]], np.uint8)
        return Cipher(algorithms.AES(np.packbits(bits, bitorder="little").tobytes()), modes.ECB()).encryptor().update(POINT)
    p, x, n = parameters.prime, int.from_bytes(POINT, "little"), parameters.polynomials
    symbols = [pow((x * (x + a) + b) % p, p // 2, p) != 1 for b, a in zip(key[:128], key[n : n + 128], strict=True)]
    return np.packbits(np.array(symbols), bitorder="little").tobytes()


@dataclass(frozen=True)
class Evaluation:
    """One block of 16 bytes. ``checked``: whether the receiver compares what it gets."""

    committee: Committee
    parameters: PrfParameters
    bodies: tuple[bytes, ...]
    checked: bool = True

    def __call__(self, session: Any, deviation: Deviation, begin: Begin, honest: int) -> tuple[bytes, bytes]:
        """One party: the value that the receiver takes, and the one that is right."""
        if self.committee.authenticated:
            session.set_mac_key(os.urandom(16))  # of this run alone: a failed check burns it
        context = PartyContext(session, self.committee, backend=DeviatingBackend(session, deviation))
        key = generate(context, PrfRequest(self.parameters)).shares[0]
        wanted = in_clear(self.parameters, self._opened(session, key))
        begin()
        deviation.stored(key)
        try:
            value = (self._by_masks if self.committee.authenticated else self._by_copies)(context, key)
        except PartyError as error:  # the receiver refuses
            raise CheckError(str(error)) from None
        session.compare("end of the evaluation", bytes(32))
        return value, wanted

    def _opened(self, session: Any, key: ShareVector) -> list[int]:
        """The key, at all parties: it is of this run alone."""
        wide = key.element_words == 2
        found: dict[int, list[int]] = {}
        for party, row in enumerate(session.all_gather(key.words.copy().astype("<u8").tobytes())):
            held = held_by(self.committee, party)
            size = 16 if wide else 8
            parts = np.frombuffer(row, np.uint8).reshape(self.committee.share_parts, -1, size)
            for number, part in zip(held, parts, strict=False):
                found[number] = [int.from_bytes(element.tobytes(), "little") for element in part]
        sums = [sum(column) for column in zip(*found.values(), strict=True)]
        return [v % self.parameters.prime for v in sums] if isinstance(self.parameters, LegendreParameters) else sums

    def _by_copies(self, context: PartyContext, key: ShareVector) -> bytes:
        inner, held = inner_of(self.parameters), held_by(self.committee, context.party)
        points = np.frombuffer(self.bodies[context.party], np.uint8).reshape(len(held), 1, BLOCK)
        values = inner.evaluated(context, key, points, [1], b"a block")
        answers = context.session.all_gather(np.ascontiguousarray(values).tobytes())
        if not self.checked:  # the last copy of each summand counts
            copies: dict[int, bytes] = {}
            for party, answer in enumerate(answers):
                half = len(answer) // 2
                copies |= {number: answer[half * i : half * (i + 1)] for i, number in enumerate(held_by(self.committee, party))}
            answers = [b"".join(copies[number] for number in held_by(self.committee, party)) for party in range(self.committee.size)]
        return inner.combined(self.committee, answers, 1)

    def _by_masks(self, context: PartyContext, key: ShareVector) -> bytes:
        kept, words = make_masks(context, 1, 1, b"masks")
        answers = context.session.all_gather(words.astype("<u8").tobytes())
        if self.checked:
            known = opened_masks(self.committee, answers, 1, 1)
            mask, pad = known.masks[0], known.pads[0, 0]
        else:
            total = np.bitwise_xor.reduce([np.frombuffer(answer, "<u8") for answer in answers])
            mask, pad = total[:2].astype("<u8").view(np.uint8), total[2:4].astype("<u8").view(np.uint8)
        (c,) = {(np.frombuffer(POINT, np.uint8) ^ mask).tobytes()}
        context.session.compare("masked points", c + bytes(16))
        (value,) = evaluate_masked(context, key, [kept], [np.frombuffer(c, np.uint8).reshape(1, BLOCK)], b"values")
        values = context.session.all_gather(value)
        padded = same_values(self.committee, values, BLOCK) if self.checked else values[0]
        return (np.frombuffer(padded, np.uint8) ^ pad).tobytes()

    def right(self, results: Mapping[int, tuple[bytes, bytes]]) -> bool:
        """Whether receivers took the right value."""
        return all(value == wanted for value, wanted in results.values())


def evaluation(protocol: str, parties: int, legendre: bool = False, checked: bool = True) -> Plan:
    """AES-128, or the Legendre PRF, at a point."""
    committee, parameters = committee_of(protocol, parties), LEGENDRE if legendre else AES
    bodies = () if committee.authenticated else tuple(inner_of(parameters).shared(committee, [POINT]))
    plan = Evaluation(committee, parameters, bodies, checked)
    name = f"{'Legendre PRF' if legendre else 'AES'} of {protocol}, {parties} parties{'' if checked else ', copies not compared'}"
    return Plan(name, parties, plan, plan.right)


__all__ = ["Evaluation", "evaluation"]
