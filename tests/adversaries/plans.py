"""What the adversaries attack: single programs, and the plan of an exact decryption on a toy key. Shares are dealt before the plan begins."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from keyquorum.backends.base import ONCE, ProgramOutput
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext
from keyquorum.model.committee import Committee, Party
from keyquorum.model.protocols import PROTOCOLS, Protocol, default_threshold
from keyquorum.parties.context import PartyContext
from keyquorum.plans.decrypt import Rounding, decrypt
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.programs import Call
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.seal.decrypt import SealDecrypted
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.schemes.seal.phases import exact_summands
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.schemes.seal.ring import RING, margin
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import ContributedNumbers
from keyquorum.sharing.rounding import _carry, high_words, rounding_length, scaled_words
from keyquorum.sharing.variants import Variant
from numpy.typing import NDArray

from tests.fhe.dealer import tiny
from tests.programs.costs import PROGRAMS
from tests.programs.running import centred
from tests.protocols import Q60

from .changes import Deviation
from .runner import Begin, Plan

Ints = NDArray[np.int64]
Q = Q60
L, J, SIZE = 8, 3, 8
FIELD_OF_TOYS = f"F_{Q}"
"""Noise bits, message bits and length of the vectors of single programs."""


def dealt(session: Any, protocol: str, domain: str, threshold: int | None, dealer: int, values: Ints) -> ShareVector:
    """Shares of ``values`` that an honest party deals."""
    engine = session.engine(protocol, domain, "deal", threshold, None)
    shares = ShareVector()
    shares.write(engine, engine.export(engine.input(dealer, len(values), values if session.party == dealer else None)))
    return shares


@dataclass(frozen=True)
class Single:
    """A single program: its file, arguments, domain, the clear values of its share file, private words of each contributor, and its output at those who get one."""

    path: Path
    arguments: tuple[int | str, ...]
    protocol: str
    parties: int
    threshold: int | None
    domain: str
    stored: tuple[int, ...]
    contributors: int
    wanted: tuple[int, ...]
    receiver: int | None = None

    def __call__(self, session: Any, deviation: Deviation, begin: Begin, honest: int) -> Ints | None:
        """One party."""
        if PROTOCOLS[self.protocol].macs:
            session.set_mac_key(os.urandom(16))
        shares = dealt(session, self.protocol, self.domain, self.threshold, honest, np.array(self.stored, dtype=np.int64))
        begin()
        deviation.stored(shares)
        private: Ints | None = np.random.default_rng().integers(0, 1 << L, SIZE) if session.party < self.contributors else None
        private = deviation.words("input", private)
        words = [str(word) for word in self.arguments]
        io = ProgramIO(private_inputs=np.empty(0, dtype=np.int64) if private is None else private, public_inputs=[], shares=shares)
        engine = session.engine(self.protocol, self.domain, self.path.stem, self.threshold, None)
        run_program(engine, self.path, words, io)
        got = [*io.binary_outputs, *(io.personal_outputs if self.receiver in (None, session.party) else [])]
        return np.concatenate(got) if got else None

    def right(self, results: Mapping[int, Ints | None]) -> bool:
        """Whether honest parties have the right output."""
        modulus = 1 << int(self.domain[3:]) if self.domain.startswith("Z2^") else int(self.domain[2:])
        wanted = centred(self.wanted, modulus).tolist()
        return all(
            centred(words.tolist(), modulus).tolist() == wanted
            for party, words in results.items()
            if words is not None and self.receiver in (None, party)
        )


def toy(protocol: str, parties: int, domain: str, threshold: int | None = None) -> Plan:
    """Products, inner products and openings."""
    return toy_of(protocol, parties, domain, (*range(3, 3 + SIZE), *(5 * i + 1 for i in range(SIZE))), threshold)


def toy_of(protocol: str, parties: int, domain: str, stored: Sequence[int], threshold: int | None = None) -> Plan:
    """The same of these values of two vectors."""
    a, b = stored[:SIZE], stored[SIZE:]
    wanted = [*(x * y * y for x, y in zip(a, b, strict=True)), sum(x * y for x, y in zip(a, b, strict=True))]
    path = Path(__file__).with_name("toy.mpc")
    single = Single(path, (SIZE,), protocol, parties, threshold, domain, (*a, *b), 0, tuple(wanted))
    return Plan(f"toy of {protocol}, {parties} parties", parties, single, single.right)


def rounding(protocol: str, parties: int, receiver: int | str = "all") -> Plan:
    """The rounding of one LWE ciphertext after another, masks included, modulo 2^64."""
    messages, rng = [i % (1 << J) for i in range(SIZE)], np.random.default_rng(5)
    noise = rng.integers(-(1 << (L - 1)) + 1, 1 << (L - 1), SIZE).tolist()
    z = tuple((m << L) + e + (1 << (L - 1)) for m, e in zip(messages, noise, strict=True))
    contributors = parties if PROTOCOLS[protocol].dishonest_majority else 2
    wanted = tuple(m << (64 - J) for m in messages)
    to = None if receiver == "all" else int(receiver)
    single = Single(
        PROGRAMS / "round_ltz_circuit.mpc", (contributors, SIZE, L, J, receiver), protocol, parties, None, "Z2^64", z, contributors, wanted, to
    )
    return Plan(f"rounding of {protocol}, {parties} parties, to {receiver}", parties, single, single.right)


def noise_check(protocol: str, parties: int, within: bool) -> Plan:
    """The check of noise of one ciphertext, of which one coefficient is too large, or none."""
    noise = np.random.default_rng(6).integers(-(1 << (L - 2)), 1 << (L - 2), SIZE)
    if not within:
        noise[3] = 1 << (L - 2)
    single = Single(
        PROGRAMS / "noise_check.mpc", (1, SIZE, L), protocol, parties, None, "Z2^64", tuple((noise + (1 << (L - 1))).tolist()), 0, (int(within),)
    )
    return Plan(f"check of noise of {protocol}, {'within' if within else 'too large'}", parties, single, single.right)


class DeviatingBackend(Embedded):
    """The embedded engine of a party that takes other inputs."""

    def __init__(self, session: Any, deviation: Deviation) -> None:
        super().__init__(session)
        self.deviation = deviation

    def run(self, protocol: str, domain: str, call: Call, **options: Any) -> ProgramOutput:
        """See :meth:`.Embedded.run`."""
        private = self.deviation.words("input", options.pop("private", None))
        public = [word for word in (self.deviation.words("public", vector) for vector in options.pop("public", ())) if word is not None]
        if options.get("shares") is not None:
            self.deviation.stored(options["shares"])
        self.deviation.opening_masks(options.get("mode", ONCE).masks)
        return super().run(protocol, domain, call, private=private, public=public, **options)


def toy_set(degree: int = 16) -> ParameterSet:
    """An insecure set of fewer coefficients than SEAL has: only the plan sees it."""
    parameters = replace(tiny("bfv", 2), name="toy-bfv")
    object.__setattr__(parameters, "ring_degree", degree)  # after the checks of the set
    return parameters


def pool_of_all(context: PartyContext, variant: Variant, count: int) -> None:
    """Fills the pool, in two pieces."""
    pool = Pool(context, pool_group(context), variant)
    try:
        pool.fill(count, -(-count // 2))
    finally:
        pool.close()


class OnDealtKey:
    """A plan on a key that an honest party deals. ``pooled``: a pool is filled and used, in a folder of its own."""

    committee: Committee
    secret: tuple[int, ...]
    pooled: bool
    seeds = False
    """Whether messages are changed while shares are dealt, when seeds of sets of parties are sent, and not afterwards."""

    def sharings(self) -> list[tuple[str, str]]:
        """Protocol and domain of each share file of the key."""
        raise NotImplementedError

    def info(self) -> KeyInfo:
        """Metadata of the key."""
        raise NotImplementedError

    def result(self, context: PartyContext, shares: list[ShareVector]) -> list[int] | None:
        """What the receiver gets."""
        raise NotImplementedError

    def __call__(self, session: Any, deviation: Deviation, begin: Begin, honest: int) -> list[int] | None:
        """One party."""
        if not self.pooled:
            return self._in(self.committee, session, deviation, begin, honest)
        with TemporaryDirectory() as folder:
            return self._in(replace(self.committee, folder=Path(folder)), session, deviation, begin, honest)

    def _in(self, committee: Committee, session: Any, deviation: Deviation, begin: Begin, honest: int) -> list[int] | None:
        if committee.authenticated:
            session.set_mac_key(os.urandom(16))  # of this run alone: a failed check burns it
        secret = np.array(self.secret, dtype=np.int64)
        if self.seeds:
            begin()
        shares = [dealt(session, protocol, domain, committee.threshold, honest, secret) for protocol, domain in self.sharings()]
        if self.seeds:
            begin.end()
        else:
            begin()
        for share in shares:
            deviation.stored(share)
        context = PartyContext(session, committee, backend=DeviatingBackend(session, deviation))
        info = self.info()
        session.compare("key", info.digest)
        found = self.result(context, shares)
        session.compare("end of the decryption", info.digest)
        return found


@dataclass(frozen=True)
class Decryption(OnDealtKey):
    """The plan of an exact decryption of a toy ciphertext."""

    committee: Committee
    parameters: ParameterSet
    receiver: int
    rounding: str
    secret: tuple[int, ...]
    ciphertext: Ciphertext
    wanted: tuple[int, ...]
    pooled: bool = False

    def sharings(self) -> list[tuple[str, str]]:
        """See :class:`OnDealtKey`."""
        return [(self.committee.field_protocol, f"F_{self.parameters.coeff_modulus[0]}")]

    def info(self) -> SealKeyInfo:
        """See :class:`OnDealtKey`."""
        return key_info(self)

    def result(self, context: PartyContext, shares: list[ShareVector]) -> list[int] | None:
        """See :class:`OnDealtKey`."""
        found = self.decrypted(context, self.info(), shares)
        return None if found is None else [int(word) for word in found]

    def decrypted(self, context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector]) -> Sequence[int] | None:
        """The coefficients at the receiver."""
        purpose = "a toy" if self.pooled else ""
        if self.pooled:
            pool_of_all(context, variant_for(context.committee, self.rounding, self.parameters), self.parameters.ring_degree)
        results = decrypt(context, info, list(shares), [self.ciphertext], self.receiver, Rounding(self.rounding), purpose)
        if results is None:
            return None
        assert isinstance(results[0], SealDecrypted) and results[0].coefficients is not None
        return [int(word) for word in results[0].coefficients]

    def right(self, results: Mapping[int, Sequence[int] | None]) -> bool:
        """Whether the receiver, if it is honest, has the message."""
        return all(words is None or tuple(words) == self.wanted for words in results.values())


class InRing(Decryption):
    """The same under a key with MACs, whose secret is shared modulo 2^64 as well: the decryption stays in that ring."""

    def sharings(self) -> list[tuple[str, str]]:
        """See :class:`OnDealtKey`."""
        assert self.committee.ring_protocol is not None
        moduli = self.parameters.coeff_modulus
        return [*((self.committee.field_protocol, f"F_{q}") for q in moduli), (self.committee.ring_protocol, RING)]

    def info(self) -> SealKeyInfo:
        """See :class:`OnDealtKey`."""
        return replace(key_info(self), ring_secret=True)


def key_info(plan: Decryption) -> SealKeyInfo:
    """Metadata of the key of a plan."""
    committee = plan.committee
    return SealKeyInfo(
        key_id="0" * 32, parameters=plan.parameters, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold,
        error_law="cbd", relin=False, galois_elements=(), policy=FloodPolicy(bits=1, decryptions=1, noise_bits=4),
    )  # fmt: skip


class AnyCommittee(Committee):
    """A committee of any protocol, whether users can make one of it or not."""

    @property
    def capabilities(self) -> Protocol:
        """See :class:`.Committee`."""
        return PROTOCOLS[self.protocol]


def committee_of(protocol: str, parties: int, threshold: int | None = None) -> Committee:
    """A committee in this process."""
    members = tuple(Party(i, "in-process", 1, secrets.token_hex(32)) for i in range(parties))
    return AnyCommittee(Path("in-process"), "in-process", protocol, default_threshold(protocol, parties) if threshold is None else threshold, members)


def borders(parameters: ParameterSet, seed: int = 7, kept: int = 0) -> tuple[Ints, Ints, list[int]]:
    """A secret, messages, and phases with noise up to the very borders of rounding, or as far from them as ``kept``."""
    q, t, degree = parameters.coeff_modulus[0], parameters.plain_modulus, parameters.ring_degree
    rng = np.random.default_rng(seed)
    secret, message = rng.integers(-1, 2, degree), rng.integers(0, t, degree)
    most = q // (2 * t) - 1 - kept
    noise = rng.integers(-most, most + 1, degree)
    noise[:4] = most, -most, 0, -1
    return secret, message, [(int(m) * q + t // 2) // t + int(e) for m, e in zip(message, noise, strict=True)]


def encrypted(parameters: ParameterSet, secret: Ints, phase: Sequence[int]) -> Ciphertext:
    """A ciphertext (c0, c1) with c0 + c1 s = phase at the last level, for a small degree or a sparse c1."""
    q, degree = parameters.coeff_modulus[0], parameters.ring_degree
    c1 = [0] * degree
    rng = np.random.default_rng(11)
    for i in rng.choice(degree, min(degree, 16), replace=False).tolist():
        c1[i] = int(rng.integers(0, q))
    product = [0] * degree
    for i, c in ((i, c) for i, c in enumerate(c1) if c):
        for j, s in enumerate(secret.tolist()):
            place, sign = (i + j, 1) if i + j < degree else (i + j - degree, -1)
            product[place] += sign * c * s
    data = np.array([[[(p - x) % q for p, x in zip(phase, product, strict=True)]], [c1]], dtype=np.uint64)
    return Ciphertext(1, data, False, 1.0, 1)


def decryption(
    protocol: str, parties: int, receiver: int = 0, rounding: str = "round_ltz_circuit", pooled: bool = False, parameters: ParameterSet | None = None,
    kept: int = 0,
) -> Plan:  # fmt: skip
    """Messages with noise at the very borders of rounding, and in between. ``kept``: see :func:`borders`."""
    parameters = parameters or toy_set()
    secret, message, phase = borders(parameters, kept=kept)
    committee = committee_of(protocol, parties)
    words, dealt_secret = tuple(int(m) for m in message), tuple(int(s) for s in secret)
    plan = Decryption(committee, parameters, receiver, rounding, dealt_secret, encrypted(parameters, secret, phase), words, pooled)
    name = f"decryption of {protocol}{' with a pool' if pooled else ''}, {parties} parties, to {receiver}"
    return Plan(name, parties, plan, plan.right)


def decryption_in_ring(parties: int, receiver: int = 0, pooled: bool = False) -> Plan:
    """See :class:`InRing`."""
    honest = decryption("mascot", parties, receiver, pooled=pooled, kept=math.ceil(margin(toy_set())))
    assert isinstance(honest.job, Decryption)
    plan = InRing(*(getattr(honest.job, field.name) for field in fields(honest.job)))
    return Plan(f"{honest.name}, in the ring", parties, plan, plan.right)


@dataclass(frozen=True)
class OfInputs(Decryption):
    """The same with random bits that two parties input, modulo 2^k and once more modulo t, as semi-honest committees do: what joint integers take the place of."""

    def decrypted(self, context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector]) -> Sequence[int] | None:
        """See :meth:`Decryption.decrypted`."""
        q, t = self.parameters.coeff_modulus[0], self.parameters.plain_modulus
        group, origins = RoundingGroup.of(context, self.committee.threshold, self.receiver), [shares[0].origins[0]]
        u, _ = exact_summands(group, info, shares[0], [self.ciphertext])
        length = rounding_length(q, t, group.summands)
        low, residues = scaled_words(group, u, q, t, length)
        high = high_words(low, residues, t, length)
        # l and two bits, for three summands
        with group.ring(length + 2).shares(ShareVector.from_words(low)) as ring, group.field(t).shares(ShareVector.from_words(high)) as field:
            ring.derive_origin("ring", origins)
            field.derive_origin("field", origins)
            words = _carry(ContributedNumbers, group, ring, field, length)
        return [int(word) % t for word in words] if context.party == self.receiver else None


def decryption_of_inputs(protocol: str, parties: int, receiver: int = 0) -> Plan:
    """See :class:`OfInputs`."""
    honest = decryption(protocol, parties, receiver).job
    assert isinstance(honest, Decryption)
    plan = OfInputs(*(getattr(honest, field.name) for field in fields(honest)))
    return Plan(f"decryption of {protocol} with random bits that are input, to {receiver}", parties, plan, plan.right)
