"""Keys of committees that verify products: they work in stock SEAL, and what a corrupted party does is found. Each attack also runs without the check that finds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.model.errors import CommitteeError, KeyFileError
from keyquorum.model.subset import subset_of
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.jobs import check_alone
from keyquorum.plans.keygen import keygen_job
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import holds_a_key
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.keygen import SealRequest, generate
from keyquorum.sharing.numbers.lift import MERSENNE
from keyquorum.sharing.numbers.pseudorandom import PseudorandomNumbers
from keyquorum.sharing.shares import Run

from tests.fhe.dealer import tiny
from tests.protocols import VERIFIED_FIELD, VERIFIED_SHAMIR

from .corrupted import BreaksOff, Change, Ends, Other, Proxy, ends_of, nothing, same
from .distributions import chi_square_p, uniform
from .quorum import WEAK, Seal, Words, reconstruct, secret_of

REPLICATED, SHAMIR = VERIFIED_FIELD.protocol, VERIFIED_SHAMIR.protocol
PLAIN = "rep-field"
CORRUPT = 2
"""The corrupted party."""
COMMITTEES = [(REPLICATED, 3), (SHAMIR, 3), (SHAMIR, 5), (SHAMIR, 4)]
N = 256
both = pytest.mark.parametrize("protocol", [REPLICATED, SHAMIR])


def _request(scheme: str = "bfv", primes: int = 2) -> SealRequest:
    return SealRequest(tiny(scheme, primes, N), True, (3,), "cbd", WEAK)  # type: ignore[arg-type]


@pytest.mark.parametrize(("protocol", "parties"), COMMITTEES)
@pytest.mark.parametrize("scheme", ["bfv", "bgv", "ckks"])
def test_keys_work_in_seal(protocol: str, parties: int, scheme: str) -> None:
    """SEAL encrypts under the public key, rotates, and decrypts with the secret that the shares determine modulo every prime alike."""
    members = api.in_process_committee(parties, protocol)
    material = api.keygen_in_process(members, _request(scheme))
    assert len({m.info.transcript for m in material}) == 1 and all(m.public == material[0].public for m in material)
    s = Seal(material[0], secret_of(members, material))
    assert s.decryptor is not None
    values = np.arange(N // 2) % 200 - 100
    rows = np.tile(values, 2 if scheme != "ckks" else 1)
    plain = s.encoder.encode(rows.astype(float), 2.0**30) if scheme == "ckks" else s.encoder.encode(rows)
    rotate = s.evaluator.rotate_vector if scheme == "ckks" else s.evaluator.rotate_rows
    got = np.asarray(s.encoder.decode(s.decryptor.decrypt(rotate(s.encryptor.encrypt(plain), 1, s.galois))))
    want = np.roll(rows.reshape(-1, N // 2), -1, axis=1).reshape(-1)
    assert np.array_equal(np.round(got).astype(int), want)


def _alter(data: bytearray, at: int = 0) -> bytearray:
    """Another share of one integer."""
    data[8 * at] ^= 1
    return data


class Joint:
    """Joint integers of which some shares are others."""

    def __init__(self, core: Any, **changes: Any) -> None:
        self.core, self.changes = core, changes
        self.name = changes.get("name", core.name)

    def shares(self, domain: str, start: int = 0, count: int | None = None) -> bytearray:
        shares: bytearray = self.core.shares(domain, start, count)
        return _alter(shares) if domain == self.changes.get("domain") else shares

    def indicators(self, domain: str, summand: int, value: int) -> bytearray:
        shares: bytearray = self.core.indicators(domain, summand, value)
        # Summand CORRUPT is one that this party holds.
        return _alter(shares) if (summand, value) == self.changes.get("indicator") else shares


def _joint(party: int = CORRUPT, **changes: Any) -> Proxy:
    """One party's joint integers are others."""

    def proxy(session: Any) -> Any:
        def drawn(*args: Any) -> Any:
            made = session.joint_integers(*args)
            if callable(changes.get("name")):
                return Joint(made, name=changes["name"](made.name))
            return Joint(made, **changes)

        return Other(session, joint_integers=drawn) if session.party == party else session

    return proxy


def _run(protocol: str, job: Callable[[PartyContext], Any], session: Proxy = same, change: Change = nothing) -> Ends:
    """See :func:`ends_of`. ``change``: of the corrupted party."""
    return ends_of(api.in_process_committee(3, protocol), job, {CORRUPT: change}, session, patience=30)


def _key(context: PartyContext) -> KeyMaterial:
    return generate(context, _request())


def _uncompared(proxy: Proxy) -> Proxy:
    """The same, and nobody compares transcripts."""

    def without(session: Any) -> Any:
        return Other(proxy(session), compare=lambda label, digest: None)

    return without


def _second() -> str:
    return f"F_{_request().parameters.coeff_modulus[1]}"


@both
def test_another_joint_integer_in_one_domain(protocol: str) -> None:
    """A mask that is another one modulo one prime makes another secret there. The first opening in that domain shows it."""
    _run(protocol, _key, _joint(domain=_second())).found("cheats")


def test_another_joint_integer_is_not_found_without_checked_openings() -> None:
    """With semi-honest openings and no comparison the honest parties end with different public keys."""
    ends = _run(PLAIN, _key, _uncompared(_joint(domain=_second())))
    keys = [end for end in ends if isinstance(end, KeyMaterial)]
    assert len(keys) == 3 and len({k.public["public.key"] for k in keys}) > 1


def _secret(context: PartyContext, size: int = 2048) -> Words:
    with PseudorandomNumbers(Run(context)).ternary(size) as made:
        return made.file.words.copy()


@both
def test_another_trit_in_the_sum_of_the_secret(protocol: str) -> None:
    """A party that holds another trit sends a wrong product: the check of products finds it before the secret is stored."""
    _run(protocol, _secret, _joint(indicator=(CORRUPT, 1))).found("cheats")


def test_another_trit_is_not_found_without_verified_products() -> None:
    """The honest parties store a secret that is no ternary one where the trit was changed, or another one, and nobody notices."""
    ends = _run(PLAIN, _secret, _joint(indicator=(CORRUPT, 1)))
    assert not any(isinstance(end, Exception) for end in ends)
    right = reconstruct(PLAIN, 1, ends, MERSENNE)
    # Party 0 holds summands 0 and 2, party 1 holds summands 1 and 0: without the corrupted party.
    honest = (ends[0][0].astype(object) + ends[0][1].astype(object) + ends[1][0].astype(object)) % MERSENNE
    honest = np.where(honest > MERSENNE // 2, honest - MERSENNE, honest)
    assert set(honest[1:].tolist()) == {-1, 0, 1} and (right[0] != honest[0] or honest[0] not in (-1, 0, 1))


@pytest.mark.parametrize(("protocol", "parties"), COMMITTEES)
def test_distribution_of_the_secret(protocol: str, parties: int) -> None:
    """Uniform in {-1, 0, 1}: false alarm 10^-6 a case."""
    members = api.in_process_committee(parties, protocol)
    shares = run_in_process(members, lambda context: _secret(context, 6000))
    secret = reconstruct(protocol, members.threshold, shares, MERSENNE)
    counts = Counter(secret.tolist())
    assert set(counts) == {-1, 0, 1}
    assert chi_square_p(secret, uniform(range(-1, 2))) > 1e-6


@both
def test_joint_integers_of_two_draws(protocol: str) -> None:
    """An honest party whose shares are of another draw has another name: nothing is computed with them. With the same name the run goes on."""
    ends = _run(protocol, _key, _joint(1, name=lambda name: bytes([name[0] ^ 1]) + name[1:]))
    assert all(isinstance(end, Exception) for end in ends)
    assert any(isinstance(end, _engine.StoreError) and "not made together" in str(end) for end in ends), ends
    assert all(isinstance(end, KeyMaterial) for end in _run(protocol, _key, _joint(1, name=lambda name: name)))


def _another_share(program: str, _: str, options: dict[str, Any]) -> None:
    """Changes a share before a program reads it."""
    if program == "rlwe_public_key":
        options["shares"].words[0, 0] ^= np.uint64(1)


@both
def test_a_wrong_body(protocol: str) -> None:
    """A corrupted party that opens a wrong summand of a public key is found by those that have the copy, or by the degree."""
    _run(protocol, _key, change=_another_share).found("cheats")


def test_a_wrong_body_is_not_found_without_checked_openings() -> None:
    ends = _run(PLAIN, _key, _uncompared(same), _another_share)
    assert len({end.public["public.key"] for end in ends}) > 1


def _says(label: str) -> Proxy:
    """The corrupted party has another digest."""

    def proxy(session: Any) -> Any:
        def compare(said: str, digest: bytes) -> None:
            session.compare(said, bytes(32) if said == label else digest)

        return Other(session, compare=compare) if session.party == CORRUPT else session

    return proxy


@both
def test_a_wrong_final_hash(protocol: str) -> None:
    """Both honest parties stop before they have a key. Without the comparison both have one."""
    _run(protocol, _key, _says("transcript of the key")).found("transcript of the key: party 2", _engine.ProtocolError)
    assert all(isinstance(end, KeyMaterial) for end in _run(protocol, _key, _uncompared(same)))


def _withholds(session: Any) -> Any:
    """The corrupted party sends its last digest but one to party 0 alone, and stops."""

    def compare(said: str, digest: bytes) -> None:
        if said == "stored key":
            session.send(0, digest)
            session.recv(0, 64)
            session.recv(1, 64)
            # Party 0 has all digests now. Its own last message shows that its key counts.
            session.recv(0, 64)
            raise BreaksOff("as the adversary wants it")
        session.compare(said, digest)

    return Other(session, compare=compare) if session.party == CORRUPT else session


@both
def test_a_withheld_digest_leaves_a_right_key_or_none(protocol: str, tmp_path: Path) -> None:
    """Selective abort at the end: party 0 has a key, party 1 has none, both have an error. The name is free where no key is, and where one is it can be deleted; then
    the committee makes the key anew."""
    members = api.init(tmp_path / "c", 3, protocol)
    job = api.keygen_job("k", _request().parameters, relin=False, policy=WEAK)

    def run(session: Proxy = same) -> Ends:
        return ends_of(members, lambda context: keygen_job(context, job), {} if session is same else {CORRUPT: nothing}, session)

    ends = run(_withholds)
    assert all(isinstance(end, Exception) for end in ends)
    folders = [members.key_folder(party, "k") for party in range(3)]
    assert [holds_a_key(folder) for folder in folders] == [True, False, False]
    assert not folders[1].exists()
    run().found("there is a key of this name already", KeyFileError)
    for path in folders[0].iterdir():
        path.unlink()
    ends = run()
    assert all(isinstance(end, dict) for end in ends) and all(map(holds_a_key, folders))


@pytest.mark.parametrize(("protocol", "parties", "name"), [(REPLICATED, 3, "lwe64-p2"), (REPLICATED, 3, "lwe53-p16"), (SHAMIR, 3, "lwe53-p16")])
def test_lwe_keys(protocol: str, parties: int, name: str) -> None:
    """All parties have the same public key. `test_lwe_public_key.py` tests secrets and noise of these committees too."""
    members = api.in_process_committee(parties, protocol)
    request = scheme_of(api.load_parameters(name)).request_from_job({"parameters": {**vars(api.load_parameters(name))}})
    material = api.keygen_in_process(members, request)
    assert len({m.info.transcript for m in material}) == 1
    assert all(m.public == material[0].public for m in material)


@pytest.mark.parametrize(("protocol", "parties"), COMMITTEES[:3])
def test_exact_decryption_takes_these_keys(protocol: str, parties: int) -> None:
    """As SEAL decrypts, coefficient by coefficient."""
    members = api.in_process_committee(parties, protocol)
    material = api.keygen_in_process(members, _request())
    s = Seal(material[0], secret_of(members, material))
    ciphertext = s.lowest(s.encryptor.encrypt(s.encoder.encode(np.arange(9))))
    data = ciphertext.to_string()
    assert np.array_equal(api.decrypt_in_process(members, material, [data], receiver=1)[0].coefficients, s.coefficients(ciphertext))


def test_subsets_and_other_backends_are_refused() -> None:
    """Parties of a subset have additive shares, of which a corrupted one gives any it likes; MP-SPDZ has no joint integers."""
    for protocol in (REPLICATED, SHAMIR):
        members = api.in_process_committee(3, protocol)
        with pytest.raises(CommitteeError, match="a subset computes with additive shares, which do not let it verify anything"):
            subset_of(members, (0, 1))
        with pytest.raises(CommitteeError, match="joint integers, which the backend mp-spdz does not have"):
            check_alone(members, 0, api.keygen_job("key", "bfv-4096", backend="mp-spdz"))


def test_keys_that_nobody_can_decrypt_under_come_with_a_warning() -> None:
    for protocol, parameters, warned in (
        (REPLICATED, "bfv-4096", False),
        (REPLICATED, "ckks-4096", False),
        (SHAMIR, "bfv-4096", False),
        (SHAMIR, "ckks-4096", False),
        (REPLICATED, "lwe53-p16", False),
        (SHAMIR, "lwe53-p16", False),
    ):
        chosen = api.load_parameters(parameters)
        said = scheme_of(chosen).request(chosen, {}).warnings(api.in_process_committee(3, protocol))
        assert any("nobody can decrypt" in text for text in said) == warned, (protocol, parameters)
