"""Secure shuffles: every permutation can be routed, all of them are equally likely, blocks stay whole."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyquorum._engine import EngineError
from keyquorum.dsl.context import current
from keyquorum.dsl.values import shuffle
from keyquorum.model.errors import ProgramError

from .running import ALL, EMULATE, MASCOT, RING, SHAMIR, SHAMIR_5, SPDZ_2K, Backend, name, printed, run


def switches(n: int) -> int:
    k = math.ceil(math.log2(n))
    return n * k - (1 << k) + 1


@pytest.mark.parametrize("n", range(1, 8))
def test_all_permutations_are_routed(n: int) -> None:
    for permutation in itertools.permutations(range(n)):
        order = np.array(permutation, dtype=np.int64)
        assert np.array_equal(shuffle.apply_clear(order, np.arange(n) * 10), order * 10)


@given(n=st.integers(1, 600), seed=st.integers(0, 2**32 - 1))
def test_any_size_is_routed(n: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(n).astype(np.int64)
    assert np.array_equal(shuffle.apply_clear(order, np.arange(n)), order)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 13, 64, 100, 1000, 1024])
def test_size_of_the_network(n: int) -> None:
    layers = shuffle.network(n)
    assert len(layers) == shuffle.depth(n) == 2 * math.ceil(math.log2(n)) - 1
    assert sum(len(a) for a, _ in layers) == switches(n)
    for a, b in layers:
        wires = np.concatenate([a, b])
        assert len(np.unique(wires)) == len(wires)


def test_large_permutation() -> None:
    order = shuffle.random_permutation(1 << 14)
    assert np.array_equal(np.sort(order), np.arange(1 << 14))
    assert np.array_equal(shuffle.apply_clear(order, np.arange(1 << 14)), order)


def chi_square(counts: Counter[tuple[int, ...]], samples: int, outcomes: int) -> float:
    expected = samples / outcomes
    return sum((counts[o] - expected) ** 2 / expected for o in counts) + expected * (outcomes - len(counts))


def test_permutations_of_a_party_are_uniform() -> None:
    """False alarm 2^-20: the 1 - 2^-20 quantile of chi-square with 23 degrees of freedom is 75.6."""
    counts = Counter(tuple(shuffle.random_permutation(4).tolist()) for _ in range(24_000))
    assert chi_square(counts, 24_000, 24) < 75.6


@pytest.mark.parametrize(
    ("backend", "samples"), [(EMULATE, 2400), (RING, 2400), (SHAMIR, 2400), (SHAMIR_5, 720)], ids=["emulate", "ring", "shamir", "shamir-5"]
)
def test_shuffles_are_uniform(tmp_path: Path, backend: Backend, samples: int) -> None:
    """False alarm 2^-20, see above; expected counts are at least 30."""
    source = f"""
        x = sint(regint.inc(4))
        @for_range_opt({samples})
        def _(i):
            x.secure_shuffle().reveal().binary_output()
        """
    outputs = run(tmp_path, source, backend)[0].io.binary_outputs
    counts = Counter(tuple(o.tolist()) for o in outputs)
    assert set(counts) <= set(itertools.permutations(range(4))) and len(outputs) == samples
    assert chi_square(counts, samples, 24) < 75.6


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_contents(tmp_path: Path, backend: Backend) -> None:
    source = """
        x = sint(regint.inc(50, 100))
        y = x.secure_shuffle()
        y.reveal().binary_output()
        x.reveal().binary_output()
        A = sint.Array(7)
        A.assign_vector(sint(regint.inc(7)))
        A.secure_shuffle()
        A[:].reveal().binary_output()
        M = sint.Matrix(6, 3)
        M.assign_vector(sint(regint.inc(18)))
        M.secure_shuffle()
        M[:].reveal().binary_output()
        sint(5).secure_shuffle().reveal().binary_output()
        """
    shuffled, original, array, matrix, single = run(tmp_path, source, backend)[0].io.binary_outputs
    assert np.array_equal(np.sort(shuffled), original) and np.array_equal(original, np.arange(100, 150))
    assert np.array_equal(np.sort(array), np.arange(7))
    rows = matrix.reshape(6, 3)
    assert np.array_equal(rows[np.argsort(rows[:, 0])], np.arange(18).reshape(6, 3))
    assert single.tolist() == [5]


@pytest.mark.parametrize("backend", [RING, SHAMIR, SHAMIR_5], ids=name)
@pytest.mark.parametrize("n", [2, 5, 64])
def test_rounds(tmp_path: Path, backend: Backend, n: int) -> None:
    source = f"y = sint.get_random(size={n})\nstart_timer(1)\ny.secure_shuffle()\nstop_timer(1)"
    result = run(tmp_path, source, backend)[0].result
    assert result is not None
    inputs, permutations = 1, 3
    wanted = {"ring": 3, "shamir": 4} if backend[1] == 3 else {"shamir": inputs + permutations * shuffle.depth(n)}
    assert result.timers[1].rounds == wanted[backend[0]]


def test_blocks_must_fit(tmp_path: Path) -> None:
    from keyquorum.model.errors import ProgramError

    with pytest.raises(ProgramError, match="cannot shuffle 5 elements in blocks of 2"):
        printed(tmp_path, "sint(regint.inc(5)).secure_shuffle(2)")


SHUFFLE = """
x = sint(regint.inc(4, 10))
x.secure_shuffle().reveal().binary_output()
"""


def _cheating(monkeypatch: pytest.MonkeyPatch, control: int) -> None:
    """Party 0 gives another control at the first switches than 0 or 1, or than its permutation has."""
    honest = shuffle.route

    def route(permutation: np.ndarray) -> list[np.ndarray]:
        layers = honest(permutation)
        if current().engine.party == 0:
            layers[0] = np.full_like(layers[0], control)
        return layers

    monkeypatch.setattr(shuffle, "route", route)


@pytest.mark.parametrize("backend", [MASCOT, SPDZ_2K], ids=["mascot", "spdz2k"])
def test_controls_of_a_shuffle_with_macs_are_bits(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every input of a party the result is a permutation, or an error."""
    _cheating(monkeypatch, 1)
    for party in run(tmp_path, SHUFFLE, backend):
        assert sorted(party.io.binary_outputs[0].tolist()) == [10, 11, 12, 13]
    _cheating(monkeypatch, 100)
    try:
        parties = run(tmp_path, SHUFFLE, backend)
    except (EngineError, ValueError, OverflowError):
        return
    for party in parties:
        assert sorted(party.io.binary_outputs[0].tolist()) == [10, 11, 12, 13]


def test_controls_that_are_elements_spoil_a_shuffle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason why controls are input as bits: with elements the result is wrong, and no check fails."""
    _cheating(monkeypatch, 100)
    monkeypatch.setattr(shuffle, "_controls", lambda engine, party, n, bits: engine.input(party, n, bits))
    for party in run(tmp_path, SHUFFLE, MASCOT):
        assert sorted(party.io.binary_outputs[0].tolist()) != [10, 11, 12, 13]


PERMUTATIONS = """
n = int(program.args[1])
p, q = sint.get_secure_shuffle(n), sint.get_secure_shuffle(n)
x = sint(regint.inc(n, 5))
y = x.secure_permute(p)
print_ln('%s', list(y.reveal()))
print_ln('%s', list(x.secure_permute(p).reveal()))
print_ln('%s', list(y.secure_permute(p, reverse=True).reveal()))
print_ln('%s', list(y.secure_permute(q).secure_permute(q, reverse=True).reveal()))
m = Matrix.create_from([[sint(2 * i), sint(2 * i + 1)] for i in range(n)])
m.secure_permute(p, n_threads=2)
print_ln('%s', m.reveal_nested())
a = sint.Array(n)
a.assign(regint.inc(n))
a.secure_permute(p, reverse=True)
print_ln('%s', list(a[:].reveal()))
print_ln('%s', list(a[:].inverse_permutation().reveal()))
print_ln('%s', list(sfix(x).secure_permute(p).reveal().v))
"""


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("backend", ALL, ids=name)
def test_permutations_that_are_kept(tmp_path: Path, backend: Backend, n: int) -> None:
    """One permutation does the same to vectors, rows and fixed-point numbers, and is undone; its inverse is what undoes it."""
    moved, again, back, other, rows, inverse, order, fixed = ([eval(line)] for line in printed(tmp_path, PERMUTATIONS, backend, n))
    places = [v - 5 for v in moved[0]]
    assert sorted(places) == list(range(n))
    assert again == other == moved and back == [list(range(5, 5 + n))]
    assert rows == [[[2 * i, 2 * i + 1] for i in places]]
    assert [inverse[0][i] for i in places] == list(range(n)) and order == [places]
    assert fixed == [[v << 16 for v in moved[0]]]


def test_kept_permutations_are_uniform(tmp_path: Path) -> None:
    """600 permutations of 3: chi-square with 5 degrees of freedom stays below its quantile for 1 - 10^-6 in all but one of a million runs."""
    source = """
        print_ln('%s', [list(sint(regint.inc(3)).secure_permute(sint.get_secure_shuffle(3)).reveal()) for _ in range(20)])
        """
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(30):
        counts.update(tuple(p) for p in eval(printed(tmp_path, source, RING)[0]))
    assert sum(counts.values()) == 600 and chi_square(counts, 600, 6) < 36.9


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("sint.get_secure_shuffle(0)", "takes a positive compile-time integer"),
        ("sint([1, 2]).secure_permute(sint.get_secure_shuffle(3))", "a permutation of 3 blocks of 1 is for 3 elements, not 2"),
        ("sint([1, 2]).secure_permute(regint(0))", "takes a permutation of get_secure_shuffle, not regint"),
        ("sint([0, 5]).inverse_permutation()", "overflow: index 5, length 2"),
    ],
)
def test_permutations_that_are_refused(tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run(tmp_path, statement)
