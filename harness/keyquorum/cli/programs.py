"""run, party."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.api import run_party
from keyquorum.model.errors import KeyQuorumError, PartyInterrupted
from keyquorum.model.protocols import DEFAULT_PROTOCOL, names
from keyquorum.model.subset import parse_numbers
from keyquorum.parties.jobs import at_this_host, read_job, runs
from keyquorum.parties.traces import forbid_core_dumps
from keyquorum.parties.worker import INTERRUPTED
from keyquorum.plans.program import ProgramRequest, run_locally
from keyquorum.terminal.output import emit, ends_at_interrupt, fail, print_summary, printed, waiting_lines
from keyquorum.terminal.progress import progress_bars

from .options import BackendName, Folder, LinkSpec, MpSpdzFolder, NewCommittee, OldCommittee


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("run")(run)
    app.command("party")(party)


def run(
    program: Annotated[
        str,
        typer.Argument(help="Program: a path, a name in Programs/Source of the current folder, or one of the collection.", show_default=False),
    ],
    args: Annotated[list[str] | None, typer.Argument(help="Its arguments.", show_default=False)] = None,
    protocol: Annotated[
        str,
        typer.Option("--protocol", "-E", help=f"{names()}. Against malicious parties: {names(adversary='malicious')}."),
    ] = DEFAULT_PROTOCOL,
    parties: Annotated[int | None, typer.Option("--parties", "-N", help="Number of parties (default: the least of the protocol).")] = None,
    ring: Annotated[int | None, typer.Option("--ring", "-R", help="Compute modulo 2^R (default 64).")] = None,
    field: Annotated[int | None, typer.Option("--field", "-F", help="Integer bit length over a prime field.")] = None,
    prime: Annotated[int | None, typer.Option("--prime", "-P", help="Compute modulo this prime.")] = None,
    threshold: Annotated[int | None, typer.Option("--threshold", "-T", help=f"Corruptions tolerated ({names(chooses_threshold=True)}).")] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-I", help="Text inputs are read from standard input: a line of numbers for each party.")
    ] = False,
    backend: BackendName = "embedded",
    mp_spdz: MpSpdzFolder = None,
    link: LinkSpec = None,
) -> None:
    """Run a program among separate party processes of this host, as MP-SPDZ's compile-run does.

    Files are those of MP-SPDZ in the current folder: Player-Data/Input-P<i>-0 (decimal numbers), Player-Data/Input-Binary-P<i>-0 (raw int64),
    Programs/Public-Input/<program>, Player-Data/Binary-Output-P<i>-0, Persistence/.
    """
    request = ProgramRequest(
        program,
        tuple(args or ()),
        protocol,
        parties,
        ring,
        field,
        prime,
        threshold,
        backend=backend,
        mp_spdz=mp_spdz,
        link=link,
        interactive=interactive,
    )
    with progress_bars() as report:
        lines = run_locally(request, report)
    for line in lines:
        printed.print(line, markup=False)
    emit({"program": program, "output": lines})


def party(
    folder: Folder,
    index: Annotated[int, typer.Argument(help="Which party this is.", show_default=False)],
    job: Annotated[Path, typer.Argument(help="Job file (JSON), the same at all parties; written by --job.", show_default=False)],
    ciphertext: Annotated[
        list[Path] | None,
        typer.Option(
            help="decrypt: where a ciphertext of the job lies on this host; repeat, in their order (default: where the job says).", show_default=False
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            help="decrypt: where the receiver writes: a folder, or a file for each ciphertext (default: where the job says).", show_default=False
        ),
    ] = None,
    to: NewCommittee = None,
    old: OldCommittee = None,
    accept_origin: Annotated[
        str | None,
        typer.Option(help="reshare: the weaker origin of the keys that you accept, if the job does: semi-honest, or burned.", show_default=False),
    ] = None,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="reshare: you agree that the old committee keeps its shares, if the job says so.")
    ] = False,
    absent: Annotated[
        str | None,
        typer.Option(
            help="refresh-shares, recover: parties without which the job runs, as 3: you agree, exactly to those of the job.", show_default=False
        ),
    ] = None,
    mp_spdz: MpSpdzFolder = None,
    connect_timeout: Annotated[float, typer.Option(help="Seconds to wait for the other parties.")] = 300.0,
    io_timeout: Annotated[float, typer.Option(help="Seconds to wait for a message.")] = 120.0,
) -> None:
    """Run one party of a job on its own host.

    Write the job once with keyquorum keygen --job FILE or keyquorum decrypt --job FILE, copy it to all hosts, and start every
    party within the timeout. Names of files in a job are relative to the job file: copy ciphertexts with it, or name them with --ciphertext.
    Files, hashes, key, shares and policy are checked before the party connects.
    """
    forbid_core_dumps()
    committee = api.as_committee(folder)
    chosen = at_this_host(read_job(job), ciphertext or (), output or (), mp_spdz)
    said = False

    def failed(error: BaseException) -> None:
        nonlocal said  # printed before the error goes to the other parties, which may take seconds
        if isinstance(error, (KeyQuorumError, EngineError)):
            fail(f"{error}; keys made before are untouched" if isinstance(error, PartyInterrupted) else str(error))
            said = True

    try:
        with ends_at_interrupt(f"party {index} was interrupted; keys made before are untouched"), progress_bars() as report:
            waiting = waiting_lines(runs(committee, chosen))
            timeouts, away = (connect_timeout, io_timeout), () if absent is None else parse_numbers(absent, "--absent")
            result = run_party(
                folder,
                index,
                chosen,
                report,
                *timeouts,
                waiting=waiting,
                failed=failed,
                to=to,
                old=old,
                accepted=accept_origin,
                keep_old=keep_old,
                absent=away,
            )
    except (KeyQuorumError, EngineError) as error:
        if not said:
            raise
        raise typer.Exit(INTERRUPTED if isinstance(error, PartyInterrupted) else 1) from None
    print_summary(index, chosen, result)
