"""Small programs that run again and again: what one run asked for is recorded, and asked for again without the program.

A run is the list of its calls to the engine, the share file and the input and output, and of the operations on public numbers between
them. As long as nothing that the data decides steers Python, another run with the same arguments and inputs of the same sizes makes the
same calls, with other data. A :class:`Recorder` notes the calls. What they return is opaque to the program: values of the engine anyway, and public
numbers as :class:`Traced`. Whoever looks into one by other means than a noted operation ends the recording, not the run.

A :class:`Tape` is made of it: a Python function without branches. Shares, inputs and randomness are those of each run; constants alone
are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from keyquorum import _engine

from .script import script_of

P = ParamSpec("P")
R = TypeVar("R")

MOST_CALLS = 8192
"""Calls of the longest tape."""
MOST_CONSTANTS = 1 << 20
"""Bytes of constants that a tape keeps."""
MOST_HELD = 1 << 22
"""Elements of all vectors of a recorded run, which are held until its end. No more than may wait for a round (PENDING_LIMIT of the engine): what
is played sends nothing before it is asked to."""

_UNNOTED = {"stats", "material", "bind", "require_own"}
"""Methods that a run may call without changing anything."""
_FOLDED = {"engine.clear", "engine.clear_wide", "engine.clear_bits", "engine.inc"}
"""Calls that make the same of the same constants, which are kept then."""
_PRIVATE = {"engine.input", "engine.input_bits"}
"""Calls that take private data: an input of the run, which is :class:`Traced`, or randomness that the front end drew."""
_FUNCTIONS = {np.concatenate, np.where, np.take, np.stack, np.ravel, np.reshape, np.broadcast_to}
_METHODS = {"astype", "view", "copy", "tobytes", "ravel", "reshape", "min", "max", "sum", "any", "all"}
_SHAPE = {"size", "shape", "dtype", "ndim", "nbytes"}


class _NotConstant(Exception):
    """An argument that is neither known to the recorder nor a constant."""


class Tape:
    """A recorded run. ``text``: of the function, ``constants``: what it names k1, k2, ...; ``files``: the program and its helpers, with their
    versions."""

    def __init__(self, text: str, constants: dict[str, Any], files: Sequence[tuple[str, Any]]) -> None:
        self.text, self.constants, self.files = text, constants, files
        self.script = script_of(text, constants)
        """The same for the engine alone, if no step needs Python."""
        self._play: Callable[[Any, Any, Any], None] | None = None

    def play(self, engine: Any, io: Any) -> None:
        """Does again, with other data and by Python, what was recorded on this engine."""
        io.bind(engine)
        if self._play is None:
            space = dict(self.constants)
            exec(compile(self.text, "<tape>", "exec"), space)
            self._play = space["play"]
        self._play(engine, io.persistence, io)


class Recorder:
    """Notes the calls of one run. ``engine`` and ``io`` are what the run gets instead of the given ones; ``kept``: values of the engine
    that outlive the run. ``failure``: why there will be no tape. ``files``: set at the end of a run that another one with these files would repeat."""

    def __init__(self, engine: Any, io: Any, kept: Iterable[Any] = ()) -> None:
        self.failure: str | None = None
        self.files: Sequence[tuple[str, Any]] | None = None
        self._lines: list[tuple[str, str | None, list[str]]] = []  # a call, the name of its result, the names it uses
        self._constants: dict[str, Any] = {}
        self._functions: dict[Any, str] = {}
        self._names: dict[int, str] = {}
        self._held: list[Any] = []
        self._held_elements = self._constant_bytes = self._numbered = 0
        self._inside = False
        self._kept = kept
        persistence = Watched(self, "persistence", io.persistence)
        self.engine = Watched(self, "engine", engine)
        self.io = Watched(self, "io", io, {id(io.persistence): persistence})

    def fail(self, why: str) -> None:
        """There will be no tape."""
        if self.failure is None:
            self.failure = why
            for collection in (self._lines, self._constants, self._functions, self._names, self._held):
                collection.clear()

    def close(self) -> None:
        """Forgets the run."""
        self.fail("the recording is over")
        del self.engine, self.io

    def tape(self) -> Tape | None:
        """What was recorded."""
        if self.files is None:
            self.fail("the program keeps something, or looks at something that is not its input")
        if self.failure is not None or self.files is None:
            return None
        body: list[str] = []
        needed: set[str] = set()
        for call, name, used in reversed(self._lines):  # what is not used any more goes
            if name not in needed and len(used) == 1 and call.startswith(f"{used[0]}["):
                continue  # an item of a result that nobody needed
            over = [other for other in dict.fromkeys(used) if other not in needed]
            needed.update(over)
            if over:
                body.append(f"del {', '.join(over)}")
            body.append(f"{name} = {call}" if name in needed else call)
        text = "\n    ".join(["def play(engine, persistence, io):", *reversed(body), "return None", ""])
        return Tape(text, dict(self._constants), self.files)

    def call(self, what: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a function, and notes it. ``what``: its name in the tape."""
        if self._inside:
            self.fail(f"{what} was called by what is noted")
        if what in _PRIVATE and any(isinstance(a, np.ndarray) for a in (*args, *kwargs.values())):
            self.fail(f"{what} takes private data that was no input")
        used: list[str] = []
        text = self._call_text(what, args, kwargs, used) if self.failure is None else ""
        outer, self._inside = self._inside, True
        try:
            result = function(*[plain(a) for a in args], **{key: plain(a) for key, a in kwargs.items()})
        except BaseException:
            if used:  # with constants alone it always fails, and is not noted
                self.fail(f"{what} failed")
            raise
        finally:
            self._inside = outer
        if self.failure is not None:
            return result
        if what in _FOLDED and not used:
            self._names[id(result)] = self._constant(result)
            return result
        return self._named(result, text, used)

    def call_function(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """:meth:`call` of a function that the tape gets as a constant."""
        name = self._functions.get(function)
        if name is None and self.failure is None:
            name = self._constant(function)
            self._functions[function] = name
        return self.call(name or "", function, args, kwargs)

    def _call_text(self, what: str, args: Sequence[Any], kwargs: dict[str, Any], used: list[str]) -> str:
        """A call as the tape makes it; adds the names of what it uses."""
        constants = set(self._constants) if what in _FOLDED else set()
        try:
            parts = [self._shown(a, used) for a in args] + [f"{key}={self._shown(a, used)}" for key, a in kwargs.items()]
        except _NotConstant as problem:
            self.fail(f"{what} takes {problem}")
            return ""
        if what in _FOLDED and not used:  # only what is made of them is kept
            for name in set(self._constants) - constants:
                del self._constants[name]
        return f"{what}({', '.join(parts)})"

    def _named(self, result: Any, text: str, used: list[str]) -> Any:
        if len(self._lines) >= MOST_CALLS:
            self.fail(f"more than {MOST_CALLS} calls")
            return result
        if result is None:
            self._lines.append((text, None, used))
            return None
        name = f"r{len(self._lines)}"
        self._lines.append((text, name, used))
        if isinstance(result, _engine.Value):
            self._held.append(result)
            self._held_elements += result.size
            if self._held_elements > MOST_HELD:
                self.fail(f"more than {MOST_HELD} elements in all")
                return result
            self._names[id(result)] = name
            return result
        if isinstance(result, (np.ndarray, np.generic, bytes)):
            return Traced(self, name, result)
        if isinstance(result, (tuple, list)):
            return type(result)(self._named(item, f"{name}[{i}]", [name]) if self.failure is None else item for i, item in enumerate(result))
        self.fail(f"{text} gives {type(result).__name__}")
        return result

    def _shown(self, arg: Any, used: list[str]) -> str:
        """An argument in the tape."""
        if arg is None or arg.__class__ in (int, bool, str):
            return repr(arg)
        if isinstance(arg, Traced):
            if arg._recorder is not self:
                raise _NotConstant("numbers of another run")
            used.append(arg._name)
            return arg._name
        if isinstance(arg, Watched):
            return str(arg._name)
        if isinstance(arg, _engine.Value):
            known = self._names.get(id(arg))
            if known is None:
                if not any(arg is kept for kept in self._kept):
                    raise _NotConstant("a value that came from elsewhere")
                known = self._names[id(arg)] = self._constant(arg)
            if known.startswith("r"):
                used.append(known)
            return known
        if isinstance(arg, (list, tuple)):
            shown = ", ".join(self._shown(item, used) for item in arg)
            return f"[{shown}]" if isinstance(arg, list) else f"({shown},)"
        if isinstance(arg, (np.ndarray, np.generic, bytes, np.dtype, type, slice)):
            return self._constant(arg)
        raise _NotConstant(f"a {type(arg).__name__}")

    def _constant(self, value: Any) -> str:
        """A name for a constant."""
        self._numbered += 1
        name = f"k{self._numbered}"
        size = 64
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        if isinstance(value, (np.ndarray, np.generic)):
            size = value.nbytes
        elif isinstance(value, _engine.Value):
            size = 16 * value.size
        elif isinstance(value, bytes):
            size = len(value)
        self._constant_bytes += size
        if self._constant_bytes > MOST_CONSTANTS:
            self.fail(f"more than {MOST_CONSTANTS} bytes of constants")
        else:
            self._constants[name] = value
        return name


class Watched:
    """Stands for the engine, the share file, or the input and output of a recorded run. ``inner``: stand-ins of attributes, by their
    identity. Attributes that are no methods do not change with the data."""

    __slots__ = ("_inner", "_name", "_real", "_recorder")

    def __init__(self, recorder: Recorder, name: str, real: Any, inner: dict[int, Watched] | None = None) -> None:
        for key, value in (("_recorder", recorder), ("_name", name), ("_real", real), ("_inner", inner or {})):
            object.__setattr__(self, key, value)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not callable(value) or name in _UNNOTED:
            return self._inner.get(id(value), value)
        recorder, what = self._recorder, f"{self._name}.{name}"
        return lambda *args, **kwargs: recorder.call(what, value, args, kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)


class Traced(NDArrayOperatorsMixin):
    """Public numbers, or bytes, of a recorded run. Operations of numpy on them are noted; all else that looks at them ends the
    recording."""

    __slots__ = ("_data", "_name", "_recorder")
    __array_priority__ = 1000

    def __init__(self, recorder: Recorder, name: str, data: Any) -> None:
        self._recorder, self._name, self._data = recorder, name, data

    def _seen(self, how: str) -> Any:
        self._recorder.fail(f"the program looked at public numbers ({how})")
        return self._data

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            return self._recorder.call_function(ufunc, inputs, kwargs)
        self._seen(f"{ufunc.__name__}.{method}")
        return getattr(ufunc, method)(*plain(inputs), **{key: plain(value) for key, value in kwargs.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _FUNCTIONS and "out" not in kwargs and (function is not np.where or len(args) == 3):
            return self._recorder.call_function(function, args, kwargs)
        self._seen(function.__name__)
        return function(*plain(args), **{key: plain(value) for key, value in kwargs.items()})

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._seen("array"), dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self._data, bytes) or not isinstance(index, (int, slice)):
            return self._seen("[]")[plain(index)]
        return self._recorder.call_function(_item, (self, index), {})

    def __getattr__(self, name: str) -> Any:
        if name in _SHAPE:
            return getattr(self._data, name)
        if name in _METHODS and not isinstance(self._data, bytes):
            return lambda *args, **kwargs: self._recorder.call_function(_method, (self, name, *args), kwargs)
        return getattr(self._seen(name), name)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._seen("assignment")[plain(index)] = plain(value)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Any:
        return iter(self._seen("iteration"))

    def __bool__(self) -> bool:
        return bool(self._seen("bool"))

    def __int__(self) -> int:
        return int(self._seen("int"))

    def __index__(self) -> int:
        return int(self._seen("index"))

    def __float__(self) -> float:
        return float(self._seen("float"))

    def __bytes__(self) -> bytes:
        return bytes(self._seen("bytes"))

    def __contains__(self, item: Any) -> bool:
        return plain(item) in self._seen("in")

    def __repr__(self) -> str:
        return repr(self._seen("text"))

    def __format__(self, form: str) -> str:
        return format(self._seen("text"), form)

    __hash__ = None  # type: ignore[assignment]


def _item(array: Any, index: Any) -> Any:
    return array[index]


def _method(array: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(array, name)(*args, **kwargs)


def plain(value: Any) -> Any:
    """What an argument stands for."""
    if isinstance(value, Traced):
        return value._data
    if isinstance(value, Watched):
        return value._real
    if value.__class__ in (list, tuple):
        return value.__class__(plain(item) for item in value)
    return value


def ends_recording(value: Any, why: str) -> None:
    """There will be no tape of the run that this is the engine or the io of, if it is recorded."""
    if isinstance(value, Watched):
        value._recorder.fail(why)


def noted(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function of public numbers and constants, without effects, an operation that is noted as one."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for arg in args:
            if arg.__class__ is Traced:
                result: R = arg._recorder.call_function(function, args, kwargs)
                return result
        return function(*args, **kwargs)

    return call


@noted
def contiguous(numbers: Any) -> Any:
    """The numbers, one after another in memory."""
    return np.ascontiguousarray(numbers)


@noted
def as_int64(numbers: Any) -> Any:
    """The numbers as int64."""
    return np.asarray(numbers, dtype=np.int64)
