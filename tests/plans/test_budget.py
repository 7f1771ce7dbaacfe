"""Statistical budgets: what all the values and attempts of a key's life give away together."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import budget_attempts, budget_flood, budget_kinds, budget_lift, budget_lift_tests
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.parameters import list_parameter_sets, load
from keyquorum.model.errors import ParameterError
from keyquorum.plans.weakness import warn_all
from keyquorum.schemes.seal import keygen
from keyquorum.schemes.seal.budget import NOISE_BITS, TOTAL, check_leaks, leaks, product_pads
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.numbers.lift import LIFT_BITS, MERSENNE, lift_masks
from keyquorum.sharing.numbers.lift_tests import mask_width
from keyquorum.sharing.randomness import uniform_bits
from numpy.typing import NDArray

Masks = Callable[[int, int], NDArray[np.int64]]

# A toy of the masks of `lift_open`: values of -8 to 8 under masks of 20 bits; 2^18 of them relate to the mask as 2^55 to 58 bits.
TOY_BITS, TOY_NOISE, TOY_VALUES, TOY_KEYS = 20, 8, 1 << 18, 60


def told_apart(masks: Masks) -> float:
    """Of toy keys whose values are all as large, and of keys whose values are all zero: by what fraction more often the attack says
    `large` of the first. The attack is the best one against uniform masks, an opened value outside of what zeros give, or the mean of
    what was opened, which is best against smooth ones."""
    said = np.zeros(2)
    for which, value in enumerate((TOY_NOISE, 0)):
        for _ in range(TOY_KEYS):
            opened = masks(TOY_VALUES, TOY_BITS) + value
            outside = opened.max() >= 1 << TOY_BITS
            middle = (1 << TOY_BITS) / 2 + TOY_NOISE / 2
            far = abs(opened.mean() - middle) > 6 * opened.std() / TOY_VALUES**0.5
            said[which] += outside or far
    return float(said[0] - said[1]) / TOY_KEYS


def test_lift_masks_blocked_all_values_of_a_key() -> None:
    """False alarm: the attack says so of half a key or more by chance with less than 2^-40."""
    assert told_apart(lift_masks) < 0.5


def test_lift_masks_ablated_all_values_of_a_key() -> None:
    """Uniform masks of the same length, as they were."""
    assert told_apart(uniform_bits) > 0.7


SETS = list_parameter_sets()
PAGE = Path(__file__).parents[2] / "docs" / "pages" / "budget.md"


def all_rotations(name: str) -> keygen.SealRequest:
    """The largest key of a set: relinearisation, and rotations by every power of two to both sides and the conjugation."""
    set_ = load(name, warn=False)
    steps = [sign << i for i in range(set_.ring_degree.bit_length() - 2) for sign in (1, -1)]
    return keygen.SealRequest(set_, True, api.galois_elements(set_, [*steps, 0]))


def values_of(request: keygen.SealRequest) -> int:
    digits = len(request.parameters.coeff_modulus) - 1
    return request.parameters.ring_degree * (2 + digits * len(request.targets))


def largest() -> keygen.SealRequest:
    return max((all_rotations(name) for name in SETS), key=values_of)


def sums() -> list[tuple[str, int, float]]:
    """Committee, parties and log2 of everything together, for the largest shipped key."""
    rows = []
    for protocol, size in (("rep-field", 3), ("semi", 2), ("semi", 8), ("shamir", 3), ("shamir", 15), ("mascot", 2), ("mascot", 3)):
        committee = api.in_process_committee(size, protocol)
        found = leaks(committee, values_of(largest()), kind_of(committee).mask_bits(committee), LIFT_BITS)
        found += budget_attempts() if committee.authenticated else 0.0
        rows.append((protocol, size, math.log2(found)))
    return rows


def test_lift_masks_blocked_everything_of_the_largest_key() -> None:
    for protocol, size, total in sums():
        assert total < math.log2(TOTAL), (protocol, size)
        largest().check_budget(api.in_process_committee(size, protocol))
    with pytest.raises(ParameterError, match="ask for fewer Galois keys, or take fewer parties"):  # 2^-39.99: more masks of more parties
        largest().check_budget(api.in_process_committee(4, "mascot"))


def test_lift_masks_ablated_everything_of_the_largest_key() -> None:
    """Uniform masks: a value's distance is its size over the length of the mask, and the sum of all exceeds the budget in every committee."""
    for protocol, size, _ in sums():
        committee = api.in_process_committee(size, protocol)
        bits = kind_of(committee).mask_bits(committee)
        assert values_of(largest()) * 2.5 * 2.0**-bits > TOTAL


def test_a_key_beyond_the_budget_is_refused_before_anything_is_made() -> None:
    committee = api.in_process_committee(40, "semi")
    with pytest.raises(
        ParameterError, match=r"3,571,712 coefficients among 40 parties: .*ask for fewer Galois keys, or take fewer parties"
    ) as caught:
        largest().needs(committee)
    assert "\n" not in str(caught.value)
    check_leaks(committee, 4096, 53, 61)


def test_short_primes_with_macs_are_refused_or_warned_of() -> None:
    """30 bits: refused, with the number; 36 bits: 2^-34 is more than all else, and is said; 43 bits: silent. Without MACs primes may be short."""
    members = api.in_process_committee(2, "mascot")
    with pytest.raises(
        ParameterError, match=r"ckks-4096 has a prime of 30 bits: under mascot a wrong value passes its MAC with 2\^-28.0; take a set"
    ) as caught:
        keygen.SealRequest(load("ckks-4096")).check_budget(members)
    assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match="a prime of 28 bits"):
        keygen.SealRequest(load("ckks-8192")).needs(members)
    for name in ("ckks-4096-mac", "bfv-4096", "bgv-4096"):
        request = keygen.SealRequest(load(name))
        request.check_budget(members)
        with pytest.warns(SecurityWarning, match=rf"{name} has a prime of 36 bits: with MACs a wrong value passes with 2\^-34.0 .* ABOVE the 2\^-40"):
            warn_all(request.warnings(members))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("ckks-8192-demo", "ckks-16384", "bfv-8192"):
            keygen.SealRequest(load(name)).check_budget(members)
            warn_all(keygen.SealRequest(load(name)).warnings(members))
        warn_all(keygen.SealRequest(load("ckks-4096")).warnings(api.in_process_committee(2, "semi")))
    keygen.SealRequest(load("ckks-4096")).check_budget(api.in_process_committee(2, "semi"))


def test_pads_of_products_are_counted() -> None:
    """Where products are made by oblivious transfer, and nowhere else; a pad of 61 bits is 2^-62 from uniform, and many add up by the root."""
    values = values_of(largest())
    for protocol, counted in (("semi", True), ("mascot", True), ("shamir", False), ("rep-field", False)):
        members = api.in_process_committee(3, protocol)
        assert (leaks(members, values, 58, 61) - budget_lift(values, 58) >= product_pads(8 * values, 2, 61)) == counted
    assert product_pads(1, 1, 61) == pytest.approx(math.sqrt(2 * 61 / 4) / 2 * 2.0**-61)
    assert product_pads(400, 1, 61) == pytest.approx(20 * product_pads(1, 1, 61))
    assert math.log2(product_pads(8 * values, 7, 61)) < -44


def test_masks_are_sums_of_four() -> None:
    masks = lift_masks(1 << 16, 20)
    assert masks.min() >= 0 and masks.max() <= (1 << 20) - 4
    middle, deviation = 2 * ((1 << 18) - 1), (1 << 18) / math.sqrt(3)
    assert abs(masks.mean() - middle) < 6 * deviation / (1 << 8)
    assert abs(masks.std() / deviation - 1) < 0.03


def test_ten_million_items_of_a_pool() -> None:
    """Attempts end a life, so their number does not count; nothing else of a pool modulo 2^k leaks. `round_flood` has its own statement."""
    assert budget_attempts() < TOTAL
    assert math.log2(budget_flood(10**7)) == pytest.approx(-16.75, abs=0.01)
    assert budget_attempts(36) > TOTAL, "short primes have a statement of their own"


def page() -> str:
    """The numbers of docs/pages/budget.md, as they follow from the code."""
    lines = ["| committee | parties | everything, for the largest key |", "| --- | --- | --- |"]
    lines += [f"| `{protocol}` | {size} | 2^{total:.1f} |" for protocol, size, total in sums()]
    lines += ["", "| attempt | wins with | passes unnoticed with |", "| --- | --- | --- |"]
    lines += [f"| {kind} | 2^-{wins:.1f} | 2^-{passes:.1f} |" for kind, wins, passes in budget_kinds(60)]
    lines += ["", "| a life | may go wrong with |", "| --- | --- |"]
    lines += [f"| a pool of 10^7 items, any number of batches | 2^{math.log2(budget_attempts()):.1f} |"]
    lines += [f"| masks of `lift_open`, {values_of(largest()):,} values, 58 bits | 2^{math.log2(budget_lift(values_of(largest()), 58)):.1f} |"]
    width = mask_width(2, MERSENNE, 1 << NOISE_BITS)
    tests = math.log2(budget_lift_tests(values_of(largest()), width))
    lines += [f"| tests of {values_of(largest()):,} lifted values, two parties with MACs | 2^{tests:.1f} |"]
    lines += [f"| attempts with primes of {bits} bits | 2^{math.log2(budget_attempts(bits)):.1f} |" for bits in (60, 43, 36)]
    lines += [f"| `round_flood`, 10^7 decryptions (not in the total) | 2^{math.log2(budget_flood(10**7)):.1f} |"]
    return "\n".join(lines)


def test_the_page_has_the_numbers_of_the_code() -> None:
    found = re.search(r"<!-- numbers -->\n\n(.*?)\n\n<!-- end of numbers -->", PAGE.read_text(), re.S)
    assert found is not None and found[1] == page(), page()
