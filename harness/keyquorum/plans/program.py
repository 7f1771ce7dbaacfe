"""Running one program among party processes of this host, with MP-SPDZ's flags and files."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ProgramOptions, run_program
from keyquorum.model.errors import ParameterError, PartyError
from keyquorum.model.resources import program_path
from keyquorum.parties.context import PartyContext, Progress
from keyquorum.parties.processes import run_processes
from keyquorum.parties.setup import init

DEFAULT_PRIME = 1152921504606584833
"""60 bits, 1 mod 2^18: room for comparisons of 18-bit integers (-F 18)."""
COMPARISON_BITS = 42
"""A masked comparison of k-bit integers needs a prime of k + 42 bits."""
PROTOCOLS = ("ring", "rep-field", "shamir", "emulate")


@dataclass(frozen=True)
class ProgramRequest:
    """A run of a program. ``protocol``, ``parties``, ``ring`` (-R), ``field`` (-F), ``prime`` (-P), ``threshold`` (-T) as in
    MP-SPDZ; ``folder``: where its files are."""

    program: str
    args: tuple[str, ...] = ()
    protocol: str = "ring"
    parties: int | None = None
    ring: int | None = None
    field: int | None = None
    prime: int | None = None
    threshold: int | None = None
    folder: str = "."

    @property
    def size(self) -> int:
        """Number of parties."""
        return self.parties if self.parties is not None else (1 if self.protocol == "emulate" else 3)

    @property
    def domain(self) -> str:
        """The engine's name of the arithmetic domain."""
        if self.protocol not in PROTOCOLS:
            raise ParameterError(f"unknown protocol {self.protocol!r}: choose one of {', '.join(PROTOCOLS)}")
        if self.ring is not None and (self.prime is not None or self.field is not None):
            raise ParameterError("-R is for rings, -P and -F are for prime fields: give one kind")
        over_field = self.protocol in ("rep-field", "shamir") or self.prime is not None or self.field is not None
        if over_field and self.ring is not None:
            raise ParameterError(f"{self.protocol} works over prime fields: give -P instead of -R")
        if not over_field:
            return f"Z2^{self.ring if self.ring is not None else 64}"
        if self.prime is None and (self.field or 0) > DEFAULT_PRIME.bit_length() - COMPARISON_BITS:
            raise ParameterError(
                f"-F {self.field} needs a prime of {(self.field or 0) + COMPARISON_BITS} bits, this engine has up to 61: "
                "lower -F, or give a prime with -P if the program compares nothing"
            )
        return f"F_{self.prime if self.prime is not None else DEFAULT_PRIME}"


def _run(session: Any, request: ProgramRequest) -> list[str]:
    """Runs the program as one party; returns what it printed and its cost."""
    path = program_path(request.program)
    name = " ".join([path.stem, *request.args])
    engine = session.engine(request.protocol, request.domain, name, request.threshold, None)
    folder = Path(request.folder)
    io = ProgramIO.from_folder(folder, engine, "-".join([path.stem, *(a.replace("/", "_") for a in request.args)]))
    printed: list[str] = []
    io.stdout = printed.append
    result = run_program(engine, path, list(request.args), io, ProgramOptions(field=request.field or 0))
    io.save(folder, engine)
    return [*"".join(printed).splitlines(), *result.lines()]


def program_job(context: PartyContext, job: dict[str, Any]) -> dict[str, Any]:
    """The job ``program``: the fields of :class:`ProgramRequest` under ``request``, the folder under ``local``."""
    request = ProgramRequest(
        **{**job["request"], "args": tuple(job["request"]["args"]), "folder": job["local"]["folder"]}
    )
    with context.phase("program"):
        return {"lines": _run(context.session, request)}


def run_locally(request: ProgramRequest, progress: Progress | None = None) -> list[str]:
    """Runs a program among processes of this host over TLS (``emulate``: in this process); returns what party 0 prints."""
    program_path(request.program)
    folder = str(Path(request.folder).resolve())
    local = ProgramRequest(**{**asdict(request), "folder": folder})
    if request.domain and request.protocol == "emulate":
        if request.size != 1:
            raise ParameterError(f"emulate runs in one process, not among {request.size} parties: leave out -N")
        return _run(_engine.local_sessions(1)[0], local)
    with tempfile.TemporaryDirectory(prefix="keyquorum-run-") as temporary:
        protocol = "rep-field" if request.protocol == "ring" else request.protocol
        committee = init(Path(temporary) / "committee", request.size, protocol, request.threshold)
        fields = {k: v for k, v in asdict(request).items() if k != "folder"}
        job = {"kind": "program", "request": fields, "local": {"folder": folder}}
        results = run_processes(committee.folder, job, progress)
    lines: list[str] = results[0]["lines"]
    return lines


__all__ = ["PartyError", "ProgramRequest", "program_job", "run_locally"]
