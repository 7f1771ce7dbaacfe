"""What a party gets of a key besides shares: metadata, public files, counts. For a party that is recovered, and for one that joins."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from keyquorum._engine import Session
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError
from keyquorum.model.inspected import sha256_of
from keyquorum.model.plain import Json
from keyquorum.plans.epochs.refresh import held_keys
from keyquorum.schemes.holding import Holding
from keyquorum.schemes.key_folder import check_public_file, parse_key
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.origin_file import OriginFile

PIECE = 1 << 22
"""Bytes of a public file in one message."""
MOST_SAID = 1 << 26
"""Bytes of what a member says of its keys, and of a message with shares of a vector."""


def keys_said(committee: Committee, party: int, work: str) -> Json:
    """What a member says of its keys, by name: the same at all honest ones."""
    keys = {}
    for name, (info, held) in held_keys(committee, party, work).items():
        folder = committee.key_folder(party, name)
        keys[name] = {
            "info": info.to_json(), "holding": held.to_json(), "sizes": {file: check_public_file(folder, info, file).stat().st_size for file in info.files},
            "origins": _origins(held, folder, party),
        }  # fmt: skip
    return keys


def digest_of(said: Json) -> bytes:
    """What members state of it. The order of names is left out, which metadata keep."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()


def _origins(held: Holding, key_folder: Path, party: int) -> list[str]:
    """The public names of the runs that shares of each vector are of; none where shares have no public name."""
    files = (OriginFile(held.folder(key_folder), index, held.share_header(party, index)) for index in range(len(held.vectors)))
    return [name for name in (file.public() for file in files) if name]


def parsed(said: Json) -> KeyInfo:
    """The metadata of a key that members sent. Raises KeyFileError."""
    try:
        return parse_key(said)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeyFileError(f"the metadata of a key that the other members sent is not proper ({error}): run the same version everywhere") from None


def label_of(held: Holding, key: str, index: int) -> bytes:
    """A name of a vector of a key, never the same for two."""
    return f"{held.key_id} {key} {index}".encode()


def send_file(session: Session, to: Sequence[int], path: Path) -> None:
    """Sends a public file in pieces, each to all receivers before the next one: none waits for the files of the others."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            for party in to:
                session.send(party, piece)


def send_files(session: Session, to: Sequence[int], folder: Path, info: KeyInfo) -> None:
    """Sends the public files of a key as :func:`send_file` does, each checked against the metadata before."""
    for name in sorted(info.files):
        send_file(session, to, check_public_file(folder, info, name))


def receive_files(session: Session, sender: int, folder: Path, files: Mapping[str, str], sizes: Mapping[str, int]) -> None:
    """Writes the public files of a key that another member sends; ``files``: SHA-256 of each, in hexadecimal digits. Raises KeyFileError."""
    for name in sorted(files):
        if Path(name).name != name or name.startswith(".") or Path(name).suffix in (".kqs", ".json"):
            raise KeyFileError(f"party {sender} sent a public file {name!r} in the place of a private one: see what became of it")
        left = sizes[name]
        with (folder / name).open("xb") as file:
            while left > 0:
                piece = session.recv(sender, PIECE)
                if not piece or len(piece) > left:
                    raise KeyFileError(f"party {sender} sent another length of {name} than it stated: see what became of it")
                file.write(piece)
                left -= len(piece)
            file.flush()
            os.fsync(file.fileno())
        if sha256_of(folder / name).hex() != files[name]:
            raise KeyFileError(f"party {sender} sent another {name} than that of the key: name other parties first with --from or --dealers")


__all__ = ["MOST_SAID", "digest_of", "keys_said", "label_of", "parsed", "receive_files", "send_file", "send_files"]
