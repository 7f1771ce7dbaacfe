"""demo: keys, encryption, evaluation and decryption, once for CKKS and once for BFV."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.outputs import save_file
from keyquorum.model.plain import Json
from keyquorum.model.protocols import COMMITTEES, DEFAULT_COMMITTEE, names
from keyquorum.schemes.seal.key import load_seal_key
from keyquorum.terminal.output import console, emit, print_reports, printed
from keyquorum.terminal.progress import progress_bars

from .options import BackendName, LinkSpec, MpSpdzFolder

TOLERANCE = 0.01
"""Largest CKKS error that the demo accepts: about twice what its policy explains."""
POLICY = api.FloodPolicy(decryptions=4)
"""The policy of the demo's keys. Fewer decryptions than the default leave more precision."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)


def _run(folder: Path, committee: api.Committee, parameters: ParameterSet, x: object, y: object, engine: Json) -> NDArray[Any]:
    """Keys, encryption, multiply + relinearise + rotate by one, joint decryption to party 0; returns the numbers."""
    key = parameters.scheme
    console.rule(f"{parameters.scheme.upper()}, N = {parameters.ring_degree}", style="dim")
    console.print(f"1. {committee.size} party processes make the keys inside MPC ({committee.protocol}), over mutual TLS 1.3")
    with progress_bars() as report:
        elements = api.galois_elements(parameters, (1,))
        made = api.keygen(committee, key, parameters, True, elements, policy=POLICY, progress=report, **engine)
    print_reports(made.reports)
    console.print("2. stock SEAL encrypts two vectors, multiplies, relinearises, rotates by one")
    public = {name: api.load_public_file(made.folder, made.info, name) for name in made.info.files}
    a, b = (seal.encrypt(parameters, public["public.key"], v) for v in (x, y))
    evaluator = seal.Evaluator(parameters, public["relin.key"], public["galois.key"])
    path = folder / f"{key}.ct"
    result = evaluator.rotate(evaluator.multiply(a, b), 1)
    save_file(path, result)
    api.write_receipt(path, result, load_seal_key(made.folder))
    console.print("3. the parties decrypt together; party 0 alone learns the result")
    output = folder / f"{key}.plain"
    with progress_bars() as report:
        done = api.decrypt(committee, key, [path], 0, [output], progress=report, **engine)
    print_reports(done.reports)
    if done.precisions is not None:
        console.print(f"   flooding of {POLICY.bits} bits for {POLICY.decryptions} decryptions: {done.precisions[0].text()}", markup=False)
    return seal.decode(parameters, output.read_bytes())


def demo(
    protocol: Annotated[str, typer.Option("--protocol", "-E", help=f"{names(COMMITTEES)}.")] = DEFAULT_COMMITTEE,
    parties: Annotated[int, typer.Option("--parties", "-N", help="Number of parties.")] = 3,
    keep: Annotated[Path | None, typer.Option(help="Keep all files in this folder.")] = None,
    backend: BackendName = "embedded",
    mp_spdz: MpSpdzFolder = None,
    link: LinkSpec = None,
) -> None:
    """Show the main job: joint keys, unmodified SEAL, joint decryption; CKKS, then BFV."""
    start = time.monotonic()
    engine = {"backend": backend, "mp_spdz": mp_spdz, "link": link}
    rng = np.random.default_rng()
    with tempfile.TemporaryDirectory(prefix="keyquorum-demo-") as temporary:
        folder = keep if keep is not None else Path(temporary)
        committee = api.init(folder / "committee", parties, protocol)
        ckks = load_parameters("ckks-8192-demo")
        slots = ckks.ring_degree // 2
        x, y = rng.uniform(-1, 1, slots), rng.uniform(-1, 1, slots)
        error = float(np.abs(np.real(_run(folder, committee, ckks, x, y, engine)) - np.roll(x * y, -1)).max())
        console.print(f"   largest error of {slots} products: {error:.1e} (the flooding noise)")
        if not error < TOLERANCE:
            raise KeyQuorumError(f"the CKKS result is off by {error}: this must not happen, please report it")
        mismatches: int | None = None
        if committee.ring_protocol is not None:
            bfv = load_parameters("bfv-8192")
            t, half = bfv.plain_modulus, bfv.ring_degree // 2
            u, v = rng.integers(0, t, 2 * half), rng.integers(0, t, 2 * half)
            got = np.asarray(_run(folder, committee, bfv, u, v, engine)).astype(np.int64) % t
            rows = (u * v % t).reshape(2, half)
            mismatches = int((got != np.roll(rows, -1, axis=1).reshape(-1)).sum())
            console.print(f"   {mismatches} of {2 * half} products differ")
    seconds = time.monotonic() - start
    state = "ok" if not mismatches else "failed"
    shown = "skipped" if mismatches is None else str(mismatches)
    simulated = f" simulated_links={link}" if link else ""
    printed.print(f"demo: {state} ckks_error={error:.2e} bfv_mismatches={shown} seconds={seconds:.1f}{simulated}", markup=False)
    emit({"ok": not mismatches, "ckks_error": error, "bfv_mismatches": mismatches, "seconds": seconds, "link": link})
    if mismatches:
        raise KeyQuorumError(f"{mismatches} BFV results are wrong: this must not happen, please report it")
