"""tfhe: the bridge to TFHE-rs, a program of its own (Source/tfhe)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum.deploy.tfhe_bridge import run_bridge
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.terminal.output import emit, printed

KEYED = ("keys", "to-lwe", "from-lwe")
"""Commands whose first argument is a key folder."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tfhe", context_settings={"ignore_unknown_options": True})(tfhe)


def check_keys(folder: Path) -> None:
    """Compares the public files of a key folder with ``key.json``; the bridge reads them alone. Raises KeyFileError."""
    info = load_key(folder)
    scheme_of(info).check_public(folder, info)


def tfhe(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of keyquorum-tfhe (default: --help, which lists its commands).", show_default=False)
    ] = None,
) -> None:
    """Run the bridge to TFHE-rs: keys, encrypt, eval, to-lwe, from-lwe (Source/tfhe/README.md).

    It is a program of its own, which make tfhe-bridge builds. It handles public data only.
    """
    given = arguments or ["--help"]
    if given[0] in KEYED and len(given) > 1:
        check_keys(Path(given[1]))
    lines = run_bridge(given)
    for line in lines:
        printed.print(line, markup=False)
    emit({"command": given[0], "lines": lines})
