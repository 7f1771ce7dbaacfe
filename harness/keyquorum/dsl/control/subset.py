"""Messages for methods, operators and arguments that are outside the subset: MP-SPDZ has them and this engine does not. Each says what to write
instead."""

from __future__ import annotations

import re

from ..errors import SUBSET
from ..values.base import RunTime

_SHIFT = "x >> m divides by 2^m and rounds down, regint(c) // n divides public integers"
_MEMORY = "keep values in an Array, a Matrix or a MemValue"
_BITS = "open the value, or use comparisons and bit_decompose"
_OPERATORS = {
    "/": f"make the operands fixed-point numbers (sfix, cfix); {_SHIFT}",
    "//": _SHIFT,
    "%": "x % 2**m for secret values, regint(c) % n for public integers",
    "**": "the exponent is a compile-time integer of at least 0",
    "pow": "the exponent is a compile-time integer of at least 0",
    "@": "use dot",
    "<<": "the number of places is a compile-time integer",
    ">>": "the number of places is a compile-time integer",
    "|": "a.bit_xor(b).bit_xor(a & b) of bits, bit_or of bits as numbers",
    "&": "& is for bits: sbits, cbits, and sintbit, which comparisons give",
    "^": "^ is for bits: sbits, cbits, and sintbit, which comparisons give",
    "~": "1 - x of a bit as number, bit_not",
    "+": "add numbers of the same domain: sint, cint, regint and int; of bits use ^ or sbits.bit_adder",
    "-": "subtract numbers of the same domain: sint, cint, regint and int; of bits use ^",
    "*": "multiply numbers of the same domain: sint, cint, regint and int; of bits use &, of matrices dot or schur",
}
_COMPARISON = "comparisons are for sint, cint, regint and int, and for containers of them"
_METHODS = {
    "field_div": "multiply with the inverse, a public number", "round": "x >> m rounds down",
    "pow2": "1 << n for a compile-time n", "log2": _BITS, "trunc_zeros": "x >> m", "TruncPr": "x >> m", "TruncMul": "(x * y) >> m",
    "shuffle": "secure_shuffle of secret values", "store_in_mem": _MEMORY, "load_mem": _MEMORY, "malloc": _MEMORY, "free": _MEMORY,
    "address": _MEMORY, "delete": _MEMORY, "read_from_socket": "get_input_from(player, size=n, binary=True)",
    "receive_from_client": "get_input_from(player, size=n, binary=True)", "write_to_socket": "reveal_to(player).binary_output()",
    "reveal_to_clients": "reveal_to(player).binary_output()", "write_shares_to_socket": "write_to_file", "input_tensor_from": "get_input_from(player, size=n, binary=True), then assign_vector",
    "input_from": "assign(sint.get_input_from(player, size=n, binary=True))", "input_tensor_from_client": "get_input_from(player, size=n, binary=True)",
    "get_raw_input_from": "get_input_from(player, size=n, binary=True)", "print_reveal_nested": "print_ln('%s', x.reveal())",
    "print_if": "if_ and print_ln", "output_if": "if_ and print_ln", "output": "print_ln, or binary_output", "public_input": "fixinput(-1, x, 0, 0) or pubinput(x)",
    "read_from_file": "sint.read_from_file", "write_to_file": "sint.write_to_file", "get_random": "get_random_bit, or inputs",
    "prefix_sum": "additions in a loop over an Array", "direct_mul": "dot", "sort": "sort an Array of sint",
}  # fmt: skip
_NAMES = r"(sint|sintbit|cint|regint|sfix|cfix|localint|personal|sbits\d*|cbits\d*|sbitint\d*|sbitvec\d*|sbitintvec\d*|Array|Matrix|MultiArray|SubMultiArray|MemValue)"
_PARTS = {"Sources": "sint", "Stored": "sint", "Comparisons": "sint"}
"""Base classes, with the type that users know."""
_BINARY = re.compile(r"unsupported operand type\(s\) for (?:\*\* or )?([^ ]+?)(?:\(\))?: '(\w+)' and '(\w+)'")
_UNARY = re.compile(r"bad operand type for (?:unary )?([^ :]+): '(\w+)'")
_ORDER = re.compile(r"'(\S+)' not supported between instances of '(\w+)' and '(\w+)'")
_MISSING = re.compile(rf"'{_NAMES}' object (?:is not|does not|doesn't) .*|type {_NAMES} doesn't define .*|object of type '{_NAMES}' has no .*")
_CALL = re.compile(r"(\w+)\.(\w+)\(\) ((?:got|takes|missing) .*)")


def _is_named(*names: str) -> bool:
    return any(re.fullmatch(_NAMES, name) for name in names)


def _line(what: str, cure: str | None) -> str:
    return f"{what} is {SUBSET}" + (f": {cure}" if cure else "")


def attribute_refused(error: AttributeError) -> str | None:
    """The message for a method or attribute that a value or type of the language lacks; None if the object is no such value or type."""
    of = error.obj
    kind = of if isinstance(of, type) else type(of)
    if not issubclass(kind, RunTime) or error.name is None:
        return None
    return _line(f"{kind.__name__}.{error.name}", _METHODS.get(error.name))


def operation_refused(text: str) -> str | None:
    """The message for Python's ``text`` of a TypeError, if it concerns an operation on values of the language, else None."""
    if (found := _BINARY.fullmatch(text)) and _is_named(found[2], found[3]):
        sign = "**" if found[1] == "pow" else found[1]
        return _line(f"{found[2]} {sign} {found[3]}", _OPERATORS.get(sign.removesuffix("=") or sign))
    if (found := _UNARY.fullmatch(text)) and _is_named(found[2]):
        shown = f"abs({found[2]})" if found[1] == "abs()" else f"{found[1]}{found[2]}"
        return _line(shown, _OPERATORS.get(found[1]))
    if (found := _ORDER.fullmatch(text)) and _is_named(found[2], found[3]):
        return _line(f"{found[2]} {found[1]} {found[3]}", _COMPARISON)
    if _MISSING.fullmatch(text):
        return _line(text, "use the methods of the type, or an Array")
    if (found := _CALL.fullmatch(text)) and _is_named(kind := _PARTS.get(found[1], found[1])):
        return f"{kind}.{found[2]}() {found[3]}: other arguments are {SUBSET}"
    return None
