"""Receipts of BFV and BGV ciphertexts: files under a dealer's key carry their noise from operation to operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum.fhe import noise_bgv
from keyquorum.fhe.keys import galois_element
from keyquorum.fhe.noise_bgv import BgvNoise
from keyquorum.model.errors import CiphertextError
from keyquorum.schemes.key_folder import write_public_files
from keyquorum.schemes.seal.files import CiphertextFile, encrypt_to, evaluate_to
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.schemes.seal.receipts import check_noise, check_receipt

from tests.fhe.dealer import dealer
from tests.fhe.test_noise_bgv import measured_bits

STEPS = (4, -1)


def key(folder: Path, name: str) -> SealKeyInfo:
    d = dealer(name)
    elements = tuple(galois_element(step, d.parameters.ring_degree) for step in STEPS)
    info = SealKeyInfo(
        key_id="ab" * 16, parameters=d.parameters, protocol="rep-field", parties=3, threshold=1, error_law="cbd", relin=True,
        galois_elements=elements, policy=FloodPolicy(),
    )  # fmt: skip
    return write_public_files(folder, info, {"public.key": d.public_key(), "relin.key": d.relin_keys(), "galois.key": d.galois_keys(elements)})


@pytest.mark.parametrize("name", ["bfv-4096", "bgv-4096"])
def test_files_carry_their_noise(tmp_path: Path, name: str) -> None:
    """Squares use the budget up; the file is refused, and so is what is computed from it. Without receipts nothing is known."""
    info = key(tmp_path, name)
    made = encrypt_to(tmp_path, info, np.arange(100), tmp_path / "x.ct")
    budgets = [made.budget]
    check_noise(made.path, made.data, info)
    for i in range(2):
        made = evaluate_to(tmp_path, info, "square", [made.path], tmp_path / f"x{i}.ct")
        budgets.append(made.budget)
    assert budgets[0] is not None and budgets[0] > 5 and budgets[2] is not None and budgets[2] < 0
    lower = evaluate_to(tmp_path, info, "next-level", [made.path], tmp_path / "lower.ct")
    for bad in (made, lower):
        with pytest.raises(CiphertextError, match=r"its noise budget is used up .* compute with fewer products, or with a set of a larger modulus"):
            check_noise(bad.path, bad.data, info)
    Path(f"{made.path}.json").unlink()
    unknown = evaluate_to(tmp_path, info, "next-level", [made.path], tmp_path / "unknown.ct")
    assert unknown.budget is None
    check_noise(unknown.path, unknown.data, info)


def test_a_rotation_by_two_keys_counts_twice(tmp_path: Path) -> None:
    """SEAL rotates by 3 with the keys of 4 and -1."""
    info = key(tmp_path, "bgv-4096")
    made = encrypt_to(tmp_path, info, np.arange(100), tmp_path / "x.ct")
    rotated = evaluate_to(tmp_path, info, "rotate", [made.path], tmp_path / "y.ct", step=3)
    once = evaluate_to(tmp_path, info, "rotate", [made.path], tmp_path / "z.ct", step=4)
    assert isinstance(rotated.noise, BgvNoise) and isinstance(once.noise, BgvNoise)
    assert rotated.noise.log2 > once.noise.log2 + 0.5
    assert rotated.noise == noise_bgv.after(info.parameters, "rotate", [noise_bgv.fresh(info.parameters)], 2, switches=2)
    for file in (rotated, once):
        assert measured_bits(dealer("bgv-4096"), file.data) < file.noise.log2  # type: ignore[union-attr]


def stated(made: CiphertextFile, change: dict[str, Any]) -> None:
    receipt = Path(f"{made.path}.json")
    noted = json.loads(receipt.read_text())
    receipt.write_text(json.dumps({**noted, "noise": {**noted["noise"], **change}}))


@pytest.mark.parametrize("change", [{"primes": 1}, {"factor": 5}, {"rest": []}, {"more": 1}])
def test_a_noise_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    info = key(tmp_path, "bgv-4096")
    made = encrypt_to(tmp_path, info, np.arange(100), tmp_path / "x.ct")
    check_receipt(made.path, made.data, info)
    stated(made, change)
    with pytest.raises(CiphertextError, match=r"states a noise that does not fit .*x\.ct: write .* again, or remove"):
        check_receipt(made.path, made.data, info)
    with pytest.raises(CiphertextError, match="does not fit"):
        evaluate_to(tmp_path, info, "negate", [made.path], tmp_path / "y.ct")
