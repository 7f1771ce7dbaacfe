"""Costs of programs: the formulas in their headers, and what the embedded engine's operations cost.

Formulas use the program's arguments by name, `n` and `t` (parties, corruptions), `w` (bytes of an element) and, in elements of
all parties together per vector entry:

INPUT, OPEN, OPEN_TO, SEND (OPEN or OPEN_TO, by the receiver), MUL, SQUARE, DOT(length), BIT (arithmetic random bit); AND(m), ROW(m) and
B2A(m) are the BYTES of an AND, an opening and a conversion of rows of m bits. For additive sharing all of this is the online part; B2A_ROUNDS and BIT_ROUNDS are rounds; chunks(size, chunk) lists the pieces of in_chunks.
SHUFFLE_ROUNDS(m), SHUFFLE(m): a secure shuffle of m elements. ring_bits_ands, below_ands: numbers of ANDs of the circuits of Programs/Library/logic.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from keyquorum.model.protocols import PROTOCOLS
from keyquorum.programs.header import header

from tests.protocols import operation_costs

PROGRAMS = Path(__file__).resolve().parents[2] / "Programs" / "Source"


def wire_bytes(domain: str) -> int:
    """Bytes of an element on the wire."""
    bits = int(domain[3:]) if domain.startswith("Z2^") else int(domain[2:]).bit_length()
    return -(-bits // 8)


def chunks(size: int, chunk: int) -> list[int]:
    """The pieces of a vector of `size` entries that is processed `chunk` at a time."""
    return [chunk] * (size // chunk) + ([size % chunk] if size % chunk else [])


def prefix_ands(ends: list[int], silent: int = 0) -> int:
    """ANDs for the generate signals of the ranges [0, end), computed once each; positions below `silent` never generate."""
    seen: set[tuple[str, int, int]] = set()

    def visit(kind: str, lo: int, hi: int) -> None:
        if hi - lo == 1 or (kind, lo, hi) in seen:
            return
        mid = lo + (1 << ((hi - lo - 1).bit_length() - 1))
        visit(kind, mid, hi)
        visit(kind, lo, mid)
        if kind == "g":
            if mid <= silent:
                return
            visit("p", mid, hi)
        seen.add((kind, lo, hi))

    for end in ends:
        visit("g", 0, end)
    return len(seen)


def below_ands(m: int) -> int:
    """ANDs of the comparison of a public with a secret number of m rows."""
    return prefix_ands([m])


def ring_bits_ands(summands: int, m: int, first: int = 0) -> int:
    """ANDs for the rows first..m-1 of a number shared in summands: m - 1 full adders for each beyond two, then generate signals and
    prefixes; after full adders the lowest position generates nothing."""
    if summands == 2:
        return m - 1 + prefix_ands(list(range(max(first, 1), m)))
    return (summands - 2) * (m - 1) + max(m - 2, 0) + prefix_ands(list(range(max(first, 2), m)), silent=1)


def ring_bits_levels(summands: int, m: int) -> int:
    """Levels of the same. A full adder's sum is local, its carry comes a level later; then generate signals and prefixes."""
    rows: list[list[int | None]] = [[0] * m for _ in range(summands)]

    def latest(*levels: int | None) -> int:
        return max(level for level in levels if level is not None)

    while len(rows) > 2:
        columns = list(zip(*rows[:3], strict=True))
        sums: list[int | None] = [latest(*column) for column in columns]
        carries = [1 + latest(*column) for column in columns[:-1]]
        rows = [*rows[3:], sums, [None, *carries]]
    p = [latest(x, y) for x, y in zip(*rows, strict=True)]
    g = [None if y is None else 1 + latest(x, y) for x, y in zip(*rows, strict=True)]

    def generate(lo: int, hi: int) -> int | None:
        if hi - lo == 1:
            return g[lo]
        mid = lo + (1 << ((hi - lo - 1).bit_length() - 1))
        high, low = generate(mid, hi), generate(lo, mid)
        return high if low is None else latest(high, 1 + latest(propagate(mid, hi), low))

    def propagate(lo: int, hi: int) -> int:
        if hi - lo == 1:
            return p[lo]
        mid = lo + (1 << ((hi - lo - 1).bit_length() - 1))
        return 1 + latest(propagate(lo, mid), propagate(mid, hi))

    return max(latest(p[i], generate(0, i) if i else None) for i in range(m))


class Levels:
    """Counts ANDs of Library/modular.py and their levels: a row is its level, None if it is zero."""

    def __init__(self, adder: str) -> None:
        self.adder, self.ands = adder, 0

    def both(self, *rows: int) -> int:
        """One AND after these."""
        self.ands += 1
        return 1 + max(rows)

    def full_adder(self, *rows: int | None) -> tuple[int | None, int | None]:
        """Sum, which is local, and carry."""
        there = [row for row in rows if row is not None]
        return max(there, default=None), self.both(*there) if len(there) > 1 else None

    def add(self, x: list[int | None], y: list[int | None], carry: int | None = None, public: bool = False) -> list[int | None]:
        """A sum of two numbers, the first of which may be public."""
        if self.adder == "ripple":
            total: list[int | None] = []
            for a, b in zip(x[:-1], y[:-1], strict=True):
                s, carry = self.full_adder(a, b, carry)
                total.append(s)
            return [*total, max((row for row in (x[-1], y[-1], carry) if row is not None), default=None)]
        g = [None if a is None or b is None else 0 if public else self.both(a, b) for a, b in zip(x[:-1], y[:-1], strict=True)]
        p = [max((row for row in rows if row is not None), default=0) for rows in zip(x, y, strict=True)]
        if carry is not None:
            g, p = [carry, *g], [0, *p]
        known: dict[tuple[str, int, int], int | None] = {}

        def generate(lo: int, hi: int) -> int | None:
            if hi - lo == 1:
                return g[lo]
            if ("g", lo, hi) not in known:
                mid = lo + (1 << ((hi - lo - 1).bit_length() - 1))
                high, low = generate(mid, hi), generate(lo, mid)
                passed = None if low is None else self.both(propagate(mid, hi), low)
                known["g", lo, hi] = high if passed is None else passed if high is None else max(high, passed)
            return known["g", lo, hi]

        def propagate(lo: int, hi: int) -> int:
            if hi - lo == 1:
                return p[lo]
            mid = lo + (1 << ((hi - lo - 1).bit_length() - 1))
            found = known.get(("p", lo, hi))
            if found is None:
                found = known["p", lo, hi] = self.both(propagate(mid, hi), propagate(lo, mid))
            return found

        skip = carry is not None
        carries = [generate(0, i + skip) if i + skip else None for i in range(len(x))]
        return [max(s, 0 if c is None else c) for s, c in zip(p[skip:], carries, strict=True)]


def _sum_mod(contributors: int, q: int, adder: str) -> tuple[int, int]:
    count, m, steps = Levels(adder), q.bit_length(), (contributors - 1).bit_length()
    if not steps:
        return 0, 0
    zero: list[int | None] = [0] * m
    total, carries = [*zero, *[0] * steps], [*zero, *[None] * steps]
    for _ in range(contributors - 2):
        columns = [count.full_adder(*rows) for rows in zip(total[:-1], carries[:-1], [*zero, *[None] * (steps - 1)], strict=True)]
        top = max(row for row in (total[-1], carries[-1]) if row is not None)
        total, carries = [*(s for s, _ in columns), top], [None, *(c for _, c in columns)]
    total = count.add(total, carries)
    for j in reversed(range(steps - 1)):
        sign = total[m + j + 1]
        total = [*total[:j], *count.add(total[j : m + j + 1], [sign] * (m + 1), sign)]
    sign = total[m]
    result = count.add(total[:m], [sign if q >> i & 1 else None for i in range(m)])
    return count.ands, max(row for row in result if row is not None)


def _integer_sum(contributors: int, ell: int, adder: str) -> tuple[int, int, int]:
    """ANDs of the sum of `contributors` numbers of `ell` rows, and the levels of its low rows and of its carry."""
    count, carry = Levels(adder), (contributors - 1).bit_length()
    numbers: list[list[int | None]] = [[*[0] * ell, *[None] * carry] for _ in range(contributors)]
    while len(numbers) > 2:
        columns = [count.full_adder(*rows) for rows in zip(*(number[:-1] for number in numbers[:3]), strict=True)]
        top = max((rows for rows in (number[-1] for number in numbers[:3]) if rows is not None), default=None)
        numbers = [*numbers[3:], [*(s for s, _ in columns), top], [None, *(c for _, c in columns)]]
    total = count.add(*numbers) if len(numbers) == 2 else numbers[0]
    return count.ands, max(row or 0 for row in total[:ell]), max((row or 0 for row in total[ell:]), default=0)


def integer_sum_ands(contributors: int, ell: int, adder: str = "ripple") -> int:
    """ANDs of the sum of `contributors` numbers of `ell` rows."""
    return _integer_sum(contributors, ell, adder)[0]


def integer_sum_levels(contributors: int, ell: int, adder: str = "ripple") -> tuple[int, int]:
    """Levels of the low `ell` rows of the same, and of the carry."""
    return _integer_sum(contributors, ell, adder)[1:]


def sum_mod_ands(contributors: int, q: int, adder: str) -> int:
    """ANDs of the sum of `contributors` numbers below an odd q, modulo q."""
    return _sum_mod(contributors, q, adder)[0]


def sum_mod_levels(contributors: int, q: int, adder: str) -> int:
    """Levels of the same."""
    return _sum_mod(contributors, q, adder)[1]


def _unmask(q: int, adder: str) -> tuple[int, int]:
    count, m = Levels(adder), q.bit_length()
    rows: list[int | None] = [0] * (m - 1)
    *rest, sign = count.add([*rows, None], [*rows, None], 0, public=True)
    result = count.add([0, *rest], [sign if q >> i & 1 else None for i in range(m)])
    return count.ands, max(row for row in result if row is not None)


def unmask_ands(q: int, adder: str) -> int:
    """ANDs of (c - r) mod q for a public c and a secret r, an odd q."""
    return _unmask(q, adder)[0]


def unmask_levels(q: int, adder: str) -> int:
    """Levels of the same."""
    return _unmask(q, adder)[1]


def sum_below_products(width: int) -> int:
    """Products of (a + b) mod M on numbers of `width` arithmetic bits: Library/fixed_weight.py."""
    carries = prefix_ands(list(range(1, width + 1))) + prefix_ands([*range(1, width), width + 1])
    return width + carries + 2 * (width - 1) + width


def sum_below_rounds(width: int) -> int:
    """Rounds of the same."""
    rows = 1 + (math.ceil(math.log2(width - 1)) + 1 if width > 1 else 0)
    total = max(rows, 1 + math.ceil(math.log2(width)))
    return total + math.ceil(math.log2(width + 1)) + 1


def table_shape(ell: int, b: int, levels: int) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Blocks (count, width) and groups of Programs/Library/ltz_tables.py."""
    blocks = [(count, width) for count, width in ((ell // b, b), (int(ell % b > 0), ell % b)) if count]
    count, groups = sum(n for n, _ in blocks), []
    group = next(g for g in range(1, count + 1) if levels == 1 or g ** (levels - 1) >= count)
    for level in range(levels - 1):
        groups.append([count] if level == levels - 2 else [min(group, count - i) for i in range(0, count, group)])
        count = len(groups[-1])
    return blocks, groups


def table_rounds(names: Mapping[str, Any], ell: int, b: int, levels: int, method: str, masks: str) -> int:
    """Rounds of making tables: one-hot vectors, and conversions of bits that come from the binary domain."""
    blocks, groups = table_shape(ell, b, levels)
    convert = names["B2A_ROUNDS"] if method == "binary" else 0
    widest = max((size + 1 for sizes in groups for size in sizes), default=1)
    bits = names["BIT_ROUNDS"] if masks == "stored" else 0
    last = bits + math.ceil(math.log2(widest)) + convert if groups else 0
    return max(math.ceil(math.log2(max(w for _, w in blocks))) + convert, last)


def table_bytes(names: Mapping[str, Any], ell: int, b: int, levels: int, method: str, masks: str, size: int) -> int:
    """Bytes of the same; masks that are made are random rows that are converted."""
    blocks, groups = table_shape(ell, b, levels)

    def one_hot(width: int, entries: int, converted: int) -> int:
        products = 2**width - width - 1
        if method == "arith":
            return products * names["MUL"] * entries * int(names["w"])
        return products * int(names["AND"](entries)) + converted * int(names["B2A"](entries))

    total = sum(one_hot(width, count * size, 2**width - 1) for count, width in blocks)
    if masks == "made":
        total += sum(width * int(names["B2A"](count * size)) for count, width in blocks)
    for level, sizes in enumerate(groups):
        for length in sizes:
            m, last = length + 1, level == levels - 2
            bit = size * names["w"] * names["BIT"] if masks == "stored" else int(names["B2A"](size))
            total += m * bit + one_hot(m, size, 2 ** (m - 1) if last else 2**m - 1)
    return total


def network_depth(n: int) -> int:
    """Layers of a switching network of n wires."""
    return max(0, 2 * (n - 1).bit_length() - 1)


def switches(n: int) -> int:
    """Switches of a switching network of n wires."""
    return n * (n - 1).bit_length() - (1 << (n - 1).bit_length()) + 1


def one_hot_products(width: int, length: int) -> int:
    """Products per number for its one-hot vector of a given length."""
    digits, products = [1] * width, 0
    while len(digits) > 1:
        joined = [a + b for a, b in zip(digits[::2], digits[1::2], strict=False)]
        products += sum(min(1 << d, length) for d in joined)
        digits = joined + digits[len(joined) * 2 :]
    return products


def _names(protocol: str, parties: int, threshold: int, domain: str) -> dict[str, Any]:
    n, t = parties, threshold
    names: dict[str, Any] = {
        "n": n,
        "t": t,
        "w": wire_bytes(domain),
        "ceil": math.ceil,
        "log2": math.log2,
        "max": max,
        "sum": sum,
        "len": len,
        "chunks": chunks,
        "below_ands": below_ands,
        "sum_below_products": sum_below_products,
        "sum_below_rounds": sum_below_rounds,
        "one_hot_products": one_hot_products,
        "range": range,
        "table_shape": table_shape,
        "bits": int.bit_length,
        "ones": int.bit_count,
        "min": min,
        "int": int,
        "integer_sum_ands": integer_sum_ands,
        "integer_sum_levels": integer_sum_levels,
        "sum_mod_ands": sum_mod_ands,
        "sum_mod_levels": sum_mod_levels,
        "unmask_ands": unmask_ands,
        "unmask_levels": unmask_levels,
    }
    summands = PROTOCOLS[protocol].summands(n) or 3
    names |= {"ring_bits_ands": partial(ring_bits_ands, summands), "ring_bits_levels": partial(ring_bits_levels, summands)}
    names |= operation_costs(protocol, n, t, names["w"])
    names.setdefault("SQUARE", names.get("MUL"))
    names.setdefault("BIT_PRODUCTS", lambda count, length, m: count * length * names["w"] * names["MUL"])
    names.setdefault("BIT_PRODUCTS_ROUNDS", 1)
    names.setdefault("DOT", lambda length: names["MUL"])
    if "SHUFFLE" not in names:
        product: int = names.get("INPUT", 0) + names.get("MUL", 0)
        names |= {"SHUFFLE_ROUNDS": lambda m: (t + 1) * network_depth(m), "SHUFFLE": lambda m: (t + 1) * switches(m) * product}
    names |= {"table_rounds": partial(table_rounds, names), "table_bytes": partial(table_bytes, names)}
    return names


def defaults_of(program: str) -> dict[str, Any]:
    """The defaults of a program's arguments, numbers as numbers."""
    return {a.name: int(a.default) if a.default.isdigit() else a.default for a in header(program).arguments if a.default is not None}


def expected(program: str, key: str, protocol: str, parties: int, threshold: int, domain: str, arguments: Mapping[str, Any]) -> int:
    """The value of the formula `key` (rounds, offline rounds, online rounds, bytes) of a program's header."""
    if protocol == "emulate":
        return 0
    head = header(program)
    defaults = defaults_of(program)
    names = _names(protocol, parties, threshold, domain) | defaults | dict(arguments)
    to = arguments.get("receiver", arguments.get("destination"))
    names["SEND"] = {"all": names["OPEN"], "share": 0}.get(str(to), names["OPEN_TO"])
    variant = str(arguments.get("method", ""))
    for assignment in head.value("where", variant).split("; "):
        if assignment:
            name, value = assignment.split(" = ")
            names[name] = eval(value, {"__builtins__": {}}, names)
    if key == "rounds" and head.value("online rounds", variant):
        return sum(expected(program, f"{k} rounds", protocol, parties, threshold, domain, arguments) for k in ("offline", "online"))
    result: int = eval(head.value(key, variant), {"__builtins__": {}} | names)
    return result
