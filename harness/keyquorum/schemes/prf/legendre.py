"""The Legendre PRF under a shared key (program `legendre_prf`): bit i of a block tells whether f_i(x) is a square modulo p.

* x, a point, is SHA-256 of input and domain (:func:`.digest_of`), as a little-endian number modulo p = 2^127 - 1. Bytes of elements: 16, little endian.
* f_i(x) = x (x + a_i) + b_i modulo p, with uniform secret a_i and b_i; block j has the polynomials 128 j to 128 j + 127. Bit i is 1 if f_i(x) is no square.
* The parties compute shares of f_i(x) s_i^2 for fresh secret random s_i, and send them to the receiver alone, who adds them up and computes Legendre symbols.
  A sum is uniform among the non-zero elements with the symbol of f_i(x). It is zero if f_i(x) or s_i is, which occurs in a value of 32 bytes with probability
  below 2^-117: then the receiver refuses the result.

Source: Kaluderovic, Cheng, Mitrokotsa, A post-quantum Distributed OPRF from the Legendre PRF (eprint 2024/544), there with degree 1.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from keyquorum._engine import UsageError, legendre_symbols, wide_sum
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, ParameterError, PartyError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Layout
from keyquorum.programs.signatures import legendre_prf
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.shares import Run

from .function import BLOCK, Bytes, check_output, digest_of, held_by, summands_of
from .inner import InnerPrf
from .key import LegendreParameters, sharing_of

ELEMENT = 16
"""Bytes of an element."""
SYMBOLS = 8 * BLOCK
"""Of a block."""
WORD = 1 << 64


class LegendrePrf(InnerPrf):
    """See the module."""

    answer_bytes = SYMBOLS * ELEMENT

    def __init__(self, parameters: LegendreParameters) -> None:
        self._parameters = parameters
        self._prime = parameters.prime

    def point(self, data: bytes, domain: bytes, length: int) -> bytes:
        check_output(length)
        return (int.from_bytes(digest_of(data, domain), "little") % self._prime).to_bytes(ELEMENT, "little")

    def shared(self, committee: Committee, points: Sequence[bytes]) -> list[bytes]:
        p, rest = self._prime, [int.from_bytes(point, "little") for point in points]
        summands = [[secrets.randbelow(p) for _ in points] for _ in range(committee.summands - 1)]
        for summand in summands:
            rest = [(x - y) % p for x, y in zip(rest, summand, strict=True)]
        bodies = [b"".join(x.to_bytes(ELEMENT, "little") for x in summand) for summand in [*summands, rest]]
        return [b"".join(bodies[number] for number in held_by(committee, party)) for party in range(committee.size)]

    def combined(self, committee: Committee, answers: Sequence[bytes | bytearray], blocks: int) -> bytes:
        # Raises PartyError also for the zero, which is no blinded value.
        total = bytes(blocks * self.answer_bytes)
        try:
            for summand in summands_of(committee, answers, blocks, self.answer_bytes):
                total = wide_sum(self._prime, total, summand.tobytes())
            symbols = legendre_symbols(self._prime, total)
        except UsageError:
            raise PartyError("a party sent a number that is no element of the field: the result was dropped; ask who runs the parties") from None
        if not symbols.all():
            raise PartyError(
                "a blinded value is zero, which practically never occurs if all parties compute rightly: the result was dropped; ask again, or if it is zero again for another domain"
            )
        return np.packbits(symbols < 0, bitorder="little").tobytes()

    def check(self, committee: Committee, method: str) -> None:
        sharing_of(committee, self._parameters)
        if method != "circuit":
            raise ParameterError(f"one-time tables are of AES, and this is a key of {self._parameters.name}: leave out --method")
        if not kind_of(committee).plain_shares:
            raise ParameterError(
                f"{committee.protocol}: masks that receivers check are made for AES alone: take a committee of rep-field or mal-rep-field"
            )

    def check_points(self, shares: Bytes) -> None:
        words = shares.reshape(-1, ELEMENT).view("<u8")
        high, low = divmod(self._prime, WORD)
        if ((words[:, 1] > high) | ((words[:, 1] == high) & (words[:, 0] >= low))).any():
            raise CiphertextError("shares of inputs that are no elements of the field: run the same version everywhere")

    def evaluated(self, context: PartyContext, key: ShareVector, points: Bytes, blocks: Sequence[int], purpose: bytes) -> Bytes:
        # Rounds and bytes are those of `legendre_prf`, with as many polynomials as the longest value takes. Points are padded with zeros to a power
        # of two: the engine keeps a program for each size. Values beyond ``blocks`` are wiped, and never sent.
        parts, count = points.shape[:2]
        size, bits = 1 << (count - 1).bit_length(), SYMBOLS * max(blocks)
        words = np.zeros((parts, 2 * size), np.uint64)
        words[:, : 2 * count] = points.reshape(parts, -1).view("<u8")
        n = self._parameters.polynomials
        layout = Layout(points=size, constants=n, slopes=n)
        call = legendre_prf(
            size=size, bits=bits, degree=self._parameters.degree, destination="share", points=layout["points"],
            constants=layout["constants"].rows(0, bits, 1), slopes=layout["slopes"].rows(0, bits, 1),
        )  # fmt: skip
        runs, values = Run(context).over(sharing_of(context.committee, self._parameters)), None
        try:
            with runs.shares(ShareVector.from_sections([words, key.words], key.element_words)) as working:
                working.derive_origin(f"symbols of points {purpose.hex()}", key.origins)
                working.run(call, keep=True, purpose=purpose)
                values = working.tail(2 * size * bits)
            by_point = values.astype("<u8", copy=False).view(np.uint8).reshape(parts, size, -1, self.answer_bytes)
            return np.concatenate([by_point[:, i, :used] for i, used in enumerate(blocks)], axis=1)
        finally:
            for secret in (words, *([] if values is None else [values])):
                secret.fill(0)


__all__ = ["ELEMENT", "SYMBOLS", "LegendrePrf"]
