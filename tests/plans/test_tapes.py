"""The programs of threshold decryption are recorded and played. Recordings hold nothing of keys, ciphertexts and material."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import encrypt, lwe_parameters
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.pool_variants import variant_for
from keyquorum.schemes.lwe.keygen import make_lwe_key
from keyquorum.schemes.lwe.phases import lwe_phases
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import combine

from tests.dsl.test_tape import described

from .test_variants import secret_of

COMMITTEES = [("rep-field", 3, "lwe64-p2"), ("semi", 2, "lwe64-p32"), ("shamir", 3, "lwe53-p16"), ("mascot", 2, "lwe64-p2")]
SHAPES = [("round_ltz_circuit", 8, 2), ("round_ltz_table", 8, 2), ("round_ltz_table", 4, 3), ("round_mask_open", 8, 2)]


@pytest.mark.parametrize(("protocol", "parties", "set_name"), COMMITTEES)
def test_recordings_of_the_roundings(protocol: str, parties: int, set_name: str) -> None:
    parameters, times, size = lwe_parameters(set_name), 3, 2
    shapes = SHAPES if protocol != "mascot" else SHAPES[:1] + SHAPES[3:]

    def recordings_of(seed: int) -> list[dict[str, Any]]:
        committee = api.in_process_committee(parties, protocol)
        shares = [share for _, share in run_in_process(committee, lambda context: make_lwe_key(context, parameters))]
        if protocol == "mascot":  # elements of two words, under MACs
            n = parameters.dimension
            secret = sum(share.words[0, : 2 * n : 2] for share in shares).view(np.int64)
            assert set(secret.tolist()) == {0, 1}
        else:
            secret = secret_of(shares, protocol, committee.threshold, set_name)
        rng = np.random.default_rng(seed)
        messages = rng.integers(0, 1 << parameters.plain_bits, (times, size))
        ciphertexts = [encrypt(parameters, secret, m, rng) for m in messages]

        def job(context: PartyContext) -> dict[str, Any]:
            group = RoundingGroup.of(context, committee.threshold, 0)
            words: list[Any] = []
            for rounding, width, levels in shapes:
                variant = variant_for(committee, rounding, parameters, width, levels)
                for ciphertext in ciphertexts:
                    z = lwe_phases(context, group, shares[context.party], ciphertext)
                    if group.member:
                        words.append((variant, variant.use(group, z, variant.make(group, size))))
            backends = [context.backend] + ([group.backend] if group.member and group.backend is not context.backend else [])
            kept = [engine for backend in backends for engine in backend._kept.values()]  # type: ignore[attr-defined]
            recordings = [(recording, engine.engine) for engine in kept for recording in engine.recordings.values()]
            assert all(recording is not None for recording, _ in recordings), "a program that cannot be recorded"
            return {"words": words, "recordings": [described(recording, engine) for recording, engine in recordings]}

        results = run_in_process(committee, job)
        members = [r for r in results if r["words"]]
        for i, (variant, _) in enumerate(members[0]["words"]):
            opened = combine([r["words"][i][1][:, :: variant.words] for r in members], parameters.ring_bits)
            assert isinstance(variant, LweVariant) and np.array_equal(variant.messages(opened), messages[i % times]), variant.name
        return [r["recordings"] for r in results]

    first, second = recordings_of(1), recordings_of(2)
    assert first == second
    assert max(len(recordings) for recordings in first) == len(shapes) + 1
