"""AES on LWE ciphertexts: gates with all masks and inputs, a block, what is opened, the bound on the noise, and items that serve once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.baselines.toprf_lwe.encryption import read_encrypted_bits, vectors
from bench.baselines.toprf_lwe.evaluate import Evaluator
from bench.baselines.toprf_lwe.key import PUBLIC_FILE, PUBLIC_KEY, public_key_of, round_keys_of
from bench.baselines.toprf_lwe.keygen import GateRequest, generate
from bench.baselines.toprf_lwe.parameters import gate_parameters
from bench.baselines.toprf_lwe.public import GateCiphertexts
from bench.baselines.toprf_lwe.tables import gate_rounding, gate_tables
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum import api
from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, ParameterError, PoolTooSmall
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.programs.signatures import sample_bits
from keyquorum.schemes.circuit import Circuit, Forms, Wire, aes_forms
from keyquorum.sharing.variants import Preprocessing
from scipy import stats

from tests.long import LONG
from tests.programs.test_aes import VECTORS, schedule
from tests.schemes.test_prf_tables import opened, summands

TOY = replace(gate_parameters("lwe32-p2-seed003"), name="toy", dimension=16)
KEY_ID = "ab" * 16
GATES = 128
PROTOCOLS = pytest.mark.parametrize(("protocol", "parties"), [("ring", 3), ("semi2k", 2)])
FALSE_ALARM = 1e-6


def gates_of(wires: list[Wire]) -> Sequence[Wire]:
    """An AND, a NAND, and an AND of sums of every pair of inputs; its last layer has the results of the first as inputs."""
    left, right = wires[:GATES], wires[GATES:]
    made = [x & y for x, y in zip(left, right, strict=True)]
    return [*made, *(~z for z in made), *((z ^ x) & ~y for x, y, z in zip(left, right, made, strict=True))]


FORMS = Circuit.of(gates_of, 2 * GATES).forms()
INPUTS = np.tile(np.array([[0, 0, 1, 1], [0, 1, 0, 1]], np.uint8), GATES // 4).reshape(-1)


class Toy:
    """A secret of n = 16, and the pools for a circuit, at one party."""

    def __init__(self, context: PartyContext, committee: Committee, rounding: str = "round_ltz_circuit") -> None:
        secret = ShareVector()
        protocol = committee.ring_protocol
        assert protocol is not None
        context.backend.run(protocol, TOY.domain, sample_bits(size=TOY.dimension), shares=secret, mode=Mode(committee.threshold))
        self.secret, group = secret.words.copy(), pool_group(context)
        self.kind = gate_tables(committee, TOY, KEY_ID, FORMS, 2 * GATES, self.secret)
        rounding_kind = gate_rounding(committee, TOY, rounding)
        self.tables, self.masks = Pool(context, group, self.kind), Pool(context, group, rounding_kind)
        self.evaluator = Evaluator(context, group, FORMS, self.secret, None, self.kind, rounding_kind)
        self.seen: list[Any] = []
        plain = self.evaluator._decrypt

        def looked_at(phases: Any, masks: Any) -> Any:
            self.seen.append(plain(phases, masks))
            return self.seen[-1]

        self.evaluator._decrypt = looked_at  # type: ignore[method-assign]

    def fill(self, count: int) -> None:
        self.tables.fill(count)
        self.masks.fill(count * self.evaluator.decryptions)

    def evaluate(self, bits: Any, count: int, again: Any = None) -> tuple[Any, Any]:
        """The shares of the results, and the items. ``again``: items that are used instead, although they were used."""
        with self.tables.claimed(count, "test") as items, self.masks.claimed(count * self.evaluator.decryptions, "test") as masks:
            given, bound = items.take(count)
            kept = [section.copy() for section in given]
            used = Preprocessing(section.copy() for section in (kept if again is None else again))
            return self.evaluator.evaluate(np.repeat(bits[:, :, None], count, axis=2), used, masks, bound), kept

    def close(self) -> None:
        self.tables.close()
        self.masks.close()
        self.evaluator.close()


def with_toy(committee: Committee, job: Callable[[PartyContext, Toy], Any], rounding: str = "round_ltz_circuit") -> list[Any]:
    def one(context: PartyContext) -> Any:
        toy = Toy(context, committee, rounding)
        try:
            return job(context, toy)
        finally:
            toy.close()

    return run_in_process(committee, one, timeout=60)


def decrypted(secret: Any, seed: bytes, bodies: Any) -> tuple[Any, Any]:
    """Bits and noise of ciphertexts, with the secret in clear text."""
    a = vectors(seed, range(bodies.size), secret.size)
    phases = bodies - (a.astype(np.uint64) @ secret.astype(np.uint64)).astype(np.uint32)
    bits = ((phases + np.uint32(1 << 30)) >> np.uint32(31)).astype(int)
    return bits, (phases - (bits.astype(np.uint32) << np.uint32(31))).view(np.int32)


@PROTOCOLS
@pytest.mark.parametrize("rounding", ["round_ltz_circuit", "round_ltz_table"])
def test_every_gate_with_all_masks_and_inputs(tmp_path: Path, protocol: str, parties: int, rounding: str) -> None:
    """The tables are those of the masks, noise is within its bound, and results are right for each combination of masks and inputs; all are there."""
    committee, count = api.init(tmp_path / "committee", parties, protocol), 3
    shares = summands(committee, INPUTS)

    def job(context: PartyContext, toy: Toy) -> Any:
        toy.fill(count)
        made, items = toy.evaluate(shares[context.party], count)
        return made, toy.seen, [toy.kind.item(Preprocessing(items), i) for i in range(count)], toy.secret

    results = with_toy(committee, job, rounding)
    assert all(np.array_equal(a, b) for r in results for a, b in zip(r[1], results[0][1], strict=True))
    x, y = INPUTS[:GATES], INPUTS[GATES:]
    got = opened(committee, [r[0] for r in results])
    want = np.concatenate([x & y, 1 - (x & y), ((x & y) ^ x) & (1 - y)])
    assert np.array_equal(got, np.repeat(want[:, None], count, axis=1))
    known: dict[int, Any] = {}
    for party, r in enumerate(results):
        known |= dict(zip(committee.capabilities.held(party, committee.size, committee.threshold), r[3], strict=True))
    secret = np.sum(list(known.values()), axis=0, dtype=np.uint64).astype(np.uint32)
    assert set(secret.tolist()) <= {0, 1}
    combinations = set()
    for number in range(count):
        _, item = results[0][2][number]
        assert all(np.array_equal(r[2][number][1].bodies, item.bodies) for r in results)
        bits, noise = decrypted(secret, item.seed, item.bodies)
        assert np.abs(noise).max() <= 1 << TOY.noise_bound and np.abs(noise).max() > 1 << TOY.noise_bound - 2
        masks, gates = bits[: 5 * GATES], bits[5 * GATES :].reshape(6, -1)
        assert np.array_equal(masks, opened(committee, [r[2][number][0] for r in results]).astype(int))
        r0, r1 = gates[:2]
        for entry, (u, v) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
            assert np.array_equal(gates[2 + entry], (u ^ r0) & (v ^ r1))
        combinations |= set(zip(x, y, r0[:GATES], r1[:GATES], strict=True))
    assert len(combinations) == 16


def test_only_masked_bits_are_opened(tmp_path: Path) -> None:
    """Constant inputs: what all parties see is uniform, at gates and outputs, and so is each party's share of the result."""
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    shares = summands(committee, np.ones(2 * GATES, np.uint8))

    def job(context: PartyContext, toy: Toy) -> Any:
        toy.fill(10)
        made, _ = toy.evaluate(shares[context.party], 10)
        return toy.seen, made

    seen, share = with_toy(committee, job)[0]
    assert [bits.shape for bits in seen] == [(2 * GATES, 10), (2 * GATES, 10), (3 * GATES, 10)]
    for bits in (*seen, share[0]):
        ones = int(bits.sum())
        assert stats.binomtest(ones, bits.size).pvalue > FALSE_ALARM


def test_an_item_that_is_used_twice_tells_which_bits_are_equal(tmp_path: Path) -> None:
    """The attack that the claims exclude: the same masks on two inputs. With an item for each, the openings say nothing."""
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    rng = np.random.default_rng()
    inputs = [rng.integers(0, 2, 2 * GATES, np.uint8) for _ in range(2)]
    shares = [summands(committee, bits) for bits in inputs]

    def job(context: PartyContext, toy: Toy) -> Any:
        toy.fill(3)
        _, kept = toy.evaluate(shares[0][context.party], 1)
        toy.evaluate(shares[1][context.party], 1, again=kept)
        toy.evaluate(shares[1][context.party], 1)
        return toy.seen

    seen = with_toy(committee, job)[0]
    difference = inputs[0] ^ inputs[1]
    assert np.array_equal((seen[0] ^ seen[3])[:, 0], difference)
    assert not np.array_equal((seen[0] ^ seen[6])[:, 0], difference)


@pytest.mark.parametrize("point", ["claim/before", "claim/durable", "take/read"])
def test_stopped_parties_use_no_item_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Parties that stop after the claim have used the item up; before it nothing was opened. The next evaluation takes another item."""

    class Stopped(BaseException):
        pass

    committee = api.init(tmp_path / "committee", 2, "semi2k")
    shares = summands(committee, INPUTS)

    def stops(context: PartyContext, toy: Toy) -> int:
        toy.fill(4)
        context.session.compare("filled", b"")

        def stop(name: str) -> None:
            if name == point:
                raise Stopped

        monkeypatch.setattr(checkpoints, "hook", stop)
        with pytest.raises(Stopped):
            toy.evaluate(shares[context.party], 1)
        return len(toy.seen)

    assert with_toy(committee, stops) == [0, 0]
    monkeypatch.setattr(checkpoints, "hook", None)
    made, used = pool_status(pools_folder(committee, 0) / f"toy-gates-{KEY_ID[:16]}")
    assert made == 4 and (used == 0 if point == "claim/before" else used >= 1)


def test_sums_never_reach_the_border() -> None:
    """Bound in code: AES adds at most 59 ciphertexts and a mask. With more than 4,095 the set is refused."""
    forms = aes_forms()
    assert (forms.ands, len(forms.layers), forms.longest) == (5760, 40, 59) and forms.widths[:4] == [144, 48, 96, 288]
    for name in ("lwe32-p2", "lwe32-p2-seed003"):
        p = gate_parameters(name)
        p.check_sums(forms.longest)
        assert (forms.longest + 1) << p.noise_bound < 1 << p.noise_bits < p.modulus >> 2
        assert p.deviation * (forms.longest + 1) ** 0.5 < 2**20.2
        p.check_sums(4094)
        with pytest.raises(ParameterError, match="may reach the border"):
            p.check_sums(4095)


def clear(forms: Forms, bits: Any) -> Any:
    """The outputs of a circuit in the clear, by its sums."""
    known = np.zeros((1, forms.inputs + forms.ands, 1), np.uint32)
    known[0, : forms.inputs, 0] = bits
    first = forms.inputs
    for sums, width in zip(forms.layers, forms.widths, strict=True):
        both = (sums.evaluate(known)[0, :, 0] + sums.constants) % 2
        known[0, first : first + width, 0] = both[:width] & both[width:]
        first += width
    return (forms.outputs.evaluate(known)[0, :, 0] + forms.outputs.constants) % 2


def test_the_sums_of_aes_are_aes() -> None:
    for key, plain, cipher in VECTORS:
        bits = np.concatenate([np.unpackbits(np.frombuffer(bytes.fromhex(plain), np.uint8), bitorder="little"), schedule(bytes.fromhex(key)).ravel()])
        assert np.packbits(clear(aes_forms(), bits).astype(np.uint8), bitorder="little").tobytes() == bytes.fromhex(cipher)


@pytest.mark.parametrize(
    ("protocol", "parties", "name"), [("semi2k", 2, "lwe32-p2-seed003"), ("ring", 3, "lwe32-p2-seed003"), ("semi2k", 2, "lwe32-p2")]
)
def test_a_block(tmp_path: Path, protocol: str, parties: int, name: str) -> None:
    """A key, an item, and a block: AES of another library under the key that all shares give. Then the same block, encrypted under the public key."""
    if not LONG and (protocol, name) != ("semi2k", "lwe32-p2-seed003"):
        pytest.skip("seconds: KEYQUORUM_LONG=1")
    committee, p, forms = api.init(tmp_path / "committee", parties, protocol), gate_parameters(name), aes_forms()
    point = bytes.fromhex(VECTORS[0][1])
    shares = summands(committee, np.unpackbits(np.frombuffer(point, np.uint8), bitorder="little"))
    encrypted: list[GateCiphertexts] = []

    def job(context: PartyContext) -> Any:
        material = generate(context, GateRequest(p))
        secret, keys = material.shares
        group, own = pool_group(context), round_keys_of(material.public[PUBLIC_FILE], material.info, "the key")
        kind, rounding = gate_tables(committee, p, material.info.key_id, forms, 128, secret.words.copy()), gate_rounding(committee, p)
        tables, masks = Pool(context, group, kind), Pool(context, group, rounding)
        evaluator = Evaluator(context, group, forms, secret.words, own, kind, rounding)
        try:
            tables.fill(2)
            masks.fill(evaluator.decryptions + evaluator.decryptions_encrypted)
            with tables.claimed(1, "a block") as items, masks.claimed(evaluator.decryptions, "a block") as claimed:
                given, bound = items.take(1)
                made = evaluator.evaluate(shares[context.party][:, :, None], given, claimed, bound)
            if context.party == 0:
                key = public_key_of(material.public[PUBLIC_KEY], material.info, "the key")
                encrypted.append(key.encrypt(np.unpackbits(np.frombuffer(point, np.uint8), bitorder="little").tolist()))
            context.session.compare("encrypted", b"")
            with tables.claimed(1, "encrypted") as items, masks.claimed(evaluator.decryptions_encrypted, "encrypted") as claimed:
                again = evaluator.evaluate_encrypted(encrypted, items.take(1)[0], claimed)
            with pytest.raises(PoolTooSmall, match="needs 1 items, has 0"), tables.claimed(1, "another block"):
                pass
            return made, keys.words.copy(), again
        finally:
            for one in (tables, masks, evaluator):
                one.close()

    results = run_in_process(committee, job, timeout=120)
    key = np.packbits((opened(committee, [r[1] for r in results])[:128] & np.uint64(1)).astype(np.uint8), bitorder="little").tobytes()
    values = [np.packbits(opened(committee, [r[i] for r in results])[:, 0].astype(np.uint8), bitorder="little").tobytes() for i in (0, 2)]
    assert values[0] == values[1] == Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(point)


def test_what_is_refused(tmp_path: Path) -> None:
    p, committee = gate_parameters("lwe32-p2"), api.in_process_committee(2, "semi2k")
    with pytest.raises(ParameterError, match="round_mask_open is wrong with probability"):
        gate_rounding(committee, p, "round_mask_open")
    with pytest.raises(ParameterError, match="flooding that hides noise of 2\\^24 with 40 bits of security does not fit"):
        gate_rounding(committee, p, "round_flood")
    for protocol, reason in (("shamir", "over prime fields alone"), ("spdz2k", "tables with MACs are not made")):
        with pytest.raises(ParameterError, match=reason):
            GateRequest(p).check_committee(api.in_process_committee(3, protocol))
    with pytest.raises(ParameterError, match="unknown parameter set 'lwe32'"):
        gate_parameters("lwe32")
    for data in (b"", b"KQLWEGT1", b"KQLWE002" + bytes(40)):
        with pytest.raises(KeyFileError, match="no encrypted bits, or damaged ones"):
            read_encrypted_bits(data, 1408, "a file")
    assert "for comparison only" in GateRequest(gate_parameters("lwe32-p2-seed003")).warnings()[0] and not GateRequest(p).warnings()
