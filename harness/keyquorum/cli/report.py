"""report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum.model.errors import ResourceError
from keyquorum.terminal.output import console, emit


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(report)


def report(
    results: Annotated[Path, typer.Argument(help="Folder with the tables of keyquorum bench, under bench/.")] = Path("results"),
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write to (default: RESULTS/report).", show_default=False),
    ] = None,
) -> None:
    """Make plots of measured results and one page of HTML that holds them all, published figures beside ours."""
    try:
        from keyquorum.report.page import write_report
    except ImportError as error:
        name = str(error.name or error).partition(".")[0]
        raise ResourceError(f"{name} is not installed: run make build in a checkout, or pip install keyquorum[report]") from error
    written = write_report(results, output or results / "report")
    console.print(f"report: ok page={written[0]} plots={len(written) - 1}", markup=False)
    emit({"page": written[0], "plots": written[1:]})
