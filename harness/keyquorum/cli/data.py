"""encrypt, eval, approve, decrypt, decode: SEAL and LWE on files."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.values import read_values
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, CommitteeError, ParameterError
from keyquorum.model.outputs import reserved, save_all
from keyquorum.model.plain import Json
from keyquorum.model.subset import ANY, members_of
from keyquorum.plans.decrypt import RESULTS
from keyquorum.schemes import encryption_of, recognise
from keyquorum.schemes.base import EXACT, Decrypted
from keyquorum.schemes.key_folder import load_held_key, load_key
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.seal.approvals import approved_noise
from keyquorum.schemes.seal.key import load_seal_key
from keyquorum.schemes.seal.precision import noise_estimate
from keyquorum.serve.client import fetch
from keyquorum.serve.live.receiver import fetch_live
from keyquorum.terminal.output import choice, console, costs, emit, errors, print_reports, printed
from keyquorum.terminal.progress import progress_bars

from . import completion
from .jobs import JobFile
from .options import (
    Addresses,
    Asking,
    BackendName,
    CheckNoise,
    Ciphertexts,
    Decryption,
    ExactOrMasked,
    Folder,
    FromPool,
    Key,
    LinkSpec,
    LongWait,
    MpSpdzFolder,
    Output,
    OwnIdentity,
    Parties,
    Plaintexts,
    Receiver,
    Served,
    chosen,
)  # fmt: skip
from .tfhe import any_of_tfhe_rs, as_lwe


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("encrypt")(encrypt)
    app.command("eval")(evaluate)
    app.command("decrypt")(decrypt)
    app.command("decode")(decode)
    app.command("approve")(approve)


def _plaintext_paths(ciphertexts: list[Path], output: list[Path]) -> list[Path]:
    """Paths of the plaintexts: beside the ciphertexts, in a folder, or one file for each. Raises ParameterError."""
    for path in ciphertexts:
        if not path.is_file():
            raise ParameterError(f"{path}: no such file")
    names = [f"{path.name}.plain" for path in ciphertexts]
    if not output:
        return [path.with_name(name) for path, name in zip(ciphertexts, names, strict=True)]
    if len(output) == 1 and output[0].is_dir():
        if len(set(names)) < len(names):
            raise ParameterError(f"--output {output[0]}: two ciphertexts have the same name: give --output once for each, as a file")
        return [output[0] / name for name in names]
    if len(output) != len(ciphertexts):
        raise ParameterError(
            f"--output: {len(output)} names for {len(ciphertexts)} ciphertexts: give a folder that exists, or a file for each, in their order"
        )
    return output


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
    """Encrypt numbers under a key's public key, with stock SEAL. Needs no party: anyone with public.key can do it.

    Under an LWE key (public.lwepk) each number, an integer from 0 on, becomes an LWE ciphertext of the file.
    """
    load_key(api.key_folder(folder, key))  # a wrong key is reported before a wrong file
    made = api.encrypt(folder, key, read_values(values), output, bound)
    console.print(f"{output}: {len(made.data)} bytes under key {made.info.key_id}", markup=False)
    _say_expectation(made)
    emit(made.described())


def evaluate(
    folder: Folder,
    key: Key,
    operation: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(seal.OPERATIONS)}; rotate: see --step.", show_default=False, autocompletion=completion.operations),
    ],
    ciphertexts: Annotated[list[Path], typer.Argument(help="One or two SEAL ciphertexts.", show_default=False)],
    output: Output,
    step: Annotated[int, typer.Option(help="Rotation step (rotate).")] = 1,
) -> None:
    """Compute on ciphertexts with stock SEAL; multiply and square relinearise (and rescale, CKKS). For demonstrations.

    CKKS: a bound on the noise of the result is computed from the bounds beside the inputs, printed, and written beside the result. An input without a
    bound counts as a fresh encryption of values up to 1.
    """
    made = api.evaluate(folder, key, operation, ciphertexts, output, step)
    console.print(f"{output}: {len(made.data)} bytes", markup=False)
    _say_expectation(made)
    emit(made.described())


def decrypt(
    folder: Folder,
    key: Key,
    ciphertexts: Ciphertexts,
    to: Receiver = None,
    output: Plaintexts = None,
    committee: Served = False,
    identity: OwnIdentity = None,
    at: Addresses = None,
    wait: LongWait = 0.0,
    rounding: ExactOrMasked = None,
    pool: FromPool = False,
    check_noise: CheckNoise = False,
    job: JobFile = None,
    parties: Parties = None,
    backend: BackendName = "embedded",
    mp_spdz: MpSpdzFolder = None,
    link: LinkSpec = None,
) -> None:
    """Decrypt jointly. Party TO alone learns the result, and writes it as CIPHERTEXT.plain (SEAL's format, mode 0600).

    Every party first switches BFV and BGV ciphertexts to the last level. CKKS decryptions are flooded and counted, and refused where the flooding would
    leave less than one bit. Decrypt only results of computations that you know: one ciphertext that somebody chose can reveal the secret key,
    under every scheme; see keyquorum approve. LWE ciphertexts need a pool
    of the rounding (keyquorum pool fill), and their messages are written as JSON. Files of TFHE-rs are taken as they are, by the bridge (keyquorum tfhe). With --parties, t + 1 parties of shamir and rep-field decrypt
    without the others, LWE with a pool of theirs; after keyquorum share any t parties of semi decrypt LWE and TFHE so. --committee --parties any: whichever t + 1 parties serve.
    """
    whoever = parties == ANY
    if whoever and not committee:
        raise ParameterError(f"--parties {ANY} asks a served committee: add --committee, or name the parties")
    options = Decryption(
        backend=backend, mp_spdz=mp_spdz, link=link, pool=pool, parties=None if whoever else chosen(parties), check_noise=check_noise
    )
    if committee:
        _refuse_beside("--committee", "the served committee has its own", {
            "--to": to is not None, "--rounding": rounding is not None, "--pool": pool, "--check-noise": check_noise, "--job": job is not None,
            "--backend": backend != "embedded", "--mp-spdz": mp_spdz is not None, "--link": link is not None,
        })  # fmt: skip
        asking = Asking.of(identity, at, wait)
    elif to is None:
        raise ParameterError("no receiver: name the party that learns the result with --to, or ask a served committee with --committee")
    for option, given in {"--identity": identity is not None, "--at": bool(at), "--wait": wait != 0}.items():
        if given and not committee:
            raise ParameterError(f"{option} is for a served committee: add --committee, or leave it out")
    with _files_of_lwe(folder, key, ciphertexts, beside=job is not None) as files:
        # A job names the files that every party needs, and others name the files that the user has.
        outputs = _plaintext_paths(files if job is not None else ciphertexts, output or [])
        if committee:
            pairs = zip(files, outputs, strict=True)
            members = members_of(api.as_committee(folder), options["parties"])
            ask = fetch_live if whoever else fetch
            emit({"key": key, "outputs": [_ask_committee(members, key, path, target, asking, ask) for path, target in pairs]})
            return
        assert to is not None
        _check_rounding(folder, key, rounding)
        asked = (folder, key, files, to, outputs, rounding or EXACT)
        if job is not None:
            _hand_over(job, api.decrypt_job(*asked, **options), files)
            return
        with progress_bars() as report:
            result = api.decrypt(*asked, progress=report, **options)
    print_reports(result.reports)
    for i, path in enumerate(result.outputs):
        console.print(f"party {to} wrote {path}", markup=False)
        if result.precisions is not None:
            console.print(f"{path}: {result.precisions[i].text()}", markup=False)
    emit({
        "key": key, "receiver": to, "outputs": result.outputs, "costs": costs(result.reports),
        "largest_errors": None if result.precisions is None else [p.largest for p in result.precisions],
    })  # fmt: skip


@contextmanager
def _files_of_lwe(folder: Path, key: str, ciphertexts: list[Path], beside: bool) -> Iterator[list[Path]]:
    """The files, with LWE ciphertexts in the place of TFHE-rs's: ``beside`` the originals, since every party needs the same bytes, or in a folder that is removed
    at the end."""
    if beside or not any_of_tfhe_rs(ciphertexts):
        yield as_lwe(folder, key, ciphertexts)
        return
    with tempfile.TemporaryDirectory(prefix="keyquorum-") as made:
        yield as_lwe(folder, key, ciphertexts, Path(made))


def _check_rounding(folder: Path, key: str, rounding: str | None) -> None:
    """Refuses a rounding for a key whose results are not rounded."""
    if rounding is None:
        return
    info = load_key(api.key_folder(folder, key))
    if not encryption_of(info).rounds(info):
        name = info.parameters.scheme.upper()
        raise ParameterError(f"{name} results are flooded, not rounded: --rounding {rounding} has no meaning for key {key!r}: leave it out")


def _hand_over(job: Path, content: Json, ciphertexts: list[Path]) -> None:
    """Writes the job of a decryption, and prints what to do with it."""
    api.write_job(job, content)
    names = ", ".join(str(path) for path in ciphertexts)
    console.print(f"{job}: copy it and {names} to every host, and start keyquorum party FOLDER INDEX {shlex.quote(str(job))} there", markup=False)
    console.print("names are relative to the job file; on a host with other paths give --ciphertext, and --output at the receiver")
    emit({"job": job, "ciphertexts": ciphertexts})


def _refuse_beside(option: str, reason: str, given: dict[str, bool]) -> None:
    """Refuses options that would be ignored because of another one."""
    for name, there in given.items():
        if there:
            raise ParameterError(f"{name} has no meaning beside {option}, {reason}: leave it out")


def _ask_committee(committee: Committee, key: str, path: Path, output: Path, asking: Asking, ask: Callable[..., Decrypted] = fetch) -> Path:
    """Asks the parties of a served committee for the plaintext of a file, with ``ask``; returns where it is."""
    if not asking.identity.exists():
        raise ParameterError(f"{asking.identity}: no such file")
    folder = committee.folder
    data = path.read_bytes()
    named = recognise(data)
    info = load_key(api.key_folder(folder, key)) if named is None else named.key_of(data, str(path))
    if named is not None:
        _check_named_key(folder, key, info, path)
    scheme = encryption_of(info)
    body = scheme.request_body(info, path, data)
    ciphertext = scheme.parse(info, body, str(path), EXACT)
    with reserved([output], [scheme.plaintext_size(info, ciphertext)], Path(folder) / RESULTS) as reserved_places:
        result = ask(committee, asking.identity, body, asking.places, asking.wait, info)
        save_all(reserved_places, [result.plaintext])
    console.print(f"{output}: {scheme.texts.plaintext(ciphertext)} under key {key}", markup=False)
    return output


def _check_named_key(folder: Path, key: str, found: KeyInfo, path: Path) -> None:
    """Refuses a file that names another key than the user, if the metadata of that one are here: a receiver need not have them."""
    try:
        info = load_key(api.key_folder(folder, key))
    except CommitteeError:
        return
    if info.key_id != found.key_id:
        raise CiphertextError(
            f"{path}: ciphertexts of {found.parameters.scheme.upper()} under key {found.key_id}, and {key!r} is the {info.parameters.scheme.upper()} key {info.key_id}: name that key"
        )


def decode(
    folder: Folder,
    key: Key,
    plaintext: Annotated[Path, typer.Argument(help="A plaintext, as decrypt writes it.", show_default=False)],
    count: Annotated[int, typer.Option("--count", "-n", help="Values to print; 0: all.")] = 10,
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="LWE, TFHE: type of the values, as uint64, int8 or bool; block: each ciphertext alone (default: the types in the file).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the numbers in a decrypted plaintext, also the integers of TFHE-rs and the messages of LWE."""
    if count < 0:
        raise ParameterError(f"--count {count}: choose how many values to print, or 0 for all")
    info = load_held_key(api.key_folder(folder, key))
    if encryption_of(info).names_key:
        values, types = api.decode_values(folder, key, plaintext, kind)
        shown = values[:count] if count else values
        printed.print(" ".join(map(_text_of, shown)) + (" ..." if len(shown) < len(values) else ""), markup=False)
        emit({"values": shown, "of": len(values), "types": types[: len(shown)], "largest_error": None})
        return
    if kind is not None:
        raise ParameterError(f"--type is for keys of LWE and TFHE, and this is a key of {info.parameters.scheme.upper()}: leave it out")
    numbers, precision = encryption_of(info).decode_file(info, plaintext)
    seen = numbers[:count] if count else numbers
    printed.print(" ".join(f"{v:.8g}" for v in seen) + (" ..." if len(seen) < len(numbers) else ""))
    if precision is not None and not (choice.quiet or choice.as_json):
        errors.print(precision.text(), markup=False)
    emit({"values": seen, "of": len(numbers), "largest_error": None if precision is None else precision.largest})


def _text_of(value: int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
    the key's policy hides. One chosen ciphertext, like a result times 2^20, gives the secret key to its receiver. An approval restricts neither the
    receiver of a decryption nor the number of decryptions.
    """
    if operation is None and inputs:
        raise ParameterError("--input without --operation: say which operation made the ciphertext")
    if operation is not None and (noise_bits is not None or bound != 1.0):
        raise ParameterError("--operation works the bounds out: leave out --bound and --noise-bits")
    noted: list[Json] = []
    for path in ciphertexts:
        chosen = step if operation == "rotate" else None
        digest, parties = api.approve(folder, key, path, party or None, operation, inputs or (), chosen, message=bound, noise_bits=noise_bits)
        console.print(f"{path} (sha256 {digest}): approved at party {', '.join(map(str, parties))}", markup=False)
        where = api.as_committee(folder).key_folder(parties[0], key)
        noise = approved_noise(where, load_seal_key(where), path.read_bytes())
        if noise is not None:
            console.print(noise_estimate(load_seal_key(where), noise), markup=False)
        noted.append({"path": path, "sha256": digest, "parties": parties, "noise_bits": None if noise is None else noise.bits})
    emit({"key": key, "approved": noted})


def _say_expectation(made: api.EncryptedFile) -> None:
    """Prints what a joint decryption of the ciphertext will give: error and noise (CKKS), or the noise budget that is left (BFV, BGV)."""
    for line in made.stated():
        console.print(line, markup=False)
    for warning in made.warnings():
        errors.print(f"WARNING: {warning}", markup=False)
