"""What everybody may have of a key: a folder to hand to whoever encrypts, evaluates or receives.

The folder is a committee folder without parties: ``committee.toml``, and in ``keys/KEY`` the metadata, the public files in the scheme's format,
and what else the scheme puts there (:meth:`.Scheme.exported`), as ``parms``, SEAL's ``EncryptionParameters``.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from keyquorum.model.arguments import checked
from keyquorum.model.committee import Committee, check_name, write_atomically
from keyquorum.model.errors import CommitteeError
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import check_public_file, load_key, write_info
from keyquorum.schemes.keys import KeyInfo


@checked
def export_key(committee: Committee, key: str, source: Path, target: Path) -> tuple[Path, KeyInfo]:
    """Writes the public part of a key, from the key folder ``source``, into the folder ``target``; several keys of a committee may go into one.
    Returns the new key folder and the metadata. Every public file is compared with the metadata first; no other file of the key is read.

    Raises CommitteeError if ``target`` has a key of this name, parties, or another committee; KeyFileError for a damaged or missing file.
    """
    committee.check_complete()
    info = load_key(source)
    scheme = scheme_of(info)
    scheme.check_public(source, info)
    public = [check_public_file(source, info, name) for name in info.files]
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
    for path in public:
        shutil.copyfile(path, folder / path.name)
        check_public_file(folder, info, path.name)
    for name, content in scheme.exported(info).items():
        write_atomically(folder / name, content)
    write_info(folder, info)
    return folder, info
