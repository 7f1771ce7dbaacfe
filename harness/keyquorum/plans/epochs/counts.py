"""What the parties of a key have counted: decryptions, checks of noise that said no, tests of shares, evaluations. New members go on from the largest counts of the old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.errors import PolicyError
from keyquorum.model.plain import Json, is_count
from keyquorum.model.subset import decrypts_apart
from keyquorum.plans.epochs.prove import proofs_run, set_proofs, shown_to_fit
from keyquorum.plans.noise_check import MOST_FAILED, failed_checks, set_failed_checks
from keyquorum.schemes import scheme_of
from keyquorum.schemes.base import FIT_RUNS, Scheme
from keyquorum.schemes.counts import DECRYPTIONS, EVALUATIONS, PROOFS, REFUSALS, agreed_count, confirmed, decryptions_used, set_count
from keyquorum.schemes.keys import KeyInfo

MOST_AHEAD = {REFUSALS: 2, PROOFS: 2, EVALUATIONS: 1 << 12}
"""By how much a count may be above what another party confirms, where parties may be malicious: what a crash between their writes explains."""
Counts = dict[str, int]
"""Counts of a key at a party, by what is counted. All are there, so that parties can compare."""


def counts_of(folder: Path, info: KeyInfo) -> Counts:
    """This party's counts of a key. Raises KeyFileError for missing or damaged ones."""
    return {
        DECRYPTIONS: decryptions_used(folder, info) if info.counted else 0,
        REFUSALS: failed_checks(folder, info),
        PROOFS: proofs_run(folder, info),
        EVALUATIONS: scheme_of(info).used(folder, info),
    }


def start_counts(folder: Path, info: KeyInfo, counts: Mapping[str, int], recent: Sequence[Json] = ()) -> None:
    """Writes what a new member keeps of a key, with the counts of the others. ``recent``: lines of the last hour (:func:`agreed_recent`)."""
    if info.counted:
        set_count(folder, info, counts[DECRYPTIONS])
    if counts[REFUSALS]:
        set_failed_checks(folder, info, counts[REFUSALS])
    if counts[PROOFS]:
        set_proofs(folder, info, counts[PROOFS])
    scheme_of(info).start(folder, info, counts[EVALUATIONS], recent)


def split(info: KeyInfo, counts: Counts) -> tuple[Counts, Counts]:
    """Counts from which two committees go on that both hold a key: the one that has it now, and its standby. Each may use half of what is left, so both together no more than one alone. Raises PolicyError for keys of
    pseudorandom functions: their limits are decided by each party, and hold in one committee."""
    if not isinstance(scheme_of(info), Scheme):
        raise PolicyError(
            f"key {info.key_id} is one of a PRF: a second committee would count its evaluations apart, so limits would hold twice: leave out --keep-old, or keep this key in a committee of its own"
        )
    limits = {DECRYPTIONS: info.most_counted, REFUSALS: MOST_FAILED, **({PROOFS: FIT_RUNS} if info.counted else {})}
    here, there = dict(counts), dict(counts)
    for what, most in limits.items():
        given = max(0, most - counts[what]) // 2
        here[what], there[what] = counts[what] + given, max(counts[what], most - given)
    return here, there


def claim_split(folder: Path, info: KeyInfo, counts: Counts) -> None:
    """Writes the counts of a party whose committee keeps a key and gave the rest of them away."""
    if info.counted:
        set_count(folder, info, counts[DECRYPTIONS])
        set_proofs(folder, info, counts[PROOFS], shown_to_fit(folder, info))
    set_failed_checks(folder, info, counts[REFUSALS])


def agreed_counts(committee: Committee, info: KeyInfo, said: Mapping[int, object], noted: Mapping[int, Counts]) -> Counts:
    """The counts from which new members go on: the largest ones. ``said``: of members by number, as they sent them; ``noted``: what they have noted for a standby (:func:`.noted_split`), which explains counts of others. Raises PolicyError for what is no count, and for decryptions that no other member confirms;
    where members may be malicious, for any count that t + 1 of them do not confirm: it could use up the key."""
    for party, counts in said.items():
        proper = isinstance(counts, dict) and counts.keys() == {DECRYPTIONS, REFUSALS, PROOFS, EVALUATIONS} and all(map(is_count, counts.values()))
        if not proper:
            raise PolicyError(f"party {party} sent something that is not counts of key {info.key_id}: run the same version everywhere")
    all_counts: dict[int, Counts] = {party: dict(counts) for party, counts in said.items() if isinstance(counts, dict)}
    found = {what: max(counts[what] for counts in all_counts.values()) for what in (DECRYPTIONS, REFUSALS, PROOFS, EVALUATIONS)}
    if committee.malicious:
        _check_confirmed(committee, info, all_counts, noted)
    if decrypts_apart(committee):  # counts of absent parties lag behind; those who take part are so many that one was among the last that counted
        return found
    used = [all_counts[party][DECRYPTIONS] if party in all_counts else 0 for party in range(committee.size)]
    return {**found, DECRYPTIONS: agreed_count(used, committee.threshold, 0, info, _confirmed(committee, all_counts, noted, DECRYPTIONS))}


def _confirmed(committee: Committee, said: Mapping[int, Counts], noted: Mapping[int, Counts], what: str) -> int:
    return confirmed([max(counts[what], noted.get(party, {}).get(what, 0)) for party, counts in said.items()], committee.threshold)


def _check_confirmed(committee: Committee, info: KeyInfo, said: Mapping[int, Counts], noted: Mapping[int, Counts]) -> None:
    """Refuses counts that are above the one in place t + 1 from the top by more than :data:`MOST_AHEAD`."""
    for what, ahead in MOST_AHEAD.items():
        known = _confirmed(committee, said, noted, what)
        for party, counts in said.items():
            if counts[what] > known + ahead:
                raise PolicyError(
                    f"party {party} of {committee.name} reports {counts[what]} {what} of key {info.key_id}, only {known} are confirmed by another party: nothing was passed on; if it is right "
                    "(others were restored from backups), copy its file with this count to them"
                )


def recent_of(folder: Path, info: KeyInfo) -> list[Json]:
    """Lines of what this party counted of a key in the last hour. Raises KeyFileError for a damaged count."""
    return scheme_of(info).recent(folder, info)


def agreed_recent(committee: Committee, info: KeyInfo, said: Mapping[int, object]) -> list[Json]:
    """The lines of the last hour with which new members go on, so that limits of an hour are never wider than before. Of members that follow the protocol all lines, with the latest time and the largest count of each. Where t of
    them may lie the lines that t + 1 have, with a time and a count that t + 1 reach: an honest one is among them. Where all but one may lie, the lines must be the same. Raises PolicyError where they are not, and for what is no such line."""
    parsed = {party: _lines_of(party, info, lines) for party, lines in said.items()}
    confirmed = committee.threshold + 1 if committee.malicious else 1
    if confirmed > len(parsed) - committee.threshold:
        _check_same(committee, info, parsed)
        confirmed = 1
    found = []
    for name in sorted({name for lines in parsed.values() for name in lines}):
        having = [lines[name] for lines in parsed.values() if name in lines]
        if len(having) >= confirmed:
            times, counts = (sorted((line[what] for line in having), reverse=True) for what in ("time", "count"))
            found.append({**having[0], "time": times[confirmed - 1], "count": counts[confirmed - 1]})
    return found


def _lines_of(party: int, info: KeyInfo, lines: object) -> dict[tuple[str, str], Json]:
    """The lines of a member by receiver and id."""
    try:
        if not isinstance(lines, list):
            raise TypeError("no list")
        for line in lines:
            scheme_of(info).check_recent(line)
        return {(line["receiver"], line["id"]): line for line in lines}
    except (ValueError, TypeError, KeyError):
        raise PolicyError(f"party {party} sent something that is not evaluations of key {info.key_id}: run the same version everywhere") from None


def _check_same(committee: Committee, info: KeyInfo, parsed: Mapping[int, Mapping[tuple[str, str], Json]]) -> None:
    """Refuses members that counted different evaluations."""
    counted = {party: {name: line["count"] for name, line in lines.items()} for party, lines in parsed.items()}
    first = min(counted)
    for party, mine in counted.items():
        if mine != counted[first]:
            raise PolicyError(
                f"parties {first} and {party} of {committee.name} counted different evaluations of key {info.key_id} in the last hour, and in {committee.protocol} nobody confirms either: nothing was passed on; "
                "run keyquorum reshare again an hour after the last evaluation"
            )


__all__ = ["Counts", "agreed_counts", "agreed_recent", "claim_split", "counts_of", "recent_of", "split", "start_counts"]
