"""Comparisons and bit decomposition of secret vectors, on raw engine values.

Three methods, chosen by the capabilities of the engine:

* rings whose shares split into summands: the bits of the summands are known to parties, a binary adder sums them [1];
* other rings: x + r mod 2^m is opened for a random r with known bits, and a binary (or arithmetic) circuit corrects
  [2];
* fields: the same with a mask that hides x statistically, which needs a field with more bits than x [3]. Where parties may be malicious the mask
  is uniform in the field and hides every x; elsewhere it is bounded and hides an x in its range (:mod:`.masks`).

The circuit for the correction is binary where the protocol has packed bits, otherwise arithmetic.

[1] Araki et al., "Generalizing the SPDZ compiler", section 4. [2] Dalskov, Escudero, Keller: "Fantastic four",
appendix. [3] Catrina and de Hoogh, "Improved primitives for secure multiparty integer computation" (SCN 2010).
"""

from __future__ import annotations

from ..context import Run, Value
from ..errors import CompilerError
from . import circuits
from .circuits import ArithmeticBits, Logic, PackedBits, Row
from .masks import high_part, logic_of, random_rows, weighted

FIELD_BITS = 60
"""Bits of the prime of every ``-F`` (:data:`keyquorum.plans.program.DEFAULT_PRIME`)."""


def _splits(run: Run) -> bool:
    return run.is_ring and run.engine.has_binary and run.engine.summands > 0


def require_bits(run: Run, length: int, operation: str, argument: str = "bit_length") -> None:
    """Raises CompilerError if the domain is too small for an operation on integers of ``length`` bits.

    Rings need ``length`` bits. A field must be longer than ``length`` + security, so that a mask fits. The error names the integer
    length (-F) at which every comparison fits: ``<`` works on differences, which are a bit longer. ``argument``: of the caller, which set the length.
    """
    if run.is_ring:
        if length > run.bits:
            raise CompilerError(
                f"ring size too small for {operation}: it needs {length} bits, {run.engine.domain} has {run.bits}: "
                "take a smaller bit_length, or a larger ring (-R)"
            )
        return
    security = run.program.security
    needed = length + security + 1
    if run.bits >= needed:
        return
    fits = run.bits - security - 2
    # Above the length of the program's integers the call itself has set the length. No run has a prime above that of -F.
    wanted = length - 1 if length > run.program.bit_length + 1 else fits
    other = f"run with -F {wanted}, or " if wanted + security + 2 <= FIELD_BITS else ""
    cure = f"{other}pass {argument}={fits}" if fits > 0 else f"take a prime of at least {security + 3} bits (-P)"
    raise CompilerError(
        f"{operation} on {length}-bit integers needs a prime of {needed} bits ({length} + {security} for statistical masking + 1), "
        f"{run.engine.domain} has {run.bits}: {cure}"
    )


def to_elements(run: Run, logic: Logic, row: Row, size: int) -> Value:
    """A row as secret elements 0 and 1. Packed bits cost one conversion."""
    engine = run.engine
    if row is None:
        return engine.repeat(run.secret_zero(), size)
    if isinstance(logic, ArithmeticBits):
        return row
    return run.bits_to_clear(row) if row.kind == "cb" else engine.bit_to_arith(row)


class _Masked:
    """x + 2^k + r opened (in a ring: mod 2^m), r random with known low bits: c mod 2^m = (x + r) mod 2^m."""

    def __init__(self, run: Run, x: Value, k: int, m: int) -> None:
        """``x``: integers of k bits, signed; m <= k: how many low bits of the mask are known."""
        engine = run.engine
        self.run, self.m = run, m
        self.logic = logic_of(run)
        self.rows, self.low_mask = random_rows(run, self.logic, m, x.size)
        masked = engine.add(x, self.low_mask)
        if run.is_ring:
            up = run.clear_ints((1 << (run.bits - m),))
            opened = engine.open(engine.mul(masked, up))
            self.opened = opened if m == run.bits else engine.clear_op(">>", opened, run.clear_ints((run.bits - m,)))
        else:
            high = engine.mul(high_part(run, k, m, x.size), run.clear_ints((1 << m,)))
            shifted = engine.add(engine.add(masked, high), run.clear_ints((1 << k,)))
            opened = engine.open(shifted)
            self.opened = engine.clear_op("%", opened, run.clear_ints((1 << m,)))
        if isinstance(self.logic, PackedBits):
            self.public = run.clear_rows(self.opened, m)
        else:
            two = run.constant(2)
            self.public = [
                engine.clear_op("%", engine.clear_op(">>", self.opened, run.clear_ints((i,))) if i else self.opened, two) for i in range(m)
            ]

    def borrow(self, length: int) -> Row:
        """[c mod 2^length < r mod 2^length]."""
        return circuits.below_secret(self.logic, self.public[:length], self.rows[:length])

    def low(self) -> Value:
        """x mod 2^m as elements: c - r + 2^m [c < r]."""
        run, engine = self.run, self.run.engine
        borrow = to_elements(run, self.logic, self.borrow(self.m), self.opened.size)
        carried = engine.mul(borrow, run.clear_ints((pow(2, self.m, run.modulus),)))
        return engine.add(engine.sub(self.opened, self.low_mask), carried)

    def bits(self) -> list[Row]:
        """The bits of x mod 2^m: c - r = NOT(NOT c + r)."""
        flipped = [self.logic.not_(c) for c in self.public]
        rows = circuits.add(self.logic, flipped, self.rows)
        return [self.logic.not_(circuits.present(row)) for row in rows]


def _summands(run: Run, x: Value, m: int) -> tuple[PackedBits, list[Row], list[Row]]:
    logic = PackedBits(run)
    a, b = circuits.two_numbers(logic, run.engine.summand_bits(x, m))
    return logic, a, b


def low_bits(run: Run, x: Value, k: int, m: int, operation: str = "bit decomposition") -> tuple[Logic, list[Row]]:
    """The low ``m`` bits of integers of ``k`` bits, as rows of the logic that is returned with them."""
    require_bits(run, m if run.is_ring else max(k, m), operation)
    x = run.to_secret(x)
    if _splits(run):
        logic, a, b = _summands(run, x, m)
        return logic, circuits.add(logic, a, b)
    masked = _Masked(run, x, k, m)
    return masked.logic, masked.bits()


def bit_elements(run: Run, x: Value, k: int, m: int) -> list[Value]:
    """The low ``m`` bits of integers of ``k`` bits, as secret elements 0 and 1."""
    logic, rows = low_bits(run, x, k, m)
    return [to_elements(run, logic, row, x.size) for row in rows]


def modulo_power(run: Run, x: Value, k: int, m: int) -> Value:
    """x mod 2^m in [0, 2^m) for integers of ``k`` > m bits, signed."""
    require_bits(run, m if run.is_ring else k, "modulo")
    x = run.to_secret(x)
    if _splits(run):
        return weighted(run, bit_elements(run, x, k, m))
    return _Masked(run, x, k, m).low()


def shift_right(run: Run, x: Value, k: int, m: int) -> Value:
    """floor(x / 2^m) for integers of ``k`` bits, signed, 0 < m."""
    engine = run.engine
    require_bits(run, k, "right shift")
    m = min(m, k - 1)
    if not run.is_ring:
        low = modulo_power(run, x, k, m)
        return engine.mul(engine.sub(x, low), run.clear_ints((pow(pow(2, m, run.modulus), -1, run.modulus),)))
    logic, rows = low_bits(run, x, k, k, "right shift")
    elements = [to_elements(run, logic, row, x.size) for row in rows[m:]]
    sign = engine.mul(elements[-1], run.clear_ints((-(1 << (k - 1 - m)),)))
    return engine.add(weighted(run, elements[:-1]), sign) if len(elements) > 1 else sign


def negative(run: Run, x: Value, k: int) -> Value:
    """[x < 0] for integers of ``k`` bits, signed.

    Where masks are uniform, the result is a bit for every element x of the field, also for one that is no such integer: the sign of x mod 2^k,
    or of (x - q) mod 2^k. Bounded masks give what is above the lowest k - 1 bits.

    Levels: split rings 1 + ceil(log2 k) for three summands (the lowest position passes no carry on, which saves one) and a
    conversion; others an opening, ceil(log2 k) and a conversion (of arithmetic bits, with uniform masks: a product).
    """
    require_bits(run, k, "comparison")
    engine, x = run.engine, run.to_secret(x)
    if _splits(run):
        logic, a, b = _summands(run, x, k)
        g: list[Row] = [circuits.and_(logic, u, v) for u, v in zip(a[:-1], b[:-1], strict=True)]
        p = [circuits.xor(logic, u, v) for u, v in zip(a, b, strict=True)]
        top = circuits.xor(logic, p[-1], circuits.carry_into(logic, g, p, 0, k - 1))
        return to_elements(run, logic, top, x.size)
    if run.is_ring or not run.program.options.bounded_masks:
        masked = _Masked(run, x, k, k)
        top = circuits.xor(masked.logic, masked.public[-1], masked.rows[-1])
        top = circuits.xor(masked.logic, top, masked.borrow(k - 1) if k > 1 else None)
        return to_elements(run, masked.logic, top, x.size)
    if k < 2:
        raise CompilerError("a comparison needs integers of at least 1 bit")
    low = _Masked(run, x, k, k - 1).low()
    return engine.mul(engine.sub(low, x), run.clear_ints((pow(pow(2, k - 1, run.modulus), -1, run.modulus),)))


def is_zero(run: Run, x: Value, k: int) -> Value:
    """[x = 0] for integers of ``k`` bits, signed.

    Levels: two summands ceil(log2 k) and a conversion, k - 1 ANDs; three of split rings 2 + ceil(log2 k) and a conversion; others an
    opening, ceil(log2 k) and a conversion.
    """
    require_bits(run, k, "equality test")
    x = run.to_secret(x)
    if _splits(run) and run.engine.summands == 2:
        # a + b = 0 if and only if a = -b, and a party that knows b knows -b.
        logic = PackedBits(run)
        (first, _), (_, second) = run.engine.summand_bits(x, k), run.engine.summand_bits(run.engine.sub(run.secret_zero(), x), k)
        same = [logic.not_(logic.xor(u, v)) for u, v in zip(first, second, strict=True)]
        return to_elements(run, logic, circuits.all_ones(logic, same), x.size)
    if _splits(run):
        # a + b = 0 mod 2^k if and only if a xor b = 2 (a or b): no carry chain.
        logic, a, b = _summands(run, x, k)
        p = [circuits.xor(logic, u, v) for u, v in zip(a, b, strict=True)]
        g = [circuits.and_(logic, u, v) for u, v in zip(a[:-1], b[:-1], strict=True)]
        either: list[Row] = [None, *(circuits.xor(logic, u, v) for u, v in zip(p, g, strict=False))]
        differing = [circuits.xor(logic, u, v) for u, v in zip(p, either, strict=True)]
        equal = [logic.not_(d) for d in differing if d is not None]
        return to_elements(run, logic, circuits.all_ones(logic, equal), x.size)
    masked = _Masked(run, x, k, k)
    bits = [masked.logic.not_(masked.logic.xor(c, r)) for c, r in zip(masked.public, masked.rows, strict=True)]
    return to_elements(run, masked.logic, circuits.all_ones(masked.logic, bits), x.size)
