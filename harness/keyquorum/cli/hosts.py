"""fingerprint, move, export, admit: commands for committees on several hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyquorum import api
from keyquorum.serve.client import admit as admit_receiver
from keyquorum.terminal.output import console, emit, printed

from . import completion
from .options import Folder


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("fingerprint")(fingerprint)
    app.command("move")(move)
    app.command("export")(export)
    app.command("admit")(admit)


def fingerprint(
    folder: Folder,
    party: Annotated[int | None, typer.Argument(help="The party, if this host has several.", show_default=False)] = None,
) -> None:
    """Print the fingerprint of the party of this host, for keyquorum trust at the others."""
    found = api.fingerprint(folder, party)
    printed.print(found)
    emit({"fingerprint": found})


def move(
    folder: Folder,
    party: Annotated[int, typer.Argument(help="The party.", show_default=False)],
    address: Annotated[str, typer.Argument(help="HOST:PORT where it listens from now on.", show_default=False)],
) -> None:
    """Enter another address of a party. Run it on all hosts; keys and pools stay valid."""
    found = api.move(folder, party, address).parties[party]
    console.print(f"party {party} listens at {found.place}", markup=False)
    emit({"party": party, "host": found.host, "port": found.port})


def export(
    folder: Folder,
    key: Annotated[str, typer.Argument(help="Name of the key.", show_default=False, autocompletion=completion.keys)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; keys of one committee may share it.", show_default=False)],
) -> None:
    """Write the public part of a key into a folder, for clients that encrypt, evaluate or receive.

    Nothing in it is secret: committee.toml, and in keys/KEY key.json, the public files in SEAL's format, and parms, SEAL's
    EncryptionParameters; of an LWE key public.lwepk. The folder is a committee folder without parties: encrypt, eval, decode, receiver and decrypt --committee take it.
    """
    where, info = api.export_key(api.as_committee(folder), key, api.key_folder(folder, key), output)
    names = sorted(path.name for path in where.iterdir())
    console.print(f"{where}: {', '.join(names)} of key {info.key_id}", markup=False)
    emit({"folder": where, "files": names, "key_id": info.key_id})


def admit(
    folder: Folder,
    certificate: Annotated[Path, typer.Argument(help="The receiver's .crt, as keyquorum receiver wrote it.", show_default=False)],
) -> None:
    """Let a receiver ask the parties of this host for decryptions. Admit only who may decrypt everything.

    Compare the SHA-256 with the receiver's over a channel that you trust. To end it, remove the file from the party's folder receivers.
    """
    digest, parties = admit_receiver(api.as_committee(folder), certificate)
    console.print(f"{certificate} (sha256 {digest}): admitted at party {', '.join(map(str, parties))}", markup=False)
    emit({"certificate": certificate, "sha256": digest, "parties": parties})
