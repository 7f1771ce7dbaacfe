"""encrypt, eval, approve, decrypt, decode: SEAL on files."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from keyquorum import api
from keyquorum.fhe import noise_bound, seal
from keyquorum.fhe.lwe import MAGIC as LWE_MAGIC
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext
from keyquorum.fhe.values import read_values
from keyquorum.model.errors import ParameterError
from keyquorum.model.outputs import reserved, save_all, save_file
from keyquorum.plans.approvals import approved_noise
from keyquorum.plans.decrypt import PLAINTEXT_HEADER, RESULTS
from keyquorum.plans.keys import KeyInfo, load_key
from keyquorum.plans.noise import Noise, evaluated, fresh
from keyquorum.plans.precision import expectation, key_precision, noise_estimate
from keyquorum.plans.receipts import noise_after
from keyquorum.serve.client import LONGEST_WAIT, fetch, fetch_seal

from .options import BackendName, LinkSpec, MpSpdzFolder
from .output import console, errors, print_reports, progress_bars

Folder = Annotated[Path, typer.Argument(help="Committee folder.", show_default=False)]
Key = Annotated[str, typer.Argument(help="Name of the key.", show_default=False)]
Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("encrypt")(encrypt)
    app.command("eval")(evaluate)
    app.command("decrypt")(decrypt)
    app.command("decode")(decode)
    app.command("approve")(approve)


def _key(folder: Path, key: str) -> tuple[Path, KeyInfo]:
    where = api.key_folder(folder, key)
    return where, load_key(where)


def _plain(path: Path) -> Path:
    """Where the plaintext of a ciphertext goes."""
    if not path.is_file():
        raise ParameterError(f"{path}: no such file")
    return path.with_name(path.name + ".plain")


def encrypt(
    folder: Folder,
    key: Key,
    values: Annotated[Path, typer.Argument(help="Numbers: a .json list, a .csv, or a .npy file.", show_default=False)],
    output: Output,
    bound: Annotated[
        float | None,
        typer.Option(
            help="CKKS: a bound on the absolute values, for estimates of noise; it is written beside the ciphertext (default: 1, or the next power of two).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Encrypt numbers with stock SEAL under a key's public key. Needs no party: anyone with public.key can do it."""
    where, info = _key(folder, key)
    public = api.load_public_file(where, info, "public.key")
    numbers = read_values(values)
    data = seal.encrypt(info.parameters, public, numbers)
    noise: Noise | noise_bound.NoiseEstimate | None = noise_bound.fresh(info.parameters)
    if info.parameters.scheme == "ckks":
        digest = hashlib.sha256(data).hexdigest()
        noise = fresh(info.parameters, digest, _value_bound(numbers, bound))
    save_file(output, data)
    api.write_receipt(output, data, info, noise)
    console.print(f"{output}: {len(data)} bytes under key {info.key_id}")
    _say_expectation(info, data, noise)


def _value_bound(numbers: Any, bound: float | None) -> float:
    """The stated bound, checked; without one 1, or the next power of two above the values."""
    largest = float(np.abs(numbers).max()) if np.size(numbers) else 0.0
    if bound is None:
        return 2.0 ** max(0, math.ceil(math.log2(largest))) if largest > 1 else 1.0
    if not largest <= bound < math.inf:
        raise ParameterError(f"the values reach beyond --bound {bound:g}: state a bound that holds for all that you encrypt")
    return bound


def evaluate(
    folder: Folder,
    key: Key,
    operation: Annotated[
        str, typer.Argument(help=f"One of {', '.join(seal.OPERATIONS)}; rotate needs --step.", show_default=False)
    ],
    ciphertexts: Annotated[list[Path], typer.Argument(help="One or two SEAL ciphertexts.", show_default=False)],
    output: Output,
    step: Annotated[int, typer.Option(help="Rotation step (rotate).")] = 1,
) -> None:
    """Compute on ciphertexts with stock SEAL; multiply and square relinearise (and rescale, CKKS). For demonstrations.

    CKKS: a bound on the noise of the result is printed, and noted beside it, from those beside the inputs. An input without one counts as a fresh
    encryption of values up to 1.
    """
    where, info = _key(folder, key)
    inputs, operands = [], []
    for path in ciphertexts:
        if not path.exists():
            raise ParameterError(f"{path}: no such file")
        data = path.read_bytes()
        noted = api.check_receipt(path, data, info)
        inputs.append(data)
        if info.parameters.scheme == "ckks":
            noted = noted or fresh(info.parameters, hashlib.sha256(data).hexdigest())
            operands.append((read_ciphertext(info.parameters, data, str(path)), noted))

    def file(name: str) -> bytes | None:
        return api.load_public_file(where, info, name) if name in info.files else None

    result = seal.evaluate(info.parameters, operation, inputs, file("relin.key"), file("galois.key"), step)
    noise: Noise | noise_bound.NoiseEstimate | None = noise_after(info, operation, list(zip(ciphertexts, inputs, strict=True)), result)
    if operands:
        digest = hashlib.sha256(result).hexdigest()
        noise = evaluated(info.parameters, operation, operands, digest, step, info.galois_elements)
    save_file(output, result)
    api.write_receipt(output, result, info, noise)
    console.print(f"{output}: {len(result)} bytes")
    _say_expectation(info, result, noise)


def decrypt(
    folder: Folder,
    key: Key,
    ciphertexts: Annotated[
        list[Path], typer.Argument(help="SEAL ciphertexts; all are decrypted in the same rounds.", show_default=False)
    ],
    to: Annotated[int | None, typer.Option("--to", help="The party that learns the result.", show_default=False)] = None,
    committee: Annotated[
        bool, typer.Option("--committee", help="LWE, BFV, BGV: ask the served committee (keyquorum serve); the result comes to us alone.")
    ] = False,
    identity: Annotated[
        Path | None, typer.Option(help="--committee: our identity, made by keyquorum receiver.", show_default=False)
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(help="--committee: HOST:PORT of every party, in order; repeat (default: those of this host).", show_default=False),
    ] = None,
    wait: Annotated[float, typer.Option(help="--committee: seconds to wait for parties that do not listen yet.")] = 0.0,
    rounding: Annotated[
        str, typer.Option(help="BFV, BGV: round_ltz_circuit (exact), or round_mask_open, whose errors tell of the key: a few decryptions, counted.")
    ] = "round_ltz_circuit",
    pool: Annotated[bool, typer.Option("--pool", help="BFV, BGV: take the masks from the committee's pool; LWE does always.")] = False,
    job: Annotated[
        Path | None, typer.Option(help="Write the job for keyquorum party instead of running it here.")
    ] = None,
    backend: BackendName = "embedded",
    mp_spdz: MpSpdzFolder = None,
    link: LinkSpec = None,
) -> None:
    """Decrypt jointly; party TO alone learns the result, and writes it as CIPHERTEXT.plain (SEAL's format, mode 0600).

    BFV and BGV ciphertexts are switched to the last level first, by every party. CKKS decryptions are flooded and counted, and refused where the flooding would
    leave less than one bit. Decrypt only results of computations that you know: one ciphertext that somebody chose can reveal the secret key,
    under every scheme; see keyquorum approve. LWE ciphertexts need a pool
    of the rounding (keyquorum pool fill), and their messages are written as JSON.
    """
    if committee:
        if not 0 <= wait <= LONGEST_WAIT:
            raise ParameterError(f"--wait {wait:g}: choose 0 to {LONGEST_WAIT:g} seconds")
        for path in ciphertexts:
            _ask_committee(folder, key, path, identity, at, wait)
        return
    if to is None:
        raise ParameterError("no receiver: name the party that learns the result with --to, or ask a served committee with --committee")
    if all(path.exists() and path.open("rb").read(8) == LWE_MAGIC for path in ciphertexts):
        if job is not None or backend != "embedded":
            raise ParameterError("LWE ciphertexts are decrypted at once and on the embedded engine: leave out --job and --backend")
        for path in ciphertexts:
            with progress_bars() as report:
                done = api.lwe_decrypt(folder, key, path, to, _plain(path), rounding, progress=report)
            print_reports(done.reports)
            console.print(f"party {to} wrote {done.outputs[0]}")
        return
    outputs = [_plain(path) for path in ciphertexts]
    if job is not None:
        api.write_job(job, api.decrypt_job(folder, key, ciphertexts, to, outputs, rounding, backend, mp_spdz, link, pool))
        names = ", ".join(str(path) for path in ciphertexts)
        console.print(f"{job}: copy it and {names} to every host, and start keyquorum party FOLDER INDEX {job} there", markup=False)
        console.print("names are relative to the job file; on a host with other places give --ciphertext, and --output at the receiver")
        return
    with progress_bars() as report:
        result = api.decrypt(
            folder, key, ciphertexts, to, outputs, rounding, report, backend=backend, mp_spdz=mp_spdz, link=link, pool=pool
        )
    print_reports(result.reports)
    for i, output in enumerate(result.outputs):
        console.print(f"party {to} wrote {output}")
        if result.precisions is not None:
            console.print(f"{output}: {result.precisions[i].text()}", markup=False)


def _ask_committee(folder: Path, key: str, path: Path, identity: Path | None, at: list[str] | None, wait: float) -> None:
    if identity is None:
        raise ParameterError("no identity: make one with keyquorum receiver, and name it with --identity")
    if not path.exists() or not identity.exists():
        raise ParameterError(f"{identity if path.exists() else path}: no such file")
    places = None if at is None else [api.address(text) for text in at]
    output = _plain(path)
    if path.open("rb").read(8) == LWE_MAGIC:
        data = path.read_bytes()
        with reserved([output], [len(data)], Path(folder) / RESULTS) as reserved_places:
            messages = fetch(api.as_committee(folder), identity, data, places, wait)
            save_all(reserved_places, [json.dumps(messages.tolist()).encode() + b"\n"])
        console.print(f"{output}: {messages.size} messages under key {key}")
        return
    _, info = _key(folder, key)
    lowered = api.lower(info, path)
    with reserved([output], [8 * info.parameters.ring_degree + PLAINTEXT_HEADER], Path(folder) / RESULTS) as reserved_places:
        result = fetch_seal(api.as_committee(folder), identity, info, lowered.read_bytes(), places, wait)
        save_all(reserved_places, [result.plaintext])
    console.print(f"{output}: a plaintext under key {key}")


def decode(
    folder: Folder,
    key: Key,
    plaintext: Annotated[Path, typer.Argument(help="A SEAL plaintext, as decrypt writes it.", show_default=False)],
    count: Annotated[int, typer.Option("--count", "-n", help="Values to print; 0: all.")] = 10,
) -> None:
    """Print the numbers in a decrypted plaintext."""
    _, info = _key(folder, key)
    values = seal.decode(info.parameters, plaintext.read_bytes())
    shown = values[:count] if count else values
    console.print(" ".join(f"{v:.8g}" for v in shown) + (" ..." if len(shown) < len(values) else ""))
    if info.parameters.scheme == "ckks":
        scale = read_plaintext(info.parameters, plaintext.read_bytes()).scale
        errors.print(key_precision(info, scale).text(), markup=False)


def approve(
    folder: Folder,
    key: Key,
    ciphertexts: Annotated[list[Path], typer.Argument(help="CKKS ciphertexts in SEAL's format.", show_default=False)],
    party: Annotated[
        list[int] | None, typer.Option(help="The party that agrees; repeat (default: every party of this host).", show_default=False)
    ] = None,
    operation: Annotated[
        str | None,
        typer.Option(help="Approve only what this operation of keyquorum eval makes of approved inputs: it is computed again.", show_default=False),
    ] = None,
    inputs: Annotated[
        list[Path] | None, typer.Option("--input", help="An input of the operation, approved before; repeat.", show_default=False)
    ] = None,
    step: Annotated[int, typer.Option(help="Rotation step (rotate).")] = 1,
    bound: Annotated[float, typer.Option(help="Without --operation: a bound on the absolute values that you vouch for.")] = 1.0,
    noise_bits: Annotated[
        float | None,
        typer.Option(
            help="Without --operation: log2 of the root mean square of the noise that you vouch for (default: that of a fresh encryption).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Agree, at the parties of this host, to decrypt ciphertexts under a key made with --approvals.

    Approve fresh encryptions of owners whom you know, and results that you compute again (--operation): their noise is bounded, and refused above what
    the key's policy hides. One chosen ciphertext, like a result times 2^20, gives the secret key to its receiver. An approval binds neither who
    receives a decryption nor how often.
    """
    if operation is None and inputs:
        raise ParameterError("--input without --operation: say which operation made the ciphertext")
    if operation is not None and (noise_bits is not None or bound != 1.0):
        raise ParameterError("--operation works the bounds out: leave out --bound and --noise-bits")
    for path in ciphertexts:
        chosen = step if operation == "rotate" else None
        digest, parties = api.approve(folder, key, path, party or None, operation, inputs or (), chosen, bound, noise_bits)
        console.print(f"{path} (sha256 {digest}): approved at party {', '.join(map(str, parties))}", markup=False)
        where = api.as_committee(folder).key_folder(parties[0], key)
        noise = approved_noise(where, load_key(where), path.read_bytes())
        if noise is not None:
            console.print(noise_estimate(load_key(where), noise), markup=False)


def _say_expectation(info: KeyInfo, data: bytes, noise: Noise | noise_bound.NoiseEstimate | None) -> None:
    """What joint decryption of a ciphertext will give: the error under CKKS and the noise, what is left of the noise budget under BFV."""
    if isinstance(noise, noise_bound.NoiseEstimate):
        left = noise_bound.final_budget(info.parameters, noise)
        console.print(f"noise budget left when decrypted: {max(left, 0):.0f} bits", markup=False)
        if left < 0:
            errors.print("WARNING: the noise budget is used up: decryption may be wrong, and will be refused", markup=False)
    if info.parameters.scheme == "ckks":
        console.print(expectation(info, read_ciphertext(info.parameters, data).scale), markup=False)
    if isinstance(noise, Noise):
        console.print(noise_estimate(info, noise), markup=False)
