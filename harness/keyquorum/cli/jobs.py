"""--job: a command writes its job for keyquorum party, where the parties are on several hosts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.plain import Json
from keyquorum.terminal.output import console, emit

JobFile = Annotated[
    Path | None,
    typer.Option("--job", help="For parties on several hosts: write the job for keyquorum party instead of running it here.", show_default=False),
]


def hand_over(path: Path, job: Json, more: Json | None = None) -> None:
    """Writes a job, and prints what to do with it. ``more``: further entries of the command's result."""
    api.write_job(path, job)
    console.print(f"{path}: copy it to every host, and start keyquorum party FOLDER INDEX {shlex.quote(str(path))} there", markup=False)
    emit({"job": path, **(more or {})})


__all__ = ["JobFile", "hand_over"]
