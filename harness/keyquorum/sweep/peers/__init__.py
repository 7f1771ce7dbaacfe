"""Other libraries, measured on the same machine in the same run: SEAL with one key, OpenFHE's threshold FHE.

``seal_single`` and ``openfhe_threshold`` are programs; each runs in a process of its own, and :func:`run` reads its output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties import PhaseReport, RunReport

PEERS = ("seal", "openfhe")
SCHEMES = ("ckks", "bfv", "bgv")
OPENFHE_PYTHON = "KEYQUORUM_OPENFHE_PYTHON"
"""Variable with a Python for which OpenFHE has a wheel, if it has none for this one: each wheel is for one version of Python."""


class PeerError(KeyQuorumError):
    """Another library failed."""


class PeerMissingError(PeerError):
    """Another library is not installed, or not for this Python."""


def _python(peer: str) -> str:
    return os.environ.get(OPENFHE_PYTHON) or sys.executable if peer == "openfhe" else sys.executable


@cache
def version(peer: str) -> str:
    """Name and version of the installed package; empty if there is none."""
    if peer == "seal":
        return f"seal-python {metadata.version('seal-python')}"
    code = "from importlib import metadata; print(metadata.version('openfhe'))"
    try:
        done = subprocess.run([_python(peer), "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f"openfhe {done.stdout.strip()}" if done.returncode == 0 else ""


def run(peer: str, parameters: str, parties: int, timeout: float) -> RunReport:
    """Keys, encryption and decryption of a vector, all parties in one process: phases ``keys``, ``encryption`` and ``decryption``.

    ``parameters``: a parameter set (seal), a scheme (openfhe). Raises PeerMissingError, PeerError; the result is checked.
    """
    if peer == "seal":
        result = _result(peer, [_python(peer), "-m", f"{__name__}.seal_single", parameters], timeout)
    else:
        result = openfhe([parameters, str(parties)], timeout)
    phases = [PhaseReport(name, seconds, cpu_seconds=cpu) for name, seconds, cpu in result["phases"]]
    return RunReport(0, phases, result["peak_memory"], sum(phase.cpu_seconds for phase in phases))


def openfhe(arguments: Sequence[str], timeout: float, threads: int = 0) -> Json:
    """What :mod:`.openfhe_threshold` prints, with these arguments. ``threads``: of OpenMP (0: as OpenFHE chooses). Raises PeerMissingError, PeerError;
    the result is checked."""
    words = [_python("openfhe"), str(Path(__file__).parent / "openfhe_threshold.py"), *arguments]
    return _result("openfhe", words, timeout, {"OMP_NUM_THREADS": str(threads)} if threads else {})


def _result(peer: str, words: list[str], timeout: float, variables: Mapping[str, str] | None = None) -> Json:
    """The line of JSON that a program prints last."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, env={**os.environ, **(variables or {})})
    except subprocess.TimeoutExpired:
        raise PeerError(f"{peer} took longer than {timeout:g} s") from None
    except OSError as error:
        raise PeerMissingError(f"{peer}: {words[0]} does not start ({error}): set {OPENFHE_PYTHON} to a Python") from error
    lines = done.stdout.strip().splitlines()
    try:
        result: Json = json.loads(lines[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise PeerError(f"{peer} failed with exit code {done.returncode}: {last}") from None
    if "missing" in result:
        raise PeerMissingError(
            f"{peer} is not to be had for this Python: {result['missing']}: pip install keyquorum[openfhe] under a Python that "
            f"its wheels are for (3.10 or 3.12), and set {OPENFHE_PYTHON} to that if it is not ours"
        )
    if "refused" in result:
        raise PeerMissingError(result["refused"])
    if not result["right"]:
        raise PeerError(f"{peer}: the decrypted values are not those that were encrypted")
    return result
