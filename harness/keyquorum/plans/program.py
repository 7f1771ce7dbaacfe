"""Running one program among party processes of this host, with MP-SPDZ's flags and files, on either backend."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from keyquorum import _engine
from keyquorum.backends import BACKENDS
from keyquorum.backends.mpspdz import Checkout, Players, run_program_files
from keyquorum.backends.mpspdz.report import check_failed
from keyquorum.dsl import ProgramIO, ProgramOptions, run_program
from keyquorum.dsl.files.program_io import numbers_path
from keyquorum.dsl.files.share_files import shares_path
from keyquorum.model.arguments import checked
from keyquorum.model.domains import Field, Ring
from keyquorum.model.errors import ParameterError, PartyError, ProgramError
from keyquorum.model.links import check_link, notice, parse
from keyquorum.model.plain import Json
from keyquorum.model.protocols import COMMITTEES, DEFAULT_PROTOCOL, PROTOCOLS, Protocol
from keyquorum.model.resources import find_program
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext, Progress
from keyquorum.parties.jobs import local_path, party_job
from keyquorum.parties.processes import run_processes
from keyquorum.parties.setup import init
from keyquorum.parties.traces import sweep

DEFAULT_PRIME = 1152921504606584833
"""60 bits, 1 mod 2^18: long enough for comparisons of 18-bit integers (-F 18)."""
COMPARISON_BITS = 42
"""A masked comparison of k-bit integers needs a prime of k + 42 bits."""
EMULATED = 3
"""Parties of whom a run in the clear asks for inputs with -I."""


@dataclass(frozen=True)
class ProgramRequest:
    """A run of a program. ``protocol``, ``parties``, ``ring`` (-R), ``field`` (-F), ``prime`` (-P), ``threshold`` (-T) as in
    MP-SPDZ; ``folder``: where its files are; ``backend``: ``embedded`` or ``mp-spdz``; ``mp_spdz``: its checkout, if not
    MP_SPDZ_HOME; ``link``: simulated links, see :mod:`keyquorum.model.links`; ``interactive`` (-I): text inputs are typed, a line a
    party."""

    program: str
    args: tuple[str, ...] = ()
    protocol: str = DEFAULT_PROTOCOL
    parties: int | None = None
    ring: int | None = None
    field: int | None = None
    prime: int | None = None
    threshold: int | None = None
    folder: str = "."
    backend: str = "embedded"
    mp_spdz: str | Path | None = None
    link: str | None = None
    interactive: bool = False

    def check(self) -> None:
        """Refuses unknown backends, and protocols that the backend does not have."""
        if self.backend not in BACKENDS:
            raise ParameterError(f"unknown backend {self.backend!r}: choose one of {', '.join(BACKENDS)}")
        check_link(self.link, self.backend)
        if self.interactive and self.backend != "embedded":
            raise ParameterError("-I is for the embedded engine: with mp-spdz write Player-Data/Input-P<i>-0")
        known = [p.name for p in PROTOCOLS.values() if self.backend == "embedded" or p.mp_spdz is not None]
        if self.protocol not in known:
            raise ParameterError(f"unknown protocol {self.protocol!r}: choose one of {', '.join(known)}")
        if self.link is not None and self.capabilities.emulated:
            raise ParameterError(f"{self.protocol} is one process and has no links: leave out --link")

    @property
    def capabilities(self) -> Protocol:
        """What the protocol is and can do."""
        return PROTOCOLS[self.protocol]

    @staticmethod
    def from_json(data: Json, folder: Path) -> ProgramRequest:
        """A request from the fields of a job, in a folder of this host."""
        kinds: dict[str, tuple[type, ...]] = {
            "program": (str,), "args": (list,), "protocol": (str,), "backend": (str,), "mp_spdz": (str, NoneType), "link": (str, NoneType), "interactive": (bool,),
            **dict.fromkeys(("parties", "ring", "field", "prime", "threshold"), (int, NoneType)),
        }  # fmt: skip
        for name, value in data.items():
            if type(value) not in kinds.get(name, ()):
                raise ParameterError(f"the request of the program job has {name!r} that is not known, or of another type: write the job file again")
        args = data.get("args", [])
        if "program" not in data or not all(isinstance(arg, str) for arg in args):
            raise ParameterError("the request of the program job has no program, or arguments that are no texts: write the job file again")
        return ProgramRequest(**{**data, "args": tuple(args), "folder": str(folder)})

    @property
    def size(self) -> int:
        """Number of parties."""
        if self.parties is not None:
            return self.parties
        return self.capabilities.least_parties

    @property
    def domain(self) -> str:
        """The engine's name of the arithmetic domain."""
        self.check()
        if self.ring is not None and (self.prime is not None or self.field is not None):
            raise ParameterError("-R is for rings, -P and -F are for prime fields: give one kind")
        can = self.capabilities
        if not (can.ring or can.field):
            if (self.ring, self.field, self.prime) != (None, None, None):
                raise ParameterError(f"{self.protocol} computes on bits alone: -R, -F and -P are for {can.ring_protocol} and {can.field_protocol}")
            return "bits"
        always = not can.ring
        over_field = always or self.prime is not None or self.field is not None
        if over_field and self.ring is not None:
            raise ParameterError(f"{self.protocol} works over prime fields: give -P instead of -R")
        if not over_field:
            return Ring(self.ring if self.ring is not None else 64)
        if self.prime is None and (self.field or 0) > DEFAULT_PRIME.bit_length() - COMPARISON_BITS:
            raise ParameterError(
                f"-F {self.field} needs a prime of {(self.field or 0) + COMPARISON_BITS} bits, this engine has up to 61: "
                "lower -F, or give a prime with -P if the program compares nothing"
            )
        return Field(self.prime if self.prime is not None else DEFAULT_PRIME)


def _mac_key_path(request: ProgramRequest, party: int) -> Path:
    """The MAC key of a party's stored shares."""
    return shares_path(Path(request.folder), party).with_name(f"MAC-Key-P{party}")


def _run(session: Any, request: ProgramRequest, typed: Path | None = None) -> list[str]:
    """Runs the program as one party; returns what it printed and its cost. ``typed``: a folder with text inputs, used instead of the parties' own."""
    folder = Path(request.folder)
    path = find_program(request.program, folder)
    name = " ".join([path.stem, *request.args])
    sweep(shares_path(folder, session.party).parent)
    if request.capabilities.macs:
        mac_key.use(session, _mac_key_path(request, session.party))
    engine = session.engine(request.protocol, request.domain, name, request.threshold, None)
    io = ProgramIO.from_folder(folder, engine, "-".join([path.stem, *(a.replace("/", "_") for a in request.args)]))
    if typed is not None:
        io.take_typed(typed, range(EMULATED if request.capabilities.emulated else request.size), engine)
    printed: list[str] = []
    io.stdout = printed.append
    with io.run(engine):
        result = run_program(engine, path, list(request.args), io, ProgramOptions(field=request.field or 0))
        io.save(folder, engine)
    return [*"".join(printed).splitlines(), *result.lines()]


@party_job("program", {"request": dict, "local": dict}, verified=True)
def program_job(context: PartyContext, job: Json) -> Json:
    """The job ``program``: the fields of :class:`ProgramRequest` under ``request``, the folder under ``local``."""
    request = ProgramRequest.from_json(job["request"], local_path(job, "folder"))
    request.check()
    with context.phase("program"):
        return {"lines": _run(context.session, request, local_path(job, "typed") if request.interactive else None)}


@checked
def run_locally(request: ProgramRequest, progress: Progress | None = None) -> list[str]:
    """Runs a program among processes of this host over TLS (``emulate``: in this process); returns what party 0 prints."""
    request.check()
    file = find_program(request.program, Path(request.folder))
    if request.capabilities.macs:
        for party in range(request.size):
            mac_key.check(_mac_key_path(request, party))
    folder = str(Path(request.folder).resolve())
    if request.backend == "mp-spdz":
        return _run_on_mp_spdz(request, str(file))
    local = ProgramRequest(**{**asdict(request), "folder": folder})
    if request.domain and request.capabilities.emulated:
        if request.size != 1:
            raise ParameterError(f"{request.protocol} runs in one process, not among {request.size} parties: leave out -N")
        with tempfile.TemporaryDirectory(prefix="keyquorum-run-") as temporary:
            typed = _typed(Path(temporary), EMULATED) if request.interactive else None
            return _run(_engine.local_sessions(1)[0], local, typed)
    with tempfile.TemporaryDirectory(prefix="keyquorum-run-") as temporary:
        # The committee only connects the parties: one of the same sharing will do.
        alike = (c.name for c in COMMITTEES.values() if c.sharing == request.capabilities.sharing and c.field)
        protocol = request.capabilities.field_protocol
        protocol = protocol if protocol in COMMITTEES else next(alike)
        committee = init(Path(temporary) / "committee", request.size, protocol, request.threshold)
        fields = {k: v for k, v in asdict(request).items() if k not in ("folder", "mp_spdz", "link")}
        job = {"kind": "program", "request": fields, "link": request.link, "local": {"folder": folder}}
        if request.interactive:
            job["local"] = {"folder": folder, "typed": str(_typed(Path(temporary), request.size))}
        results = run_processes(committee.folder, job, progress)
    lines: list[str] = results[0]["lines"]
    return [*lines, notice(request.link)] if request.link else lines


def _typed(folder: Path, parties: int) -> Path:
    """Reads a line of numbers for each party from standard input, and keeps them in files that this user alone can read."""
    below = folder / "typed"
    numbers_path(below, 0).parent.mkdir(parents=True, mode=0o700)
    for party in range(parties):
        if sys.stdin.isatty():
            print(f"numbers of party {party}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        with open(os.open(numbers_path(below, party), os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
            file.write(line)
    return below


def _run_on_mp_spdz(request: ProgramRequest, file: str) -> list[str]:
    checkout = Checkout.find(request.mp_spdz)
    compiler = ["-F", str(request.field)] if request.field else []
    try:
        link = parse(request.link) if request.link else None
        players = Players(checkout, request.protocol, request.size, request.domain, request.threshold, link)
        done = run_program_files(players, file, request.args, Path(request.folder), compiler)
    except ProgramError as error:
        if not request.capabilities.macs or not check_failed(str(error)):
            raise
        burned = [_engine.burn_mac_key(str(_mac_key_path(request, party)), str(error)) for party in range(request.size)]
        raise ProgramError("; ".join([str(error), *burned])) from None
    lines = [*done.printed[0].splitlines(), *done.result.lines()]
    return [*lines, notice(request.link)] if request.link else lines


__all__ = ["PartyError", "ProgramRequest", "program_job", "run_locally"]
