"""What is run: each variant of each program with inputs, and how its outputs are compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.protocols import COMMITTEES, Protocol
from keyquorum.model.resources import program_path

from ..operands import summand_rows
from .odd import odd_roundings
from .outcome import Case, Outcome, domain_modulus
from .reference import reference
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


def declared(program: str, variant: str, everywhere: bool = True) -> set[str]:
    """The protocols that a program's header names, for a variant if it tells them apart; ``everywhere``: also those that it
    has on MP-SPDZ only."""
    text = Path(program_path(program)).read_text()
    names: set[str] = set()
    for key in ("protocols", "on MP-SPDZ") if everywhere else ("protocols",):
        found: dict[str, str] = {}
        for variants, value in re.findall(rf"^# {key}(?: of ([\w, ]+))?: (.*)$", text, re.M):
            for name in variants.split(", ") if variants else [""]:
                found[name] = value
        names |= set(found.get(variant, found.get("", "")).split())
    return names


def _bounded(deviation: float, bound: int) -> Callable[[Outcome], str]:
    """Samples of a law of mean 0: range, and mean and variance within 6 standard errors."""

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

    def case(self, program: str, variant: str, *args: object, **rest: Any) -> Iterator[Case]:
        if self.protocol in declared(program, variant):
            rest.setdefault("domain", self.domain)
            yield Case(program, variant, tuple(str(a) for a in args), **rest)

    def uniform(self, bits: int, size: int) -> Ints:
        return self.rng.integers(0, 2**bits, size, dtype=np.int64)

    def dealt(self, make: Callable[[], Ints]) -> dict[int, Ints]:
        return {i: make() for i in range(CONTRIBUTORS)}

    def conversions(self) -> Iterator[Case]:
        n = self.scale.size
        dealt = self.dealt(lambda: self.uniform(1, n))
        for method in ("poly", "bits"):
            yield from self.case("z2_to_zq", method, CONTRIBUTORS, n, method, private=dealt, appended=n)
        summands = self.dealt(lambda: self.rng.integers(-(2**40), 2**40, n))
        yield from self.case("sum_inputs", "", CONTRIBUTORS, n, private=summands, appended=n)
        m = n // 8  # 60 bits each
        rows = summand_rows(self.rng.integers(0, Q60, (CONTRIBUTORS, m)), Q60)
        yield from self.case("zq_to_z2", "circuit", "circuit", CONTRIBUTORS, m, Q60, 4, private=rows, appended=4 * m)
        if self.in_field:
            x = self.rng.integers(0, Q60, m)
            yield from self.case("zq_to_z2", "mask", "mask", m, Q60, 4, shares=x, appended=4 * m)

        def trits() -> Ints:
            t = self.rng.integers(0, 3, n, dtype=np.int64)
            return np.concatenate([t, np.where(t == 2, -1, t)])

        for program in ("z3_to_zq", "sample_ternary"):
            private = self.dealt(trits)
            yield from self.case(program, "bilinear", CONTRIBUTORS, n, "bilinear", private=private, appended=n)
            if self.in_field:
                yield from self.case(program, "poly", CONTRIBUTORS, n, "poly", Q60, private=private, appended=n)
            indicators = {i: np.concatenate([w[:n] == 1, w[:n] == 2]).astype(np.int64) for i, w in private.items()}
            yield from self.case(program, "bits", CONTRIBUTORS, n, "bits", private=indicators, appended=n)
        x = self.rng.integers(-32, 32, n, dtype=np.int64)
        masks = self.dealt(lambda: self.uniform(45, n))
        modulus = domain_modulus(self.domain)
        yield from self.case("lift", "open", "open", CONTRIBUTORS, n, 5, 40, modulus, private=masks, shares=x)
        opened = x + 32 + sum(masks.values())
        yield from self.case("lift", "close", "close", CONTRIBUTORS, n, 5, private=masks, public=opened, appended=n)

    def samplers(self) -> Iterator[Case]:
        n, length, weight = self.scale.size, self.scale.shuffle, self.scale.weight
        for method in ("bits", "arith"):
            check = _bounded(np.sqrt(10.5), 21)
            yield from self.case("sample_cbd", method, n, method, appended=n, check=check)
            m = n if method == "bits" else max(64, n // 8)
            yield from self.case("sample_gaussian", method, m, method, appended=m, check=_bounded(3.2, 23))
        indices = np.stack([[self.rng.integers(0, length - i) for i in range(weight)] for _ in range(CONTRIBUTORS)])
        width = max(1, (length - 1).bit_length())
        bits = {d: np.concatenate([(row >> b) & 1 for b in range(width)]) for d, row in enumerate(indices)}
        for method in ("knuth", "bits"):
            yield from self.case(
                "sample_fixed_weight",
                method,
                *(method, length, weight, CONTRIBUTORS),
                private=bits,
                appended=length,
                check=_knuth(length, weight, indices),
            )
        yield from self.case("sample_fixed_weight", "shuffle", "shuffle", length, weight, appended=length, check=_weighted(weight))

    def keys(self) -> Iterator[Case]:
        n, digits = self.scale.degree, 3
        s, targets = self.rng.integers(-1, 2, n), ["relin", "3"]
        count = digits * len(targets)
        e = self.rng.integers(-21, 22, (count, n)).ravel()
        a = self.rng.integers(0, Q60, count * n, dtype=np.int64)
        shares = np.concatenate([s, e])
        yield from self.case("rlwe_public_key", "", n, Q60, 1, count, public=a, shares=shares)
        args = (n, Q60, 1, digits, 1, 12345, 0, n, *targets)
        yield from self.case("rlwe_switch_key", "", *args, public=a, shares=shares)
        yield from self.case("rlwe_phase", "", n, Q60, "ntt", "coeff", public=a[: 2 * n], shares=s, appended=n)

    def decryption(self) -> Iterator[Case]:
        n = self.scale.size
        phase = self.rng.integers(-(2**40), 2**40, n)
        noise = self.dealt(lambda: self.rng.integers(-(2**50), 2**50, n))
        yield from self.case("flood", "", CONTRIBUTORS, n, 1, private=noise, shares=phase)
        for program in ("round_ltz_circuit", "round_mask_open"):
            yield from self.rounding(program, n)
        yield from stored_roundings(self, n)
        yield from odd_roundings(self, CONTRIBUTORS, n, PLAIN_MODULUS)

    def rounding(self, program: str, n: int) -> Iterator[Case]:
        ell, t, half = 46, PLAIN_MODULUS, 1 << 45
        rows = (CONTRIBUTORS - 1).bit_length() + (program == "round_ltz_circuit")
        m = self.rng.integers(0, 1024, n)
        e = self.rng.integers(-half, half, n) if program == "round_ltz_circuit" else self.rng.integers(-8, 9, n)
        z = (m << ell) + e + half
        private = self.dealt(lambda: np.concatenate([self.uniform(ell, n), self.uniform(1, rows * n)]))
        head = (CONTRIBUTORS, n, ell)
        yield from self.case(program, "power2", "power2", *head, 10, 1, private=private, shares=z)
        yield from self.case(program, "ring", "ring", *head, private=private, shares=z % (1 << ell))
        if self.protocol in declared(program, "field"):
            ring = Case(program, "ring", tuple(map(str, ("ring", *head))), RING, private=private, shares=z % (1 << ell))
            first = np.array(reference(ring).public, dtype=np.int64)
            yield from self.case(
                program,
                "field",
                *("field", *head, t, 1),
                domain=f"F_{t}",
                private=private,
                public=first,
                shares=z % t,
            )


def cases(protocol: str, seed: int = 1) -> list[Case]:
    """All rows of a protocol; inputs are the same for the same seed."""
    builder = _Builder(protocol, np.random.default_rng(seed))
    groups = (builder.conversions, builder.samplers, builder.keys, builder.decryption)
    return [case for group in groups for case in group()]
