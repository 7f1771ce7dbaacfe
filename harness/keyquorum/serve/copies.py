"""What a receiver checks in the answers of a served committee that verifies products: it finds a wrong share, and never gets a wrong message.

Replicated shares: every summand is held by two parties, one of whom is honest. A party answers with its own summand, and with a hash of each further summand that it holds, which other parties
send in full. The receiver compares. So what it adds up is what the honest parties hold, or it has an error. Whether the comparison fails depends on what the corrupted party sends and on summands
that it holds itself, so the error reveals nothing.

Shamir's sharing: the shares of all parties must lie on polynomials of degree t. The n - t > t honest shares determine these polynomials, so the others are right, or the receiver has an error. That
depends on what the corrupted parties send, and on their own right shares, so it reveals nothing either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import addmod, mulmod_scalar
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PartyError

from .answers import Answers

Words = NDArray[np.uint64]
HASH = 32
"""Bytes of the hash of a copy."""


class DifferentCopies(PartyError):
    """Two parties sent different copies of the same summand: one of them cheats, or has other files. Nothing was decrypted."""


class WrongDegree(PartyError):
    """The shares of all parties do not lie on polynomials of degree t. Nothing was decrypted."""


def _hash(words: bytes) -> bytes:
    return hashlib.sha256(b"keyquorum served summand" + words).digest()


def answer_of(committee: Committee, shares: Words) -> bytes:
    """A party's answer, from its shares [parts, count] of the messages: its first summand, `u64` each; where receivers compare copies also the hash of each further one."""
    first: bytes = shares[0].astype("<u8").tobytes()
    if Answers.of(committee) is not Answers.COPIES:
        return first
    return first + b"".join(_hash(part.astype("<u8").tobytes()) for part in shares[1:])


def answer_bytes(committee: Committee, count: int) -> int:
    """Bytes of an answer for ``count`` messages."""
    hashes = committee.capabilities.values(committee.size, committee.threshold) - 1 if Answers.of(committee) is Answers.COPIES else 0
    return 8 * count + HASH * hashes


def summands_of(committee: Committee, answers: Sequence[bytes | bytearray], count: int, modulus: int) -> list[Words]:
    """Summands of the messages, [1, count] of each party, from the answers in the order of the parties, with the length of :func:`answer_bytes`. ``modulus``: of shares over a prime
    field. Raises :class:`DifferentCopies`, or :class:`WrongDegree`."""
    shares = [np.frombuffer(answer[: 8 * count], "<u8").astype(np.uint64)[None, :] for answer in answers]
    kind = Answers.of(committee)
    if kind is Answers.POINTS:
        return interpolated(committee, shares, modulus)
    if kind is Answers.COPIES:
        compare(committee, answers, count)
    return shares


def factors(points: Sequence[int], at: int, modulus: int) -> list[int]:
    """Lagrange's coefficients: the value at ``at`` of a polynomial from its values at ``points``."""
    found = []
    for x in points:
        factor = 1
        for other in points:
            if other != x:
                factor = factor * (at - other) * pow(x - other, -1, modulus) % modulus
        found.append(factor)
    return found


def degree_holds(committee: Committee, shares: Sequence[Words], modulus: int) -> bool:
    """Whether the shares of all parties, at the points 1 to n, are canonical and lie on polynomials of degree t."""
    points = range(1, committee.threshold + 2)
    if any(int(share.max()) >= modulus for share in shares):
        return False
    for x in range(committee.threshold + 2, committee.size + 1):
        wanted = np.zeros_like(shares[0])
        for factor, share in zip(factors(points, x, modulus), shares, strict=False):
            wanted = addmod(wanted[0], mulmod_scalar(np.ascontiguousarray(share[0]), factor, modulus), modulus)[None, :]
        if not np.array_equal(wanted, shares[x - 1]):
            return False
    return True


def interpolated(committee: Committee, shares: Sequence[Words], modulus: int) -> list[Words]:
    """The summands of the values at 0: t + 1 shares times their coefficients. Raises :class:`WrongDegree`."""
    if not degree_holds(committee, shares, modulus):
        raise WrongDegree(
            "the shares of the parties do not belong together, so one of them cheats or has other files: nothing was decrypted; ask their operators, and do not try again before"
        )
    points = range(1, committee.threshold + 2)
    return [
        mulmod_scalar(np.ascontiguousarray(share[0]), factor, modulus)[None, :]
        for factor, share in zip(factors(points, 0, modulus), shares, strict=False)
    ]


def compare(committee: Committee, answers: Sequence[bytes | bytearray], count: int) -> None:
    """Compares every summand with the hashes of its copies. Raises :class:`DifferentCopies`."""
    held = [committee.capabilities.held(party, committee.size, committee.threshold) for party in range(committee.size)]
    sent = {numbers[0]: (party, _hash(bytes(answers[party][: 8 * count]))) for party, numbers in enumerate(held)}
    for party, numbers in enumerate(held):
        for place, number in enumerate(numbers[1:]):
            at = 8 * count + HASH * place
            sender, digest = sent[number]
            if bytes(answers[party][at : at + HASH]) != digest:
                raise DifferentCopies(
                    f"parties {committee.number_of(sender)} and {committee.number_of(party)} sent different copies of a share, so one of them cheats or has other files: nothing was decrypted; "
                    "ask their operators, and do not try again before"
                )
