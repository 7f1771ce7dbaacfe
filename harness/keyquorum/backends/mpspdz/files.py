"""A program on MP-SPDZ with the files of ``keyquorum run``: inputs, outputs and share files in a folder of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keyquorum.dsl import load_shares, save_shares
from keyquorum.dsl.program_io import read_binary, read_listed
from keyquorum.dsl.share_files import shares_path
from keyquorum.model.links import Link
from keyquorum.model.resources import program_path

from .checkout import Checkout, check_parties, protocol_named
from .run import MpSpdzRun, run_program
from .shares import share_form


@dataclass(frozen=True)
class Sharing:
    """The properties of an engine that fix header and form of a share file."""

    protocol: str
    domain: str
    parties: int
    threshold: int
    party: int
    share_parts: int
    element_bytes: int


def run_program_files(
    checkout: Checkout, protocol: str, parties: int, domain: str, program: str, args: Sequence[str], folder: Path, *,
    threshold: int | None = None, compiler: Sequence[str] = (), timeout: float = 24 * 3600.0, link: Link | None = None,
) -> MpSpdzRun:  # fmt: skip
    """Runs a program with MP-SPDZ's files in ``folder``: ``Player-Data/Input-Binary-P<i>-0``,
    ``Programs/Public-Input``, ``Player-Data/Binary-Output-P<i>-0``; and share files in our format,
    ``Persistence/Shares-P<i>``. The embedded engine reads these files as well, except shares with MACs: MP-SPDZ does not write the test of their
    key. link: simulated links."""
    entry = protocol_named(protocol)
    check_parties(entry, parties, threshold)
    name = "-".join([program_path(program).stem, *(a.replace("/", "_") for a in args)])
    sharings = [Sharing(protocol, domain, parties, _threshold(protocol, parties, threshold), i, *share_form(protocol)) for i in range(parties)]
    before = [load_shares(shares_path(folder, s.party), s) for s in sharings]
    done = run_program(
        checkout, protocol, parties, domain, program, args,
        private={i: read_binary(folder, i) for i in range(parties)},
        listed=read_listed(folder, name),
        shares=before,
        threshold=threshold, compiler=compiler, timeout=timeout, link=link,
    )  # fmt: skip
    for sharing, words, old, shares in zip(sharings, done.outputs, before, done.shares, strict=True):
        if words.size:
            path = folder / "Player-Data" / f"Binary-Output-P{sharing.party}-0"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(words.astype("<i8").tobytes())
        if shares.exists and not (old.exists and np.array_equal(old.words, shares.words)):
            save_shares(shares_path(folder, sharing.party), shares, sharing)
    return done


def _threshold(protocol: str, parties: int, threshold: int | None) -> int:
    """The threshold that headers of share files state."""
    entry = protocol_named(protocol)
    return threshold if entry.chooses_threshold and threshold is not None else entry.most_corruptions(parties)
