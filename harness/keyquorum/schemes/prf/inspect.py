"""Policies, counts and values of evaluations to ``keyquorum inspect``."""

from __future__ import annotations

import re

from keyquorum.model.inspected import Candidate, Kind, Report, openness
from keyquorum.schemes.subset_shares import SUBSETS, sharing_in

from .evaluations import JOURNAL, read_journal
from .policy import POLICY, read_policy

_VALUES = re.compile(r"([0-9a-f]{32}\n)+|([0-9a-f]{64}\n)+")


def _policy(candidate: Candidate) -> Report:
    policy = read_policy(candidate.path)
    return Report([f"policy of key {policy.key_id}: {policy.text()}", *openness(candidate.path)], details=policy.to_json())


def _journal(candidate: Candidate) -> Report:
    counts = read_journal(candidate.path)
    lines = [f"count of evaluations under key {counts.key_id}: {counts.total:,}, of which the ids of {len(counts.ids):,} requests are kept"]
    if counts.torn:
        lines.append("its last line is cut off: no answer left for it, and it does not count")
    return Report([*lines, *openness(candidate.path)], "a checksum of every line", {"key_id": counts.key_id, "total": counts.total})


def _subsets(candidate: Candidate) -> Report:
    sharing = sharing_in(candidate.path)
    line = f"shares of key {sharing.key_id} for subsets: any {sharing.members} parties have the key together, sharing {sharing.id}"
    return Report([line, *openness(candidate.path)], details=vars(sharing))


def _values(candidate: Candidate) -> Report:
    lines = (candidate.text or "").splitlines()
    count, size = len(lines), len(lines[0]) // 2
    return Report([f"{count:,} values of a pseudorandom function, {size} bytes each", *openness(candidate.path)], details={"count": count})


def _is_values(candidate: Candidate) -> bool:
    return candidate.text is not None and _VALUES.fullmatch(candidate.text) is not None


KINDS = (
    Kind("policy of evaluations", lambda c: c.named(POLICY), _policy, ("schemes/prf/policy",)),
    Kind("count of evaluations", lambda c: c.named(JOURNAL), _journal, ("schemes/prf/evaluations",)),
    Kind("shares for subsets", lambda c: c.named(SUBSETS), _subsets, ("schemes/subset_shares",)),
    Kind("values of a pseudorandom function", _is_values, _values, ("cli/toprf",)),
)
