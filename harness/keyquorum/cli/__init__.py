"""The command line. No logic here: arguments in, the Python interface, output."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import typer
import typer.core

from keyquorum._engine import EngineError
from keyquorum.model.errors import KeyQuorumError, PartyInterrupted
from keyquorum.parties.worker import INTERRUPTED

from . import bench, cnn, committees, compose, data, demo, hosts, keys, pools, programs, report, service
from .output import fail, show_warning


class _Interrupted(KeyQuorumError):
    """The user pressed Ctrl-C."""


class _Commands(typer.core.TyperGroup):
    """Typer would end with a line of its own after Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted("keyquorum was interrupted") from None


app = typer.Typer(
    name="keyquorum",
    cls=_Commands,
    help=(
        "Threshold FHE from generic MPC: a quorum makes keys for unmodified Microsoft SEAL, and decrypts together.\n\n"
        "A first tour: keyquorum demo. By hand: init a committee, keygen, encrypt, eval, decrypt."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (committees, hosts, keys, data, programs, demo, cnn, bench, report, compose, pools, service):
    module.register(app)


def main() -> None:
    """Entry point: user mistakes end with one line on standard error and exit code 1."""
    warnings.showwarning = show_warning
    try:
        app()
    except (PartyInterrupted, _Interrupted) as error:
        fail(f"{error}; keys made before are untouched")
        sys.exit(INTERRUPTED)
    except (KeyQuorumError, EngineError) as error:
        fail(str(error))
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        sys.exit(1)
