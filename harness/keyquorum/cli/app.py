"""The application object, and the options that all commands share (--json, --quiet, --verbose)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, get_type_hints

import typer
import typer.core

from keyquorum.model.errors import KeyQuorumError
from keyquorum.terminal.output import chosen

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON, and nothing else, on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results, warnings and errors only.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print a line when a phase begins, the costs at every party, and the kind and cause of an error.")
]
SHARED: dict[str, object] = {"as_json": AsJson, "quiet": Quiet, "verbose": Verbose}


Command = Callable[..., Any]


class Interrupted(KeyQuorumError):
    """The user pressed Ctrl-C."""


@contextmanager
def _ends_at_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("keyquorum was interrupted") from None


class Commands(typer.core.TyperGroup):
    """Raises :class:`Interrupted` after Ctrl-C, where Typer would print a line of its own."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """As of Typer: reads the arguments."""
        with _ends_at_interrupt():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """As of Typer: runs the command."""
        with _ends_at_interrupt():
            return super().invoke(ctx)


def with_shared_options(function: Command) -> Command:
    """The command with the options of :data:`SHARED`, which choose what is printed while it runs."""

    @functools.wraps(function)
    def run(*args: object, as_json: bool = False, quiet: bool = False, verbose: bool = False, **options: object) -> Any:
        with chosen(as_json, quiet, verbose):
            return function(*args, **options)

    signature = inspect.signature(function)
    hints = get_type_hints(function, include_extras=True)
    own = [parameter.replace(annotation=hints[name]) for name, parameter in signature.parameters.items()]
    shared = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind) for name, kind in SHARED.items()]
    run.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {**hints, **SHARED}
    return run


class App(typer.Typer):
    """An application of which every command has the shared options."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Command], Command]:  # type: ignore[override]
        """As of Typer."""
        add = super().command(name, **options)

        def register(function: Command) -> Command:
            add(with_shared_options(function))
            return function

        return register
