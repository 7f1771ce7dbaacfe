"""The life of a committee: new shares of a key (``refresh``), the shares of a party that lost its folder (``recover``), with a test of shares against the public key where the committee needs one, and
that test alone (``prove``). ``make bench-epochs``.

Every party is a process of this host, over TLS. A committee with one key refreshes, or loses and recovers its last party, several times; medians. ``seconds``: the phases of the slowest party
together, from the first message to erased or stored shares. ``command_seconds``: the whole command, with the start of the processes. ``sent_kb``: bytes of all parties together; they are the same at every
run. ``disk_mb``: share files of a party. ``expected``: seconds, as the design of these plans has them.

    python -m bench.epochs [--what refresh] [--runs 5] [--only TEXT]
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from keyquorum import api
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR
from keyquorum.model.committee import Committee
from keyquorum.parties import RunReport
from keyquorum.schemes.holding import shares_in

from .runner import CIRCUMSTANCES, Bench, Options, Row, committee_of

KEY, LARGE, MIDDLE, SMALL, TFHE = "bench", "ckks-16384-bench", "bfv-8192", "lwe64-p2", "tfhers-2-2"


@dataclass(frozen=True)
class Case:
    """A change or test of a committee with one key, of which only the public key is made."""

    what: str
    protocol: str
    parties: int
    threshold: int
    parameters: str
    expected: float | None = None


CASES = (
    Case("refresh", REPLICATED, 3, 1, LARGE, 0.25),
    Case("refresh", VERIFIED_REPLICATED, 3, 1, LARGE, 0.25),
    Case("refresh", VERIFIED_SHAMIR, 5, 2, LARGE, 0.3),
    Case("refresh", REPLICATED, 3, 1, TFHE, 0.08),
    Case("refresh", ADDITIVE, 2, 1, SMALL),
    Case("recover", REPLICATED, 3, 1, LARGE, 0.25),
    Case("recover", SHAMIR, 5, 2, LARGE, 0.25),
    Case("recover", VERIFIED_SHAMIR, 4, 1, LARGE),
    Case("recover", VERIFIED_REPLICATED, 3, 1, LARGE),
    Case("recover", VERIFIED_SHAMIR, 5, 2, LARGE),
    Case("prove", VERIFIED_REPLICATED, 3, 1, MIDDLE, 0.3),
    Case("prove", VERIFIED_SHAMIR, 5, 2, LARGE),
)
COLUMNS = ("what", "protocol", "parties", "threshold", "parameters", "seconds", "expected", "command_seconds", "sent_kb", "disk_mb", "cpu_party", "runs", *CIRCUMSTANCES, "command")  # fmt: skip


def refreshed(committee: Committee) -> list[RunReport]:
    """New shares of the key."""
    return api.refresh_shares(committee).reports


def recovered(committee: Committee) -> list[RunReport]:
    """The last party loses its folder but for its identity, which is not timed, and gets its shares again."""
    party = committee.size - 1
    identity, folder = committee.identity_path(party), committee.party_folder(party)
    for path in folder.iterdir():
        if path != identity:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return api.recover(committee, party).reports


def proven(committee: Committee) -> list[RunReport]:
    """A test of all shares."""
    return api.epoch_prove(committee, KEY).reports


CHANGES: dict[str, Callable[[Committee], list[RunReport]]] = {"refresh": refreshed, "recover": recovered, "prove": proven}


def job(asked: Case, options: Options) -> Iterator[Row]:
    """The row of a case. The first run does not count."""
    change, seconds, whole, cpu = CHANGES[asked.what], [], [], []
    with committee_of(asked.protocol, asked.parties, threshold=asked.threshold) as committee:
        api.keygen(committee, KEY, asked.parameters, relin=False)
        for run in range(options.runs + 1):
            start = time.monotonic()
            reports = change(committee)
            if run:
                whole.append(time.monotonic() - start)
                seconds.append(max(report.total.seconds for report in reports))
                cpu.append(max(report.total.cpu_seconds for report in reports))
        disk = sum(path.stat().st_size for path in shares_in(committee.key_folder(0, KEY)).glob("*.kqs"))
    yield {
        "what": asked.what, "protocol": asked.protocol, "parties": asked.parties, "threshold": asked.threshold, "parameters": asked.parameters,
        "seconds": round(statistics.median(seconds), 3), "expected": asked.expected or "", "command_seconds": round(statistics.median(whole), 2),
        "sent_kb": round(sum(report.total.bytes_sent for report in reports) / 1e3, 1),
        "disk_mb": round(disk / 1e6, 3), "cpu_party": round(statistics.median(cpu), 3), "runs": options.runs,
    }  # fmt: skip


BENCH = Bench(
    "epochs",
    lambda options: CASES,
    job,
    COLUMNS,
    axes=("what", "protocol", "parameters"),
    options={"runs": {"type": int, "default": 5, "help": "runs of each change that count"}},
    restricting=("runs",),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
