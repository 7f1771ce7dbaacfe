"""Parameter sets that are made for a purpose do what they were made for, and what is said of a set is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.parameters import MAX_BITS_TC128, Scheme, from_toml, problems, slots_prime
from keyquorum.fhe.seal import context, require_seal
from keyquorum.model.errors import ParameterError
from keyquorum.schemes.seal.advice import Wish, budgets, design, possible, primes_of
from keyquorum.schemes.seal.budget import check_attempts
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.policy import FloodPolicy

from tests.long import some

seal = require_seal()
MEMBERS = api.in_process_committee(3, "rep-field")


@pytest.mark.parametrize(("scheme", "depth"), some([("bgv", 1), ("bfv", 1), ("bfv", 3), ("bgv", 3), ("bfv", 8), ("bgv", 5)], 4))
def test_products_of_new_sets(scheme: Scheme, depth: int) -> None:
    """SEAL computes the products of random values, with levels dropped or not, and its budget at the last level is what we say, or more; a product more is too many."""
    made = design("made", Wish(scheme, depth), MEMBERS)
    assert made.total_bits <= MAX_BITS_TC128[made.ring_degree]
    stated = budgets(made)
    assert len(stated) > depth and stated[depth] >= 4
    ctx: Any = context(made)
    generator = seal.KeyGenerator(ctx)
    encryptor, evaluator = seal.Encryptor(ctx, generator.create_public_key()), seal.Evaluator(ctx)
    relin, decryptor = generator.create_relin_keys(), seal.Decryptor(ctx, generator.secret_key())
    encoder, t = seal.BatchEncoder(ctx), made.plain_modulus
    values = np.random.default_rng(3).integers(0, t, made.slots)
    best = -1
    for drops in (False, True):
        ciphertext, expected = encryptor.encrypt(encoder.encode(np.where(values > t // 2, values - t, values))), values.astype(object)
        for _ in range(depth):
            ciphertext, expected = evaluator.relinearize(evaluator.square(ciphertext), relin), expected * expected % t
            if drops and made.primes_of(bytes(np.array(ciphertext.parms_id(), np.uint64))) != 1:
                ciphertext = evaluator.mod_switch_to_next(ciphertext)
        lowest = evaluator.mod_switch_to(ciphertext, ctx.last_parms_id())
        budget = decryptor.invariant_noise_budget(lowest)
        if budget > best:
            best, decoded = budget, np.asarray(encoder.decode(decryptor.decrypt(lowest))) % t
    assert best >= int(stated[depth])
    assert (decoded == expected).all()


def test_precision_of_new_sets() -> None:
    """CKKS: a product is decrypted by the committee with the error that is stated."""
    wish = Wish("ckks", 1, precision=5)
    made = design("made", wish, MEMBERS)
    found = possible(made, wish.policy, MEMBERS)
    assert found.products == 1 and found.precision is not None and found.precision.bits >= 5
    material = api.keygen_in_process(MEMBERS, SealRequest(made))
    ctx: Any = context(made)
    encryptor, evaluator = seal.Encryptor(ctx, ctx.from_public_str(material[0].public["public.key"])), seal.Evaluator(ctx)
    values = np.linspace(-1, 1, made.slots)
    product = evaluator.relinearize(
        evaluator.square(encryptor.encrypt(seal.CKKSEncoder(ctx).encode(values, made.scale))), ctx.from_relin_str(material[0].public["relin.key"])
    )
    [result] = api.decrypt_in_process(MEMBERS, material, [evaluator.rescale_to_next(product).to_string()])
    decoded = seal.CKKSEncoder(ctx).decode(ctx.from_plain_str(result.plaintext))
    assert 0 < np.abs(decoded - values**2).max() < found.precision.largest


def test_shipped_sets() -> None:
    """Known sets: five products of bfv-8192, and what a committee cannot do is said with the reason."""
    assert len(budgets(api.load_parameters("bfv-8192"))) == 6
    found = possible(api.load_parameters("ckks-8192"), FloodPolicy(30, 1 << 20), MEMBERS)
    assert found.why_not and "bits of a value of size 1" in found.why_not and not found.products
    assert possible(api.load_parameters("ckks-4096"), FloodPolicy(), MEMBERS).products == 0


@pytest.mark.parametrize(("scheme", "depth"), [("bfv", 0), ("bfv", 1), ("bgv", 1), ("ckks", 0), ("ckks", 1)])
def test_sets_for_macs_have_primes_that_keygen_takes(scheme: Scheme, depth: int) -> None:
    """keygen refuses short primes under MACs, so a new set has none, and a set with one is not said to do."""
    with_macs, policy = api.in_process_committee(2, "mascot"), FloodPolicy()
    made = design("made", Wish(scheme, depth), with_macs)
    check_attempts(with_macs, made)
    assert possible(made, policy, with_macs).does(depth)
    short = design("short", Wish("bgv", 2), MEMBERS)
    assert min(short.coeff_modulus).bit_length() < 36
    found = possible(short, policy, with_macs)
    assert "a wrong value passes its MAC" in found.why_not and not found.does(0)
    with pytest.raises(ParameterError, match="a wrong value passes its MAC"):
        check_attempts(with_macs, short)


def test_primes() -> None:
    """Those of SEAL's CoeffModulus.Create; and those that are 1 modulo t."""
    assert primes_of(4096, [36, 36, 37]) == tuple(q.value() for q in seal.CoeffModulus.Create(4096, [36, 36, 37]))
    found = primes_of(4096, [40, 45, 40], 65537)
    assert [q.bit_length() for q in found] == [40, 45, 40] and all(q % (8192 * 65537) == 1 for q in found) and len(set(found)) == 3
    with pytest.raises(ParameterError, match="there are no 40 primes of 20 bits that are 1 mod 65536: take longer ones"):
        primes_of(32768, [20] * 40)
    assert slots_prime(4096, 65530) == 65537 and slots_prime(8192, 65538) % 16384 == 1


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (Wish("bfv", 64, 40), "no set of 128-bit security does this, not even at N = 32768: wish a lower --depth"),
        (Wish("ckks", 1, precision=30), r"a lower --depth \(now 1\), less --precision \(now 30\), or a smaller policy"),
        (Wish("rsa"), "scheme 'rsa' is unknown: choose bfv, bgv or ckks"),  # type: ignore[arg-type]
        (Wish("bfv", -1), "depth -1: choose 0 to 64"),
        (Wish("bfv", 1, 11), "plain bits 11: choose 12 to 50"),
        (Wish("bfv", 1, spare=201), "spare bits 201: choose 0 to 200"),
        (Wish("ckks", precision=2), "precision 2: choose 3 to 40"),
    ],
)
def test_refused_wishes(wish: Wish, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        design("made", wish, MEMBERS)


def test_everything_that_is_wrong_is_said() -> None:
    text = 'name = "x"\nscheme = "bfv"\nring_degree = 4096\ncoeff_modulus = [15, 40961, 40961]\nplain_modulus = 1000\nsecurity = "tc128"\nscale_bits = 3\n'
    found = problems(text, "f.toml")
    for part in (
        "[0] = 15 is not prime",
        "40961 is there twice",
        "only CKKS has a scale",
        "plain_modulus 1000 is not a prime",
        "not below every prime",
    ):
        assert sum(part in line for line in found) == 1, (part, found)
    with pytest.raises(ParameterError, match="15 is not prime"):
        from_toml(text, "f.toml")
    assert problems(text.replace("[15", "5 #"), "f.toml") == ["f.toml: coeff_modulus is a int: give a tuple (in TOML a list)"]
    assert any("take 40961" in line for line in problems(text.replace("1000", "40487"), "f.toml"))  # a prime without slots
    assert problems("x = 1", "f.toml")[0].startswith("f.toml: unknown field 'x'") and len(problems("x = 1", "f.toml")) == 6
    assert "no valid TOML" in problems("=", "f.toml")[0]
    assert problems(api.load_parameters("bfv-4096").to_toml(), "f.toml") == []
