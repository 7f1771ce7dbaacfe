"""Numbers of pages that follow from a formula are worked out again, from the code that uses it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from keyquorum.cnn.noise import estimated
from keyquorum.cnn.run import NOISE_BITS, PARAMETERS, held_out_digits, load_model
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.fhe.lwe_public import public_noise
from keyquorum.fhe.parameters import load
from keyquorum.model.committee import CommitteeShape
from keyquorum.schemes.seal.masked import estimate_ratio
from keyquorum.schemes.seal.policy import FloodPolicy, flooding_variance
from keyquorum.schemes.seal.precision import precision
from keyquorum.schemes.seal.ring_variant import RingVariant
from keyquorum.sharing.numbers.uniform_noise import uniform_noise

from .test_links import ROOT

CKKS = ("ckks-4096", "ckks-4096-mac", "ckks-8192", "ckks-8192-demo", "ckks-16384", "ckks-16384-bench")
WITH_MACS = ("ckks-4096-mac", "ckks-8192-demo", "ckks-16384")


def page(name: str) -> str:
    return (ROOT / "docs" / "pages" / f"{name}.md").read_text()


def rows(name: str, heading: str) -> dict[str, list[str]]:
    """The table of a page whose first line is ``| heading``: its cells by the first one."""
    table = page(name).partition(f"| {heading}")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    return {line[0].strip("`"): line[1:] for line in cells}


def test_precision_of_ckks() -> None:
    stated = rows("ckks", "set | products | scale")
    assert set(stated) == set(CKKS)
    for name, cells in stated.items():
        parameters = load(name, warn=False)
        assert cells[1:3] == [f"2^{parameters.scale_bits}", str(parameters.noise_bits)], name
        assert cells[3:] == [f"{precision(parameters, FloodPolicy(), contributors).bits:.1f}" for contributors in (2, 16)], name


def test_noise_of_ckks_with_macs() -> None:
    """Bits a coefficient, deviation beside that of one contributor, bits left; and the random bits of a ciphertext."""
    stated = rows("ckks", "set | bits of F a coefficient")
    assert set(stated) == set(WITH_MACS)
    for name, cells in stated.items():
        parameters = load(name, warn=False)
        policy, degree = FloodPolicy().for_set(parameters), parameters.ring_degree
        for parties in (2, 8):
            noise = uniform_noise(policy.bits, policy.decryptions, policy.noise_bits, degree, parties, parties - 1)
            variance = flooding_variance(policy, degree, CommitteeShape("mascot", parties, parties - 1))
            assert cells == [str(len(noise.places)), f"{math.sqrt(variance):.2f}", f"{precision(parameters, policy, variance).bits:.1f}"], (
                name,
                parties,
            )
    assert f"{int(stated['ckks-4096-mac'][0]) * 4096:,} for a ciphertext of `ckks-4096-mac`" in page("ckks")


def test_what_is_opened_to_lift_noise() -> None:
    """Of 16 decryptions by two parties, counted twice."""
    policy, degree = FloodPolicy().for_set(load("ckks-16384", warn=False)), 16384
    noise = uniform_noise(policy.bits, policy.decryptions, policy.noise_bits, degree, 2, 1)
    text = f"2^{math.log2(2 * noise.opened(degree, 16, 2, 1)):.1f} for 16\n  decryptions by two parties at N = {degree}"
    assert policy.decryptions == 16 and text in page("budget")


def test_sets_of_parties_leave_bits() -> None:
    """log2(C(n, t) / 2) / 2 bits less."""
    text = page("ckks")
    assert "half a bit less with t = 1 and n = 4, 3 bits less with t = 4 and n = 9" in text
    assert math.log2(math.comb(4, 1) / 2) / 2 == 0.5 and round(math.log2(math.comb(9, 4) / 2) / 2) == 3


def test_noise_of_public_keys_of_lwe() -> None:
    stated = rows("decryption", "set | b | deviation of fresh noise")
    for name, cells in stated.items():
        parameters = lwe_parameters(name)
        noise = public_noise(parameters)
        deviation, largest, half = math.log2(noise.deviation), math.log2(noise.largest), math.log2(parameters.delta / 2)
        assert cells[:4] == [str(noise.bound_bits), f"2^{deviation:.1f}", f"2^{largest:.0f}", f"2^{half:.0f}"], name
        assert cells[4] == f"{parameters.dimension * 8 // 1024} KiB"
    first = lwe_parameters("lwe64-p2")
    assert f"{(public_noise(first).bound_bits + 2) * first.dimension:,} for `lwe64-p2`" in page("decryption")


def test_sizes_of_shared_keys() -> None:
    """C(n - 1, t - 1) vectors a party: the largest sharing of `make bench-lisss` is of 8 of 16 parties."""
    vector = 8 * lwe_parameters("lwe64-p2").dimension
    assert "8 kB each for `lwe64-p2`" in page("decryption") and round(vector / 1e3) == 8
    assert f"a sharing of {math.comb(15, 7) * vector / 1e6:.1f} MB a party" in page("decryption")


def test_decryptions_that_read_a_key_off() -> None:
    parameters = load("bfv-4096", warn=False)
    found = re.search(r"for `bfv-4096` after some ([\d.]+) million\ndecryptions", page("roundings"))
    assert found and f"{(10 / estimate_ratio(parameters, 1)) ** 2 / 1e6:.1f}" == found[1]


def test_items_of_bfv_with_macs() -> None:
    """Elements of 32 bytes: 8 bytes, the MAC, and what is above 2^k."""
    elements = sum(section.rows for section in RingVariant(load("bfv-4096", warn=False), "spdz2k", 2).sections)
    assert f"has {elements} elements among 2 parties, {32 * elements:,} bytes at each" in page("roundings")


@pytest.mark.parametrize(("images", "encrypted"), [(1000, False), (1000, True)])
def test_noise_of_encrypted_digits(images: int, encrypted: bool) -> None:
    parameters, model, (digits, _) = load(PARAMETERS, warn=False), load_model(), held_out_digits(images)
    largest = max(estimated(parameters, model, digits[at : at + 8], encrypted).rms(parameters.ring_degree) for at in range(0, images, 8))
    found = re.search(r"at most 2\^([\d.]+) for the 1,000\ntest digits, and 2\^([\d.]+) with encrypted weights", page("cnn"))
    assert found and f"{math.log2(largest):.1f}" == found[1 + encrypted] and math.log2(largest) < NOISE_BITS


def test_error_of_logits() -> None:
    """Of two contributors of noise, at the scale of a logit: that of the noise's estimate."""
    parameters = load(PARAMETERS, warn=False)
    scale, found = 2.0**50, re.search(r"standard deviation of ([\d.]+) for 100 images and ([\d.]+) for 1,000", page("cnn"))
    for images, stated in zip((100, 1000), found.groups() if found else (), strict=True):
        policy = FloodPolicy(decryptions=-(-images // 8), noise_bits=NOISE_BITS)
        assert f"{precision(parameters, policy, 2, scale).deviation:.3f}" == stated


def test_estimates_of_gaussian_noise_for_tfhe() -> None:
    """A comparison with a threshold takes 15 ANDs, of a bit each that a party sends; about 14 thresholds for each unit of the deviation."""
    text, deviation = page("tfhe"), 2.845e-15 * 2.0**64
    assert "2^45.1 and\n2^15.7" in text and [round(math.log2(x), 1) for x in (2.046e-6 * 2.0**64, deviation)] == [45.1, 15.7]
    assert "735,000 thresholds" in text and round(14 * deviation, -3) == 735_000
    ands = 3 * 1400 * 15 * 3.5e6
    assert "about 2 · 10^11 ANDs or 28 GB a party" in text and round(ands / 1e11) == 2 and round(ands / 8e9) == 28


def test_mask_open_of_tfhe_fails_that_often() -> None:
    """A Gaussian deviation of 2^49 has a mean of sqrt(2 / pi) of it; a decryption fails with |e| / 2^59."""
    assert "wrong once in about 1,200 decryptions" in page("tfhe")
    assert 1_150 < 1 / (math.sqrt(2 / math.pi) * 2.0 ** (49 - 59)) < 1_300


def test_bytes_of_base_ot() -> None:
    """Vectors of 1,152 bytes and a seed of 32, two ciphertexts of 1,088 (FIPS 203); points of 32 bytes. Source/ot asserts what is sent."""
    receiver, sender = 2 * 1152 + 32, 2 * 1088
    text = " ".join(page("security/links").split())
    assert (
        f"A base OT takes {receiver + sender:,} bytes, {receiver:,} of its receiver and {sender:,} of its sender, in place of 64, and 32 once" in text
    )
    sizes = [f"{count * (receiver + sender) / 1e6:.2f}" for count in (128, 224)], [f"{(count * 64 + 32) / 1e3:.0f}" for count in (128, 224)]
    assert f"{sizes[0][0]} and {sizes[0][1]} MB in place of {sizes[1][0]} and {sizes[1][1]} KB" in text


def test_flooding_bits_are_an_advantage() -> None:
    assert "**2^-18 for 30 bits**" in page("ckks") and round(FloodPolicy().advantage) == -18
    assert np.isclose(FloodPolicy().advantage, -30 / 2 - 3, atol=0.2)
