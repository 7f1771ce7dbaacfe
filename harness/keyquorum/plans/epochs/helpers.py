"""Who may help lost parties to their shares, and whether what helpers send must be tested."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json, is_count
from keyquorum.model.subset import Subset, numbers_text
from keyquorum.plans.epochs.refresh import MOST_SETS

ALSO = "also"
"""Field of a job: numbers of further lost parties that are recovered in the same run (missing: none)."""


def helpers_of(
    committee: Committee, lost: int, helpers: Sequence[int] | None = None, also: Sequence[int] = (), absent: Sequence[int] = ()
) -> list[int]:
    """The helpers of a recovery in increasing order; None: all other parties. ``also``: parties that are recovered in the same run; ``absent``: those that take no part, as their hosts are down. Refuses committees and helpers by which no share is recovered. Raises ParameterError."""
    if isinstance(committee, Subset):
        raise ParameterError("shares are recovered among the whole committee: leave out --parties")
    sharing, n, t = committee.capabilities.sharing, committee.size, committee.threshold
    if not is_count(lost) or lost >= n:
        raise ParameterError(f"party {lost}: the committee has parties 0 to {n - 1}")
    gone = _lost_with(committee, lost, also)
    if set(gone) & set(absent):
        raise ParameterError(f"lost parties {numbers_text(gone)}, absent ones {numbers_text(absent)}: who is recovered takes part")
    away = {*gone, *absent}
    chosen = [party for party in range(n) if party not in away] if helpers is None else list(helpers)
    if not all(is_count(party) and party < n and party not in away for party in chosen) or len(set(chosen)) < len(chosen):
        raise ParameterError(f"helpers {str(chosen)[:100]}: name other parties than {numbers_text(sorted(away))} of 0 to {n - 1}, each once")
    chosen.sort()
    if sharing not in ("replicated", "Shamir"):
        raise ParameterError(
            f"{committee.protocol}: all {n} parties are needed, and nobody knows anything of a lost share: restore a backup of party {lost} of this epoch; without one the keys are lost"
        )
    verified = committee.capabilities.verifies_products
    needed = n - len(gone) if sharing == "replicated" else min(2 * t + 1, max(t + 1, n - len(away))) if verified else t + 1
    if len(chosen) < needed:
        why = f", of which {t} may send wrong shares" if verified else ""
        raise ParameterError(
            f"{committee.protocol}: {len(chosen)} helpers are too few, a share is recovered from {needed} or more{why}: name {needed}{_or_together(committee)}"
        )
    if also and not must_test(committee, chosen):
        raise _one_by_one(committee)
    sets = comb(n, len(chosen) + 1 - t)
    if sharing == "Shamir" and sets > MOST_SETS:
        raise ParameterError(
            f"{committee.protocol}: {len(chosen)} helpers have {sets:,} sets with a seed in common, above {MOST_SETS}: name fewer with --from, at least {needed}"
        )
    return chosen


def _lost_with(committee: Committee, lost: int, also: Sequence[int]) -> list[int]:
    """All lost parties of a run. Several are recovered at once where neither could help the other. Raises ParameterError."""
    gone, n = [lost, *also], committee.size
    if not all(is_count(party) and party < n for party in also) or len(set(gone)) < len(gone):
        raise ParameterError(f"lost parties {str(gone)[:100]}: name parties of 0 to {n - 1}, each once")
    if also and not _may_be_several(committee):
        raise _one_by_one(committee)
    if len(gone) > committee.threshold:
        raise ParameterError(
            f"{committee.protocol}: {len(gone)} of {n} parties are lost, and the others are no more than {committee.threshold}, which know nothing of a key: restore a backup of one of them"
            if n - len(gone) <= committee.threshold
            else f"{committee.protocol}: at most {committee.threshold} lost parties are recovered: name fewer"
        )
    return sorted(gone)


def _one_by_one(committee: Committee) -> ParameterError:
    return ParameterError(
        f"{committee.protocol} of {committee.size} parties: recover one lost party after the other, each from those that have shares (--from)"
    )


def _or_together(committee: Committee) -> str:
    several = "; if more parties are lost, recover them at once: keyquorum recover COMMITTEE 3,4"
    return several if _may_be_several(committee) and committee.threshold > 1 else ""


def _may_be_several(committee: Committee) -> bool:
    return committee.capabilities.verifies_products and committee.capabilities.sharing == "Shamir"


def must_test(committee: Committee, helpers: Sequence[int]) -> bool:
    """Whether what these helpers send does not show that it is right, since the honest ones of them do not determine a share: then all that take part test their shares against the public key before a lost one stores its own.
    2t + 1 or more take part, so that the honest ones determine what is tested."""
    return committee.capabilities.verifies_products and (committee.capabilities.sharing == "replicated" or len(helpers) < 2 * committee.threshold + 1)


def determines(committee: Committee, helpers: Sequence[int]) -> bool:
    """Whether the shares that helpers have and a secret that is tested determine all shares, whatever t of the helpers sent: recovered ones are of the polynomial of before then. t honest helpers and the value at 0 do."""
    return committee.capabilities.sharing == "replicated" or len(helpers) >= 2 * committee.threshold


def lost_in(job: Json) -> list[int]:
    """The lost parties of a job, in increasing order."""
    return sorted([job["party"], *job.get(ALSO, ())])


__all__ = ["ALSO", "determines", "helpers_of", "lost_in", "must_test"]
