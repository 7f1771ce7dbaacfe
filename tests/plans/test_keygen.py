"""Keys of every scheme and protocol in stock SEAL, what all parties must have alike, and what keygen refuses."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.keys import validate_galois_keys, validate_public_key, validate_relin_keys
from keyquorum.model.errors import ParameterError, PolicyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.keygen import SealRequest, generate
from keyquorum.schemes.seal.policy import FloodPolicy

from tests.fhe.dealer import dealer, tiny
from tests.long import LONG

from .distributions import chi_square_p, uniform
from .quorum import WEAK, Seal, committee, make_key, secret_of

STEPS = (1, -3, 0)
CASES = [
    ("ckks-8192-demo", "rep-field", "cbd"),
    ("ckks-4096-narrow", "rep-field", "gaussian"),
    ("ckks-4096-narrow", "shamir-3", "cbd"),
    ("ckks-4096-narrow", "shamir-5", "cbd"),
    ("bfv-8192", "rep-field", "cbd"),
    ("bfv-8192", "shamir-3", "cbd"),
    ("bgv-8192", "rep-field", "cbd"),
    ("bgv-8192", "shamir-3", "cbd"),
    ("ckks-4096-narrow", "semi-2", "gaussian"),
    ("ckks-4096-narrow", "semi-4", "cbd"),
    ("bfv-8192", "semi-2", "cbd"),
    ("bgv-8192", "semi-2", "cbd"),
    *([("bgv-8192", "semi-4", "cbd")] if LONG else []),
]


@cache
def key(name: str, backend: str, distribution: str = "cbd") -> list[KeyMaterial]:
    """A key with a relinearisation key and three Galois keys. ``rep-field``: of the whole set; other protocols, whose products cost more: with 256 coefficients under its primes."""
    parameters = dealer(name).parameters
    if backend != "rep-field" and not LONG:
        parameters = replace(parameters, ring_degree=256, security="none")
    request = SealRequest(parameters, True, api.galois_elements(parameters, STEPS), distribution, WEAK)
    return make_key(committee(backend), request, f"{name} {backend} {distribution}".encode())


def flooding_bound(scale: float, n: int, contributors: int) -> float:
    """Error of a slot that flooding and ciphertext noise of the policy explain: 6.5 deviations (false alarm 1e-10 a slot).

    A slot is a sum of N coefficients with weights of modulus 1; its real part has N/2 times their variance.
    """
    deviation = np.sqrt((contributors * WEAK.sigma(n) ** 2 + 4.0**WEAK.noise_bits) * n / 2)
    return float(6.5 * deviation / scale)


def circuit(s: Seal, x: Any, y: Any) -> list[Any]:
    """(x·y rotated by 1), (x rotated by -3), (x·y conjugated, or with the rows exchanged); products lose a level."""
    encode = (lambda v: s.encoder.encode(v, s.parameters.scale)) if s.parameters.scheme == "ckks" else s.encoder.encode
    a, b = (s.encryptor.encrypt(encode(v)) for v in (x, y))
    product = s.evaluator.relinearize(s.evaluator.multiply(a, b), s.relin)
    if s.parameters.scheme == "ckks":
        product = s.evaluator.rescale_to_next(product)
        rotate, swap = s.evaluator.rotate_vector, s.evaluator.complex_conjugate
    else:
        product = s.evaluator.mod_switch_to_next(product)
        rotate, swap = s.evaluator.rotate_rows, s.evaluator.rotate_columns
    return [rotate(product, 1, s.galois), rotate(a, -3, s.galois), swap(product, s.galois)]


@pytest.mark.parametrize(("name", "backend", "distribution"), [c for c in CASES if c[0].startswith("ckks")])
def test_ckks_keys_work_in_seal(name: str, backend: str, distribution: str) -> None:
    """Encrypt, multiply, relinearise, rescale, rotate, conjugate with stock SEAL; joint decryption within the flooding."""
    members, material = committee(backend), key(name, backend, distribution)
    s, parameters = Seal(material[0]), material[0].info.parameters
    rng = np.random.default_rng(1)
    slots = parameters.slots
    x, y = rng.uniform(-1, 1, slots), rng.uniform(-1, 1, slots)
    results = circuit(s, x, y)
    receiver = members.size - 1
    opened = api.decrypt_in_process(members, material, [c.to_string() for c in results], receiver)
    expected = [np.roll(x * y, -1), np.roll(x, 3), x * y]
    for ciphertext, plain, want in zip(results, opened, expected, strict=True):
        got = np.asarray(s.encoder.decode(s.context.from_plain_str(plain.plaintext)))
        bound = flooding_bound(ciphertext.scale(), parameters.ring_degree, members.threshold + 1)
        assert np.abs(got - want).max() < bound
        assert bound < 0.04


def test_conjugation_of_complex_numbers() -> None:
    """The Galois element of step 0 conjugates."""
    material = key("ckks-8192-demo", "rep-field")
    s, rng = Seal(material[0]), np.random.default_rng(2)
    z = rng.uniform(-1, 1, 4096) + 1j * rng.uniform(-1, 1, 4096)
    ciphertext = s.encryptor.encrypt(s.encoder.encode_complex(z, s.parameters.scale))
    result = s.evaluator.complex_conjugate(ciphertext, s.galois)
    opened = api.decrypt_in_process(committee("rep-field"), material, [result.to_string()])[0]
    got = np.asarray(s.encoder.decode_complex(s.context.from_plain_str(opened.plaintext)))
    assert np.abs(got - z.conj()).max() < np.sqrt(2) * flooding_bound(s.parameters.scale, 8192, 2)


@pytest.mark.parametrize(("name", "backend", "distribution"), [c for c in CASES if not c[0].startswith("ckks")])
def test_integer_keys_work_in_seal(name: str, backend: str, distribution: str) -> None:
    """The same for BFV and BGV: every slot exact; jointly where the protocol can, and with SEAL's Decryptor. `round_mask_open` is
    wrong with a probability of some 2^-23 a coefficient: three of 24,576 once in 10^8 runs."""
    members, material = committee(backend), key(name, backend, distribution)
    s, parameters = Seal(material[0], secret_of(members, material)), material[0].info.parameters
    t, half = parameters.plain_modulus, parameters.ring_degree // 2
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-(t // 2), t // 2 + 1, 2 * half) for _ in range(2))
    results = [s.lowest(c) for c in circuit(s, x, y)]
    rows, product = x.reshape(2, half), (x * y).reshape(2, half)
    expected = [np.roll(product, -1, axis=1), np.roll(rows, 3, axis=1), product[::-1]]
    assert s.decryptor is not None
    plains = [s.decryptor.decrypt(c) for c in results]
    if members.ring_protocol is not None:
        data = [c.to_string() for c in results]
        opened = api.decrypt_in_process(members, material, data, 1, "round_ltz_circuit")
        plains += [s.context.from_plain_str(o.plaintext) for o in opened]
        opened = api.decrypt_in_process(members, material, data, 1, "round_mask_open")
        assert sum(int((o.coefficients != s.coefficients(c)).sum()) for o, c in zip(opened, results, strict=True)) <= 2
        assert [p.to_string() for p in plains[:3]] == [p.to_string() for p in plains[3:6]]
    for plain, want in zip(plains, expected * 2, strict=False):
        assert np.array_equal(np.asarray(s.encoder.decode(plain)) % t, want.reshape(-1) % t)


@pytest.mark.parametrize(("name", "backend", "distribution"), CASES)
def test_all_parties_have_the_same_key(name: str, backend: str, distribution: str) -> None:
    """Metadata, transcript and public files are alike and valid; shares are not alike."""
    material = key(name, backend, distribution)
    first = material[0]
    for other in material[1:]:
        assert other.info == first.info and other.public == first.public
        for a, b in zip(first.shares, other.shares, strict=True):
            assert not np.array_equal(a.words, b.words)
    assert len(bytes.fromhex(first.info.transcript)) == 32
    assert (first.info.parties, first.info.threshold) == (len(material), committee(backend).threshold)
    validate_public_key(first.info.parameters, first.public["public.key"])
    validate_relin_keys(first.info.parameters, first.public["relin.key"])
    validate_galois_keys(first.info.parameters, first.public["galois.key"], first.info.galois_elements)


@pytest.mark.parametrize("backend", ["rep-field", "shamir-5"])
def test_a_share_alone_says_nothing(backend: str) -> None:
    """Each word of each party's share is uniform modulo q, whatever the trit: chi-square of its top 5 bits, at 99.9 %."""
    members, request = committee(backend), SealRequest(dealer("ckks-4096-narrow").parameters, relin=False, policy=WEAK)
    material = make_key(members, request, f"a share of {backend}".encode())
    trits = secret_of(members, material).coefficients
    q = material[0].info.parameters.coeff_modulus[0]
    for party in material:
        for word in party.shares[0].words[:, : trits.size]:
            cells = (word.astype(object) * 32 // q).astype(np.int64)
            assert chi_square_p(cells, uniform(range(32))) > 0.001
            assert chi_square_p(cells[trits == 1], uniform(range(32))) > 0.001


def test_two_keys_have_nothing_in_common() -> None:
    """The public seed is tossed afresh even when test seeds repeat; without test seeds the secrets differ too."""
    members = committee("rep-field")
    request = SealRequest(tiny("ckks"), relin=False, policy=WEAK)
    fixed = [make_key(members, request, b"same") for _ in range(2)]
    assert fixed[0][0].info.key_id != fixed[1][0].info.key_id
    assert fixed[0][0].public["public.key"] != fixed[1][0].public["public.key"]
    free = [api.keygen_in_process(members, request) for _ in range(2)]
    assert not np.array_equal(secret_of(members, free[0]).coefficients, secret_of(members, free[1]).coefficients)


def test_only_what_was_asked_for() -> None:
    """Without relinearisation and Galois keys there is a public key alone; Galois keys alone are possible."""
    members, parameters = committee("rep-field"), tiny("ckks")
    assert set(api.keygen_in_process(members, SealRequest(parameters, relin=False, policy=WEAK))[0].public) == {"public.key"}
    only_galois = api.keygen_in_process(members, SealRequest(parameters, False, (3,), policy=WEAK))[0].public
    assert set(only_galois) == {"public.key", "galois.key"}


def test_a_ring_committee_is_the_same_committee() -> None:
    """Protocol `ring` names the committee of rep-field."""
    members = api.in_process_committee(3, "ring")
    material = make_key(members, SealRequest(tiny("bfv"), relin=False), b"ring")
    s = Seal(material[0], secret_of(members, material))
    ciphertext = s.lowest(s.encryptor.encrypt(s.encoder.encode(np.arange(8))))
    opened = api.decrypt_in_process(members, material, [ciphertext.to_string()])[0]
    assert opened.coefficients is not None
    assert np.array_equal(opened.coefficients, s.coefficients(ciphertext))


REFUSALS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"error_law": "uniform"}, ParameterError, "unknown error law 'uniform': choose one of cbd, gaussian"),
    ({"galois_elements": (3, 5, 3)}, ParameterError, "asked for twice: name each once"),
    ({"galois_elements": (4,)}, ParameterError, "Galois element 4: choose an odd number from 3 to 511"),
    ({"galois_elements": (1,)}, ParameterError, "Galois element 1:"),
    ({"galois_elements": (2049,)}, ParameterError, "Galois element 2049:"),
    ({"policy": FloodPolicy(bits=0)}, PolicyError, "flooding of 0 bits: choose 1 to 80"),
    ({"policy": FloodPolicy(decryptions=0)}, PolicyError, "0 decryptions: choose 1 to 2\\^30"),
    ({"policy": FloodPolicy(noise_bits=60)}, PolicyError, "noise of 60 bits: choose 1 to 50"),
    ({"policy": FloodPolicy(bits=80, noise_bits=40)}, PolicyError, "at most 2\\^55 is possible: lower"),
]


@pytest.mark.parametrize(("fields", "kind", "message"), REFUSALS, ids=[m for _, _, m in REFUSALS])
def test_refusals(fields: dict[str, Any], kind: type[Exception], message: str) -> None:
    """Typed, one line, from the request itself, from the job and from the plan."""
    request = replace(SealRequest(tiny("ckks"), policy=WEAK), **fields)
    with pytest.raises(kind, match=message) as caught:
        request.check()
    assert "\n" not in str(caught.value)
    with pytest.raises(kind, match=message):
        api.keygen_job("key", tiny("ckks"), **{"policy": WEAK, **fields})
    with pytest.raises(kind, match=message):
        api.keygen_in_process(committee("rep-field"), request)


@pytest.mark.parametrize("fields", [{"relin": False}, {"galois_elements": (5,)}, {"error_law": "gaussian"}, {"policy": replace(WEAK, bits=2)}])
@pytest.mark.parametrize("odd", [0, 2])
def test_a_party_that_asks_for_another_key_is_named(fields: dict[str, Any], odd: int) -> None:
    """Every party finds out before anything secret is made."""
    base = SealRequest(tiny("ckks"), policy=WEAK)
    messages: dict[int, str] = {}

    def job(context: PartyContext) -> None:
        try:
            generate(context, replace(base, **fields) if context.party == odd else base)
        except _engine.ProtocolError as error:
            messages[context.party] = str(error)

    run_in_process(committee("rep-field"), job)
    assert set(messages) == {0, 1, 2}
    for party, text in messages.items():
        assert "key parameters" in text and "\n" not in text
        assert party == odd or f"party {odd}" in text


def test_masks_of_three_parties_are_joint_integers_and_cost_no_message() -> None:
    """Of all primes: `lift_close` sends nothing, and the lift one round. Five parties, whose joint integers would have shorter masks, input them."""
    parameters = dealer("bfv-8192").parameters
    request = SealRequest(parameters, False, (), "cbd", WEAK)
    sent: dict[str, dict[str, tuple[int, int]]] = {}
    for backend in ("rep-field", "shamir-3", "shamir-5"):

        def job(context: PartyContext) -> dict[str, tuple[int, int]]:
            generate(context, request)
            return {phase.name: (phase.rounds, phase.bytes_sent) for phase in context.report.phases}

        sent[backend] = run_in_process(committee(backend), job)[0]
    n, primes = parameters.ring_degree, len(parameters.coeff_modulus)
    for backend in ("rep-field", "shamir-3"):
        assert sent[backend]["lift"][0] == 1 and sent[backend]["keys"][0] == primes, "openings alone"
        assert sent[backend]["keys"][1] < 8.2 * n * primes * (1 if backend == "rep-field" else 2)
    assert sent["shamir-5"]["lift"][0] == 2 and sent["shamir-5"]["keys"][0] == 2 * primes
