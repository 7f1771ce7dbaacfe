"""Whether a committee's shares of a key for SEAL are those of the secret of its public key (b, a), b = -(a s + f e). Nothing of the key is opened.

1. From its shares of s every party computes shares of e = -(b + a s) / f modulo each prime, alone.
2. :data:`TESTS` masks are stored in every domain: the same integers (:mod:`keyquorum.sharing.numbers.lift`).
3. All parties toss a seed, which determines for each test a random subset of the 2 N entries of (s, e). Every domain opens the sum of the subset, a mask and an offset.
4. What is opened must be residues of one integer in [0, R), where R bounds the sums of right shares. The first primes, whose product is above R, determine it, and all others must agree.

**Soundness.** All shares and masks of all domains are fixed when the seed is tossed, and openings are what the shares of the honest parties determine. Take an entry j that is not the same integer d, |d| < R, in all
domains, and any subset of the other entries. If the test passed with j and without it, the difference of the two integers would be such a d. So at most one of the two passes, a test passes with at most 1/2, and all
pass with 2^-TESTS, whatever the masks are. Who sees the seed first may break off and have the test repeated, so all runs of a key together count: 2^-41. After it s' and e' are integers below R, with a s' + f e' = -b modulo Q, the product of all primes. So are those of the true key. Their differences (x, y) are below 2 R, with
a x + f y = 0 modulo Q, and x = 0 gives y = 0. For a that is uniform and k primes the expected number of other pairs is below 2^(k - N) if Q >= 128 R^2 N: let x be zero in a set Z of the slots of its transforms, so that y is zero
there too. Both are in an ideal of norm V, the product of the primes of Z. Coefficients x != 0 have a field norm of at most (2 R sqrt(N))^N, which V divides, and points of the ideal are at least V^(1/N) apart. So there are at
most (8 R sqrt(N))^N / V of each, and a x takes a given value with V / Q^N. The sum over all Z of (8 R sqrt(N))^(2N) / (V Q^N) is below 2^k (64 R^2 N / Q)^N, as the sum of 1 / V is prod(1 + 1/q)^N, and each q is above 2 N. a is the
expansion of a seed that the parties tossed, and it has other pairs or not whatever anybody chooses afterwards. :func:`check_fit` refuses sets with a shorter Q.

**What it reveals.** A sum of small numbers under a mask that t parties know but for a sum of four uniform numbers. The distance from independence is that of tests of lifted values (:mod:`keyquorum.sharing.numbers.lift_tests`,
``Source/core/src/budget.rs``). :func:`check_fit` adds that of all runs that a key has (:data:`.FIT_RUNS`) to that of the generation of the key, by the committee that made it, and refuses what is above the budget. Whether a test fails depends on what is opened, and on what
corrupted parties changed, which they know. So honest parties must hold shares of one epoch: shares of an older one are other multiples of the secret, and sums of these under short masks would tell of it. Parties compare epochs before.

Committees that follow the protocol find faults so, such as a damaged or foreign share. Where parties may be malicious the shares of the honest ones count: another share of a corrupted party is found when sums are opened.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import LIFT_TESTS, CheckError, budget_lift_tests
from keyquorum.dsl import ShareVector
from keyquorum.fhe import _arith
from keyquorum.fhe.seal_format import Ciphertext, read_public_key
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Segment
from keyquorum.programs.signatures import lift_test, sum_inputs
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.sharing.numbers import kind_of, numbers_of
from keyquorum.sharing.numbers.lift import LIFT_BITS, LiftMasks
from keyquorum.sharing.shares import Run, Shares

from .budget import NOISE_BITS, TOTAL, leaks
from .key import SealKeyInfo
from .phases import shares_of_phase

Ints = NDArray[np.int64]

TESTS: int = LIFT_TESTS + (FIT_RUNS - 1).bit_length()
"""Wrong shares pass with 2^-45, and in some run of a key with 2^-41."""
MOST_PARTIES = 256
"""Parties of a session, at most."""


def bound(committee: Committee, degree: int) -> int:
    """R: sums of right shares with their mask and offset are below it."""
    kind = kind_of(committee)
    return (kind.summands(committee) or committee.threshold + 1) * (1 << kind.mask_bits(committee)) + 2 * _offset(degree)


def _offset(degree: int) -> int:
    return 2 * degree << NOISE_BITS


def generation_leaks(info: SealKeyInfo, committee: Committee) -> float:
    """Distance from independence of what was opened when the key was made, by the committee that its metadata name, and not by the ``committee`` that has it now. Raises ParameterError for metadata that name none."""
    parameters = info.parameters
    if info.protocol not in COMMITTEES or not 0 < info.threshold < info.parties <= MOST_PARTIES:  # metadata of another committee
        raise ParameterError(f"its metadata name {info.parties} parties of {info.protocol}, which no committee is: make a new key")
    made_by = replace(committee, protocol=info.protocol, threshold=info.threshold, parties=committee.parties[:1] * info.parties)
    polynomials = 1 + parameters.levels * (info.relin + len(info.galois_elements))
    return leaks(made_by, parameters.ring_degree * (1 + polynomials), kind_of(made_by).mask_bits(made_by), LIFT_BITS)


def check_fit(info: SealKeyInfo, committee: Committee) -> None:
    """Refuses keys and committees without this test. Raises ParameterError."""
    parameters, n = info.parameters, info.parameters.ring_degree
    if committee.capabilities.macs:
        raise ParameterError(f"{committee.protocol}: shares with MACs are not tested against the public key: their MACs show every change")
    q, least = math.prod(parameters.coeff_modulus), 128 * bound(committee, n) ** 2 * n
    if q < least:
        raise ParameterError(
            f"{parameters.name}: its primes have {q.bit_length()} bits together, and a test of shares against the public key takes {least.bit_length()}: restore backups, or make a new key with more primes"
        )
    made = generation_leaks(info, committee.whole)
    tests = math.sqrt(FIT_RUNS * TESTS / LIFT_TESTS) * budget_lift_tests(2 * n, 1 << kind_of(committee).mask_bits(committee))
    rest = TOTAL - kind_of(committee).attempts()
    if tests >= rest:
        raise ParameterError(
            f"{parameters.name}: among {committee.size} parties masks are too short for tests of shares against the public key: restore backups, or make a new key"
        )
    if made + tests >= rest:
        raise ParameterError(
            f"{parameters.name}: {FIT_RUNS} tests of shares against the public key, with the generation of the key, are 2^{math.log2(made + tests):.1f} away from independent of it, above the budget: make a key with fewer Galois keys"
        )


def prove_fit(context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector], public: bytes, begun: Callable[[], object]) -> None:
    """Tests this committee's shares of the secret modulo all primes; every party calls this. ``public``: the file of the public key, of which the parties compared the hash; ``begun``: called before anything is opened.

    Rounds: those of joint integers, or 1 a prime for inputs of masks; those of a toss, and of an opening a prime. Bytes: TESTS elements a prime and opening.
    Raises :class:`.CheckError` if the shares do not fit, and what :func:`check_fit` raises."""
    check_fit(info, context.committee)
    parameters, n = info.parameters, info.parameters.ring_degree
    primes, key = parameters.coeff_modulus, read_public_key(parameters, public)
    pair = Ciphertext(len(primes), np.stack([key.c0, key.a]), True, 1.0, 1)
    f = parameters.plain_modulus if parameters.scheme == "bgv" else 1
    with ExitStack() as wiping:
        with context.phase("masks", len(primes)) as step, ExitStack() as drawn:
            masks = numbers_of(Run(context)).masks(TESTS)
            drawn.callback(masks.wipe)
            files: list[tuple[Shares, int]] = []
            for index, q in enumerate(primes):
                x = wiping.enter_context(shares_of_phase(context, info, shares[index], index, pair, -pow(f, -1, q) % q))
                files.append((x, _append(x, masks)))
                step()
        with context.phase("tests", len(primes)) as step:
            begun()
            subsets, opened = _subsets(context.session.toss(64), 2 * n), list[list[int]]()
            for x, at in files:
                call = lift_test(size=2 * n, tests=TESTS, offset=_offset(n), x=Segment(0, 2 * n), s=Segment(at, TESTS))
                opened.append([int(v) % x.runs.modulus for v in x.run(call, public=[subsets])])
                step()
    judge(opened, primes, bound(context.committee, n))


def _append(x: Shares, masks: LiftMasks) -> int:
    """Stores the masks behind s and e; returns the position of the first."""
    at = x.length
    if masks.append_to(x) is None:
        x.run(sum_inputs(contributors=masks.contributors, size=TESTS), masks.private(Segment(0, TESTS)))
    return at


def _subsets(toss: bytes, size: int) -> Ints:
    """A word 0 or 1 for each entry, for one test after another."""
    stream = hashlib.shake_256(b"keyquorum subsets of shares of a key" + toss).digest((TESTS * size + 7) // 8)
    return np.unpackbits(np.frombuffer(stream, dtype=np.uint8), count=TESTS * size).astype(np.int64)


def judge(opened: Sequence[Sequence[int]], primes: Sequence[int], most: int) -> None:
    """Refuses sums, [primes, tests], that are not residues of integers in [0, ``most``). Raises :class:`.CheckError`."""
    count = next(k for k in range(1, len(primes) + 1) if math.prod(primes[:k]) >= most)
    first = primes[:count]
    integers = _arith.crt_centred(np.array(opened[:count], dtype=np.uint64), first) % math.prod(first)
    if not all(v < most and all((v - row[i]) % q == 0 for q, row in zip(primes, opened, strict=True)) for i, v in enumerate(integers)):
        raise CheckError(
            "the shares of the parties together are not those of the secret of the public key: a share is damaged or of another key, or a party cheats: see which files changed, and let that party recover"
        )


__all__ = ["TESTS", "bound", "check_fit", "generation_leaks", "judge", "prove_fit"]
