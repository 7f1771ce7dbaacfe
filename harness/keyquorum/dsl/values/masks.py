"""Random secret numbers with known bits, and masks of numbers that are opened over fields, on raw engine values.

A mask is v = r + 2^m h, where r is uniform in [0, 2^m) and has known bits. There are two kinds of h:

* *Bounded*: h is uniform below 2^(k + s - m), for numbers x of k bits and security s. x + v hides x if x is in its range, and **reveals the high bits of
  every other x**. Parties that follow the protocol give no others, if their inputs are in range.
* *Uniform*: h is uniform below q / 2^m, so v is uniform in F_q but for 2^(1 - s), and x + v is too, **whatever x is**. This mask is for protocols in which
  parties may be malicious: a product of a number of theirs and one of an honest party has any size.

A uniform mask costs no comparison, unlike one of which all bits are known (Damgård, Fitzi, Kiltz, Nielsen, Toft, TCC 2006): v < q - 2^k but for
2^(1 - s), where the field has s bits more than x, so x + v does not wrap around for x in its range.
"""

from __future__ import annotations

import numpy as np

from ..context import Ints, Run, Value
from . import circuits
from .circuits import ArithmeticBits, Logic, PackedBits

_MORE = 2
"""Bits beyond the security that decide whether a candidate is kept."""


def logic_of(run: Run) -> Logic:
    """The circuits of this run: on packed bits where the protocol has them."""
    return PackedBits(run) if run.engine.has_binary else ArithmeticBits(run)


def weighted(run: Run, rows: list[Value]) -> Value:
    """Sum of 2^i times row i."""
    total = rows[0]
    for i, row in enumerate(rows[1:], 1):
        total = run.engine.add(total, run.engine.mul(row, run.clear_ints((pow(2, i, run.modulus),))))
    return total


def random_rows(run: Run, logic: Logic, count: int, size: int) -> tuple[list[Value], Value]:
    """Random bits as rows of the logic, and the numbers that have these bits."""
    engine = run.engine
    if isinstance(logic, ArithmeticBits):
        rows = [engine.random_bit(size) for _ in range(count)]
        return rows, weighted(run, rows)
    number, rows = engine.edabit(count, size)
    return rows, number


def random_integers(run: Run, length: int, size: int) -> Value:
    """Uniform secret integers of ``length`` bits."""
    engine = run.engine
    centred = [p if 2 * p < run.modulus else p - run.modulus for p in (pow(2, i, run.modulus) for i in range(length))]
    if run.bits <= 64:
        powers = engine.clear(np.tile(np.array(centred, dtype=np.int64), size))
    else:
        powers = engine.clear_wide(b"".join(p.to_bytes(16, "little", signed=True) for p in centred) * size)
    return engine.sum(engine.mul(engine.random_bit(length * size), powers), length)


def high_part(run: Run, k: int, m: int, size: int) -> Value:
    """h of the masks of ``size`` integers of k bits, above m known bits: uniform or bounded, as ``program.options.bounded_masks`` says. Fields only."""
    security = run.program.security
    if run.program.options.bounded_masks:
        return random_integers(run, k + security - m, size)
    width = free_width(run.modulus, m, security)
    return random_integers(run, width, size) if width is not None else _below(run, run.modulus >> m, size)


def free_width(modulus: int, m: int, security: int) -> int | None:
    """The number of bits of h with which a mask is uniform but for 2^-security; None if there is none.

    For N = 2^(width + m) the distance of a uniform number below N, modulo q, from a uniform one below q is |N - q| / max(N, q) at most.
    """
    above = (modulus >> m).bit_length()
    for width in (above - 1, above):
        numbers = 1 << (width + m)
        if abs(numbers - modulus) << security <= max(numbers, modulus):
            return width
    return None


def _below(run: Run, bound: int, size: int) -> Value:
    """Uniform integers below ``bound``, but for 2^-security: candidates of as many bits, of which those too large are thrown away.

    [candidate < bound] is opened, which depends on nothing else, and verified before it is read. More than half are kept. Their first security + 2 bits decide.
    Rounds, with a probability of about 1/2 (again otherwise): those of random bits, 1 + ceil(log2(security + 2)) and one for the opening.
    """
    engine = run.engine
    width = bound.bit_length()
    deciding = min(width, run.program.security + _MORE)
    kept = bound >> (width - deciding)
    parts: list[Value] = []
    missing = size
    while missing > 0:
        count = -(-missing << deciding) // kept + 4
        logic = logic_of(run)
        rows, candidates = random_rows(run, logic, deciding, count)
        if width > deciding:
            candidates = engine.mul(candidates, run.clear_ints((1 << (width - deciding),)))
            candidates = engine.add(candidates, random_integers(run, width - deciding, count))
        found = _small(run, logic, rows, kept, count)[:missing]
        parts.append(engine.gather(candidates, found))
        missing -= len(found)
    return parts[0] if len(parts) == 1 else engine.concat(parts)


def _small(run: Run, logic: Logic, rows: list[Value], bound: int, count: int) -> Ints:
    """The places of the numbers with these bits that are below ``bound``, opened."""
    engine = run.engine
    most = [(bound - 1) >> i & 1 for i in range(len(rows))]
    if isinstance(logic, PackedBits):
        public = [engine.clear_bits(np.full(count, bit, dtype=np.uint8)) for bit in most]
        large = engine.read_bits(engine.open(circuits.present(circuits.below_secret(logic, public, rows))))
    else:
        public = [run.clear_ints((bit,)) for bit in most]
        large = run.canonical(engine.open(circuits.present(circuits.below_secret(logic, public, rows))))
    return np.flatnonzero(large == 0).astype(np.int64)
