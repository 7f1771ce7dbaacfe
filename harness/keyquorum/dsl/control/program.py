"""The object ``program`` of programs: arguments and compile-time settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keyquorum.model.protocols import PROTOCOLS

from ..context import Dynamic, current
from ..errors import SUBSET, CompilerError
from ..values import bit_circuits
from ..values.base import is_constant, public_int

WORD = 64
"""Integer length of programs on bits alone (``-B``)."""


@dataclass(frozen=True)
class ProgramOptions:
    """Options of a run, with the meaning of MP-SPDZ's compiler. field: integer bit length over a prime field (``-F``), 0 for the
    default of 64. security: statistical security of masks in bits."""

    field: int = 0
    security: int = 40


class _Options:
    """``program.options``. ring: the ring size as text, or 0 over a field. field: the length of -F as text, or 0. The
    prime is known at run time only."""

    def __init__(self, ring: int, field: int, malicious: bool) -> None:
        self.ring: str | int = str(ring) if ring else 0
        self.field: str | int = str(field) if field else 0
        self.prime: int | None = None
        self.binary = 0
        self.garbled = False
        self._bounded_masks = not malicious

    @property
    def bounded_masks(self) -> bool:
        """Not in MP-SPDZ, where it has no effect: whether comparisons over fields have masks that hide numbers within their bit length alone. Such masks
        take fewer random bits, and **reveal the high bits of every number that is longer**. The default under protocols with semi-honest security."""
        return self._bounded_masks

    @bounded_masks.setter
    def bounded_masks(self, bounded: object) -> None:
        if not isinstance(bounded, bool):
            raise CompilerError(f"program.options.bounded_masks is True or False, not {bounded!r}")
        self._bounded_masks = bounded


class _Tape:
    """``program.curr_tape``: settings of the code that a compiler generates."""

    def start_new_basicblock(self, *_: object, **__: object) -> None:
        """Does nothing: operations are done in the order of their data."""

    def require_bit_length(self, bit_length: int, t: str = "p") -> None:
        """Raises CompilerError if integers of this length do not fit the domain."""
        run = current()
        if run.bits < bit_length:
            raise CompilerError(f"the program needs {bit_length} bits, {run.engine.domain} has {run.bits}: take a larger domain")

    def __getattr__(self, name: str) -> Dynamic:
        raise AttributeError(f"program.curr_tape.{name} is {SUBSET}")


class Program:
    """``args``: name and arguments. ``bit_length``: default length of integers in comparisons."""

    def __init__(self, engine: Dynamic, path: str, name: str, args: list[str], options: ProgramOptions) -> None:
        self._engine = engine
        self.args = [name, *args]
        self.infile = path
        self.name = "-".join([name, *(a.replace("/", "_") for a in args)])
        self.programs_dir = "Programs"
        ring = engine.modulus is None
        bits_alone = engine.domain == "bits"
        malicious = PROTOCOLS[engine.protocol].adversary == "malicious"
        self.options = _Options(engine.bits if ring and not bits_alone else 0, 0 if ring else options.field, malicious)
        self.options.binary = WORD if bits_alone else 0
        self.prime: int | None = None
        self.bit_length: int = engine.bits - 1 if ring and not bits_alone else options.field or 64
        self._security = options.security
        self._edabit = bool(engine.has_edabits)
        self._tapes: list[tuple[Callable[..., Dynamic], tuple[Dynamic, ...]]] = []
        self.use_trunc_pr: Dynamic = False

    @property
    def security(self) -> int:
        """Statistical security of masked comparisons, in bits."""
        return self._security

    @security.setter
    def security(self, security: int) -> None:
        self.set_security(security)

    def set_security(self, security: int) -> None:
        """Changes the statistical security of later operations."""
        if not is_constant(security) or security < 1:
            raise CompilerError(f"the security parameter is a positive number of bits, not {security!r}")
        self._security = security

    def use_split(self, change: object = None) -> Dynamic:
        """Number of summands into which shares split, or False (fields). ``emulate`` counts as 3 parties on rings."""
        if PROTOCOLS[self._engine.protocol].emulated:
            available = 3 if self._engine.modulus is None else 0
        else:
            available = self._engine.summands if self._engine.modulus is None else 0
        if change is None:
            return available or False
        if change and change != available:
            raise CompilerError(f"shares of {self._engine.protocol} over {self._engine.domain} split into {available} summands, not {change}")
        return None

    @property
    def negacyclic_product(self) -> Callable[[Dynamic, Dynamic], Dynamic] | None:
        """Not in MP-SPDZ: the engine's local products modulo X^n + 1. None where there are none: over fields, and in rings above 64 bits.

        The function takes a public vector, whose polynomials of n coefficients follow one another, and a secret vector of n coefficients, where n is a
        power of two in 2..32768. `Programs/Library/negacyclic.py` has the same for every front end and n."""
        engine = self._engine
        if engine.modulus is not None or engine.domain == "bits" or engine.bits > WORD:
            return None
        return lambda a, s: a._negacyclic_product(s)

    @property
    def transform(self) -> Callable[[Dynamic, int], Dynamic] | None:
        """Not in MP-SPDZ: the engine's local negacyclic transforms, in SEAL's order. None where there are none: modulo 2^k.

        The function takes a vector, whose polynomials of n coefficients follow one another, and n, a power of two in 2..32768 such that the prime is 1
        modulo 2n. `Programs/Library/ntt.py` has the same for every front end, a polynomial at a time."""
        return None if self._engine.modulus is None else lambda a, n: a._transformed(n)

    @property
    def bit_products(self) -> Callable[[Dynamic, Dynamic, int], Dynamic] | None:
        """Not in MP-SPDZ: the engine's products of secret bits with a secret vector, times 2^shift. None where there are none: over fields and with MACs.

        The function takes a secret vector of values 0 and 1, a secret vector and the shift. The products of the first bit with all elements come first.
        `Programs/Library/bit_products.py` has the same for every front end."""
        engine = self._engine
        if engine.modulus is not None or engine.domain == "bits" or PROTOCOLS[engine.protocol].macs:
            return None
        return lambda bits, v, shift: bits._bit_products(v, shift)

    @property
    def bit_circuit(self) -> Callable[..., Dynamic] | None:
        """Not in MP-SPDZ: the engine's evaluation of a Boolean circuit on many rows of bits in one call. None where there are no secret bits.

        The function takes a function of lists of rows that returns a list of rows, a list of pairs (bits, number of rows), the bits of a row, and for how many
        copies of the inputs it is evaluated. Row k of copy c lies at bit (c·rows + k)·size of the bits and of the result. A pair whose bits are as many as its
        rows has one bit a row, the same everywhere. `Programs/Library/bit_rows.py` has the same for every front end."""
        if not self._engine.has_binary:
            return None
        return lambda function, operands, size, copies=1: bit_circuits.evaluate(current(), function, operands, size, copies)

    @property
    def defers_checks(self) -> bool:
        """Not in MP-SPDZ: whether openings without a check (``reveal(check=False)``) are verified before anything else is opened, stored or written. MP-SPDZ verifies them
        at the end of the run, after the last opening."""
        return True

    @property
    def table_lookup(self) -> Callable[..., Dynamic]:
        """Not in MP-SPDZ: the engine's local look-ups in a public table at secret positions x, from public y = x xor r and the one-hot vectors of r.

        The function takes a secret vector (entry 0 of all one-hot vectors, entry 1 of all, ..), a public vector of the y, the values of the table as a list,
        the bits of a value, and the number of the first one-hot vector. Its result has bit 0 of all values, then bit 1 of all, ...
        `Programs/Library/table_lookup.py` has the same for every front end."""
        return lambda hot, at, table, bits, first=0: hot._looked_up(at, table, bits, first)

    def use_edabit(self, change: object = None) -> Dynamic:
        """A setting of MP-SPDZ: whether conversions use edaBits. It has no effect here, where conversions choose the cheaper way."""
        if change is None:
            return self._edabit
        self._edabit = bool(change)
        return None

    def set_bit_length(self, bit_length: int) -> None:
        """Changes the default length of integers in comparisons."""
        if not is_constant(bit_length) or bit_length < 1:
            raise CompilerError(f"the bit length is a positive compile-time integer, not {bit_length!r}")
        self.bit_length = int(bit_length)

    def options_from_args(self) -> None:
        """Reads settings from the program's arguments. ``split<n>`` is checked, see :meth:`use_split`; ``edabit`` is :meth:`use_edabit`; the others
        have no effect here."""
        for argument in self.args[1:]:
            found = re.fullmatch("split([0-9]*)", argument)
            if found:
                self.use_split(int(found[1] or 3))
            elif argument == "edabit":
                self.use_edabit(True)

    @property
    def curr_tape(self) -> _Tape:
        """The tape that runs: there is only one."""
        return _Tape()

    def new_tape(self, function: Callable[..., Dynamic], args: Sequence[object] = (), name: str | None = None) -> int:
        """A function that ``run_tape`` runs; the result is its number. It runs in the thread of the program."""
        self._tapes.append((function, tuple(args)))
        return len(self._tapes) - 1

    def run_tape(self, number: int, arg: object = 0) -> int:
        """Runs a function of ``new_tape``, in which ``get_arg()`` is ``arg``. The result is for ``join_tape``."""
        function, args = self._tapes[number]
        run = current()
        before, run.thread_argument = run.thread_argument, public_int(arg, "run_tape")
        try:
            function(*args)
        finally:
            run.thread_argument = before
        return number

    def run_tapes(self, args: Sequence[Dynamic]) -> list[int]:
        """Runs several functions of ``new_tape``: numbers, or pairs of number and argument."""
        pairs = [(a, 0) if is_constant(a) else tuple(a) for a in args]
        return [self.run_tape(number, arg) for number, arg in pairs]

    def join_tape(self, number: int) -> None:
        """Does nothing: the function has ended."""

    def join_tapes(self, numbers: Sequence[int]) -> None:
        """Does nothing: the functions have ended."""

    def __getattr__(self, name: str) -> Dynamic:
        raise AttributeError(f"program.{name} is outside the supported subset of the language (docs/pages/dsl.md)")
