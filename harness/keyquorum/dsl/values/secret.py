"""Secret vectors of the arithmetic domain (sint), and values that one party knows (personal). One file, since each converts to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..containers.memory import EngineMemory, Memory
from ..context import Dynamic, Ints, Value, current
from ..errors import CompilerError, VectorMismatch
from ..recording.recorded import contiguous
from . import comparison, shuffle
from .base import RunTime, SecretRunTime, is_constant, read
from .binary import cbits, sbits
from .bitvectors import rows_of_numbers, sbitvec
from .clear import cint, regint, register_secret
from .secret_comparisons import Comparisons, divided
from .secret_files import Stored
from .secret_sources import Sources


class sint(Comparisons, Sources, Stored, SecretRunTime):
    """A secret vector over the domain. ``+ - *`` take sint, cint, regint and int, of equal sizes or size 1. A
    product of secrets, a comparison or an opening communicates when its result is needed, in one round with all other operations that
    are ready. A sint from a public value is a public value internally: products with it are local, and opening it is free.
    """

    __slots__ = ("_unshifted",)
    needs_room = True
    """Over a field a comparison masks the integer, which needs more bits than it has."""
    _unshifted: tuple[Value, int]
    """Of a vector that is the result of a left shift: the operand and the number of bits, for :meth:`reveal`."""

    def __init__(self, val: object = None, size: int | None = None) -> None:
        run = current()
        val = read(val)
        if self._load_constant(val, size):
            return
        if isinstance(val, (list, tuple)):
            self._from_list(val)
        elif isinstance(val, (cint, sint)):
            self._value, self._make, self.size = val._value, val._make, val.size
            if isinstance(val, sint) and val._unread:
                self._is_stored_at(val._place)
        elif isinstance(val, (regint, cbits)):
            clear = cint(val)
            self._value, self._make, self.size = clear._value, clear._make, clear.size
        elif isinstance(val, sbits):
            bits = val.value
            self._set(run.bits_to_clear(bits) if bits.kind == "cb" else run.engine.bit_to_arith(bits))
        elif isinstance(val, sbitvec):
            self._set(sint.bit_compose(val).value)
        elif isinstance(val, personal):
            self._set(val._share())
        else:
            raise CompilerError(f"cannot convert {type(val).__name__} to sint")
        if size is not None and size != self.size:
            raise VectorMismatch(f"mismatch in vector size: {self.size}, not {size}")

    def _from_list(self, val: Sequence[Dynamic]) -> None:
        run = current()
        if all(is_constant(v) for v in val):
            self._set(run.constants(val))
            return
        parts = [sint(v) for v in val]
        if any(p.size != 1 for p in parts):
            raise VectorMismatch("the elements of a list must be scalars: use sint.concat")
        self._set(run.engine.concat([p.value for p in parts]))

    @classmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as this type; a list element by element."""
        value = read(value)
        if isinstance(value, cls):
            return value
        if isinstance(value, (list, tuple)):
            return type(value)(cls.conv(v) for v in value)
        return cls(value)

    @classmethod
    def hard_conv(cls, value: object) -> Dynamic:
        """See :meth:`conv`."""
        return cls.conv(value)

    @classmethod
    def _memory_kind(cls) -> str:
        return "sint"

    @classmethod
    def _allocate(cls, size: int) -> Memory:
        return EngineMemory(size, sint, secret=True)

    # -- arithmetic beyond + - * --------------------------------------------------------------------------------------

    def __neg__(self) -> Dynamic:
        return sint._wrap(current().engine.neg(self.value))

    def __abs__(self) -> Dynamic:
        return (self >= 0).if_else(self, -self)

    def __lshift__(self, other: object) -> Dynamic:
        if not is_constant(other):
            return NotImplemented
        run, value = current(), self.value

        def make() -> Value:
            return run.engine.mul(value, run.clear_ints((pow(2, other, run.modulus),)))

        if not (run.is_ring and 0 < other < run.engine.bits and value.kind == "s"):
            return sint._wrap(make())
        shifted = sint._lazy(self.size, make)
        shifted._unshifted = (value, other)
        return shifted

    def __rshift__(self, other: object) -> Dynamic:
        return self.right_shift(other) if is_constant(other) else NotImplemented

    def right_shift(self, m: int, bit_length: int | None = None) -> sint:
        """floor(x / 2^m) for signed integers of ``bit_length`` bits (default: ``program.bit_length``)."""
        if not is_constant(m) or m < 0:
            raise CompilerError(f"a right shift takes a compile-time integer of at least 0, not {m!r}")
        run = current()
        return self if m == 0 else sint._wrap(comparison.shift_right(run, self.value, bit_length or run.program.bit_length, m))

    def __mod__(self, modulus: object) -> Dynamic:
        if not is_constant(modulus) or modulus < 1 or modulus & (modulus - 1):
            raise CompilerError("modulo of secret values only for powers of two")
        return self.mod2m(modulus.bit_length() - 1)

    def mod2m(self, m: int, bit_length: int | None = None) -> Dynamic:
        """x mod 2^m for signed integers of ``bit_length`` bits (default: ``program.bit_length``)."""
        run = current()
        k = bit_length or run.program.bit_length
        if m == 0:
            return 0
        return self if m >= k else sint._wrap(comparison.modulo_power(run, self.value, k, m))

    def int_div(self, other: object, bit_length: int | None = None) -> sint:
        """x / y rounded down, of signed integers of ``bit_length`` bits (default: ``program.bit_length``): ``bit_length`` consecutive
        comparisons. For y = 0 the result is undefined."""
        quotient: sint = divided(self, sint.conv(read(other)), bit_length or current().program.bit_length, down=True)
        return quotient

    def int_mod(self, other: object, bit_length: int | None = None) -> sint:
        """The remainder of :meth:`int_div`: x - y (x / y)."""
        result: sint = self - other * self.int_div(other, bit_length)
        return result

    def sum(self) -> sint:
        """Sum of the elements. Local."""
        if self.size == 0:
            return sint(0)
        return sint._wrap(current().engine.sum(self.value, self.size))

    @classmethod
    def dot_product(cls, x: Dynamic, y: Dynamic) -> sint:
        """Sum of products, of two vectors or of two lists of vectors (element by element). One round; the traffic of
        one product per element of the result."""
        x, y = (p.get_vector() if hasattr(p, "_memory") else p for p in (x, y))
        engine = current().engine
        if isinstance(x, RunTime) or isinstance(y, RunTime):
            if not (isinstance(x, sint) and isinstance(y, sint)):
                raise CompilerError("sint.dot_product takes two sint vectors: for a public factor use (a * c).sum()")
            if x.size != y.size:
                raise VectorMismatch(f"inner product of vectors of sizes {x.size} and {y.size}")
            return sint._wrap(engine.dot(x.value, y.value, x.size))
        left, right = list(x), list(y)
        if len(left) != len(right) or not left:
            raise VectorMismatch(f"inner product of lists of {len(left)} and {len(right)} vectors")
        if not all(isinstance(v, sint) for v in (*left, *right)):
            raise CompilerError("sint.dot_product takes lists of sint: for public factors use sums of products")
        size = left[0].size
        if any(v.size != size for v in (*left, *right)):
            raise VectorMismatch("sint.dot_product takes vectors of one size")
        order = np.ascontiguousarray(np.arange(len(left) * size, dtype=np.int64).reshape(len(left), size).T.ravel())
        a, b = (engine.gather(engine.concat([v.value for v in side]), order) for side in (left, right))
        return sint._wrap(engine.dot(a, b, len(left)))

    # -- opening ------------------------------------------------------------------------------------------------------

    def reveal(self, check: bool = True) -> cint:
        """Opens the vector to all parties. One round. Of a vector that was shifted to the left only the remaining low bits of the operand are sent
        (with MACs 48 bits more). ``check``: False for such bits under masks that serve once: a plan may defer their check until something else is opened,
        stored or written (:attr:`.Program.defers_checks`)."""
        if self._value is None and getattr(self, "_unshifted", None) is not None:
            run, (source, shift) = current(), self._unshifted
            opening = run.engine.open_low if check else run.engine.open_masked
            low = opening(source, run.engine.bits - shift)
            return cint._wrap(run.engine.mul(low, run.clear_ints((1 << shift,))))
        value = self.value
        return cint._wrap(value if value.kind == "c" else current().engine.open(value))

    def _transformed(self, n: int) -> Dynamic:
        """Negacyclic transforms of the polynomials of n coefficients of this vector; local."""
        return sint._wrap(current().engine.transform(self.value, n))

    def reveal_to(self, player: int) -> personal:
        """Opens the vector to one party (compile-time number). One round."""
        if not is_constant(player):
            raise CompilerError("reveal_to takes a compile-time party number")
        run = current()
        if run.emulated:
            return personal(player, self.reveal())
        value = self.value
        return personal(player, run.engine.open_to(run.to_secret(value), player))

    # -- bits ---------------------------------------------------------------------------------------------------------

    def _low_rows(self, k: int, m: int) -> list[Dynamic]:
        return rows_of_numbers(current(), self.value, k, m)

    def bit_decompose(self, bit_length: int | None = None, maybe_mixed: bool = False) -> list[Dynamic]:
        """The low bits of signed integers of ``bit_length`` bits (default: ``program.bit_length``), least significant
        first: sintbit vectors, or sbits rows if ``maybe_mixed`` and shares split (``program.use_split()``)."""
        run = current()
        length = run.program.bit_length if bit_length is None else bit_length
        if length == 0:
            return []
        if maybe_mixed and run.program.use_split():
            return self._low_rows(length, length)
        return [sintbit._wrap(v) for v in comparison.bit_elements(run, self.value, length, length)]

    @classmethod
    def bit_compose(cls, bits: Dynamic) -> Dynamic:
        """The number with these bits (a list of sint, cint or sbits vectors, or a sbitvec). Rows of sbits are
        converted."""
        if isinstance(bits, sbits):
            bits = bits.bit_decompose()
        elif isinstance(bits, sbitvec):
            bits = bits.v
        total: Dynamic = 0
        for i, bit in enumerate(bits):
            total = total + (sint.conv(bit) << i)
        if is_constant(total):
            raise CompilerError("bit_compose of no bits")
        return total

    def split_to_n_summands(self, length: int, n: int) -> list[list[Dynamic]]:
        """The low ``length`` bits of the ``n`` (``program.use_split()``) summands of the share: [bit][summand], as
        sbits.

        Local. x = sum of the summands mod 2^k, each of them known to parties. Rings only.
        """
        run = current()
        summands = run.program.use_split()
        if not run.is_ring or not summands:
            raise CompilerError(f"shares of {run.engine.protocol} over {run.engine.domain} do not split into summands")
        if n != summands:
            raise CompilerError(f"shares of {run.engine.protocol} have {summands} summands, not {n}: pass program.use_split()")
        comparison.require_bits(run, length, "splitting")
        rows = run.engine.summand_bits(run.to_secret(self.value), length)
        zero = sbits.get_type(self.size)
        parts = [[sbits._wrap(r) for r in summand] for summand in rows]
        parts += [[zero(0) for _ in range(length)] for _ in range(summands - len(rows))]
        return [[part[i] for part in parts] for i in range(length)]

    # -- shuffling ----------------------------------------------------------------------------------------------------

    def secure_shuffle(self, unit_size: int = 1) -> sint:
        """The elements (blocks of ``unit_size``) in a uniformly random order that no t parties know, see
        :mod:`keyquorum.dsl.values.shuffle`."""
        return sint._wrap(shuffle.secure_shuffle(current(), self.value, unit_size))

    @staticmethod
    def get_secure_shuffle(n: int) -> shuffle.SecretPermutation:
        """A random permutation of ``n`` blocks for :meth:`secure_permute`. One round."""
        return shuffle.SecretPermutation(n)

    def secure_permute(self, permutation: object, unit_size: int = 1, reverse: bool = False) -> sint:
        """The elements (blocks of ``unit_size``) moved by a permutation of :meth:`get_secure_shuffle`, or moved back. Rounds and products are those
        of a shuffle by switching networks, see :mod:`keyquorum.dsl.values.shuffle`."""
        if not isinstance(permutation, shuffle.SecretPermutation):
            raise CompilerError(f"secure_permute takes a permutation of get_secure_shuffle, not {type(permutation).__name__}")
        return sint._wrap(permutation.apply(self.value, unit_size, reverse))

    def inverse_permutation(self) -> sint:
        """The inverse of the permutation of 0, 1, ... that this vector is. Opens it in a random order that no t parties know."""
        moving, own = sint.get_secure_shuffle(self.size), sint(regint.inc(self.size))
        inverse = sint.Array(self.size)
        inverse.assign(own.secure_permute(moving), regint(self.secure_permute(moving).reveal()))
        result: sint = inverse.get_vector()
        return result


class sintbit(sint):
    """Secret bits 0 and 1 in the arithmetic domain, the result of comparisons: ``& | ^`` among each other."""

    __slots__ = ()

    @classmethod
    def _bit(cls, other: object) -> Dynamic:
        other = read(other)
        return other if isinstance(other, sintbit) or (is_constant(other) and other in (0, 1)) else None

    def _made(self, result: object) -> Dynamic:
        return sintbit._wrap(result.value) if isinstance(result, sint) else result

    def __and__(self, other: object) -> Dynamic:
        o = self._bit(other)
        if o is None:
            return NotImplemented
        return self._made(self * o) if not is_constant(o) else (self if o else 0)

    def __or__(self, other: object) -> Dynamic:
        o = self._bit(other)
        if o is None:
            return NotImplemented
        return self._made(self + o - self * o) if not is_constant(o) else (1 if o else self)

    def __xor__(self, other: object) -> Dynamic:
        o = self._bit(other)
        return NotImplemented if o is None else self._made(self.bit_xor(o))

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def __rsub__(self, other: object) -> Dynamic:
        result = super().__rsub__(other)
        return self._made(result) if is_constant(other) and other == 1 else result


register_secret(sint, sintbit)


class personal(RunTime):
    """A vector that one party knows. ``+ - *`` with public values and with values of the same party are local, after the
    opening that made the value."""

    __slots__ = ("_known", "player", "size")
    _known: Value
    player: int
    size: int

    def __init__(self, player: int, value: Dynamic) -> None:
        """``value``: a personal or clear handle of the engine, or public values (cint)."""
        if not is_constant(player):
            raise CompilerError("the party of a personal value is a compile-time number")
        self.player = int(player)
        value = read(value)
        if isinstance(value, personal):
            self._same_player(value)
            self._known, self.size = value._known, value.size
        elif hasattr(value, "kind"):
            self._known, self.size = value, value.size
        else:
            public = cint.conv(value)
            self._known, self.size = public.value, public.size

    @classmethod
    def read_int(cls, player: int, n_bytes: int | None = None) -> personal:
        """The next int64 word of ``player``'s private input, for ``player`` alone."""
        if n_bytes not in (None, 0, 8):
            raise CompilerError(f"binary input has 8 bytes a number, not {n_bytes}")
        run = current()
        words = run.io.take_private(run.engine, player, 1)
        return cls(player, run.engine.clear(np.zeros(1, dtype=np.int64) if words is None else words))

    @property
    def mine(self) -> bool:
        """Whether this party knows the value."""
        run = current()
        return run.emulated or run.engine.party == self.player

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"personal({self.player}, {self.size})"

    def numbers(self) -> Dynamic:
        """The centred numbers, at the party that knows them."""
        if not self.mine:
            raise CompilerError(f"this value is known to party {self.player} only")
        return current().centred(self._known)

    def _clear(self) -> Value:
        """A clear handle: the numbers at the party that knows them, zeros elsewhere. All parties do the same operations, since the
        schedule of rounds must be the same."""
        run = current()
        if self._known.kind == "c":
            return self._known
        run.engine.flush()  # all parties alike: only one of them is going to read
        self._known = run.clear_ints(run.canonical(self._known).tolist() if self.mine else [0] * self.size)
        return self._known

    def _share(self) -> Value:
        run = current()
        words: Ints | None = None
        if self._known.kind == "p":
            run.engine.flush()  # all parties alike: only one of them is going to read
        if self.mine:
            words = contiguous(run.int64s(self._known))
            if run.bits > 64 and run.centred(self._known).tolist() != words.tolist():
                raise CompilerError("personal values of more than 64 bits cannot be shared")
        return run.engine.input(0 if run.emulated else self.player, self.size, words)

    def binary_output(self) -> None:
        """Writes the centred numbers, as int64, to the binary output of the party that knows them."""
        run, known = current(), self._known
        if self.mine:
            run.defer(lambda: run.io.output_personal(run.int64s(known)))

    def get_vector(self, base: int = 0, size: int | None = None) -> personal:
        """A part of the vector."""
        return personal(self.player, cint._wrap(self._clear()).get_vector(base, size))

    def reveal_to(self, player: int) -> personal:
        """The same numbers, known to another party as well. Costs an input and an opening."""
        return sint(self).reveal_to(player)

    def _same_player(self, other: personal) -> None:
        if other.player != self.player:
            raise CompilerError(f"personal values of parties {self.player} and {other.player} do not go together")

    def _apply(self, other: object, function: Callable[[Dynamic, Dynamic], Dynamic]) -> Dynamic:
        other = read(other)
        if isinstance(other, personal):
            self._same_player(other)
            other = cint._wrap(other._clear())
        elif isinstance(other, SecretRunTime):
            raise CompilerError("a personal value does not go with a secret one: share it with sint(...) first")
        result = function(cint._wrap(self._clear()), other)
        if is_constant(result):
            raise CompilerError("a personal value times 0 is 0: use cint(0)")
        return NotImplemented if result is NotImplemented else personal(self.player, result)

    def __add__(self, other: object) -> Dynamic:
        return self._apply(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        return self._apply(other, lambda a, b: a - b)

    def __rsub__(self, other: object) -> Dynamic:
        return self._apply(other, lambda a, b: b - a)

    def __mul__(self, other: object) -> Dynamic:
        return self._apply(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __neg__(self) -> Dynamic:
        return personal(self.player, -cint._wrap(self._clear()))
