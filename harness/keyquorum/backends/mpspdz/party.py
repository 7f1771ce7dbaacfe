"""One party of a program on MP-SPDZ, for plans.

Every party has a working folder of its own (0700), compiles with its own checkout, and starts its own executable with only its own
inputs and shares, so no party has to trust another host. Over the authenticated session the parties exchange certificates
made for this job, the ports at which they listen, and the state of their runs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from keyquorum._engine import NetworkError, Session
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import BackendError, ParameterError, PartyError, ProgramError
from keyquorum.model.links import Link
from keyquorum.model.plain import Json, json_loads
from keyquorum.model.protocols import Protocol
from keyquorum.programs import Call

from ..base import ONCE, Backend, Ints, Mode, ProgramOutput
from . import commands
from .certificates import make_certificate, trust_certificate
from .checkout import Checkout, check_parties, protocol_named
from .executable import Executable, failed_to_start, first_cause, may_have_begun, was_never_connected
from .relay import Relays
from .report import check_failed, failure_line, parse_report
from .run import PRINTED, put_shares, take_shares
from .shares import word_domain
from .workdir import WorkFolder, sweep, write_secret

COMPILE_SECONDS = 1800.0
START_ATTEMPTS = 3
"""Most attempts, each with new ports, if another process takes a port first."""
REPORTS_CONNECTIONS = (0, 4, 1)
"""The first version of MP-SPDZ with the option ``time_connect``. With older versions it is unknown whether a failed run had begun."""
_LAUNCH = Path(__file__).with_name("launch.py")
_RING_BITS = 64
"""The ring of up to 64 bits for which MP-SPDZ's executables are built."""


class MpSpdz(Backend):
    """Programs on MP-SPDZ among the parties of a session."""

    name = "mp-spdz"
    most_targets = 20  # MP-SPDZ names files after a program's arguments

    def __init__(
        self, session: Session, committee: Committee, checkout: Checkout, members: Sequence[int] | None = None, link: Link | None = None
    ) -> None:
        """``members``: indices of the session's parties in the committee (None: all parties in order). ``link``: simulated
        links between the executables."""
        self._session, self._committee, self._checkout = session, committee, checkout
        self._party, self._parties = int(session.party), int(session.parties)
        self._link = link
        self._members = list(range(self._parties)) if members is None else list(members)
        self._groups: list[MpSpdz] = []
        self._folder: WorkFolder | None = None
        self._compiled: dict[str, list[str]] = {}
        self._sent = self._rounds = 0
        self._note_kept = False

    def ring_bits(self, least: int) -> int:
        """64: MP-SPDZ is built for few rings."""
        if least > _RING_BITS:
            raise ParameterError(f"a ring of {least} bits is wider than the {_RING_BITS} bits of MP-SPDZ's executables")
        return _RING_BITS

    def keep_note(self, kept: bool) -> None:
        """See :meth:`Backend.keep_note`: the note of the session is one bit, which a run would clear."""
        self._note_kept = kept

    def stats(self) -> dict[str, int]:
        """Bytes and rounds of MP-SPDZ's parties and bytes of the session. MP-SPDZ does not report received bytes."""
        counters: dict[str, int] = dict(self._session.stats())
        everything = [self, *self._groups]
        counters["bytes_sent"] += sum(b._sent for b in everything)
        counters["rounds"] = sum(b._rounds for b in everything)
        return counters

    def among(self, members: Sequence[int]) -> MpSpdz:
        """See :meth:`Backend.among`."""
        numbers = [self._members[i] for i in members]
        group = MpSpdz(self._session.subgroup(list(members)), self._committee, self._checkout, numbers, self._link)
        self._groups.append(group)
        return group

    def close(self) -> None:
        """Overwrites and removes the working folders."""
        for group in self._groups:
            group.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.close()

    def run(
        self,
        protocol: str,
        domain: str,
        call: Call,
        *,
        private: Ints | None = None,
        public: Sequence[Ints] = (),
        shares: ShareVector | None = None,
        mode: Mode = ONCE,
    ) -> ProgramOutput:
        """See :meth:`Backend.run`. Raises :class:`PartyError` with the reason of the party that failed first."""
        if mode.seed is not None:
            raise ParameterError("MP-SPDZ draws its own randomness: a test seed is for the embedded engine")
        if mode.purpose:
            raise ParameterError("MP-SPDZ cannot bind a context to its messages: use the embedded engine")
        if mode.masks is not None:
            raise ParameterError("MP-SPDZ takes no stored masks of openings: use the embedded engine")
        entry, where, words = protocol_named(protocol), word_domain(domain), list(call.words)
        t = mode.threshold if entry.chooses_threshold else None
        check_parties(entry, self._parties, t)
        folder = self._working_folder()
        name = self._compile(folder, entry, where, call.program, words)

        def prepare() -> None:
            """Places all files of the program anew, since an earlier attempt may have changed them."""
            folder.clear_run([self._party])
            folder.write_input(self._party, private, public)
            if shares is not None and shares.exists:
                put_shares(folder, entry, where, self._parties, self._party, shares)

        self._execute(folder, entry, where, name, t, prepare, -1 if shares is None else shares.length)
        if shares is not None:
            shares.replace(self._new_shares(folder, entry, where, name, shares.length))
        output = folder.take_output(self._party)
        folder.clear_run([self._party])
        return ProgramOutput(output, self.stats())

    def _name(self, party: int) -> str:
        """The name of a party of the session, by its index in the committee."""
        return f"party {self._members[party]}"

    def _working_folder(self) -> WorkFolder:
        """The folder of this job, with certificates of all parties; made at the first program."""
        if self._folder is not None:
            return self._folder
        home = self._committee.party_folder(self._members[self._party])
        if home.is_dir():
            sweep(home)
        folder = self._folder = WorkFolder(home if home.is_dir() else None)
        mine = {"commit": self._checkout.commit, "certificate": make_certificate(folder.player_data, self._party)}
        for party, data in enumerate(self._session.all_gather(json.dumps(mine).encode())):
            theirs = _message(self._name(party), data, {"commit": str, "certificate": str})
            if theirs["commit"] != mine["commit"]:
                raise BackendError(
                    f"{self._name(party)} has MP-SPDZ at {theirs['commit'][:12]}, {self._name(self._party)} at {mine['commit'][:12]}: "
                    "check out and build the same commit"
                )
            if party != self._party:
                trust_certificate(folder.player_data, party, theirs["certificate"])
        return folder

    def _compile(self, folder: WorkFolder, entry: Protocol, domain: Domain, program: str, args: list[str]) -> str:
        """Compiles a program unless it was the last to be compiled under this name; returns the name."""
        source = folder.link_program(program, self._checkout)
        name = "-".join([source, *(a.replace("/", "_") for a in args)])
        options = [*commands.compile_options(entry, domain), "-E", entry.name]
        if self._compiled.get(name) == options:
            return name
        command = [sys.executable, self._checkout.compiler, *options, source, *args]
        process = commands.start(command, folder.path, commands.environment(self._parties, None))
        code, output = commands.finish(process, COMPILE_SECONDS)
        if code != 0:
            raise PartyError(f"{self._name(self._party)}: MP-SPDZ does not compile {name}: {failure_line(output)}")
        self._compiled[name] = options
        return name

    def _new_shares(self, folder: WorkFolder, entry: Protocol, domain: Domain, name: str, before: int) -> ShareVector:
        """This party's shares after a run. Raises PartyError if the share file of a party is damaged or shorter than before, or if the files of the
        parties have different lengths. All parties exchange their result, also one that cannot read its own file."""
        shares, wrong = ShareVector(), ""
        try:
            shares = take_shares(folder, entry, domain, self._party)
            if shares.length < before:
                wrong = f"the share file has {shares.length:,} shares, {before:,} before the run"
        except ProgramError as error:
            wrong = str(error)
        lengths = {}
        for party, data in enumerate(self._session.all_gather(json.dumps({"length": shares.length, "wrong": wrong}).encode())):
            theirs = _message(self._name(party), data, {"length": int, "wrong": str})
            if theirs["wrong"]:
                why = " ".join(theirs["wrong"].split())[:500]
                raise PartyError(f"{self._name(party)}: {name} on MP-SPDZ left no proper shares: {why}: the old shares are kept, run it again")
            lengths[party] = theirs["length"]
        different = [party for party, length in lengths.items() if length != lengths[0]]
        if different:
            text = ", ".join(f"{self._name(p)} has {lengths[p]:,}" for p in (0, *different))
            raise PartyError(f"share files of different lengths after {name} on MP-SPDZ: {text}: the old shares are kept, run it again")
        return shares

    def _execute(
        self, folder: WorkFolder, entry: Protocol, domain: Domain, name: str, threshold: int | None, prepare: Callable[[], None], stored: int
    ) -> None:
        """Runs this party's executable to its end, while the parties report the states of their executables. The run is repeated, on the same files,
        if another process took a port and no party had connected to all others. ``prepare``: places the files. ``stored``: length of the share file,
        -1 if the program gets none."""
        for attempt in range(START_ATTEMPTS):
            prepare()
            failures, harmless, began = self._attempt(folder, entry, domain, name, threshold, stored)
            if not failures:
                return
            again = all(failed_to_start(text) for text in failures.values())
            if again and harmless and not began and attempt < START_ATTEMPTS - 1:
                continue
            party, text = first_cause(failures)
            # A peer's report about its own executable does not burn the key: a corrupted party may report anything.
            if not harmless or (entry.macs and check_failed(failures.get(self._party, ""))):
                text = f"{text}; {self._session.burn_mac_key(f'{entry.name} on MP-SPDZ failed in {name}: {text}')}"
            raise PartyError(f"{self._name(party)}: {entry.name} on MP-SPDZ failed in {name}: {text}")

    def _attempt(
        self, folder: WorkFolder, entry: Protocol, domain: Domain, name: str, threshold: int | None, stored: int
    ) -> tuple[dict[int, str], bool, bool]:
        """One run. Returns the parties that failed with their reasons, whether the run was harmless for our MAC key, and whether any party had
        connected to all others (or does not know).

        Under MACs a failed run is harmless only if our own executable ended well, or was never connected to all others. When a peer breaks off,
        MP-SPDZ may already have revealed the sums of a check, and does not report whether it had."""
        log = folder.path / "logs" / "output"
        write_secret(log, b"")
        with commands.Ports(1) as ports, log.open("r+b") as file, ExitStack() as closing:
            addresses = self._exchange_ports(entry, domain, name, ports.first, stored)
            if self._link is not None:
                addresses = closing.enter_context(Relays(self._link, self._party, addresses)).addresses
            lines = [f"{host}:{port}\n" for _, (host, port) in sorted(addresses.items())]
            (folder.path / "hosts").write_text("".join(lines))
            names = commands.environment(self._parties, threshold, commands.library_path(self._checkout))
            if entry.macs and not self._note_kept:
                self._session.begin_under_mac_key()
            process = commands.start(self._command(entry, domain, name, threshold), folder.path, names, file)
            failures: dict[int, str] = {}
            failed: Exception | None = None
            ended_well = never_met = False
            reports = self._checkout.version >= REPORTS_CONNECTIONS
            try:
                try:
                    failures = self._watch(Executable(process, log, self._party))
                except Exception as error:
                    failed = error
                ended_well = process.poll() == 0
                never_met = entry.macs and not reports and not ended_well and was_never_connected(process, log)
            finally:
                commands.stop(process)
        output = log.read_text(errors="replace")
        began = may_have_begun(output, self._party) if reports else not never_met
        harmless = not entry.macs or ended_well or not began
        if failures:
            try:
                began = any(said != b"0" for said in self._session.all_gather(b"1" if began else b"0"))
            except NetworkError as error:
                failed = error
        if entry.macs and harmless and not self._note_kept:
            self._session.end_under_mac_key()
        if failed is not None:
            if harmless:
                raise failed
            notice = self._session.burn_mac_key(f"{entry.name} on MP-SPDZ was cut off in {name}: {failed}")
            # The type stays: the launcher reports a NetworkError, which another party caused, after errors of other types.
            raise (NetworkError if isinstance(failed, NetworkError) else PartyError)(f"{failed}; {notice}") from failed
        if not failures:
            total = parse_report(output).result.total
            self._sent += total.bytes_sent
            self._rounds += total.rounds
        return failures, harmless, began

    def _exchange_ports(self, entry: Protocol, domain: Domain, name: str, port: int, stored: int) -> dict[int, tuple[str, int]]:
        """Sends our port to all parties; returns the addresses of all. Raises PartyError if a party runs another program, or has other share
        files."""
        run = hashlib.sha256(f"{entry.name} {domain.modulus} {name}".encode()).hexdigest()
        addresses = {}
        for party, data in enumerate(self._session.all_gather(json.dumps({"run": run, "port": port, "stored": stored}).encode())):
            theirs = _message(self._name(party), data, {"run": str, "port": int, "stored": int})
            if theirs["run"] != run:
                raise PartyError(f"{self._name(party)} runs another program than {name} on {entry.name}: give all the same job")
            if theirs["stored"] != stored:
                raise PartyError(
                    f"{self._name(party)} has {_stored(theirs['stored'])} for {name} on {entry.name}, {self._name(self._party)} {_stored(stored)}: "
                    "give all the share files of the same run"
                )
            addresses[party] = _host(self._committee, self._members[party]), int(theirs["port"])
        return addresses

    def _command(self, entry: Protocol, domain: Domain, name: str, threshold: int | None) -> list[object]:
        """The command of our executable, which ends when this process does."""
        command: list[object] = [sys.executable, "-I", _LAUNCH, commands.own_process(), self._checkout.binary(entry.name)]
        command += [self._party, name, "-ip", "hosts", "-OF", f"Player-Data/{PRINTED}"]
        command += commands.run_options(entry, domain)
        if entry.parties is None:
            command += ["-N", self._parties]
        return command if threshold is None else [*command, "-T", threshold]

    def _watch(self, executable: Executable) -> dict[int, str]:
        """Waits until the executables of all parties have ended well, or one has failed. Returns the texts of the failed ones."""
        while True:
            states = self._session.all_gather(executable.state().encode())
            failures = {i: s[1:].decode(errors="replace")[:500] for i, s in enumerate(states) if s[:1] == b"f"}
            if failures or all(s == b"d" for s in states):
                return failures


def _stored(length: int) -> str:
    return "no share file" if length < 0 else f"a share file of {length:,} shares"


def _message(name: str, data: bytes, fields: dict[str, type]) -> Json:
    """The message of a party. Raises PartyError, which names the party, for a malformed one."""
    try:
        message = json_loads(data)
        if not isinstance(message, dict) or any(type(message.get(k)) is not kind for k, kind in fields.items()):
            raise ValueError
    except ValueError:
        raise PartyError(f"{name} sent no proper message about its MP-SPDZ: run the same version everywhere") from None
    return message


def _host(committee: Committee, party: int) -> str:
    """The host where a party's MP-SPDZ listens, from the committee file."""
    host = committee.parties[party].host
    if ":" in host:
        raise BackendError(f"party {party} has the address {host}: MP-SPDZ needs IPv4 addresses or names of such")
    return "127.0.0.1" if host == "in-process" else host
