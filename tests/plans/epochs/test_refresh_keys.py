"""Refresh of keys of SEAL, FHEW, GHS and of the Legendre PRF: secrets and public files stay, shares are others, and what was encrypted before is decrypted after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import FHEW_SETS
from keyquorum.parties.epochs import read_epoch
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_key

from tests.plans.epochs.reshared import has_any, secrets_of
from tests.plans.epochs.test_prove import with_scheme
from tests.plans.test_own_primes import created
from tests.plans.test_refresh import public_files, refreshed, run, share_bytes, words_of
from tests.schemes import test_fhew, test_ghs

BGV, CKKS = created("bgv", 1024, [36, 37], 12289, "none"), with_scheme("ckks")
CASES = [
    ("rep-field", 3, CKKS),
    ("mal-shamir", 3, CKKS),
    ("shamir", 3, BGV),
    ("semi", 2, BGV),
    ("rep-field", 3, "fhew-tiny"),
    ("shamir", 3, "fhew-tiny"),
    ("semi", 2, test_ghs.SMALL),
    ("shamir", 3, test_ghs.SMALL),
    ("rep-field", 3, "prf-legendre127"),
    ("mal-rep-field", 3, "prf-legendre127"),
]
pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setitem(FHEW_SETS, test_fhew.TINY.name, test_fhew.TINY)


@pytest.mark.parametrize(("protocol", "parties", "parameters"), CASES, ids=lambda case: getattr(case, "name", str(case)))
def test_a_key_has_new_shares(tmp_path: Path, protocol: str, parties: int, parameters: Any) -> None:
    committee = api.init(tmp_path / "committee", parties, protocol)
    options: dict[str, Any] = {"relin": False} if parameters in (BGV, CKKS) else {}
    run(committee, api.keygen_job("key", parameters, **options))
    truth, public, before = secrets_of(committee), public_files(committee), [words_of(committee, party) for party in range(parties)]
    for number in (1, 2):
        shares = share_bytes(committee)
        assert refreshed(committee)["epoch"] == number
        assert (secrets_of(committee), public_files(committee)) == (truth, public)
        assert not has_any(committee.folder, shares)
    for party, old in enumerate(before):
        assert np.mean(words_of(committee, party) == old) < 0.01, "a new share is another one in nearly all its words"
        folder = committee.key_folder(party, "key")
        assert holding_of(folder, load_key(folder)).sharing == read_epoch(committee.party_folder(party)).name
    assert all(finding.ok for finding in examine_keys(committee, range(parties)))


@pytest.mark.parametrize(("protocol", "parties", "parameters"), [CASES[0], CASES[2]], ids=["ckks", "bgv"])
def test_it_decrypts_what_was_encrypted_before(tmp_path: Path, protocol: str, parties: int, parameters: Any) -> None:
    """By the commands, with stock SEAL."""
    committee = api.init(tmp_path / "committee", parties, protocol)
    run(committee, api.keygen_job("key", parameters, relin=False))
    values = np.arange(40) / 8 if parameters is CKKS else np.arange(40)
    api.encrypt(committee, "key", values, tmp_path / "x.ct")
    refreshed(committee)
    [output] = api.decrypt(committee, "key", [tmp_path / "x.ct"], 0, [tmp_path / "out"]).outputs
    assert np.allclose(np.asarray(api.decode(committee, "key", output))[:40], values, atol=1e-2)
