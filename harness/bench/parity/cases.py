"""What is run: each variant of each program with inputs, and how its outputs are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.protocols import COMMITTEES, Protocol
from keyquorum.programs import Call, Layout, signatures
from keyquorum.programs.header import header
from keyquorum.schemes.seal.ring_variant import BLOCK
from keyquorum.sharing.variants import comparison_ands
from keyquorum.sweep.operands import summand_rows

from .odd import odd_roundings
from .outcome import Case, Outcome, domain_modulus
from .reference import reference
from .sampled import BITS, samples
from .stored import stored_roundings

Ints = NDArray[np.int64]

Q60 = 1152921504606584833
"""A 60-bit prime, 1 mod 2^18."""
FIELD, RING = f"F_{Q60}", "Z2^64"
PROTOCOLS = tuple(COMMITTEES)
PARTIES = {p.name: p.least_parties for p in COMMITTEES.values()}
CONTRIBUTORS = 2
"""t + 1 for each of them."""
PLAIN_MODULUS = 65537
Trits = Literal["bilinear", "poly", "bits"]
METHODS: tuple[Literal["bits", "arith"], ...] = ("bits", "arith")
BINARY: tuple[Literal["poly", "bits"], ...] = ("poly", "bits")
SCANS: tuple[Literal["knuth", "bits"], ...] = ("knuth", "bits")


@dataclass(frozen=True)
class Scale:
    """Sizes of the inputs: vectors, ring degrees, and shuffles, which cost more an entry."""

    size: int
    degree: int
    shuffle: int
    weight: int


def scale(protocol: Protocol) -> Scale:
    """Sizes for a protocol: products over oblivious transfer are dearer, and those with MACs dearest."""
    if protocol.macs:
        return Scale(64, 64, 16, 3)
    return Scale(1024, 1024, 128, 8) if protocol.oblivious_transfer else Scale(16384, 4096, 1024, 32)


def runs_on(protocol: str, program: str, variant: str) -> bool:
    """Whether a variant runs on a protocol, on one engine at least."""
    return header(program).runs_on(COMMITTEES[protocol], variant, on_mp_spdz=True)


def _bounded(deviation: float, bound: int) -> Callable[[Outcome], str]:
    """Samples of a distribution of mean 0: range, and mean and variance within 6 standard errors."""

    def check(outcome: Outcome) -> str:
        values = np.array(outcome.appended, dtype=float)
        n, variance = len(values), deviation**2
        if np.abs(values).max(initial=0) > bound:
            return f"a sample beyond {bound}"
        if abs(values.mean()) > 6 * deviation / np.sqrt(n):
            return f"mean {values.mean():.3f}"
        if abs(values.var() - variance) > 6 * variance * np.sqrt(2 / n):
            return f"variance {values.var():.3f}, not {variance:.3f}"
        return ""

    return check


def _weighted(weight: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        values = np.abs(np.array(outcome.appended))
        return "" if values.sum() == weight and values.max(initial=0) == 1 else f"weight {values.sum()}, not {weight}"

    return check


def _knuth(length: int, weight: int, indices: Ints) -> Callable[[Outcome], str]:
    """GMPFHE, figure 3, up to signs."""

    def check(outcome: Outcome) -> str:
        v = [1] * weight + [0] * (length - weight)
        for i, j in enumerate((indices.sum(0) % (length - np.arange(weight))).tolist()):
            v[i], v[i + j] = v[i + j], v[i]
        return "" if [abs(x) for x in outcome.appended] == v else "another vector than the indices give"

    return check


class _Builder:
    def __init__(self, protocol: str, rng: np.random.Generator) -> None:
        self.protocol, self.rng, self.scale = protocol, rng, scale(COMMITTEES[protocol])
        self.domain = RING if COMMITTEES[protocol].ring else FIELD
        self.in_field = COMMITTEES[protocol].field
        self.modulus = Q60

    def case(self, call: Call, variant: str = "", **rest: Any) -> Iterator[Case]:
        if runs_on(self.protocol, call.program, variant):
            rest.setdefault("domain", self.domain)
            written = [length for length in call.writes.values() if length is not None]
            if len(written) == len(call.writes):
                rest.setdefault("appended", sum(written))
            yield Case(call.program, variant, call.words, **rest)

    def uniform(self, bits: int, size: int) -> Ints:
        return self.rng.integers(0, 2**bits, size, dtype=np.int64)

    def inputs(self, make: Callable[[], Ints]) -> dict[int, Ints]:
        return {i: make() for i in range(CONTRIBUTORS)}

    def conversions(self) -> Iterator[Case]:
        n = self.scale.size
        summand_bits = self.inputs(lambda: self.uniform(1, n))
        for binary in BINARY:
            call = signatures.z2_to_zq(contributors=CONTRIBUTORS, size=n, method=binary)
            yield from self.case(call, binary, private=summand_bits, appended=n)
        yield from self.case(signatures.bit_inputs(contributors=CONTRIBUTORS, size=n), private=summand_bits, appended=n)
        summands = self.inputs(lambda: self.rng.integers(-(2**40), 2**40, n))
        yield from self.case(signatures.sum_inputs(contributors=CONTRIBUTORS, size=n), private=summands, appended=n)
        m = n // 8  # 60 bits each
        rows = summand_rows(self.rng.integers(0, Q60, (CONTRIBUTORS, m)), Q60)
        circuit = signatures.zq_to_z2_circuit(contributors=CONTRIBUTORS, size=m, q=Q60, out=4)
        yield from self.case(circuit, private=rows, appended=4 * m)
        if self.in_field:
            x = self.rng.integers(0, Q60, m)
            yield from self.case(signatures.zq_to_z2_mask(size=m, q=Q60, out=4), shares=x, appended=4 * m)

        def trits() -> Ints:
            t = self.rng.integers(0, 3, n, dtype=np.int64)
            return np.concatenate([t, np.where(t == 2, -1, t)])

        def of_trits(program: str, method: Trits, modulus: int = 0) -> Call:
            if program == "z3_to_zq":
                return signatures.z3_to_zq(contributors=CONTRIBUTORS, size=n, method=method, modulus=modulus)
            return signatures.sample_ternary(contributors=CONTRIBUTORS, N=n, method=method, modulus=modulus)

        for program in ("z3_to_zq", "sample_ternary"):
            private = self.inputs(trits)
            yield from self.case(of_trits(program, "bilinear"), "bilinear", private=private, appended=n)
            if self.in_field:
                yield from self.case(of_trits(program, "poly", Q60), "poly", private=private, appended=n)
            indicators = {i: np.concatenate([w[:n] == 1, w[:n] == 2]).astype(np.int64) for i, w in private.items()}
            yield from self.case(of_trits(program, "bits"), "bits", private=indicators, appended=n)
        if self.in_field:

            def proven() -> Ints:
                t, x, y = self.rng.integers(0, 3, n, dtype=np.int64), self.uniform(59, n), self.uniform(59, n)
                one, two = (t == 1).astype(np.int64), (t == 2).astype(np.int64)
                return np.concatenate([one, two, x, y, x * one, y * two, x * two])

            yield from self.case(signatures.trit_inputs(contributors=CONTRIBUTORS, N=n), private=self.inputs(proven), appended=2 * CONTRIBUTORS * n)
        x = self.rng.integers(-32, 32, n, dtype=np.int64)
        masks = self.inputs(lambda: self.uniform(45, n))
        modulus = domain_modulus(self.domain)
        opening = signatures.lift_open(contributors=CONTRIBUTORS, size=n, b=5, lam=40, modulus=modulus)
        yield from self.case(opening, private=masks, shares=x)
        opened = x + 32 + sum(masks.values())
        closing = signatures.lift_close(contributors=CONTRIBUTORS, size=n, b=5)
        yield from self.case(closing, private=masks, public=opened, appended=n)

    def samplers(self) -> Iterator[Case]:
        n, length, weight = self.scale.size, self.scale.shuffle, self.scale.weight
        for method in METHODS:
            check = _bounded(np.sqrt(10.5), 21)
            yield from self.case(signatures.sample_cbd(size=n, method=method), method, appended=n, check=check)
            m = n if method == "bits" else max(64, n // 8)
            gaussian = signatures.sample_gaussian(size=m, method=method)
            yield from self.case(gaussian, method, appended=m, check=_bounded(3.2, 23))
        indices = np.stack([[self.rng.integers(0, length - i) for i in range(weight)] for _ in range(CONTRIBUTORS)])
        width = max(1, (length - 1).bit_length())
        bits = {d: np.concatenate([(row >> b) & 1 for b in range(width)]) for d, row in enumerate(indices)}
        for scan in SCANS:
            call = signatures.sample_fixed_weight(method=scan, N=length, weight=weight, contributors=CONTRIBUTORS)
            yield from self.case(call, scan, private=bits, appended=length, check=_knuth(length, weight, indices))
        call = signatures.sample_fixed_weight(method="shuffle", N=length, weight=weight)
        yield from self.case(call, "shuffle", appended=length, check=_weighted(weight))

    def keys(self) -> Iterator[Case]:
        n, digits = self.scale.degree, 3
        s = self.rng.integers(-1, 2, n)
        targets: list[int | Literal["relin"]] = ["relin", 3]
        count = digits * len(targets)
        e = self.rng.integers(-21, 22, (count, n)).ravel()
        a = self.rng.integers(0, Q60, count * n, dtype=np.int64)
        shares, layout = np.concatenate([s, e]), Layout(s=n, e=count * n)
        yield from self.case(signatures.rlwe_public_key(N=n, q=Q60, f=1, count=count), public=a, shares=shares)
        switch = signatures.rlwe_switch_key(N=n, q=Q60, f=1, digits=digits, i=1, P_mod_q=12345, s=layout["s"], e=layout["e"], targets=targets)
        yield from self.case(switch, public=a, shares=shares)
        phase = signatures.rlwe_phase(N=n, q=Q60, form_in="ntt", form_out="coeff")
        yield from self.case(phase, public=a[: 2 * n], shares=s, appended=n)

    def decryption(self) -> Iterator[Case]:
        n = self.scale.size
        phase = self.rng.integers(-(2**40), 2**40, n)
        noise = self.inputs(lambda: self.rng.integers(-(2**50), 2**50, n))
        flooded = signatures.flood(contributors=CONTRIBUTORS, N=n, receiver=1)
        yield from self.case(flooded, private=noise, shares=phase)
        subset = signatures.lisss_share(parties=PARTIES[self.protocol], members=CONTRIBUTORS, size=n, first=0, count=1)
        yield from self.case(subset, private={0: self.uniform(50, n)}, shares=phase)
        for compares in (True, False):
            yield from self.rounding(compares, n)
        yield from stored_roundings(self, n)
        yield from odd_roundings(self, CONTRIBUTORS, n, PLAIN_MODULUS)
        degree, bits = self.scale.degree, 47
        in_ring = signatures.round_ltz_ring(N=degree, count=1, t=PLAIN_MODULUS, k=bits, receiver=1)
        secret = self.rng.integers(-1, 2, degree)
        yield from self.case(in_ring, public=self.uniform(bits, 2 * degree), shares=secret)
        yield from self.case(signatures.rlwe_phase_ring(N=degree, count=1, k=bits), public=self.uniform(bits, 2 * degree), shares=secret)
        stored = [self.uniform(62, degree)]
        for _ in range(2):
            r, ands = self.uniform(bits, degree), comparison_ands(-(-bits // BLOCK))
            a, b = (self.uniform(1, ands * degree).reshape(-1, degree) for _ in range(2))
            digits = [(r >> first & ((1 << BLOCK) - 1), min(BLOCK, bits - first)) for first in range(0, bits, BLOCK)]
            reached = [(digit >= v).astype(np.int64) for digit, length in digits for v in range(1, 1 << length)]
            stored += [r, *reached, np.stack([a, b, a & b], axis=1).ravel()]
        online = signatures.round_ltz_ring_online(size=degree, t=PLAIN_MODULUS, k=bits, destination=1, block=BLOCK)
        yield from self.case(online, shares=np.concatenate(stored))
        yield from self.carries(n)

    def rounding(self, compares: bool, n: int) -> Iterator[Case]:
        """By `round_ltz_circuit`, which compares, or by `round_mask_open`."""
        ell, t, half = 46, PLAIN_MODULUS, 1 << 45
        rows = (CONTRIBUTORS - 1).bit_length() + compares
        m = self.rng.integers(0, 1024, n)
        e = self.rng.integers(-half, half, n) if compares else self.rng.integers(-8, 9, n)
        z = (m << ell) + e + half
        private = self.inputs(lambda: np.concatenate([self.uniform(ell, n), self.uniform(1, rows * n)]))
        power2, odd_ring, odd_field = (
            (signatures.round_ltz_circuit, signatures.round_ltz_circuit_odd_ring, signatures.round_ltz_circuit_odd_field)
            if compares
            else (signatures.round_mask_open, signatures.round_mask_open_odd_ring, signatures.round_mask_open_odd_field)
        )
        yield from self.case(power2(contributors=CONTRIBUTORS, size=n, l=ell, j=10, receiver=1), private=private, shares=z)
        first = odd_ring(contributors=CONTRIBUTORS, size=n, l=ell)
        yield from self.case(first, private=private, shares=z % (1 << ell))
        second = odd_field(contributors=CONTRIBUTORS, size=n, l=ell, t=t, receiver=1)
        if runs_on(self.protocol, second.program, ""):
            ring = Case(first.program, "", first.words, RING, private=private, shares=z % (1 << ell))
            opened = np.array(reference(ring).public, dtype=np.int64)
            yield from self.case(second, domain=f"F_{t}", private=private, public=opened, shares=z % t)

    def carries(self, n: int) -> Iterator[Case]:
        """Rounding without a mask, of sums of three summands."""
        ell, t, summands = 46, PLAIN_MODULUS, 3
        low, high = self.rng.integers(0, summands << ell, n), self.rng.integers(0, t, n)
        private = self.inputs(lambda: self.uniform(1, (summands - 1).bit_length() * n))
        first = signatures.round_carry_odd_ring(summands=summands, contributors=CONTRIBUTORS, size=n, l=ell)
        yield from self.case(first, private=private, shares=low)
        second = signatures.round_carry_odd_field(summands=summands, contributors=CONTRIBUTORS, size=n, t=t, receiver=1)
        if runs_on(self.protocol, second.program, ""):
            opened = np.array(reference(Case(first.program, "", first.words, RING, private=private, shares=low)).public, dtype=np.int64)
            yield from self.case(second, domain=f"F_{t}", private=private, public=opened, shares=high)

    def samples(self) -> Iterator[Case]:
        """Rows that headers state, with random inputs."""
        for call, variant, counts in samples():
            words = {name: self.uniform(BITS, counts[name]) for name in ("public", "shares") if counts[name]}
            size = counts["private"]
            private = {party: self.uniform(BITS, size) for party in range(CONTRIBUTORS)} if size else {}
            yield from self.case(call, variant, appended=counts["stores"], private=private, **words)


def cases(protocol: str, seed: int = 1) -> list[Case]:
    """All rows of a protocol; inputs are the same for the same seed."""
    builder = _Builder(protocol, np.random.default_rng(seed))
    groups = (builder.conversions, builder.samplers, builder.keys, builder.decryption, builder.samples)
    return [case for group in groups for case in group()]
