"""Keys for TFHE-rs: every row of the public files is of the shared secrets, with noise of its distribution; decryption; refusals."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import LWE_SETS, TFHE_SETS, LweCiphertexts, TfheParameters, encrypt, file_scheme, pack, read_lwe, unpack
from keyquorum.fhe.tfhe import BOOTSTRAPPING, COMPACT, KEY_FILES, KEY_MAGIC, KINDS, SWITCHING, body_words, masks
from keyquorum.inspection import examine
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes import load_parameters, recognise, scheme_named, scheme_of
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.schemes.tfhe import keygen, noise
from keyquorum.schemes.tfhe.key import TFHE_KEYS
from keyquorum.schemes.tfhe.keygen import TfheRequest
from keyquorum.serve.kinds.decryption import ServedKey
from scipy import stats

from .in_threads import on_disk, run

TINY = TfheParameters(
    "tfhe-tiny", 32, 0, 4, 1, 2.0**16, 53, "tests: hides nothing", lwe_dimension=9, pbs_base_log=10, pbs_level=2, ks_base_log=4, ks_level=3,
    carry_bits=2, lwe_noise=30, glwe_noise=17,
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]
COMMITTEES = [("rep-field", 3), ("semi", 2), ("semi", 3)]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """There is a small set, and chunks of a few rows, of which the last is not full."""
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    for chunk in ("BOOTSTRAPPING_CHUNK", "CARRY_CHUNK"):
        monkeypatch.setattr(keygen, chunk, 4 * 2 * TINY.pbs_level * TINY.dimension)
    monkeypatch.setattr(keygen, "SWITCHING_CHUNK", 5 * TINY.ks_level * TINY.lwe_dimension)
    yield


def secrets_of(material: list[KeyMaterial[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """The short secret and the ring secret: the first summands add up."""
    ring, short = (sum(m.shares[j].words[0] for m in material).astype(np.int64) for j in (0, 1))
    return short, ring


@pytest.mark.parametrize(("protocol", "parties", "method"), [*((*c, "bits") for c in COMMITTEES), ("rep-field", 3, "carry")])
def test_every_row_is_of_the_secrets(protocol: str, parties: int, method: str) -> None:
    committee = api.in_process_committee(parties, protocol)
    material = api.keygen_in_process(committee, TfheRequest(TINY, method))
    assert all(m.public == material[0].public and m.info == material[0].info for m in material) and set(material[0].public) == set(KEY_FILES.names)
    short, ring = secrets_of(material)
    assert (short.size, ring.size) == (TINY.lwe_dimension, TINY.dimension) and set(short) | set(ring) == {0, 1}
    assert [m.shares[j].length for m in material for j in (0, 1)] == [TINY.dimension, TINY.lwe_dimension] * parties
    files = [KEY_FILES.read(material[0].public[KEY_FILES.name(kind)], kind) for kind in KINDS]
    assert len({file.seed for file in files}) == 3 and {file.key_id for file in files} == {material[0].info.key_id}
    for file in files:
        assert file.bodies.size == body_words(TINY, file.kind)
        found = file.noise(short, ring)
        assert np.abs(found).max() <= file.bound and np.unique(found).size > 0.9 * found.size
        assert stats.kstest(found / file.bound, "uniform", (-1, 2)).pvalue > 1e-4
        # a wrong secret, or another seed, gives rows with noise beyond any bound
        others = short.copy(), ring.copy()
        for other in others:
            other[3] ^= 1
        assert np.abs(file.noise(*others)).max() > 1 << 56
        # once in 512 times all bits of the short secret are 0, and no mask matters
        assert not short.any() or np.abs(replace(file, seed=bytes(16)).noise(short, ring)).max() > 1 << 56


def test_rows_are_those_of_the_format() -> None:
    """Of single rows, by the formulas of docs/pages/formats.md."""
    material = api.keygen_in_process(api.in_process_committee(3, "rep-field"), TfheRequest(TINY))
    short, ring = ([int(bit) for bit in secret] for secret in secrets_of(material))
    n, dim = TINY.dimension, TINY.lwe_dimension

    def file(kind: str) -> tuple[list[int], list[int]]:
        found = KEY_FILES.read(material[0].public[KEY_FILES.name(kind)], kind)
        words = found.bodies.size * (dim if kind == SWITCHING else 1)
        return [int(w) for w in found.bodies], [int(w) for w in masks(found.seed, 0, words)]

    def product(a: list[int], b: list[int], k: int) -> int:
        return sum(a[i] * b[k - i] if i <= k else -a[i] * b[n + k - i] for i in range(n))

    def small(value: int, bits: int) -> bool:
        return abs((value + (1 << 63)) % (1 << 64) - (1 << 63)) <= 1 << bits

    bodies, a = file(BOOTSTRAPPING)
    for i, place, row, k in [(0, 0, 0, 0), (3, 1, 0, 7), (5, 0, 1, 0), (8, 1, 1, 0), (8, 1, 1, 31)]:
        at, g = n * (2 * (TINY.pbs_level * i + place) + row), 1 << (64 - TINY.pbs_base_log * (TINY.pbs_level - place))
        plain = -g * short[i] * ring[k] if row == 0 else g * short[i] * (k == 0)
        assert small(bodies[at + k] - product(a[at : at + n], ring, k) - plain, TINY.glwe_noise)
    bodies, a = file(SWITCHING)
    for i, place in [(0, 0), (11, 1), (31, 2)]:
        at, level = TINY.ks_level * i + place, TINY.ks_level - place
        inner = sum(x * y for x, y in zip(a[at * dim : (at + 1) * dim], short, strict=True))
        assert small(bodies[at] - inner - (ring[i] << (64 - TINY.ks_base_log * level)), TINY.lwe_noise)
    bodies, a = file(COMPACT)
    for k in (0, 1, n - 1):
        assert small(bodies[k] - product(a, ring[::-1], k), TINY.glwe_noise)


def test_a_damaged_file_is_refused() -> None:
    data = api.keygen_in_process(api.in_process_committee(2, "semi"), TfheRequest(TINY))[0].public["compact.kqt"]
    assert KEY_FILES.read(data, "it").kind == COMPACT
    for other in (data[:-1], data[:40], b"KQTFHE02" + data[8:], data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], data[:8]):
        with pytest.raises(KeyFileError, match="it: not a public key for TFHE-rs, or a damaged one"):
            KEY_FILES.read(other, "it")
    for name, value, said in (
        ("glwe_noise", 16, "other numbers than the set tfhe-tiny"), ("words", 31, "other numbers"), ("more", 1, "other numbers"),
        ("seed", "00" * 15, "damaged"), ("seed", "0G" * 16, "damaged"), ("kind", "small", "damaged"), ("parameters", "tfhe-huge", "damaged"),
        ("parameters", [], "damaged"),
    ):  # fmt: skip
        with pytest.raises(KeyFileError, match=said):
            KEY_FILES.read(changed(data, **{name: value}), "it")


def test_a_new_key_is_checked_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every party reads its files again. A file that is not that of the key, or whose bodies are no bodies, leaves no key anywhere."""
    members = on_disk(tmp_path, "rep-field", 3)
    big = replace(TINY, name="tfhe-big", dimension=512, lwe_dimension=64)
    monkeypatch.setitem(TFHE_SETS, big.name, big)
    monkeypatch.setattr(keygen, "BOOTSTRAPPING_CHUNK", 1 << 17)
    monkeypatch.setattr(keygen, "SWITCHING_CHUNK", 1 << 20)
    run(members, api.keygen_job("good", big.name))
    folder = members.key_folder(1, "good")
    info, path = TFHE_KEYS.load(folder), folder / "bootstrapping.kqt"
    scheme_of(info).check_made(folder, info)
    data = path.read_bytes()
    header, body = unpack(data)
    constant = bytes(8) * (len(body) // 8)
    repeated = pack(KEY_MAGIC, header, bytes(body[: len(body) // 64]) * 64)
    assert body_words(big, BOOTSTRAPPING) >= 1 << 16
    for wrong, said in (
        (data[:-8], "damaged one: delete this key and make it again"), (data[:-1] + bytes([data[-1] ^ 1]), "damaged one"), (b"KQTFHE02" + data[8:], "damaged one"),
        (changed(data, glwe_noise=16), "header is not that of the bootstrapping key"), (changed(data, key_id="0" * 32), "header is not that"),
        (changed(data, kind="compact"), "damaged|not that"), (changed(data, seed="0G" * 16), "damaged one"),
        (pack(KEY_MAGIC, header, constant), "bodies are not as good as random"), (repeated, "bodies are not as good as random"),
    ):  # fmt: skip
        path.write_bytes(wrong)
        with pytest.raises(KeyFileError, match=said):
            scheme_of(info).check_made(folder, info)

    def forgotten(self: Any, seed: bytes, write: Any) -> None:
        write(np.zeros(body_words(big, BOOTSTRAPPING), dtype=np.uint64))

    monkeypatch.setattr(keygen._Generation, "bootstrapping", forgotten)
    with pytest.raises(
        KeyFileError, match=r"bootstrapping\.kqt: its bodies are not as good as random: delete this key, make it again, and report it"
    ):
        run(members, api.keygen_job("bad", big.name))
    assert not any((members.key_folder(party, "bad") / "key.json").exists() for party in range(3))


def changed(data: bytes, **entries: object) -> bytes:
    """A file with other entries in its header, and the right checksum."""
    header, body = unpack(data)
    return pack(KEY_MAGIC, {**header, **entries}, bytes(body))


@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("semi", 2)])
def test_a_key_on_disk_decrypts(tmp_path: Path, protocol: str, parties: int) -> None:
    members = on_disk(tmp_path, protocol, parties)
    made = run(members, api.keygen_job("key", "tfhe-tiny"))
    folders = [members.key_folder(party, "key") for party in range(parties)]
    info = TFHE_KEYS.load(folders[0])
    assert {m["key_id"] for m in made} == {info.key_id} and set(info.files) == set(KEY_FILES.names)
    assert [load_key(folder) for folder in folders] == [info] * parties
    assert all(finding.ok for finding in examine_keys(members, range(parties)))
    scheme_of(info).check_public(folders[0], info)
    seen = examine(folders[0] / "bootstrapping.kqt")
    assert seen.kind == "public key for TFHE-rs" and seen.checked == "sha256, also of key.json" and seen.details["key_id"] == info.key_id
    assert examine(folders[0]).lines[0].startswith(f"TFHE key {info.key_id}, tfhe-tiny")
    exported, _ = api.export_key(members, "key", folders[0], tmp_path / "elsewhere")
    assert {path.name for path in exported.iterdir()} == {"key.json", *KEY_FILES.names}

    shares = [load_shares(folder, info, party) for party, folder in enumerate(folders)]
    ring = sum(share[0].words[0] for share in shares).astype(np.int64)
    rng = np.random.default_rng(1)
    messages = rng.integers(0, 16, 64)
    errors = rng.integers(-(1 << 53), 1 << 53, 64)
    errors[:2] = [(1 << 58) - 1, -(1 << 58)]  # the largest that any rounding takes
    path = tmp_path / "x.lwe"
    path.write_bytes(replace(encrypt(TINY, ring, messages, rng, errors), noise_bits=58).to_bytes(info.key_id))
    assert recognise(path.read_bytes()) is scheme_of(info) is scheme_named("tfhe") and examine(path).kind == "LWE ciphertexts"
    for rounding in ("round_ltz_circuit", "round_ltz_table"):
        run(members, {"kind": "pool_fill", "parameters": "tfhe-tiny", "rounding": rounding, "width": 8, "levels": 2, "count": 64, "chunk": 64})
        output = tmp_path / f"x.{rounding}.lwe.plain"
        run(members, api.decrypt_job(members, "key", [path], 1, [output], rounding))
        assert api.decode(members, "key", output).tolist() == messages.tolist()
    for rounding in ("round_mask_open", "round_flood"):
        with pytest.raises(ParameterError, match=f"{rounding} is not for these ciphertexts, .*: take round_ltz_circuit or round_ltz_table"):
            run(members, api.decrypt_job(members, "key", [path], 1, [tmp_path / "y"], rounding))
        with pytest.raises(ParameterError, match="is not for these ciphertexts"):
            run(members, {"kind": "pool_fill", "parameters": "tfhe-tiny", "rounding": rounding, "width": 8, "levels": 2, "count": 4, "chunk": 4})
    served = ServedKey(members, 0, "key", "round_ltz_circuit")
    assert served.read({}, path.read_bytes()).count == 64
    served.close()

    path.write_bytes(replace(encrypt(TINY, ring, messages, rng, errors), noise_bits=58.5).to_bytes(info.key_id))
    for rounding in ("round_ltz_circuit", "round_ltz_table"):
        with pytest.raises(CiphertextError, match=r"states noise of up to 2\^58.5, no rounding takes more than 2\^58"):
            run(members, api.decrypt_job(members, "key", [path], 1, [tmp_path / "y"], rounding))

    with pytest.raises(ParameterError, match="TFHE-rs encrypts for keys of TFHE"):
        api.encrypt(members, "key", [1], tmp_path / "z")
    with pytest.raises(KeyFileError, match="a key of TFHE, not of LWE"):
        load_lwe_key(folders[0])
    with pytest.raises(CiphertextError, match="encrypted under another key"):
        scheme_of(info).parse(info, encrypt(TINY, ring, messages, rng).to_bytes("0" * 32), "x", "round_ltz_circuit")
    compact = (folders[0] / "compact.kqt").read_bytes()
    for other in (b"KQTFHE01" + bytes(100), changed(compact, seed="12" * 16)):
        (folders[0] / "compact.kqt").write_bytes(other)
        with pytest.raises(KeyFileError, match=r"compact\.kqt"):
            examine(folders[0] / "compact.kqt")
        with pytest.raises(KeyFileError, match=r"compact\.kqt is damaged: copy it from another party"):
            scheme_of(info).check_public(folders[0], info)


def test_what_is_refused() -> None:
    for protocol, parties, said in (
        ("shamir", 3, "shares over prime fields alone"),
        ("mascot", 2, "71.9 million .* about 177 GB in all and take 0.3 hours"),
        ("mascot", 4, "about 1,062 GB in all and take 1.7 hours"),
    ):
        with pytest.raises(ParameterError, match=said):
            TfheRequest(TFHE_SETS["tfhers-2-2"]).check_committee(api.in_process_committee(parties, protocol))
    for method, said in (
        ("carry", "semi: noise_method=carry needs shares with random summands .*: take noise_method=bits"),
        ("other", "choose bits or carry"),
    ):
        with pytest.raises(ParameterError, match=said):
            TfheRequest(TFHE_SETS["tfhers-2-2"], method).check_committee(api.in_process_committee(2, "semi"))
    with pytest.raises(ParameterError, match="noise_method=other: choose bits or carry"):
        api.keygen_job("key", "tfhers-2-2", noise_method="other")
    assert api.keygen_job("key", "tfhers-2-2", noise_method="carry")["noise_method"] == "carry"
    with pytest.raises(ParameterError, match="noise is no option of keys of TFHE, which have noise_method"):
        api.keygen_job("key", "tfhers-2-2", noise=3)
    with pytest.raises(ParameterError, match="tfhers-2-2 is a set of TFHE"):
        api.keygen_job("key", "tfhers-2-2", galois_elements=[3])
    with pytest.raises(ParameterError, match="is not that of this version"):
        scheme_named("tfhe").request_from_job({"parameters": {"name": "tfhers-2-2", "scheme": "tfhe"}})


def test_the_estimate_for_macs_is_of_measured_rates() -> None:
    """The medians of a single bit among two parties of spdz2k, in the table of results, within a tenth."""
    with (ROOT / "results" / "bench" / "primitives.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if (r["name"], r["protocol"], r["parties"], r["phase"]) == ("random bit", "spdz2k", "2", "offline")]
    rows = [r for r in rows if r["status"] == "ok" and not r["link"] and r["backend"] == "embedded"]
    seconds = np.median([float(r["seconds"]) / int(r["batch"]) for r in rows])
    sent = np.median([(float(r["bytes_sent"]) + float(r["bytes_received"])) / int(r["batch"]) for r in rows])
    assert rows and pytest.approx(seconds, rel=0.1) == noise.MAC_BIT_SECONDS and pytest.approx(sent, rel=0.1) == noise.MAC_BIT_BYTES
    assert noise.random_bits(TFHE_SETS["tfhers-2-2"]) == (3_760_128 + 2_048) * 19 + 8_192 * 47


def test_the_set_is_that_of_tfhe_rs() -> None:
    """The numbers of the format's table, and the scheme of files by their header."""
    chosen = load_parameters("tfhers-2-2")
    assert isinstance(chosen, TfheParameters) and not set(TFHE_SETS) & set(LWE_SETS)
    assert [body_words(chosen, kind) for kind in KINDS] == [3_760_128, 8_192, 2_048] and (chosen.delta, chosen.noise_length) == (1 << 59, 59)
    one = LweCiphertexts(chosen, np.zeros((1, 2048), np.uint64), np.zeros(1, np.uint64))
    data = one.to_bytes("ab" * 16)
    compact = data[12:].replace(b'": ', b'":').replace(b", ", b",")
    assert file_scheme(data) == file_scheme(data[:64]) == file_scheme(data[:12] + compact) == "tfhe" and read_lwe(data, "it")[0].parameters is chosen
    assert file_scheme(replace(one, parameters=LWE_SETS["lwe64-p16"]).to_bytes("ab" * 16)) == "lwe" and file_scheme(b"KQTFHE01") is None
    request = TfheRequest(chosen)
    needs = request.needs(api.in_process_committee(3, "rep-field"))
    assert 30.1e6 < needs.disk < 31e6 and needs.memory < 400e6
    assert needs.memory < TfheRequest(chosen, "carry").needs(api.in_process_committee(3, "rep-field")).memory < 500e6


def test_the_secrets_of_a_run_that_fails_are_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    start = keygen._Generation.__init__

    def remember(self: Any, *args: Any) -> None:
        start(self, *args)
        made.append(self)

    def fail(self: Any, *args: Any) -> None:
        assert self.ring.words.any() or self.short.words.any()
        raise OSError("no space left")

    monkeypatch.setattr(keygen._Generation, "__init__", remember)
    monkeypatch.setattr(keygen._Generation, "switching", fail)
    with pytest.raises(OSError, match="no space left"):
        api.keygen_in_process(api.in_process_committee(2, "semi"), TfheRequest(TINY))
    assert len(made) == 2 and not any(share.words.any() for each in made for share in (each.ring, each.short))
