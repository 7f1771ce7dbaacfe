"""BFV and BGV with stored masks: what they decrypt is SEAL's decryption, on every committee that keeps pools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.model.errors import ParameterError, PoolError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import Rounding, decrypt
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.schemes import encryption_of
from keyquorum.schemes.base import MASKED_ONE
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.mask_open_one import SealMaskOpenOne
from keyquorum.schemes.seal.masked import most_masked
from keyquorum.schemes.seal.variant import seal_variant
from scipy import stats

from tests.fhe.dealer import find_primes

from .quorum import Seal, make_key, secret_of
from .test_exact_decryption import deep, deepest_circuit, encryptions
from .test_pools import committee

DEGREE = 256
"""Of the keys: fewer coefficients under the same primes, so that phases, masks and their lengths are those of the shipped sets."""
MOST_WRONG = {"round_ltz_circuit": 0, "round_mask_open": 3, MASKED_ONE: 3}
"""Coefficients of two fresh ciphertexts. Those under the primes of `bfv-4096` have |e|/Delta of at most 2^-16: 0.01 of 512 are opened wrongly, 4 less than once in 10^7 runs."""


def fill(members: Any, variant: Any, items: int, chunk: int = 4096) -> None:
    def job(context: PartyContext) -> None:
        group = pool_group(context)
        if group.member:
            pool = Pool(context, group, variant)
            try:
                pool.fill(items, chunk)
            finally:
                pool.close()

    run_in_process(members, job, timeout=120)


@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("semi", 2), ("semi", 3), ("shamir", 3)])
@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_decryption_with_a_pool_is_seals(tmp_path: Path, scheme: str, protocol: str, parties: int) -> None:
    """Fresh ciphertexts under both roundings, and under the exact one the deepest with one bit of noise budget left; noise that fills
    the phase. Two ciphertexts, across chunks."""
    members = committee(tmp_path, protocol, parties)
    name = "bfv-4096" if scheme == "bfv" else "bgv-8192"
    parameters = replace(api.load_parameters(name), ring_degree=DEGREE, security="none")
    material = make_key(members, SealRequest(parameters, True), b"odd pools")
    s = Seal(material[0], secret_of(members, material))
    n = s.parameters.ring_degree
    fresh = [s.lowest(c) for c in encryptions(s, 2)]
    worn = [deep(s, c, *deepest_circuit(s)) for c in encryptions(s, 1)] if scheme == "bgv" else []
    masked = ["round_mask_open", *([] if protocol == "rep-field" else [MASKED_ONE])]
    for rounding, ciphertexts in (*((name, fresh) for name in masked), ("round_ltz_circuit", [*fresh, *worn])):
        variant = variant_for(members, rounding, s.parameters)
        fill(members, variant, len(ciphertexts) * n + 5, 750)
        parsed = [read_ciphertext(s.parameters, c.to_string()) for c in ciphertexts]
        receiver = len(ciphertexts) % 2

        def job(context: PartyContext, parsed: Any = parsed, rounding: str = rounding, receiver: int = receiver) -> Any:
            mine = material[context.party]
            return decrypt(context, mine.info, mine.shares, parsed, receiver, Rounding(rounding), pool="test")

        results = run_in_process(members, job, timeout=120)
        assert all(r is None for i, r in enumerate(results) if i != receiver)
        exact = [s.coefficients(ciphertext) for ciphertext in ciphertexts]
        wrong = sum(int((r.coefficients != e).sum()) for r, e in zip(results[receiver], exact, strict=True))
        assert wrong <= MOST_WRONG[rounding]
        assert pool_status(pools_folder(members, 0) / variant.name) == (len(parsed) * n + 5, len(parsed) * n)
        with pytest.raises(PoolError, match=rf"{name}-{rounding}: needs {len(parsed) * n:,} items, has 5: keyquorum pool fill"):
            run_in_process(members, job, timeout=120)


@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("semi", 2), ("shamir", 5)])
@pytest.mark.parametrize("rounding", ["round_ltz_circuit", "round_mask_open"])
def test_material_fits_together_and_is_uniform(tmp_path: Path, rounding: str, protocol: str, parties: int) -> None:
    """r is one number modulo 2^l, modulo t and in bits; it is uniform: a chi-square test that zero, short or repeated masks fail."""
    members = committee(tmp_path, protocol, parties)
    variant, size = seal_variant(members, rounding, api.load_parameters("bfv-4096")), 5_000
    ell, t = variant.length, variant.modulus

    def job(context: PartyContext) -> Any:
        group = pool_group(context)
        return [m[0] for m in variant.make(group, size)] if group.member else None

    parts = [r for r in run_in_process(members, job, timeout=120) if r is not None]
    ring, *bits, field = [sum(p[i].astype(object) for p in parts) for i in range(len(parts[0]))]
    r = (ring[0] % (1 << ell)).astype(np.int64)
    assert np.array_equal(field[0] % t, r % t)
    if bits:
        rows = (bits[0] % 2).astype(np.int64)
        assert np.array_equal((rows[:-1] << np.arange(ell)[:, None]).sum(0), r) and np.array_equal(rows[-1], field[1] % t)
    assert [m.shape[0] for m in parts[0]] == [s.rows for s in variant.sections]
    assert len(set(r.tolist())) > size - 5
    for shift in (0, ell // 2, ell - 8):
        assert stats.chisquare(np.bincount((r >> shift) & 255, minlength=256)).pvalue > 1e-6


def test_refusals(tmp_path: Path) -> None:
    members = committee(tmp_path, "rep-field", 3)
    with pytest.raises(ParameterError, match="round_ltz_table is for LWE alone: choose one of round_ltz_circuit, round_mask_open for bfv-4096"):
        seal_variant(members, "round_ltz_table", api.load_parameters("bfv-4096"))
    with pytest.raises(ParameterError, match="CKKS has no exact messages"):
        seal_variant(members, "round_mask_open", api.load_parameters("ckks-8192-demo"))
    with_macs = committee(tmp_path, "mascot", 2)
    with pytest.raises(ParameterError, match="mascot: masks of round_mask_open are not kept with MACs: take round_ltz_circuit"):
        variant_for(with_macs, "round_mask_open", api.load_parameters("bfv-4096"))
    wide = replace(api.load_parameters("bfv-4096"), plain_modulus=find_primes(4096, 30, 1)[0])
    with pytest.raises(ParameterError, match="a plain modulus of 30 bits does not fit one ring with MACs"):
        variant_for(with_macs, "round_ltz_circuit", wide)


@pytest.mark.parametrize(("protocol", "parties"), [("semi", 2), ("semi", 4), ("shamir", 5)])
def test_one_party_alone_sees_the_masked_phase(tmp_path: Path, protocol: str, parties: int) -> None:
    """Messages, shared and opened to a member. In the first run every other member sends l bits to member 0, and nobody else gets anything; in the second all but the receiver send a number modulo t. Elements that go to one member take whole bytes."""
    members, size = committee(tmp_path, protocol, parties), 4096
    variant = variant_for(members, MASKED_ONE, api.load_parameters("bfv-4096"))
    assert isinstance(variant, SealMaskOpenOne)
    ell, t, rng = variant.length, variant.modulus, np.random.default_rng(7)
    messages = rng.integers(0, t, size)
    # z = 2^l m + 2^(l-1) modulo 2^l and modulo t, without noise
    z = np.stack([np.full(size, 1 << (ell - 1)), (messages * pow(2, ell, t) + pow(2, ell - 1, t)) % t]).astype(np.uint64)

    def job(context: PartyContext) -> Any:
        group = pool_group(context)
        if not group.member:
            return None
        assert group.backend is not None
        mine = z[:, None] if group.me == 0 else np.zeros_like(z[:, None])
        found, sent = [], []
        for to in ("share", 0, 1):
            items = variant.make(group, size)
            before = group.backend.stats()
            found.append(variant.use(group, mine, items, to))
            sent.append(group.backend.stats()["bytes_sent"] - before["bytes_sent"])
        return found, sent

    results = [r for r in run_in_process(members, job, timeout=120) if r is not None]
    total = sum(shared.astype(object) for (shared, *_), _ in results)
    assert np.array_equal((total[0] % t).astype(np.int64), messages)
    assert np.array_equal(results[0][0][1][0], messages) and np.array_equal(results[1][0][2][0], messages)
    assert all(found[1] is None for found, _ in results[1:]) and results[0][0][2] is None
    # Beside them tags and digests of contexts, some hundred bytes.
    slack, word = 1024, -(-ell // 8) * size
    assert results[0][1][0] < slack, "member 0 sends no number in the first run"
    for me, (_, sent) in enumerate(results):
        assert me == 0 or word <= sent[0] < word + slack, "whole bytes of l bits, to one member"
        last = sent[1] - sent[0] if me else sent[2] - sent[0]
        assert abs(last - 3 * size) < slack, "whole bytes of a number modulo t, of 17 bits, to the receiver"


def test_one_party_opens_for_semi_honest_parties_with_pools(tmp_path: Path) -> None:
    """Refusals name the rounding to take; decryptions are counted with those by `round_mask_open`, and not served."""
    bfv = api.load_parameters("bfv-4096")
    for protocol, parties, text in (
        ("rep-field", 3, "takes additive shares, of which each party has one summand: take round_mask_open"),
        ("mascot", 2, "masks of round_mask_open_one are not kept with MACs: take round_ltz_circuit"),
        ("mal-rep-field", 3, "nobody could check it: take round_mask_open, or round_ltz_circuit"),
        ("mal-shamir", 3, "there is no round_mask_open_one over prime fields alone: take round_ltz_circuit"),
    ):
        with pytest.raises(ParameterError, match=text):
            variant_for(committee(tmp_path / protocol, protocol, parties), MASKED_ONE, bfv)
    members = committee(tmp_path / "semi", "semi", 2)
    material = make_key(members, SealRequest(replace(bfv, ring_degree=DEGREE, security="none"), True), b"one opens")
    s, info = Seal(material[0], secret_of(members, material)), material[0].info
    parsed = [read_ciphertext(s.parameters, s.lowest(c).to_string()) for c in encryptions(s, 1)]

    def job(context: PartyContext) -> Any:
        return decrypt(context, info, material[context.party].shares, parsed, 0, Rounding(MASKED_ONE))

    with pytest.raises(
        ParameterError, match=r"round_mask_open_one takes its masks from a pool: keyquorum pool fill --rounding round_mask_open_one, and add --pool"
    ):
        run_in_process(members, job, timeout=120)
    assert info.most_decryptions(MASKED_ONE) == most_masked(info.parameters) == info.most_decryptions("round_mask_open")
    assert encryption_of(bfv).counts(bfv, MASKED_ONE) and not encryption_of(bfv).counts(bfv, "round_ltz_circuit")
    with pytest.raises(ParameterError, match="round_mask_open_one is sometimes wrong"):
        encryption_of(bfv).check_served(members, MASKED_ONE)
