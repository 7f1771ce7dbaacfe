"""Command lines, ports and processes for one program on MP-SPDZ."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from keyquorum.model.domains import Domain
from keyquorum.model.errors import BackendError, ParameterError
from keyquorum.model.protocols import Protocol

from .checkout import Checkout, on_mp_spdz

PORTS_VARIABLE = "MP_SPDZ_PORTS"
"""FIRST-LAST in the environment: the ports that parties may listen on, for hosts behind a firewall."""
STATISTICAL_SECURITY = 40
"""MP-SPDZ's default statistical security, in bits."""
LEAST_MAC_BITS = 32
DEFAULT_PORTS = (20000, 32000)
"""Above the ports that MP-SPDZ's own scripts draw, below the ports that operating systems take for outgoing connections."""


def compile_options(protocol: Protocol, domain: Domain, extra: Sequence[str] = ()) -> list[str]:
    """Options of the compiler, without ``-E``. A prime is given at run time, so a compiled program is for any prime."""
    if (domain.prime is not None) != on_mp_spdz(protocol).field:
        raise ParameterError(
            f"{protocol.name} on MP-SPDZ computes "
            + ("modulo 2^k: give -R, not a prime" if not on_mp_spdz(protocol).field else "over prime fields: give -P, not -R")
        )
    ring = ["-R", str(domain.bits)] if domain.prime is None else []
    return [*ring, *extra]


def run_options(protocol: Protocol, domain: Domain, extra: Sequence[str] = ()) -> list[str]:
    """Options of a party executable: prime, encrypted connections, details of the cost, a line for every connection that it makes, and no dump
    of its memory, which has shares.

    A MAC over F_q catches an error with probability 1 - 1/q. MP-SPDZ refuses primes shorter than its statistical security of 40 bits, so
    the option sets this security to the bits of the prime. Below LEAST_MAC_BITS this function raises ParameterError.
    """
    prime = ["-P", str(domain.prime)] if domain.prime is not None else []
    if protocol.macs and domain.prime is not None and domain.bits < STATISTICAL_SECURITY:
        if domain.bits < LEAST_MAC_BITS:
            raise ParameterError(
                f"{protocol.name} over the prime {domain.prime} would accept forged results with probability 2^-{domain.bits - 1}: "
                f"take a prime of at least {LEAST_MAC_BITS} bits"
            )
        prime += ["-S", str(domain.bits)]
    encrypted = ["-e"] if on_mp_spdz(protocol).encrypt else []
    return [*prime, *encrypted, "-v", "-o", "no_memory_output,time_connect", *extra]


def environment(parties: int, threshold: int | None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of MP-SPDZ's scripts and compiler: number of parties, corruptions, the same bytecode at every
    party."""
    names = dict(os.environ, PLAYERS=str(parties), PYTHONHASHSEED="0", **(extra or {}))
    for name in ("THRESHOLD", "LOG_PREFIX", "LOG_SUFFIX", "LOGPROT", "BENCH", "GDB_PLAYER", "prefix"):
        names.pop(name, None)
    if threshold is not None:
        names["THRESHOLD"] = str(threshold)
    return names


class Ports:
    """Consecutive free ports of this host, from MP_SPDZ_PORTS or DEFAULT_PORTS, reserved until :meth:`close`.

    The ports are bound with SO_REUSEADDR, without a listener. MP-SPDZ, which sets the option as well, can bind them again. The UDP port of the
    same number is bound without the option: it keeps a port from others that search as this class does, and connections that ended leave nothing on it.
    """

    def __init__(self, count: int) -> None:
        first, last = _port_range()
        if last - first + 1 < count:
            raise BackendError(f"{PORTS_VARIABLE}={first}-{last} has fewer ports than the {count} that are needed")
        self._sockets: list[socket.socket] = []
        for _ in range(200):
            self.first = first + secrets.randbelow(last - first + 2 - count)
            if all(self._take(self.first + i) for i in range(count)):
                return
            self.close()
        raise BackendError(f"found no {count} free ports from {first} to {last}: set {PORTS_VARIABLE} to FIRST-LAST")

    def _take(self, port: int) -> bool:
        """Reserves a port if MP-SPDZ could bind it now. Connections of an earlier run that wait for late packets (TIME_WAIT) do not keep it from that."""
        for kind, reuse in ((socket.SOCK_DGRAM, 0), (socket.SOCK_STREAM, 1)):
            taken = socket.socket(type=kind)
            self._sockets.append(taken)
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            try:
                taken.bind(("", port))
            except OSError:
                return False
        return True

    def close(self) -> None:
        """Releases the ports."""
        while self._sockets:
            self._sockets.pop().close()

    def __enter__(self) -> Ports:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _port_range() -> tuple[int, int]:
    text = os.environ.get(PORTS_VARIABLE, "")
    if not text:
        return DEFAULT_PORTS
    first, separator, last = text.partition("-")
    if separator and first.isdigit() and last.isdigit() and 1024 <= int(first) <= int(last) <= 65535:
        return int(first), int(last)
    raise BackendError(f"{PORTS_VARIABLE}={text!r} is no range of ports: write FIRST-LAST, from 1024 to 65535")


def own_process() -> int:
    """Our process id, for launch.py."""
    return os.getpid()


def library_path(checkout: Checkout) -> dict[str, str]:
    """Variables of the environment with the path of MP-SPDZ's library, as in MP-SPDZ's scripts."""
    return {n: f"{checkout.path}:{os.environ.get(n, '')}" for n in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")}


def start(command: Sequence[object], folder: Path, names: Mapping[str, str], output: IO[bytes] | None = None) -> subprocess.Popen[str]:
    """Starts a command in ``folder``, in a process group of its own, so that :func:`stop` also ends the processes that it started.
    Its files are readable by their owner alone. It prints to ``output``, or to a pipe that :func:`finish` reads."""
    return subprocess.Popen(
        [str(word) for word in command],
        cwd=folder,
        env=dict(names),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if output is None else output,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        umask=0o077,
    )


def stop(process: subprocess.Popen[str]) -> str:
    """Ends a process and all processes that it started; returns its output that was not read yet."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0] or ""


def finish(process: subprocess.Popen[str], seconds: float) -> tuple[int | None, str]:
    """Waits for a process, and ends it after ``seconds``. Returns its exit code (None if it was ended) and its output."""
    try:
        output = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        return None, stop(process)
    except BaseException:
        stop(process)
        raise
    return process.returncode, output
