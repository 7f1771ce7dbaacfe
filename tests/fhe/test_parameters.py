"""Parameter sets: the shipped ones against SEAL, and every refusal."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seal
from keyquorum.fhe.errors import SecurityWarning, UnknownParameterSetError
from keyquorum.fhe.ghs import SET_NAMES as GHS_SETS
from keyquorum.fhe.lwe_sets import FHEW_SETS, TFHE_SETS
from keyquorum.fhe.parameters import MAX_BITS_TC128, TOY_DEGREES, ParameterSet, from_toml, list_parameter_sets, load, most_bits
from keyquorum.fhe.seal import context
from keyquorum.model.errors import ParameterError

from .dealer import T, find_primes

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
SHIPPED = list_parameter_sets()
ROOT = Path(__file__).parents[2]


def seal_id(parms_id: Any) -> bytes:
    return np.array(list(parms_id), dtype="<u8").tobytes()


def test_all_files_are_shipped() -> None:
    files = {path.stem for path in (ROOT / "params").glob("*.toml")}
    assert files == {*SHIPPED, *TFHE_SETS, *FHEW_SETS, *GHS_SETS}
    assert {"ckks-8192-demo", "ckks-16384-bench", "bfv-8192", "bgv-8192"} <= files


@pytest.mark.parametrize("name", SHIPPED)
def test_seal_accepts_the_set_and_has_our_identifiers(name: str) -> None:
    parameters = load(name)
    ctx = context(parameters)
    assert ctx.using_keyswitching()
    assert seal_id(ctx.key_context_data().parms_id()) == parameters.key_parms_id
    data, count = ctx.first_context_data(), parameters.levels
    while data is not None:
        assert seal_id(data.parms_id()) == parameters.parms_id(count)
        assert parameters.primes_of(seal_id(data.parms_id())) == count
        data, count = data.next_context_data(), count - 1
    assert count == 0


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sets_are_what_they_say(name: str) -> None:
    parameters = load(name)
    assert parameters.source
    assert from_toml(parameters.to_toml(), name) == parameters
    if parameters.scheme == "bgv":
        assert all(q % T == 1 for q in parameters.coeff_modulus)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("ckks-8192-demo", [43, 43, 60, 60]),
        ("ckks-8192", [29, 28, 53, 53, 55]),
        ("ckks-16384-bench", [60, 52, 52, 52, 52, 52, 52, 60]),
        ("ckks-16384", [43, 43] + [57] * 5 + [60]),
        ("ckks-16384-seed004", [53] * 8 + [60]),
    ],
)
def test_ckks_primes_are_those_of_seal(name: str, bits: list[int]) -> None:
    parameters = load(name)
    created = seal.CoeffModulus.Create(parameters.ring_degree, bits)
    assert parameters.coeff_modulus == tuple(q.value() for q in created)


@pytest.mark.parametrize("degree", [4096, 8192, 16384])
def test_bfv_primes_are_those_of_seal(degree: int) -> None:
    expected = tuple(q.value() for q in seal.CoeffModulus.BFVDefault(degree))
    assert load(f"bfv-{degree}").coeff_modulus == expected


def test_security_table_is_that_of_seal() -> None:
    for degree, bits in MAX_BITS_TC128.items():
        assert seal.CoeffModulus.MaxBitCount(degree) == bits


def test_toys_have_few_coefficients_and_no_security() -> None:
    """SEAL takes them; a set that claims security is refused."""
    toy = changed(ring_degree=TOY_DEGREES[0], security="none")
    assert context(toy).parameters_set() and most_bits(toy.ring_degree) == 0
    for degree, security in ((64, "tc128"), (32, "none"), (100, "none")):
        with pytest.raises(ParameterError, match=f"ring_degree {degree} is not supported: choose one of 1024, "):
            changed(ring_degree=degree, security=security)


def test_insecure_set_warns() -> None:
    with pytest.warns(SecurityWarning, match="NO claimed security"):
        load("ckks-16384-seed004")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load("ckks-16384-seed004", warn=False)
        load("ckks-8192")


def test_load_from_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(load("bfv-4096").to_toml())
    assert load(path) == load(str(path)) == load("bfv-4096")


def test_links_of_the_package_lead_to_the_folder() -> None:
    links = ROOT / "harness" / "keyquorum" / "fhe" / "params"
    for name in SHIPPED:
        assert os.path.samefile(links / f"{name}.toml", ROOT / "params" / f"{name}.toml")


def changed(base: str = "bfv-4096", **fields: Any) -> ParameterSet:
    return dataclasses.replace(load(base), **fields)


PRIMES = load("bfv-4096").coeff_modulus
REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "no name"),
    ({"scheme": "tfhe"}, "scheme 'tfhe' is unknown"),
    ({"security": "low"}, "security 'low' is unknown"),
    ({"ring_degree": 4095}, "ring_degree 4095"),
    ({"ring_degree": 512}, "ring_degree 512"),
    ({"ring_degree": 65536}, "ring_degree 65536"),
    ({"ring_degree": "4096"}, "ring_degree is a str"),
    ({"ring_degree": True}, "ring_degree is a bool"),
    ({"coeff_modulus": list(PRIMES)}, "coeff_modulus is a list"),
    ({"coeff_modulus": (*PRIMES[:2], 1.5)}, "list of integers"),
    ({"coeff_modulus": PRIMES[:1]}, "has 1 primes"),
    ({"coeff_modulus": (*PRIMES[:2], 1 << 61)}, "does not fit SEAL's 60 bits"),
    ({"coeff_modulus": (*PRIMES[:2], PRIMES[2] - 2 * 4096 * 2)}, "is not prime"),
    ({"coeff_modulus": (*PRIMES[:2], 1099511627689)}, "is not 1 mod 2N"),
    ({"coeff_modulus": (PRIMES[0], PRIMES[0], PRIMES[2])}, "is there twice"),
    ({"coeff_modulus": (PRIMES[2], PRIMES[0])}, "special prime"),
    ({"coeff_modulus": tuple(find_primes(4096, 55, 2))}, "128-bit security allows 109"),
    ({"plain_modulus": 0}, "plain_modulus 0 is not a prime"),
    ({"plain_modulus": 65536}, "plain_modulus 65536 is not a prime"),
    ({"plain_modulus": 257}, "is not 1 mod 2N"),
    ({"plain_modulus": find_primes(4096, 40, 1)[0]}, "is not below every prime"),
    ({"scale_bits": 20}, "only CKKS has a scale"),
    ({"noise_bits": 11}, "only CKKS results are flooded"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSALS, ids=[m for _, m in REFUSALS])
def test_refusals(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        changed(**fields)
    assert "\n" not in str(caught.value)
    assert ":" in str(caught.value)


def test_ckks_refusals() -> None:
    with pytest.raises(ParameterError, match="CKKS has none"):
        changed("ckks-4096", plain_modulus=T)
    for bits in (0, 200):
        with pytest.raises(ParameterError, match="does not fit the ciphertext modulus"):
            changed("ckks-4096", scale_bits=bits)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "no valid TOML"),
        ('name = "x"\ncolour = 1\n', "unknown field 'colour'"),
        ('name = "x"\n', "'coeff_modulus' is missing"),
    ],
)
def test_toml_refusals(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        from_toml(text, "test.toml")


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(UnknownParameterSetError, match="choose one of bfv-16384"):
        load("ckks-1")
    with pytest.raises(UnknownParameterSetError, match="cannot be read"):
        load(tmp_path / "absent.toml")


def test_levels_out_of_range() -> None:
    parameters = load("bfv-4096")
    for count in (0, 4):
        with pytest.raises(ParameterError, match="choose 1 to 3"):
            parameters.parms_id(count)
    assert parameters.primes_of(bytes(32)) is None
