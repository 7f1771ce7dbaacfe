"""Control flow by public run-time numbers: loops, branches, functions, timers.

Loop bodies run once per iteration here, while MP-SPDZ's compiler traces them once: only Array, MemValue and ``update`` carry state from one
iteration to the next. A loop body that changes a Python list or number outside itself is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from ..context import Dynamic, Run, current
from ..errors import CompilerError
from ..values.base import Public, RunTime, SecretRunTime, is_constant, public_int, read
from ..values.clear import localint, regint

Body = Callable[..., Dynamic]


# -- loops ------------------------------------------------------------------------------------------------------------


def for_range(start: object, stop: object = None, step: object = None) -> Callable[[Body], Body]:
    """Runs the body for the numbers of a range of public numbers. Each iteration communicates before the
    next one starts, which bounds memory (for_range_opt shares the rounds of all iterations). A body that returns 0 ends the
    loop."""
    return lambda body: _run_range(body, start, stop, step, in_turn=True)


def for_range_opt(start: object, stop: object = None, step: object = None, budget: int | None = None) -> Callable[[Body], Body]:
    """Runs the body for the numbers of a range, or for all index tuples of a list of lengths."""
    if isinstance(start, (list, tuple)):
        return _over_all(start)
    return lambda body: _run_range(body, start, stop, step, in_turn=False)


def for_range_multithread(
    n_threads: object, n_parallel: object, n_loops: object, thread_mem_req: object = None, budget: int | None = None
) -> Callable[[Body], Body]:
    """Runs the body for 0 .. n_loops - 1, or for all index tuples of a list of lengths, in one thread: iterations share their rounds."""
    if isinstance(n_loops, (list, tuple)):
        return _over_all(n_loops)
    return lambda body: _run_range(body, n_loops, None, None, in_turn=False)


def _over_all(lengths: Iterable[Dynamic]) -> Callable[[Body], Body]:
    ranges = [range(public_int(n, "a loop")) for n in lengths]

    def decorator(body: Body) -> Body:
        run_body(body, ([regint(i) for i in indices] for indices in product(*ranges)), in_turn=False)
        return body

    return decorator


def _run_range(body: Body, start: object, stop: object, step: object, in_turn: bool) -> Body:
    if stop is None:
        start, stop = 0, start
    first, last = public_int(start, "a loop"), public_int(stop, "a loop")
    stride = 1 if step is None else public_int(step, "a loop")
    if stride == 0:
        raise CompilerError("the step of a loop must not be zero")
    run_body(body, ([regint(i)] for i in range(first, last, stride)), in_turn)
    return body


def run_body(body: Body, arguments: Iterable[list[Dynamic]], in_turn: bool) -> None:
    """Runs a body for lists of arguments. ``in_turn``: an iteration communicates before the next one starts."""
    iterations = _Iterations(body, in_turn)
    for args in arguments:
        result = iterations.run(*args)
        if iterations.broken or (in_turn and result is not None and _is_zero(result)):
            return


class _Iterations:
    """Runs the iterations of a loop. ``in_turn``: an iteration communicates before the next one starts, and may end the loop."""

    def __init__(self, body: Body, in_turn: bool = True) -> None:
        self._body, self._in_turn, self._guard = body, in_turn, _Surroundings(body)
        self._first = True
        self.broken = False

    def run(self, *args: object) -> Dynamic:
        """Runs one iteration; returns the result of the body. Sets ``broken`` if the body ended the loop (:func:`break_loop`)."""
        depth = len(current().branches)
        try:
            result = self._body(*args)
        except LoopBreak:
            if not self._in_turn:
                raise
            del current().branches[depth:]
            self.broken, result = True, None
        self._guard.link()
        if self._first and not self.broken:
            self._guard.check()
        self._first = False
        if self._in_turn:
            current().settle()
        return result


def _is_zero(result: object) -> bool:
    result = read(result)
    return bool(public_int(result, "the result of a loop body") == 0) if isinstance(result, (int, Public)) else False


def do_while(body: Body) -> Body:
    """Runs the body until it returns 0; the body returns a public number."""
    iterations = _Iterations(body)
    while True:
        result = iterations.run()
        if iterations.broken:
            return body
        if result is None:
            raise CompilerError("the body of a do_while returns a public number: 0 ends the loop")
        if not _holds(result() if callable(result) else result):
            return body


def break_loop() -> None:
    """Ends the innermost loop of for_range, while_do or do_while."""
    raise LoopBreak("break_loop() is for the bodies of for_range, while_do and do_while")


class LoopBreak(CompilerError):
    """Raised to end a loop, see :func:`break_loop`."""


def while_do(condition: Callable[..., Dynamic], *args: object) -> Callable[[Body], Body]:
    """Runs the body while the condition, a function of public numbers, holds. With an argument, body and condition
    take it and the body returns the next one."""
    if not callable(condition):
        raise CompilerError("the condition of while_do must be a function")
    if len(args) > 1:
        raise CompilerError("while_do takes at most one loop variable")

    def decorator(body: Body) -> Body:
        iterations = _Iterations(body)
        state = [regint(read(a)) for a in args]
        while _holds(condition(*state)):
            result = iterations.run(*state)
            if iterations.broken:
                return body
            if state:
                if result is None:
                    raise CompilerError("the body of a while_do with a loop variable must return its next value")
                state = [regint(read(result))]
        return body

    return decorator


def _holds(condition: object) -> bool:
    """A public condition as Python bool."""
    condition = read(condition)
    if callable(condition):
        raise CompilerError("a condition is a public number, not a function (which MP-SPDZ takes for true): call it")
    if isinstance(condition, (bool, int)):
        return bool(condition)
    if isinstance(condition, SecretRunTime):
        raise CompilerError("cannot branch on secret values: use if_else")
    if isinstance(condition, localint):
        raise CompilerError("cannot branch on a value that differs between parties (localint)")
    return public_int(condition, "a condition") != 0


# -- branches ---------------------------------------------------------------------------------------------------------


def if_(condition: object) -> Callable[[Body], None]:
    """Runs the body if a public condition holds."""

    def decorator(body: Body) -> None:
        if _holds(condition):
            _run_branch(body)

    return decorator


def if_e(condition: object) -> Callable[[Body], None]:
    """Runs the body if a public condition holds; an ``else_`` must follow."""

    def decorator(body: Body) -> None:
        holds = _holds(condition)
        if holds:
            _run_branch(body)
        current().branches.append(holds)

    return decorator


def else_(body: Body) -> None:
    """Runs the body if the condition of the ``if_e`` before did not hold."""
    branches = current().branches
    if not branches:
        raise CompilerError("else_ without an if_e before it")
    if not branches.pop():
        _run_branch(body)


def and_(*terms: Callable[[], Dynamic]) -> Callable[[], Dynamic]:
    """A condition, for while_do or to be called: whether all terms hold. Each term is a function; terms after the first that fails are not
    computed."""
    return lambda: regint(int(all(_holds(term()) for term in terms)))


def or_(*terms: Callable[[], Dynamic]) -> Callable[[], Dynamic]:
    """A condition: whether one of the terms holds. Each term is a function; terms after the first that holds are not computed."""
    return lambda: regint(int(any(_holds(term()) for term in terms)))


def not_(term: Callable[[], Dynamic]) -> Callable[[], Dynamic]:
    """A condition: 1 minus the value of a function."""
    return lambda: 1 - term()


def _run_branch(body: Body) -> None:
    depth = len(current().branches)
    guard = _Surroundings(body)
    _lock_lists(body.__globals__)
    try:
        result = body()
    except LoopBreak:
        guard.link()
        raise
    if result is not None:
        raise CompilerError("conditional blocks cannot return values: use if_else, or an Array or MemValue")
    guard.link()
    if len(current().branches) != depth:
        raise CompilerError("if_e without else_ in a conditional block")


class _LockedList(list[Dynamic]):
    """A list of a program with branches, which refuses changes: a compiler traces all branches, so it would apply the changes of all."""

    def _refuse(self, *_: object, **__: object) -> Dynamic:
        raise CompilerError("lists cannot be changed in or after branches: use Array or MultiArray")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def _lock_lists(names: dict[str, Dynamic]) -> None:
    for name, value in names.items():
        if value.__class__ is list:
            names[name] = _LockedList(value)


# -- checks of bodies -------------------------------------------------------------------------------------------------


class _Surroundings:
    """A snapshot of the variables around a body: global variables whose names its code has, and its closure cells."""

    def __init__(self, body: Body) -> None:
        code = getattr(body, "__code__", None)
        self._names: dict[str, Dynamic] = getattr(body, "__globals__", {})
        # co_names also has names of attributes, so a global variable of such a name is watched needlessly
        used = {n: self._names[n] for n in code.co_names if n in self._names} if code is not None else {}
        self._registers = {n: v for n, v in used.items() if isinstance(v, RunTime)}
        self._numbers = {n: v for n, v in used.items() if is_constant(v)}
        cells = dict(zip(code.co_freevars, body.__closure__ or (), strict=True)) if code is not None else {}
        self._cells = cells
        values = used | dict(_contents(cells))
        self._lists = [(n, v, len(v)) for n, v in values.items() if isinstance(v, list)]
        self._cell_numbers = {n: v for n, v in values.items() if n in cells and is_constant(v)}

    def check(self) -> None:
        """Raises CompilerError if a Python list or number has changed; called after the first iteration."""
        changed = [n for n, v, length in self._lists if len(v) != length]
        changed += [n for n, v in self._numbers.items() if self._names.get(n) is not v and self._names.get(n) != v]
        now = dict(_contents(self._cells))
        changed += [n for n, v in self._cell_numbers.items() if is_constant(now.get(n)) and now[n] != v]
        if changed:
            raise CompilerError(f"the Python variable {changed[0]!r} cannot change in a run-time loop: use an Array, a MemValue or update()")

    def link(self) -> None:
        """Turns assignments of run-time values to global names into updates of the values that the names had, which all references see."""
        for name, before in self._registers.items():
            now = self._names.get(name)
            if now is before:
                continue
            if is_constant(now) or isinstance(now, float):
                raise CompilerError(f"cannot reassign the constant {now} to {name!r} in a block: use update()")
            if hasattr(before, "update"):
                before.update(now)
                self._names[name] = before


def _contents(cells: dict[str, Dynamic]) -> Iterator[tuple[str, Dynamic]]:
    for name, cell in cells.items():
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


# -- functions, timers ------------------------------------------------------------------------------------------------


def function_block(function: Body) -> Body:
    """A function of run-time values: its Python numbers become regint."""

    def call(*args: object) -> Dynamic:
        return function(*(regint(a) if is_constant(a) else read(a) for a in args))

    return call


method_block = function_block


def break_point(name: str = "") -> None:
    """Does nothing: operations are done in the order of their data."""


@dataclass
class Timer:
    """Time and traffic of one party while a timer ran: seconds, payload bytes sent, communication rounds."""

    seconds: float = 0.0
    bytes_sent: int = 0
    rounds: int = 0
    offline_seconds: float = 0.0
    """The part of the seconds in which correlated randomness was made."""
    offline_bytes_sent: int = 0
    offline_rounds: int = 0
    bytes_received: int = 0
    offline_bytes_received: int = 0
    _start: tuple[float, dict[str, int]] | None = None

    @property
    def running(self) -> bool:
        """Whether the timer runs."""
        return self._start is not None

    def start(self, run: Run) -> None:
        """Starts the timer after all queued operations."""
        self._start = _reading(run)

    def stop(self, run: Run) -> None:
        """Stops the timer after all queued operations."""
        assert self._start is not None
        now = _reading(run)
        before, self._start = self._start, None
        self.seconds += now[0] - before[0]
        self.bytes_sent += now[1]["bytes_sent"] - before[1]["bytes_sent"]
        self.rounds += now[1]["rounds"] - before[1]["rounds"]
        self.offline_seconds += (now[1]["offline_microseconds"] - before[1]["offline_microseconds"]) / 1e6
        self.offline_bytes_sent += now[1]["offline_bytes_sent"] - before[1]["offline_bytes_sent"]
        self.offline_rounds += now[1]["offline_rounds"] - before[1]["offline_rounds"]
        self.bytes_received += now[1]["bytes_received"] - before[1]["bytes_received"]
        self.offline_bytes_received += now[1]["offline_bytes_received"] - before[1]["offline_bytes_received"]


def _reading(run: Run) -> tuple[float, dict[str, int]]:
    run.engine.flush()
    return time.perf_counter(), run.engine.stats()


def start_timer(timer_id: int = 0) -> None:
    """Starts a timer; its sum over all runs is reported at the end. Waits for all communication."""
    run = current()
    timer = run.timers.setdefault(_timer_id(timer_id), Timer())
    if timer.running:
        raise CompilerError(f"timer {timer_id} already running")
    timer.start(run)


def stop_timer(timer_id: int = 0) -> None:
    """Stops a timer. Waits for all communication."""
    run = current()
    timer = run.timers.get(_timer_id(timer_id))
    if timer is None or not timer.running:
        raise CompilerError(f"timer {timer_id} is not running")
    timer.stop(run)


def _timer_id(timer_id: object) -> int:
    if not is_constant(timer_id) or timer_id < 0:
        raise CompilerError(f"a timer is named by a compile-time integer, not {timer_id!r}")
    return int(timer_id)
