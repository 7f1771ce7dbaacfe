"""The joint check of noise: it passes what has less than half of the noise that may be, refuses the rest at every party, and counts its noes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.parameters import Scheme
from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError, PolicyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.noise_check import FILE, MOST_FAILED, check_noise, refuse_noise_check
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.keygen import SealRequest

from .quorum import make_key, secret_of
from .test_exact_decryption import with_phase
from .test_own_primes import created, small

COMMITTEES = [("rep-field", 3), ("semi", 2), ("shamir", 5), ("mal-rep-field", 3)]


@cache
def key(protocol: str, parties: int, scheme: Scheme) -> tuple[Committee, list[KeyMaterial[Any]]]:
    """A small key, made once."""
    members = api.in_process_committee(parties, protocol)
    return members, make_key(members, SealRequest(small(scheme), relin=False), b"noise check")


def with_noise(material: Sequence[KeyMaterial[Any]], members: Committee, shares: Sequence[float], seed: int = 1) -> bytes:
    """A ciphertext of random messages with noise up to 1/5 of q/t, and of these shares of q/t in places of their own."""
    parameters = material[0].info.parameters
    q, t, n = parameters.coeff_modulus[0], parameters.plain_modulus, parameters.ring_degree
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-0.2, 0.2, n)
    noise[rng.choice(n, len(shares), replace=False)] = shares
    x = [(int(m) * q + int(e * q)) // t % q for m, e in zip(rng.integers(0, t, n), noise, strict=True)]
    phases = x if parameters.scheme == "bfv" else [w * t % q for w in x]
    return with_phase(parameters, secret_of(members, list(material)), np.array(phases, dtype=np.int64))[0]


def checked(members: Committee, material: Sequence[KeyMaterial[Any]], files: Sequence[bytes], folder: Path, receiver: int = 0) -> list[str]:
    """What each party says: its error, or nothing."""
    parsed = [read_ciphertext(material[0].info.parameters, data) for data in files]

    def job(context: PartyContext) -> str:
        mine = material[context.party]
        try:
            check_noise(context, folder / str(context.party), mine.info, mine.shares, parsed, receiver)
        except (CiphertextError, PolicyError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    return run_in_process(members, job, timeout=120)


def counts(folder: Path) -> list[int]:
    return [json.loads(path.read_text())["failed"] for path in sorted(folder.glob(f"*/{FILE}"))]


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
@pytest.mark.parametrize(("protocol", "parties"), COMMITTEES)
def test_both_borders(tmp_path: Path, protocol: str, parties: int, scheme: Scheme) -> None:
    """One coefficient of one ciphertext of three is on either side of either border, or has overflowed. All parties say the same."""
    members, material = key(protocol, parties, scheme)
    good = with_noise(material, members, [])
    failed = 0
    for shares, within in (([0.2499, -0.2499], True), ([0.2501], False), ([-0.2501], False), ([0.4999], False)):
        said = checked(members, material, [good, with_noise(material, members, shares), good], tmp_path, receiver=1)
        failed += not within
        assert len(set(said)) == 1 and said[0].startswith("" if within else "CiphertextError: the noise of a ciphertext is half of its border")
        assert bool(said[0]) != within
        assert counts(tmp_path) == [failed] * parties


def test_noes_are_limited(tmp_path: Path) -> None:
    """After the last one nothing is checked. A party without its count goes on from those of the others; a damaged count is refused."""
    members, material = key("rep-field", 3, "bfv")
    good, bad = with_noise(material, members, []), with_noise(material, members, [0.3])
    assert checked(members, material, [bad], tmp_path)[0]
    (tmp_path / "1" / FILE).unlink()
    assert checked(members, material, [good], tmp_path) == ["", "", ""] and counts(tmp_path) == [1, 1, 1]
    for party in range(3):
        path = tmp_path / str(party) / FILE
        path.write_text(path.read_text().replace("1}", f"{MOST_FAILED - 1}}}"))
    assert "CiphertextError" in checked(members, material, [bad], tmp_path)[2]
    said = checked(members, material, [good], tmp_path)
    assert all(f"PolicyError: the check of noise has failed {MOST_FAILED} times under key" in one for one in said)
    (tmp_path / "0" / FILE).write_text("{")
    with pytest.raises(KeyFileError, match="is damaged, or of another key"):
        checked(members, material, [good], tmp_path)


def test_a_party_that_dies_has_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is on the disk before the bit is opened."""
    members, material = key("rep-field", 3, "bfv")
    good = with_noise(material, members, [])

    def dies(*arguments: Any, **options: Any) -> bool:
        raise CiphertextError("killed")

    monkeypatch.setattr("keyquorum.schemes.seal.scheme.noise_within", dies)
    assert checked(members, material, [good], tmp_path) == ["CiphertextError: killed"] * 3
    assert counts(tmp_path) == [1, 1, 1]


@pytest.mark.parametrize("protocol", ["mascot", "mal-shamir"])
def test_committees_without_a_check(protocol: str) -> None:
    members, material = key("rep-field", 3, "bfv")
    with pytest.raises(ParameterError, match=f"{protocol}: there is no check of noise"):
        refuse_noise_check(api.in_process_committee(3, protocol), material[0].info)
    with pytest.raises(ParameterError, match="the mp-spdz backend has no check of noise"):
        refuse_noise_check(members, material[0].info, "mp-spdz")
    ckks = api.keygen_in_process(members, SealRequest(api.load_parameters("ckks-4096"), relin=False))[0].info
    with pytest.raises(ParameterError, match="a check of noise is for BFV and BGV"):
        refuse_noise_check(members, ckks)


def test_an_overflowed_ciphertext_of_seal_is_not_decrypted(tmp_path: Path) -> None:
    """The trial of a user: too many products, without receipts. Garbage without the check; with it nothing is written."""
    folder = tmp_path / "c"
    api.init(folder, 3, "rep-field")
    api.keygen(folder, "key", created("bfv", 4096, [36, 36, 37]))
    api.encrypt(folder, "key", np.arange(8), tmp_path / "0.ct")
    for i in range(3):
        api.evaluate(folder, "key", "square", [tmp_path / f"{i}.ct"], tmp_path / f"{i + 1}.ct")
    for path in tmp_path.glob("*.json"):
        path.unlink()
    [output] = api.decrypt(folder, "key", [tmp_path / "0.ct"], 0, [tmp_path / "good"], check_noise=True).outputs
    assert api.decode(folder, "key", output)[:8].tolist() == list(range(8))
    with pytest.raises(Exception, match="the noise of a ciphertext is half of its border or more"):
        api.decrypt(folder, "key", [tmp_path / "3.ct"], 0, [tmp_path / "bad"], check_noise=True)
    assert not (tmp_path / "bad").exists()
    api.decrypt(folder, "key", [tmp_path / "3.ct"], 0, [tmp_path / "bad"])
    assert (api.decode(folder, "key", tmp_path / "bad")[:8] != np.arange(8) ** 8 % 65537).any()
