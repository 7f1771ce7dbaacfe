"""One program with all parties on this host, through MP-SPDZ's own ``Scripts/compile-run.py``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import Persistence
from keyquorum.dsl.runner import ProgramResult
from keyquorum.model.errors import ProgramError

from . import shares as share_files
from .certificates import make_certificate
from .checkout import Checkout, Protocol, check_parties, protocol_named
from .commands import Ports, compile_options, environment, finish, run_options, start
from .report import failure_line, parse_report
from .shares import Domain
from .workdir import WorkFolder, write_secret

Ints = NDArray[np.int64]
PRINTED = "Printed"
"""Prefix, in Player-Data, of the files that what the program prints goes to."""


@dataclass
class MpSpdzRun:
    """What a run gave and cost.

    outputs: what each party wrote by ``binary_output`` (int64, centred). shares: each party's share file after the run.
    printed: what each party printed. seconds: the program alone, preprocessing within it included; of these
    seconds_offline; wall_seconds: compiling, starting and running. bytes_global: sent by all parties. rounds: of party
    0.
    """

    outputs: list[Ints]
    shares: list[Persistence]
    printed: list[str]
    seconds: float
    seconds_offline: float
    wall_seconds: float
    bytes_global: int
    rounds: int
    result: ProgramResult = field(repr=False)
    stdout: str = field(repr=False)


def run_program(
    checkout: Checkout,
    protocol: str,
    parties: int,
    domain: str,
    program: str | Path,
    args: Sequence[object] = (),
    *,
    private: Mapping[int, Any] | None = None,
    public: Any = (),
    listed: Sequence[int] | NDArray[np.int64] | None = None,
    shares: Sequence[Persistence] | None = None,
    threshold: int | None = None,
    timeout: float = 600.0,
    folder: WorkFolder | None = None,
    compiler: Sequence[str] = (),
    run_time: Sequence[str] = (),
    compiled: bool = False,
) -> MpSpdzRun:
    """Runs a program of the collection (by name) or an .mpc file (by path) and waits for it.

    domain: ``Z2^64`` or ``F_q``. private: each party's int64 words. public: the words of ``fixinput``, which the
    program reads after the private ones. listed: the numbers of ``pubinput``. shares: each party's share file at the
    start. timeout: seconds. folder: a working folder to use again (its certificates save time). compiler, run_time:
    further options before and after ``--``. compiled: this program was run in ``folder`` with the same arguments just
    before, and need not be compiled again. Raises :class:`ProgramError` with the line that says why, if the compiler or
    a party fails or takes too long.
    """
    entry, where, words = protocol_named(protocol), Domain.parse(domain), [str(a) for a in args]
    check_parties(entry, parties, threshold)
    checkout.binary(protocol)
    with ExitStack() as closing:
        if folder is None:
            folder = closing.enter_context(WorkFolder())
        name = folder.link_program(str(program), checkout)
        _prepare(folder, entry, where, parties, private or {}, public, shares)
        full_name = "-".join([name, *(a.replace("/", "_") for a in words)])
        if listed is not None and len(listed):
            folder.write_listed(full_name, listed)
        options = run_options(entry, where, ["-OF", f"Player-Data/{PRINTED}", *run_time])
        command: list[str | Path]
        if compiled:
            command = [checkout.path / "Scripts" / f"{entry.name}.sh", full_name, *options]
        else:
            command = [sys.executable, checkout.compile_run, *compile_options(entry, where, compiler)]
            command += ["-E", entry.name, name, *words, "--", *options]
        ports = closing.enter_context(Ports(parties + 1))
        names = environment(parties, threshold, {"PORT": str(ports.first)})
        began = time.monotonic()
        code, output = finish(start(command, folder.path, names), timeout)
        wall = time.monotonic() - began
        if code != 0:
            what = f"took longer than {timeout:g} s" if code is None else "failed"
            raise ProgramError(f"{name} on MP-SPDZ ({protocol}, {parties} parties) {what}: {failure_line(output)}")
        return _result(folder, entry, where, parties, output, wall)


def _prepare(
    folder: WorkFolder, entry: Protocol, domain: Domain, parties: int,
    private: Mapping[int, Any], public: Any, shares: Sequence[Persistence] | None,
) -> None:  # fmt: skip
    folder.clear_run(range(parties))
    for party in range(parties):
        if not (folder.player_data / f"P{party}.pem").exists():
            make_certificate(folder.player_data, party)
        words = private.get(party)
        folder.write_input(party, None if words is None else np.asarray(words, np.int64), [np.asarray(public, np.int64)])
        if shares is not None and shares[party].exists:
            put_shares(folder, entry, domain, parties, party, shares[party])


def _result(
    folder: WorkFolder, entry: Protocol, domain: Domain, parties: int, output: str, wall: float
) -> MpSpdzRun:
    report = parse_report(output)
    shares = [take_shares(folder, entry, domain, i) for i in range(parties)]
    printed = []
    for party in range(parties):
        path = folder.player_data / f"{PRINTED}-P{party}-0"
        printed.append(path.read_text(errors="replace") if path.exists() else "")
        path.unlink(missing_ok=True)
    outputs = [folder.take_output(party) for party in range(parties)]
    folder.clear_run(range(parties))
    total = report.result.total
    return MpSpdzRun(
        outputs, shares, printed, total.seconds, report.offline.seconds if report.offline else 0.0, wall,
        report.bytes_global or 0, total.rounds, report.result, output,
    )  # fmt: skip


def put_shares(
    folder: WorkFolder, entry: Protocol, domain: Domain, parties: int, party: int, shares: Persistence
) -> None:
    """Places a party's share file, and its MAC key where the protocol has one."""
    write_secret(folder.shares_path(party), share_files.encode(entry.name, domain, shares))
    if entry.mac:
        key = shares.mac_key
        assert key is not None  # encode refuses shares without
        path = folder.player_data / share_files.mac_key_path(entry.name, domain, parties, party)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_secret(path, share_files.mac_key_text(parties, key))


def take_shares(folder: WorkFolder, entry: Protocol, domain: Domain, party: int) -> Persistence:
    """A party's share file after a run; empty if there is none."""
    path = folder.shares_path(party)
    return share_files.decode(entry.name, domain, path.read_bytes()) if path.exists() else Persistence()
