"""One program with all parties on this host, through MP-SPDZ's own ``Scripts/compile-run.py``."""

from __future__ import annotations

import subprocess
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
from keyquorum.model.domains import Domain
from keyquorum.model.errors import ProgramError
from keyquorum.model.links import Link
from keyquorum.model.protocols import Protocol

from . import shares as share_files
from .certificates import make_certificate
from .checkout import Checkout, check_parties, protocol_named
from .commands import Ports, compile_options, environment, finish, library_path, run_options, start, stop
from .relay import Relays, own_delay
from .report import failure_line, parse_report
from .shares import word_domain
from .workdir import WorkFolder, write_secret

Ints = NDArray[np.int64]
PRINTED = "Printed"
"""Prefix, in Player-Data, of the files with the printed output of a program."""


@dataclass
class MpSpdzRun:
    """Results and cost of a run.

    outputs: the words of each party's ``binary_output`` (int64, centred). shares: each party's share file after the run.
    printed: the printed output of each party. seconds: time of the program, with the preprocessing that it makes, which takes
    seconds_offline. wall_seconds: time of compiling, starting and running. bytes_global: bytes that all parties sent. rounds: rounds of
    party 0.
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
    protocol: str | Protocol,
    parties: int,
    domain: str,
    program: str | Path,
    args: Sequence[object] = (),
    *,
    private: Mapping[int, Any] | None = None,
    public: object = (),
    listed: Sequence[int] | NDArray[np.int64] | None = None,
    shares: Sequence[Persistence] | None = None,
    threshold: int | None = None,
    timeout: float = 600.0,
    folder: WorkFolder | None = None,
    compiler: Sequence[str] = (),
    run_time: Sequence[str] = (),
    compiled: bool = False,
    link: Link | None = None,
) -> MpSpdzRun:
    """Runs a program of the collection (by name) or an .mpc file (by path) and waits for it.

    protocol: by its name, or the description of another executable for the same shares, whose number of parties is not checked. domain: ``Z2^64`` or ``F_q``. private: each party's int64 words. public: the words of ``fixinput``, which the
    program reads after the private ones. listed: the numbers of ``pubinput``. shares: each party's share file at the
    start. timeout: seconds. folder: a working folder to use again (its certificates save time). compiler, run_time:
    further options before and after ``--``. compiled: this program was run in ``folder`` with the same arguments just
    before, and need not be compiled again. link: simulated links; then the parties are started one by one, each with addresses of
    its own. Raises :class:`ProgramError`, with the line of the reason, if the compiler or a party fails or takes too long.
    """
    entry = protocol_named(protocol) if isinstance(protocol, str) else protocol
    where, words = word_domain(domain), [str(a) for a in args]
    if isinstance(protocol, str):
        check_parties(entry, parties, threshold)
    checkout.binary(entry)
    with ExitStack() as closing:
        if folder is None:
            folder = closing.enter_context(WorkFolder())
        name = folder.link_program(str(program), checkout)
        _prepare(folder, entry, where, parties, private or {}, public, shares)
        full_name = "-".join([name, *(a.replace("/", "_") for a in words)])
        if listed is not None and len(listed):
            folder.write_listed(full_name, listed)
        options = run_options(entry, where, ["-OF", f"Player-Data/{PRINTED}", *run_time])
        if link is not None:
            compiler = [*compile_options(entry, where, compiler), "-E", entry.name]
            began = time.monotonic()
            code, output = _shaped(
                checkout, entry, folder, parties, threshold, link, timeout, full_name, options, None if compiled else [*compiler, name, *words]
            )  # fmt: skip
            return _ended(folder, entry, where, parties, name, timeout, code, output, time.monotonic() - began)
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
        return _ended(folder, entry, where, parties, name, timeout, code, output, time.monotonic() - began)


def _ended(
    folder: WorkFolder, entry: Protocol, domain: Domain, parties: int, name: str, timeout: float,
    code: int | None, output: str, wall: float,
) -> MpSpdzRun:  # fmt: skip
    if code != 0:
        what = f"took longer than {timeout:g} s" if code is None else "failed"
        raise ProgramError(f"{name} on MP-SPDZ ({entry.name}, {parties} parties) {what}: {failure_line(output)}")
    return _result(folder, entry, domain, parties, output, wall)


def _shaped(
    checkout: Checkout, entry: Protocol, folder: WorkFolder, parties: int, threshold: int | None, link: Link, timeout: float,
    full_name: str, options: Sequence[str], compiler: Sequence[str] | None,
) -> tuple[int | None, str]:  # fmt: skip
    """Compiles unless ``compiler`` is None, and starts every party with addresses of relays. Returns the exit code (None: took too
    long) and the output of party 0, or of the first party that failed."""
    deadline = time.monotonic() + timeout
    names = environment(parties, threshold, library_path(checkout))
    if compiler is not None:
        code, output = finish(start([sys.executable, checkout.compiler, *compiler], folder.path, names), timeout)
        if code != 0:
            return code, output
    with ExitStack() as closing:
        ports = closing.enter_context(Ports(parties))
        real = {i: ("127.0.0.1", ports.first + i) for i in range(parties)}
        own = own_delay()
        processes: list[subprocess.Popen[str]] = []
        logs = []
        for party in range(parties):
            addresses = closing.enter_context(Relays(link, party, real, own)).addresses
            hosts = folder.path / f"hosts-{party}"
            hosts.write_text("".join(f"{host}:{port}\n" for _, (host, port) in sorted(addresses.items())))
            command: list[object] = [checkout.binary(entry), party, full_name, "-ip", hosts.name, *options]
            command += ["-N", parties] if entry.parties is None else []
            command += ["-T", threshold] if threshold is not None else []
            log = closing.enter_context((folder.path / f"output-{party}").open("w+b"))
            logs.append(log)
            processes.append(start(command, folder.path, names, log))
            closing.callback(stop, processes[-1])
        codes = _wait(processes, deadline)
        texts = [(folder.path / f"output-{party}").read_text(errors="replace") for party in range(parties)]
    if None in codes:
        return None, texts[codes.index(None)]
    failed = next((i for i, code in enumerate(codes) if code), 0)
    return codes[failed], texts[failed]


def _wait(processes: Sequence[subprocess.Popen[str]], deadline: float) -> list[int | None]:
    """Waits until all processes end well, one fails, or the deadline. Returns exit codes; None: still running, and no other process failed."""
    while True:
        codes = [process.poll() for process in processes]
        if all(code == 0 for code in codes) or time.monotonic() > deadline:
            return codes
        if any(codes):
            return [code or 0 for code in codes]
        time.sleep(0.02)


def _prepare(
    folder: WorkFolder, entry: Protocol, domain: Domain, parties: int,
    private: Mapping[int, Any], public: object, shares: Sequence[Persistence] | None,
) -> None:  # fmt: skip
    folder.clear_run(range(parties))
    for party in range(parties):
        if not (folder.player_data / f"P{party}.pem").exists():
            make_certificate(folder.player_data, party)
        words = private.get(party)
        folder.write_input(party, None if words is None else np.asarray(words, np.int64), [np.asarray(public, np.int64)])
        if shares is not None and shares[party].exists:
            put_shares(folder, entry, domain, parties, party, shares[party])


def _result(folder: WorkFolder, entry: Protocol, domain: Domain, parties: int, output: str, wall: float) -> MpSpdzRun:
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


def put_shares(folder: WorkFolder, entry: Protocol, domain: Domain, parties: int, party: int, shares: Persistence) -> None:
    """Places a party's share file, and its MAC key where the protocol has one."""
    write_secret(folder.shares_path(party), share_files.encode(entry.name, domain, shares))
    if entry.macs:
        key = shares.mac_key
        assert key is not None  # encode refuses shares without a key
        path = folder.player_data / share_files.mac_key_path(entry.name, domain, parties, party)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_secret(path, share_files.mac_key_text(parties, key))


def take_shares(folder: WorkFolder, entry: Protocol, domain: Domain, party: int) -> Persistence:
    """A party's share file after a run; empty if there is none."""
    path = folder.shares_path(party)
    return share_files.decode(entry.name, domain, path.read_bytes()) if path.exists() else Persistence()
