"""epoch status, epoch history, epoch commit, epoch give-up, epoch erase."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.plain import Json
from keyquorum.model.subset import parse_numbers
from keyquorum.terminal.output import emit, printed

from .app import App
from .options import Folder

From = Annotated[
    list[Path] | None, typer.Option("--from", help="Statements of parties elsewhere, a file that --output wrote there; repeat.", show_default=False)
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the statements of this host's parties, for --from elsewhere.", show_default=False)
]
Lost = Annotated[str, typer.Option("--lost", help="Parties that never return, as 2 or 1,2.", show_default=False)]

app = App(help="Epochs of a committee: a sharing of each of its keys, until its shares are erased.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    """Adds the commands."""
    parent.add_typer(app, name="epoch")


@app.command("status")
def status(folder: Folder) -> None:
    """Say in which epoch each party of this host is, what is unfinished, and which old shares are not erased."""
    found = api.epoch_status(folder)
    for party in found:
        for line in api.epoch_lines(party):
            printed.print(line, markup=False)
    emit({"parties": found})


@app.command("history")
def history(folder: Folder) -> None:
    """List what the parties of this host signed and heard of changes."""
    found = api.epoch_history(folder)
    for line in found:
        printed.print(f"{line['date']} party {line['party']}: epoch {line['epoch']}: {line['who']}: {line['state']}", markup=False)
    if not found:
        printed.print(f"{folder}: no change of an epoch so far", markup=False)
    emit({"lines": found})


def _say(found: list[Json]) -> None:
    for change in found:
        printed.print(f"{change['party']}: epoch {change['epoch']}: {change['stage']}", markup=False)
    emit({"changes": found})


@app.command("commit")
def commit(folder: Folder, brought: From = None, output: Output = None) -> None:
    """Go on with an unfinished change: who has the votes of all new members commits.

    Parties of this host hear one another. Parties elsewhere run the command with --output, and their files are named with --from here.
    """
    _say(api.epoch_commit(folder, brought or (), output))


@app.command("give-up")
def give_up(folder: Folder, lost: Lost, brought: From = None, output: Output = None) -> None:
    """Give an unfinished change up, since a party whose vote is not known never returns. Run it at all other parties.

    A party that has voted freezes: it signs that it does not commit alone. When all but the lost ones are frozen, the new shares are erased, and the old epoch goes on.
    """
    _say(api.epoch_give_up(folder, parse_numbers(lost), brought or (), output))


@app.command("erase")
def erase(folder: Folder, brought: From = None) -> None:
    """Overwrite and remove the old shares of this host's parties, and drop their pools, after all new members have committed.

    On SSDs, copying file systems, snapshots and backups this promises nothing against somebody who images the device.
    """
    found = api.epoch_erase(folder, brought or ())
    for change in found:
        printed.print(f"{change['party']}: epoch {change['epoch']}: {change['bytes']:,} bytes of old shares erased", markup=False)
    emit({"changes": found})
