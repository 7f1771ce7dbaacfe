"""What a committee lets out: the flooding of CKKS results, the count of decryptions, and every refusal.

Parties are threads of this process with folders of their own, and run the jobs that party processes run.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe import _arith
from keyquorum.fhe.decode import phase
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, KeyQuorumError, PolicyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.decrypt import check_decrypt
from keyquorum.schemes import counts as policy
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.masked import most_masked
from keyquorum.schemes.seal.policy import FloodPolicy
from numpy.typing import NDArray

from tests.fhe.dealer import narrow

from .distributions import Z99, chi_square_p, uniform
from .quorum import WEAK, Seal, committee, decrypt_fixed, make_key, secret_of

CKKS = narrow("ckks-4096")
BFV = api.load_parameters("bfv-4096")
POLICY = WEAK
Outcome = dict[str, Any] | Exception


def run_parties(members: Committee, job: Callable[[int], dict[str, Any]]) -> list[Outcome]:
    """Each party runs its job, as a party process would; returns each party's result or error."""
    outcomes: list[Outcome] = [{}] * members.size

    def one(context: PartyContext) -> None:
        try:
            outcomes[context.party] = run_job(context, job(context.party))
        except (KeyQuorumError, _engine.EngineError) as error:
            outcomes[context.party] = error
            context.session.abort(f"party {context.party} failed: {error}")

    run_in_process(members, one, timeout=20.0)
    return outcomes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Committee:
    """A committee with the keys `ckks`, `other` (CKKS) and `bfv`, `bfv2` on disk."""
    members = replace(committee("rep-field"), folder=tmp_path_factory.mktemp("made"))
    for name, parameters in (("ckks", CKKS), ("other", CKKS), ("bfv", BFV), ("bfv2", BFV)):
        job = api.keygen_job(name, parameters, False, policy=POLICY)
        assert all(isinstance(outcome, dict) for outcome in run_parties(members, lambda party, job=job: job))  # type: ignore[misc]
    return members


@pytest.fixture
def members(made: Committee, tmp_path: Path) -> Committee:
    """A copy of :func:`made` that a test may damage."""
    for party in range(made.size):
        shutil.copytree(made.party_folder(party), tmp_path / f"party-{party}")
    return replace(made, folder=tmp_path)


def seal_of(members: Committee, key: str) -> Seal:
    """Stock SEAL with the public key that party 2 has on disk."""
    folder = members.key_folder(2, key)
    info = load_key(folder)
    public = {name: api.load_public_file(folder, info, name) for name in info.files}
    return Seal(KeyMaterial(info, public, []))


def encrypt(members: Committee, key: str, count: int = 1, primes: int = 2, value: float = 0.5) -> list[Path]:
    """Files with encryptions of a constant."""
    s, paths = seal_of(members, key), []
    for i in range(count):
        if s.parameters.scheme == "ckks":
            plain = s.encoder.encode(np.full(s.parameters.slots, value), s.parameters.scale)
        else:
            plain = s.encoder.encode([int(2 * value)])
        ciphertext = s.encryptor.encrypt(plain)
        path = members.folder / f"{key}-{primes}-{i}.ct"
        path.write_bytes((s.lowest(ciphertext) if primes == 1 else ciphertext).to_string())
        paths.append(path)
    return paths


def decrypt(members: Committee, key: str, paths: list[Path], receiver: int = 0) -> list[Outcome]:
    """The decryption job at all parties, as `keyquorum decrypt --job` would hand it out."""
    job = decrypt_job(key, paths, receiver, [path.with_suffix(".out") for path in paths])
    return run_parties(members, lambda party: job)


def decrypt_job(key: str, paths: list[Path], receiver: int, outputs: list[Path]) -> dict[str, Any]:
    """What ``api.decrypt_job`` makes, without its checks."""
    return {
        "kind": "decrypt",
        "key": key,
        "receiver": receiver,
        "rounding": "round_ltz_circuit",
        "backend": "embedded",
        "sha256": [sha256(path.read_bytes()).hexdigest() for path in paths],
        "local": {"ciphertexts": [str(p) for p in paths], "outputs": [str(o) for o in outputs]},
    }


def counts(members: Committee, key: str = "ckks") -> list[Any]:
    """The count on record at each party."""
    return [json.loads((members.key_folder(p, key) / "decryptions.json").read_text())["used"] for p in range(3)]


def refused(outcomes: list[Outcome], kind: type[Exception], message: str) -> None:
    """All parties failed with this message in one line: of their own, or told by one that found out first."""
    for outcome in outcomes:
        assert isinstance(outcome, kind | _engine.NetworkError), outcome
        assert message in str(outcome) and "\n" not in str(outcome)
    assert any(isinstance(outcome, kind) for outcome in outcomes)


def told(outcomes: list[Outcome], culprit: int, kind: type[Exception], message: str) -> None:
    """Party ``culprit`` failed with this error of its own; every other party failed and names it, with the same message."""
    for party, outcome in enumerate(outcomes):
        assert isinstance(outcome, kind if party == culprit else _engine.NetworkError), outcome
        assert message in str(outcome) and "\n" not in str(outcome)
        assert party == culprit or f"party {culprit}" in str(outcome)


def succeeded(outcomes: list[Outcome]) -> bool:
    """Whether no party failed."""
    return all(isinstance(outcome, dict) for outcome in outcomes)


# The count


def test_count_survives_restarts_until_it_is_exhausted(members: Committee) -> None:
    """Each run starts from disk; a run that asks for more than is left is refused by all and counts nothing."""
    one, two = encrypt(members, "ckks"), encrypt(members, "ckks", 2)
    assert counts(members) == [0, 0, 0]
    assert succeeded(decrypt(members, "ckks", one)) and counts(members) == [1, 1, 1]
    assert succeeded(decrypt(members, "ckks", two)) and counts(members) == [3, 3, 3]
    message = "allows 4 decryptions and 3 are used: 2 more are refused; make a new key"
    refused(decrypt(members, "ckks", two), PolicyError, message)
    assert counts(members) == [3, 3, 3]
    assert succeeded(decrypt(members, "ckks", one)) and counts(members) == [4, 4, 4]
    output = one[0].with_suffix(".out")
    output.unlink()
    refused(decrypt(members, "ckks", one), PolicyError, "1 more are refused")
    assert not output.exists()


def test_count_is_the_maximum_over_parties(members: Committee) -> None:
    """A party that was restored from an old backup cannot lower the count; it learns the right one."""
    _set_count(members, 1, 2)
    assert succeeded(decrypt(members, "ckks", encrypt(members, "ckks")))
    assert counts(members) == [3, 3, 3]
    _set_count(members, 2, 4)
    refused(decrypt(members, "ckks", encrypt(members, "ckks")), PolicyError, "4 are used: 1 more are refused")


def _set_count(members: Committee, party: int, used: int) -> None:
    path = members.key_folder(party, "ckks") / "decryptions.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "used": used}))


def claims(folder: Path, send: Callable[[int], bytes]) -> tuple[list[Any], list[int]]:
    """Parties 0 and 1 of three claim one decryption; party 2 sends bytes in place of its count, and then what the others compare. What
    parties 0 and 1 got, or their errors, and the counts on their disks."""
    sessions = _engine.local_sessions(3, 10.0)
    info: Any = SimpleNamespace(key_id="ab" * 16, most_decryptions=lambda rounding: 16)
    for party in (0, 1):
        (folder / str(party)).mkdir()
        policy.start_count(folder / str(party), info)

    def one(party: int) -> Any:
        context: Any = SimpleNamespace(session=sessions[party], committee=api.in_process_committee(3, "mal-rep-field"))
        try:
            return policy.claim_decryptions(context, folder / str(party), info, 1)
        except (KeyQuorumError, _engine.EngineError) as error:
            sessions[party].abort(str(error))
            return error

    def corrupted() -> None:
        with suppress(_engine.EngineError):
            for other in (0, 1):
                sessions[2].send(other, send(other))
            for _ in range(2):
                for other in (0, 1):
                    used = int.from_bytes(send(other)[:7], "little") + 1
                    sessions[2].send(other, used.to_bytes(8, "little"))
            for _ in range(3):
                sessions[2].recv(0, 1 << 16)
                sessions[2].recv(1, 1 << 16)

    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(one, party) for party in (0, 1)]
        pool.submit(corrupted).result()
        outcomes = [each.result() for each in work]
    return outcomes, [policy.decryptions_used(folder / str(party), info) for party in (0, 1)]


COUNTS: dict[str, tuple[Callable[[int], bytes], str]] = {
    "too many": (lambda to: (15).to_bytes(8, "little"), "party 2 reports 15 decryptions"),
    "beyond the policy": (lambda to: (17).to_bytes(8, "little"), "party 2 sent a count of 17"),
    "no number": (lambda to: b"\xff" * 8, "party 2 sent a count of 18446744073709551615"),
    "64 KiB": (lambda to: b"\xff" * 65536, "party 2 sent 65536 bytes that are no count"),
    "empty": (lambda to: b"", "party 2 sent 0 bytes that are no count"),
    "different to each": (lambda to: (2 * to).to_bytes(8, "little"), "count of decryptions"),
}


@pytest.mark.parametrize("attack", COUNTS)
def test_using_up_a_key_blocked(tmp_path: Path, attack: str) -> None:
    """A count that one party makes up is refused with its name before anything is written; one within a crash of ours is taken."""
    outcomes, used = claims(tmp_path, COUNTS[attack][0])
    assert used == [0, 0]
    assert all(isinstance(outcome, Exception) for outcome in outcomes)
    assert any(COUNTS[attack][1] in str(outcome) for outcome in outcomes), outcomes


def test_using_up_a_key_ablated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bound the same party makes the others write 16 of 16."""
    monkeypatch.setattr(policy, "agreed_count", lambda counts, threshold, count, info, noted: max(counts))
    assert claims(tmp_path, COUNTS["too many"][0]) == ([0, 0], [16, 16])


def test_a_count_within_a_crash_is_taken(tmp_path: Path) -> None:
    assert claims(tmp_path, lambda to: (2).to_bytes(8, "little")) == ([13, 13], [3, 3])


def test_what_keys_need_is_told_of_their_policy(tmp_path: Path) -> None:
    """A set with no room for the default policy, and a policy that it has room for."""
    folder = api.init(tmp_path / "c", 2, "semi")
    with pytest.raises(PolicyError, match="30 bits"):
        api.keygen_needs(folder, CKKS)
    assert api.keygen_needs(folder, CKKS, policy=WEAK).disk > 0
    assert api.keygen(folder, "key", CKKS, False, policy=WEAK).info.policy == WEAK


def test_counts_apart() -> None:
    """What the parties go on from, for thresholds and runs of several sizes."""
    info: Any = SimpleNamespace(key_id="ab" * 16)
    taken = [([3, 3, 3], 1, 1, 3), ([5, 3, 3], 1, 1, 5), ([0, 9, 9], 1, 1, 9), ([12, 2, 0], 1, 10, 12), ([4, 4, 2], 2, 1, 4), ([7], 0, 1, 7)]
    for counts, threshold, count, used in taken:
        assert policy.agreed_count(counts, threshold, count, info) == used
    for counts, threshold, count, culprit in [([6, 3, 3], 1, 1, 0), ([2, 13, 0], 1, 10, 1), ([0, 9, 9], 2, 1, 1), ([0, 3], 1, 2, 1)]:
        with pytest.raises(PolicyError, match=f"party {culprit} reports {counts[culprit]} decryptions .* nothing was counted"):
            policy.agreed_count(counts, threshold, count, info)


def test_count_files_are_private(members: Committee) -> None:
    """0600, replaced as a whole."""
    assert succeeded(decrypt(members, "ckks", encrypt(members, "ckks")))
    for party in range(3):
        folder = members.key_folder(party, "ckks")
        assert (folder / "decryptions.json").stat().st_mode & 0o777 == 0o600
        assert not list(folder.glob(".decryptions.json*"))


DAMAGE: dict[str, tuple[Callable[[Path, Committee], Any], str]] = {
    "missing": (lambda path, members: path.unlink(), "is missing: without the count"),
    "empty": (lambda path, members: path.write_bytes(b""), "is damaged: restore it"),
    "no json": (lambda path, members: path.write_bytes(b'{"used": 1'), "is damaged: restore it"),
    "no text": (lambda path, members: path.write_bytes(b"\xff\xfe\x00"), "is damaged: restore it"),
    "list": (lambda path, members: path.write_text("[1]"), "is damaged: restore it"),
    "text": (lambda path, members: _change(path, used="1"), "is damaged: restore it"),
    "fraction": (lambda path, members: _change(path, used=0.5), "is damaged: restore it"),
    "truth": (lambda path, members: _change(path, used=False), "is damaged: restore it"),
    "negative": (lambda path, members: _change(path, used=-1), "is damaged: restore it"),
    "huge": (lambda path, members: _change(path, used=1 << 70), "is damaged: restore it"),
    "foreign": (
        lambda path, members: shutil.copy(members.key_folder(1, "other") / path.name, path),
        "is of another key: restore the file of key",
    ),
}


def _change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_counts_are_refused(members: Committee, damage: str) -> None:
    """The party with the file names it, the others name the party; nothing is counted or decrypted; a restored file works."""
    spoil, message = DAMAGE[damage]
    path = members.key_folder(1, "ckks") / "decryptions.json"
    before, ciphertexts = path.read_bytes(), encrypt(members, "ckks")
    spoil(path, members)
    outcomes = decrypt(members, "ckks", ciphertexts)
    told(outcomes, 1, KeyFileError, message)
    assert str(path) in str(outcomes[1])
    path.write_bytes(before)
    assert counts(members) == [0, 0, 0]
    assert not ciphertexts[0].with_suffix(".out").exists()
    assert succeeded(decrypt(members, "ckks", ciphertexts))


def test_two_decryptions_at_once_are_refused(members: Committee) -> None:
    """A lock at each party: no waiting for a run that waits for us."""
    with (members.key_folder(0, "ckks") / "decryptions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcomes = decrypt(members, "ckks", encrypt(members, "ckks"))
    told(outcomes, 0, PolicyError, "another decryption with this key is under way")
    assert counts(members) == [0, 0, 0]


def test_exact_decryptions_are_not_counted(members: Committee) -> None:
    """BFV opens the message alone: no policy."""
    ciphertexts = encrypt(members, "bfv", 5, primes=1)
    assert succeeded(decrypt(members, "bfv", ciphertexts))
    assert counts(members, "bfv") == [0, 0, 0]


def masked_job(paths: list[Path]) -> dict[str, Any]:
    """The decryption job with `round_mask_open`."""
    return {**decrypt_job("bfv", paths, 0, [path.with_suffix(".out") for path in paths]), "rounding": "round_mask_open"}


def masked(members: Committee, paths: list[Path]) -> list[Outcome]:
    """That job at all parties."""
    job = masked_job(paths)
    return run_parties(members, lambda party: job)


def test_masked_decryptions_are_counted_up_to_their_limit(members: Committee) -> None:
    """`round_mask_open` tells of the noise by its errors: 36 decryptions of bfv-4096, durably, with a warning; exact ones go on."""
    paths = encrypt(members, "bfv", 3, primes=1)
    assert most_masked(BFV) == 36
    with pytest.warns(
        SecurityWarning, match=r"round_mask_open is sometimes wrong, .* bfv-4096 decrypts at most 36 ciphertexts with it; round_ltz_circuit"
    ):
        assert succeeded(masked(members, paths[:2]))
    assert counts(members, "bfv") == [2, 2, 2]
    for party in (1, 2):  # as many as can outvote a corrupted one
        path = members.key_folder(party, "bfv") / "decryptions.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "used": 34}))
    paths[2].with_suffix(".out").unlink(missing_ok=True)
    message = "allows 36 decryptions and 34 are used: 3 more are refused; make a new key, or take the exact rounding"
    with pytest.raises(PolicyError, match=message):
        check_decrypt(members, 1, masked_job(paths))  # before a party connects
    refused(masked(members, paths), PolicyError, message)
    assert not paths[2].with_suffix(".out").exists()
    assert succeeded(masked(members, paths[:2]))
    assert counts(members, "bfv") == [36, 36, 36]
    refused(masked(members, paths[:1]), PolicyError, "36 are used")
    assert succeeded(decrypt(members, "bfv", paths)) and counts(members, "bfv") == [36, 36, 36]


# Flooding


def joint_phase(info: SealKeyInfo, plaintext: bytes) -> NDArray[np.object_]:
    """Coefficients of a CKKS plaintext, centred."""
    plain = read_plaintext(info.parameters, plaintext)
    assert plain.primes is not None
    moduli = info.parameters.moduli(plain.primes)
    return _arith.crt_centred(_arith.intt(plain.data, moduli), moduli)


@pytest.mark.parametrize("backend", ["rep-field", "shamir-5"])
@pytest.mark.parametrize("primes", [1, 2])
def test_flooding_has_the_deviation_of_the_policy(backend: str, primes: int) -> None:
    """What is opened less the true phase, on 2^16 coefficients: deviation sqrt(contributors) sigma, each contributor's part being of full
    size, mean 0 (99 % intervals), normal (chi-square of 64 equal cells, 99 %), and never twice the same. With two primes it is the default
    policy, whose noise is larger than the second prime."""
    parameters, policy = (CKKS, FloodPolicy(4, 3, 6)) if primes == 1 else (api.load_parameters("ckks-4096"), FloodPolicy(noise_bits=13))
    members = committee(backend)
    material = make_key(members, SealRequest(parameters, relin=False, policy=policy), f"flooding {backend}".encode())
    secret = secret_of(members, material)
    s = Seal(material[0])
    fresh = s.encryptor.encrypt(s.encoder.encode(np.full(s.parameters.slots, 0.5), parameters.scale))
    data = (s.lowest(fresh) if primes == 1 else fresh).to_string()
    parsed = read_ciphertext(parameters, data)
    exact = _arith.crt_centred(phase(parameters, secret, parsed), parameters.moduli(primes))
    opened = decrypt_fixed(members, material, [data] * 16, f"noise {backend} {primes}".encode(), receiver=1)
    noise = np.stack([joint_phase(material[0].info, o.plaintext) - exact for o in opened]).astype(float)
    sigma = policy.sigma(4096)
    deviation = sigma * np.sqrt(members.threshold + 1)
    assert sigma == pytest.approx(64 * np.sqrt(12 * policy.decryptions) * 2 ** (policy.bits / 2) * 2**policy.noise_bits)
    assert (sigma > parameters.coeff_modulus[1]) == (primes == 2)
    assert abs(noise.std() / deviation - 1) < Z99 / np.sqrt(2 * noise.size)
    assert abs(noise.mean()) < Z99 * deviation / np.sqrt(noise.size)
    cuts = [NormalDist(0, deviation).inv_cdf(i / 64) for i in range(1, 64)]
    assert chi_square_p(np.searchsorted(cuts, noise.reshape(-1)), uniform(range(64))) > 0.01
    assert len({row.tobytes() for row in noise}) == len(noise)


def test_flooding_hides_the_noise_of_the_policy() -> None:
    """sigma = sqrt(12 tau N) 2^(s/2) times the noise bound: each part of the formula counts."""
    base = FloodPolicy(30, 16, 11)
    sigma = base.sigma(4096)
    assert sigma == pytest.approx(64 * np.sqrt(192) * 2.0**26)
    assert base.sigma(4 * 4096) == pytest.approx(2 * sigma)
    assert replace(base, bits=32).sigma(4096) == pytest.approx(2 * sigma)
    assert replace(base, decryptions=64).sigma(4096) == pytest.approx(2 * sigma)
    assert replace(base, noise_bits=12).sigma(4096) == pytest.approx(2 * sigma)


def test_messages_larger_than_the_first_prime() -> None:
    """A ciphertext of two primes may hold values that one prime does not: the level is the owner's choice."""
    members = committee("rep-field")
    material = make_key(members, SealRequest(CKKS, relin=False, policy=POLICY), b"large")
    s = Seal(material[0])
    values = np.full(s.parameters.slots, 3000.0)
    data = s.encryptor.encrypt(s.encoder.encode(values, CKKS.scale)).to_string()
    opened = api.decrypt_in_process(members, material, [data])[0]
    assert np.abs(np.asarray(s.encoder.decode(s.context.from_plain_str(opened.plaintext))) - values).max() < 0.1


# Refusals before anything is opened, and after


def test_a_level_without_room_is_refused_and_not_counted(members: Committee) -> None:
    """Values of size 1 at scale 2^37 and flooding do not fit the first prime of 39 bits, but both primes; every party refuses on its own."""
    _set_key(members, parameters=lambda old: {**old, "scale_bits": 37})
    message = "no room for the flooding noise (2^13): decrypt at a higher level, or make a key with a smaller policy"
    refused(decrypt(members, "ckks", encrypt(members, "ckks", primes=1)), CiphertextError, message)
    assert counts(members) == [0, 0, 0]
    assert succeeded(decrypt(members, "ckks", encrypt(members, "ckks", primes=2)))


def _set_key(members: Committee, **fields: Callable[[Any], Any]) -> None:
    """Changes fields in the metadata of key `ckks` at all parties."""
    for party in range(3):
        path = members.key_folder(party, "ckks") / "key.json"
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, **{name: change(data[name]) for name, change in fields.items()}}))


def test_a_result_that_the_flooding_would_drown_is_refused_and_not_counted(members: Committee) -> None:
    """Less than one bit: every party refuses, and the job is not even written. A bit more of scale, and it is decrypted."""
    _set_key(members, policy=lambda old: {**old, "noise_bits": 12})
    paths = encrypt(members, "ckks")
    message = "leaves 0.1 bits of a value of size 1 at scale 2^30.0, at least 1 is needed: encrypt at scale 2^31 or above"
    refused(decrypt(members, "ckks", paths), CiphertextError, message)
    assert counts(members) == [0, 0, 0] and not paths[0].with_suffix(".out").exists()
    with pytest.raises(CiphertextError, match=re.escape(message)):
        api.decrypt_job(_with_folder(members), "ckks", paths, 0, [path.with_suffix(".out") for path in paths])
    _set_key(members, parameters=lambda old: {**old, "scale_bits": 31})
    assert succeeded(decrypt(members, "ckks", encrypt(members, "ckks")))
    assert counts(members) == [1, 1, 1]


def _with_folder(members: Committee) -> Committee:
    for party in range(members.size):
        members.identity_path(party).parent.mkdir(parents=True, exist_ok=True)
        members.identity_path(party).touch()
    return members


def test_a_scale_beyond_that_of_the_set_is_refused(members: Committee) -> None:
    """A product that was not rescaled: its noise grew with its scale, and the policy's bound is for less."""
    s = seal_of(members, "ckks")
    path = encrypt(members, "ckks")[0]
    ciphertext = s.context.from_cipher_str(path.read_bytes())
    weights = s.encoder.encode(np.full(s.parameters.slots, 0.5), s.parameters.scale)
    path.write_bytes(s.evaluator.multiply_plain(ciphertext, weights).to_string())
    refused(decrypt(members, "ckks", [path]), CiphertextError, "has scale 2^60.0, the key's set 2^30: its noise may have grown")
    assert counts(members) == [0, 0, 0]
    path.write_bytes(s.evaluator.rescale_to_next(s.context.from_cipher_str(path.read_bytes())).to_string())
    assert succeeded(decrypt(members, "ckks", [path]))


@pytest.mark.parametrize("primes", [1, 2])
def test_a_ciphertext_of_another_key_is_told_to_all(members: Committee, primes: int) -> None:
    """CKKS: the result is noise; the receiver writes nothing, and every other party fails with its reason."""
    ciphertexts = encrypt(members, "other", primes=primes)
    outcomes = decrypt(members, "ckks", ciphertexts, receiver=2)
    told(outcomes, 2, CiphertextError, "the result is noise: the ciphertext is of another key")
    assert not ciphertexts[0].with_suffix(".out").exists()
    assert counts(members) == [1, 1, 1]


@pytest.mark.parametrize(("key", "wrong", "primes"), [("ckks", "other", 2), ("bfv", "bfv2", 1)])
def test_receipts_tell_the_key(members: Committee, key: str, wrong: str, primes: int) -> None:
    """With a receipt every party refuses at once, for exact schemes too, and nothing is counted."""
    path = encrypt(members, wrong, primes=primes)[0]
    api.write_receipt(path, path.read_bytes(), load_key(members.key_folder(0, wrong)))
    mine, theirs = (load_key(members.key_folder(0, k)).key_id for k in (key, wrong))
    message = f"is encrypted under another key ({theirs}), not {mine}: name that key"
    refused(decrypt(members, key, [path]), CiphertextError, message)
    assert counts(members, key) == [0, 0, 0]
    assert succeeded(decrypt(members, wrong, [path]))
    Path(f"{path}.json").write_text("{")
    refused(decrypt(members, wrong, [path]), CiphertextError, "damaged: remove it")


@pytest.mark.parametrize("key", ["ckks", "bfv"])
def test_receipts_of_other_bytes_are_refused(members: Committee, key: str) -> None:
    """By all parties and on all ways in, and nothing is counted; without the receipt the file is taken at its word."""
    path, other = encrypt(members, key, 2, primes=1)
    info = load_key(members.key_folder(0, key))
    receipt = Path(f"{path}.json")
    api.write_receipt(path, other.read_bytes(), info)
    told = f"{path}.json is of another ciphertext than {path} (their SHA-256 differ): one of them was changed or replaced: write {path} again, or remove {receipt.name} if"
    refused(decrypt(members, key, [path]), CiphertextError, told)
    output = [path.with_suffix(".out")]
    with pytest.raises(CiphertextError, match=re.escape(told)):
        api.decrypt_job(_with_folder(members), key, [path], 0, output)
    with pytest.raises(CiphertextError, match=re.escape(told)):
        api.check_receipt(path, path.read_bytes(), info)
    assert counts(members, key) == [0, 0, 0]
    for cure in (receipt.unlink, lambda: api.write_receipt(path, path.read_bytes(), info)):
        cure()
        assert api.decrypt_job(members, key, [path], 0, output)
    assert succeeded(decrypt(members, key, [path]))


@pytest.mark.parametrize("key", ["ckks", "bfv"])
def test_three_parts_are_refused(members: Committee, key: str) -> None:
    """An unrelinearised product: by every party, from its bytes."""
    s = seal_of(members, key)
    path = encrypt(members, key)[0]
    ciphertext = s.context.from_cipher_str(path.read_bytes())
    path.write_bytes(s.evaluator.square(ciphertext).to_string())
    refused(decrypt(members, key, [path]), CiphertextError, "has 3 parts, decryption takes 2: relinearise first")
    assert counts(members, key) == [0, 0, 0]


@pytest.mark.parametrize("key", ["ckks", "bfv"])
def test_a_party_with_another_ciphertext_refuses(members: Committee, key: str) -> None:
    """Each party checks its own copy against the digest of the job."""
    first, second = encrypt(members, key, 2, primes=1)
    output = [first.with_suffix(".out")]
    right = decrypt_job(key, [first], 0, output)
    wrong = {**decrypt_job(key, [second], 0, output), "sha256": right["sha256"]}
    outcomes = run_parties(members, lambda party: wrong if party == 1 else right)
    told(outcomes, 1, CiphertextError, "is not the ciphertext that the committee was asked to decrypt")


@pytest.mark.parametrize("field", ["policy", "files", "error_law"])
def test_a_party_with_other_metadata_is_named(members: Committee, field: str) -> None:
    """A weaker policy, say, in the key.json of party 2: everything in it is compared before the key is used."""
    path = members.key_folder(2, "ckks") / "key.json"
    data = json.loads(path.read_text())
    data[field] = {"policy": vars(replace(POLICY, decryptions=3)), "files": {}, "error_law": "gaussian"}[field]
    path.write_text(json.dumps(data))
    outcomes = decrypt(members, "ckks", encrypt(members, "other"))
    for party, outcome in enumerate(outcomes):
        assert isinstance(outcome, _engine.ProtocolError | _engine.NetworkError)
        assert "key" in str(outcome) and (party == 2 or "party 2" in str(outcome))
    assert counts(members) == [0, 0, 0]


# Who learns what


@pytest.mark.parametrize("receiver", [0, 1, 2])
@pytest.mark.parametrize("key", ["ckks", "bfv"])
def test_only_the_receiver_gets_the_result(members: Committee, key: str, receiver: int) -> None:
    """One output, written by the receiver (0600); the plan gives nothing to the others."""
    path = encrypt(members, key, primes=1)[0]
    outputs = [path.with_name(f"out-{party}") for party in range(3)]
    outcomes = run_parties(members, lambda party: decrypt_job(key, [path], receiver, [outputs[party]]))
    assert succeeded(outcomes)
    assert [output.exists() for output in outputs] == [party == receiver for party in range(3)]
    assert outputs[receiver].stat().st_mode & 0o777 == 0o600
    assert all("plaintext" not in json.dumps(outcome) for outcome in outcomes)
    s = seal_of(members, key)
    values = np.asarray(s.encoder.decode(s.context.from_plain_str(outputs[receiver].read_bytes())))
    assert abs(values[0] - (0.5 if key == "ckks" else 1)) < 0.05
