"""Functions of the language: printing, public input, stopping, parties."""

from __future__ import annotations

from collections.abc import Callable

from ..containers.containers import Array, SubMultiArray
from ..context import Dynamic, current
from ..errors import CompilerError, Crash
from ..values.base import Readable, RunTime, SecretRunTime, is_constant, read
from ..values.binary import cbits
from ..values.clear import cint, localint, regint
from ..values.secret import personal
from .control import _holds


def _number(x: Dynamic) -> str:
    return str(int(x))


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"[{', '.join(items)}]"


def _text(x: object, personal_to: int | None = None) -> str:
    """The printed text of an argument."""
    x = read(x)
    if isinstance(x, cint):
        return _listed([_number(v) for v in current().centred(x.value)])
    if isinstance(x, regint):
        return _number(x.data[0])  # MP-SPDZ prints the first element of a regint vector
    if isinstance(x, cbits):
        return str(x.number())
    if isinstance(x, localint):
        return str(x.number)
    if isinstance(x, personal):
        if x.player != personal_to:
            raise CompilerError(f"a value known to party {x.player} is printed with print_ln_to({x.player}, ...)")
        return _listed([_number(v) for v in x.numbers()]) if x.mine else ""
    if isinstance(x, SecretRunTime):
        raise CompilerError(f"cannot print secret value {x!r}: reveal it first")
    if isinstance(x, Array):
        return _text(x.get_vector())
    if isinstance(x, SubMultiArray):
        return f"[{', '.join(_text(part) for part in x)}]"
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(_text(part, personal_to) for part in x)}]"
    if isinstance(x, RunTime):
        raise CompilerError(f"cannot print a {type(x).__name__}")
    return str(x)


def _formatted(s: str, args: tuple[Dynamic, ...], personal_to: int | None = None) -> str:
    pieces = str(s).split("%s")
    if len(pieces) != len(args) + 1:
        raise CompilerError(f"incorrect number of arguments for string format: {len(args)} for {s!r}")
    texts = [_text(a, personal_to) for a in args]
    return "".join(piece + text for piece, text in zip(pieces, [*texts, ""], strict=True))


def print_str(s: str, *args: object) -> None:
    """Prints a text with ``%s`` replaced by public values. Waits for them."""
    current().io.print(_formatted(s, args))


def print_ln(s: object = "", *args: object) -> None:
    """Prints a line with ``%s`` replaced by public values. Waits for them."""
    print_str(str(s) + "\n", *args)


def print_ln_to(player: int, ss: str, *args: object) -> None:
    """Prints a line at one party, with ``%s`` replaced by public values and values known to it."""
    run = current()
    if not is_constant(player):
        raise CompilerError("print_ln_to takes a compile-time party number")
    for a in args:
        if isinstance(a, personal) and a.player != player:
            raise CompilerError(f"player mismatch: a value known to party {a.player} cannot be printed to party {player}")
        if isinstance(a, (Readable, SubMultiArray, localint)):
            raise CompilerError(f"print_ln_to takes numbers and vectors, not a {type(a).__name__}")
    args = tuple(cint(a) if isinstance(a, regint) else a for a in args)  # printed as elements of the domain
    run.engine.flush()
    text = _formatted(str(ss) + "\n", args, player)  # at all parties, since reading a value may communicate
    if run.emulated or run.engine.party == player:
        run.io.print(text)


def crash(condition: object = None) -> None:
    """Stops the program (if a public condition holds)."""
    if condition is None or _crash_holds(condition):
        raise Crash("the program called crash()")


def runtime_error(msg: str = "", *args: object) -> None:
    """Stops the program with a message."""
    raise Crash(f"user exception: {_formatted(msg, args)}")


def runtime_error_if(condition: object, msg: str = "", *args: object) -> None:
    """Stops the program with a message if a public condition holds."""
    if _crash_holds(condition):
        raise Crash(_formatted(msg, args))


def _crash_holds(condition: object) -> bool:
    condition = read(condition)
    return condition.number != 0 if isinstance(condition, localint) else _holds(condition)


def _fill(destination: object, take: Callable[[int], Dynamic]) -> None:
    if not isinstance(destination, cint):
        raise CompilerError(f"public input goes to a cint, not {type(destination).__name__}")
    destination._set(current().engine.clear(take(destination.size)))


def fixinput(player: int, destination: object, exponent: int = 0, input_type: int = 0) -> None:
    """Fills a cint with int64 words: ``fixinput(-1, x, 0, 0)`` with the next public words, which must be equal at all parties."""
    run = current()
    if player != -1:
        raise CompilerError("fixinput reads public words: fixinput(-1, x, 0, 0); private ones are for sint.get_input_from")
    if input_type != 0 or exponent not in (0, 8):
        raise CompilerError("fixinput reads 64-bit integers: fixinput(-1, x, 0, 0)")
    _fill(destination, run.io.take_public)


def pubinput(destination: object) -> None:
    """Fills a cint with the next numbers of the public input file."""
    _fill(destination, current().io.take_listed)


def get_number_of_players() -> regint:
    """Number of parties."""
    return regint(current().engine.parties)


def get_player_id() -> localint:
    """The number of this party."""
    return localint(current().engine.party)
