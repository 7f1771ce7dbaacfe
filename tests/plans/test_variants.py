"""LWE keys and the roundings in two parts, among committees in this process."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.backends.base import Mode
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LWE_SETS, encrypt, flooding_bits, lwe_parameters
from keyquorum.model.errors import ParameterError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.pool_store import packed_bytes
from keyquorum.plans.pool_variants import variant_for
from keyquorum.programs.signatures import and_triples
from keyquorum.schemes.lwe.keygen import make_lwe_key
from keyquorum.schemes.lwe.phases import lwe_phases
from keyquorum.schemes.lwe.variant import FLOOD_SECURITY, LweVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import ProvenNumbers
from keyquorum.sharing.variants import Section, combine, comparison_ands

from tests.programs.costs import below_ands

from .quorum import reconstruct

COMMITTEES = {
    "replicated": ("rep-field", 3, "lwe64-p2"),
    "additive-2": ("semi", 2, "lwe64-p2"),
    "additive-3": ("semi", 3, "lwe64-p32"),
    "additive-p256": ("semi", 2, "lwe64-p256"),
    "shamir-3": ("shamir", 3, "lwe53-p16"),
    "replicated-53": ("rep-field", 3, "lwe53-p16"),
    "additive-53": ("semi", 2, "lwe53-p16"),
    "additive-eta52": ("semi", 3, "lwe53-p16-eta52"),
}
SHAPES = [("round_ltz_circuit", 8, 2), ("round_ltz_table", 8, 2), ("round_ltz_table", 4, 3), ("round_mask_open", 8, 2)]


def secret_of(shares: list[Any], protocol: str, threshold: int, name: str) -> np.ndarray:
    """The secret that nobody should have."""
    n, q = lwe_parameters(name).dimension, lwe_parameters(name).modulus
    found: np.ndarray = reconstruct(protocol, threshold, [s.words[:, :n] for s in shares], q)
    assert set(found.tolist()) == {0, 1} and abs(found.mean() - 0.5) < 5 * 0.5 / np.sqrt(n)
    return found


@pytest.mark.parametrize("name", COMMITTEES)
def test_decryption_is_exact_at_the_borders(name: str) -> None:
    protocol, parties, set_name = COMMITTEES[name]
    committee, parameters = api.in_process_committee(parties, protocol), lwe_parameters(set_name)
    keys = run_in_process(committee, lambda context: make_lwe_key(context, parameters))
    assert len({info.digest for info, _ in keys}) == 1
    shares = [share for _, share in keys]
    rng = np.random.default_rng(8)
    secret = secret_of(shares, protocol, committee.threshold, set_name)
    # Modulo a prime a phase is scaled and each summand rounded: a unit or two of q at the border.
    half = parameters.delta // 2 - parameters.margin
    noise = np.concatenate([[half - 1, -half, 0], rng.integers(-half, half, 17)])
    messages = rng.integers(0, 1 << parameters.plain_bits, noise.size)
    ciphertexts = encrypt(parameters, secret, messages, rng, noise)
    calm = encrypt(parameters, secret, messages, rng)
    shapes = SHAPES if parties < 4 and name != "replicated-53" else SHAPES[:2]
    variants = [LweVariant(rounding, parameters, width, levels) for rounding, width, levels in shapes]
    variants.append(variant_for(committee, "round_ltz_circuit", parameters))
    assert variants[-1].triples == (protocol != "rep-field")
    if protocol != "rep-field":
        variants.append(variant_for(committee, "round_mask_open_one", parameters))

    def job(context: PartyContext) -> list[Any]:
        group = RoundingGroup.of(context, committee.threshold, 0)
        z = lwe_phases(context, group, shares[context.party], ciphertexts)
        z_calm = lwe_phases(context, group, shares[context.party], calm)
        if not group.member:
            return []
        results = []
        for variant in variants:
            material = variant.make(group, noise.size)
            assert [m.shape[1] for m in material] == [s.rows for s in variant.sections]
            used = z_calm if "mask_open" in variant.rounding else z
            results.append((variant.use(group, used, material), variant.use(group, used, material, 0)))
        return results

    results = [r for r in run_in_process(committee, job) if r]
    for i, variant in enumerate(variants):
        words = combine([r[i][0] for r in results], parameters.ring_bits)
        assert np.array_equal(variant.messages(words), messages), variant.name
        opened = results[0][i][1]
        assert np.array_equal(variant.messages(opened[0]), messages), variant.name
        assert all(r[i][1] is None for r in results[1:])


@pytest.mark.parametrize(
    ("name", "width", "levels", "tables"),
    [
        ("lwe64-p2", 8, 2, 1920 * 9 + 512 * 1 + 9),  # seven blocks of 8 bits and one of 7; of d signs, d + 1 bits; the last table has j
        ("lwe64-p256", 8, 2, 7 * 256 * 8 + 256 * 8 + 8),
        ("lwe64-p2", 4, 3, 248 * 5 + 4 * (5 + 32 * 5) + 5 + 32 * 1),
    ],
)
def test_tables_are_stored_with_their_bits_alone(name: str, width: int, levels: int, tables: int) -> None:
    """High Throughput Universally Composable Threshold FHE Decryption: d 2^b (d + 1) + 2^(d+1) j bits a party, and masks."""
    variant = LweVariant("round_ltz_table", lwe_parameters(name), width, levels)
    assert 8 * packed_bytes(variant.sections, 1, 1024) == 1024 * (variant.parameters.ring_bits + tables)
    assert packed_bytes(variant.sections, 1, 1024) <= 2300 * 1024


@pytest.mark.parametrize("protocol", ["spdz2k", "mal-rep-ring"])
def test_a_number_that_one_party_takes_off_is_for_semi_honest_parties(protocol: str) -> None:
    with pytest.raises(ParameterError, match=r"round_mask_open_one lets party 0 alone see a number.*: take round_mask_open, or round_ltz_circuit"):
        variant_for(api.in_process_committee(3, protocol), "round_mask_open_one", lwe_parameters("lwe64-p2"))
    with pytest.raises(ParameterError, match="takes additive shares, of which each party has one summand"):
        variant_for(api.in_process_committee(3, "rep-field"), "round_mask_open_one", lwe_parameters("lwe64-p2"))


@pytest.mark.parametrize("name", LWE_SETS)
def test_as_many_triples_as_the_comparison_has_ands(name: str) -> None:
    variant = LweVariant("round_ltz_circuit", lwe_parameters(name), triples=True)
    ands = comparison_ands(variant.parameters.noise_length)
    assert ands == below_ands(variant.parameters.noise_length) and variant.sections[-1].rows == 3 * ands


def test_triples_of_bits_are_not_converted_modulo_2() -> None:
    """Shares of bits are shares modulo 2: what `and_triples` stores is not converted, so only the ANDs talk."""

    def job(context: PartyContext) -> tuple[Any, int]:
        made = ShareVector()
        cost = context.backend.run("semi2k", "Z2^1", and_triples(size=500, count=4), shares=made).stats
        return made.words[0].reshape(4, 3, 500).copy(), cost["bytes_sent"] - cost["offline_bytes_sent"]

    results = run_in_process(api.in_process_committee(2, "semi"), job)
    a, b, c = np.moveaxis(results[0][0] ^ results[1][0], 1, 0)
    assert np.array_equal(c, a & b) and set(np.unique(a)) == set(np.unique(b)) == {0, 1}
    assert [sent for _, sent in results] == [2 * 2048 // 8] * 2  # 2 bits an AND, in whole words


def test_costs_of_runs_on_one_engine_add_up() -> None:
    """Each run is told its own, correlated randomness included."""

    def job(context: PartyContext) -> None:
        backend = context.backend
        assert isinstance(backend, Embedded)
        runs = [
            backend.run("semi2k", "Z2^1", and_triples(size=size, count=4), shares=ShareVector(), mode=Mode(keep=True))
            for size in (500, 500, 500, 9000)
        ]
        [kept] = backend._kept.values()
        told: Counter[str] = Counter()
        for run in runs:
            told.update(run.stats)
        assert told == kept.engine.stats() and told["offline_bytes_sent"] > 0
        unused = {name: made - used for name, (made, used) in kept.engine.preprocessed().items() if made != used}
        left: Counter[str] = Counter()
        for run in runs:
            left.update(run.unused)
        assert unused and {name: n for name, n in left.items() if n} == unused
        assert all(backend.stats()[name] == told[name] for name in ("offline_rounds", "offline_bytes_sent"))

    run_in_process(api.in_process_committee(2, "semi"), job)


@pytest.mark.parametrize("name", ["lwe64-p2", "lwe64-p32"])
def test_no_room_for_flooding(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} is too small for flooding"):
        LweVariant("round_flood", lwe_parameters(name))


@pytest.mark.parametrize("name", ["lwe64-p16", "lwe53-p16"])
def test_flooding(name: str) -> None:
    parameters = lwe_parameters(name)
    committee = api.in_process_committee(2, "semi")
    rng, bound = np.random.default_rng(9), 1 << parameters.noise_bits
    messages = rng.integers(0, 16, 30)
    noise = np.resize([bound - 1, -bound, 0], 30)
    variant = LweVariant("round_flood", parameters)

    def job(context: PartyContext) -> Any:
        group = RoundingGroup.of(context, 1, 0)
        context.seed = b"test seed"
        _, share = make_lwe_key(context, parameters)
        context.seed = None
        words = context.session.all_gather(share.words.tobytes())
        secret = sum(np.frombuffer(w, np.uint64).astype(object) for w in words) % parameters.modulus
        ciphertexts = encrypt(parameters, secret.astype(np.int64), messages, np.random.default_rng(1), noise)
        z = lwe_phases(context, group, share, ciphertexts)
        return variant.use(group, z, variant.make(group, 30), "all")

    for words in run_in_process(committee, job):
        assert np.array_equal(variant.messages(words[0]), messages)


@pytest.mark.parametrize(("name", "bits"), [("lwe64-p16", 57), ("lwe53-p16", 55)])
def test_flooding_hides_the_noise_as_it_is_in_the_ring(name: str, bits: int) -> None:
    """The largest noise, in phases as the parties have them when the flooding is added: 2^-40 of its range. In units of q it is 2^9 smaller for a prime
    of 53 bits, whose phases are scaled to 62."""
    parameters, committee = lwe_parameters(name), api.in_process_committee(2, "semi")
    bound, j = 1 << parameters.noise_bits, parameters.message_bits
    noise, messages = np.resize([bound, -bound], 20), np.zeros(20, np.int64)

    def job(context: PartyContext) -> Any:
        group = RoundingGroup.of(context, 1, 0)
        context.seed = b"test seed"
        _, share = make_lwe_key(context, parameters)
        context.seed = None
        words = context.session.all_gather(share.words.tobytes())
        secret = sum(np.frombuffer(w, np.uint64).astype(object) for w in words) % parameters.modulus
        return lwe_phases(context, group, share, encrypt(parameters, secret.astype(np.int64), messages, np.random.default_rng(1), noise))

    k, half = parameters.ring_bits, 1 << (parameters.noise_length - 1)
    phases = combine(run_in_process(committee, job), k).astype(object) - half
    largest = max(min(v % (1 << k), -v % (1 << k)) for v in phases)
    f = flooding_bits(parameters, FLOOD_SECURITY)
    assert f == bits and largest / 2.0 ** (f + 1) < 2.0**-FLOOD_SECURITY
    assert largest >= 2 ** (k - parameters.modulus.bit_length() + (0 if parameters.prime else 1)) * bound * 0.999
    assert 2.0**f + largest < half and 2.0 ** (f + j) < 2.0**k
    assert LweVariant("round_flood", parameters).sections == [Section(1, k)]


def test_shamir_does_not_share_modulo_powers_of_two() -> None:
    with pytest.raises(ParameterError, match="take lwe53-p16, lwe53-p16-eta52, or another committee"):
        run_in_process(api.in_process_committee(3, "shamir"), lambda c: make_lwe_key(c, lwe_parameters("lwe64-p2")))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("rounding", "size", "name"),
    [
        ("round_mask_open", 40, "lwe64-p2"), ("round_ltz_table", 3, "lwe64-p2"), ("round_ltz_circuit", 6, "lwe64-p2"),
        ("round_flood", 40, "lwe64-p16"),
    ],
)  # fmt: skip
def test_stored_material_with_macs(rounding: str, size: int, name: str) -> None:
    """spdz2k: exact at the borders; a changed share of the key or of any section ends in an abort, and nothing is opened."""
    committee, parameters = api.in_process_committee(2, "mascot"), lwe_parameters(name)
    variant = variant_for(committee, rounding, parameters, 4, 3)
    assert isinstance(variant, LweVariant) and variant.kind is ProvenNumbers and {(s.bits, s.words) for s in variant.sections} == {(64, 2)}
    keys = run_in_process(committee, lambda context: make_lwe_key(context, parameters))
    n = parameters.dimension
    secret = np.asarray(sum(share.words[0, : 2 * n : 2] for _, share in keys)).astype(np.int64)
    assert set(secret.tolist()) == {0, 1}
    rng, half = np.random.default_rng(2), 1 << parameters.noise_bits if rounding == "round_flood" else parameters.delta // 2
    messages = rng.integers(0, 1 << parameters.plain_bits, size)
    noise = None if rounding == "round_mask_open" else np.resize([half - 1, -half, 0], size)
    ciphertexts = encrypt(parameters, secret, messages, rng, noise)

    def job(context: PartyContext, changed: int | None = None) -> Any:
        group = RoundingGroup.of(context, 1, 0)
        z = lwe_phases(context, group, keys[context.party][1], ciphertexts)
        material = variant.make(group, size)
        assert [m.shape for m in material] == [(2, s.rows, 2 * size) for s in variant.sections]
        if context.party == 1 and changed is not None:
            (z if changed < 0 else material[changed])[0, ..., 0] += np.uint64(1)
        return variant.use(group, z, material, 0)

    results = run_in_process(committee, job)
    assert results[1] is None and np.array_equal(variant.messages(results[0][0]), messages)
    for changed in range(-1, len(variant.sections)):
        # The abort before burned the MAC key: a new committee, and shares under its key.
        committee = api.in_process_committee(2, "mascot")
        keys[:] = run_in_process(committee, lambda context: make_lwe_key(context, parameters))
        with pytest.raises(Exception, match=r"the MAC check of opened values failed"):
            run_in_process(committee, lambda context, changed=changed: job(context, changed))


def test_macs_do_not_follow_the_scaling_of_phases() -> None:
    with pytest.raises(
        ParameterError, match="scaled share by share, which MACs do not follow: take one of lwe64-p2, lwe64-p16, lwe64-p32, lwe64-p256"
    ):
        run_in_process(api.in_process_committee(2, "mascot"), lambda c: make_lwe_key(c, lwe_parameters("lwe53-p16")))


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="choose one of round_ltz_circuit"):
        LweVariant("round_up", lwe_parameters("lwe64-p2"))
    with pytest.raises(ParameterError, match="tables of width 20"):
        LweVariant("round_ltz_table", lwe_parameters("lwe64-p2"), 20)
