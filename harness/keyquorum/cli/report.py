"""report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum.model.errors import ResourceError
from keyquorum.report.papers.overview import write_papers
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
    papers: Annotated[
        bool,
        typer.Option("--papers", help="The table and the page of published figures beside ours: RESULTS/papers.csv, papers.html. In a checkout."),
    ] = False,
) -> None:
    """Make plots of measured results and one page of HTML that holds them all, published figures beside ours."""
    if papers:
        report_papers(results, output or results / "report")
        return
    try:
        from keyquorum.report.page import write_report
    except ImportError as error:
        name = str(error.name or error).partition(".")[0]
        raise ResourceError(f"{name} is not installed: run make build in a checkout, or pip install keyquorum[report]") from error
    written = write_report(results, output or results / "report")
    console.print(f"report: ok page={written[0]} plots={len(written) - 1}", markup=False)
    emit({"page": written[0], "plots": written[1:]})


def report_papers(results: Path, output: Path) -> None:
    """The table and the page of published figures; the last line counts them."""
    made = write_papers(results, output)
    console.print(f"report: ok table={made.table} page={made.page}", markup=False)
    console.print(made.line, markup=False, highlight=False, soft_wrap=True)
    emit({"table": made.table, "page": made.page, "papers": made.line})
