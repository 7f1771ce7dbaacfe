"""The life of a committee: new shares of a key (``refresh``), the shares of a party that lost its folder (``recover``), with a test of shares against the public key where the committee needs one, and
that test alone (``prove``), all keys to a new committee (``reshare to PROTOCOL``), and the pool that a committee fills again since a change ended the last one (``fill``). ``make bench-epochs``.

Every party is a process of this host, over TLS. A committee with one key refreshes, or loses and recovers its last party, several times; medians. ``seconds``: the phases of the slowest party
together, from the first message to erased or stored shares. A key that went to a new committee goes back to one of the protocol before, which is not timed: that is the next run. ``command_seconds``: the whole command, with the start of the processes. ``sent_kb``: bytes of all parties together; they are the same at every
run. ``disk_mb``: share files of a party, of a new one after a resharing. ``expected``: seconds, as the design of these plans has them. Pairs of committees between which keys are not passed on are left out, with a line that says why.

    python -m bench.epochs [--what refresh] [--runs 5] [--only TEXT]
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from keyquorum import api
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.parties import RunReport
from keyquorum.schemes.holding import shares_in
from keyquorum.terminal.output import console

from .runner import CIRCUMSTANCES, Bench, Options, Row, committee_of

KEY, LARGE, MIDDLE, SMALL, TFHE = "bench", "ckks-16384-bench", "bfv-8192", "lwe64-p2", "tfhers-2-2"
ITEMS = 100_000
"""Of a pool."""


@dataclass(frozen=True)
class Case:
    """A change or test of a committee with one key, of which only the public key is made. ``to``: protocol, parties and threshold of the new committee of a resharing."""

    what: str
    protocol: str
    parties: int
    threshold: int
    parameters: str
    expected: float | None = None
    to: tuple[str, int, int] | None = None


def reshare(of: tuple[str, int, int], to: tuple[str, int, int], parameters: str, expected: float | None = None) -> Case:
    """A resharing; its name has the new committee, so that rows of one old committee differ."""
    return Case(f"reshare to {to[0]} {to[1]}", *of, parameters, expected, to)


THREE, FIVE, PAIR, MAC_PAIR = (REPLICATED, 3, 1), (SHAMIR, 5, 2), (ADDITIVE, 2, 1), (WITH_MACS, 2, 1)
VERIFIED_THREE, VERIFIED_FIVE = (VERIFIED_REPLICATED, 3, 1), (VERIFIED_SHAMIR, 5, 2)
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
    reshare(THREE, FIVE, LARGE),
    reshare(THREE, PAIR, LARGE),
    reshare(THREE, THREE, LARGE, 0.4),
    reshare(VERIFIED_THREE, VERIFIED_FIVE, LARGE, 0.6),
    reshare(VERIFIED_FIVE, VERIFIED_THREE, LARGE, 0.4),
    reshare(VERIFIED_THREE, MAC_PAIR, LARGE, 4.0),
    reshare(VERIFIED_THREE, MAC_PAIR, MIDDLE),
    reshare(MAC_PAIR, VERIFIED_THREE, LARGE, 0.4),
    reshare(THREE, PAIR, TFHE),
    reshare(THREE, PAIR, SMALL),
    reshare(PAIR, THREE, SMALL),
    Case("fill", ADDITIVE, 2, 1, SMALL, 2.2),
    Case("fill", ADDITIVE, 4, 3, SMALL, 8.6),
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


def filled(committee: Committee) -> list[RunReport]:
    """A pool of ITEMS, after a change of epoch, which is not timed."""
    api.refresh_shares(committee)
    return api.pool_fill(committee, SMALL, "round_ltz_circuit", ITEMS)


CHANGES: dict[str, Callable[[Committee], list[RunReport]]] = {"refresh": refreshed, "recover": recovered, "prove": proven, "fill": filled}


def after(committee: Committee, place: tuple[str, int, int], folder: Path) -> Committee:
    """A new committee to which this one's keys can go."""
    protocol, parties, threshold = place
    return api.init_after(folder, committee, protocol=protocol, parties=parties, threshold=threshold)


def disk_of(committee: Committee) -> int:
    """Bytes of share files of the first party."""
    return sum(path.stat().st_size for path in shares_in(committee.key_folder(0, KEY)).glob("*.kqs"))


def changes(asked: Case, committee: Committee, runs: int) -> Iterator[tuple[list[RunReport], float, int]]:
    """The runs of a case: reports of the parties, seconds of the command, and bytes of share files of a party."""
    for run in range(runs):
        target = None if asked.to is None else after(committee, asked.to, committee.folder.parent / f"new-{run}")
        start = time.monotonic()
        reports = CHANGES[asked.what](committee) if target is None else api.reshare(committee, target).reports
        seconds, holder = time.monotonic() - start, target or committee
        yield reports, seconds, disk_of(holder)
        if target is not None and run + 1 < runs:
            committee = after(target, (asked.protocol, asked.parties, asked.threshold), committee.folder.parent / f"old-{run}")
            api.reshare(target, committee)


def refusal(asked: Case, committee: Committee) -> str:
    """Why keys are not passed on between the committees of a case; empty if they are, or need not be."""
    if asked.to is None:
        return ""
    try:
        api.reshare_job(committee, after(committee, asked.to, committee.folder.parent / "asked"))
    except ParameterError as error:
        return str(error)
    return ""


def job(asked: Case, options: Options) -> Iterator[Row]:
    """The row of a case. The first run does not count."""
    seconds, whole, cpu = list[float](), list[float](), list[float]()
    with committee_of(asked.protocol, asked.parties, threshold=asked.threshold) as committee:
        reason = refusal(asked, committee)
        if reason:
            console.print(f"left out: {asked.protocol} {asked.what}: {reason}", markup=False, soft_wrap=True)
            return
        api.keygen(committee, KEY, asked.parameters, relin=False)
        for run, measured in enumerate(changes(asked, committee, options.runs + 1)):
            reports, command, disk = measured
            if run:
                whole.append(command)
                seconds.append(max(report.total.seconds for report in reports))
                cpu.append(max(report.total.cpu_seconds for report in reports))
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
