"""What everybody may have of a key: a folder to hand to whoever encrypts, evaluates or receives.

The folder is a committee folder without parties: ``committee.toml``, and in ``keys/KEY`` the metadata, the public files in SEAL's format,
and ``parms``, SEAL's ``EncryptionParameters``; of an LWE key ``lwe.json`` and ``public.lwepk``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from keyquorum.fhe import seal
from keyquorum.model.committee import Committee, check_name, write_atomically
from keyquorum.model.errors import CommitteeError

from .keys import KeyInfo, load_key, read_public_file, write_info
from .lwe_keys import LweKeyInfo, load_lwe_key, load_lwe_public_key, write_lwe_info

PARMS = "parms"
"""File with SEAL's ``EncryptionParameters``."""


def export_key(committee: Committee, key: str, source: Path, target: Path) -> tuple[Path, KeyInfo | LweKeyInfo]:
    """Writes the public part of a key, from the key folder ``source``, into the folder ``target``; several keys of a committee may go into one.
    Returns the new key folder and the metadata. Every public file is compared with the metadata first; no other file of the key is read.

    Raises CommitteeError if ``target`` has a key of this name, parties, or another committee; KeyFileError for a damaged or missing file.
    """
    committee.check_complete()
    of_lwe = (source / "lwe.json").is_file()
    info = load_lwe_key(source) if of_lwe else load_key(source)
    if isinstance(info, LweKeyInfo):
        load_lwe_public_key(source, info)
    data = {name: read_public_file(source, info.files, name) for name in info.files}
    folder = target / "keys" / check_name(key, "key name")
    if (target / "committee.toml").exists():
        there = Committee.load(target)
        if there.local_parties():
            raise CommitteeError(f"{target}: a folder with parties: name a new folder")
        if there.digest != committee.digest:
            raise CommitteeError(f"{target}: the folder of another committee: name a new folder")
    if folder.exists():
        raise CommitteeError(f"{folder}: there is a key {key!r} already: name a new folder")
    folder.mkdir(parents=True)
    replace(committee, folder=target).save()
    for name, content in data.items():
        write_atomically(folder / name, content)
    if isinstance(info, LweKeyInfo):
        write_lwe_info(folder, info)
    else:
        write_atomically(folder / PARMS, seal.parms(info.parameters))
        write_info(folder, info)
    return folder, info
