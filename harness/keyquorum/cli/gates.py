"""gates keygen, fill, eval: the paper's way of evaluation without its dealer, AES-128 on LWE ciphertexts with encrypted tables. A baseline that is not served."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.model.errors import ParameterError
from keyquorum.model.outputs import reserved, save_all
from keyquorum.parties.context import RunReport
from keyquorum.plans.decrypt import RESULTS
from keyquorum.plans.gates import LINE, block_of, blocks_in, lines_of
from keyquorum.schemes import scheme_of
from keyquorum.schemes.prf_lwe.key import load_gate_key
from keyquorum.schemes.prf_lwe.parameters import NAMES, gate_parameters
from keyquorum.terminal.output import console, costs, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars
from keyquorum.toprf import gates_evaluate, gates_evaluate_job, gates_fill, gates_fill_job

from . import completion
from .app import App
from .jobs import JobFile, hand_over
from .pools import Rounding

Folder = Annotated[Path, typer.Argument(help="Committee folder.", show_default=False)]
Key = Annotated[str, typer.Argument(help="Name of a key that gates keygen made.", show_default=False, autocompletion=completion.keys)]

app = App(
    help="Baseline: AES-128 on LWE ciphertexts with encrypted tables, among the parties of this host. Use keyquorum toprf to serve.",
    no_args_is_help=True,
)


def register(parent: typer.Typer) -> None:
    """Adds the commands."""
    parent.add_typer(app, name="gates")


@app.command("keygen")
def keygen(
    folder: Folder,
    key: Annotated[str, typer.Argument(help="Name of the new key.", show_default=False)],
    parameters: Annotated[str, typer.Option("--parameters", "-p", help=f"Parameter set: {' or '.join(NAMES)}.")] = NAMES[0],
    job: JobFile = None,
) -> None:
    """Make an LWE secret and a key of AES-128 jointly, and encrypt its round keys. The same as keyquorum keygen -p lwe32-p2."""
    gate_parameters(parameters)
    if job is not None:
        hand_over(job, api.keygen_job(key, parameters))
        return
    with progress_bars() as report:
        result = api.keygen(folder, key, parameters, progress=report)
    print_reports(result.reports)
    for line in scheme_of(result.info).made(key, result.folder, result.info)[0]:
        console.print(line, markup=False)
    emit({"key": key, "parameters": parameters, "key_id": result.info.key_id, "folder": result.folder, "costs": costs(result.reports)})


@app.command("fill")
def fill(
    folder: Folder,
    key: Key,
    items: Annotated[int, typer.Option("--items", "-n", help="Blocks: each takes one item of encrypted tables.", show_default=False)],
    rounding: Rounding = "round_ltz_circuit",
    job: JobFile = None,
) -> None:
    """Make encrypted tables, and items of the exact rounding, ahead, among all parties of this host. An item serves one block."""
    if job is not None:
        hand_over(job, gates_fill_job(folder, key, items, rounding))
        return
    with progress_bars() as report:
        left = gates_fill(folder, key, items, rounding, report)
    console.print(f"items for {left:,} blocks under key {key}", markup=False)
    emit({"key": key, "made": items, "left": left, "rounding": rounding})


@app.command("eval")
def evaluate(
    folder: Folder,
    key: Key,
    blocks: Annotated[
        list[str] | None, typer.Argument(help="Blocks, 32 hexadecimal digits each; others on this host can see them.", show_default=False)
    ] = None,
    batch: Annotated[Path | None, typer.Option(help="File with a block on each line.", show_default=False)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for the values (default: standard output).", show_default=False)] = None,
    receiver: Annotated[int, typer.Option("--to", help="The party that gives the blocks as shares, and alone gets the values.")] = 0,
    rounding: Rounding = "round_ltz_circuit",
    job: JobFile = None,
) -> None:
    """Evaluate AES-128 of blocks under the shared key, with items of gates fill. Values are hexadecimal, one on each line. --job takes --batch and --output."""
    if job is not None:
        if blocks or batch is None or output is None:
            raise ParameterError("--job is for blocks in a file: name --batch FILE and --output FILE, at the host of the party that has them")
        hand_over(job, gates_evaluate_job(folder, key, batch, output, receiver, rounding))
        return
    points = _points(blocks, batch)
    load_gate_key(api.key_folder(folder, key))
    api.as_committee(folder).index_of(receiver)
    if output is None:
        values, reports = _evaluated(folder, key, points, receiver, rounding)
        for value in values:
            printed.print(value.hex(), markup=False)
    else:
        with reserved([output], [LINE * len(points)], Path(folder) / RESULTS) as places:
            values, reports = _evaluated(folder, key, points, receiver, rounding)
            save_all(places, [lines_of(values)])
        console.print(f"{output}: {len(values):,} values under key {key}", markup=False)
    print_reports(reports)
    shown = {"values": [value.hex() for value in values]} if output is None else {"output": output}
    emit({"key": key, "count": len(values), "receiver": receiver, **shown, "costs": costs(reports)})


def _evaluated(folder: Path, key: str, points: list[bytes], receiver: int, rounding: str) -> tuple[list[bytes], list[RunReport]]:
    with progress_bars() as report:
        return gates_evaluate(folder, key, points, receiver, rounding, report)


def _points(blocks: list[str] | None, batch: Path | None) -> list[bytes]:
    """The blocks, of the one source that was named."""
    if (blocks is not None and len(blocks) > 0) + (batch is not None) != 1:
        raise ParameterError("name blocks, or --batch FILE where there are some")
    points = [block_of(word) for word in blocks or []] if batch is None else blocks_in(batch)
    if not points:
        raise ParameterError(f"{batch}: no blocks: give one on each line")
    return points
