"""Folders of programs and parameter sets: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .errors import KeyQuorumError

_PACKAGE = Path(__file__).resolve().parent.parent


def resource_folder(name: str) -> Path:
    """The folder ``Programs`` or ``params``."""
    candidates = [_PACKAGE.parent.parent / name, _PACKAGE / "_share" / name]
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise KeyQuorumError(f"the folder {name} is missing: reinstall keyquorum, or run it from a checkout")


EXTENSIONS = (".mpc", ".py")
"""Endings of the names of programs."""


def program_path(name: str) -> Path:
    """The file of a program, given by name (``sample_cbd``) or path."""
    if name.endswith(EXTENSIONS) and Path(name).exists():
        return Path(name)
    return _shipped(name)


def find_program(name: str, folder: Path) -> Path:
    """The file of a program, searched for in the way of MP-SPDZ. ``name``: a path, a name in ``Programs/Source`` of ``folder``, or a name of
    the collection, each with or without its ending. Raises KeyQuorumError if there is none, or if there are two."""
    names = [name] if name.endswith(EXTENSIONS) else [name + ending for ending in EXTENSIONS]
    candidates = [Path(name), *(folder / "Programs" / "Source" / n for n in names), *(resource_folder("Programs") / "Source" / n for n in names)]
    found = {path.resolve(): path for path in candidates if path.is_file()}
    if len(found) > 1:
        raise KeyQuorumError(f"two programs {name!r}: {' and '.join(map(str, found.values()))}: rename one, or leave it out of {folder}")
    return next(iter(found.values())) if found else _shipped(name)


@lru_cache(maxsize=256)
def _shipped(name: str) -> Path:
    path = resource_folder("Programs") / "Source" / f"{Path(name).name.removesuffix('.mpc')}.mpc"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.mpc")))
        raise KeyQuorumError(f"no program {name!r}: choose one of {known}, or give the path of an .mpc file")
    return path
