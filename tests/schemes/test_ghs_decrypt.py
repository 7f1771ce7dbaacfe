"""Decryption of GHS: right for every noise below the border, by every kind of semi-honest committee; under joint keys sums, products and automorphisms; files, refusals."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe._arith import is_prime
from keyquorum.fhe.errors import SecurityWarning, ValuesError
from keyquorum.fhe.ghs import PUBLIC, SWITCHING, GhsParameters, file_name, load_set, read_key_file
from keyquorum.fhe.ghs_ciphertexts import MAGIC, GhsCiphertext, encrypt, phase, read_ciphertext, with_phase
from keyquorum.inspection import examine
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import decrypt
from keyquorum.plans.pool_variants import pool_group
from keyquorum.schemes import encryption_of, recognise
from keyquorum.schemes.base import EXACT, MASKED
from keyquorum.schemes.ghs.decrypt import rounded_set, rounding_of
from keyquorum.schemes.ghs.keygen import GhsRequest
from keyquorum.schemes.keys import KeyMaterial

from tests.long import LONG, some
from tests.plans.quorum import reconstruct

from .ghs_reference import added, image, image_of, multiplied, product_of, switched
from .in_threads import on_disk, run

RNG = np.random.default_rng(7)
COMMITTEES = [("semi", 2), ("rep-field", 3), ("shamir", 3), ("semi", 4), ("shamir", 5)]
STEP = 105 << 9
"""Primes of the transforms of order 105 are 1 modulo this."""
LONG_COUNT = 10**6
"""Coefficients that the long test decrypts."""


@cache
def small_set(order: int, digits: int = 1) -> GhsParameters:
    """A set of a small order, with one prime a digit and one special prime, of 52 bits. Hides nothing."""
    step = order << 17
    primes = tuple(islice((q for q in range((1 << 52) // step * step + 1, 0, -step) if is_prime(q)), digits + 1))
    return GhsParameters(f"ghs-{order}", order, primes, digits, 8, (2,), source="tests: hides nothing")


@cache
def key(order: int, protocol: str, parties: int, digits: int = 1) -> list[KeyMaterial[Any]]:
    """A joint key."""
    return api.keygen_in_process(api.in_process_committee(parties, protocol), GhsRequest(small_set(order, digits), "cbd"))


def secret_of(made: list[KeyMaterial[Any]]) -> np.ndarray:
    """The secret, opened."""
    info = made[0].info
    return reconstruct(info.protocol, info.threshold, [m.shares[0].words for m in made], info.parameters.primes[0])


def jointly(made: list[KeyMaterial[Any]], ciphertexts: list[GhsCiphertext], receiver: int = 1) -> np.ndarray:
    """What the receiver of a joint decryption gets, [ciphertexts, phi(m)]. No other party gets anything."""
    info = made[0].info

    def job(context: PartyContext) -> Any:
        return decrypt(context, info, made[context.party].shares[:1], ciphertexts, receiver)

    found = run_in_process(api.in_process_committee(info.parties, info.protocol), job)
    assert all(found[i] is None for i in range(info.parties) if i != receiver)
    assert [json.loads(one.plaintext) for one in found[receiver]] == [one.messages.tolist() for one in found[receiver]]
    return np.stack([one.messages for one in found[receiver]])


def borders(size: int, q: int) -> np.ndarray:
    """Phases that are the largest and the smallest numbers modulo q, half of them exactly, and close to these."""
    reach = RNG.integers(0, 1 << RNG.integers(0, 40, size))
    reach[: size // 2] = 0
    return np.where(RNG.integers(0, 2, size), (q - 1) // 2 - reach, reach - (q - 1) // 2)


@pytest.mark.parametrize("order", [105, 91, 1105])
@pytest.mark.parametrize(("protocol", "parties"), some(COMMITTEES, 3))
def test_every_noise_below_the_border_is_taken_off(order: int, protocol: str, parties: int) -> None:
    made = key(order, protocol, parties)
    p, secret = made[0].info.parameters, secret_of(made)
    q = p.primes[0]
    phases = [borders(p.degree, q), np.arange(p.degree) - p.degree // 2]
    ciphertexts = [with_phase(order, q, secret, each, RNG) for each in phases]
    assert all(np.array_equal(phase(c, secret), each) for c, each in zip(ciphertexts, phases, strict=True))
    assert np.array_equal(jointly(made, ciphertexts), np.stack(phases) % 2)


def test_a_phase_beyond_the_border_is_another_message() -> None:
    """So the test above reaches the border: (q + 1)/2 is (1 - q)/2 modulo q."""
    made = key(105, "semi", 2)
    q, secret = made[0].info.parameters.primes[0], secret_of(made)
    beyond = np.full(48, (q + 1) // 2)
    assert np.array_equal(jointly(made, [with_phase(105, q, secret, beyond, RNG)])[0], (beyond + 1) % 2)


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="10^6 coefficients at both borders: KEYQUORUM_LONG=1")
def test_a_million_coefficients_at_both_borders() -> None:
    made = key(1105, "semi", 2)
    p, secret = made[0].info.parameters, secret_of(made)
    at_once = 40
    for _ in range(-(-LONG_COUNT // (at_once * p.degree))):
        phases = [borders(p.degree, p.primes[0]) for _ in range(at_once)]
        assert np.array_equal(jointly(made, [with_phase(1105, p.primes[0], secret, each, RNG) for each in phases]), np.stack(phases) % 2)


@pytest.mark.parametrize(("order", "digits"), [(105, 1), (91, 1), (1105, 3)])
def test_sums_products_and_automorphisms_under_a_joint_key(order: int, digits: int, tmp_path: Path) -> None:
    made = key(order, "semi", 2, digits)
    for name, data in made[0].public.items():
        (tmp_path / name).write_bytes(data)
    public, switching = (read_key_file(tmp_path / file_name(kind)) for kind in (PUBLIC, SWITCHING))
    p, secret = made[0].info.parameters, secret_of(made)
    a, b = RNG.integers(0, 2, (2, p.degree))
    x, y = encrypt(public, a, digits), encrypt(public, b, digits)
    assert not np.array_equal(x.parts, encrypt(public, a, digits).parts)
    results = [
        (x, a), (added(x, y), (a + b) % 2), (multiplied(switching, x, y), product_of(order, a, b)), (image(switching, x, 2), image_of(order, a, 2)),
    ]  # fmt: skip
    lowest = [switched(c, 1) for c, _ in results]
    for ciphertext, (_, message) in zip(lowest, results, strict=True):
        assert np.array_equal(phase(ciphertext, secret) % 2, message) and np.abs(phase(ciphertext, secret)).max() < 1 << 45
    assert np.array_equal(jointly(made, lowest), np.stack([message for _, message in results]))


def test_shares_of_a_rounding_combine_to_the_message() -> None:
    """As receivers outside of a served committee combine answers."""
    made = key(105, "rep-field", 3)
    info, q = made[0].info, made[0].info.parameters.primes[0]
    phases_of = borders(48, q)
    ciphertext, scheme = with_phase(105, q, secret_of(made), phases_of, RNG), encryption_of(info)

    def job(context: PartyContext) -> Any:
        group, variant = pool_group(context), rounding_of(context.committee, EXACT, info.parameters)
        z = scheme.phases(context, group, info, made[context.party].shares[:1], variant, [ciphertext])
        return variant.use(group, z, variant.make(group, 48), "share")

    words = scheme.combine(info.parameters, run_in_process(api.in_process_committee(3, "rep-field"), job), 0)
    (found,) = scheme.plaintexts(info, [ciphertext], words)
    assert json.loads(found.plaintext) == (phases_of % 2).tolist()


def decrypt_fields(path: Path, output: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    local = {"ciphertexts": [str(path)], "outputs": [str(output)]}
    return {"kind": "decrypt", "key": "k", "receiver": 1, "rounding": EXACT, "sha256": [digest], "backend": "embedded", "local": local}


def test_files_from_encryption_to_decoding(tmp_path: Path) -> None:
    members, small = on_disk(tmp_path, "semi", 2), small_set(105)
    run(members, {"kind": "keygen", "key": "k", **GhsRequest(small, "cbd").to_json(), "backend": "embedded", "local": {}})
    bits = [1, 0, 0, 1, 1]
    path = tmp_path / "x.ct"
    made = api.encrypt(members, "k", bits, path)
    assert recognise(path.read_bytes()) is encryption_of(small) and "ciphertext of GHS, m = 105, 48 bits" in examine(path).lines[0]
    assert run(members, decrypt_fields(path, tmp_path / "x.plain"))[1]["outputs"]
    assert api.decode(members, "k", tmp_path / "x.plain", 6).tolist() == [*bits, 0]
    file = tmp_path / "small.toml"
    numbers = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(small).items()}
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in numbers.items()))
    with pytest.warns(SecurityWarning, match="ghs-105.* is not a shipped set"):
        run(members, api.pool_fill_job(members, str(file), EXACT, 48))
    run(members, {**decrypt_fields(path, tmp_path / "pooled.plain"), "pool": True})
    assert (tmp_path / "pooled.plain").read_bytes() == (tmp_path / "x.plain").read_bytes()
    scheme, info = encryption_of(made.info), made.info
    for at in (0, 20, len(made.data) // 2, len(made.data) - 1):
        with pytest.raises(CiphertextError, match="not a ciphertext of GHS, or a damaged one"):
            read_ciphertext(made.data[:at] + bytes([made.data[at] ^ 1]) + made.data[at + 1 :], "x")
    with pytest.raises(CiphertextError, match="under another key"):
        scheme.parse(replace(info, key_id="0" * 32), made.data, "x", EXACT)
    with pytest.raises(CiphertextError, match="switch it to the first one"):
        GhsCiphertext(105, small.primes, np.zeros((2, 2, 48), dtype=np.uint64)).to_bytes(info.key_id)
    for values in ([2], [[1]], [0] * 49, []):
        with pytest.raises(ValuesError, match="encrypts at most 48 bits"):
            api.encrypt(members, "k", values, tmp_path / "y.ct")
    assert made.data[:8] == MAGIC


def test_roundings_and_sets_without_exact_decryption_are_refused() -> None:
    two, small = api.in_process_committee(2, "semi"), small_set(105)
    with pytest.raises(ParameterError, match="are decrypted by round_ltz_circuit alone"):
        rounding_of(two, MASKED, small)
    with pytest.raises(ParameterError, match="among 16 summands"):
        rounding_of(api.in_process_committee(17, "semi"), EXACT, small)
    with pytest.raises(ParameterError, match="its first prime has 58 bits, roundings take 57"):
        rounded_set(replace(small, primes=tuple(islice((q for q in range((1 << 57) // STEP * STEP + STEP + 1, 1 << 58, STEP) if is_prime(q)), 2))))
    assert all(rounded_set(load_set(name)).noise_length == 56 for name in ("ghs-53261", "ghs-28679"))
