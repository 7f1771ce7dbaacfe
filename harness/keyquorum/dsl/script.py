"""Tapes that are played without Python: the steps of a :class:`.Tape` as a list for the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyquorum import _engine

from .context import Ints
from .errors import CompilerError
from .persistence import Persistence

_VALUES = {
    "add": 2, "sub": 2, "mul": 2, "neg": 1, "dot": 2, "matrix_product": 2, "sum": 1, "slice": 1, "repeat": 1, "assign": 1, "open": 1,
    "open_low": 1, "open_to": 1, "xor": 2, "and_": 2, "not_": 1, "bit_to_arith": 1, "random": 0, "random_bit": 0, "random_bits": 0,
}  # fmt: skip
"""Calls to the engine that give a value, and how many values they take before their numbers."""
_ELEMENTWISE: dict[Any, str] = {
    np.add: "int +", np.subtract: "int -", np.multiply: "int *", np.left_shift: "int <<", np.right_shift: "int >>", np.bitwise_and: "int &",
}  # fmt: skip
_SHIFTS = ("int <<", "int >>")
_COPIES = ("keyquorum.dsl.tape.as_int64", "keyquorum.dsl.tape.contiguous")
_IN_RANGE = "keyquorum.dsl.containers._in_range"
_METHOD = "keyquorum.dsl.tape._method"
_AFTER_STORES = ("check", "read", "pick")


@dataclass(frozen=True)
class Script:
    """A tape's steps. ``shares``: whether they have to do with the share file."""

    steps: _engine.Script
    shares: bool

    def play(self, engine: Any, persistence: Persistence, private: Ints, public: Sequence[Ints]) -> list[tuple[int | None, bool, Ints]]:
        """Does the steps with the share file and the input of a run. Returns the output: whose it is (None: everybody's), whether it was
        revealed to us alone, and words."""
        if self.shares and persistence.exists:
            persistence.check(engine, 0, 0)
        words = [np.asarray(part, dtype=np.int64) for part in public]
        try:
            stored, output = self.steps.play(engine, persistence.sections, persistence.element_words, words, np.asarray(private, dtype=np.int64))
        except IndexError as error:
            raise CompilerError(str(error)) from None
        try:
            for rows in stored:
                persistence.append(engine, rows)
        except BaseException:
            for rows in stored:
                rows.fill(0)
            raise
        return output


class _NeedsPython(Exception):
    """A step that the engine does not know."""


class _Name(str):
    """A result or a constant of the tape."""

    __slots__ = ()


@dataclass(frozen=True)
class _Call:
    """A line of a tape: a call, or an item of what an earlier one gave. ``result``: its name, empty if there is none."""

    result: str
    called: str
    args: list[Any]
    item: int | None = None


_LINE = re.compile(r"(?:(\w+) = )?([\w.]+)(?:\((.*)\)|\[(\d+)\])")
_TOKEN = re.compile(r"\s*(?:(-?\d+)|'([^'\\]*)'|(None)|([A-Za-z]\w*)(?!\w*=)|([\[\],]))")


def _parsed(line: str) -> _Call:
    """What a line says. Python's own parser of expressions fails where several threads use it at once."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise _NeedsPython
    result, called, inside, item = found.groups()
    if item is not None:
        return _Call(result or "", called, [], int(item))
    args: list[Any] = []
    into, at = args, 0
    while at < len(inside):
        token = _TOKEN.match(inside, at)
        if token is None:
            raise _NeedsPython
        at, (number, text, nothing, name, mark) = token.end(), token.groups()
        if mark == "[":
            into = []
            args.append(into)
        elif mark == "]":
            into = args
        elif mark is None:
            into.append(int(number) if number else None if nothing else _Name(name) if name else text)
    return _Call(result or "", called, args)


class _Translation:
    """The steps of a tape, one after another. Slots of constants are negative until all are known."""

    def __init__(self, constants: dict[str, Any]) -> None:
        self._named = constants
        self.constants: list[Any] = []
        self.steps: list[tuple[str, int, list[int], list[int]]] = []
        self._slots: dict[Any, int] = {}
        self._kinds: dict[int, str] = {}
        self._next = 0
        self._rows: dict[str, tuple[int, int]] = {}
        self._numbers_with_bits: set[str] = set()
        self._stored = False
        self.shares = False
        """Whether a step has to do with the share file."""

    def line(self, line: str) -> None:
        """Adds what a line of the tape does."""
        if line.startswith(("del ", "return ")):
            return
        call = _parsed(line)
        if call.item is not None:
            self._item(call.result, call.called, call.item)
        elif "." in call.called:
            whose, what = call.called.split(".")
            known: dict[str, Callable[[str, str, list[Any]], None]] = {
                "engine": self._of_engine,
                "persistence": self._of_persistence,
                "io": self._of_io,
            }
            known[whose](call.result, what, call.args)
        else:
            self._function(call.result, self._named[call.called], call.args)

    def _add(self, what: str, name: str, kind: str, slots: Sequence[int], numbers: Sequence[int] = ()) -> None:
        out = -1
        if kind:
            out, self._next = self._next, self._next + 1
            self._slots[name], self._kinds[out] = out, kind
        self.steps.append((what, out, list(slots), list(numbers)))

    def _slot(self, operand: Any, *kinds: str) -> int:
        """The slot of an operand of one of these kinds."""
        if isinstance(operand, list):
            raise _NeedsPython
        slot = self._slots.get(operand)
        if slot is None:
            slot = self._slots[operand] = self._constant(operand)
        if self._kinds[slot] not in kinds:
            raise _NeedsPython
        return slot

    def _item(self, name: str, whole: str, index: int) -> None:
        """An item of what gave several: of all summands a summand, of a summand a row of bits; of edaBits the numbers, or the rows."""
        if whole in self._numbers_with_bits and index == 0:
            self._add("take", name, "value", [self._slot(_Name(whole), "rows")], [0, 0])
        elif whole in self._rows:
            slot, summand = self._rows[whole]
            self._add("take", name, "value", [slot], [summand, index])
        else:
            self._rows[name] = self._slot(_Name(whole), "rows"), index

    def _constant(self, operand: Any) -> int:
        value = self._named.get(operand) if isinstance(operand, _Name) else np.int64(self._numbers([operand])[0])
        slot = -1 - len(self.constants)
        if isinstance(value, _engine.Value):
            self._kinds[slot] = "value"
            self.constants.append(value)
        elif isinstance(value, (np.ndarray, np.generic)) and value.dtype in (np.int64, np.uint64) and value.ndim < 2:
            self._kinds[slot] = "ints" if value.dtype == np.int64 else "words"
            self.constants.append(np.atleast_1d(value).view(np.int64).tolist())
        else:
            raise _NeedsPython
        return slot

    @staticmethod
    def _numbers(operands: Sequence[Any]) -> list[int]:
        if any(number.__class__ is not int or not -(1 << 63) <= number < 1 << 63 for number in operands):
            raise _NeedsPython
        return list(operands)

    def _of_engine(self, name: str, what: str, args: list[Any]) -> None:
        if what in _VALUES:
            count = _VALUES[what]
            if what == "assign":  # the first operand is given up
                slots, numbers = [self._slot(args[0], "value"), self._slot(args[3], "value")], self._numbers(args[1:3])
                if slots[0] < 0 or slots[0] == slots[1]:
                    raise _NeedsPython
            else:
                slots, numbers = [self._slot(arg, "value") for arg in args[:count]], self._numbers(args[count:])
            self._add(what, name, "value", slots, numbers)
        elif what == "concat" and isinstance(args[0], list):
            self._add(what, name, "value", [self._slot(item, "value") for item in args[0]])
        elif what == "clear_op":
            self._add(f"clear {args[0]}", name, "value", [self._slot(arg, "value") for arg in args[1:]])
        elif what == "gather":
            self._add(what, name, "value", [self._slot(args[0], "value"), self._slot(args[1], "ints")])
        elif what == "clear":
            self._add(what, name, "value", [self._slot(args[0], "ints")])
        elif what == "input":
            given = [self._slot(arg, "ints") for arg in args[2:] if arg is not None]
            self._add(what, name, "value", given, self._numbers(args[:2]))
        elif what == "clear_bits":
            self._add(what, name, "value", [self._slot(args[0], "bits")])
        elif what == "read_bits":
            self._add(what, name, "bits", [self._slot(args[0], "value")])
        elif what == "import_":
            self._add(what, name, "value", [self._slot(args[0], "bytes")], self._numbers(args[1:]))
        elif what == "read":
            self._add(what, name, "words", [self._slot(args[0], "value")])
        elif what == "summand_bits":
            self._add(what, name, "rows", [self._slot(args[0], "value")], self._numbers(args[1:]))
        elif what == "edabit":
            self._numbers_with_bits.add(name)
            self._add(what, name, "rows", [], self._numbers(args))
        elif what == "flush":
            self._add(what, name, "", [])
        else:
            raise _NeedsPython

    def _of_persistence(self, name: str, what: str, args: list[Any]) -> None:
        self.shares = True
        if self._stored and what in _AFTER_STORES:
            raise _NeedsPython
        if what == "check":
            return  # runs with share files of this length pass, and the form is checked before
        if what == "read":
            self._add("load", name, "bytes", [], self._numbers(args[1:]))
        elif what == "pick":
            self._add("pick", name, "bytes", [self._slot(args[2], "ints")], self._numbers(args[1:2]))
        else:
            raise _NeedsPython

    def _of_io(self, name: str, what: str, args: list[Any]) -> None:
        if what == "take_public":
            self._add("public", name, "ints", [], self._numbers(args))
        elif what == "take_private":
            if name:
                self._add("private", name, "ints", [], self._numbers(args[2:]))
        elif what == "store" and self._numbers(args[2:]) == [-1]:
            self._stored = self.shares = True
            self._add("store", "", "", [self._slot(args[1], "value")])
        elif what == "output":
            self._add("output", "", "", [self._slot(args[0], "ints")], self._numbers([arg for arg in args[1:] if arg is not None]))
        elif what == "output_personal":
            self._add("output_personal", "", "", [self._slot(args[0], "ints")])
        else:
            raise _NeedsPython

    def _function(self, name: str, function: Any, args: list[Any]) -> None:
        if (what := _ELEMENTWISE.get(function)) is not None:
            slots = [self._slot(arg, "ints", "words") for arg in args]
            [kind, *mixed] = {self._kinds[slot] for slot, arg in zip(slots, args, strict=True) if isinstance(arg, _Name)}
            if mixed or (what in _SHIFTS and not (slots[1] < 0 and all(0 <= n < 64 for n in self.constants[-1 - slots[1]]))):
                raise _NeedsPython
            self._add("word >>" if (what, kind) == ("int >>", "words") else what, name, kind, slots)
        elif (called := f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}") in _COPIES:
            self._add("int copy", name, "ints", [self._slot(args[0], "ints")])
        elif called == _IN_RANGE:
            self._add("in_range", name, "ints", [self._slot(args[0], "ints")], self._numbers(args[1:]))
        elif called == _METHOD and self._cast(args[1:], np.int64):
            kinds = ("words", "ints", "bits") if args[1] == "astype" else ("words", "ints")
            self._add("int copy", name, "ints", [self._slot(args[0], *kinds)])
        elif called == _METHOD and self._cast(args[1:], np.uint8) and args[1] == "astype":
            self._add("int &", name, "bits", [self._slot(args[0], "words", "ints"), self._slot(255, "ints")])
        else:
            raise _NeedsPython

    def _cast(self, args: list[Any], to: type) -> bool:
        """Whether these are the arguments of ``view`` or ``astype`` to this type."""
        return len(args) == 2 and args[0] in ("view", "astype") and isinstance(args[1], _Name) and self._named.get(args[1]) is to

    def script(self) -> Script:
        """The steps with the slots that each was the last to use."""
        first, seen, steps = len(self.constants), set[int](), []
        for what, out, slots, numbers in reversed(self.steps):
            last = [slot for slot in dict.fromkeys(slots) if slot >= 0 and slot not in seen]
            seen.update(last)
            places = [slot + first if slot >= 0 else -1 - slot for slot in slots]
            steps.append((what, out if out < 0 else out + first, places, numbers, [slot + first for slot in last]))
        return Script(_engine.Script(self.constants, steps[::-1]), self.shares)


def script_of(text: str, constants: dict[str, Any]) -> Script | None:
    """The steps of a tape's text, or None if some of them need Python."""
    translation = _Translation(constants)
    try:
        for line in text.splitlines()[1:]:
            if line.strip():
                translation.line(line.strip())
        return translation.script()
    except (_NeedsPython, LookupError, TypeError, ValueError):  # the run that was recorded is right, whatever we make of it
        return None
