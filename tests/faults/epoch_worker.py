"""A party of a change, or an order about epochs, that kills itself with SIGKILL at a checkpoint, or whose disk is full from there on. Tests only.

Arguments: a file with one JSON object, which has ``folder``, ``kill`` and ``full`` (NAME@K: when that checkpoint is reached for the K-th time; - for none), ``passed`` (a file that gets the names of all checkpoints), and ``ablated``: parties commit with any vote, and erase at once. Of a party also ``party`` and ``job``, and of
a member that leaves ``to``; of an order ``order`` (``commit``, ``give_up`` or ``erase``), ``files``, ``output`` and ``lost``. Prints the type and text of an error."""

from __future__ import annotations

import json
import resource
import sys
import warnings
from collections import Counter
from pathlib import Path

from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.lwe import TFHE_SETS, TfheParameters
from keyquorum.model import checkpoints, epoch
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.parties.worker import run_party

from tests.faults.killing import die_at

TINY = TfheParameters(
    "tfhe-tiny", 32, 0, 4, 1, 2.0**16, 53, "tests: hides nothing", lwe_dimension=9, pbs_base_log=10, pbs_level=2, ks_base_log=4, ks_level=3,
    carry_bits=2, lwe_noise=30, glwe_noise=17,
)  # fmt: skip
"""As in tests/schemes/test_tfhe.py, whose imports take longer than a change."""


def _log(path: Path, full: str) -> None:
    """Writes NAME@K of each checkpoint that is reached, before the process dies there. From the checkpoint ``full`` on no other file gets any more bytes, as on a full disk."""
    kill, times, written = checkpoints.hook, Counter[str](), list[str]()
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = path.open("a")

    def hook(name: str) -> None:
        times[name] += 1
        written.append(f"{name}@{times[name]}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        print(written[-1], file=file, flush=True)
        if full in written:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
        if kill is not None:
            kill(name)

    checkpoints.hook = hook


def _order(asked: Json) -> None:
    files, output = [path for path in asked["files"] if Path(path).exists()], asked["output"]
    if asked["order"] == "commit":
        api.epoch_commit(asked["folder"], files, output)
    elif asked["order"] == "give_up":
        api.epoch_give_up(asked["folder"], asked["lost"], files, output)
    else:
        api.epoch_erase(asked["folder"], files)


def main() -> int:
    asked = json.loads(Path(sys.argv[1]).read_text())
    warnings.simplefilter("ignore", SecurityWarning)
    TFHE_SETS[TINY.name] = TINY
    if asked["ablated"]:
        epoch.all_voted = lambda roles, seen: bool(seen.voted)
        epoch.may_erase = lambda roles, seen: True
    die_at(asked["kill"])
    _log(Path(asked["passed"]), asked["full"])
    try:
        if "order" in asked:
            _order(asked)
        else:
            job, names = asked["job"], {"to": asked["to"], "old": asked["old"], "accepted": asked["job"].get("accept_origin")}
            run_party(Path(asked["folder"]), asked["party"], job, connect_timeout=6.0, io_timeout=15.0, **names)
    except (KeyQuorumError, EngineError, OSError) as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
