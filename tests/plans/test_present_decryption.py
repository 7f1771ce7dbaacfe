"""Decryption by 2t + 1 parties of Shamir's sharing for malicious parties while others are absent: the same protocol, at the points that they have, exact, and a party that lies is caught."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import CheckError, EngineError
from keyquorum.fhe.lwe import encrypt
from keyquorum.fhe.lwe_sets import LweParameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyQuorumError, ParameterError, PartyError
from keyquorum.model.subset import Present, parties_of
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import decrypt
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.schemes.subset_keys import check_decryptions, compare_key, info_in, load_shares_as

from tests.plans.corrupted import ends_of
from tests.plans.epochs.test_absent import refreshed_without
from tests.plans.epochs.test_prove import committee_with
from tests.plans.epochs.test_recover import recovered
from tests.plans.test_own_primes import created
from tests.plans.test_refresh import run, secrets

NAME, RECEIVER = "lwe53-p16", 1


def made(folder: Path, parties: int, threshold: int) -> Committee:
    committee = api.init(folder / "committee", parties, "mal-shamir", threshold=threshold)
    run(committee, api.keygen_job("key", NAME))
    return committee


def messages_and_ciphertexts(committee: Committee, count: int = 12) -> tuple[list[int], object]:
    parameters = api.load_parameters(NAME)
    assert isinstance(parameters, LweParameters)
    rng = np.random.default_rng(7)
    values = rng.integers(0, 16, count)
    return values.tolist(), encrypt(parameters, np.array(secrets(committee)[0]), values, rng)


def decrypted(context: PartyContext, ciphertexts: object, receiver: int = RECEIVER) -> list[int] | None:
    committee = context.committee
    folder = committee.key_folder(context.party, "key")
    stored = load_key(folder)
    compare_key(context, folder, stored)
    info = info_in(stored, committee, holding_of(folder, stored))
    results = decrypt(context, info, load_shares_as(committee, folder, stored, context.party), [ciphertexts], receiver)
    if results is None:
        return None
    assert isinstance(results[0], LweDecrypted)
    return [int(message) for message in results[0].messages]


@pytest.mark.parametrize(("parties", "threshold", "numbers"), [(4, 1, (0, 2, 3)), (4, 1, (1, 2, 3)), (6, 1, (0, 1, 3, 5)), (7, 2, (0, 1, 3, 5, 6))])
def test_parties_that_are_there_decrypt_exactly(tmp_path: Path, parties: int, threshold: int, numbers: tuple[int, ...]) -> None:
    committee = made(tmp_path, parties, threshold)
    values, ciphertexts = messages_and_ciphertexts(committee)
    there = parties_of(committee, numbers)
    assert isinstance(there, Present) and there.members == list(numbers)
    found = run_in_process(there, lambda context: decrypted(context, ciphertexts), timeout=60)
    assert found == [values if party == RECEIVER else None for party in range(len(numbers))]


class Lying:
    """Party 0 changes its last message of ten bytes to the receiver, of which ``last`` came before: its share of the result."""

    def __init__(self, last: int = -1) -> None:
        self.last, self.begun, self.seen = last, False, 0

    def begin(self) -> None:
        self.begun = True

    def __call__(self, to: int, message: bytes) -> list[bytes]:
        if not self.begun or to != 2 or len(message) != 10:
            return [message]
        self.seen += 1
        return [message if self.seen - 1 != self.last else message[:8] + bytes([message[8] ^ 1]) + message[9:]]


@pytest.mark.parametrize("omitted", [(), ("Openings",)], ids=["checked", "ablated"])
def test_a_party_that_lies_about_its_share_is_caught(tmp_path: Path, omitted: tuple[str, ...]) -> None:
    """Its share of what the receiver gets is another one. Without the check of openings the receiver has another result."""
    committee = made(tmp_path, 4, 1)
    values, ciphertexts = messages_and_ciphertexts(committee, 1)
    there, honest = parties_of(committee, (0, 2, 3)), Lying()
    assert ends_of(there, lambda context: decrypted(context, ciphertexts, 2), wire=honest)[2] == values
    wire = Lying(honest.seen - 1)
    ends = ends_of(there, lambda context: decrypted(context, ciphertexts, 2), omitted=omitted, wire=wire)
    assert wire.seen == honest.seen
    if omitted:
        assert (isinstance(ends[2], list) and ends[2] != values) or "a result is no message of 4 bits" in str(ends[2])
        return
    assert isinstance(ends[2], CheckError) and "belong to no polynomial" in str(ends[2])


def test_at_other_points_nothing_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties 0, 2 and 3 at the points of 0, 1 and 2: their shares are of a polynomial of a higher degree there, or of another key."""
    committee = made(tmp_path, 4, 1)
    values, ciphertexts = messages_and_ciphertexts(committee)
    there = parties_of(committee, (0, 2, 3))
    monkeypatch.setattr("keyquorum.parties.sessions.Present", type(None))
    with pytest.raises(EngineError):
        assert run_in_process(there, lambda context: decrypted(context, ciphertexts), timeout=60)[RECEIVER] == values


def test_from_files_while_a_party_is_absent_and_after_a_refresh(tmp_path: Path) -> None:
    """Processes decrypt with a pool and without, also when the absent party's folder is gone; in the epoch that it missed it is refused by name, and decrypts when it is recovered."""
    committee = made(tmp_path, 4, 1)
    folder, values = committee.folder, np.arange(16)
    api.encrypt(folder, "key", values, tmp_path / "c.lwe")
    shutil.move(committee.party_folder(2), tmp_path / "away")

    def decrypts(parties: list[int] | None, receiver: int) -> None:
        api.pool_fill(folder, NAME, "round_ltz_circuit", 16, chunk=16, parties=parties)
        output = tmp_path / f"{receiver}-{len(list(tmp_path.iterdir()))}.json"
        api.decrypt(folder, "key", [tmp_path / "c.lwe"], receiver=receiver, outputs=[output], parties=parties)
        assert api.decode(folder, "key", output).tolist() == values.tolist()

    decrypts([0, 1, 3], 3)
    assert (committee.party_folder(0) / "pools" / f"{NAME}-round_ltz_circuit.0-1-3").exists()
    refreshed_without(committee, 2)
    decrypts([0, 1, 3], 0)
    shutil.move(tmp_path / "away", committee.party_folder(2))
    with pytest.raises((EpochError, PartyError), match="party 2 was absent when the shares of epoch 1 were made"):
        decrypts([0, 1, 2], 1)
    assert recovered(committee, 2) == ["key"]
    decrypts([0, 1, 2], 2)
    decrypts(None, 2)


@pytest.mark.parametrize(
    ("parties", "threshold", "numbers", "said"),
    [
        (4, 1, (0, 2), "1 of these may be malicious, and mal-shamir verifies among 3 or more: name 3"),
        (7, 2, (0, 2, 3, 4), "2 of these may be malicious, and mal-shamir verifies among 5 or more: name 5"),
        (4, 1, (0, 2, 2), "name parties of 0 to 3, each once"),
        (5, 2, (0, 1, 2, 3), "a subset computes with additive shares, which do not let it verify anything"),
    ],
)
def test_parties_that_are_refused(parties: int, threshold: int, numbers: tuple[int, ...], said: str) -> None:
    committee = api.in_process_committee(parties, "mal-shamir", threshold)
    with pytest.raises(KeyQuorumError, match=said):
        parties_of(committee, numbers)


def test_decryptions_that_are_counted_take_all_parties(tmp_path: Path) -> None:
    committee = committee_with(tmp_path, "mal-shamir", 3)
    four = api.in_process_committee(4, "mal-shamir", 1)
    there = parties_of(four, (0, 1, 2))
    with pytest.raises(ParameterError, match="these decryptions are counted, and in mal-shamir all parties count them"):
        check_decryptions(there, load_key(committee.key_folder(0, "key")), "round_mask_open")


@pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
def test_three_of_four_decrypt_what_seal_computed(tmp_path: Path) -> None:
    """A key for SEAL of four parties, of which one is away for ever."""
    folder = tmp_path / "committee"
    committee = api.init(folder, 4, "mal-shamir", threshold=1)
    api.keygen(folder, "key", created("bfv", 4096, [36, 36, 37]))
    api.encrypt(folder, "key", np.arange(100), tmp_path / "0.ct")
    api.evaluate(folder, "key", "square", [tmp_path / "0.ct"], tmp_path / "1.ct")
    shutil.rmtree(committee.party_folder(1))
    [output] = api.decrypt(folder, "key", [tmp_path / "1.ct"], 3, [tmp_path / "out"], parties=[0, 2, 3]).outputs
    assert api.decode(folder, "key", output)[:100].tolist() == [i * i for i in range(100)]
