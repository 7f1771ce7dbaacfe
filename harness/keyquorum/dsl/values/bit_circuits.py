"""Boolean circuits that the engine evaluates by itself, from functions of a program on rows of bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keyquorum import _engine

from ..context import Dynamic, Run, Value
from ..errors import CompilerError
from .base import read
from .binary import sbits
from .bits import _Bits

XOR, AND, NOT = range(3)
Function = Callable[..., Sequence[Dynamic]]
Operand = tuple[Dynamic, int]
"""Bits, and the number of rows that they are in each copy."""


class Wire:
    """A row of bits while a circuit is made: its operators add gates."""

    __slots__ = ("_gates", "number")

    def __init__(self, gates: _Gates, number: int) -> None:
        self._gates, self.number = gates, number

    def __xor__(self, other: object) -> Wire:
        return self._gates.add(XOR, self, other)

    def __and__(self, other: object) -> Wire:
        return self._gates.add(AND, self, other)

    def __invert__(self) -> Wire:
        return self._gates.add(NOT, self, self)


class _Gates:
    def __init__(self, rows: Sequence[int]) -> None:
        self.words: list[int] = []
        self.wires = sum(rows)
        self.first = [sum(rows[:i]) for i in range(len(rows))]
        self.inputs = [[Wire(self, first + i) for i in range(count)] for first, count in zip(self.first, rows, strict=True)]

    def add(self, kind: int, a: Wire, b: object) -> Wire:
        """A gate; the result is its wire."""
        if not isinstance(b, Wire) or b._gates is not self:
            raise CompilerError(f"a circuit works on its rows of bits alone, not on a {type(b).__name__}")
        self.words += (kind, a.number, b.number)
        self.wires += 1
        return Wire(self, self.wires - 1)


def traced(function: Function, rows: Sequence[int]) -> _engine.BitCircuit:
    """The circuit of a function of lists of rows, one list of so many rows for each input, that returns a list of rows. The function works on rows with
    ``^``, ``&`` and ``~`` alone."""
    gates = _Gates(rows)
    results = list(function(*gates.inputs))
    if not results or not all(isinstance(result, Wire) and result._gates is gates for result in results):
        raise CompilerError("a circuit returns a list of its rows of bits, at least one")
    return _engine.BitCircuit(list(rows), np.array(gates.words, dtype=np.int64), [result.number for result in results])


def evaluate(run: Run, function: Function, operands: Sequence[Operand], size: int, copies: int = 1) -> Dynamic:
    """The rows that a function gives for rows of ``size`` bits, as one vector of bits: see :attr:`.program.Program.bit_circuit`."""
    values: list[Value] = []
    for given, _ in operands:
        bits = read(given)
        if not isinstance(bits, _Bits):
            raise CompilerError(f"a circuit works on bits, not on a {type(bits).__name__}")
        values.append(bits.value)
    rows = tuple(count for _, count in operands)
    circuit = run.circuits.get((function, rows))
    if circuit is None:
        circuit = run.circuits[function, rows] = traced(function, rows)
    return sbits._wrap(run.engine.circuit(circuit, values, size, copies))
