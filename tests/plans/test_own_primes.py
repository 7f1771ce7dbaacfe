"""BFV and BGV under primes of SEAL's own choice: every committee decrypts what SEAL decrypts, up to both borders of the noise, or its key is refused before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.parameters import ParameterSet, Scheme
from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError, PolicyError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import decrypt
from keyquorum.plans.examine import examine_keys
from keyquorum.plans.keygen import keygen_job
from keyquorum.plans.pool_variants import variant_for
from keyquorum.schemes import encryption_of
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.decryptable import border, room
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.serve.client import fetch, make_receiver
from keyquorum.serve.kinds import Service
from numpy.typing import NDArray

from tests.long import LONG, some
from tests.serve.daemons import Threads

from .quorum import Seal, make_key, seal, secret_of
from .test_exact_decryption import with_phase
from .test_odd_pools import fill

T = 65537
FACTORS = (1, 7289)
"""Correction factors of BGV ciphertexts: SEAL has others than 1 after a switch of levels."""


def created(scheme: Scheme, degree: int, bits: list[int], t: int = T, security: str = "tc128") -> ParameterSet:
    """A set with SEAL's ``CoeffModulus.Create``."""
    primes = tuple(prime.value() for prime in seal.CoeffModulus.Create(degree, bits))
    return ParameterSet(f"created-{scheme}-{degree}", scheme, degree, primes, t, security=security)  # type: ignore[arg-type]


def default(scheme: Scheme, degree: int) -> ParameterSet:
    """A set with SEAL's ``CoeffModulus.BFVDefault``, and its plain modulus of 20 bits for batching."""
    primes = tuple(prime.value() for prime in seal.CoeffModulus.BFVDefault(degree))
    return ParameterSet(f"default-{scheme}-{degree}", scheme, degree, primes, seal.PlainModulus.Batching(degree, 20).value())


def of_few_coefficients(parameters: ParameterSet) -> ParameterSet:
    """256 coefficients under the same primes, so that phases, masks and borders of the noise are what they were."""
    return replace(parameters, ring_degree=256, security="none")


def small(scheme: Scheme) -> ParameterSet:
    """A small insecure set, for committees with MACs."""
    return of_few_coefficients(created(scheme, 1024, [36, 37], 12289, "none"))


SETS = {
    "created": lambda scheme: of_few_coefficients(created(scheme, 4096, [36, 36, 37])),
    "default": lambda scheme: of_few_coefficients(default(scheme, 8192)),
    "larger": lambda scheme: default(scheme, 16384),
    "small": small,
}
SEMI_HONEST = [("rep-field", 3), ("ring", 3), ("semi", 2), ("semi2k", 3), ("shamir", 3), ("shamir", 5)]
VERIFIED = [("mal-rep-field", 3), ("mal-rep-ring", 3), ("mal-shamir", 3)]


def _members(protocol: str, parties: int) -> Committee:
    return api.in_process_committee(parties, protocol)


@cache
def key(protocol: str, parties: int, name: str, scheme: Scheme) -> list[KeyMaterial]:
    """A key, made once. With a relinearisation key where the set is not the small one."""
    request = SealRequest(SETS[name](scheme), relin=name != "small")
    return make_key(_members(protocol, parties), request, f"own primes {protocol} {name} {scheme}".encode())


def exact_messages(parameters: ParameterSet, phases: NDArray[np.int64], factor: int) -> NDArray[np.uint64]:
    """Messages of phases in [0, q), as SEAL's definition has them, with Python's integers."""
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    if parameters.scheme == "bfv":
        found = [(2 * t * w + q) // (2 * q) % t for w in phases.tolist()]
    else:
        found = [(w - q if 2 * w > q else w) * pow(factor, -1, t) % t for w in phases.tolist()]
    return np.array(found, dtype=np.uint64)


def border_phases(parameters: ParameterSet, members: Committee, factor: int, count: int) -> NDArray[np.int64]:
    """Phases on both sides of borders between messages, as near to them as the committee's share of the noise allows (:func:`.border`)."""
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    away = 2 if border(parameters, members) > 1 - 2.0**-20 else int((1 - border(parameters, members)) * q / (2 * t)) + 2
    messages = np.random.default_rng(factor).integers(0, t, count // 2).tolist()
    rounded = np.array([(2 * m + 1) * q // (2 * t) for m in messages], dtype=np.int64)  # of x, where t x / q is rounded
    x = np.concatenate([rounded - away, rounded + 1 + away]) % q
    return x if parameters.scheme == "bfv" else np.array([w * t % q for w in x.tolist()], dtype=np.int64)


def ciphertexts_of(members: Committee, material: list[KeyMaterial], factors: Sequence[int]) -> tuple[list[bytes], NDArray[np.uint64]]:
    """Ciphertexts at both borders of the noise, one for each correction factor; and their messages."""
    parameters, secret, data, exact = material[0].info.parameters, secret_of(members, material), [], []
    for factor in factors if parameters.scheme == "bgv" else (1,):
        phases = border_phases(parameters, members, factor, parameters.ring_degree)
        data += with_phase(parameters, secret, phases, factor)
        exact.append(exact_messages(parameters, phases, factor))
    return data, np.concatenate(exact)


def check_decryption(members: Committee, material: list[KeyMaterial], pool: str = "") -> None:
    """At both borders of the noise, and what SEAL computed: a product, its factors and a sum of levels, at the last level."""
    parameters = material[0].info.parameters
    n = parameters.ring_degree
    data, exact = ciphertexts_of(members, material, FACTORS)
    s = Seal(material[0], secret_of(members, material))
    made = s.encryptor.encrypt(s.encoder.encode(np.arange(-50, 50)))
    computed = [made] if s.relin is None else [s.evaluator.relinearize(s.evaluator.square(made), s.relin)]
    data += [s.lowest(c).to_string() for c in computed]
    exact = np.concatenate([exact, *(s.coefficients(s.lowest(c)) for c in computed)])
    parsed = [read_ciphertext(parameters, c) for c in data]

    def job(context: PartyContext) -> Any:
        mine = material[context.party]
        return decrypt(context, mine.info, mine.shares, parsed, 1, pool=pool)

    if pool:
        fill(members, variant_for(members, "round_ltz_circuit", parameters), len(data) * n)
    results = run_in_process(members, job, timeout=120)[1]
    assert np.array_equal(np.concatenate([r.coefficients for r in results]), exact)


@pytest.mark.parametrize("scheme", ["bgv", "bfv"])
@pytest.mark.parametrize("name", some(["created", "default", "larger"], 2))
@pytest.mark.parametrize(("protocol", "parties"), [*some(SEMI_HONEST, 4), *VERIFIED])
def test_every_committee_decrypts_what_seal_does(protocol: str, parties: int, name: str, scheme: Scheme) -> None:
    if name != "created" and not LONG and protocol not in ("semi", "mal-rep-field"):
        pytest.skip("KEYQUORUM_LONG=1: every committee with every set")
    material = key(protocol, parties, name, scheme)
    assert scheme == "bfv" or material[0].info.parameters.coeff_modulus[0] % material[0].info.parameters.plain_modulus != 1
    check_decryption(_members(protocol, parties), material)


@pytest.mark.parametrize("scheme", some(["bgv", "bfv"], 1))
@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("shamir", 3), ("mal-rep-field", 3), ("mal-shamir", 3)])
def test_with_a_pool(tmp_path: Path, protocol: str, parties: int, scheme: Scheme) -> None:
    members = replace(_members(protocol, parties), folder=tmp_path)
    check_decryption(members, make_key(members, SealRequest(small(scheme), relin=False), b"pool"), pool="test")


@pytest.mark.parametrize("scheme", some(["bgv", "bfv"], 1))
def test_with_macs(scheme: Scheme) -> None:
    """In one ring; the noise is up to its margin."""
    members = _members("mascot", 2)
    material = api.keygen_in_process(members, SealRequest(small(scheme), relin=False))
    assert material[0].info.ring_secret
    data, exact = ciphertexts_of(members, material, FACTORS[1:])
    results = api.decrypt_in_process(members, material, data, receiver=1)
    assert np.array_equal(np.concatenate([r.coefficients for r in results]), exact)


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_a_first_prime_that_is_too_short(tmp_path: Path, scheme: Scheme) -> None:
    """No committee can decrypt then: a key is refused before any party connects, and the job is not written. The prime that the error asks for is long enough."""
    short = created(scheme, 4096, [20, 36, 37])
    folder = tmp_path / "c"
    api.init(folder, 3, "rep-field")
    for call in (lambda: api.keygen(folder, "key", short), lambda: api.keygen_job("key", short), lambda: api.keygen_needs(folder, short)):
        with pytest.raises(
            ParameterError, match="fresh noise fills the first prime 1032193 of 20 bits under plain modulus 65537: put a prime of"
        ) as refused:
            call()
    assert not list(folder.glob("party-*/keys/*"))
    bits = int(str(refused.value).split("put a prime of ")[1].split()[0])
    for protocol in COMMITTEES:
        assert room(created(scheme, 4096, [bits, 36, 37]), _members(protocol, 3)) >= 0
    with pytest.raises(ParameterError, match="fresh noise fills"):
        SealRequest(created(scheme, 4096, [bits - 3, 36, 37])).check()


def test_a_plain_modulus_that_is_too_wide(tmp_path: Path) -> None:
    """Fresh noise fills the phase; before that, scaled phases of 9 bits leave committees less room than prime fields alone."""
    wide = created("bfv", 8192, [60, 60, 60], seal.PlainModulus.Batching(8192, 56).value())
    with pytest.raises(ParameterError, match=f"under plain modulus {wide.plain_modulus}: take a smaller plain_modulus"):
        SealRequest(wide).check()
    wide = created("bfv", 8192, [60, 60, 60], seal.PlainModulus.Batching(8192, 50).value())
    assert room(wide, _members("mal-shamir", 3)) == room(wide) > room(wide, _members("rep-field", 3)) > 0


def test_levels_without_room_for_flooding() -> None:
    """CKKS: a key whose highest level does not hold message and flooding is refused."""
    narrow = ParameterSet("narrow", "ckks", 8192, created("bfv", 8192, [40, 60]).coeff_modulus, 0, 38)
    with pytest.raises(
        PolicyError, match=r"no ciphertext can be decrypted, since all primes but the last have 40 bits, and scale and flooding take 4\d: add a prime"
    ):
        SealRequest(narrow, policy=FloodPolicy(4, 1, 11)).check_committee(_members("rep-field", 3))


def stored(folder: Path, parameters: ParameterSet, protocol: str = "rep-field") -> Committee:
    """A committee on the disk, with a key that its parties made in this process."""
    members = api.init(folder, 3, protocol)
    run_in_process(members, lambda context: keygen_job(context, api.keygen_job("key", parameters, relin=False)))
    return members


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("protocol", "scheme"), some([("rep-field", "bgv"), ("mal-shamir", "bgv"), ("mal-rep-field", "bgv")], 1))
def test_served(tmp_path: Path, protocol: str, scheme: Scheme) -> None:
    """To a receiver outside, from every party's share of the message."""
    values = np.arange(-50, 50)
    members = stored(tmp_path / "c", small(scheme), protocol)
    identity = make_receiver(members, "web")[0]
    api.encrypt(tmp_path / "c", "key", values, tmp_path / "c.seal")
    info = api.load_key(members.key_folder(0, "key"))
    body = encryption_of(info).request_body(info, tmp_path / "c.seal", (tmp_path / "c.seal").read_bytes())
    with Threads(members, Service("key", keep=1024, chunk=1024)):
        result = fetch(members, identity, body, wait=120.0, info=info)
    (tmp_path / "m.plain").write_bytes(result.plaintext)
    assert np.array_equal(api.decode(tmp_path / "c", "key", tmp_path / "m.plain", len(values)), values)


def test_doctor_names_keys_of_earlier_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that nobody can decrypt with, which is not made any more."""
    with monkeypatch.context() as patch:
        for name in ("check_set", "check_decryptable"):
            patch.setattr(f"keyquorum.schemes.seal.keygen.{name}", lambda *arguments: None)
        members = stored(tmp_path / "bad", created("bgv", 4096, [20, 36, 37]))
    found = [f for f in examine_keys(members, [0, 1, 2]) if "key key" in f.text]
    assert len(found) == 3 and not any(f.ok for f in found)
    assert "nothing that is encrypted under it can be decrypted: created-bgv-4096: ciphertexts cannot be decrypted" in found[0].text
    members = stored(tmp_path / "good", small("bgv"))
    assert all(f.ok for f in examine_keys(members, [0, 1, 2]))
