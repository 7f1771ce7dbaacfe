"""Joint integers of decryptions: masks of roundings, and flooding noise. They are one source of numbers for several domains (``Source/mpc/src/joint.rs``). Key generation has masks of its own
(:mod:`keyquorum.sharing.numbers.lift`).

A mask that a party inputs modulo 2^l and once more modulo t need not be the same number twice, and nothing proves that it is. The summands of a joint integer come from
streams that sets of parties have in common: pairs, or with Shamir's sharing all sets of n - t. Each set has an honest member, so in every domain the honest parties' shares are those of the same integer, whatever a
corrupted party does with its own. No message is sent for the shares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from keyquorum._engine import JointIntegers, Session, joint_summands
from keyquorum.backends.base import Backend
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Field
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import PROTOCOLS

from .randomness import HALF_BITS, gaussian_of_words, gaussian_words, wipe


def named(shares: Persistence, protocol: str, domain: str, purpose: str, names: Sequence[KeyTest]) -> Persistence:
    """Gives ``shares``, which were computed locally from shares with these names (:attr:`.Persistence.key_tests`), a name of their own: a hash of ``purpose`` and the names. All parties
    compare it before a program uses the shares. Without effect where runs have no names. Returns ``shares``."""
    shares.bind(protocol, domain)
    if PROTOCOLS[protocol].names_runs:
        if not names:
            raise ParameterError(f"shares of {protocol} without the name of a run are not used: make the key again")
        shares.key_tests = [joined_name(purpose, names)]
    return shares


def joined_name(purpose: str, names: Sequence[KeyTest]) -> KeyTest:
    """A hash of a purpose and of names, as long as one of these (at least one)."""
    said = b"".join(len(name).to_bytes(4, "little") + name.tobytes() for name in names)
    digest = hashlib.sha256(b"keyquorum shares computed from others" + purpose.encode() + b"\0" + said).digest()
    return np.frombuffer(digest[: names[0].size], dtype=np.uint8).copy()


class JointBits:
    """Vectors of random bits, each of which is the XOR of a bit of each summand, for two domains.

    They are drawn for ``size`` coefficients, among all ``parties`` of a committee whose shares have ``parts`` elements. Every party calls this. A bit hides one value. Rounds: those of a toss, which
    names the draw."""

    def __init__(
        self, backend: Backend, protocol: str, parties: int, threshold: int, parts: int, size: int, vectors: int, seed: bytes | None = None,
    ) -> None:  # fmt: skip
        self.summands = joint_summands(protocol, parties, threshold)
        self._parts = parts
        self._bits = _draw(backend, protocol, vectors * size, 1, threshold, seed)

    def append_sums(self, shares: Persistence, protocol: str, domain: str) -> None:
        """Appends the vectors of sums of bits, as `round_carry_odd_ring` and `round_mask_odd_bits` read them."""
        shares.append_joint(protocol, domain, self._bits.shares(domain), self._parts, self._bits.name)

    def append_bits(self, shares: Persistence, protocol: str, domain: str) -> None:
        """Appends of each summand its bits, as `round_carry_odd_field` and `round_mask_odd_field` read them."""
        for summand in range(self.summands):
            shares.append_joint(protocol, domain, self._bits.indicators(domain, summand, 1), self._parts, self._bits.name)


class JointMasks(JointBits):
    """Masks of one rounding: R, a sum of numbers uniform in [0, 2^length), and :class:`JointBits`, a vector for each bit of the carry of R and one for the comparison.

    A mask hides one value: use an object for one rounding. Rounds: those of two tosses, which name the draws."""

    def __init__(
        self, backend: Backend, protocol: str, parties: int, threshold: int, parts: int, size: int, length: int, seed: bytes | None = None,
    ) -> None:  # fmt: skip
        summands = joint_summands(protocol, parties, threshold)
        self._length = length
        self._words = _draw(backend, protocol, size, length, threshold, seed)
        super().__init__(backend, protocol, parties, threshold, parts, size, (summands - 1).bit_length() + 1, seed)

    def append_words(self, shares: Persistence, protocol: str, domain: str) -> None:
        """Appends R."""
        shares.append_joint(protocol, domain, self._words.shares(domain), self._parts, self._words.name)

    def append_places(self, shares: Persistence, protocol: str, domain: str) -> None:
        """Appends the bits of R: of each summand its lowest one first, as `round_mask_odd_bits` reads them."""
        for summand in range(self.summands):
            for place in range(self._length):
                shares.append_joint(protocol, domain, self._words.bits(domain, summand, place), self._parts, self._words.name)


def _draw(backend: Backend, protocol: str, count: int, bits: int, threshold: int, seed: bytes | None) -> JointIntegers:
    if not isinstance(backend, Embedded):
        raise ParameterError(f"{protocol}: the {backend.name} backend takes no joint integers, which this committee needs: leave out --backend")
    drawn: JointIntegers = backend.session.joint_integers(protocol, count, bits, 1, threshold, seed)
    return drawn


class JointNoise:
    """Flooding noise of a committee that verifies products: F = sum of F_A over sets A of parties, each F_A discrete Gaussian of ``variance``, independent of the others, and known to the members of A
    alone. With replicated shares the sets are the pairs of parties, with Shamir's all sets of n - t parties: C(n, t) of them.

    All members compute F_A from uniform words of their common stream, and write shares of the sum modulo every prime (pseudo-random secret sharing: Cramer, Damgard, Ishai, TCC 2005). So in every domain
    the honest parties' shares are those of one F, of the size that its distribution has: no party has a choice, and nothing is sent for the shares. Of some set all members are honest, so any t parties
    know all F_A but one, at most. ``size`` numbers for one use: F is appended once modulo each prime. Rounds: those of a toss, which names the draw, and one in which members compare seeds where sets have three and more; the name of the
    noise is a hash of the name of the draw and of ``variance``. Memory: 8 (2 s + 1) bytes for each number and each set of this party, where s tables make a number (:func:`.gaussian_words`)."""

    def __init__(self, session: Session, committee: Committee, size: int, variance: int, seed: bytes | None = None) -> None:
        protocol, self._parts = committee.field_protocol, committee.share_parts
        rows = gaussian_words(variance)
        drawn: JointIntegers = session.joint_integers(protocol, rows * size, HALF_BITS, 1, committee.threshold, seed)
        self._drawn: JointIntegers | None = drawn  # wiped when nobody holds it
        self.known: list[int] = drawn.known
        """The sets of this party, by their numbers."""
        if drawn.name is None:
            raise ParameterError(
                f"{protocol}: joint noise has the name of its draw, which this protocol does not make: take mal-rep-field or mal-shamir"
            )
        self._name = joined_name(f"gaussian {variance}", [np.frombuffer(drawn.name, dtype=np.uint8)]).tobytes()
        self._noise = np.zeros((len(self.known), size), dtype=np.int64)
        self._appended: set[str] = set()
        for row, summand in zip(self._noise, self.known, strict=True):
            words = np.frombuffer(drawn.numbers(summand), dtype="<u8")
            try:
                found = gaussian_of_words(variance, words.reshape(rows, size))
                row[:] = found
                wipe(found)
            finally:
                wipe(words)

    def append_to(self, shares: Persistence, protocol: str, q: int) -> None:
        """Appends F modulo q. Raises ParameterError the second time, as two results under one F show their difference without noise, and once the noise is wiped."""
        domain = Field(q)
        if self._drawn is None:
            raise ParameterError(f"{protocol}: this joint noise is wiped: draw another one")
        if domain in self._appended:
            raise ParameterError(f"{protocol}: this joint noise is used modulo {q} already: draw another one for each ciphertext")
        self._appended.add(domain)
        shares.append_joint(protocol, domain, self._drawn.shares_of(domain, self._noise), self._parts, self._name)

    def wipe(self) -> None:
        """Overwrites the noise, and what it was made of."""
        self._drawn = None
        if hasattr(self, "_noise"):
            wipe(self._noise)

    def __del__(self) -> None:
        self.wipe()
