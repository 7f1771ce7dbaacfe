"""The public key of an LWE secret with tables: its noise, encryption, evaluation of encrypted inputs; and why whoever encrypts is trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.baselines.toprf_lwe.encryption import SEED, EncryptedBits, vectors
from bench.baselines.toprf_lwe.key import PUBLIC_KEY, GateKeyInfo, load_public_key
from bench.baselines.toprf_lwe.parameters import NAMES, gate_parameters
from bench.baselines.toprf_lwe.public import GateCiphertexts, GatePublicKey, failure_bits, make_public_key, public_deviation, samples_of
from bench.baselines.toprf_lwe.stored import load_gate_key
from keyquorum import api
from keyquorum.backends.base import Mode
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import run_job
from keyquorum.schemes.key_folder import load_shares
from keyquorum.sharing.variants import Preprocessing
from scipy import stats

from tests.schemes.test_prf_lwe import FORMS, GATES, INPUTS, PROTOCOLS, TOY, Toy, with_toy
from tests.schemes.test_prf_tables import opened

FALSE_ALARM = 1e-6


def secret_of(committee: Committee, key: str) -> Any:
    """s, from the share files of all parties."""
    summands: dict[int, Any] = {}
    for party in range(committee.size):
        folder = committee.key_folder(party, key)
        share = load_shares(folder, load_gate_key(folder), party)[0]
        held = committee.capabilities.held(party, committee.size, committee.threshold)
        summands |= dict(zip(held, share.words.copy(), strict=True))
    return np.sum(list(summands.values()), axis=0, dtype=np.uint64).astype(np.uint32)


def noise_of(secret: Any, a: Any, b: Any, bits: Any) -> Any:
    """Noise of ciphertexts of known bits."""
    phases = b - (a.astype(np.uint64) @ secret.astype(np.uint64)).astype(np.uint32)
    return (phases - (np.asarray(bits, np.uint32) << np.uint32(31))).view(np.int32).astype(np.int64)


@pytest.mark.parametrize("name", ["lwe32-p2-seed003"])
def test_the_noise_is_that_of_half_the_samples(tmp_path: Path, name: str) -> None:
    """A key of processes' form, with z samples of bounded noise. Given the key, noise of ciphertexts has mean sum(e)/2 and variance sum(e^2)/4, tested with
    1,000 ciphertexts, and the variance of the key's samples is that of the set, within 7 deviations. Vectors a of ciphertexts look uniform."""
    committee, p = api.init(tmp_path / "committee", 2, "semi2k"), gate_parameters(name)
    job = {"kind": "bench:gates-keygen", "key": "gates", "parameters": name}
    run_in_process(committee, lambda context: run_job(context, job), timeout=120)
    folder = committee.key_folder(1, "gates")
    public, secret = load_public_key(folder, load_gate_key(folder)), secret_of(committee, "gates")
    assert public.zeros.bodies.size == samples_of(p) == 16_672 and (folder / PUBLIC_KEY).stat().st_size < 67_000
    own = noise_of(secret, vectors(public.zeros.seed, range(16_672), p.dimension), public.zeros.bodies, np.zeros(16_672))
    assert np.abs(own).max() <= 1 << p.noise_bound
    deviation = np.sqrt(np.mean(own.astype(float) ** 4) - p.deviation**4)  # of e^2
    assert abs(np.mean(own.astype(float) ** 2) - p.deviation**2) < 7 * deviation / np.sqrt(own.size)
    bits = np.random.default_rng(3).integers(0, 2, 1000)
    made = public.encrypt(bits.tolist())
    noise = noise_of(secret, made.a, made.b, bits)
    assert np.abs(noise).max() < 1 << 30
    scaled = (noise - own.sum() / 2) / np.sqrt((own.astype(float) ** 2).sum() / 4)
    assert abs(scaled.sum()) < 5.5 * np.sqrt(scaled.size)
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], scaled.size)
    assert low < (scaled**2).sum() < high
    counts = np.bincount(made.a.view(np.uint8).reshape(-1), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_ciphertexts_are_decrypted_rightly() -> None:
    """By a bound that no key of a shipped set exceeds with probability above 2^-400; the deviation is 2^6 below the border at least."""
    for name, samples in zip(NAMES, (20_448, 16_672), strict=True):
        p = gate_parameters(name)
        assert samples_of(p) == samples and failure_bits(p) > 400
        assert public_deviation(p) * 2**6 < p.modulus >> 2
    assert failure_bits(replace(TOY, noise_bound=27)) < 1


def with_public_key(context: PartyContext, toy: Toy) -> GatePublicKey:
    protocol = context.committee.ring_protocol
    assert protocol is not None

    def run(call: Any, seed: bytes | None = None, **files: Any) -> Any:
        return context.backend.run(protocol, TOY.domain, call, **files, mode=Mode(context.committee.threshold, seed=seed)).words

    return make_public_key(run, TOY, toy.secret, context.session.toss(SEED))


def evaluated(context: PartyContext, toy: Toy, inputs: GateCiphertexts) -> Any:
    count = toy.evaluator.decryptions_encrypted
    toy.tables.fill(1)
    toy.masks.fill(count)
    with toy.tables.claimed(1, "test") as items, toy.masks.claimed(count, "test") as masks:
        given, _ = items.take(1)
        made = toy.evaluator.evaluate_encrypted([inputs], Preprocessing(section.copy() for section in given), masks)
        assert masks._next == masks._end
        return made


@PROTOCOLS
def test_encrypted_inputs_have_the_same_results(tmp_path: Path, protocol: str, parties: int) -> None:
    committee = api.init(tmp_path / "committee", parties, protocol)
    made: list[GateCiphertexts] = []

    def job(context: PartyContext, toy: Toy) -> Any:
        public = with_public_key(context, toy)
        if context.party == 0:
            made.append(public.encrypt(INPUTS.tolist()))
        context.session.compare("encrypted", b"")
        return evaluated(context, toy, made[0]), toy.seen

    results = with_toy(committee, job)
    x, y = INPUTS[:GATES], INPUTS[GATES:]
    want = np.concatenate([x & y, 1 - (x & y), ((x & y) ^ x) & (1 - y)])
    assert np.array_equal(opened(committee, [r[0] for r in results])[:, 0], want)
    seen = results[0][1][0][:, 0]  # the inputs, masked
    assert not np.array_equal(seen, INPUTS) and stats.binomtest(int((seen ^ INPUTS).sum()), INPUTS.size).pvalue > FALSE_ALARM


def test_chosen_ciphertexts_tell_the_secret(tmp_path: Path) -> None:
    """The attack for which encrypted inputs are not taken from receivers: (2^31 u_i, 0) decrypts to s_i, and a result of known gates has it. With shares of
    the same request in place of ciphertexts nothing of s is in it."""
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    a, b = np.zeros((2 * GATES, TOY.dimension), np.uint32), np.zeros(2 * GATES, np.uint32)
    for gate in range(GATES):
        a[gate, gate % TOY.dimension] = 1 << 31
    b[GATES:] = 1 << 31

    def job(context: PartyContext, toy: Toy) -> Any:
        return evaluated(context, toy, GateCiphertexts(TOY, a, b)), toy.secret

    results = with_toy(committee, job)
    secret = np.sum([r[1][0] for r in results], axis=0, dtype=np.uint64).astype(np.uint32)
    learned = opened(committee, [r[0] for r in results])[: TOY.dimension, 0]
    assert np.array_equal(learned, secret) and set(secret.tolist()) <= {0, 1}


def test_refused(tmp_path: Path) -> None:
    p = gate_parameters("lwe32-p2")
    with pytest.raises(ParameterError, match=r"give a of 630 words each"):
        GateCiphertexts(p, np.zeros((2, 629), np.uint32), np.zeros(2, np.uint32))
    key = GatePublicKey(EncryptedBits(TOY, bytes(SEED), np.zeros(samples_of(TOY), np.uint32)))
    for bits in ([2], [-1]):
        with pytest.raises(ParameterError, match="bits are 0 or 1"):
            key.encrypt(bits)
    committee = api.init(tmp_path / "committee", 2, "semi2k")

    def job(context: PartyContext, toy: Toy) -> None:
        toy.tables.fill(1)
        for inputs in ([], [key.encrypt([1])]):
            with pytest.raises(ParameterError, match=r"each takes one|1 ciphertexts of toy: an evaluation takes 256 of toy"):
                toy.evaluator.evaluate_encrypted(inputs, toy.tables.take(1, "x")[0] if inputs else Preprocessing([np.zeros((1, 1, 1))]), None)  # type: ignore[arg-type]

    with_toy(committee, job)
    info = GateKeyInfo(key_id="ab" * 16, parameters=p, protocol="semi2k", parties=2, threshold=1, files={"round-keys.lwebits": "00" * 32})
    assert GateKeyInfo.from_json(info.to_json()) == info
    with pytest.raises(KeyFileError, match=r"this key was made without public.lwebits"):
        load_public_key(tmp_path, info)
    assert FORMS.inputs == 2 * GATES
