"""tfhe: the bridge to TFHE-rs, a program of its own (Source/tfhe)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.deploy.tfhe_bridge import run_bridge
from keyquorum.fhe.tfhe_files import HEADER, VALUES, TfheHeader, cure, read_header
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.terminal.output import emit, printed

KEYED = ("keys", "to-lwe", "from-lwe")
"""Commands whose first argument is a key folder."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tfhe", context_settings={"ignore_unknown_options": True})(tfhe)


def check_keys(folder: Path) -> None:
    """Compares the public files of a key folder with ``key.json``; the bridge reads them alone. Raises KeyFileError."""
    info = load_key(folder)
    scheme_of(info).check_public(folder, info)


def any_of_tfhe_rs(paths: Sequence[Path]) -> bool:
    """Whether one of the files is a ciphertext of TFHE-rs."""
    return any(_header(path) is not None for path in paths)


def _header(path: Path) -> TfheHeader | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        found = read_header(file.read(HEADER))
    if found is not None and found.type not in VALUES:
        raise CiphertextError(
            f"{path}: a {found.type} of TFHE-rs, and decrypt takes FheUint, FheInt, FheBool and shortint blocks: {cure(found.type)}"
        )
    return found


def as_lwe(folder: Path, key: str, paths: Sequence[Path], target: Path | None = None) -> list[Path]:
    """The files, with LWE ciphertexts in the place of TFHE-rs's: the bridge writes them to the folder ``target``, or beside each as NAME.lwe, with the types
    of the values. Other files stay as they are. Raises CiphertextError, ParameterError for a key that is not of TFHE, KeyQuorumError without the bridge."""
    converted: list[Path] = []
    for number, path in enumerate(paths):
        header = _header(path)
        if header is None:
            converted.append(path)
            continue
        keys = api.key_folder(folder, key)
        if load_key(keys).parameters.scheme != "tfhe":
            raise ParameterError(f"{path}: a ciphertext of TFHE-rs, and key {key!r} is not a key for TFHE-rs: name that key")
        check_keys(keys)
        made = path.with_name(f"{path.name}.lwe") if target is None else target / f"{number}-{path.name}.lwe"
        run_bridge(["to-lwe", str(keys), str(path), str(made)])
        converted.append(made)
    return converted


def tfhe(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of keyquorum-tfhe (default: --help, which lists its commands).", show_default=False)
    ] = None,
) -> None:
    """Run the bridge to TFHE-rs: keys, encrypt, eval, to-lwe, from-lwe (Source/tfhe/README.md).

    It is a program of its own, which make tfhe-bridge builds. It handles public data only.
    """
    given = arguments or ["--help"]
    if given[0] in KEYED and len(given) > 1:
        check_keys(Path(given[1]))
    lines = run_bridge(given)
    for line in lines:
        printed.print(line, markup=False)
    emit({"command": given[0], "lines": lines})
