"""Wrong arguments: one line that names the argument and the usage."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols import Q60, REPLICATED_FIELD, REPLICATED_RING

from .running import run

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("z2_to_zq", {"contributors": 2}, "argument size is missing"),
    ("z2_to_zq", {"contributors": 0, "size": 1}, "argument contributors must be an integer >= 1, not '0'"),
    ("z2_to_zq", {"contributors": 2, "size": "x"}, "argument size must be an integer >= 1, not 'x'"),
    ("z2_to_zq", {"contributors": 2, "size": 1, "method": "poly", "more": 1}, "4 arguments given, at most 3 expected"),
    ("sample_ternary", {"contributors": 2, "N": 4, "method": "guess"}, "argument method must be bilinear or poly or bits, not 'guess'"),
    ("z3_to_zq", {"contributors": 2, "N": 4, "method": "poly"}, "needs the prime of the domain as argument modulus"),
    ("sample_gaussian", {"size": 4, "method": "bits", "s": 3200, "bits": 16, "tail": 23}, "tail 23 has no probability in 16 bits"),
    ("sample_fixed_weight", {"method": "knuth", "N": 4, "w": 5}, "weight 5 is above the length N = 4"),
    ("lift_open", {"d": 2, "n": 4, "b": 5, "lam": 55, "modulus": Q60}, "the masked values may wrap"),
    ("round_mask", {"size": 4, "l": 8, "bits": "most"}, "argument bits must be sum or all or blocks, not 'most'"),
    ("rlwe_switch_key", {"N": 4, "q": Q60, "f": 1, "L": 1, "i": 0, "P": 1, "s": 0, "e": 4}, "argument target is missing"),
    ("rlwe_switch_key", {"N": 4, "q": Q60, "f": 1, "L": 1, "i": 0, "P": 1, "s": 0, "e": 4, "t": 6}, "an odd Galois element"),
    (
        "flood",
        {"contributors": 2, "N": 4, "receiver": 0, "at": 0, "masks": "stored"},
        "contributors is the number of parties that input flooding: 0 if it is stored",
    ),
    ("flood", {"contributors": 2, "N": 4, "receiver": -1}, "argument receiver must be a party number or all, not '-1'"),
    ("round_ltz_circuit_odd_ring", {"d": 2, "n": 4, "l": 60, "at": 0, "ring_length": 60}, "ring_length 60 is too small"),
    ("round_carry_odd_ring", {"s": 3, "d": 2, "n": 4, "l": 60, "at": 0, "ring_length": 61}, "ring_length 61 is too small, it must be at least 62"),
    ("round_carry_odd_ring", {"s": 1, "d": 2, "n": 4, "l": 20}, "argument summands"),
]


@pytest.mark.parametrize(("program", "arguments", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong_arguments(program: str, arguments: dict[str, Any], message: str) -> None:
    backend = REPLICATED_FIELD if program.startswith(("rlwe", "z3")) else REPLICATED_RING
    with pytest.raises(Exception, match=program) as caught:
        run(program, arguments, backend, check_costs=False)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
