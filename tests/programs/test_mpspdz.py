"""The same programs, unmodified, on MP-SPDZ: set MP_SPDZ_HOME to a built checkout with certificates to run these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from . import mpspdz
from .running import FIELD, Q60, REPLICATED_FIELD, REPLICATED_RING, SHAMIR_3, Backend
from .test_conversions import trit_inputs
from .test_rlwe import N as DEGREE
from .test_rlwe import automorphism, ntt, residues, words, zero_encryption
from .test_rounding import border_instances, masks
from .test_samplers import clear_knuth, knuth_inputs

pytestmark = [
    pytest.mark.skipif(not mpspdz.HOME, reason="MP_SPDZ_HOME is not set"),
    pytest.mark.timeout(600),
]
RNG = np.random.default_rng(7)
EVERY = pytest.mark.parametrize("backend", [REPLICATED_RING, REPLICATED_FIELD, SHAMIR_3], ids=str)
FIELDS = pytest.mark.parametrize("backend", [REPLICATED_FIELD, SHAMIR_3], ids=str)


@EVERY
def test_conversions(tmp_path: Path, backend: Backend) -> None:
    spdz = mpspdz.MpSpdz(tmp_path, backend)
    bits = RNG.integers(0, 2, (3, 50))
    assert np.array_equal(spdz.run("z2_to_zq", {"d": 3, "size": 50}, dict(enumerate(bits)), appended=50)[0], bits.sum(0) % 2)
    trits = RNG.integers(0, 3, (3, 50))
    total = trits.sum(0) % 3
    for method, modulus in (("bilinear", 0), ("poly", Q60)):
        if method == "bilinear" or backend.domain == FIELD:
            tail = {"method": method, "modulus": modulus}
            got = spdz.run("z3_to_zq", {"d": 3, "n": 50} | tail, trit_inputs(trits), appended=50)[0]
            assert np.array_equal(got, total)
            got = spdz.run("sample_ternary", {"d": 3, "n": 50} | tail, trit_inputs(trits), appended=50)[0]
            assert np.array_equal(got, np.where(total == 2, -1, total))


@EVERY
def test_samplers(tmp_path: Path, backend: Backend) -> None:
    spdz = mpspdz.MpSpdz(tmp_path, backend)
    for program in ("sample_cbd", "sample_gaussian"):
        for method in ("arith", "bits") if backend.protocol != "shamir" else ("arith",):
            got = spdz.run(program, {"size": 4000, "method": method}, appended=4000)[0]
            assert np.abs(got).max() <= 23
            assert abs(got.mean()) < 0.21 and abs(got.var() - 10.4) < 1.0, "4 standard errors"
    for length, weight in ((30, 5), (16, 16)):
        indices = np.stack([[RNG.integers(0, length - i) for i in range(weight)] for _ in range(2)])
        arguments = {"method": "knuth", "N": length, "weight": weight, "d": 2}
        got = spdz.run("sample_fixed_weight", arguments, knuth_inputs(indices, length), appended=length)[0]
        assert np.abs(got).tolist() == clear_knuth(length, weight, indices.sum(0) % (length - np.arange(weight)))
        got = spdz.run("sample_fixed_weight", {"method": "shuffle", "N": length, "weight": weight}, appended=length)[0]
        assert np.abs(got).sum() == weight and np.abs(got).max() == 1


@pytest.mark.parametrize(
    ("source", "target"), [(REPLICATED_RING, REPLICATED_FIELD), (REPLICATED_FIELD, REPLICATED_RING), (SHAMIR_3, SHAMIR_3)], ids=str
)
def test_lift(tmp_path: Path, source: Backend, target: Backend) -> None:
    x = RNG.integers(-32, 32, 50)
    private = dict(enumerate(RNG.integers(0, 2**45, (2, 50))))
    opening = {"role": "open", "d": 2, "n": 50, "b": 5, "lam": 40, "modulus": source.modulus}
    _, outputs = mpspdz.MpSpdz(tmp_path / "source", source).run("lift", opening, private, shares=x)
    closing = {"role": "close", "d": 2, "n": 50, "b": 5}
    got, _ = mpspdz.MpSpdz(tmp_path / "target", target).run("lift", closing, private, outputs[0], appended=50)
    assert np.array_equal(got, x)


@FIELDS
def test_rlwe(tmp_path: Path, backend: Backend) -> None:
    spdz = mpspdz.MpSpdz(tmp_path, backend)
    n = DEGREE
    s, e, a = RNG.integers(-1, 2, n), RNG.integers(-21, 22, (6, n)), words(6 * n)
    want = [zero_encryption(a[k * n : (k + 1) * n], ntt(s), e[k], 1) for k in range(6)]
    shares = [*s, *e.ravel()]
    _, outputs = spdz.run("rlwe_public_key", {"N": n, "q": Q60, "f": 1, "count": 6}, {}, a.view(np.int64), shares)
    assert residues(outputs[0]).tolist() == [v for row in want for v in row]
    arguments: dict[str, Any] = {"N": n, "q": Q60, "f": 1, "L": 2, "i": 1, "P": 12345, "s_at": 0, "e_at": n}
    _, outputs = spdz.run("rlwe_switch_key", arguments | {"targets": ["relin", 3, 2 * n - 1]}, {}, a.view(np.int64), shares)
    targets: list[Any] = [[int(v) ** 2 for v in ntt(s)], ntt(automorphism(s, 3)), ntt(automorphism(s, 2 * n - 1))]
    for k, w in enumerate(targets):
        want[2 * k + 1] = [(x + 12345 * int(y)) % Q60 for x, y in zip(want[2 * k + 1], w, strict=True)]
    assert residues(outputs[0]).tolist() == [v for row in want for v in row]
    c0, c1 = words(n), words(n)
    phase = [(int(x) + int(y) * int(z)) % Q60 for x, y, z in zip(c0, c1, ntt(s), strict=True)]
    public = np.concatenate([c0, c1]).view(np.int64)
    got, _ = spdz.run("rlwe_phase", {"N": n, "q": Q60, "in": "ntt", "out": "ntt"}, {}, public, s, n)
    assert residues(got).tolist() == phase


@EVERY
def test_flood(tmp_path: Path, backend: Backend) -> None:
    phase, noise = RNG.integers(-(2**40), 2**40, 50), RNG.integers(-(2**50), 2**50, (2, 50))
    spdz = mpspdz.MpSpdz(tmp_path, backend)
    _, outputs = spdz.run("flood", {"d": 2, "N": 50, "receiver": 2}, dict(enumerate(noise)), shares=phase)
    assert np.array_equal(outputs[2], phase + noise.sum(0)) and not len(outputs[0]) and not len(outputs[1])


@pytest.mark.parametrize("program", ["round_ltz_circuit", "round_mask_open"])
@pytest.mark.parametrize("dealers", [1, 2, 3])
def test_rounding(tmp_path: Path, program: str, dealers: int) -> None:
    rows = (dealers - 1).bit_length() + (program == "round_ltz_circuit")
    for ell, t in ((46, 65537), (40, 1024)):
        z, messages = border_instances(t, ell)
        if program == "round_mask_open":
            z = [2**ell * int(m) + k % 3 - 1 + 2 ** (ell - 1) for k, m in enumerate(messages)]
        private = masks(dealers, len(z), ell, rows)
        ring = mpspdz.MpSpdz(tmp_path / f"ring{t}", REPLICATED_RING)
        head = {"dealers": dealers, "size": len(z), "l": ell}
        if t % 2 == 0:
            _, outputs = ring.run(program, {"role": "power2"} | head | {"j": 10, "receiver": 1}, private, shares=z)
            assert np.array_equal((outputs[1] >> 54) % 1024, messages)
        else:
            low = [v % 2**ell for v in z]
            _, outputs = ring.run(program, {"role": "ring"} | head, private, shares=low)
            field = mpspdz.MpSpdz(tmp_path / "field", REPLICATED_FIELD.over(f"F_{t}"))
            second = {"role": "field"} | head | {"t": t, "receiver": 1}
            _, outputs = field.run(program, second, private, outputs[0], [v % t for v in z])
            assert np.array_equal(outputs[1] % t, messages)


