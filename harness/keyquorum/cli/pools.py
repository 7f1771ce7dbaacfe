"""pool fill, pool status, pool drop."""

from __future__ import annotations

from typing import Annotated

import typer

from keyquorum import api
from keyquorum.schemes import more_set_names
from keyquorum.terminal.output import console, costs, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars

from . import completion
from .app import App
from .jobs import JobFile, hand_over
from .options import Folder, Parties, chosen

Params = Annotated[
    str,
    typer.Option(
        "--params", "-p", help=f"{', '.join(more_set_names(encryption=True))}, or a set of BFV or BGV.", autocompletion=completion.parameter_sets
    ),
]
Rounding = Annotated[str, typer.Option(help=f"One of {', '.join(api.VARIANTS)}; round_ltz_table: see THIRD_PARTY.md.")]
Width = Annotated[int, typer.Option(help="round_ltz_table: bits of a block.")]
Levels = Annotated[int, typer.Option(help="round_ltz_table: levels of tables; one round each, and one more.")]

app = App(help="Preprocessing of decryptions: items that are made ahead and used once.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the commands."""
    parent.add_typer(app, name="pool")


@app.command("fill")
def fill(
    folder: Folder,
    items: Annotated[int, typer.Option("--items", "-n", help="Items to make: one for each LWE ciphertext, or coefficient.", show_default=False)],
    params: Params = "lwe64-p2",
    rounding: Rounding = "round_ltz_circuit",
    width: Width = 8,
    levels: Levels = 2,
    chunk: Annotated[int, typer.Option(help="Items that are made at a time; bounds the memory.")] = 4096,
    parties: Parties = None,
    job: JobFile = None,
) -> None:
    """Make items among all parties of this host, or among those of a subset, for its decryptions. On several hosts: --job, and keyquorum party."""
    members = chosen(parties)
    made = (folder, params, rounding, items, width, levels, chunk)
    size = api.pool_needs(*made, parties=members)
    console.print(f"needs {size / 1e6:.2f} MB of disk at each party, for {items:,} items in {-(-items // chunk):,} chunks", markup=False)
    if job is not None:
        hand_over(job, api.pool_fill_job(*made, parties=members))
        return
    with progress_bars() as report:
        reports = api.pool_fill(*made, progress=report, parties=members)
    print_reports(reports)
    for line in api.pool_lines(folder):
        console.print(line, markup=False)
    emit({"items": items, "bytes_a_party": size, "pools": api.pool_list(folder), "costs": costs(reports)})


@app.command("status")
def status(folder: Folder) -> None:
    """List the pools of the parties of this host."""
    for line in api.pool_lines(folder):
        printed.print(line, markup=False)
    emit({"pools": api.pool_list(folder)})


@app.command("drop")
def drop(folder: Folder, name: Annotated[str, typer.Argument(help="Pool, as status names it.", show_default=False)]) -> None:
    """Delete a pool at all parties of this host. Run it on the hosts of all parties."""
    dropped = api.pool_drop(folder, name)
    for party in dropped:
        console.print(f"party {party}: dropped {name}")
    emit({"pool": name, "parties": dropped})
