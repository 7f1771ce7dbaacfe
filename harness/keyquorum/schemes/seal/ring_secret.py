"""The secret of a key of BFV or BGV modulo 2^64, which a committee with MACs makes of its shares modulo primes, where another committee without such shares, or without its MACs, passed the key on.

It is the lift of key generation (:mod:`keyquorum.sharing.numbers.proven`), which begins in other domains:

1. Every party inputs masks r modulo some primes, whose product M is above all masked values. c = s + 2 + r is opened modulo each of them: the residues determine c.
2. Every party inputs r modulo 2^64 too: s = c - 2 - r there.
3. Tests of lifted values show that s is the same short integer modulo all primes of the key and modulo 2^64, before anybody computes with it. There are :data:`.TESTS` of them. Who sees the subsets first may break off, which burns a MAC key,
   but that of a committee that has no key yet: another new committee tries again. So all tries of a key together pass something wrong with 2^-41.

**No abort depends on a bit of the secret.** Shares of s enter all that is opened linearly: c, and sums of subsets of s under masks. Whatever members changed before (a summand, an input, a share modulo one prime) adds a number that they know to
c or to a sum. Let this number be K modulo M: then c is s + 2 + r + K, reduced. So opened values, and whether a test fails, are functions of s + r, of sums of s under masks, and of numbers that the adversary knows. That s is
short, or a trit, is not tested by products, which would fail or pass with a bit of the secret.

**What is opened** leaks as in key generation: less than the masks and tests of a generation with one polynomial. But the secret is not new. So a try counts as a test of shares against the public key (:data:`.FIT_RUNS`), which opens more,
before c is opened (:class:`keyquorum.plans.epochs.tries.Tries`).

**What passes** is one short integer in all domains, and not always the one of before: with two primes q1 and q2, k q2 modulo q1 alone is k q2 modulo their product, a short integer for small k. Members that add it do no more than
those that add a short integer in all domains.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from keyquorum._engine import BUDGET_BITS, LIFT_TESTS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.sharing.numbers import ProvenNumbers, kind_of
from keyquorum.sharing.numbers.lift import LIFT_BITS
from keyquorum.sharing.shares import Run, Shares

from .budget import TOTAL
from .fit import TESTS, generation_leaks
from .key import SealKeyInfo
from .ring import RING

TRIT_BITS = 1
"""The secret is below 2^1 in absolute value."""


def opened_in(primes: Sequence[int]) -> int:
    """The number of primes, the first ones, in which masked values are opened: their product has room for the masks of key generation. Sets have two primes or more, and with MACs each has 36 bits or more."""
    return next(k for k in range(1, len(primes) + 1) if math.prod(primes[:k]).bit_length() > LIFT_BITS + 1)


def leaked(info: SealKeyInfo, committee: Committee) -> float:
    """Distance from independence of what all tries of a key together open."""
    kind = kind_of(committee)
    return math.sqrt(FIT_RUNS * TESTS / LIFT_TESTS) * kind.lift_leaks(
        committee, info.parameters.ring_degree, kind.mask_bits(committee), LIFT_BITS, 1 << TRIT_BITS
    )


def check_ring_secret(info: SealKeyInfo, committee: Committee) -> None:
    """Refuses keys of which all tries together, with the generation of the key, would be above the budget. Raises ParameterError."""
    found = leaked(info, committee) + generation_leaks(info, committee)
    rest = TOTAL - kind_of(committee).attempts()
    if found >= rest:
        raise ParameterError(
            f"{info.parameters.name}: what is opened to make shares of the secret over {RING}, with the generation of the key, is 2^{math.log2(found):.1f} away from independent of it, above what 2^-{BUDGET_BITS:.0f} "
            f"leaves: choose a committee without MACs, or make a new key"
        )


def make_ring_secret(context: PartyContext, info: SealKeyInfo, held: Sequence[Shares]) -> Shares:
    """Shares of the secret modulo 2^64, of which the caller is the owner, from those modulo all primes, to which masks are appended. Every party calls this, after the run was counted.

    Rounds: of an input and an opening for each of the first primes; of an input modulo 2^64; of inputs of masks in every domain, a toss, and an opening in every domain; of a comparison. Raises
    :class:`.CheckError` if the secret is not the same short integer everywhere; the MAC key is burned if tests have begun."""
    primes, ring = info.parameters.coeff_modulus, Run(context).ring(RING.bits)
    count = opened_in(primes)
    with ProvenNumbers(Run(context)).lift_held(held[:count], TRIT_BITS, TESTS) as lifted:
        proof = lifted.prove([ring], held=held[count:])
        context.session.compare("secret in the ring", hashlib.sha256(lifted.opened.tobytes() + proof).digest())
        return ring.shares(lifted.over(ring).head(info.parameters.ring_degree), secret=info.parameters.ring_degree)


__all__ = ["check_ring_secret", "leaked", "make_ring_secret", "opened_in"]
