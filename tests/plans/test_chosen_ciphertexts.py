"""Chosen CKKS ciphertexts: what is refused for its form, what needs approvals, and that each attack finds the key where nothing stops it.

The attacks run jobs of party processes, in threads, with folders of their own; the secret that they find is compared with the real one.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import _arith
from keyquorum.fhe.seal import Evaluator
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext, write_ciphertext
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ApprovalError, CiphertextError, KeyQuorumError, ParameterError, PolicyError
from keyquorum.schemes.key_folder import load_key, read_share
from keyquorum.schemes.seal import approvals, scheme
from keyquorum.schemes.seal import decrypt as decrypt_plan
from keyquorum.schemes.seal.policy import FloodPolicy
from numpy.typing import NDArray

from tests.fhe.dealer import narrow

from .quorum import committee, reconstruct, seal
from .test_policy import Outcome, counts, decrypt, encrypt, refused, run_parties, seal_of, succeeded

CKKS = narrow("ckks-4096")
MODULI = CKKS.moduli(2)
SHIFT = 26
"""The attacks scale the secret, or the noise, above the flooding by this many bits."""
Ints = NDArray[np.int64]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Committee:
    """A committee with the keys `ckks`, and `careful`, whose policy wants approvals."""
    members = replace(committee("rep-field"), folder=tmp_path_factory.mktemp("made"))
    for name, policy in (("ckks", FloodPolicy(4, 4, 4)), ("careful", FloodPolicy(2, 4, 8, approvals=1))):
        job = api.keygen_job(name, CKKS, True, (3,), policy=policy)
        assert succeeded(run_parties(members, lambda party, job=job: job))  # type: ignore[misc]
    return members


@pytest.fixture
def members(made: Committee, tmp_path: Path) -> Committee:
    """A copy of :func:`made`; every party is of this host."""
    for party in range(made.size):
        shutil.copytree(made.party_folder(party), tmp_path / f"party-{party}")
        (tmp_path / f"party-{party}" / "identity.pem").touch()
    return replace(made, folder=tmp_path)


def secret_of(members: Committee, key: str) -> Ints:
    """The coefficients of the secret key that nobody should have."""
    folders = [members.key_folder(party, key) for party in range(3)]
    info = load_key(folders[0])
    shares = [read_share(folder, info, party, 0) for party, folder in enumerate(folders)]
    return reconstruct("rep-field", 1, [share.words for share in shares], CKKS.coeff_modulus[0])


def phase_of(outcomes: list[Outcome], path: Path) -> NDArray[np.object_]:
    """Centred coefficients of what the receiver got; raises what stopped a party."""
    for outcome in outcomes:
        if isinstance(outcome, KeyQuorumError):
            raise outcome
    assert succeeded(outcomes), outcomes
    plain = read_plaintext(CKKS, path.with_suffix(".out").read_bytes())
    return _arith.crt_centred(_arith.intt(plain.data, MODULI), MODULI)


def small(*coefficients: int) -> NDArray[np.uint64]:
    """A polynomial with these lowest coefficients, in NTT form."""
    values = np.zeros(CKKS.ring_degree, dtype=np.int64)
    values[: len(coefficients)] = coefficients
    return _arith.ntt(np.stack([values % q for q in MODULI]).astype(np.uint64), MODULI)


def changed(members: Committee, key: str, change: Any) -> Path:
    """A file with a fresh encryption of a half, whose parts went through ``change``."""
    path = encrypt(members, key)[0]
    ciphertext = read_ciphertext(CKKS, path.read_bytes())
    path.write_bytes(write_ciphertext(CKKS, replace(ciphertext, data=np.stack(change(*ciphertext.data)))))
    return path


# Three attacks of one decryption each, by who asks and receives. The phase is all that they look at.


def by_a_constant(members: Committee, key: str) -> Ints:
    """(0, 2^k): the phase is 2^k s."""
    path = changed(members, key, lambda c0, c1: (small(), small(1 << SHIFT)))
    return scaled_down(phase_of(decrypt(members, key, [path]), path))


def by_a_hidden_constant(members: Committee, key: str) -> Ints:
    """(0, 2^k) plus an encryption of a known message, which has the form of any other: the phase is 2^k s plus message and noise."""
    path = changed(members, key, lambda c0, c1: (c0, _arith.add(c1, small(1 << SHIFT), MODULI)))
    s = seal_of(members, key)
    known = read_plaintext(CKKS, s.encoder.encode(np.full(CKKS.slots, 0.5), CKKS.scale).to_bytes())
    message = _arith.crt_centred(_arith.intt(known.data, MODULI), MODULI)
    return scaled_down(phase_of(decrypt(members, key, [path]), path) - message)


def by_scaling(members: Committee, key: str) -> Ints:
    """2^j c under the scale of c: the phase is 2^j (m + e), far above the flooding, and s = (m + e - c0) / c1."""
    path = encrypt(members, key)[0]
    c0, c1 = read_ciphertext(CKKS, path.read_bytes()).data
    path = changed(members, key, lambda *_: tuple(_arith.scale(part, 1 << SHIFT, MODULI) for part in (c0, c1)))
    return solved(scaled_down(phase_of(decrypt(members, key, [path]), path)), c0, c1)


def solved(exact: Ints, c0: NDArray[np.uint64], c1: NDArray[np.uint64]) -> Ints:
    """s from the exact phase of (c0, c1)."""
    (q,) = CKKS.moduli(1)
    rest = _arith.sub(_arith.ntt((exact % q).astype(np.uint64)[None], (q,)), c0[:1], (q,))
    inverse = np.array([[pow(int(v), -1, q) for v in c1[0]]], dtype=np.uint64)
    return _arith.centred(_arith.intt(_arith.mul(rest, inverse, (q,)), (q,))[0], q)


def scaled_down(phase: NDArray[np.object_]) -> Ints:
    """The phase over 2^SHIFT, rounded."""
    half = 1 << (SHIFT - 1)
    return np.array([(int(v) + half) >> SHIFT for v in phase], dtype=np.int64)


# Stopped


FORMS: dict[str, Any] = {
    "(0, 2^k)": lambda c0, c1: (small(), small(1 << SHIFT)),
    "(c0, 2^k)": lambda c0, c1: (c0, small(1 << SHIFT)),
    "(0, c1)": lambda c0, c1: (small(), c1),
    "(c0, 0)": lambda c0, c1: (c0, small()),
    "(c0, few coefficients)": lambda c0, c1: (c0, small(*(1 << 29,) * 1000)),
    "(c0, small coefficients)": lambda c0, c1: (c0, small(*range(1, CKKS.ring_degree + 1))),
    "(c0, few evaluations)": lambda c0, c1: (c0, c1 % np.uint64(3)),
    "(c0, zero at a prime)": lambda c0, c1: (c0, np.stack([c1[0], np.zeros_like(c1[1])])),
}
"""Ciphertexts that no encryption looks like."""


@pytest.mark.parametrize("form", FORMS)
def test_rounding_errors_blocked_forms(members: Committee, form: str) -> None:
    """Every party refuses, and nothing is counted."""
    path = changed(members, "ckks", FORMS[form])
    refused(decrypt(members, "ckks", [path]), CiphertextError, "of the ciphertext is no encryption's")
    assert counts(members) == [0, 0, 0] and not path.with_suffix(".out").exists()


def test_rounding_errors_blocked_by_approvals(members: Committee) -> None:
    """Ciphertexts with the form of encryptions, under a key whose policy wants approvals: each party names the file, nothing is counted."""
    for attack in (by_scaling, by_a_hidden_constant):
        with pytest.raises(ApprovalError, match="was not approved at this party"):
            attack(members, "careful")
    assert counts(members, "careful") == [0, 0, 0]


def test_rounding_errors_blocked_by_one_party(members: Committee) -> None:
    """Approval at two of three parties is not enough."""
    path = encrypt(members, "careful")[0]
    api.approve(members, "careful", path, [0, 2])
    outcomes = decrypt(members, "careful", [path])
    assert isinstance(outcomes[1], ApprovalError) and str(path) in str(outcomes[1])
    assert counts(members, "careful") == [0, 0, 0]
    assert api.approve(members, "careful", path, [1])[0] == sha256(path.read_bytes()).hexdigest()
    assert succeeded(decrypt(members, "careful", [path]))


# The same attacks where nothing stops them


def test_rounding_errors_ablated_forms(members: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of the form, one counted decryption of (0, 2^k) gives the secret key."""
    monkeypatch.setattr(decrypt_plan, "check_form", lambda *_: None)
    assert np.array_equal(by_a_constant(members, "ckks"), secret_of(members, "ckks"))
    assert counts(members) == [1, 1, 1]


@pytest.mark.parametrize("attack", [by_scaling, by_a_hidden_constant])
def test_rounding_errors_ablated_approvals(members: Committee, monkeypatch: pytest.MonkeyPatch, attack: Any) -> None:
    """Without approvals, one counted decryption gives the secret key: the form of the ciphertext is that of any other."""
    monkeypatch.setattr(scheme, "check_approved", lambda *_: None)
    assert np.array_equal(attack(members, "careful"), secret_of(members, "careful"))
    assert counts(members, "careful") == [1, 1, 1]


def by_doubling(members: Committee, key: str) -> Ints:
    """2^j c again, by j additions of a ciphertext to itself, each approved as such."""
    path = encrypt(members, key)[0]
    api.approve(members, key, path)
    c0, c1 = read_ciphertext(CKKS, path.read_bytes()).data
    for j in range(SHIFT):
        doubled = path.with_name(f"doubled-{j}.ct")
        doubled.write_bytes(Evaluator(CKKS).add(path.read_bytes(), path.read_bytes()))
        api.approve(members, key, doubled, operation="add", inputs=[path, path])
        path = doubled
    return solved(scaled_down(phase_of(decrypt(members, key, [path]), path)), c0, c1)


def test_doublings_blocked_by_the_bound(members: Committee) -> None:
    """The additions are what they claim to be; the fourth would bring 2^4.1 of noise above 2^8, and is not approved, nor is it decrypted."""
    with pytest.raises(
        ApprovalError, match=r"the ciphertext may have a noise of 2\^8.1, the flooding of key .* hides up to 2\^8: .*reveal the secret"
    ):
        by_doubling(members, "careful")
    path = members.folder / "doubled-3.ct"
    assert path.exists() and not (members.folder / "doubled-4.ct").exists()
    refused(decrypt(members, "careful", [path]), ApprovalError, "was not approved at this party")
    assert counts(members, "careful") == [0, 0, 0]


def test_doublings_ablated_bound(members: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bound, 26 approved additions and one counted decryption give the secret key."""
    monkeypatch.setattr(approvals, "_check_bound", lambda *_: None)
    assert np.array_equal(by_doubling(members, "careful"), secret_of(members, "careful"))
    assert counts(members, "careful") == [1, 1, 1]


def test_an_approval_above_the_bound_is_not_decrypted(members: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of approvals from elsewhere: every party looks at the bound again."""
    path = encrypt(members, "careful")[0]
    with pytest.raises(ApprovalError, match=r"noise of 2\^9.0, the flooding"):
        api.approve(members, "careful", path, noise_bits=9)
    monkeypatch.setattr(approvals, "_check_bound", lambda *_: None)
    api.approve(members, "careful", path, noise_bits=9)
    monkeypatch.undo()
    refused(decrypt(members, "careful", [path]), ApprovalError, "may have a noise of 2^9.0")
    assert counts(members, "careful") == [0, 0, 0]


def test_approving_a_result_as_fresh_does_not_lower_its_bound(members: Committee) -> None:
    """The larger bound stays, of noise and of message; it counts in what is computed from it."""
    path = encrypt(members, "careful")[0]
    folder = members.key_folder(0, "careful")
    api.approve(members, "careful", path, noise_bits=7.5, message=3.0)
    api.approve(members, "careful", path)
    bound = approvals.approved_noise(folder, load_key(folder), path.read_bytes())
    assert bound is not None and bound.bits == pytest.approx(7.5) and bound.message == 3.0
    doubled = members.folder / "doubled.ct"
    doubled.write_bytes(Evaluator(CKKS).add(path.read_bytes(), path.read_bytes()))
    with pytest.raises(ApprovalError, match=r"noise of 2\^8.5"):
        api.approve(members, "careful", doubled, operation="add", inputs=[path, path])


def test_bounds_that_make_no_sense_are_refused(members: Committee) -> None:
    path = encrypt(members, "careful")[0]
    for bounds, text in (
        ({"message": 0.0}, "a bound of 0 on the values"),
        ({"message": float("nan")}, "a bound of nan"),
        ({"noise_bits": -1}, "noise of -1 bits"),
    ):
        with pytest.raises(ParameterError, match=text):
            api.approve(members, "careful", path, **bounds)


# Approvals


def test_results_are_approved_by_computing_them_again(members: Committee) -> None:
    """A party approves what an operation makes of inputs that it approved; not another ciphertext, and not of inputs that it did not."""
    paths = encrypt(members, "careful", 2)
    folder = members.key_folder(0, "careful")
    info = load_key(folder)
    keys = [api.load_public_file(folder, info, name) for name in ("relin.key", "galois.key")]
    inputs = [path.read_bytes() for path in paths]
    result, rotated = members.folder / "sum.ct", members.folder / "rotated.ct"
    result.write_bytes(Evaluator(CKKS, *keys).add(*inputs))
    rotated.write_bytes(Evaluator(CKKS, *keys).rotate(result.read_bytes(), 1))
    with pytest.raises(ApprovalError, match="an input of add was not approved at this party"):
        api.approve(members, "careful", result, operation="add", inputs=paths)
    for path in paths:
        assert api.approve(members, "careful", path)[1] == [0, 1, 2]
    with pytest.raises(ApprovalError, match="is not what subtract makes of these inputs: do not decrypt it"):
        api.approve(members, "careful", result, operation="subtract", inputs=paths)
    api.approve(members, "careful", result, operation="add", inputs=paths)
    refused(decrypt(members, "careful", [rotated]), ApprovalError, "was not approved at this party")
    api.approve(members, "careful", rotated, operation="rotate", inputs=[result], step=1)
    assert succeeded(decrypt(members, "careful", [result, rotated]))
    assert counts(members, "careful") == [2, 2, 2]


def test_refusals_of_approvals(members: Committee) -> None:
    """A key that wants none, a party of elsewhere, a damaged list, a list of another key, an integer scheme."""
    path = encrypt(members, "careful")[0]
    with pytest.raises(PolicyError, match="wants no approvals"):
        api.approve(members, "ckks", path)
    with pytest.raises(api.CommitteeError, match="party 7 is not on this host"):
        api.approve(members, "careful", path, [7])
    with pytest.raises(CiphertextError, match="no such file"):
        api.approve(members, "careful", members.folder / "nothing")
    approved = members.key_folder(1, "careful") / approvals.FILE
    api.approve(members, "careful", path, [0])
    api.approve(members, "careful", path, [0])
    other = (members.key_folder(0, "careful") / approvals.FILE).read_text()
    assert other.count(sha256(path.read_bytes()).hexdigest()) == 1
    for content, message in (("{", "is damaged"), (other.replace(load_key(approved.parent).key_id, "other"), "is of another key")):
        approved.write_text(content)
        with pytest.raises(ApprovalError, match=message):
            api.approve(members, "careful", path, [1])
    with pytest.raises(PolicyError, match="approvals are for CKKS keys"):
        api.keygen_job("key", api.load_parameters("bfv-4096"), policy=FloodPolicy(approvals=1))


def test_encryptions_and_results_have_the_form(members: Committee) -> None:
    """Nothing that stock SEAL makes is refused: fresh, switched to one prime, a product, a rotation, a plaintext added, an encryption of 0."""
    s = seal_of(members, "careful")
    folder = members.key_folder(0, "careful")
    relin, galois = (s.context.from_relin_str((folder / "relin.key").read_bytes()), s.context.from_galois_str((folder / "galois.key").read_bytes()))
    fresh = s.encryptor.encrypt(s.encoder.encode(np.full(CKKS.slots, 0.5), CKKS.scale))
    product = s.evaluator.relinearize(s.evaluator.square(fresh), relin)
    assert isinstance(s.evaluator, seal.Evaluator)
    for ciphertext in (
        fresh,
        s.lowest(fresh),
        product,
        s.evaluator.rescale_to_next(product),
        s.evaluator.rotate_vector(fresh, 1, galois),
        s.evaluator.negate(fresh),
        s.encryptor.encrypt_zero(),
    ):
        approvals.check_form(CKKS, read_ciphertext(CKKS, ciphertext.to_string()))


def approved_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], set[str]]:
    """Two approvals of one party at the same time, each slow between reading the list and writing it. The list, and what was approved."""
    folder.mkdir()
    info: Any = SimpleNamespace(key_id="ab" * 16, parameters=CKKS, policy=SimpleNamespace(noise_bits=13))
    monkeypatch.setattr(approvals, "read_ciphertext", lambda *_: None)
    write = approvals.write_atomically

    def slow(*arguments: Any) -> None:
        time.sleep(0.3)
        write(*arguments)

    monkeypatch.setattr(approvals, "write_atomically", slow)
    with ThreadPoolExecutor(2) as pool:
        digests = set(pool.map(lambda data: approvals.approve(folder, info, data), (b"one", b"two")))
    return list(json.loads((folder / approvals.FILE).read_text())["noise"]), digests


def test_approvals_at_once_blocked_both_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, digests = approved_at_once(tmp_path / "key", monkeypatch)
    assert len(digests) == 2 and set(kept) == digests
    monkeypatch.setattr(approvals, "LOCK_SECONDS", 0.1)
    with (tmp_path / "key" / approvals.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        info: Any = SimpleNamespace(key_id="ab" * 16, parameters=CKKS, policy=SimpleNamespace(noise_bits=13))
        with pytest.raises(ApprovalError, match="another approval is under way: try again"):
            approvals.approve(tmp_path / "key", info, b"three")


def test_approvals_at_once_ablated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock one of them is lost."""
    monkeypatch.setattr(approvals, "_locked", lambda folder: nullcontext())
    kept, digests = approved_at_once(tmp_path / "key", monkeypatch)
    assert len(kept) == 1 and len(digests) == 2
