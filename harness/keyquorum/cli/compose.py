"""compose."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from keyquorum.deploy.compose import IMAGE, prepare
from keyquorum.model.protocols import ANY_SIZE_COMMITTEE, COMMITTEES, names
from keyquorum.terminal.output import console, emit


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("compose")(compose)


def compose(
    folder: Annotated[Path, typer.Argument(help="New folder for the deployment.")] = Path("quorum"),
    parties: Annotated[int, typer.Option("--parties", "-n", "-N", help="Number of parties.")] = 3,
    protocol: Annotated[str, typer.Option("--protocol", "-E", help=f"{names(COMMITTEES)}.")] = ANY_SIZE_COMMITTEE,
    threshold: Annotated[
        int | None, typer.Option("--threshold", "-T", help=f"Corruptions tolerated ({names(COMMITTEES, chooses_threshold=True)}).")
    ] = None,
    image: Annotated[str, typer.Option(help="Image, as docker/build.sh makes it.")] = IMAGE,
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for the other parties.")] = 60.0,
    io_timeout: Annotated[float, typer.Option(help="Seconds to wait for a message.")] = 60.0,
    netem: Annotated[
        bool, typer.Option("--netem", help="Let the kernel shape simulated links (tc netem), where it can; else the engine does.")
    ] = False,
) -> None:
    """Write a Docker Compose file with one container a party, each with a volume and an address of its own.

    All identities are made here, so this is for tests and experiments on one machine.
    """
    made = prepare(folder, parties, protocol, threshold, image, (connect_timeout, io_timeout), netem)
    console.print(f"{made.file}: {parties} parties ({protocol}), a volume each under {folder / 'volumes'}", markup=False)
    console.print(f"write the job: keyquorum keygen {quote(str(made.volume(0)))} key -p bfv-4096 --job {quote(str(made.job))}", markup=False)
    console.print(f"run it:        docker compose -f {quote(str(made.file))} up", markup=False)
    console.print(f"ciphertexts to decrypt go to {made.job.parent}; what party I decrypts comes to {folder / 'volumes' / 'party-I'}", markup=False)
    emit({"file": made.file, "parties": parties, "job": made.job, "volumes": [made.volume(i) for i in range(parties)]})
