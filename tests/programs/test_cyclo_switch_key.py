"""Bodies of keys of GHS: equal to the clear computation modulo q, at the cost stated; wrong counts are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.protocols import FIELDS, Q60, Backend

from .running import run

N = 12
RNG = np.random.default_rng(11)


def clear(a: Any, s: Any, targets: Any, e: Any, f: int, squares: int, weights: list[int]) -> list[int]:
    """f e - a s + g w, entry by entry."""
    out = []
    for k, target in enumerate(targets):
        for j, g in enumerate(weights):
            at = k * len(weights) + j
            w = [int(v) ** (2 if k < squares else 1) for v in target]
            out += [(f * int(e[at][i]) - int(a[at][i]) * int(s[i]) + g * w[i]) % Q60 for i in range(N)]
    return out


@pytest.mark.parametrize("backend", FIELDS, ids=str)
@pytest.mark.parametrize(("count", "squares", "weights", "f"), [(3, 1, [5, 0, Q60 - 7], 2), (1, 0, [0], 2), (2, 2, [0, 0], 2), (1, 0, [1], 4096)])
def test_bodies(backend: Backend, count: int, squares: int, weights: list[int], f: int) -> None:
    digits = len(weights)
    s, targets, e = (RNG.integers(-(2**40), 2**40, shape) for shape in (N, (count, N), (count * digits, N)))
    a = RNG.integers(0, Q60, (count * digits, N), dtype=np.uint64)
    arguments = {
        "N": N, "f": f, "count": count, "digits": digits, "squares": squares, "s_at": 2, "targets_at": N + 2, "e_at": (count + 1) * N + 2,
        "weights": weights,
    }  # fmt: skip
    out = run("cyclo_switch_key", arguments, backend, public=a.ravel().view(np.int64), shares=[7, 8, *s, *targets.ravel(), *e.ravel()])
    assert [int(v) % Q60 for v in out.public] == clear(a, s, targets, e, f, squares, weights)


def test_other_counts_are_refused() -> None:
    words = {"N": N, "f": 2, "count": 1, "digits": 2, "squares": 0, "s_at": 0, "targets_at": N, "e_at": 2 * N}
    for change, problem in (
        ({"weights": [1]}, "1 weights are not for 2 digits"),
        ({"squares": 2, "weights": [1, 1]}, "2 squares are more than the 1 targets"),
    ):
        with pytest.raises(Exception, match=problem):
            run("cyclo_switch_key", {**words, **change}, FIELDS[0])
