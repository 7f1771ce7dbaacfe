"""All kinds, in the order in which they are tried: exact names before contents, and values last, which any content may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from keyquorum.model.errors import KeyFileError
from keyquorum.model.inspected import Candidate, Kind, Report
from keyquorum.schemes import schemes

from . import epochs, folders, keys, others, private, tables, values
from .folders import refuse_folder


def all_kinds() -> tuple[Kind, ...]:
    """All kinds, including those of the schemes."""
    of_schemes = [kind for scheme in reversed(schemes()) for kind in scheme.kinds()]
    return (*epochs.KINDS, *others.KINDS, *folders.KINDS, *keys.KINDS, *private.KINDS, *tables.KINDS, *of_schemes, *values.KINDS)


KINDS = all_kinds()


def examine(path: Path) -> Report:
    """The report of a file or folder, checked as far as its format allows. The report has no secrets.

    Raises a KeyQuorumError or EngineError, one line with the remedy, for a missing, unknown or damaged file."""
    if not path.exists():
        raise KeyFileError(f"{path}: no such file or folder")
    if not path.is_dir() and not path.is_file():
        raise KeyFileError(f"{path}: a device or a pipe, name a file")
    candidate = Candidate(path)
    for kind in all_kinds():
        if kind.recognise(candidate):
            try:
                return replace(kind.describe(candidate), kind=kind.name)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError) as error:
                raise KeyFileError(
                    f"{path}: damaged, not the {kind.name} that it seems to be ({type(error).__name__}): restore it from a backup"
                ) from None
    if candidate.is_folder:
        refuse_folder(path)
    raise KeyFileError(f"{path}: not a file of KeyQuorum, of SEAL or of TFHE-rs, or a damaged one")


def describe(path: Path) -> Iterator[str]:
    """The lines of :func:`examine`."""
    yield from examine(path).lines
