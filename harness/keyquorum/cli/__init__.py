"""The command line. No logic here: arguments in, the Python interface, output."""

from __future__ import annotations

import sys
import warnings

import typer

from keyquorum._engine import EngineError
from keyquorum.model.errors import KeyQuorumError

from . import bench, cnn, committees, compose, data, demo, keys, pools, programs, report, service
from .output import fail, show_warning

app = typer.Typer(
    name="keyquorum",
    help=(
        "Threshold FHE from generic MPC: a quorum makes keys for unmodified Microsoft SEAL, and decrypts together.\n\n"
        "A first tour: keyquorum demo. By hand: init a committee, keygen, encrypt, eval, decrypt."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (committees, keys, data, programs, demo, cnn, bench, report, compose, pools, service):
    module.register(app)


def main() -> None:
    """Entry point: user mistakes end with one line on standard error and exit code 1."""
    warnings.showwarning = show_warning
    try:
        app()
    except (KeyQuorumError, EngineError) as error:
        fail(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        fail("interrupted; keys made before are untouched")
        sys.exit(130)
    except OSError as error:
        fail(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
        sys.exit(1)
