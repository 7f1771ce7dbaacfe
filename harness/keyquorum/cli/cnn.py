"""cnn."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import PARAMETERS, Classification, Classified, classify, held_out_digits, load_model, new_committee
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
    encrypt_model: Annotated[bool, typer.Option("--encrypt-model", help="The owner of the model encrypts the weights too.")] = False,
    digits_per_set: Annotated[int, typer.Option(help="Digits that share a set of 25 ciphertexts, 1 to 8.")] = IMAGES,
    link: LinkSpec = None,
) -> None:
    """Classify encrypted handwritten digits: joint CKKS keys, a neural network evaluated by stock SEAL, joint decryption."""
    start = time.monotonic()
    pixels, labels = held_out_digits(images)
    setting = Classification(pixels, labels, load_model(), encrypt_model, digits_per_set, link)
    with tempfile.TemporaryDirectory(prefix="keyquorum-cnn-") as folder, progress_bars() as report:
        result = classify(new_committee(Path(folder), parties, protocol), setting, progress=report)
    seconds = time.monotonic() - start
    console.print(f"1. {parties} party processes made the keys inside MPC ({protocol}), {PARAMETERS}, 7 Galois keys", markup=False)
    print_reports(result.keygen)
    if encrypt_model:
        console.print(f"2. the model encrypted by its owner: 108 ciphertexts, {result.model_bytes / 1e6:.0f} MB, uploaded once")
    console.print(
        f"{3 if encrypt_model else 2}. {images} digits encrypted ({result.upload_bytes / 1e6:.0f} MB), evaluated by stock SEAL, logits decrypted jointly, "
        "to party 0"
    )
    print_reports(result.decryption)
    _beside_paper(result, parties, digits_per_set)
    console.print(
        f"   classes as in clear: {result.same_classes} of {result.images}; largest error of a logit: {result.error:.1e}, {result.precision_bits:.1f} bits "
        "after the point (the flooding noise of the policy)"
    )
    state = "ok" if result.agrees else "failed"
    simulated = f" simulated_links={link}" if link else ""
    printed.print(
        f"cnn: {state} accuracy={result.accuracy:.3f} plain_accuracy={result.plain_accuracy:.3f} seconds={seconds:.1f}{simulated}",
        markup=False,
    )
    emit({
        "ok": result.agrees, "accuracy": result.accuracy, "plain_accuracy": result.plain_accuracy, "images": images, "sets": result.sets,
        "same_classes": result.same_classes, "error": result.error, "precision_bits": result.precision_bits, "encrypted_model": encrypt_model,
        "upload_bytes": result.upload_bytes, "model_bytes": result.model_bytes, "seconds": seconds, "phases": result.seconds, "link": link,
    })  # fmt: skip
    if not result.agrees:
        raise KeyQuorumError("the encrypted network is less accurate than the one in clear: this must not happen, please report it")


def _beside_paper(result: Classified, parties: int, digits_per_set: int) -> None:
    """Prints seconds a phase beside table 5 of GMPFHE, whose network has other weights and which ran on other machines."""
    table = Table(box=None, pad_edge=False)
    for name in ("phase", "seconds", "seconds a set", "seconds a digit", "paper 004, table 5"):
        table.add_column(name, justify="left" if name == "phase" else "right")
    names = {"keys": "KeyGen", "encryption": "Enc", "evaluation": "Eval", "decryption": "Dec"}
    rows = published.load("004_table5_cnn")
    for phase, seconds in result.seconds.items():
        shown = []
        for row in rows:
            if row["operation"] == names.get(phase):
                time_of = f"{row['seconds']} s" if row["seconds"] is not None else f"{row['ms']} ms"
                where = f" ({row['parties']} parties, {row['network']})" if row["parties"] else ""
                if row["parties"] in (None, 2, 4):
                    shown.append(time_of + where)
        once = phase in ("keys", "model")
        each = [""] * 2 if once else [f"{seconds / count:.3f}" for count in (result.sets, result.images)]
        table.add_row(phase, f"{seconds:.2f}", *each, "; ".join(shown))
    console.print(table)
    console.print(
        f"   ours: {parties} parties on one machine, {digits_per_set} digits a set of ciphertexts; the paper: semi-honest, n - 1 corruptions, one instance of 2 vCPU a party, "
        "LAN 0.5 ms and 2 Gbit/s, WAN 20 ms and 500 Mbit/s, one digit",
        markup=False,
    )
