"""A program on MP-SPDZ with the files of ``keyquorum run``: inputs, outputs and share files in a folder of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keyquorum.dsl import load_shares, save_shares
from keyquorum.dsl.files.program_io import read_binary, read_listed
from keyquorum.dsl.files.share_files import shares_path
from keyquorum.model.resources import program_path

from .checkout import check_parties
from .run import Given, MpSpdzRun, Players, Way, run_program
from .shares import share_form

LONGEST = 24 * 3600.0
"""Seconds after which a program is stopped."""


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


def run_program_files(players: Players, program: str, args: Sequence[str], folder: Path, compiler: Sequence[str] = ()) -> MpSpdzRun:
    """Runs a program with MP-SPDZ's files in ``folder``: ``Player-Data/Input-Binary-P<i>-0``,
    ``Programs/Public-Input``, ``Player-Data/Binary-Output-P<i>-0``; and share files in our format,
    ``Persistence/Shares-P<i>``. The embedded engine reads these files as well, except shares with MACs: MP-SPDZ does not write the test of their
    key. compiler: further options of MP-SPDZ's compiler."""
    check_parties(players.entry, players.parties, players.threshold)
    name = "-".join([program_path(program).stem, *(a.replace("/", "_") for a in args)])
    threshold, form = _threshold(players), share_form(players.entry.name)
    sharings = [Sharing(players.entry.name, players.domain, players.parties, threshold, i, *form) for i in range(players.parties)]
    before = [load_shares(shares_path(folder, s.party), s) for s in sharings]
    given = Given({i: read_binary(folder, i) for i in range(players.parties)}, listed=read_listed(folder, name), shares=before)
    done = run_program(players, program, args, given, Way(LONGEST, compiler=compiler))
    for sharing, words, old, shares in zip(sharings, done.outputs, before, done.shares, strict=True):
        if words.size:
            path = folder / "Player-Data" / f"Binary-Output-P{sharing.party}-0"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(words.astype("<i8").tobytes())
        if shares.exists and not (old.exists and np.array_equal(old.words, shares.words)):
            save_shares(shares_path(folder, sharing.party), shares, sharing)
    return done


def _threshold(players: Players) -> int:
    """The threshold that headers of share files state."""
    entry = players.entry
    return players.threshold if entry.chooses_threshold and players.threshold is not None else entry.most_corruptions(players.parties)
