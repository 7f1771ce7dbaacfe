"""The test whether the parties' shares of a key are those of the secret of its public key (:meth:`.KeyScheme.prove_fit`), and the count of its runs, which reveal a little each, durable at every party."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from keyquorum._engine import CheckError
from keyquorum.dsl import ShareVector
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import KeyFileError, ParameterError, PolicyError
from keyquorum.model.plain import Json, is_count, json_loads
from keyquorum.model.subset import Subset
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import read_epoch
from keyquorum.parties.epochs.audited import audit
from keyquorum.parties.jobs import party_job
from keyquorum.plans.epochs.alone import shares_alone
from keyquorum.schemes import scheme_of
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.schemes.counts import PROOFS, confirmed, noted_split
from keyquorum.schemes.holding import check_hold, epoch_of
from keyquorum.schemes.key_folder import check_made_by, load_key, load_shares
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.subset_keys import compare_key

FILE = "proofs.json"
"""In the folder of a key: how often its shares were tested, and whether they passed."""
COUNT_BYTES, TOLERANCE = 8, 2
"""Of a count on the wire, little endian; runs by which a party may be ahead of the others after crashes."""


def check_prove(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``epoch_prove`` that a party makes alone."""
    if isinstance(committee, Subset):
        raise ParameterError("shares are tested by the whole committee: leave out --parties")
    folder = committee.key_folder(party, job["key"])
    info = load_key(folder)
    check_made_by(committee, info, folder)
    check_hold(committee.members, epoch_of(folder), "as all take part", [job["key"]])
    scheme_of(info).check_fit(info, committee)
    check_left(folder, info)


@party_job("epoch_prove", {"key": str}, check=check_prove, verified=True)
def prove_job(context: PartyContext, job: Json) -> Json:
    """The job ``epoch_prove``. Raises :class:`.CheckError` if the shares do not fit the public key."""
    committee, party = context.committee, context.party
    with shares_alone(committee, [party], "epoch prove"):
        check_prove(committee, party, job)
        folder = committee.key_folder(party, job["key"])
        info = load_key(folder)
        compare_key(context, folder, info)
        prove(context, info, load_shares(folder, info, party), folder)
        return {"key": job["key"], "runs": proofs_run(folder, info)}


def prove(context: PartyContext, info: KeyInfo, shares: Sequence[ShareVector], folder: Path) -> None:
    """Tests shares of all parties; every party calls this, after all compared the key. All have counted the run before anything is opened: whoever has not does not toss. ``folder``: of the key, with its public files; the shares need not be there yet.
    Rounds: 3 for the count, and those of :meth:`.KeyScheme.prove_fit`. Raises PolicyError after :data:`.FIT_RUNS` runs, and where counts are too far apart, :class:`.CheckError` if the shares do not fit."""
    runs = _agreed(context, info, proofs_run(folder, info), noted_split(folder, info).get(PROOFS, 0))
    require_left(info, runs)

    def counted() -> None:
        raise_count(folder, info, runs)  # all, before the first one counts this run: who breaks off sets honest parties one apart
        context.session.compare("counts of tests of shares", runs.to_bytes(COUNT_BYTES, "little"))
        set_proofs(folder, info, runs + 1)
        reached("prove/counted")

    result = "not ended"
    try:
        scheme_of(info).prove_fit(context, info, shares, folder, counted)
        set_proofs(folder, info, runs + 1, fits=True)
        result = "fits"
    except CheckError:
        result = "does not fit"
        raise
    finally:
        here = read_epoch(context.committee.party_folder(context.party))
        said = {"epoch": here.name, "epoch_number": here.number, "key_id": info.key_id, "runs": proofs_run(folder, info), "result": result}
        audit(context.committee, context.party, "proved", said)


def _agreed(context: PartyContext, info: KeyInfo, mine: int, noted: int) -> int:
    """The count that all parties go on from, the largest. ``noted``: one that members may have alone (:func:`.noted_split`). One that is above what an honest party confirms by more than a crash explains is named, as it could use up all runs. Raises PolicyError."""
    stated = context.session.all_gather(mine.to_bytes(COUNT_BYTES, "little"))
    for party, said in enumerate(stated):
        if len(said) != COUNT_BYTES:
            raise PolicyError(
                f"party {party} sent {len(said)} bytes that are no count of tests of shares of key {info.key_id}: run the same version everywhere"
            )
    runs = confirmed_tests(info, {party: int.from_bytes(said, "little") for party, said in enumerate(stated)}, context.committee.threshold, noted)
    context.session.compare("count of tests of shares", runs.to_bytes(COUNT_BYTES, "little"))
    return runs


def confirmed_tests(info: KeyInfo, counts: Mapping[int, int], threshold: int, noted: int) -> int:
    """The largest of the ``counts`` of tests that parties report, by number, if ``threshold`` others do not deny it, or it is ``noted`` for a standby. Raises PolicyError."""
    known = max(noted, confirmed(list(counts.values()), threshold))
    for party, runs in counts.items():
        if runs > known + TOLERANCE:
            raise PolicyError(
                f"party {party} reports {runs} tests of shares of key {info.key_id}, only {known} are confirmed by another party: nothing was tested; if it is right "
                f'(others were restored from backups), set "runs" in their {FILE} to {runs}'
            )
    return max(counts.values())


def check_left(folder: Path, info: KeyInfo) -> None:
    """Refuses a key that had all its tests. Raises PolicyError, and KeyFileError for a damaged count."""
    require_left(info, proofs_run(folder, info))


def require_left(info: KeyInfo, runs: int) -> None:
    """Refuses a key of which ``runs`` tests were all. Raises PolicyError."""
    if runs >= FIT_RUNS:
        raise PolicyError(f"key {info.key_id}: its shares were tested {runs} times, which is all that its budget allows: make a new key")


def proofs_run(folder: Path, info: KeyInfo) -> int:
    """How often this party took part in a test of shares of a key. Raises KeyFileError for a damaged file."""
    return int(_read(folder, info)["runs"])


def shown_to_fit(folder: Path, info: KeyInfo) -> bool:
    """Whether the last test of the shares passed at this party, of this sharing or of one before in the same committee: a refresh keeps the secret. Raises KeyFileError for a damaged file."""
    return bool(_read(folder, info)["fits"])


def raise_count(folder: Path, info: KeyInfo, runs: int) -> None:
    """Brings this party's count up to ``runs``, if it is lower; what the last test showed stays. Before each run all bring theirs up to the one that they agreed on, so that those of honest parties are
    never more than one run apart, whoever breaks off between their writes."""
    if proofs_run(folder, info) < runs:
        set_proofs(folder, info, runs, shown_to_fit(folder, info))


def _read(folder: Path, info: KeyInfo) -> Json:
    path = folder / FILE
    if not path.exists():
        return {"runs": 0, "fits": False}
    try:
        data = json_loads(path.read_text())
        runs, fits = (data["runs"], data.get("fits", False)) if data["key_id"] == info.key_id else (None, None)
    except (ValueError, KeyError, TypeError, AttributeError):
        runs, fits = None, None
    if runs is None or not is_count(runs) or runs >= 1 << 62 or type(fits) is not bool:
        raise KeyFileError(f'{path} is damaged, or of another key: restore it, or set "runs" to the count of another party')
    return {"runs": runs, "fits": fits}


def set_proofs(folder: Path, info: KeyInfo, runs: int, fits: bool = False) -> None:
    """Sets this party's count. ``fits``: whether the last test has passed."""
    write_atomically(folder / FILE, (json.dumps({"key_id": info.key_id, "runs": runs, "fits": fits}) + "\n").encode(), 0o600)


__all__ = [
    "FILE",
    "check_left",
    "check_prove",
    "confirmed_tests",
    "proofs_run",
    "prove",
    "prove_job",
    "raise_count",
    "require_left",
    "set_proofs",
    "shown_to_fit",
]
