"""Loops that MP-SPDZ distributes over threads. Here they run in one thread, and their iterations share rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from ..containers.containers import Array
from ..context import Dynamic, current
from ..control.control import Body, for_range_opt, run_body
from ..errors import CompilerError
from ..values.base import is_constant, public_int, read
from ..values.clear import regint


def for_range_parallel(n_parallel: object, n_loops: object) -> Callable[[Body], Body]:
    """Runs the body for 0 .. n_loops - 1, or for all index tuples of a list of lengths; iterations share rounds."""
    return for_range_opt(n_loops)


def for_range_opt_multithread(n_threads: object, n_loops: object, budget: int | None = None) -> Callable[[Body], Body]:
    """See :func:`for_range_parallel`."""
    return for_range_opt(n_loops)


def multithread(n_threads: int | None, n_items: object = None, max_size: int | None = None) -> Callable[[Body], Callable[[], None]]:
    """Runs ``body(base, size)`` for ``n_threads`` parts of 0 .. n_items - 1, each of at most ``max_size``. Parts differ in size by at most one,
    the larger ones are last. ``get_arg()`` in the body is the number of the part."""
    items = n_threads if n_items is None else n_items
    if n_threads == 0 or not (n_threads is None or is_constant(n_threads)):
        raise CompilerError(f"the number of threads is a positive compile-time integer, or None, not {n_threads!r}")

    def decorator(body: Body) -> Callable[[], None]:
        run_body(body, _parts(n_threads, items, max_size), in_turn=False)
        current().thread_argument = 0
        return lambda: None

    return decorator


def _parts(n_threads: int | None, items: object, max_size: int | None) -> Iterator[list[Dynamic]]:
    """Start and size of each part; sizes are Python numbers if ``items`` is."""
    items = read(items)
    total, number = public_int(items, "multithread"), int if is_constant(items) else regint
    if n_threads is None or total == 1:
        wholes = [(0, total, 0)]
    else:
        size, extra = divmod(total, n_threads)
        even = n_threads - extra
        wholes = [(i * size, size, extra + i) for i in range(even) if size]
        wholes += [(even * size + i * (size + 1), size + 1, i) for i in range(extra)]
    for base, count, argument in wholes:
        step = count if max_size is None else max(1, max_size)
        for at in range(base, base + count, step or 1):
            current().thread_argument = argument
            yield [0 if n_threads is None and max_size is None else regint(at), number(min(step, base + count - at))]


def get_arg() -> regint:
    """Number of the part of ``multithread``, or argument of the tape, that runs."""
    return regint(current().thread_argument)


def map_reduce(
    n_threads: object,
    n_parallel: object,
    n_loops: object,
    initializer: Callable[[], Dynamic],
    reducer: Callable[[Dynamic, Dynamic], Dynamic],
    budget: int | None = None,
) -> Callable[[Body], Callable[[], Dynamic]]:
    """Combines the results of the body for 0 .. n_loops - 1 with ``reducer``, starting with ``initializer()``. The decorated name is a function that
    returns the result."""

    def decorator(body: Body) -> Callable[[], Dynamic]:
        collected = _Collected(body)
        for_range_opt(n_loops if isinstance(n_loops, (list, tuple)) else [n_loops])(collected)
        state: Dynamic = reduce(lambda state, part: _tuple(reducer(part, state)), collected.results, _tuple(initializer()))
        return lambda: state[0] if len(state) == 1 else state

    return decorator


class _Collected:
    """Collects the results of a body. It has the code of the body, so that the loop checks the variables around the body."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self.results: list[tuple[Dynamic, ...]] = []
        self.__code__, self.__globals__, self.__closure__ = (getattr(body, name) for name in ("__code__", "__globals__", "__closure__"))

    def __call__(self, *indices: object) -> None:
        self.results.append(_tuple(self._body(*indices)))


def _tuple(x: object) -> tuple[Dynamic, ...]:
    return tuple(x) if isinstance(x, (list, tuple)) else (x,)


def map_sum(n_threads: object, n_parallel: object, n_loops: object, n_items: int, value_types: object) -> Callable[[Body], Callable[[], Dynamic]]:
    """Sums of the ``n_items`` values that the body returns."""
    types = _tuple(value_types)
    types = types * n_items if len(types) == 1 else types
    if len(types) != n_items:
        raise CompilerError(f"map_sum of {n_items} values got {len(types)} types")
    return map_reduce(n_threads, n_parallel, n_loops, lambda: [t(0) for t in types], lambda x, y: [a + b for a, b in zip(x, y, strict=True)])


def map_sum_opt(n_threads: object, n_loops: object, types: Sequence[Dynamic]) -> Callable[[Body], Callable[[], Dynamic]]:
    """Sums of the values that the body returns. ``types``: the types of the values."""
    return map_sum(n_threads, None, n_loops, len(types), types)


def map_sum_simple(n_threads: Dynamic, n_loops: Dynamic, type: Dynamic, size: int) -> Callable[[Body], Callable[[], Dynamic]]:
    """Sum of the vectors of ``size`` elements that the body returns."""
    return map_reduce(n_threads, 1, n_loops, lambda: type(0, size=size), lambda x, y: x[0] + y[0])


def tree_reduce_multithread(n_threads: Dynamic, function: Callable[[Dynamic, Dynamic], Dynamic], vector: Dynamic) -> Dynamic:
    """Combines the elements of a vector or array: ceil(log2 n) calls of ``function`` on vectors."""
    values = vector.get_vector()
    if values.size == 0:
        raise CompilerError("tree_reduce_multithread of nothing")
    while values.size > 1:
        half = values.size // 2
        reduced = function(values.get_vector(0, half), values.get_vector(half, half))
        rest = values.get_vector(2 * half, values.size - 2 * half)
        values = type(reduced).concat([reduced, rest]) if rest.size else reduced
    return Array.create_from(values)[0]
