"""cnn."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from keyquorum.cnn.run import PARAMETERS, Classified, classify, held_out_digits, new_committee
from keyquorum.model import published
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.protocols import COMMITTEES, DEFAULT_COMMITTEE, names
from keyquorum.terminal.output import console, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars

from .options import LinkSpec


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("cnn")(cnn)


def cnn(
    protocol: Annotated[str, typer.Option("--protocol", "-E", help=f"{names(COMMITTEES, macs=False)}.")] = DEFAULT_COMMITTEE,
    parties: Annotated[int, typer.Option("--parties", "-N", help="Number of parties.")] = 3,
    images: Annotated[int, typer.Option(help="Digits to classify, up to 1000.")] = 100,
    link: LinkSpec = None,
) -> None:
    """Classify encrypted handwritten digits: joint CKKS keys, a neural network evaluated by stock SEAL, joint decryption."""
    start = time.monotonic()
    pixels, labels = held_out_digits(images)
    with tempfile.TemporaryDirectory(prefix="keyquorum-cnn-") as folder, progress_bars() as report:
        result = classify(new_committee(Path(folder), parties, protocol), pixels, labels, link=link, progress=report)
    seconds = time.monotonic() - start
    console.print(f"1. {parties} party processes made the keys inside MPC ({protocol}), {PARAMETERS}, 7 Galois keys", markup=False)
    print_reports(result.keygen)
    console.print(
        f"2. {images} digits encrypted ({result.upload_bytes / 1e6:.0f} MB), 3. evaluated by stock SEAL, 4. logits decrypted jointly, to party 0"
    )
    print_reports(result.decryption)
    _beside_paper(result, parties)
    console.print(f"   largest error of a logit: {result.error:.1e} (the flooding noise of the policy)")
    state = "ok" if result.agrees else "failed"
    simulated = f" simulated_links={link}" if link else ""
    printed.print(
        f"cnn: {state} accuracy={result.accuracy:.3f} plain_accuracy={result.plain_accuracy:.3f} seconds={seconds:.1f}{simulated}",
        markup=False,
    )
    emit({
        "ok": result.agrees, "accuracy": result.accuracy, "plain_accuracy": result.plain_accuracy, "images": images, "error": result.error,
        "seconds": seconds, "phases": result.seconds, "link": link,
    })  # fmt: skip
    if not result.agrees:
        raise KeyQuorumError("the encrypted network is less accurate than the one in clear: this must not happen, please report it")


def _beside_paper(result: Classified, parties: int) -> None:
    """Prints seconds a phase beside table 5 of GMPFHE, whose network has other weights and which ran on other machines."""
    table = Table(box=None, pad_edge=False)
    for name in ("phase", "seconds", "seconds a digit", "paper 004, table 5"):
        table.add_column(name, justify="left" if name == "phase" else "right")
    names = {"keys": "KeyGen", "encryption": "Enc", "evaluation": "Eval", "decryption": "Dec"}
    rows = published.load("004_table5_cnn")
    for phase, seconds in result.seconds.items():
        shown = []
        for row in rows:
            if row["operation"] == names[phase]:
                time_of = f"{row['seconds']} s" if row["seconds"] is not None else f"{row['ms']} ms"
                where = f" ({row['parties']} parties, {row['network']})" if row["parties"] else ""
                if row["parties"] in (None, 2, 4):
                    shown.append(time_of + where)
        each = "" if phase == "keys" else f"{seconds / result.images:.3f}"
        table.add_row(phase, f"{seconds:.2f}", each, "; ".join(shown))
    console.print(table)
    console.print(
        f"   ours: {parties} parties on one machine, 8 digits a ciphertext; the paper: semi-honest, n - 1 corruptions, one instance of 2 vCPU a party, "
        "LAN 0.5 ms and 2 Gbit/s, WAN 20 ms and 500 Mbit/s, one digit",
        markup=False,
    )
