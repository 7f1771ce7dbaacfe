"""run, party."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from keyquorum.api import run_party
from keyquorum.parties.jobs import read_job
from keyquorum.parties.traces import forbid_core_dumps
from keyquorum.plans.program import ProgramRequest, run_locally

from .options import BackendName, LinkSpec, MpSpdzFolder
from .output import console, progress_bars

Folder = Annotated[Path, typer.Argument(help="Committee folder.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("run")(run)
    app.command("party")(party)


def run(
    program: Annotated[
        str,
        typer.Argument(help="Program: a name from Programs/Source, or the path of an .mpc file.", show_default=False),
    ],
    args: Annotated[list[str] | None, typer.Argument(help="Its arguments.", show_default=False)] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol", "-E", help="ring, rep-field, shamir, semi2k, semi, spdz2k, mascot, emulate (clear text)."
        ),
    ] = "ring",
    parties: Annotated[
        int | None, typer.Option("--parties", "-N", help="Number of parties (default: 3; emulate: 1; semi2k, semi, spdz2k, mascot: 2).")
    ] = None,
    ring: Annotated[int | None, typer.Option("--ring", "-R", help="Compute modulo 2^R (default 64).")] = None,
    field: Annotated[int | None, typer.Option("--field", "-F", help="Integer bit length over a prime field.")] = None,
    prime: Annotated[int | None, typer.Option("--prime", "-P", help="Compute modulo this prime.")] = None,
    threshold: Annotated[int | None, typer.Option("--threshold", "-T", help="Corruptions tolerated (shamir).")] = None,
    backend: BackendName = "embedded",
    mp_spdz: MpSpdzFolder = None,
    link: LinkSpec = None,
) -> None:
    """Run a program among separate party processes of this host, as MP-SPDZ's compile-run does.

    Files are those of MP-SPDZ in the current folder: Player-Data/Input-Binary-P<i>-0 (raw int64),
    Programs/Public-Input/<program>, Player-Data/Binary-Output-P<i>-0, Persistence/.
    """
    request = ProgramRequest(
        program, tuple(args or ()), protocol, parties, ring, field, prime, threshold, backend=backend, mp_spdz=mp_spdz, link=link
    )
    with progress_bars() as report:
        for line in run_locally(request, report):
            console.print(line, markup=False)


def party(
    folder: Folder,
    index: Annotated[int, typer.Argument(help="Which party this is.", show_default=False)],
    job: Annotated[
        Path, typer.Argument(help="Job file (JSON), the same at all parties; written by --job.", show_default=False)
    ],
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for the other parties.")] = 300.0,
    io_timeout: Annotated[float, typer.Option(help="Seconds to wait for a message.")] = 120.0,
) -> None:
    """Run one party of a job on its own host.

    Write the job once with keyquorum keygen --job FILE or keyquorum decrypt --job FILE, copy it to all hosts, and start every
    party within the timeout.
    """
    forbid_core_dumps()
    with progress_bars() as report:
        result = run_party(folder, index, read_job(job), report, connect_timeout, io_timeout)
    if "links" in result:
        console.print(result["links"], markup=False)
    console.print(json.dumps({k: v for k, v in result.items() if k not in ("report", "links")}), markup=False)
