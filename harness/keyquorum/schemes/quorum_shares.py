"""Additive shares of a key for t + 1 parties, from the shares that they have: nothing is made ahead, and the others may be away.

*Shamir's sharing.* The secret is f(0) for a polynomial f of degree t, and party i has f(i + 1). For a set S of t + 1 parties f(0) is the sum of a_i = l_i f(i + 1) over S, where l_i is the product of
x_j / (x_j - x_i) over the other members, with the points x_i = i + 1, modulo q (Shamir, CACM 1979). So each member scales its own share.

*Replicated sharing of three.* Party i has the summands s_i and s_(i-1). Of two parties the first one adds up its two summands, and the second one takes the summand that the first one lacks. That holds in
every ring, and for bits.

S continues with additive sharing, of which all members but one may be corrupted.

*Counts.* Where decryptions are counted, two sets that decrypt must have a party in common, which remembers. So t + 1 parties and more than half of all are named (:func:`counting_parties`). Where that is more than t + 1, the
further members of Shamir's sharing take zeros as their shares, and count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import addmod, mulmod_scalar
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.model.subset import SUBSET_PROTOCOL, Subset, decrypts_apart, numbers_text
from keyquorum.schemes import scheme_of
from keyquorum.sharing.group import lagrange
from keyquorum.sharing.randomness import wipe

from .base import AnyScheme, Scheme
from .holding import holding_of
from .key_folder import load_shares
from .keys import KeyInfo

Words = NDArray[np.uint64]


def counting_parties(committee: Committee) -> int:
    """Of a semi-honest committee: the fewest parties that decrypt what is counted: two sets of so many have a party in common."""
    return max(committee.threshold + 1, committee.size // 2 + 1)


class OwnShares(ABC):
    """The parties' own shares, made additive: see :class:`keyquorum.schemes.subset_keys.SubsetShares`."""

    def check(self, subset: Subset, scheme: AnyScheme, domain: Domain) -> None:
        """As many parties as decrypt without the others; keys for which there are protocols with additive shares."""
        whole, needed = subset.whole, {subset.whole.threshold + 1, counting_parties(subset.whole)}
        if len(subset.numbers) not in needed:
            self._refuse_number(subset, min(needed))
        if not isinstance(scheme, Scheme):
            self.check_function(whole, scheme)
        self.check_domain(whole, domain)

    def check_number(self, subset: Subset, counted: bool) -> None:
        """Refuses another number of parties than a decryption has, which is ``counted`` or not. Raises ParameterError."""
        whole = subset.whole
        needed = counting_parties(whole) if counted else whole.threshold + 1
        if len(subset.numbers) == needed:
            return
        if not counted:
            self._refuse_number(subset, needed)
        raise ParameterError(
            f"parties {numbers_text(subset.numbers)}: these decryptions are counted, and any two sets of {needed} of the {whole.size} parties have a party that remembers: name {needed}"
        )

    @staticmethod
    def _refuse_number(subset: Subset, needed: int) -> None:
        raise ParameterError(
            f"parties {numbers_text(subset.numbers)}: any {needed} of the {subset.whole.size} parties decrypt without the others: name {needed}"
        )

    def check_function(self, whole: Committee, scheme: AnyScheme) -> None:
        """Refuses keys that are not keys of encryption. Raises ParameterError. The default refuses all."""
        raise ParameterError(f"a key of {scheme.title}: {whole.protocol} uses keys of encryption without the others: leave out --parties")

    @abstractmethod
    def check_domain(self, whole: Committee, domain: Domain) -> None:
        """Refuses secrets over a domain. Raises ParameterError."""

    def load(self, folder: Path, info: KeyInfo, subset: Subset, party: int, count: int | None) -> tuple[str, list[ShareVector]]:
        """The additive shares of the first ``count`` vectors; there is no other sharing to name."""
        vectors = holding_of(folder, info).vectors
        self.check(subset, scheme_of(info), Domain.parse(vectors[0].domain))
        made: list[ShareVector] = []
        own = load_shares(folder, info, subset.numbers[party], count)
        try:
            for secret, share in zip(vectors, own, strict=False):
                made.append(ShareVector.from_words(self.additive(subset, party, share.words, Domain.parse(secret.domain))[None, :]))
        except BaseException:
            for share in made:
                share.wipe()
            raise
        finally:
            for share in own:
                share.wipe()
        return "", made

    @abstractmethod
    def additive(self, subset: Subset, party: int, words: Words, domain: Domain) -> Words:
        """The additive share [length] of a member, from its share [parts, length] in the committee."""

    def sharing(self, folder: Path, info: KeyInfo) -> str:
        """None but that of the key itself."""
        return ""


class LagrangeShares(OwnShares):
    """Shares of Shamir's scheme, each times its Lagrange coefficient."""

    def check_domain(self, whole: Committee, domain: Domain) -> None:
        if domain.prime is None:
            raise ParameterError(
                f"{whole.protocol} shares over prime fields alone, and this set is modulo 2^{domain.bits}: take one of {whole.protocol}"
            )

    def additive(self, subset: Subset, party: int, words: Words, domain: Domain) -> Words:
        points = [number + 1 for number in subset.numbers[: subset.whole.threshold + 1]]
        if party >= len(points):
            return np.zeros(words.shape[1], np.uint64)
        return mulmod_scalar(np.ascontiguousarray(words[0]), lagrange(points, party, domain.modulus), domain.modulus)


class ReplicatedShares(OwnShares):
    """Summands of replicated sharing: each goes to the first member that holds it."""

    def check_function(self, whole: Committee, scheme: AnyScheme) -> None:
        # Two parties evaluate with additive shares of bits.
        pass

    def check_domain(self, whole: Committee, domain: Domain) -> None:
        if domain.prime is not None and domain.bits > 64 and not PROTOCOLS[SUBSET_PROTOCOL].wide_fields:
            raise ParameterError(
                f"{SUBSET_PROTOCOL}, by which parties go on without the others, has no shares modulo primes of {domain.bits} bits: take all parties, leave out --parties"
            )

    def additive(self, subset: Subset, party: int, words: Words, domain: Domain) -> Words:
        can, whole = subset.whole.capabilities, subset.whole
        held = [can.held(number, whole.size, whole.threshold) for number in subset.numbers]
        before = {summand for numbers in held[:party] for summand in numbers}
        total = np.zeros(words.shape[1], np.uint64)
        for row, summand in zip(words, held[party], strict=True):
            if summand in before:
                continue
            if domain.prime is None:
                total += row
            else:
                total, old = addmod(total, np.ascontiguousarray(row), domain.modulus), total
                wipe(old)
        if domain.prime is None and domain.bits < 64:
            total &= np.uint64((1 << domain.bits) - 1)
        return total


def own_shares(whole: Committee) -> OwnShares | None:
    """How parties of a committee go on without the others from their own shares; None where `keyquorum share` makes shares for that, or nothing does."""
    if not decrypts_apart(whole):
        return None
    return ReplicatedShares() if whole.capabilities.sharing == "replicated" else LagrangeShares()


__all__ = ["LagrangeShares", "OwnShares", "ReplicatedShares", "counting_parties", "own_shares"]
