"""tfhe: the bridge to TFHE-rs, a program of its own (Source/tfhe)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.resources import resource_folder
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.terminal.output import emit, printed

BRIDGE = "keyquorum-tfhe"
VARIABLE = "KEYQUORUM_TFHE"
"""Environment variable with the path of the bridge."""
BUILT = ("build/tfhe/release", "Source/tfhe/target/release")
"""Folders of a checkout in which cargo leaves the bridge."""


KEYED = ("keys", "to-lwe", "from-lwe")
"""Commands whose first argument is a key folder."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tfhe", context_settings={"ignore_unknown_options": True})(tfhe)


def bridge() -> Path:
    """The bridge: named by the environment, built in this checkout, or on the path. Raises KeyQuorumError where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise KeyQuorumError(f"{VARIABLE} names {named}, which is no program: name {BRIDGE} with it, or unset it")
        return Path(named)
    root = resource_folder("Programs").resolve().parent
    for folder in BUILT:
        if os.access(root / folder / BRIDGE, os.X_OK):
            return root / folder / BRIDGE
    found = shutil.which(BRIDGE)
    if found is None:
        raise KeyQuorumError(
            f"{BRIDGE}, the bridge to TFHE-rs, is not built: run make tfhe-bridge in a checkout (TFHE-rs's licence grants no patent rights), or name "
            f"it with {VARIABLE}"
        )
    return Path(found)


def run_bridge(arguments: list[str]) -> list[str]:
    """The lines that the bridge prints. Raises KeyQuorumError with its error."""
    ended = subprocess.run([str(bridge()), *arguments], capture_output=True, text=True, errors="replace", check=False)
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        raise KeyQuorumError(said[-1].removeprefix("error: ") if said else f"{BRIDGE} ended with code {ended.returncode}: run it again")
    return ended.stdout.splitlines()


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
