"""Receivers of parties with MACs: what they accept, and what a changed share would do without their check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.errors import PartyError
from keyquorum.schemes.prf import client_masks
from keyquorum.schemes.prf.client_masks import OpenedMasks, answer_words, opened_masks, same_values, times, words_of

RNG = np.random.default_rng(64)
COMMITTEE = api.in_process_committee(3, "spdz2k")


def dealt(inputs: int, blocks: int) -> tuple[Any, list[bytes]]:
    """The elements of right answers, and the answers."""
    count = words_of(blocks)
    words, key = RNG.integers(0, 1 << 64, (count, inputs), np.uint64), RNG.integers(0, 1 << 64, (1, inputs), np.uint64)
    elements = np.concatenate([words, key, times(words, key)])
    shares = [RNG.integers(0, 1 << 64, elements.shape, np.uint64) for _ in range(2)]
    shares.append(elements ^ shares[0] ^ shares[1])
    return elements, [share.astype("<u8").tobytes() for share in shares]


def test_masks_are_the_sums_of_the_shares() -> None:
    for inputs, blocks in ((1, 1), (3, 2), (64, 2)):
        elements, answers = dealt(inputs, blocks)
        found = opened_masks(COMMITTEE, answers, inputs, blocks)
        assert found.masks.shape == (inputs, 16) and found.pads.shape == (inputs, blocks, 16)
        for i in range(inputs):
            column = elements[: words_of(blocks), i].astype("<u8").tobytes()
            assert found.masks[i].tobytes() + found.pads[i].tobytes() == column
        assert all(len(answer) == 8 * answer_words(blocks) * inputs for answer in answers)


def test_changed_bits_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bit, in the answer of one of the parties. A receiver that does not check products takes another mask or pad for each bit of w: the ablation."""
    _, answers = dealt(1, 1)
    right = opened_masks(COMMITTEE, answers, 1, 1)

    def changed(bit: int) -> OpenedMasks:
        given = [bytearray(answer) for answer in answers]
        given[bit % 3][bit // 8] ^= 1 << bit % 8
        return opened_masks(COMMITTEE, given, 1, 1)

    for bit in range(8 * len(answers[0])):
        with pytest.raises(PartyError, match="a party sent wrong shares of the masks: nothing of the inputs was sent"):
            changed(bit)
    with pytest.raises(PartyError, match="party 1 sent 71 bytes for the masks of 1 inputs"):
        opened_masks(COMMITTEE, [answers[0], answers[1][:-1], answers[2]], 1, 1)
    monkeypatch.setattr(client_masks, "right_products", lambda words, key, products: True)
    for bit in range(64 * words_of(1)):
        taken = changed(bit)
        assert (taken.masks.tobytes() != right.masks.tobytes()) == (bit < 128)
        assert (taken.pads.tobytes() != right.pads.tobytes()) == (bit >= 128)


@pytest.mark.parametrize("kind", ["bits", "key", "both"])
@pytest.mark.parametrize(("inputs", "blocks"), [(1, 1), (3, 2)])
def test_the_errors_that_pass(kind: str, inputs: int, blocks: int) -> None:
    """The law that the docstring of client_masks states: errors (d, e, h) of (w, k, w k), which a party adds to its shares, pass if h = d k + w e + d e, and the receiver has
    w + d. They pass for no other h: not for one bit more in a word, nor for h = 0. A party can hit this h alone by a guess of k, or of w."""
    count = words_of(blocks)
    elements, answers = dealt(inputs, blocks)
    words, key = elements[:count], elements[count : count + 1]
    d = RNG.integers(1, 1 << 64, words.shape, np.uint64) if kind != "key" else np.zeros_like(words)
    e = RNG.integers(1, 1 << 64, key.shape, np.uint64) if kind != "bits" else np.zeros_like(key)
    h = times(d, key) ^ times(words, e) ^ times(d, e)

    def opened(products: Any) -> OpenedMasks:
        error = np.concatenate([d, e, products]).astype("<u8").tobytes()
        wrong = bytes(a ^ b for a, b in zip(answers[1], error, strict=True))
        return opened_masks(COMMITTEE, [answers[0], wrong, answers[2]], inputs, blocks)

    taken = opened(h)
    for i in range(inputs):
        assert taken.masks[i].tobytes() + taken.pads[i].tobytes() == (words ^ d)[:, i].astype("<u8").tobytes()
    others = [np.zeros_like(h)]
    for place in np.ndindex(h.shape):
        others.append(h.copy())
        others[-1][place] ^= np.uint64(1 << int(RNG.integers(64)))
    for other in others:
        with pytest.raises(PartyError, match="a party sent wrong shares of the masks"):
            opened(other)


@pytest.mark.parametrize("kind", ["bits", "key", "both"])
def test_errors_pass_as_seldom_as_guesses(kind: str) -> None:
    """The law that the docstring of client_masks states, exhaustively in GF(2^4) = GF(2)[X]/(X^4 + X + 1): for each error (d, e, h) at most one in 16 of all (w, k) passes for each
    value of the other factor, whatever h is. So a guess of w, by an error of k, passes as seldom as a change of w."""

    def small(a: int, b: int) -> int:
        total = 0
        for i in range(4):
            total ^= (a << i) * (b >> i & 1)
        for i in reversed(range(4, 7)):
            total ^= (total >> i & 1) * (0x13 << (i - 4))
        return total

    table = [[small(a, b) for b in range(16)] for a in range(16)]
    for d in range(16):
        for e in range(16):
            if (kind == "bits") != (e == 0) or (kind == "key") != (d == 0) or (d == 0 and e == 0):
                continue
            passed = np.zeros(16, int)
            for w in range(16):
                for k in range(16):
                    passed[table[w ^ d][k ^ e] ^ table[w][k]] += 1
            assert passed.max() == 16  # of 256: for every h at most 1/16


def test_modulo_a_power_of_two_a_guess_would_pass_half_the_time() -> None:
    """Why the products are over a field: with e = 2^(l-1) the check w k mod 2^l passes if w is even, so whether the receiver breaks off tells a bit of w."""
    words, keys = RNG.integers(0, 1 << 64, 1000, np.uint64), RNG.integers(0, 1 << 64, 1000, np.uint64)
    passes = words * (keys + np.uint64(1 << 63)) == words * keys
    assert np.array_equal(passes, words & np.uint64(1) == 0) and 400 < passes.sum() < 600


def test_values_that_differ_are_dropped() -> None:
    value = RNG.bytes(32)
    assert same_values(COMMITTEE, [value] * 3, 32) == value
    for party in range(3):
        for position in range(32):
            changed = value[:position] + bytes([value[position] ^ 1]) + value[position + 1 :]
            with pytest.raises(PartyError, match=r"parties 0 and \d sent different values, so one of them cheats: the result was dropped"):
                same_values(COMMITTEE, [changed if p == party else value for p in range(3)], 32)
    with pytest.raises(PartyError, match="party 2 sent 31 bytes for 32"):
        same_values(COMMITTEE, [value, value, value[1:]], 32)
