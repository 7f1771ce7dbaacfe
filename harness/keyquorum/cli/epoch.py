"""epoch status, epoch history, epoch commit, epoch give-up, epoch erase, epoch prove."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.plain import Json
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.terminal.output import console, costs, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars

from . import completion
from .app import App
from .jobs import JobFile, hand_over
from .options import Folder

From = Annotated[
    list[Path] | None, typer.Option("--from", help="Statements of parties elsewhere, a file that --output wrote there; repeat.", show_default=False)
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the statements of this host's parties, for --from elsewhere.", show_default=False)
]
Lost = Annotated[
    str,
    typer.Option(
        "--lost", help="Parties that never return, as 2 or 1,2; members of another committee by 16 digits of their fingerprints.", show_default=False
    ),
]

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
    _say(api.epoch_give_up(folder, [int(each) if each.isdecimal() and len(each) < 16 else each for each in lost.split(",")], brought or (), output))


@app.command("erase")
def erase(folder: Folder, brought: From = None) -> None:
    """Overwrite and remove the old shares of this host's parties, and drop their pools, after all new members have committed.

    On SSDs, copying file systems, snapshots and backups this promises nothing against somebody who images the device.
    """
    found = api.epoch_erase(folder, brought or ())
    for change in found:
        printed.print(f"{change['party']}: epoch {change['epoch']}: {change['bytes']:,} bytes of old shares erased", markup=False)
    emit({"changes": found})


@app.command("prove")
def prove(
    folder: Folder,
    key: Annotated[str, typer.Argument(help="Name of a key for SEAL.", show_default=False, autocompletion=completion.keys)],
    job: JobFile = None,
) -> None:
    """Test whether the parties' shares of a key are those of the secret of its public key, without opening anything of it.

    For keys whose primes have enough bits together, and committees without MACs. Use it after parties were restored from backups. A key has 16 such tests: each reveals a little, within the key's budget.
    """
    if job is not None:
        hand_over(job, api.epoch_prove_job(folder, key))
        return
    with progress_bars() as report:
        result = api.epoch_prove(folder, key, report)
    print_reports(result.reports)
    console.print(f"key {key}: the shares of all parties fit its public key (test {result.runs} of {FIT_RUNS})", markup=False)
    emit({"key": key, "runs": result.runs, "costs": costs(result.reports)})
