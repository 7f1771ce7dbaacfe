"""The matrix of adversaries as data: plans, kinds of deviations, and the checks of which the absence lets a deviation through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from .changes import ABOVE, WIRE
from .evaluations import evaluation
from .flooded_plans import flooded
from .keys_plans import lwe_keys, seal_keys
from .lwe_plans import lwe_decryption
from .plans import Q, decryption, decryption_in_ring, decryption_of_inputs, noise_check, rounding, toy
from .runner import HUNG, WRONG, Case, Plan, Tally, cases, run
from .served_plans import padded, served

RING, FIELD = "Z2^64", f"F_{Q}"
AT_A_TIME = 6
"""Runs at a time: most of them wait."""
TRIES = 8
"""Runs of a deviation without its check: another value changes a symbol of Legendre half of the time."""

OF_PLANS = tuple(kind for kind in (*WIRE, *ABOVE) if kind not in ("replay", "shorter", "longer", "other-session"))
"""Without what sessions refuse before a plan sees it: in quick runs of long plans, whose protocols and sessions other rows deviate in with all kinds."""


@dataclass(frozen=True)
class Row:
    """A plan that promises something against malicious parties. at_most: places of each kind in a full run, 0: all. quick: places in a quick run, 0: the row is left out. kinds: of deviations. quick_kinds: those of a quick run, if not all."""

    plan: Callable[[], Plan]
    at_most: int = 0
    quick: int = 3
    kinds: Sequence[str] = (*WIRE, *ABOVE)
    quick_kinds: Sequence[str] = ()


@dataclass(frozen=True)
class Ablation:
    """A deviation that gives an honest party a wrong result if the honest parties leave checks out: of these kinds, by this party, at one place at least. It does not if they
    leave out all of them but the first. (A message of a product that is changed on its way makes two copies of a summand, so that both checks notice it.) from_end: the last places are tried first. slow: tests leave it out, unless they are long."""

    plan: Callable[[], Plan]
    omitted: tuple[str, ...]
    kinds: tuple[str, ...]
    party: int
    from_end: bool = False
    slow: bool = False


ROWS = (
    Row(lambda: toy("mal-rep-field", 3, FIELD)),
    Row(lambda: toy("mal-rep-field", 3, "F_65537")),
    Row(lambda: toy("mal-rep-ring", 3, RING)),
    Row(lambda: toy("mal-shamir", 3, FIELD)),
    Row(lambda: toy("mal-shamir", 5, FIELD, 2)),
    Row(lambda: toy("mal-shamir", 5, FIELD, 1)),
    Row(lambda: toy("mascot", 2, FIELD), at_most=20, quick=1),
    Row(lambda: rounding("mal-rep-ring", 3)),
    Row(lambda: rounding("mal-rep-ring", 3, 1)),
    Row(lambda: rounding("spdz2k", 2), at_most=20, quick=1),
    Row(lambda: noise_check("mal-rep-ring", 3, within=False)),
    Row(lambda: noise_check("mal-rep-ring", 3, within=True), quick=0),
    Row(lambda: decryption("mal-rep-field", 3, 0), quick=2),
    Row(lambda: decryption("mal-rep-field", 3, 1), quick=0),
    Row(lambda: decryption("mal-rep-field", 3, 2, pooled=True), at_most=40, quick=1, quick_kinds=OF_PLANS),
    Row(lambda: decryption("mal-shamir", 3, 1), at_most=40, quick=1, quick_kinds=OF_PLANS),
    Row(lambda: decryption("mal-shamir", 5, 4, pooled=True), at_most=20, quick=0),
    Row(lambda: lwe_decryption("mal-rep-field", 3, 0), quick=1),
    Row(lambda: lwe_decryption("mal-rep-field", 3, 1, modulus="prime", pooled=True), at_most=40, quick=1),
    Row(lambda: lwe_decryption("mal-rep-field", 3, 2, "round_ltz_table", "prime", pooled=True), at_most=20, quick=0),
    Row(lambda: lwe_decryption("mal-rep-field", 3, 1, "round_mask_open"), quick=0),
    Row(lambda: lwe_decryption("mal-shamir", 3, 1, modulus="prime"), at_most=40, quick=1),
    Row(lambda: lwe_decryption("mal-shamir", 5, 4, modulus="prime", pooled=True), at_most=20, quick=0),
    Row(lambda: served("lwe", "mal-shamir"), at_most=20, quick=1, quick_kinds=("flip", "joint", "shares")),
    Row(lambda: served("lwe", "mal-shamir", 5), at_most=10, quick=0),
    Row(lambda: served("bfv", "mal-shamir"), at_most=10, quick=0),
    Row(lambda: served("lwe"), at_most=20, quick=0),
    Row(lambda: served("bfv"), at_most=20, quick=0),
    Row(lambda: padded("lwe", 2), at_most=20, quick=1, quick_kinds=("flip", "shares", "public")),
    Row(lambda: padded("lwe", 3), at_most=4, quick=0),
    Row(lambda: padded("bfv", 2), at_most=10, quick=0),
    Row(lambda: padded("bfv", 3), at_most=4, quick=0),
    Row(lambda: seal_keys("mal-rep-field", 3), at_most=40, quick=1),
    Row(lambda: seal_keys("mal-shamir", 3), at_most=20, quick=0),
    Row(lambda: seal_keys("mal-shamir", 5), at_most=20, quick=0),
    Row(lambda: lwe_keys("mal-rep-field", 3), at_most=40, quick=1),
    Row(lambda: lwe_keys("mal-shamir", 5, "prime"), at_most=20, quick=0),
    Row(lambda: flooded("mal-rep-field", 3, 0), quick=1),
    Row(lambda: flooded("mal-rep-field", 3, 2), at_most=20, quick=0),
    Row(lambda: flooded("mal-shamir", 3, 0), quick=1),
    Row(lambda: flooded("mal-shamir", 4, 3), at_most=20, quick=1, quick_kinds=("flip", "equivocate", "joint", "numbers", "shares")),
    Row(lambda: flooded("mal-shamir", 5, 1), at_most=20, quick=0),
    # The seeds of the sets, which are sent before the plan begins.
    Row(lambda: flooded("mal-shamir", 5, 4, seeds=True), quick=2, kinds=WIRE, quick_kinds=("flip", "equivocate")),
    Row(lambda: flooded("mal-shamir", 5, 2, threshold=1), at_most=10, quick=0),
    Row(lambda: flooded("mascot", 2, 0), at_most=10, quick=1, quick_kinds=("flip", "shares", "input", "public")),
    Row(lambda: flooded("mascot", 2, 1, primes=1), at_most=6, quick=0),
    Row(lambda: flooded("mascot", 3, 2), at_most=4, quick=0),
    Row(lambda: seal_keys("mascot", 2), at_most=10, quick=1, quick_kinds=OF_PLANS),
    Row(lambda: seal_keys("mascot", 3), at_most=4, quick=0),
    Row(lambda: lwe_keys("mascot", 2), at_most=10, quick=1, quick_kinds=("flip", "shares", "public")),
    Row(lambda: lwe_keys("mascot", 3), at_most=4, quick=0),
    Row(lambda: lwe_decryption("mascot", 2, 0), at_most=6, quick=1, quick_kinds=("flip", "shares", "public")),
    Row(lambda: lwe_decryption("mascot", 2, 1, pooled=True), at_most=6, quick=0),
    Row(lambda: lwe_decryption("mascot", 3, 1, "round_mask_open", pooled=True), at_most=4, quick=0),
    Row(lambda: lwe_decryption("mascot", 2, 0, "round_flood", pooled=True), at_most=4, quick=0),
    Row(lambda: decryption_in_ring(2), at_most=20, quick=1, quick_kinds=OF_PLANS),
    Row(lambda: decryption_in_ring(3, 2), at_most=10, quick=0),
    Row(lambda: decryption_in_ring(2, 1, pooled=True), at_most=20, quick=0),
    Row(lambda: decryption_in_ring(3, 1, pooled=True), at_most=4, quick=0),
    Row(lambda: evaluation("mal-rep-field", 3, legendre=True), quick=1),
    Row(lambda: evaluation("mal-rep-ring", 3), at_most=10, quick=0),
    Row(lambda: evaluation("spdz2k", 2), at_most=4, quick=1, quick_kinds=("flip", "shares")),
)
"""Single programs, and plans of committees that are secure against malicious parties."""

ABLATIONS = (
    Ablation(lambda: toy("mal-rep-field", 3, FIELD), ("Products", "Openings"), ("flip",), 1),
    Ablation(lambda: toy("mal-rep-field", 3, FIELD), ("Openings",), ("flip",), 1),
    Ablation(lambda: toy("mal-rep-ring", 3, RING), ("Products", "Openings"), ("flip",), 1),
    Ablation(lambda: toy("mal-shamir", 3, FIELD), ("Openings",), ("flip",), 1),
    Ablation(lambda: toy("mal-shamir", 5, FIELD, 2), ("Openings",), ("flip",), 1),
    Ablation(lambda: rounding("mal-rep-ring", 3), ("Products", "Openings"), ("flip",), 1),
    Ablation(lambda: rounding("mal-rep-ring", 3), ("Openings",), ("flip",), 2),
    # A ciphertext with too much noise passes.
    Ablation(lambda: noise_check("mal-rep-ring", 3, within=False), ("Products", "Openings"), ("flip",), 1),
    Ablation(lambda: noise_check("mal-rep-ring", 3, within=False), ("Openings",), ("flip",), 2, from_end=True),
    Ablation(lambda: decryption("mal-rep-field", 3, 0), ("Products", "Openings"), ("flip",), 1),
    Ablation(lambda: decryption("mal-rep-field", 3, 0), ("Openings",), ("flip",), 1),
    Ablation(lambda: decryption("mal-rep-field", 3, 0), ("Openings",), ("flip",), 2),
    Ablation(lambda: decryption("mal-rep-field", 3, 0), ("Openings", "Products"), ("shares", "joint"), 1),
    # A product that is changed on its way makes copies of a summand differ, which the receiver compares: it does not here.
    Ablation(lambda: evaluation("mal-rep-field", 3, legendre=True, checked=False), ("Products", "Openings"), ("flip",), 1),
    Ablation(lambda: evaluation("mal-rep-ring", 3, checked=False), ("Products", "Openings"), ("flip",), 1, slow=True),
    # The last messages are the answers.
    Ablation(lambda: evaluation("mal-rep-field", 3, legendre=True, checked=False), (), ("flip",), 2, from_end=True),
    Ablation(lambda: evaluation("mal-rep-ring", 3, checked=False), (), ("flip",), 2, from_end=True),
    # With MACs: other shares of the key, which the receiver cannot notice, as all parties send it the same; and another value, which it does not compare here.
    Ablation(lambda: evaluation("spdz2k", 2), ("ElementMacs",), ("shares",), 1),
    Ablation(lambda: lwe_keys("mascot", 2), ("ElementMacs",), ("shares",), 1),
    Ablation(lambda: lwe_decryption("mascot", 2, 0), ("ElementMacs",), ("shares",), 1),
    Ablation(lambda: decryption_in_ring(2), ("ElementMacs",), ("shares",), 1),
    Ablation(lambda: decryption_in_ring(2, 1, pooled=True), ("ElementMacs",), ("shares",), 0, slow=True),
    Ablation(lambda: seal_keys("mascot", 2), ("ElementMacs",), ("shares",), 1),
    Ablation(lambda: evaluation("spdz2k", 2, checked=False), (), ("flip",), 0, from_end=True),
    # Joint integers are no check: without them the deviation is one that nothing notices.
    Ablation(lambda: decryption_of_inputs("mal-rep-field", 3), (), ("input",), 1),
    # Semi-honest plans check nothing, and with MACs nothing ties the steps of a plan to each other.
    Ablation(lambda: decryption("mal-shamir", 3, 0), ("Openings",), ("flip",), 1, from_end=True),
    Ablation(lambda: lwe_decryption("mal-shamir", 3, 0, modulus="prime"), ("Openings",), ("flip",), 1, from_end=True, slow=True),
    Ablation(lambda: lwe_decryption("mal-shamir", 3, 0, modulus="prime"), ("Openings", "Products"), ("joint", "shares"), 1),
    Ablation(lambda: served("lwe", "mal-shamir"), ("Openings", "Products"), ("joint",), 1),
    Ablation(lambda: lwe_decryption("mal-rep-field", 3, 0), ("Openings",), ("flip",), 2, from_end=True),
    Ablation(lambda: lwe_decryption("mal-rep-field", 3, 0), ("Products", "Openings"), ("flip",), 1, from_end=True),
    Ablation(lambda: flooded("mal-rep-field", 3, 0), ("Openings",), ("flip",), 2),
    # With another number of a summand, which is a copy of none, the receiver has noise of the right size.
    *(Ablation(lambda: flooded("mal-rep-field", 3, 0), ("Openings",), (kind,), 2) for kind in ("joint", "shares")),
    # The receiver takes shares of the t parties after it, and without the check nothing of the others.
    Ablation(lambda: flooded("mal-shamir", 3, 0), ("Openings",), ("flip",), 1, from_end=True),
    *(Ablation(lambda: flooded("mal-shamir", 3, 0), ("Openings",), (kind,), 1) for kind in ("joint", "numbers", "shares")),
    *(Ablation(lambda: flooded("mal-shamir", 5, 0), ("Openings",), (kind,), 2, slow=True) for kind in ("joint", "numbers", "shares")),
    Ablation(lambda: flooded("mascot", 2, 1), ("ElementMacs",), ("shares", "public"), 0),
    Ablation(lambda: served("lwe"), ("Products", "Openings"), ("flip",), 1, slow=True),
    # Other shares in the online run, which no receiver can notice; and the answers, which it does not check here: a byte of a share of a pad.
    Ablation(lambda: padded("lwe", 2), ("ElementMacs",), ("shares",), 1, from_end=True),
    Ablation(lambda: padded("lwe", 2, checked=False), (), ("flip",), 1, from_end=True),
    Ablation(lambda: seal_keys("mal-rep-field", 3), ("Openings", "Products"), ("joint",), 1),
    Ablation(lambda: flooded("rep-field", 3, 0), (), ("input",), 1),
    Ablation(lambda: decryption("rep-field", 3), (), ("flip",), 1),
    Ablation(lambda: decryption("mascot", 2), (), ("shares", "input"), 1),
)
"""Each must go through somewhere."""


def attacks(plan: Plan, at_most: int, kinds: Sequence[str]) -> list[Case]:
    """The cases of every corrupted party."""
    return [case for party in range(plan.parties) for case in cases(plan, party, kinds, at_most)]


def tally(row: Row, quick: bool) -> Tally:
    """Runs the cases of a row."""
    found, plan = Tally(), row.plan()
    kinds = row.quick_kinds if quick and row.quick_kinds else row.kinds
    chosen = attacks(plan, row.quick if quick else row.at_most, kinds)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for case, outcome in zip(chosen, pool.map(run, chosen), strict=True):
            found.add(case, outcome)
    return found


def successes(ablation: Ablation) -> Iterator[Case]:
    """The deviations that go through without the checks."""
    plan = ablation.plan()
    found = cases(plan, ablation.party, ablation.kinds)
    for case in [*(reversed(found) if ablation.from_end else found)] * TRIES:
        without = Case(plan, case.party, case.change, ablation.omitted, case.other_session)
        if run(without).end == WRONG and (not ablation.omitted or run(replace(without, omitted=ablation.omitted[1:])).end != WRONG):
            yield without


__all__ = ["ABLATIONS", "HUNG", "ROWS", "WRONG", "Ablation", "Row", "attacks", "successes", "tally"]
