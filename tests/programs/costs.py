"""Costs of programs: the formulas in their headers, and what the embedded engine's operations cost.

Formulas use the program's arguments by name, `n` and `t` (parties, corruptions), `w` (bytes of an element) and, in elements of
all parties together per vector entry:

INPUT, OPEN, OPEN_TO, SEND (OPEN or OPEN_TO, by the receiver), MUL (also of a whole dot product), BIT (arithmetic random bit), B2A; AND(m) and ROW(m) are the BYTES of an
AND and an opening of rows of m bits; B2A_ROUNDS and BIT_ROUNDS are rounds; chunks(size, chunk) lists the pieces of in_chunks.
ring_bits_ands, below_ands: numbers of ANDs of the circuits of Programs/Library/logic.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parents[2] / "Programs" / "Source"


KEYS = ("protocols", "domains", "where", "rounds", "offline rounds", "online rounds", "bytes")


def header(program: str) -> dict[tuple[str, str], str]:
    """The machine-readable lines `# key: value` and `# key of variant, variant: value` of a program's header."""
    lines = re.findall(rf"^# ({'|'.join(KEYS)})(?: of ([\w, ]+))?: (.*)$", (PROGRAMS / f"{program}.mpc").read_text(), re.M)
    return {(key, variant): value for key, variants, value in lines for variant in (variants.split(", ") if variants else [""])}


def has(program: str, key: str) -> bool:
    """Whether a program's header has a formula of that key."""
    return any(k == key for k, _ in header(program))


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


def ring_bits_ands(m: int, first: int = 0) -> int:
    """ANDs for the rows first..m-1 of a number shared in three summands: m - 1 full adders, m - 2 generate signals, prefixes."""
    return m - 1 + max(m - 2, 0) + prefix_ands(list(range(max(first, 2), m)), silent=1)


def sum_below_products(width: int) -> int:
    """Products of (a + b) mod M on numbers of `width` arithmetic bits: Library/fixed_weight.py."""
    carries = prefix_ands(list(range(1, width + 1))) + prefix_ands([*range(1, width), width + 1])
    return width + carries + 2 * (width - 1) + width


def sum_below_rounds(width: int) -> int:
    """Rounds of the same."""
    rows = 1 + (math.ceil(math.log2(width - 1)) + 1 if width > 1 else 0)
    total = max(rows, 1 + math.ceil(math.log2(width)))
    return total + math.ceil(math.log2(width + 1)) + 1


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
        "n": n, "t": t, "w": wire_bytes(domain), "ceil": math.ceil, "log2": math.log2, "max": max, "sum": sum, "len": len,
        "chunks": chunks, "ring_bits_ands": ring_bits_ands, "below_ands": below_ands,
        "sum_below_products": sum_below_products, "sum_below_rounds": sum_below_rounds, "one_hot_products": one_hot_products,
        "range": range,
    }
    if protocol in ("ring", "rep-field"):
        def row(m: int) -> int:
            return 3 * 8 * -(-m // 64)

        names |= {"INPUT": 1, "OPEN": 3, "OPEN_TO": 1, "MUL": 3, "BIT": 3, "B2A": 3, "B2A_ROUNDS": 2, "BIT_ROUNDS": 2,
                  "AND": row, "ROW": row}
    elif protocol == "shamir":
        names |= {"INPUT": n - 1 - t, "OPEN": n * t, "OPEN_TO": t, "MUL": (2 * t + 1) * (n - 1 - t), "BIT": (2 * t + 1) * (n - 1), "BIT_ROUNDS": 1}
    return names


def expected(
    program: str, key: str, protocol: str, parties: int, threshold: int, domain: str, arguments: Mapping[str, Any]
) -> int:
    """The value of the formula `key` (rounds, offline rounds, online rounds, bytes) of a program's header."""
    if protocol == "emulate":
        return 0
    lines = header(program)
    names = _names(protocol, parties, threshold, domain) | dict(arguments)
    names["SEND"] = names["OPEN"] if arguments.get("receiver") == "all" else names["OPEN_TO"]
    variant = str(arguments.get("role", arguments.get("method", "")))
    for assignment in lines.get(("where", ""), "").split("; "):
        if assignment:
            name, value = assignment.split(" = ")
            names[name] = eval(value, {"__builtins__": {}}, names)
    if key == "rounds" and ("online rounds", variant) in lines:
        return sum(expected(program, f"{k} rounds", protocol, parties, threshold, domain, arguments) for k in ("offline", "online"))
    formula = lines.get((key, variant)) or lines[key, ""]
    result: int = eval(formula, {"__builtins__": {}} | names)
    return result
