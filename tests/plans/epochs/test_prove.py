"""The test of shares against the public key: right shares pass in every committee, every wrong vector that one part of the test finds passes where that part is left out, and recoveries store nothing untested."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import CheckError, EngineError, Ntt, ShareFile, mulmod
from keyquorum.fhe.parameters import ParameterSet, load
from keyquorum.fhe.seal_format import read_public_key
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError, PolicyError
from keyquorum.parties.jobs import run_job
from keyquorum.plans.epochs import prove, recover
from keyquorum.plans.epochs.prove import FILE, proofs_run
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.seal import fit
from keyquorum.schemes.seal.fit import TESTS, bound, check_fit, judge
from keyquorum.schemes.seal.key import SealKeyInfo

from tests.plans.corrupted import ends_of
from tests.plans.epochs.test_recover import Lies, lose, recovered
from tests.plans.test_own_primes import created
from tests.plans.test_refresh import refreshed, run, secrets, with_keys

N = 1024
TOY = created("bfv", N, [50, 50, 50], security="none")
pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")


def committee_with(folder: Path, protocol: str, parties: int, parameters: Any = TOY) -> Committee:
    committee = with_keys(folder, protocol, parties, [])
    run(committee, api.keygen_job("key", parameters, relin=False))
    return committee


def proven(committee: Committee) -> list[int]:
    return [int(found["runs"]) for found in run(committee, {"kind": "epoch_prove", "key": "key"})]


def info_of(committee: Committee) -> SealKeyInfo:
    info = load_key(committee.key_folder(0, "key"))
    assert isinstance(info, SealKeyInfo)
    return info


@pytest.mark.parametrize(
    ("protocol", "parties", "scheme"),
    [
        ("rep-field", 3, "bfv"), ("shamir", 3, "ckks"), ("semi", 2, "bfv"), ("mal-rep-field", 3, "bgv"), ("mal-rep-ring", 3, "bfv"), ("mal-shamir", 3, "bfv"), ("mal-shamir", 5, "ckks"),
    ],
)  # fmt: skip
def test_right_shares_fit(tmp_path: Path, protocol: str, parties: int, scheme: Any) -> None:
    """In epoch 0 and after a refresh; every run is counted at every party."""
    parameters = TOY if scheme == "bfv" else with_scheme(scheme)
    committee = committee_with(tmp_path, protocol, parties, parameters)
    assert proven(committee) == [1] * parties
    refreshed(committee)
    assert proven(committee) == [2] * parties
    for party in range(parties):
        folder = committee.key_folder(party, "key")
        assert proofs_run(folder, load_key(folder)) == 2 and (folder / FILE).stat().st_mode & 0o777 == 0o600


def with_scheme(scheme: Any) -> ParameterSet:
    if scheme == "ckks":
        return ParameterSet("toy-ckks", "ckks", N, TOY.coeff_modulus, 0, scale_bits=60, security="none", noise_bits=10)
    step = 2 * N * TOY.plain_modulus
    primes = islice((q for q in range((1 << 50) // step * step + 1, 1 << 49, -step) if pow(2, q - 1, q) == 1), 3)
    return ParameterSet("toy-bgv", "bgv", N, tuple(primes), TOY.plain_modulus, security="none")


# -- wrong shares ----------------------------------------------------------------------------------------------------------


def shifted(committee: Committee, party: int, deltas: list[np.ndarray]) -> None:
    """Adds a vector modulo each prime to what a party stores of the secret."""
    folder = committee.key_folder(party, "key")
    info = load_key(folder)
    held = holding_of(folder, info)
    for index, (q, delta) in enumerate(zip(info.parameters.coeff_modulus, deltas, strict=True)):
        path, header = held.folder(folder) / f"share-{index}.kqs", held.share_header(party, index)
        words = np.frombuffer(bytearray(ShareFile.read(str(path), header)), dtype="<u8")
        words[:N] = (words[:N].astype(object) + delta) % q
        ShareFile.write(str(path), header, words.tobytes())


def at_zero(value: int) -> np.ndarray:
    vector = np.zeros(N, dtype=object)
    vector[0] = value
    return vector


def small_in_all(committee: Committee) -> list[np.ndarray]:
    """Another small secret, the same modulo every prime."""
    return [at_zero(1) for _ in TOY.coeff_modulus]


def of_small_noise(committee: Committee) -> list[np.ndarray]:
    """d with a d = 1 modulo every prime: noise that is as small as it was, under a secret that is not."""
    public = read_public_key(TOY, api.load_public_file(committee.key_folder(0, "key"), info_of(committee), "public.key"))
    found = []
    for index, q in enumerate(TOY.coeff_modulus):
        inverse = np.array([pow(int(x), -1, q) for x in public.a[index]], dtype=np.uint64)
        found.append(Ntt(q, N).inverse(mulmod(inverse, np.ones(N, dtype=np.uint64), q)).astype(object))
    return found


def modulo_the_last(committee: Committee) -> list[np.ndarray]:
    """Right but for one prime."""
    *others, last = TOY.coeff_modulus
    return [*(at_zero(0) for _ in others), at_zero(last // 2)]


def without(part: slice) -> Callable[[bytes, int], np.ndarray]:
    """Subsets that leave a part of the entries out."""
    truly = fit._subsets

    def found(toss: bytes, size: int) -> np.ndarray:
        rows = truly(toss, size).reshape(TESTS, size)
        rows[:, part] = 0
        return rows.reshape(-1)

    return found


def of_the_first_primes(opened: Any, primes: Any, most: int) -> None:
    judge(opened[:2], primes[:2], most)


@pytest.mark.parametrize(
    ("lie", "name", "ablated"),
    [
        (small_in_all, "_subsets", without(slice(N, 2 * N))),
        (of_small_noise, "_subsets", without(slice(0, N))),
        (modulo_the_last, "judge", of_the_first_primes),
    ],
    ids=["another small secret", "small noise", "one prime"],
)
def test_wrong_shares_fit_ablated_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: Any, name: str, ablated: Any) -> None:
    """Shares that pass the test of s alone, of e alone, and of some primes alone. Each of the three is needed."""
    committee = committee_with(tmp_path, "semi", 2)
    before = secrets(committee)
    shifted(committee, 1, lie(committee))
    assert secrets(committee) != before
    with pytest.raises((CheckError, EngineError), match="are not those of the secret of the public key"):
        proven(committee)
    monkeypatch.setattr(fit, name, ablated)
    assert proven(committee) == [2, 2]


def test_a_share_of_a_corrupted_party_is_noticed_by_its_openings(tmp_path: Path) -> None:
    """Where parties may be malicious, shares of the honest ones count, and a party with another share is a cheat."""
    committee = committee_with(tmp_path, "mal-shamir", 5)
    before = secrets(committee)
    shifted(committee, 3, small_in_all(committee))
    with pytest.raises((CheckError, EngineError)):
        proven(committee)
    assert secrets(committee) == before, "the secret of parties 0 to 2"


# -- recoveries that must test ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "parties", "lost"), [("mal-rep-field", 3, 1), ("mal-rep-ring", 3, 0), ("mal-shamir", 3, 2), ("mal-shamir", 5, 0)]
)
@pytest.mark.parametrize("epochs", [0, 1])
def test_a_share_comes_back_after_a_test(tmp_path: Path, protocol: str, parties: int, lost: int, epochs: int) -> None:
    committee = committee_with(tmp_path, protocol, parties)
    for _ in range(epochs):
        refreshed(committee)
    before, kept = secrets(committee), lose(committee, lost)
    assert recovered(committee, lost) == ["key"]
    for name, data in kept.items():
        if name.endswith(".kqs"):
            assert (committee.party_folder(lost) / name).read_bytes() == data, name
    assert secrets(committee) == before
    assert {proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(parties)} == {1}
    assert refreshed(committee)["epoch"] == epochs + 1 and secrets(committee) == before


COALITIONS = [
    # Helper 0 takes f - 1 at its point 1: with party 1 a polynomial of degree 1 has f + 1 at the point 3 of the lost party.
    ("mal-shamir", 3, 2, {0: -1}),
    # f + (x - 3)(x - 4): helpers 2 and 3, who are honest, have nothing of it.
    ("mal-shamir", 5, 4, {0: 6, 1: 2}),
    # The summand that parties 1 and 2 have.
    ("mal-rep-field", 3, 2, {1: 1}),
]


@pytest.mark.parametrize("ablated", [False, True], ids=["tested", "ablated"])
@pytest.mark.parametrize(("protocol", "parties", "lost", "added"), COALITIONS, ids=["one of three", "two of five", "replicated"])
def test_a_recovery_with_wrong_helpers_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, parties: int, lost: int, added: dict[int, int], ablated: bool
) -> None:
    """t helpers hold shares that are consistent with those of the honest ones, of another key: all that is opened fits. Without the test it is stored."""
    committee = committee_with(tmp_path, protocol, parties)
    before, kept = secrets(committee), lose(committee, lost)
    for party, value in added.items():
        shifted(committee, party, [at_zero(value % q) for q in TOY.coeff_modulus])
    if ablated:
        monkeypatch.setattr(recover, "prove", lambda *arguments: None)
        assert recovered(committee, lost) == ["key"]
        share = next(name for name in kept if name.endswith("share-0.kqs"))
        assert (committee.party_folder(lost) / share).read_bytes() != kept[share]
        assert secrets(committee) != before
        return
    with pytest.raises((CheckError, EngineError), match="are not those of the secret of the public key"):
        recovered(committee, lost)
    assert not committee.key_folder(lost, "key").exists() and not (committee.party_folder(lost) / "making").exists()


@pytest.mark.parametrize("epochs", [0, 1])
def test_two_shares_come_back_together(tmp_path: Path, epochs: int) -> None:
    """Of five parties three are left, of which none could help with less. What one of the two has already is tested with the rest."""
    committee = committee_with(tmp_path, "mal-shamir", 5)
    for _ in range(epochs):
        refreshed(committee)
    before, kept = secrets(committee), {party: lose(committee, party) for party in (1, 4)}
    assert recovered(committee, [1, 4]) == ["key"]
    for party, files in kept.items():
        for name, data in files.items():
            if name.endswith(".kqs"):
                assert (committee.party_folder(party) / name).read_bytes() == data, name
    assert secrets(committee) == before and refreshed(committee)["epoch"] == epochs + 1
    lose(committee, 4)
    assert recovered(committee, [1, 4]) == ["key"] and secrets(committee) == before
    assert {proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(5)} == {2}


@pytest.mark.parametrize("ablated", [False, True], ids=["tested", "ablated"])
def test_two_shares_from_a_wrong_helper_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """f + (x - 2)(x - 3): helpers 1 and 2 have nothing of it, so that all five shares are of one polynomial of another key. Without the test it is stored."""
    committee = committee_with(tmp_path, "mal-shamir", 5)
    before, kept = secrets(committee), {party: lose(committee, party) for party in (3, 4)}
    shifted(committee, 0, [at_zero(2) for _ in TOY.coeff_modulus])
    if ablated:
        monkeypatch.setattr(recover, "prove", lambda *arguments: None)
        assert recovered(committee, [3, 4]) == ["key"]
        for party, files in kept.items():
            share = next(name for name in files if name.endswith("share-0.kqs"))
            assert (committee.party_folder(party) / share).read_bytes() != files[share]
        assert secrets(committee) != before
        return
    with pytest.raises((CheckError, EngineError), match="are not those of the secret of the public key"):
        recovered(committee, [3, 4])
    for party in (3, 4):
        assert not committee.key_folder(party, "key").exists() and not (committee.party_folder(party) / "making").exists()


@pytest.mark.parametrize("ablated", [False, True], ids=["tested", "ablated"])
def test_a_helper_that_sends_two_lost_parties_what_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """Shares of all five are on no polynomial then."""
    committee = committee_with(tmp_path, "mal-shamir", 5)
    kept = {party: lose(committee, party) for party in (3, 4)}
    if ablated:
        monkeypatch.setattr(recover, "prove", lambda *arguments: None)
    job, wire = api.recover_job(committee, [3, 4]), Lies(8 * load_key(committee.key_folder(0, "key")).secrets[0].length)
    ends = ends_of(committee, lambda context: run_job(context, job), wire=wire)
    assert wire.changed >= 6, "three vectors for each of the two"
    for party, files in kept.items():
        if not ablated:
            assert isinstance(ends[party], Exception)
            assert not committee.key_folder(party, "key").exists()
            continue
        share = next(name for name in files if name.endswith("share-0.kqs"))
        assert (committee.party_folder(party) / share).read_bytes() != files[share]


@pytest.mark.parametrize(
    ("protocol", "parties", "lost", "said"),
    [
        ("shamir", 5, [3, 4], "recover one lost party after the other"),
        ("mal-rep-field", 3, [1, 2], "recover one lost party after the other"),
        ("mal-shamir", 3, [1, 2], "the others are no more than 1, which know nothing of a key"),
        ("mal-shamir", 5, [1, 2, 3], "the others are no more than 2, which know nothing of a key"),
        ("mal-shamir", 5, [1, 5], "name parties of 0 to 4, each once"),
        ("mal-shamir", 5, [1, 1], "name parties of 0 to 4, each once"),
    ],
)
def test_lost_parties_that_are_not_recovered_together(protocol: str, parties: int, lost: list[int], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        api.recover_job(api.in_process_committee(parties, protocol), lost)


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
def test_keys_without_a_test_are_not_recovered_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """And the lost party says nothing of its epoch: of a key that was passed on, others could take this for the last word before they erase. Without the check before, it signs that it committed."""
    committee = with_keys(tmp_path, "mal-rep-field", 3, ["lwe64-p2"])
    refreshed(committee)
    lose(committee, 0)
    said = r"key key: in mal-rep-field of 3 nothing else shows whether helpers send right shares: lwe64-p2: there is no test of shares of LWE"
    if ablated:
        monkeypatch.setattr(recover._Run, "_check_lacking", lambda self, said: None)
    with pytest.raises((ParameterError, EngineError), match=said):
        recovered(committee, 0)
    assert (committee.party_folder(0) / "epochs.journal").exists() == ablated


def test_a_key_without_tests_left_is_refused_before_the_lost_party_signs(tmp_path: Path) -> None:
    """The helpers know how many tests are left. Another key comes back when this one is there again."""
    committee = committee_with(tmp_path, "mal-shamir", 3)
    refreshed(committee)
    write_runs(committee, [FIT_RUNS] * 3)
    run(committee, api.keygen_job("other", TOY, relin=False))
    lose(committee, 0)
    with pytest.raises((PolicyError, EngineError), match=f"its shares were tested {FIT_RUNS} times"):
        recovered(committee, 0)
    assert not (committee.party_folder(0) / "epochs.journal").exists()


def test_other_keys_come_back_beside_one_without_a_test(tmp_path: Path) -> None:
    """What an operator does who has a backup of the other key: its folder is put back, and the rest is recovered."""
    committee = committee_with(tmp_path, "mal-shamir", 3)
    run(committee, api.keygen_job("lwe", "lwe53-p16"))
    backup = {path.name: path.read_bytes() for path in committee.key_folder(0, "lwe").iterdir()}
    before = secrets(committee)
    lose(committee, 0)
    with pytest.raises((ParameterError, EngineError), match="key lwe: in mal-shamir of 3 nothing else shows"):
        recovered(committee, 0)
    committee.key_folder(0, "lwe").mkdir(parents=True, mode=0o700)
    for name, data in backup.items():
        (committee.key_folder(0, "lwe") / name).write_bytes(data)
        (committee.key_folder(0, "lwe") / name).chmod(0o600)
    assert recovered(committee, 0) == ["key"] and secrets(committee) == before


# -- epochs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ablated", [False, True], ids=["compared", "ablated"])
def test_shares_of_two_epochs_are_not_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """One party got an old backup. Its share and the new ones of the others have another sum, whose entries are no small numbers: sums of subsets of them are opened, and masks of some 50 bits hide them no more. Without the
    comparison of keys and epochs all tests of a run give their upper bits away, and a run is used up."""
    committee, opened = committee_with(tmp_path, "semi", 2), list[int]()
    shutil.copytree(committee.party_folder(1), tmp_path / "backup")
    refreshed(committee)
    shutil.rmtree(committee.party_folder(1))
    (tmp_path / "backup").rename(committee.party_folder(1))

    def judged(sums: Any, primes: Any, most: int) -> None:
        opened.extend(int(v) % math.prod(primes) for v in fit._arith.crt_centred(np.array(sums, dtype=np.uint64), primes))
        judge(sums, primes, most)

    monkeypatch.setattr(fit, "judge", judged)
    if ablated:
        monkeypatch.setattr(prove, "compare_key", lambda *given: None)
        with pytest.raises((CheckError, EngineError), match="are not those of the secret of the public key"):
            proven(committee)
        assert min(opened) > bound(committee, N) << 40
    else:
        with pytest.raises((EpochError, EngineError), match=r"epoch 1 here, 0 at party 1|epoch 0 here, 1 at party 0"):
            proven(committee)
        assert not opened
    assert {proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(2)} == {int(ablated)}


# -- the count -------------------------------------------------------------------------------------------------------------


def write_runs(committee: Committee, counts: list[int]) -> None:
    for party, runs in enumerate(counts):
        (committee.key_folder(party, "key") / FILE).write_text(json.dumps({"key_id": info_of(committee).key_id, "runs": runs}))


def test_parties_go_on_from_the_largest_count(tmp_path: Path) -> None:
    """Also one that was recovered, and one that was restored; a party that exaggerates is named, and nothing is counted."""
    committee = committee_with(tmp_path, "mal-shamir", 3)
    write_runs(committee, [5, 5, 3])
    assert proven(committee) == [6] * 3
    for number, lost in enumerate((0, 1, 2), 7):
        lose(committee, lost)
        assert recovered(committee, lost) == ["key"]
        assert [proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(3)] == [number] * 3
    write_runs(committee, [9, 15, 9])
    with pytest.raises((PolicyError, EngineError), match=r"party 1 reports 15 tests of shares .*, only 9 are confirmed"):
        proven(committee)
    write_runs(committee, [FIT_RUNS, 9, FIT_RUNS])
    lose(committee, 1)
    with pytest.raises((PolicyError, EngineError), match=f"its shares were tested {FIT_RUNS} times"):
        recovered(committee, 1)


@pytest.mark.parametrize("said", [b"", bytes(7), bytes(9)])
def test_what_is_no_count_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Also if its first bytes are one. Nothing is counted."""
    committee = committee_with(tmp_path, "semi", 2)

    class Sends:
        def __init__(self, core: Any) -> None:
            self.core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def all_gather(self, data: bytes) -> Any:
            return self.core.all_gather(said)

    truly = prove._agreed

    def agreed(context: Any, info: Any, mine: int, noted: int) -> int:
        if context.party == 1:
            context.session = Sends(context.session)
        return truly(context, info, mine, noted)

    monkeypatch.setattr(prove, "_agreed", agreed)
    with pytest.raises((PolicyError, EngineError), match=f"party 1 sent {len(said)} bytes that are no count"):
        proven(committee)
    assert not (committee.key_folder(0, "key") / FILE).exists()


def test_a_run_is_counted_before_anything_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not before the masks are made: who breaks off earlier uses up nothing."""
    committee = committee_with(tmp_path, "semi", 2)

    def ends(*arguments: Any) -> Any:
        raise KeyFileError("as the adversary wants it")

    for name, runs in (("_append", 0), ("_subsets", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(fit, name, ends)
            with pytest.raises((KeyFileError, EngineError)):
                proven(committee)
        assert {proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(2)} == {runs}


def test_a_party_that_was_cut_off_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the next run is counted: who breaks off between two writes again and again sets honest parties one run apart, and not so far that one of them is named."""
    committee = committee_with(tmp_path, "mal-shamir", 3)
    write_runs(committee, [5, 4, 5])
    written = prove.set_proofs

    def ends(folder: Path, info: Any, runs: int, fits: bool = False) -> None:
        if runs == 6:
            raise KeyFileError("as the adversary wants it")
        written(folder, info, runs, fits)

    with monkeypatch.context() as patch:
        patch.setattr(prove, "set_proofs", ends)
        with pytest.raises((KeyFileError, EngineError)):
            proven(committee)
    assert [proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(3)] == [5] * 3


@pytest.mark.parametrize("protocol", ["semi", "mal-shamir", "mal-rep-field"])
def test_nobody_counts_before_all_have_caught_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    """One party is slow with its disk."""
    committee, seen, written = committee_with(tmp_path, protocol, 3), list[int](), prove.set_proofs
    write_runs(committee, [5, 4, 5])

    def slow(folder: Path, info: Any, runs: int, *given: Any, **options: Any) -> None:
        if runs == 5:
            time.sleep(1)
        elif not options:
            seen.extend(proofs_run(committee.key_folder(party, "key"), info) for party in range(3))
        written(folder, info, runs, *given, **options)

    monkeypatch.setattr(prove, "set_proofs", slow)
    assert proven(committee) == [6] * 3 and min(seen) == 5


def test_nothing_is_opened_before_all_have_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One party is slow with its disk."""
    committee, seen = committee_with(tmp_path, "semi", 2), list[int]()
    written, drawn = prove.set_proofs, fit._subsets

    def slow(folder: Path, *given: Any, **options: Any) -> None:
        if folder.is_relative_to(committee.party_folder(1)):
            time.sleep(1)
        written(folder, *given, **options)

    def noted(*given: Any) -> Any:
        seen.extend(proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(2))
        return drawn(*given)

    monkeypatch.setattr(prove, "set_proofs", slow)
    monkeypatch.setattr(fit, "_subsets", noted)
    assert proven(committee) == [1, 1] and set(seen) == {1}


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "ablated"])
def test_sums_are_opened_under_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masked: bool) -> None:
    """Without masks what is opened are sums of secret and noise: small numbers around the offset."""
    committee = committee_with(tmp_path, "mal-rep-field", 3)
    seen = list[int]()

    def judged(opened: Any, primes: Any, most: int) -> None:
        judge(opened, primes, most)
        first = primes[:2]
        seen.extend(int(v) % math.prod(first) for v in fit._arith.crt_centred(np.array(opened[:2], dtype=np.uint64), first))

    monkeypatch.setattr(fit, "judge", judged)
    if not masked:
        truly = fit._append

        def zeros(x: Any, masks: Any) -> int:
            at = truly(x, masks)
            x.file.words[:, at:] = 0
            return at

        monkeypatch.setattr(fit, "_append", zeros)
    assert proven(committee) == [1] * 3
    spread = max(seen) - min(seen)
    assert spread > 1 << 50 if masked else spread < fit._offset(N)


# -- what is refused -------------------------------------------------------------------------------------------------------


def test_what_has_no_test(tmp_path: Path) -> None:
    """MACs, keys of other schemes, primes of too few bits together, and a key that was tested often enough; a damaged count."""
    committee = committee_with(tmp_path, "semi", 2)
    info = info_of(committee)
    with pytest.raises(ParameterError, match="shares with MACs are not tested"):
        check_fit(info, api.in_process_committee(2, "mascot"))
    short = SealKeyInfo(**{**vars(info), "parameters": load("bfv-4096")})
    with pytest.raises(ParameterError, match="bfv-4096: its primes have 109 bits together, and a test of shares against the public key takes 138"):
        check_fit(short, committee)
    many = SealKeyInfo(**{**vars(info), "parameters": load("ckks-16384-bench"), "relin": True, "galois_elements": tuple(range(3, 80001, 2))})
    with pytest.raises(ParameterError, match="above the budget: make a key with fewer Galois keys"):
        check_fit(many, committee)
    for party in range(2):
        path = committee.key_folder(party, "key") / FILE
        path.write_text(json.dumps({"key_id": info.key_id, "runs": FIT_RUNS}))
    with pytest.raises(PolicyError, match=f"its shares were tested {FIT_RUNS} times"):
        proven(committee)
    (committee.key_folder(0, "key") / FILE).unlink()
    for text in ("{}", json.dumps({"key_id": "0" * 32, "runs": 0}), json.dumps({"key_id": info.key_id, "runs": -1})):
        path.write_text(text)
        with pytest.raises(KeyFileError, match=r"proofs\.json is damaged, or of another key"):
            proven(committee)


@pytest.mark.parametrize(
    ("protocol", "parties"), [("rep-field", 3), ("mal-rep-field", 3), ("shamir", 5), ("mal-shamir", 3), ("mal-shamir", 5), ("semi", 2), ("semi", 4)]
)
def test_sets_that_are_shipped_have_a_test(protocol: str, parties: int) -> None:
    """With 7 Galois keys, and R, whose square the rule takes, is that of the masks: below 2^62."""
    committee = api.in_process_committee(parties, protocol)
    for name in ("bfv-8192", "ckks-8192", "ckks-16384-bench"):
        parameters = load(name)
        info = SealKeyInfo(
            key_id="0" * 32, transcript="0" * 64, parameters=parameters, protocol=protocol, parties=parties, threshold=committee.threshold, files={},
            error_law="cbd", relin=True, galois_elements=tuple(range(3, 17, 2)), policy=api.FloodPolicy(),
        )  # fmt: skip
        check_fit(info, committee)
        r, degree = bound(committee, parameters.ring_degree), parameters.ring_degree
        assert r < 1 << 62
        # the expected number of wrong pairs that pass, as the module has it
        wrong = 1 + degree * math.log2(64 * r**2 * degree / math.prod(parameters.coeff_modulus))
        assert wrong <= 1 - degree


def test_the_budget_has_the_generation_by_those_who_made_the_key() -> None:
    """Not by the committee that has it now. Five parties with MACs opened more than three without, so the same key has less room for tests."""
    committee, parameters = api.in_process_committee(3, "rep-field"), load("bfv-8192")
    info = SealKeyInfo(
        key_id="0" * 32, transcript="0" * 64, parameters=parameters, protocol="rep-field", parties=3, threshold=1, files={}, error_law="cbd", relin=True,
        galois_elements=tuple(range(3, 803, 2)), policy=api.FloodPolicy(),
    )  # fmt: skip
    check_fit(info, committee)
    with pytest.raises(ParameterError, match="above the budget: make a key with fewer Galois keys"):
        check_fit(replace(info, protocol="mascot", parties=5, threshold=4), committee)
    with pytest.raises(ParameterError, match="its metadata name 1099511627776 parties of rep-field, which no committee is"):
        check_fit(replace(info, parties=1 << 40), committee)


def test_sums_are_judged() -> None:
    """Integers in [0, R), the same modulo all primes, and nothing else."""
    primes, most = (1009, 2003, 3001), 10**6
    for integers in ([0, most - 1], [5, 5]):
        judge([[v % q for v in integers] for q in primes], primes, most)
    right = [[v % q for v in (7, 8)] for q in primes]
    for prime in range(3):
        wrong = [list(row) for row in right]
        wrong[prime][1] = (wrong[prime][1] + 1) % primes[prime]
        with pytest.raises(CheckError, match="not those of the secret"):
            judge(wrong, primes, most)
    for outside in (most, -1):
        with pytest.raises(CheckError):
            judge([[outside % q] for q in primes], primes, most)


def test_an_entry_that_differs_passes_half_of_the_tests() -> None:
    """Subsets with the entry and without it: never both. So all tests pass with 2^-TESTS."""
    primes, rng, passed = (1009, 2003, 3001), np.random.default_rng(7), 0
    for _ in range(400):
        there, rest, mask = int(rng.integers(2)), int(rng.integers(50)), int(rng.integers(1000))
        entry = (1, 1, 500)  # not one integer
        row = [[(rest + mask + there * x) % q] for x, q in zip(entry, primes, strict=True)]
        try:
            judge(row, primes, 2000)
            passed += 1
        except CheckError:
            assert there
    assert 140 < passed < 260
