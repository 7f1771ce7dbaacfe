"""Why a party sends no partial decryption b - <a, s_i>: it is linear in its share s_i of the secret, and has no noise. So n of them give s_i away by elimination, and all
parties' shares the secret. What a rounding opens is masked: the same elimination finds nothing in it. A small dimension; the attack takes n^3 steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import LweParameters, encrypt, lwe_parameters
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.lwe.keygen import make_lwe_key
from keyquorum.schemes.lwe.phases import lwe_phases
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import low_mask
from numpy.typing import NDArray

Words = NDArray[np.uint64]
SMALL = replace(lwe_parameters("lwe64-p2"), dimension=24)
MORE = 40
"""Equations beyond n: a random system has no odd pivot, or a random right side fits, with probability below 2^-39."""


def solution(a: Words, right: Words, bits: int) -> Words | None:
    """s with a s = right modulo 2^bits, by elimination with odd pivots; None if the equations contradict one another."""
    rows, n = np.concatenate([a, right[:, None]], axis=1) & low_mask(bits), a.shape[1]
    for j in range(n):
        pivot = j + int(np.flatnonzero(rows[j:, j] & np.uint64(1))[0])
        rows[[j, pivot]] = rows[[pivot, j]]
        rows[j] *= np.uint64(pow(int(rows[j, j]), -1, 1 << 64))
        others = rows[:, j].copy()
        others[j] = 0
        rows -= others[:, None] * rows[j]
        rows &= low_mask(bits)
    return None if rows[n:, n].any() else rows[:n, n]


def secret_and_views(parameters: LweParameters, rounding: str) -> tuple[list[Words], Any, list[tuple[Words, list[tuple[Words, int]]]]]:
    """The shares of the secret, the ciphertexts, and of each party its partial decryptions, and what it sends in the rounding with the bits that it sends: a share of
    the masked phase (first line of the online programs), and its share of the message."""
    committee = api.in_process_committee(2, "semi")
    keys = run_in_process(committee, lambda context: make_lwe_key(context, parameters))
    shares = [share.words[0, : parameters.dimension].copy() for _, share in keys]
    rng = np.random.default_rng(5)
    count = parameters.dimension + MORE
    messages = rng.integers(0, 1 << parameters.plain_bits, count)
    ciphertexts = encrypt(parameters, sum(shares).astype(np.int64), messages, rng)  # type: ignore[union-attr]
    variant = LweVariant(rounding, parameters, 4, 3, triples=rounding == "round_ltz_circuit")

    def job(context: PartyContext) -> tuple[Words, list[tuple[Words, int]]]:
        group = RoundingGroup.of(context, 1, 0)
        z = lwe_phases(context, group, keys[context.party][1], ciphertexts)
        material = variant.make(group, count)
        masked = z[0] + material[0].astype(np.uint64).reshape(-1)
        message = variant.use(group, z, material)
        assert message is not None
        known = ciphertexts.b + np.uint64(1 << (parameters.noise_length - 1)) if context.party == 0 else np.uint64(0)
        return known - z[0], [(masked, parameters.noise_length), (message[0], parameters.ring_bits)]

    views = run_in_process(committee, job)
    opened = sum(sent[1][0] for _, sent in views)
    assert np.array_equal(variant.messages(opened), messages)
    return shares, ciphertexts, views


@pytest.mark.parametrize("rounding", ["round_mask_open", "round_ltz_table", "round_ltz_circuit"])
def test_partial_decryptions_give_a_share_away_and_what_a_rounding_opens_does_not(rounding: str) -> None:
    shares, ciphertexts, views = secret_and_views(SMALL, rounding)
    a, found = ciphertexts.a.astype(np.uint64), []
    for share, (partial, sent) in zip(shares, views, strict=True):
        stolen = solution(a, partial, 64)
        assert stolen is not None and np.array_equal(stolen, share)
        found.append(stolen)
        known = np.uint64(0) if share is not shares[0] else ciphertexts.b + np.uint64(1 << (SMALL.noise_length - 1))
        for words, bits in sent:
            assert solution(a, known - words, bits) is None and solution(a, -words, bits) is None
    assert set(sum(found).tolist()) == {0, 1}  # type: ignore[union-attr]
