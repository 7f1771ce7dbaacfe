"""Private numbers that all parties input and prove: for committees with MACs. What a party gave is checked before it is used, and tests show that it
is the same in every domain (:mod:`keyquorum.sharing.numbers.lift_tests`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import CheckError, budget_attempts, budget_lift, budget_lift_tests, budget_residues
from keyquorum.dsl import wiped_on_failure
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.model.errors import ProgramError
from keyquorum.model.needs import MB
from keyquorum.programs import Segment
from keyquorum.programs.signatures import sample_flooding, sample_ternary, sum_inputs, trit_inputs
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.openings import WORDS
from keyquorum.sharing.randomness import uniform_below, uniform_trits, wipe
from keyquorum.sharing.shares import DomainRun, Shares
from keyquorum.sharing.variants import Section

from .base import PrivateNumbers
from .flooding import Flooding, FloodingPolicy
from .lift import MERSENNE, Lifted, LiftMasks
from .lift_tests import PIECE, TESTS, LiftedDomain, LiftTests, mask_width, pieces_of
from .rounding import InputBits, InputMasks
from .uniform_noise import UniformNoise, uniform_noise

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

ELEMENTS = 200
"""Elements that a party gives MACs to for a lifted value: those of the random bits of six bits of noise, over a field."""
WORD = 8
PACKED_WORDS = 49
"""Words of 64 bits with MACs."""
BATCHES = 110 * MB
"""Batches of products with MACs, of elements and of bits (Source/protocols/src/authenticated/preprocessing.rs)."""


class ProvenNumbers(PrivateNumbers):
    """Numbers of all parties, with proofs. Every bit has a MAC, which bounds the samples at a time."""

    samples = samples_of_products = 1 << 14
    element_words, bits_in_ring, defers_checks, least_receivers = WORDS, True, True, 2
    one_ring = True
    one_time_tables = "with MACs are not made"
    least_prime_bits = 36  # a wrong value passes with 2^-34 then, and a warning says so
    inputs_masks_twice = True  # a rounding with summands is semi-honest anyway: see of_summands

    @property
    def first_domain(self) -> DomainRun:
        """A prime field, over which the proofs are."""
        return self.run.field(MERSENNE)

    def ternary(self, size: int) -> Shares:
        """s = sum of u_p modulo 3, uniform if one party is honest: all see that the u_p are trits, and products with MACs add them up. Raises
        :class:`.CheckError`, which names a party that gave something else. Rounds and bytes are those of `trit_inputs` and of `sample_ternary` with
        stored trits."""
        runs, contributors = self.first_domain, self.committee.size
        private = _proven_trits(size)
        with runs.shares() as trits:
            try:
                opened = trits.run(trit_inputs(contributors=contributors, N=size), private)
            finally:
                wipe(private)
            _judge_trits(opened.reshape(contributors, -1))
            trits.run(sample_ternary(contributors=contributors, N=size, trits="stored", indicators=Segment(0, trits.length)))
            return runs.shares(trits.head(size), secret=size)

    def lift(self, x: Shares, b: int) -> Lifted:
        """The same, with :meth:`.Lifted.prove`."""
        return ProvenLifted(x, b, self.masks)

    def lift_held(self, held: Sequence[Shares], b: int, tests: int) -> ProvenLifted:
        """Values x, -2^b < x < 2^``b``, that this committee holds modulo each of several primes, whose product has room for the masks, for other domains. Whoever made them: they are shown to be the same integers in all
        domains (:meth:`.ProvenLifted.prove`). ``tests``: sums that show it, of each piece."""
        return ProvenLifted(held[0], b, self.masks, held[1:], tests)

    @classmethod
    def lift_leaks(cls, committee: Committee, values: int, mask_bits: int, prime_bits: int, bound: int) -> float:
        """Sums of the values are opened as well, which test that they are the same in all domains; and there are pads of MACs."""
        opened = math.hypot(
            budget_lift(values, mask_bits), budget_lift_tests(values, mask_width(committee.size, (1 << prime_bits) - 1, bound))
        )  # fmt: skip
        return opened + budget_residues(ELEMENTS * values, committee.size - 1, prime_bits)

    @classmethod
    def attempts(cls, prime_bits: int | None = None) -> float:
        """Of MACs, and of tests of the lift."""
        return budget_attempts() if prime_bits is None else budget_attempts(prime_bits)

    @classmethod
    def packed_words(cls, committee: Committee) -> int:
        """Every bit has a MAC."""
        return PACKED_WORDS

    @classmethod
    def test_bytes(cls, committee: Committee, values: int, domains: int) -> int:
        """The values in all domains, which are tested together; rows of subsets as words, and on their way to the engine; batches of products with
        MACs."""
        return BATCHES + WORD * (committee.share_parts * values * domains + 3 * TESTS * min(values, PIECE))

    def flooding(self, policy: FloodingPolicy, degree: int) -> Flooding:
        """Random bits of the protocol, the same modulo every prime, which tests show."""
        return ProvenNoise(self, self.flooding_distribution(policy, degree, self.committee.shape), degree)

    @classmethod
    def flooding_distribution(cls, policy: FloodingPolicy, degree: int, shape: CommitteeShape) -> UniformNoise:
        """The narrowest that keeps the advantage of the policy. It is bounded. Raises PolicyError where there is none."""
        return uniform_noise(policy.bits, policy.decryptions, policy.noise_bits, degree, shape.parties, shape.threshold)

    @classmethod
    def stored(cls, section: Section) -> Section:
        """Shares with MACs have all bits of their ring."""
        return Section(section.rows, 64, WORDS)

    @classmethod
    def stored_parts(cls, group: RoundingGroup) -> int:
        """Share and MAC."""
        return WORDS

    @classmethod
    def begin(cls, group: RoundingGroup, origins: Sequence[Origin], purpose: bytes) -> list[Origin]:
        """Tests of the MAC key that the items are under. Raises ProgramError for items without."""
        if not origins:
            raise ProgramError("preprocessing with MACs lacks the test of their keys: take it from a pool, or make it")
        return list(origins)

    @classmethod
    def mark(cls, shares: Shares, origins: Sequence[Origin], what: str) -> None:
        """Shares with MACs have the origins of what they were put together from."""
        shares.file.take_origins(origins)

    @classmethod
    def origins_of_all(cls, purpose: str, runs: Sequence[Sequence[Origin]]) -> list[Origin]:
        """All runs of a session are under one MAC key: the origins of the first one."""
        return list(runs[0])

    @classmethod
    def of_summands(cls, runs: DomainRun, summands: Words) -> Shares:
        """New sharings, which every party inputs. MACs do not follow the scaling of a share, so nothing ties what a party gives to its share of the
        key: decryptions in two domains are semi-honest, and keys warn of them (:meth:`.SealScheme.warnings`). One round."""
        context, shares = runs.context, runs.shares()
        private = summands[0].view(np.int64).copy()
        try:
            with context.phase("reshare"), wiped_on_failure(shares.file):
                shares.run(sum_inputs(contributors=context.parties, size=private.size), private)
        finally:
            wipe(private)
        return shares

    @classmethod
    def rounding_bits(cls, group: RoundingGroup, size: int, vectors: int) -> InputBits:
        """Bits of all parties, without a proof: see :meth:`of_summands`."""
        return InputBits(group, size, vectors)

    @classmethod
    def rounding_masks(cls, group: RoundingGroup, size: int, length: int, more: int = 0) -> InputMasks:
        """Masks of all parties, without a proof: see :meth:`of_summands`."""
        return InputMasks(group, size, length, more)


class ProvenNoise(Flooding):
    """Noise of random bits of the protocol, which no party inputs (:mod:`.uniform_noise`).

    1. `sample_flooding`: random bits, put together to short pieces of the noise. At a level of one prime that is all: the pieces are sampled there.
    2. For several primes the pieces are sampled over :attr:`ProvenNumbers.first_domain`, and lifted. Random subset sums prove that they are the same
       integers modulo every prime before anything is computed with them. The masks of the lift are private inputs that nothing proves, as in key
       generation; the tests concern what was made with them.

    `flood` adds the pieces up, to the phase, and opens the sum to the receiver. A failed test, or a session that ends from the toss of the subsets
    on, burns the MAC key."""

    where = "stored"

    def __init__(self, numbers: ProvenNumbers, noise: UniformNoise, size: int) -> None:
        self.pieces, self.width = noise.pieces, noise.width
        self._numbers, self._piece_bits, self._count = numbers, noise.piece_bits, noise.pieces * size
        self._sampler = sample_flooding(size=size, fine=noise.fine, wide=noise.wide, width=noise.width)

    def store(self, files: Sequence[Shares]) -> list[Segment | None]:
        """See :meth:`.Flooding.store`. Rounds and bytes: those of `sample_flooding`, and for several primes of `lift_open`, of `lift_close` for each,
        and of the tests. Raises :class:`.CheckError` if the pieces are others modulo some prime; the MAC key is burned then."""
        if len(files) == 1:
            place = Segment(files[0].length, self._count)
            files[0].run(self._sampler)
            return [place]
        with self._numbers.first_domain.shares() as pieces:
            pieces.run(self._sampler, appends="pieces")
            with ProvenLifted(pieces, self._piece_bits, self._numbers.masks) as lifted:
                return [*lifted.prove_in(files)]


class ProvenLifted(Lifted):
    """Values that are lifted to all domains at once, and tested before anything is computed with them."""

    def __init__(self, x: Shares, b: int, draw: Callable[[int], LiftMasks], more: Sequence[Shares] = (), tests: int | None = None) -> None:
        super().__init__(x, b, draw, more)
        self._tests_each = tests
        self._alone = x.layout.first.length
        self._cuts = pieces_of(x.length, self._alone)
        self._tested: dict[DomainRun, Shares] = {}

    def _begin(self, wiping: ExitStack) -> None:
        super()._begin(wiping)
        tests = LiftTests(self._x.runs.context, self._cuts, min(self._modulus, MERSENNE), 1 << self._b, len(self._files), self._tests_each)
        self._tests = wiping.enter_context(tests)
        for file in self._files:
            self._test_held(file)

    def _test_held(self, shares: Shares) -> None:
        """Has shares tested in whose domain x is already."""
        self._tests.require_unused()
        self._tests.input_masks(LiftedDomain(shares, len(self._cuts)))

    def prove(self, whole: Sequence[DomainRun], first_segment_in: Sequence[DomainRun] = (), held: Sequence[Shares] = ()) -> bytes:
        """See :meth:`.Lifted.prove`. ``held``: shares of x over further domains, where it is already: they are tested as well. Raises :class:`.CheckError` if a value is another one in some domain; the MAC key is burned then; ProgramError
        if it was called before. Rounds: those of `lift_close` in every domain, and of the tests."""
        lifted: dict[DomainRun, Shares] = {}
        with self._x.runs.context.phase("lift test"):
            for file in held:
                self._test_held(file)
            for count, domains in ((self._count, whole), (self._alone, first_segment_in)):
                for runs in domains:
                    lifted[runs] = self._wiping.enter_context(self._empty(runs))
                    self._bring(lifted[runs], count)
            opened = self._tests.run()
        self._tested = lifted
        return opened

    def prove_in(self, files: Sequence[Shares]) -> list[Segment]:
        """The same for shares over other domains, to which x is appended. Returns where it is."""
        places = [Segment(file.length, self._count) for file in files]
        for file in files:
            self._bring(file, self._count)
        self._tests.run()
        return places

    def _bring(self, shares: Shares, count: int) -> None:
        """Appends the first ``count`` values to shares over another domain, which the tests will concern."""
        self._tests.require_unused()
        start = shares.length
        self._close(shares, count)
        self._tests.input_masks(LiftedDomain(shares, sum(cut.slice.stop <= count for cut in self._cuts), start))

    def over(self, runs: DomainRun) -> Shares:
        """What was tested over this domain. Raises :class:`.ProgramError` for a domain in which nothing was tested."""
        if runs not in self._tested:
            raise ProgramError(f"values that were lifted to {runs.domain} are used before they are tested there: call prove first")
        return self._tested[runs]


def _proven_trits(size: int) -> Ints:
    """The private input of `trit_inputs` for fresh uniform trits, over the field in which secrets are made: 7 * size words in [0, 2^61 - 1). Its
    masks x and y are uniform there, and used once: the program opens e = r u + x. Arrays that held trits or masks on the way are wiped."""
    private = np.empty((7, size), dtype=np.int64)
    u, v, x, y, xu, yv, xv = private
    trits = uniform_trits(size)
    np.bitwise_and(trits, 1, out=u)
    np.right_shift(trits, 1, out=v)
    wipe(trits)
    for mask in (x, y):
        drawn = uniform_below(size, MERSENNE)
        mask[:] = drawn
        wipe(drawn)
    np.multiply(x, u, out=xu)
    np.multiply(y, v, out=yv)
    np.multiply(x, v, out=xv)
    return private.reshape(-1)


def _judge_trits(opened: Ints) -> None:
    """Refuses what is not the indicators of a trit: rows of what `trit_inputs` opened, one a contributor."""
    for party, words in enumerate(opened):
        if words.any():
            raise CheckError(f"party {party} gave no trits for the secret: it cheats, make the key without it")
