"""bench."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import typer

from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.links import FORMS
from keyquorum.sweep.cases import Axes, Case
from keyquorum.sweep.measure import Effort
from keyquorum.sweep.runner import Settings, run_suite
from keyquorum.sweep.suites import OF_OTHERS, SUITES, cases_of
from keyquorum.terminal.output import console, emit, printed
from keyquorum.terminal.progress import progress_bars

from .options import MpSpdzFolder


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bench")(bench)


def bench(
    suite: Annotated[str, typer.Argument(help=f"One of {', '.join(SUITES)}; all: one after another.", show_default=False)],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller measurements.")] = False,
    backend: Annotated[list[str] | None, typer.Option("--backend", help="embedded or mp-spdz. Repeat.")] = None,
    protocol: Annotated[list[str] | None, typer.Option("--protocol", "-E", help="Protocol. Repeat.")] = None,
    parties: Annotated[list[int] | None, typer.Option("--parties", "-N", help="Number of parties. Repeat.")] = None,
    params: Annotated[list[str] | None, typer.Option("--params", "-p", help="Parameter set (keygen, decrypt) or domain. Repeat.")] = None,
    link: Annotated[list[str] | None, typer.Option("--link", help=f"Simulated links: none, {FORMS}. Repeat.", show_default=False)] = None,
    only: Annotated[str, typer.Option(help="Measurements with this in their name.")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Measured runs of each measurement.")] = 3,
    warm_up: Annotated[int, typer.Option(min=0, help="Runs before them that are not measured.")] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for all runs of a measurement.")] = 600.0,
    patience: Annotated[float, typer.Option(min=0, help="Seconds after which a measurement starts no further run.", show_default="none")] = math.inf,
    budget: Annotated[float, typer.Option(min=0, help="Minutes after which no further measurement starts.", show_default="none")] = math.inf,
    idle: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Start measurements on an idle machine only: seconds to wait for it.",
            show_default="start in any case, and say so in the table",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables, one a suite.")] = Path("results/bench"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again the rows that the tables already have.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the measurements without running them.")] = False,
    mp_spdz: MpSpdzFolder = None,
) -> None:
    """Measure what threat models cost: a sweep over backends, protocols, parties, parameters and links.

    Every party is a process of this host, over TLS. An interrupted sweep continues where it stopped. A table has one row for each phase of each party
    of each run. keyquorum report makes plots of the tables.
    """
    axes = Axes(
        backends=tuple(backend) if backend else None,
        protocols=tuple(protocol) if protocol else None,
        parties=tuple(parties) if parties else None,
        parameters=tuple(params) if params else None,
        links=tuple(link) if link else None,
        only=only,
    )
    effort, deadline = Effort(repeats, warm_up, timeout, patience), time.monotonic() + 60 * budget
    sweeps = _sweeps(suite, axes, quick)
    errors: list[str] = []
    left = loaded = 0
    listed: list[dict[str, object]] = []
    for name, cases in sweeps.items():
        if show:
            for case in cases:
                printed.print(f"{name}: {case.label}", markup=False)
                listed.append({"suite": name, "measurement": case.label})
            continue
        path = output / f"{name}.csv"
        with progress_bars() as report:
            settings = Settings(path, effort, fresh, str(mp_spdz) if mp_spdz else None, deadline, idle)
            outcome = run_suite(cases, settings, report)
        for text in dict.fromkeys(outcome.skipped):
            console.print(f"{name}: skipped: {text}", markup=False)
        for text in outcome.errors:
            console.print(f"{name}: {text}", markup=False)
        printed.print(outcome.line(name) + f" table={path}", markup=False)
        listed.append({"suite": name, "table": path, **vars(outcome)})
        errors += outcome.errors
        left += outcome.left
        loaded += outcome.loaded
        if outcome.busy:
            errors.append(f"{name}: the machine did other work for {idle:g} s: stop that work, or leave out --idle")
    if loaded:
        console.print(
            f"bench: {loaded} measurements started beside other work, and plots say so: measure with --idle on a machine that is free", markup=False
        )
    if left:
        console.print(f"bench: {left} measurements were left out for want of time: the same command goes on with them", markup=False)
    emit({"measurements" if show else "suites": listed})
    if errors:
        raise KeyQuorumError(f"{len(errors)} measurements or sweeps failed, the first: {errors[0]}")


def _sweeps(suite: str, axes: Axes, quick: bool) -> dict[str, list[Case]]:
    """The measurements of a suite, or of all suites in which the axes leave any. Raises ParameterError."""
    if suite != "all":
        return {suite: cases_of(suite, axes, quick)}
    sweeps, reason = {}, None
    for name in (one for one in SUITES if one not in OF_OTHERS):
        try:
            sweeps[name] = cases_of(name, axes, quick)
        except ParameterError as error:
            reason = error
    if not sweeps and reason is not None:
        raise reason
    return sweeps
