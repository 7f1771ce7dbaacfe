"""Any two of three parties with replicated shares use keys of every kind without the third one, whose folder is gone; what is refused; and counts of sets of parties that change."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.fhe.lwe import FHEW_SETS, TFHE_SETS, encrypt
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import CommitteeError, ParameterError, PartyError, PolicyError
from keyquorum.model.subset import decrypts_apart, subset_of
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans import noise_check
from keyquorum.plans.noise_check import refuse_noise_check
from keyquorum.schemes import counts as counts_module
from keyquorum.schemes.counts import claim_decryptions, decryptions_used, set_count
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.quorum_shares import LagrangeShares, OwnShares, ReplicatedShares, counting_parties, own_shares
from keyquorum.schemes.seal.key import load_seal_key
from keyquorum.schemes.tfhe import keygen as tfhe_keygen
from keyquorum.serve.client import RefusedByPolicy, make_receiver
from keyquorum.serve.kinds import Service, ToprfKind
from keyquorum.serve.kinds import toprf as toprf_module
from keyquorum.toprf import Toprf, set_policy

from tests.fhe.dealer import tiny
from tests.schemes.test_fhew import TINY as TINY_FHEW
from tests.schemes.test_prf import committee_with_key, key_of, reference
from tests.schemes.test_tfhe import TINY as TINY_TFHE
from tests.serve.test_toprf import Served

from .epochs.test_recover import lose, recovered
from .test_quorum_decryption import without_others
from .test_subset_decryption import decrypt, encrypted, run

PAIRS = tuple(combinations(range(3), 2))
POLICY = api.FloodPolicy(bits=1, decryptions=16, noise_bits=8)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Committee:
    """Three parties, of which one may be corrupted, with keys of LWE over a ring and over a field, and of small sets of BFV, BGV and CKKS."""
    committee = api.init(tmp_path_factory.mktemp("three") / "committee", 3, "rep-field", base_ot="curve25519")
    for key, name in (("ring", "lwe64-p2"), ("field", "lwe53-p16"), ("bfv", tiny("bfv", 2)), ("bgv", tiny("bgv", 2)), ("ckks", tiny("ckks", 3))):
        run(committee, api.keygen_job(key, name, relin=False, **({"policy": POLICY} if key == "ckks" else {})))
    return committee


def total(committee: Committee, key: str, numbers: tuple[int, ...], shares: OwnShares) -> list[np.ndarray]:
    """The sum of the additive shares of a subset, in the domain of each vector."""
    info, sums = load_key(committee.key_folder(numbers[0], key)), list[np.ndarray]()
    for party in range(len(numbers)):
        _, mine = shares.load(committee.key_folder(numbers[party], key), info, subset_of(committee, numbers), party, None)
        sums = [share.words[0].astype(object) + (sums[i] if sums else 0) for i, share in enumerate(mine)]
    return [one % Domain.parse(vector.domain).modulus for one, vector in zip(sums, info.secrets, strict=True)]


@pytest.mark.parametrize("key", ["ring", "field", "bfv", "ckks"])
def test_all_pairs_share_the_secret_of_all_three(three: Committee, key: str) -> None:
    """In every domain of the key: the sum of the first summands of the three parties."""
    info = load_key(three.key_folder(0, key))
    whole = [load_shares(three.key_folder(party, key), info, party) for party in range(3)]
    for numbers in PAIRS:
        for index, found in enumerate(total(three, key, numbers, ReplicatedShares())):
            wanted = sum(shares[index].words[0].astype(object) for shares in whole) % Domain.parse(info.secrets[index].domain).modulus
            assert np.array_equal(found, wanted)


def test_a_summand_that_both_take_is_no_sharing(three: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both members add up all that they hold: what the rule of the first holder is for."""
    right = total(three, "ring", (0, 1), ReplicatedShares())[0]
    monkeypatch.setattr(ReplicatedShares, "additive", lambda self, subset, party, words, domain: words.sum(axis=0))
    assert not np.array_equal(total(three, "ring", (0, 1), ReplicatedShares())[0], right)


@pytest.mark.parametrize(("protocol", "size", "threshold", "q"), [("rep-field", 3, 1, 3), ("shamir", 3, 1, 5)])
def test_one_of_two_learns_nothing_from_its_own_share(protocol: str, size: int, threshold: int, q: int) -> None:
    """All sharings of all secrets modulo a small prime: what a member has is distributed alike for each secret, and both together have it."""
    views: dict[tuple[int, int, int], Counter[tuple[int, ...]]] = {}
    for secret, randomness in product(range(q), product(range(q), repeat=size - 1 if protocol == "rep-field" else threshold)):
        if protocol == "rep-field":
            summands = [*randomness, (secret - sum(randomness)) % q]
            held = [(summands[party], summands[party - 1]) for party in range(3)]
        else:
            held = [((secret + sum(r * (party + 1) ** (k + 1) for k, r in enumerate(randomness))) % q,) for party in range(size)]
        for numbers in combinations(range(size), threshold + 1):
            subset, own = subset_of(_shape(protocol, size, threshold), numbers), own_shares(_shape(protocol, size, threshold))
            assert own is not None
            mine = [
                int(own.additive(subset, i, np.array([[w] for w in held[n]], np.uint64), Domain.parse(f"F_{q}"))[0]) for i, n in enumerate(numbers)
            ]
            assert sum(mine) % q == secret
            for index, number in enumerate(numbers):
                views.setdefault((secret, PAIRS.index(cast(tuple[int, int], numbers)), index), Counter())[(*held[number], mine[index])] += 1
    for (_, numbers_, index), view in views.items():
        assert view == views[0, numbers_, index]


def _shape(protocol: str, size: int, threshold: int) -> Committee:
    parties = tuple(api.Party(i, "127.0.0.1", 1 + i, "") for i in range(size))
    return Committee(Path("nowhere"), "toy", protocol, threshold, parties)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lwe_by_every_pair(three: Committee, tmp_path: Path) -> None:
    """Over a ring and over a field, with a pool of each pair, to both members."""
    messages = [1, 0, 1, 1]
    for key, name in (("ring", "lwe64-p2"), ("field", "lwe53-p16")):
        path = encrypted(three, tmp_path, messages, key)
        for numbers in PAIRS:
            with without_others(three, numbers):
                run(three, api.pool_fill_job(three, name, "round_ltz_circuit", 8, parties=numbers))
                assert all(decrypt(three, path, numbers, receiver, key=key) == messages for receiver in numbers)


@pytest.mark.parametrize("key", ["bfv", "bgv"])
def test_seal_by_every_pair(three: Committee, tmp_path: Path, key: str) -> None:
    values = np.random.default_rng(1).integers(-100, 100, 256)
    api.encrypt(three, key, values.tolist(), tmp_path / "x.ct")
    for numbers in PAIRS:
        with without_others(three, numbers):
            assert np.array_equal(by_job(three, key, tmp_path, numbers), values)


def test_all_ten_subsets_of_five(tmp_path: Path) -> None:
    """`shamir` with t = 2 and a small set of BFV."""
    committee = api.init(tmp_path / "committee", 5, "shamir", threshold=2, base_ot="curve25519")
    run(committee, api.keygen_job("bfv", tiny("bfv", 2), relin=False))
    values = np.random.default_rng(1).integers(-100, 100, 256)
    api.encrypt(committee, "bfv", values.tolist(), tmp_path / "x.ct")
    for numbers in combinations(range(5), 3):
        with without_others(committee, numbers):
            assert np.array_equal(by_job(committee, "bfv", tmp_path, numbers), values)


def by_job(
    committee: Committee, key: str, folder: Path, numbers: tuple[int, ...] | None, rounding: str = "round_ltz_circuit", **more: bool
) -> np.ndarray:
    """The values of ``x.ct``, decrypted to the last of these parties."""
    receiver, output = (numbers or (0,))[-1], folder / "out.plain"
    output.unlink(missing_ok=True)
    job = api.decrypt_job(committee, key, [folder / "x.ct"], receiver, [output], rounding, parties=numbers, **more)
    run_in_process(committee if numbers is None else subset_of(committee, numbers), lambda context: run_job(context, job), timeout=60)
    return np.asarray(api.decode(committee, key, output))


def test_keys_of_fhew_and_tfhe(three: Committee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sets of their forms, one pair each."""
    monkeypatch.setitem(FHEW_SETS, TINY_FHEW.name, TINY_FHEW)
    monkeypatch.setitem(TFHE_SETS, TINY_TFHE.name, TINY_TFHE)
    monkeypatch.setattr("keyquorum.schemes.fhew.keygen.BODIES", 4 * 2 * TINY_FHEW.levels * TINY_FHEW.dimension)
    monkeypatch.setattr(tfhe_keygen, "BOOTSTRAPPING_CHUNK", 4 * 2 * TINY_TFHE.pbs_level * TINY_TFHE.dimension)
    for key, parameters, numbers in (("fhew", TINY_FHEW, (0, 2)), ("tfhe", TINY_TFHE, (1, 2))):
        run(three, api.keygen_job(key, parameters.name))
        path, rng = tmp_path / f"{key}.lwe", np.random.default_rng(2)
        messages = rng.integers(0, 8, 8)
        if key == "fhew":
            api.encrypt(three, key, messages.tolist(), path)
        else:
            secret = total(three, key, (0, 1), ReplicatedShares())[0].astype(np.int64)
            path.write_bytes(encrypt(TINY_TFHE, secret, messages, rng).to_bytes(load_key(three.key_folder(0, key)).key_id))
        with without_others(three, numbers):
            run(three, api.pool_fill_job(three, parameters.name, "round_ltz_circuit", 8, parties=numbers))
            assert decrypt(three, path, numbers, numbers[0], key=key) == messages.tolist()


def test_aes_by_every_pair(tmp_path: Path) -> None:
    """Served by two while the third one's folder is gone; nothing was shared before. Values are those of the whole committee."""
    committee = committee_with_key(tmp_path, "rep-field", 3)
    identity, _ = make_receiver(committee, "web")
    for party in range(3):
        set_policy(committee, party, "prf", 10)
    wanted, key_id = reference(key_of(committee), b"x"), load_key(committee.key_folder(0, "prf")).key_id
    for numbers in PAIRS:
        with without_others(committee, numbers):
            served = Served(subset_of(committee, numbers), b"", key_id, identity)
            served.start()
            try:
                with Toprf(committee, "prf", identity, wait=20.0, parties=numbers) as toprf:
                    assert toprf.evaluate(b"x") == wanted
            finally:
                served.stop()
        assert not served.failures


@pytest.mark.parametrize("learned", [True, False])
def test_a_receiver_gets_no_more_from_pairs_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learned: bool) -> None:
    """Three evaluations an hour, whichever pairs serve. Where members do not learn what was counted without them, the third pair gives more. What was counted is longer than a message."""
    monkeypatch.setattr(toprf_module, "PIECE", 50)
    committee = committee_with_key(tmp_path, "rep-field", 3)
    identity, _ = make_receiver(committee, "web")
    for party in range(3):
        set_policy(committee, party, "prf", 3)
    if not learned:
        monkeypatch.setattr(ToprfKind, "begin", lambda self, context: None)
    key_id, got = load_key(committee.key_folder(0, "prf")).key_id, []
    for numbers, tries in ((0, 1), 2), ((1, 2), 1), ((0, 2), 2):
        served = Served(subset_of(committee, numbers), b"", key_id, identity)
        served.start()
        try:
            with Toprf(committee, "prf", identity, wait=20.0, parties=numbers) as toprf:
                for _ in range(tries):
                    try:
                        toprf.evaluate(b"x")
                    except RefusedByPolicy as error:
                        got.append("3 are used: 1 more are refused" in str(error))
                    else:
                        got.append("answered")
        finally:
            served.stop()
        assert not served.failures
    assert got == (["answered"] * 3 + [True] * 2 if learned else ["answered"] * 4 + [True])


@pytest.mark.parametrize("sent", [b"", bytes(32) + (801).to_bytes(8, "little"), bytes(40), None])
def test_what_is_no_count_of_evaluations_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes | None) -> None:
    """No length, more messages than one party may send, or nothing. What a party says in its place is heard (None), in many messages."""
    monkeypatch.setattr(toprf_module, "PIECE", 8)
    monkeypatch.setattr(toprf_module, "MOST_PIECES", 100)
    committee = committee_with_key(tmp_path, "rep-field", 3)
    make_receiver(committee, "web")
    pair = subset_of(committee, (0, 1))
    for each in range(3):
        set_policy(committee, each, "prf", 3)
    for number in (0, 1):
        kind = ToprfKind(pair, number, Service("prf"))
        kind._evaluations.claim([("1" * 64, f"request {number}", 1)])
        kind.close()

    class Sends:
        def __init__(self, core: Any) -> None:
            self.core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def all_gather(self, data: bytes) -> Any:
            return self.core.all_gather(data if sent is None else sent)

    def party(context: PartyContext) -> int:
        if context.party == 1:
            context.session = cast(Any, Sends(context.session))
        kind = ToprfKind(pair, context.party, Service("prf"))
        try:
            kind.begin(context)
            return kind._evaluations.total
        finally:
            kind.close()

    if sent is None:
        assert run_in_process(pair, party) == [2, 2]
        return
    with pytest.raises((PartyError, EngineError), match="party 1 sent no count of evaluations: run the same version everywhere"):
        run_in_process(pair, party, timeout=20)


def test_refused(three: Committee, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="rep-field: any 2 parties use keys with their own shares: leave this out"):
        api.share_job(three, "ring", 2)
    with pytest.raises(ParameterError, match="any 2 of the 3 parties decrypt without the others: name 2"):
        api.pool_fill_job(three, "lwe64-p2", "round_ltz_circuit", 10, parties=(0, 1, 2))
    with pytest.raises(ParameterError, match="semi2k, by which parties go on without the others, has no shares modulo primes of 127 bits"):
        ReplicatedShares().check_domain(three, Domain.parse(f"F_{2**127 - 1}"))
    for protocol, size in (("mal-rep-field", 3), ("mal-rep-ring", 3), ("mal-shamir", 3)):
        with pytest.raises(
            CommitteeError, match=r"do not let it verify anything: leave out --parties, and bring back the parties that are away \(keyquorum recover"
        ):
            subset_of(_shape(protocol, size, 1), (0, 1))


# Counts


def used(committee: Committee, key: str) -> list[int]:
    return [decryptions_used(committee.key_folder(party, key), load_key(committee.key_folder(party, key))) for party in range(committee.size)]


def test_ckks_by_pairs_counts_every_decryption(three: Committee, tmp_path: Path) -> None:
    """Each pair goes on from the largest count of its members, and one of them was there before. All three together go on from there as well."""
    values = np.linspace(-1, 1, 128)
    api.encrypt(three, "ckks", values.tolist(), tmp_path / "x.ct")
    expected = [(1, 1, 0), (1, 2, 2), (3, 2, 3), (4, 4, 3), (5, 5, 5)]
    for numbers, counts in zip([(0, 1), (1, 2), (0, 2), (0, 1), None], expected, strict=True):
        with without_others(three, numbers or (0, 1, 2)):
            assert np.abs(by_job(three, "ckks", tmp_path, numbers) - values).max() < 0.05
        assert tuple(used(three, "ckks")) == counts
    info = load_key(three.key_folder(0, "ckks"))
    set_count(three.key_folder(0, "ckks"), info, 15)
    by_job(three, "ckks", tmp_path, (0, 1))
    with pytest.raises(PolicyError, match="allows 16 decryptions and 16 are used"):
        by_job(three, "ckks", tmp_path, (1, 2))  # party 0, whose count was set, is not among them
    assert used(three, "ckks")[0] == 16


def test_a_recovered_party_knows_what_was_counted(tmp_path: Path) -> None:
    """The counts of absent parties lag behind, and the largest one of the helpers is right. Helpers of whom none may know it are refused."""
    for protocol, size, lost, helpers in (("rep-field", 3, 1, None), ("shamir", 5, 0, [2, 3, 4])):
        committee = api.init(tmp_path / protocol, size, protocol, threshold=1, base_ot="curve25519")
        run(committee, api.keygen_job("ckks", tiny("ckks", 3), relin=False, policy=POLICY))
        numbers = tuple(range(counting_parties(committee)))
        for _ in range(4):
            count(committee, "ckks", numbers)
        lose(committee, lost)
        if protocol == "shamir":
            with pytest.raises(ParameterError, match="its decryptions are counted, and 2 helpers may not know of all: name 3 or more with --from"):
                recovered(committee, lost, [3, 4])
        assert recovered(committee, lost, helpers) == ["ckks"]
        assert used(committee, "ckks") == [4 if party in numbers else 0 for party in range(size)]


@pytest.mark.filterwarnings("ignore:round_mask_open is sometimes wrong")
def test_masked_decryptions_and_checks_of_noise_by_pairs(three: Committee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api.encrypt(three, "bfv", [1, 2, 3], tmp_path / "x.ct")
    monkeypatch.setattr("keyquorum.schemes.seal.key.most_masked", lambda parameters: 3)
    for numbers in ((0, 1), (1, 2), (0, 2)):
        by_job(three, "bfv", tmp_path, numbers, "round_mask_open")
    assert used(three, "bfv") == [3, 2, 3]
    with pytest.raises(PolicyError, match="allows 3 decryptions and 3 are used"):
        by_job(three, "bfv", tmp_path, (0, 1), "round_mask_open")
    assert by_job(three, "bfv", tmp_path, (1, 2), check_noise=True)[:3].tolist() == [1, 2, 3]
    assert not any(json.loads((three.key_folder(party, "bfv") / noise_check.FILE).read_text())["failed"] for party in (1, 2))


def count(committee: Committee, key: str, numbers: tuple[int, ...]) -> None:
    info = load_key(committee.key_folder(0, key))
    run_in_process(
        subset_of(committee, numbers), lambda context: claim_decryptions(context, committee.key_folder(numbers[context.party], key), info, 1, 1000)
    )


@pytest.mark.parametrize(("size", "threshold", "wanted"), [(3, 1, 2), (4, 1, 3), (5, 1, 3), (5, 2, 3), (6, 2, 4), (7, 2, 4), (7, 3, 4)])
def test_sets_that_count_have_a_party_in_common(size: int, threshold: int, wanted: int) -> None:
    """And are no larger than that takes."""
    committee = _shape("shamir", size, threshold)
    m = counting_parties(committee)
    assert m == wanted
    sets = [set(numbers) for numbers in combinations(range(size), m)]
    assert all(a & b for a, b in combinations(sets, 2))
    assert m == threshold + 1 or 2 * (m - 1) <= size


def test_all_parties_take_the_count_of_those_who_remember(three: Committee) -> None:
    """Parties 0 and 1 counted without party 2, then a backup of party 1 was restored: the next decryption of all takes the largest count. Where parties may be malicious, that count is refused."""
    key, info = "ckks", load_key(three.key_folder(0, "ckks"))
    before = used(three, key)
    for party, counted in enumerate((100, 40, 0)):
        set_count(three.key_folder(party, key), info, counted)
    run_in_process(three, lambda context: claim_decryptions(context, three.key_folder(context.party, key), info, 1, 1000))
    assert used(three, key) == [101] * 3
    for party, counted in enumerate(before):
        set_count(three.key_folder(party, key), info, counted)


@pytest.mark.parametrize("ablated", [False, True], ids=["confirmed", "ablated"])
def test_nobody_goes_on_before_all_have_counted(three: Committee, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """All members confirm that the count is on their disks, before one of them sends anything of a result: any of them may be the one that remembers. Without that a quick member goes on before a slow one has counted."""
    numbers, info, before = (0, 1), load_key(three.key_folder(0, "ckks")), used(three, "ckks")
    write = counts_module._write

    def slowly(folder: Path, info: KeyInfo, count: int) -> None:
        if folder == three.key_folder(1, "ckks"):
            time.sleep(1.0)
        write(folder, info, count)

    class Hasty:
        def __init__(self, core: Any) -> None:
            self.core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def compare(self, label: str, digest: bytes) -> None:
            if label != "count of decryptions on the disk":
                self.core.compare(label, digest)

    def party(context: PartyContext) -> list[int]:
        if ablated:
            context.session = cast(Any, Hasty(context.session))
        claim_decryptions(context, three.key_folder(numbers[context.party], "ckks"), info, 1, 1000)
        return [decryptions_used(three.key_folder(number, "ckks"), info) for number in numbers]

    monkeypatch.setattr(counts_module, "_write", slowly)
    seen, after = run_in_process(subset_of(three, numbers), party)[0], max(before[:2]) + 1
    monkeypatch.undo()
    assert seen == [after, before[1] if ablated else after]
    for number, count in enumerate(before):
        set_count(three.key_folder(number, "ckks"), info, count)


def test_committees_whose_counts_may_lag_behind() -> None:
    """Those whose parties use keys without the others, and follow the protocol."""
    shapes = {"rep-field": 3, "ring": 3, "shamir": 5, "semi": 3, "mal-rep-field": 3, "mal-shamir": 5, "mascot": 2}
    apart = {name for name, size in shapes.items() if decrypts_apart(api.in_process_committee(size, name))}
    assert apart == {"rep-field", "ring", "shamir"}
    assert all((own_shares(api.in_process_committee(size, name)) is not None) == (name in apart) for name, size in shapes.items())


def test_three_of_five_count_where_two_would_do(tmp_path: Path) -> None:
    """n = 5, t = 1: CKKS takes three parties, of which the last has a share of zero and counts. Sets of two would miss each other's counts."""
    committee = api.init(tmp_path / "committee", 5, "shamir", threshold=1, base_ot="curve25519")
    run(committee, api.keygen_job("ckks", tiny("ckks", 3), relin=False, policy=POLICY))
    info = load_seal_key(committee.key_folder(0, "ckks"))
    first = total(committee, "ckks", (0, 1), LagrangeShares())
    for numbers in ((0, 1, 2), (1, 3, 4)):
        assert all(np.array_equal(a, b) for a, b in zip(first, total(committee, "ckks", numbers, LagrangeShares()), strict=True))
    values = np.linspace(-1, 1, 128)
    api.encrypt(committee, "ckks", values.tolist(), tmp_path / "x.ct")
    for numbers in ((0, 1, 2), (2, 3, 4)):
        assert np.abs(by_job(committee, "ckks", tmp_path, numbers) - values).max() < 0.05
    assert used(committee, "ckks") == [1, 1, 2, 2, 2]
    with pytest.raises(
        ParameterError, match="these decryptions are counted, and any two sets of 3 of the 5 parties have a party that remembers: name 3"
    ):
        by_job(committee, "ckks", tmp_path, (0, 1))
    count(committee, "ckks", (0, 1))  # without that rule
    assert used(committee, "ckks") == [2, 2, 2, 2, 2]
    count(committee, "ckks", (3, 4))
    assert max(used(committee, "ckks")) == 3  # of four decryptions
    with pytest.raises(ParameterError, match="leave out --parties, or --check-noise"):
        refuse_noise_check(subset_of(committee, (0, 1, 2)), replace(info, parameters=tiny("bfv", 2)))
