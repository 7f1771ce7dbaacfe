"""Keys of GHS: every body of the public files is of the shared secrets, which have the exact weight, with noise of its distribution; files; refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.ghs import (
    PUBLIC,
    RECRYPTION,
    SET_NAMES,
    SWITCHING,
    GhsKeyFile,
    GhsParameters,
    file_name,
    load_set,
    parameters_from_json,
    read_key_file,
)
from keyquorum.inspection import examine
from keyquorum.model.errors import KeyFileError, KeyQuorumError, ParameterError
from keyquorum.schemes import load_parameters, scheme_of
from keyquorum.schemes.ghs import keygen
from keyquorum.schemes.ghs.key import GhsKeyInfo, parameters_to_json
from keyquorum.schemes.ghs.keygen import GhsRequest
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.keys import KeyMaterial

from tests.plans.quorum import reconstruct

from .in_threads import on_disk, run

SMALL = GhsParameters(
    "ghs-1105", 1105, (4503599603343361, 4503599549030401, 4503599444930561, 4503599399669761), 3, 64, (2, 3, 1104), 2, 16, "tests: hides nothing"
)  # fmt: skip
COMMITTEES = [("semi", 2, "gaussian"), ("rep-field", 3, "gaussian"), ("shamir", 3, "cbd")]


def files_of(material: KeyMaterial[Any], folder: Path) -> dict[str, GhsKeyFile]:
    """The public files of a key in memory."""
    for name, data in material.public.items():
        (folder / name).write_bytes(data)
    return {kind: read_key_file(folder / file_name(kind)) for kind in material.info.parameters.kinds}


def secrets_of(material: list[KeyMaterial[Any]]) -> list[np.ndarray]:
    """The secrets, opened."""
    info = material[0].info
    return [
        reconstruct(info.protocol, info.threshold, [m.shares[j].words for m in material], info.parameters.primes[0])
        for j in range(info.parameters.secrets)
    ]


@pytest.mark.parametrize(("protocol", "parties", "noise"), COMMITTEES)
def test_every_body_is_of_the_secrets(protocol: str, parties: int, noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keygen, "BODIES", 2 * 3 * SMALL.degree)  # chunks of two targets, of which one is left over
    material = api.keygen_in_process(api.in_process_committee(parties, protocol), GhsRequest(SMALL, noise))
    info = material[0].info
    assert all(m.public == material[0].public and m.info == info for m in material) and isinstance(info, GhsKeyInfo) and info.noise == noise
    secrets = secrets_of(material)
    assert len(secrets) == 2 and not np.array_equal(secrets[0], secrets[1])
    for secret in secrets:
        assert (
            secret.size == SMALL.degree
            and np.abs(secret).max() == 1
            and np.count_nonzero(secret) == SMALL.weight
            and abs(secret.sum()) < SMALL.weight
        )
    largest, variance = (23, 10.24) if noise == "gaussian" else (21, 10.5)
    files, samples = files_of(material[0], tmp_path), []
    assert set(files) == {PUBLIC, SWITCHING, RECRYPTION} and len({file.seed for file in files.values()}) == 3
    for kind, file in files.items():
        found = file.noise(secrets, 0)
        assert all(np.array_equal(file.noise(secrets, prime), found) for prime in range(1, len(SMALL.primes))), "the same noise modulo all primes"
        factors = np.concatenate([[target.factor] * len(target.weights) for target in SMALL.targets(kind)])[:, None]
        assert not (found % factors).any() and np.abs(found // factors).max() <= largest
        samples.append((found // factors).ravel())
        # other secrets, or other masks, give bodies with noise beyond any bound
        assert np.abs(file.noise([np.roll(secret, 1) for secret in secrets], 0)).max() > 1 << 49
        assert np.abs(replace(file, seed=bytes(16)).noise(secrets, 0)).max() > 1 << 49
    every = np.concatenate(samples)
    assert every.size == sum(SMALL.polynomials(kind) for kind in SMALL.kinds) * SMALL.degree
    # within 5 deviations of the sample variance of a normal or flatter distribution
    assert abs(every.mean()) < 5 * (variance / every.size) ** 0.5 and abs(every.var() / variance - 1) < 5 * (2 / every.size) ** 0.5


def test_targets_are_those_of_the_paper() -> None:
    """Pairs (r, t), Q_j, and counts of samples of both shipped sets."""
    leveled, bootstrappable = map(load_set, SET_NAMES)
    assert (leveled.degree, bootstrappable.degree) == (46080, 23040) and {p.weight for p in (leveled, bootstrappable)} == {64}
    assert [len(p.targets(SWITCHING)) for p in (leveled, bootstrappable)] == [40, 64]
    assert [sum(map(p.polynomials, p.kinds)) for p in (leveled, bootstrappable)] == [121, 193 + 4]
    for p in (leveled, bootstrappable):
        first, *others = p.targets(SWITCHING)
        assert (first.power, first.exponent) == (2, 1) and all(target.power == 1 for target in others) and len(p.primes) == 21
        assert all(q > 1 << 51 for q in p.primes) and len(p.special) == 6
        assert [sum(g % q == 0 for q in p.primes) for g in p.gadget] == [6, 11, 16]
        assert parameters_from_json(parameters_to_json(p)) == p == load_parameters(p.name) and scheme_of(p).title == "GHS"


def test_stored_keys_are_checked(tmp_path: Path) -> None:
    small = replace(SMALL, recryption_modulus=0, automorphisms=(2,))
    members = on_disk(tmp_path, "semi", 2)
    run(members, {"kind": "keygen", "key": "k", **GhsRequest(small, "cbd").to_json(), "backend": "embedded", "local": {}})
    folder = members.key_folder(0, "k")
    info = load_key(folder)
    assert info.to_json() == load_key(members.key_folder(1, "k")).to_json() and sorted(info.files) == ["public.kqg", "switching.kqg"]
    assert (folder / "share-0.kqs").exists() and not (folder / "share-1.kqs").exists()
    scheme_of(info).check_public(folder, info)
    assert "switching key of GHS, ghs-1105, m = 1105" in examine(folder / "switching.kqg").lines[0]
    path = folder / "switching.kqg"
    data = bytearray(path.read_bytes())
    for at, problem in ((0, "damaged"), (30, "damaged"), (len(data) // 2, "damaged"), (len(data) - 1, "damaged")):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(KeyFileError, match=problem):
            scheme_of(info).check_public(folder, info)
    path.write_bytes(data)
    with pytest.raises(KeyFileError, match="is of another key"):
        scheme_of(info).check_public(folder, replace(info, key_id="0" * 32))


def test_other_committees_options_and_sets_are_refused() -> None:
    for protocol, parties in (("mascot", 2), ("mal-rep-field", 3), ("mal-shamir", 3)):
        members, verifies = api.in_process_committee(parties, protocol), protocol != "mascot"
        with pytest.raises(KeyQuorumError, match="semi-honest" if verifies else "nothing would prove that they did"):
            GhsRequest(SMALL).check_plan(members)
        with pytest.raises(ParameterError, match="nothing would prove that they did"):
            GhsRequest(SMALL).check_committee(members)
    scheme = scheme_of(SMALL)
    with pytest.raises(ParameterError, match="noise=flat: choose gaussian or cbd"):
        scheme.request(SMALL, {"noise": "flat"})
    usual = {"relin": True, "galois_elements": [], "error_law": "cbd", "policy": None}
    assert scheme.request(SMALL, usual) == scheme.request(SMALL, {})
    for option in ({"galois_elements": [3]}, {"relin": False}, {"error_law": "gaussian"}):
        with pytest.raises(ParameterError, match=f"{next(iter(option))} is for keys of SEAL"):
            scheme.request(SMALL, {**usual, **option})
    with pytest.raises(ParameterError, match="depth is no option of keys of GHS"):
        scheme.request(SMALL, {"depth": 3})
    for changes, problem in (
        ({"order": 2}, "order is 3 to 65535"),
        ({"primes": (*SMALL.primes[:3], 4503599627370449)}, "1 modulo 4096"),
        ({"order": 1104}, "1 modulo the order 1104"),
        ({"digits": 4}, "4 primes are too few for 4 digits"),
        ({"weight": 769}, "weight is 1 to 768"),
        ({"recryption_modulus": 3}, "a power of it"),
        ({"automorphisms": (5,)}, "coprime to the order"),
    ):
        with pytest.raises(ParameterError, match=problem):
            replace(SMALL, **changes)
    with pytest.raises(ParameterError, match="it has other fields"):
        parameters_from_json({"name": "x", "scheme": "ghs", "source": ""})
