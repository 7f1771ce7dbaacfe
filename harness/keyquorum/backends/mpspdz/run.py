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

from keyquorum.dsl import ShareVector
from keyquorum.dsl.control.runner import ProgramResult
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
    shares: list[ShareVector]
    printed: list[str]
    seconds: float
    seconds_offline: float
    wall_seconds: float
    bytes_global: int
    rounds: int
    result: ProgramResult = field(repr=False)
    stdout: str = field(repr=False)


@dataclass(frozen=True)
class Players:
    """Executables that compute together. protocol: by its name, or the description of another executable for the same shares, whose number of parties is not
    checked. domain: ``Z2^64`` or ``F_q``. link: simulated links; then the parties are started one by one, each with addresses of its own."""

    checkout: Checkout
    protocol: str | Protocol
    parties: int
    domain: str
    threshold: int | None = None
    link: Link | None = None

    @property
    def entry(self) -> Protocol:
        """The description of the protocol."""
        return protocol_named(self.protocol) if isinstance(self.protocol, str) else self.protocol

    @property
    def where(self) -> Domain:
        """The domain."""
        return word_domain(self.domain)

    def check(self) -> None:
        """Refuses what the protocol does not have. Raises ParameterError, or BackendError for an executable that is not built."""
        if isinstance(self.protocol, str):
            check_parties(self.entry, self.parties, self.threshold)
        self.checkout.binary(self.entry)


@dataclass(frozen=True)
class Given:
    """What a program gets. private: each party's int64 words. public: the words of ``fixinput``, which the program reads after the private ones. listed: the
    numbers of ``pubinput``. shares: each party's share file at the start."""

    private: Mapping[int, Any] = field(default_factory=dict)
    public: object = ()
    listed: Sequence[int] | NDArray[np.int64] | None = None
    shares: Sequence[ShareVector] | None = None


@dataclass(frozen=True)
class Way:
    """How a program is compiled and run. timeout: seconds. folder: a working folder to use again (its certificates save time). compiler, run_time: further
    options before and after ``--``. compiled: this program was run in ``folder`` with the same arguments just before, and need not be compiled again."""

    timeout: float = 600.0
    folder: WorkFolder | None = None
    compiler: Sequence[str] = ()
    run_time: Sequence[str] = ()
    compiled: bool = False


NOTHING, ANEW = Given(), Way()


def run_program(players: Players, program: str | Path, args: Sequence[object] = (), given: Given = NOTHING, way: Way = ANEW) -> MpSpdzRun:
    """Runs a program of the collection (by name) or an .mpc file (by path) and waits for it. Raises :class:`ProgramError`, with the line of the reason, if the
    compiler or a party fails or takes too long."""
    entry, words = players.entry, [str(a) for a in args]
    players.check()
    with ExitStack() as closing:
        folder = way.folder if way.folder is not None else closing.enter_context(WorkFolder())
        name = folder.link_program(str(program), players.checkout)
        _prepare(folder, players, given)
        full_name = "-".join([name, *(a.replace("/", "_") for a in words)])
        if given.listed is not None and len(given.listed):
            folder.write_listed(full_name, given.listed)
        options = run_options(entry, players.where, ["-OF", f"Player-Data/{PRINTED}", *way.run_time])
        compiler = compile_options(entry, players.where, way.compiler)
        if players.link is not None:
            began = time.monotonic()
            command = None if way.compiled else [*compiler, "-E", entry.name, name, *words]
            code, output = _shaped(players, players.link, folder, way.timeout, [full_name, *options], command)
        else:
            if way.compiled:
                started: list[str | Path] = [players.checkout.path / "Scripts" / f"{entry.name}.sh", full_name, *options]
            else:
                started = [sys.executable, players.checkout.compile_run, *compiler, "-E", entry.name, name, *words, "--", *options]
            ports = closing.enter_context(Ports(players.parties + 1))
            names = environment(players.parties, players.threshold, {"PORT": str(ports.first)})
            began = time.monotonic()
            code, output = finish(start(started, folder.path, names), way.timeout)
        wall = time.monotonic() - began
        if code != 0:
            what = f"took longer than {way.timeout:g} s" if code is None else "failed"
            raise ProgramError(f"{name} on MP-SPDZ ({entry.name}, {players.parties} parties) {what}: {failure_line(output)}")
        return _result(folder, players, output, wall)


def _shaped(
    players: Players, link: Link, folder: WorkFolder, timeout: float, words: Sequence[str], compiler: Sequence[str] | None
) -> tuple[int | None, str]:
    """Compiles unless ``compiler`` is None, and starts every party with addresses of relays. ``words``: name of the program, and options. Returns the exit code
    (None: took too long) and the output of party 0, or of the first party that failed."""
    deadline, entry, checkout = time.monotonic() + timeout, players.entry, players.checkout
    names = environment(players.parties, players.threshold, library_path(checkout))
    if compiler is not None:
        code, output = finish(start([sys.executable, checkout.compiler, *compiler], folder.path, names), timeout)
        if code != 0:
            return code, output
    with ExitStack() as closing:
        ports = closing.enter_context(Ports(players.parties))
        real = {i: ("127.0.0.1", ports.first + i) for i in range(players.parties)}
        own = own_delay()
        processes: list[subprocess.Popen[str]] = []
        for party in range(players.parties):
            addresses = closing.enter_context(Relays(link, party, real, own)).addresses
            hosts = folder.path / f"hosts-{party}"
            hosts.write_text("".join(f"{host}:{port}\n" for _, (host, port) in sorted(addresses.items())))
            command: list[object] = [checkout.binary(entry), party, words[0], "-ip", hosts.name, *words[1:]]
            command += ["-N", players.parties] if entry.parties is None else []
            command += ["-T", players.threshold] if players.threshold is not None else []
            log = closing.enter_context((folder.path / f"output-{party}").open("w+b"))
            processes.append(start(command, folder.path, names, log))
            closing.callback(stop, processes[-1])
        codes = _wait(processes, deadline)
        texts = [(folder.path / f"output-{party}").read_text(errors="replace") for party in range(players.parties)]
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


def _prepare(folder: WorkFolder, players: Players, given: Given) -> None:
    folder.clear_run(range(players.parties))
    for party in range(players.parties):
        if not (folder.player_data / f"P{party}.pem").exists():
            make_certificate(folder.player_data, party)
        words = given.private.get(party)
        folder.write_input(party, None if words is None else np.asarray(words, np.int64), [np.asarray(given.public, np.int64)])
        if given.shares is not None and given.shares[party].exists:
            put_shares(folder, players.entry, players.where, players.parties, party, given.shares[party])


def _result(folder: WorkFolder, players: Players, output: str, wall: float) -> MpSpdzRun:
    report, parties = parse_report(output), range(players.parties)
    shares = [take_shares(folder, players.entry, players.where, i) for i in parties]
    printed = []
    for party in parties:
        path = folder.player_data / f"{PRINTED}-P{party}-0"
        printed.append(path.read_text(errors="replace") if path.exists() else "")
        path.unlink(missing_ok=True)
    outputs = [folder.take_output(party) for party in parties]
    folder.clear_run(parties)
    total = report.result.total
    return MpSpdzRun(
        outputs, shares, printed, total.seconds, report.offline.seconds if report.offline else 0.0, wall,
        report.bytes_global or 0, total.rounds, report.result, output,
    )  # fmt: skip


def put_shares(folder: WorkFolder, entry: Protocol, domain: Domain, parties: int, party: int, shares: ShareVector) -> None:
    """Places a party's share file, and its MAC key where the protocol has one."""
    write_secret(folder.shares_path(party), share_files.encode(entry.name, domain, shares))
    if entry.macs:
        key = shares.mac_key
        assert key is not None  # encode refuses shares without a key
        path = folder.player_data / share_files.mac_key_path(entry.name, domain, parties, party)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_secret(path, share_files.mac_key_text(parties, key))


def take_shares(folder: WorkFolder, entry: Protocol, domain: Domain, party: int) -> ShareVector:
    """A party's share file after a run; empty if there is none."""
    path = folder.shares_path(party)
    return share_files.decode(entry.name, domain, path.read_bytes()) if path.exists() else ShareVector()
