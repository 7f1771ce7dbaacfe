"""The command line. It has no logic of its own: it reads arguments, calls the Python interface and prints results."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

from keyquorum import __version__
from keyquorum._engine import EngineError
from keyquorum.model.errors import KeyQuorumError, PartyInterrupted, describe_os_error
from keyquorum.parties.worker import INTERRUPTED
from keyquorum.terminal.output import fail, show_warning

from . import (
    audit,
    bench,
    cnn,
    committees,
    completion,
    compose,
    data,
    demo,
    epoch,
    hosts,
    keys,
    parameters,
    pools,
    programs,
    report,
    service,
    tfhe,
    toprf,
)
from .app import App, Commands, Interrupted

app = App(
    name="keyquorum",
    cls=Commands,
    help=(
        "Threshold FHE from generic MPC: a quorum makes keys for unmodified Microsoft SEAL, and decrypts together.\n\n"
        "A first tour: keyquorum demo. By hand: init a committee, keygen, encrypt, eval, decrypt.\n\n"
        "Every command takes --json, --quiet and --verbose."
    ),
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (
    committees,
    hosts,
    keys,
    parameters,
    data,
    programs,
    demo,
    cnn,
    bench,
    report,
    compose,
    pools,
    epoch,
    service,
    audit,
    tfhe,
    toprf,
    completion,
):
    module.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"keyquorum {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: user mistakes end with one line on standard error and exit code 1."""
    warnings.showwarning = show_warning
    if completion.VARIABLE in os.environ:
        completion.prepare()
    try:
        app(prog_name="keyquorum")
    except (PartyInterrupted, Interrupted) as error:
        fail(f"{error}; keys made before are untouched")
        sys.exit(INTERRUPTED)
    except (KeyQuorumError, EngineError) as error:
        fail(str(error), error)
        sys.exit(1)
    except OSError as error:
        fail(describe_os_error(error), error)
        sys.exit(1)
