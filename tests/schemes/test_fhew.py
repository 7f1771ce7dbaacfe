"""Keys of FHEW: every row of the public files is of the shared secrets, with noise of its distribution; evaluation; decryption; refusals."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import lwe_sets
from keyquorum.fhe.fhew import (
    BOOTSTRAPPING,
    KEY_FILES,
    KEY_MAGIC,
    KINDS,
    PUBLIC,
    SWITCHING,
    FhewKeyFile,
    body_residues,
    evaluated_deviation,
    masks,
)
from keyquorum.fhe.fhew_evaluation import Evaluation, add, encrypt
from keyquorum.fhe.lwe import FHEW_SETS, FhewParameters, LweCiphertexts, decrypt_clear, file_scheme, pack, read_lwe, unpack
from keyquorum.fhe.lwe import encrypt as encrypt_with_secret
from keyquorum.inspection import examine
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError
from keyquorum.model.inspected import sha256_of
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes import load_parameters, recognise, scheme_named, scheme_of
from keyquorum.schemes.fhew import keygen
from keyquorum.schemes.fhew.key import FHEW_KEYS, FhewKeyInfo
from keyquorum.schemes.fhew.keygen import FhewRequest
from keyquorum.schemes.fhew.noise import NoisePlan
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.lwe.key import load_lwe_key

from tests.plans.quorum import reconstruct

from .in_threads import on_disk, run

AJAX = FHEW_SETS["ajax53"]
TINY = replace(AJAX, name="fhew-tiny", dimension=256, lwe_dimension=9, samples=500, source="tests: hides nothing")
COMMITTEES = [("shamir", 3, "local"), ("shamir", 5, "local"), ("rep-field", 3, "local"), ("rep-field", 3, "exact")]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """There is a small set, and chunks of a few rows, of which the last is not full."""
    monkeypatch.setitem(FHEW_SETS, TINY.name, TINY)
    assert lwe_sets.FHEW_SETS is FHEW_SETS
    monkeypatch.setattr(keygen, "BODIES", 4 * 2 * TINY.levels * TINY.dimension)
    monkeypatch.setattr(keygen, "MASKS", 70 * TINY.dimension)
    yield


def secrets_of(material: list[KeyMaterial[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """The short secret and the ring secret."""
    info = material[0].info
    ring, short = (reconstruct(info.protocol, info.threshold, [m.shares[j].words for m in material], info.parameters.prime) for j in (0, 1))
    return short, ring


@pytest.mark.parametrize(("protocol", "parties", "noise"), COMMITTEES)
def test_every_row_is_of_the_secrets(protocol: str, parties: int, noise: str) -> None:
    committee = api.in_process_committee(parties, protocol)
    material = api.keygen_in_process(committee, FhewRequest(TINY, noise))
    info = material[0].info
    assert all(m.public == material[0].public and m.info == info for m in material) and set(material[0].public) == set(KEY_FILES.names)
    assert isinstance(info, FhewKeyInfo) and info.noise == noise
    short, ring = secrets_of(material)
    assert (short.size, ring.size) == (TINY.lwe_dimension, TINY.dimension) and set(short) <= {0, 1} and set(ring) <= {-1, 0, 1} and ring.any()
    files = [KEY_FILES.read(material[0].public[KEY_FILES.name(kind)], kind) for kind in KINDS]
    assert len({file.seed for file in files}) == 3 and {file.key_id for file in files} == {info.key_id}
    plan = info.noise_plan
    for file in files:
        assert file.bodies.size == body_residues(TINY, file.kind)
        found = file.noise(short, ring)
        variance = plan.switch_variance if file.kind == SWITCHING else plan.variance
        # the sample variance of a normal or flatter distribution, within 4.5 of its deviations
        assert np.abs(found).max() < 12 * math.sqrt(variance) and abs(found.mean()) < 4.5 * math.sqrt(variance / found.size)
        assert abs(found.var() / variance - 1) < 4.5 * math.sqrt(2 / found.size), (file.kind, found.var(), variance)
        # a wrong secret, or another seed, gives rows with noise beyond any bound
        others = 1 - short, np.roll(ring, 1)
        assert np.abs(file.noise(*others)).max() > 1 << 49
        assert not short.any() or np.abs(replace(file, seed=bytes(16)).noise(short, ring)).max() > 1 << 49  # once in 512 times no mask matters


def test_rows_are_those_of_the_format() -> None:
    """Of single rows, by the formulas of docs/pages/formats.md."""
    material = api.keygen_in_process(api.in_process_committee(3, "shamir"), FhewRequest(TINY))
    short, ring = ([int(v) for v in secret] for secret in secrets_of(material))
    n, dim, q = TINY.dimension, TINY.lwe_dimension, TINY.prime
    root = next(r for r in sorted(pow(g, (q - 1) // (2 * n), q) for g in range(2, 60)) if pow(r, n, q) == q - 1)
    root = min(pow(root, k, q) for k in range(1, 2 * n, 2))

    def file(kind: str) -> tuple[list[int], list[int]]:
        found = KEY_FILES.read(material[0].public[KEY_FILES.name(kind)], kind)
        each = {PUBLIC: n, BOOTSTRAPPING: 1, SWITCHING: dim}[kind]
        return [int(w) for w in found.bodies], [int(w) for w in masks(TINY, found.seed, 0, found.bodies.size * each)]

    def small(value: int, bound: float) -> bool:
        return abs((value + q // 2) % q - q // 2) <= bound

    def value_at(polynomial: list[int], place: int) -> int:
        x = pow(root, 2 * int(f"{place:08b}"[::-1], 2) + 1, q)
        return sum(c * pow(x, k, q) for k, c in enumerate(polynomial)) % q

    bodies, a = file(PUBLIC)
    for i in (0, 499):
        assert small(bodies[i] - sum(x * y for x, y in zip(a[i * n : (i + 1) * n], ring, strict=True)), 80)
    bodies, a = file(SWITCHING)
    for i, j in [(0, 0), (11, 1), (255, 51)]:
        at = TINY.switch_levels * i + j
        inner = sum(x * y for x, y in zip(a[at * dim : (at + 1) * dim], short, strict=True))
        assert small(bodies[at] - inner - (ring[i] << (1 + j)), 20 * TINY.switch_deviation)
    bodies, a = file(BOOTSTRAPPING)
    values = [value_at(ring, place) for place in range(n)]
    for i, j, row in [(0, 0, 0), (3, 1, 0), (5, 0, 1), (8, 7, 1)]:
        at, g = n * (2 * (TINY.levels * i + j) + row), 1 << (5 + 6 * j)
        plain = [-g * short[i] * v if row == 0 else g * short[i] for v in values]
        noise = [(b - x * v - m) % q for b, x, v, m in zip(bodies[at : at + n], a[at : at + n], values, plain, strict=True)]
        # the inverse of the values at all places
        inverse = pow(n, -1, q)
        for k in (0, 1, n - 1):
            points = [pow(root, -(2 * int(f"{place:08b}"[::-1], 2) + 1) * k, q) for place in range(n)]
            assert small(sum(x * y for x, y in zip(noise, points, strict=True)) * inverse, 80)


@pytest.mark.parametrize(("protocol", "parties", "noise"), [COMMITTEES[0], COMMITTEES[3]])
def test_ciphertexts_are_evaluated(protocol: str, parties: int, noise: str) -> None:
    """Every message, encrypted under the public key, looked up in two tables; and a sum that was looked up."""
    material = api.keygen_in_process(api.in_process_committee(parties, protocol), FhewRequest(TINY, noise))
    _, ring = secrets_of(material)
    keys = {kind: KEY_FILES.read(material[0].public[KEY_FILES.name(kind)], kind) for kind in KINDS}
    evaluation = Evaluation(keys[BOOTSTRAPPING], keys[SWITCHING])
    messages = np.arange(64) % 16
    fresh = encrypt(keys[PUBLIC], messages)
    found, error = decrypt_clear(fresh, ring)
    assert np.array_equal(found, messages) and (error * TINY.delta).max() < 13 * math.sqrt(material[0].info.noise_plan.variance * TINY.samples / 2)
    assert np.unique(fresh.a, axis=0).shape[0] == 64 and np.unique(fresh.b).size == 64
    for table in ([(x * x + 3) % 16 for x in range(8)], [x % 4 for x in range(8)]):
        looked_up = evaluation.apply(fresh, table)
        wanted = [table[m] if m < 8 else -table[m - 8] % 16 for m in messages]
        found, error = decrypt_clear(looked_up, ring)
        assert found.tolist() == wanted and (error * TINY.delta).max() < 13 * evaluated_deviation(TINY, material[0].info.noise_plan.growth)
    one, two = (encrypt(keys[PUBLIC], np.array([m])) for m in (1, 2))
    total = evaluation.apply(add(one, two), [x % 4 for x in range(8)])
    assert decrypt_clear(total, ring)[0].tolist() == [3]
    with pytest.raises(ParameterError, match="a table of fhew-tiny has 8 values from 0 to 15"):
        evaluation.apply(fresh, [1, 2, 3])
    with pytest.raises(CiphertextError, match="64 ciphertexts of fhew-tiny and 1 of fhew-tiny do not add up"):
        add(fresh, one)
    with pytest.raises(CiphertextError, match="take the files of one key"):
        Evaluation(keys[BOOTSTRAPPING], replace(keys[SWITCHING], key_id="0" * 32))


def test_a_damaged_file_is_refused() -> None:
    data = api.keygen_in_process(api.in_process_committee(3, "shamir"), FhewRequest(TINY))[0].public["public.kqf"]
    assert KEY_FILES.read(data, "it").kind == PUBLIC
    for other in (data[:-1], data[:40], b"KQFHEW02" + data[8:], data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], data[:8]):
        with pytest.raises(KeyFileError, match="it: not a public key of FHEW, or a damaged one"):
            KEY_FILES.read(other, "it")
    header, body = unpack(data)
    for name, value, said in (
        ("levels", 7, "other numbers than the set fhew-tiny"), ("residues", 31, "other numbers"), ("more", 1, "other numbers"), ("seed", "00" * 15, "damaged"),
        ("kind", "small", "damaged"), ("parameters", "fhew-huge", "damaged"), ("parameters", [], "damaged"),
    ):  # fmt: skip
        with pytest.raises(KeyFileError, match=said):
            KEY_FILES.read(pack(KEY_MAGIC, {**header, name: value}, bytes(body)), "it")
    for wrong in (bytes(body)[:-7], b"\xff" * 7 + bytes(body)[7:]):  # a missing row, and a residue above the modulus
        with pytest.raises(KeyFileError, match="damaged"):
            KEY_FILES.read(pack(KEY_MAGIC, header, wrong), "it")


@pytest.mark.parametrize(("protocol", "parties"), [("shamir", 3), ("rep-field", 3), ("shamir", 5)])
def test_a_key_on_disk_decrypts_what_was_evaluated(tmp_path: Path, protocol: str, parties: int) -> None:
    members = on_disk(tmp_path, protocol, parties)
    made = run(members, api.keygen_job("key", "fhew-tiny"))
    folders = [members.key_folder(party, "key") for party in range(parties)]
    info = FHEW_KEYS.load(folders[0])
    assert {m["key_id"] for m in made} == {info.key_id} and set(info.files) == set(KEY_FILES.names)
    assert info.noise == ("local" if protocol == "shamir" else "exact")
    assert [load_key(folder) for folder in folders] == [info] * parties
    assert all(finding.ok for finding in examine_keys(members, range(parties)))
    scheme_of(info).check_public(folders[0], info)
    seen = examine(folders[0] / "bootstrapping.kqf")
    assert seen.kind == "public key of FHEW" and seen.checked == "sha256, also of key.json" and seen.details["key_id"] == info.key_id
    assert examine(folders[0]).lines[0].startswith(f"FHEW key {info.key_id}, fhew-tiny")
    # contributions are nowhere in the folder: its files are those of the key
    names = {"key.json", "share-0.kqs", "share-1.kqs", *KEY_FILES.names}
    assert {path.name for path in folders[0].rglob("*") if path.is_file()} == names

    messages = np.arange(32) % 16
    api.encrypt(members, "key", messages, tmp_path / "fresh.lwe")
    fresh, _ = read_lwe((tmp_path / "fresh.lwe").read_bytes(), "fresh")
    assert recognise((tmp_path / "fresh.lwe").read_bytes()) is scheme_named("fhew") and file_scheme((tmp_path / "fresh.lwe").read_bytes()) == "fhew"
    keys = {kind: FHEW_KEYS.load_file(folders[1], info, kind) for kind in KINDS}
    table = [(3 * x + 1) % 16 for x in range(8)]
    looked_up = Evaluation(keys[BOOTSTRAPPING], keys[SWITCHING]).apply(fresh, table)
    wanted = [table[m] if m < 8 else -table[m - 8] % 16 for m in messages]
    path = tmp_path / "x.lwe"
    path.write_bytes(looked_up.to_bytes(info.key_id))
    for rounding in ("round_ltz_circuit", "round_mask_open", "round_ltz_table"):
        run(members, {"kind": "pool_fill", "parameters": "fhew-tiny", "rounding": rounding, "width": 8, "levels": 2, "count": 32, "chunk": 32})
        output = tmp_path / f"x.{rounding}.lwe.plain"
        run(members, api.decrypt_job(members, "key", [path], 1, [output], rounding))
        assert api.decode(members, "key", output).tolist() == wanted, rounding
    with pytest.raises(ParameterError, match=r"round_flood is not for these ciphertexts, .*: take round_ltz_circuit"):
        run(members, api.decrypt_job(members, "key", [path], 1, [tmp_path / "y"], "round_flood"))
    with pytest.raises(KeyFileError, match="a key of FHEW, not of LWE"):
        load_lwe_key(folders[0])
    with pytest.raises(ParameterError, match="--bound is for CKKS"):
        api.encrypt(members, "key", [1], tmp_path / "z", bound=2.0)
    (folders[0] / "public.kqf").write_bytes(b"KQFHEW01" + bytes(100))
    with pytest.raises(KeyFileError, match=r"public\.kqf is damaged: copy it from another party"):
        scheme_of(info).check_public(folders[0], info)


def test_exact_roundings_take_noise_up_to_half_a_step(tmp_path: Path) -> None:
    members = on_disk(tmp_path, "shamir", 3)
    run(members, api.keygen_job("key", "fhew-tiny"))
    folders = [members.key_folder(party, "key") for party in range(3)]
    info = FHEW_KEYS.load(folders[0])
    shares = [load_shares(folder, info, party) for party, folder in enumerate(folders)]
    ring = reconstruct("shamir", 1, [share[0].words for share in shares], TINY.prime)
    rng = np.random.default_rng(1)
    messages, noise = rng.integers(0, 16, 64), rng.integers(-(1 << 47), 1 << 47, 64)
    noise[:2] = [TINY.delta // 2 - 4, 4 - TINY.delta // 2]
    path = tmp_path / "x.lwe"
    path.write_bytes(encrypt_with_secret(TINY, ring, messages, rng, noise).to_bytes(info.key_id))
    run(members, {"kind": "pool_fill", "parameters": "fhew-tiny", "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "count": 64, "chunk": 64})
    run(members, api.decrypt_job(members, "key", [path], 0, [tmp_path / "x.plain"], "round_ltz_circuit"))
    assert api.decode(members, "key", tmp_path / "x.plain").tolist() == messages.tolist()


def test_what_is_refused() -> None:
    for protocol, parties, noise, said in (
        ("semi", 3, "", "all parties but one may be corrupted, so contributed noise would grow 3 times"),
        ("mascot", 2, "", "scaled share by share, which MACs do not follow"),
        ("shamir", 3, "exact", "each of the 1,750 million random bits of exact noise would take a product: take noise=local"),
        ("shamir", 3, "none", "noise=none: choose local or exact"),
    ):
        with pytest.raises(ParameterError, match=said):
            FhewRequest(AJAX, noise).check_committee(api.in_process_committee(parties, protocol))
    for options, said in (
        ({"noise": "none"}, "choose local or exact"), ({"law": 3}, "law is no option of keys of FHEW, which have noise"), ({"galois_elements": [3]}, "ajax53 is a set of FHEW"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=said):
            api.keygen_job("key", "ajax53", **options)
    with pytest.raises(ParameterError, match="is not that of this version"):
        scheme_named("fhew").request_from_job({"parameters": {"name": "ajax53", "scheme": "fhew"}, "noise": ""})


def test_the_set_is_that_of_the_paper() -> None:
    chosen = load_parameters("ajax53")
    assert isinstance(chosen, FhewParameters) and chosen.prime == 2**53 - 126975 and chosen.prime % 4096 == 1 and chosen.delta == chosen.prime // 16
    assert [body_residues(chosen, kind) for kind in KINDS] == [108_544, 106_496, 33_554_432]
    # the deviations of the paper's failure rate of mask-then-open, 2^-30.27, are those of growth 2
    assert math.log2(math.sqrt(2 / math.pi) * evaluated_deviation(chosen, 2) / chosen.delta) == pytest.approx(-30.27, abs=0.01)
    one = LweCiphertexts(chosen, np.zeros((1, 2048), np.uint64), np.zeros(1, np.uint64))
    assert file_scheme(one.to_bytes("ab" * 16)[:64]) == "fhew" and read_lwe(one.to_bytes("ab" * 16), "it")[0].parameters is chosen
    for protocol, parties in (("shamir", 3), ("rep-field", 3), ("shamir", 9)):
        needs = FhewRequest(chosen).needs(api.in_process_committee(parties, protocol))
        assert 236e6 < needs.disk < 240e6 and needs.memory < 0.15 * 4.4 * 2**30


def test_growth_is_stated() -> None:
    for parties, threshold, growth in ((3, 1, 1.5), (5, 2, 5 / 3), (21, 10, 21 / 11), (61, 30, 61 * 0.49 / 12.96)):
        plan = NoisePlan(AJAX, "local", parties, threshold)
        assert plan.growth == pytest.approx(growth) and plan.contributed >= 0.49
    exact = NoisePlan(AJAX, "exact", 3, 1)
    assert exact.variance == 13 and exact.growth == pytest.approx(1.0031, abs=1e-4)
    assert exact.switch_variance / AJAX.switch_deviation**2 == pytest.approx(1, rel=1e-7) and exact.wide.weight <= 2 << exact.wide.b


@pytest.mark.timeout(1800)
@pytest.mark.skipif("KEYQUORUM_FULL" not in os.environ, reason="KEYQUORUM_FULL is not set: a key of ajax53 takes a minute")
@pytest.mark.parametrize(("protocol", "noise"), [("shamir", "local"), ("rep-field", "exact")])
def test_a_key_of_full_size(tmp_path: Path, protocol: str, noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All 33.8 million rows, and 256 look-ups of all messages, whose noise has the deviation of the formula within a fifth: 4.5 of its own deviations."""
    monkeypatch.setattr(keygen, "BODIES", 1 << 19)
    monkeypatch.setattr(keygen, "MASKS", 1 << 20)
    committee = api.init(tmp_path / "committee", 3, protocol)
    result = api.keygen(committee, "key", "ajax53", noise=noise, io_timeout=600)
    info = FHEW_KEYS.load(result.folder)
    shares = [load_shares(committee.key_folder(party, "key"), info, party) for party in range(3)]
    ring, short = (reconstruct(protocol, 1, [share[j].words for share in shares], AJAX.prime) for j in (0, 1))
    keys = {kind: FHEW_KEYS.load_file(result.folder, info, kind) for kind in KINDS}
    plan = info.noise_plan
    for kind, file in keys.items():
        found = file.noise(short, ring)
        variance = plan.switch_variance if kind == SWITCHING else plan.variance
        assert np.abs(found).max() < 12 * math.sqrt(variance)
        assert abs(found.var() / variance - 1) < 4.5 * math.sqrt(2 / found.size), kind
    messages = np.arange(256) % 16
    looked_up = Evaluation(keys[BOOTSTRAPPING], keys[SWITCHING]).apply(encrypt(keys[PUBLIC], messages), [x % 4 for x in range(8)])
    found, error = decrypt_clear(looked_up, ring)
    assert found.tolist() == [m % 4 if m < 8 else -(m % 4) % 16 for m in messages]
    deviation = math.sqrt(float(((error * AJAX.delta) ** 2).mean()))
    assert 0.8 < deviation / evaluated_deviation(AJAX, plan.growth) < 1.2


def test_a_file_is_that_of_its_kind(tmp_path: Path) -> None:
    material = api.keygen_in_process(api.in_process_committee(3, "rep-field"), FhewRequest(TINY, "local"))[0]
    swapped = {"public.kqf": "key-switching.kqf", "key-switching.kqf": "public.kqf"}
    for name in material.public:
        (tmp_path / name).write_bytes(material.public[swapped.get(name, name)])
    info = replace(material.info, files={name: sha256_of(tmp_path / name).hex() for name in material.public})
    with pytest.raises(KeyFileError, match=r"public\.kqf is of another key"):
        FHEW_KEYS.load_file(tmp_path, info, PUBLIC)
    assert isinstance(FHEW_KEYS.load_file(tmp_path, info, BOOTSTRAPPING), FhewKeyFile)
