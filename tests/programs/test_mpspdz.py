"""The same programs, unmodified, on MP-SPDZ: set MP_SPDZ_HOME to a built checkout with certificates to run these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum.sweep.operands import summand_rows

from tests.long import LONG
from tests.protocols import (
    FIELD,
    MAC_FIELD,
    MAC_RING,
    ON_MPSPDZ,
    Q60,
    REPLICATED_FIELD,
    REPLICATED_RING,
    RING,
    SEMI_FIELD,
    SEMI_RING,
    SHAMIR_3,
    Backend,
)

from . import mpspdz
from .running import run
from .test_aes import blocks, hot_vectors, reference, rows, schedule
from .test_client_masks import product
from .test_conversions import trit_inputs
from .test_rlwe import N as DEGREE
from .test_rlwe import automorphism, ntt, residues, words, zero_encryption
from .test_rounding import border_instances, carry_rows, cut, masks, uniform
from .test_samplers import clear_knuth, knuth_inputs

pytestmark = [
    pytest.mark.skipif(not mpspdz.HOME, reason="MP_SPDZ_HOME is not set"),
    pytest.mark.timeout(600),
]
RNG = np.random.default_rng(7)
BACKENDS = [REPLICATED_RING, REPLICATED_FIELD, SHAMIR_3, *ON_MPSPDZ]
EVERY = pytest.mark.parametrize("backend", BACKENDS, ids=str)
FIELDS = pytest.mark.parametrize("backend", [b for b in BACKENDS if b.domain == FIELD], ids=str)
RINGS = pytest.mark.parametrize("backend", [b for b in BACKENDS if b.domain == RING], ids=str)


@EVERY
def test_conversions(tmp_path: Path, backend: Backend) -> None:
    spdz, d = mpspdz.MpSpdz(tmp_path, backend), backend.parties
    bits = RNG.integers(0, 2, (d, 50))
    assert np.array_equal(spdz.run("z2_to_zq", {"d": d, "size": 50}, dict(enumerate(bits)), appended=50)[0], bits.sum(0) % 2)
    if backend.domain == RING:
        arguments = {"d": d, "size": 50, "method": "bits"}
        assert np.array_equal(spdz.run("z2_to_zq", arguments, dict(enumerate(bits)), appended=50)[0], bits.sum(0) % 2)
        shares = RNG.integers(0, Q60, (d, 20))
        arguments = {"d": d, "size": 20, "q": Q60, "out": 4}
        got = spdz.run("zq_to_z2_circuit", arguments, summand_rows(shares, Q60), appended=80)[0]
        x = shares.sum(0, dtype=object) % Q60
        assert got.reshape(4, 20).tolist() == [[int(v) >> b & 1 for v in x] for b in range(4)]
    else:
        x = [0, 1, Q60 - 1, *RNG.integers(0, Q60, 7).tolist()]
        arguments = {"size": 10, "q": Q60, "out": 4}
        got = spdz.run("zq_to_z2_mask", arguments, shares=[v - Q60 if v > Q60 // 2 else v for v in x], appended=40)[0]
        assert got.reshape(4, 10).tolist() == [[v >> b & 1 for v in x] for b in range(4)]
    summands = RNG.integers(-(2**40), 2**40, (d, 50))
    assert np.array_equal(spdz.run("sum_inputs", {"d": d, "size": 50}, dict(enumerate(summands)), appended=50)[0], summands.sum(0))
    trits = RNG.integers(0, 3, (d, 50))
    total = trits.sum(0) % 3
    for method, modulus in (("bilinear", 0), ("poly", Q60)):
        if method == "bilinear" or backend.domain == FIELD:
            tail = {"method": method, "modulus": modulus}
            got = spdz.run("z3_to_zq", {"d": d, "n": 50} | tail, trit_inputs(trits), appended=50)[0]
            assert np.array_equal(got, total)
            got = spdz.run("sample_ternary", {"d": d, "n": 50} | tail, trit_inputs(trits), appended=50)[0]
            assert np.array_equal(got, np.where(total == 2, -1, total))


@EVERY
def test_samplers(tmp_path: Path, backend: Backend) -> None:
    spdz = mpspdz.MpSpdz(tmp_path, backend)
    dishonest = backend in ON_MPSPDZ
    size = 500 if dishonest else 4000
    for program in ("sample_cbd", "sample_gaussian"):
        for method in ("arith", "bits"):
            if dishonest and (program, method) == ("sample_gaussian", "arith"):
                continue  # 350 products a sample: minutes with oblivious transfers
            got = spdz.run(program, {"size": size, "method": method}, appended=size)[0]
            assert np.abs(got).max() <= 23
            assert abs(got.mean()) < 13.3 / size**0.5 and abs(got.var() - 10.4) < 64 / size**0.5, "4 standard errors"
    for length, weight in ((30, 5), (16, 16)):
        indices = np.stack([[RNG.integers(0, length - i) for i in range(weight)] for _ in range(2)])
        arguments = {"method": "knuth", "N": length, "weight": weight, "d": 2}
        got = spdz.run("sample_fixed_weight", arguments, knuth_inputs(indices, length), appended=length)[0]
        assert np.abs(got).tolist() == clear_knuth(length, weight, indices.sum(0) % (length - np.arange(weight)))
        got = spdz.run("sample_fixed_weight", {"method": "shuffle", "N": length, "weight": weight}, appended=length)[0]
        assert np.abs(got).sum() == weight and np.abs(got).max() == 1


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (REPLICATED_RING, REPLICATED_FIELD),
        (REPLICATED_FIELD, REPLICATED_RING),
        (SHAMIR_3, SHAMIR_3),
        (SEMI_RING, SEMI_FIELD),
        (MAC_RING, MAC_FIELD),
        (MAC_FIELD, MAC_RING),
    ],
    ids=str,
)
def test_lift(tmp_path: Path, source: Backend, target: Backend) -> None:
    x = RNG.integers(-32, 32, 50)
    private = dict(enumerate(RNG.integers(0, 2**45, (2, 50))))
    opening = {"d": 2, "n": 50, "b": 5, "lam": 40, "modulus": source.modulus}
    _, outputs = mpspdz.MpSpdz(tmp_path / "source", source).run("lift_open", opening, private, shares=x)
    closing = {"d": 2, "n": 50, "b": 5}
    got, _ = mpspdz.MpSpdz(tmp_path / "target", target).run("lift_close", closing, private, outputs[0], appended=50)
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
    _, outputs = spdz.run("flood", {"d": 2, "N": 50, "receiver": 1}, dict(enumerate(noise)), shares=phase)
    assert np.array_equal(outputs[1], phase + noise.sum(0)) and not any(len(outputs[i]) for i in outputs if i != 1)


FIELD_OF = {"ring": REPLICATED_FIELD, "semi2k": SEMI_FIELD, "spdz2k": SEMI_FIELD}
"""Where a rounding over F_65537 ends: mascot takes no prime below 40 bits."""


@FIELDS
def test_fhew_keys(tmp_path: Path, backend: Backend) -> None:
    """Against the embedded engine, which tests/programs/test_fhew_keys.py compares with clear arithmetic."""
    spdz, n, count, levels = mpspdz.MpSpdz(tmp_path, backend), 8, 3, 2
    masks = RNG.integers(0, Q60, count * levels * 2 * n)
    shares = [*RNG.integers(0, 2, n + count), *RNG.integers(-50, 50, len(masks))]
    switch = {"n": n, "count": count, "base_log": 4, "levels": levels, "s_at": 0, "m_at": n, "e_at": n + count, "block": 4, "q": Q60}
    rgsw = {"count": count, "N": n, "q": Q60, "base_log": 7, "levels": levels, "s_at": n, "z_at": 0, "e_at": n + count}
    samples = {"count": count, "x_at": 0, "e_at": n + count}
    for program, arguments, public in [
        ("lwe_switch_key", switch, masks[: count * levels * n]),
        ("lwe_samples", samples, []),
        ("rgsw_bodies", rgsw, masks),
        ("rgsw_bodies", rgsw | {"noise": "transformed"}, masks),
    ]:
        _, outputs = spdz.run(program, arguments, public=public, shares=shares)
        assert np.array_equal(outputs[0], run(program, arguments, backend, public=public, shares=shares).public), program


@RINGS
@pytest.mark.parametrize("program", ["round_ltz_circuit", "round_mask_open"])
@pytest.mark.parametrize("contributors", [1, 2, 3])
def test_rounding(tmp_path: Path, backend: Backend, program: str, contributors: int) -> None:
    if contributors > backend.parties:
        pytest.skip("more contributors than parties")
    rows = (contributors - 1).bit_length() + (program == "round_ltz_circuit")
    for ell, t in ((46, 65537), (40, 1024)):
        z, messages = border_instances(t, ell)
        if program == "round_mask_open":
            z = [2**ell * int(m) + k % 3 - 1 + 2 ** (ell - 1) for k, m in enumerate(messages)]
        private = masks(contributors, len(z), ell, rows)
        ring = mpspdz.MpSpdz(tmp_path / f"ring{t}", backend)
        head = {"contributors": contributors, "size": len(z), "l": ell}
        if t % 2 == 0:
            _, outputs = ring.run(program, head | {"j": 10, "receiver": 1}, private, shares=z)
            assert np.array_equal((outputs[1] >> 54) % 1024, messages)
        else:
            low = [v % 2**ell for v in z]
            _, outputs = ring.run(f"{program}_odd_ring", head, private, shares=low)
            field = mpspdz.MpSpdz(tmp_path / "field", FIELD_OF[backend.protocol].over(f"F_{t}"))
            second = head | {"t": t, "receiver": 1}
            _, outputs = field.run(f"{program}_odd_field", second, private, outputs[0], [v % t for v in z])
            assert np.array_equal(outputs[1] % t, messages)


@RINGS
@pytest.mark.parametrize(("summands", "contributors"), [(2, 2), (3, 2)])
def test_carries(tmp_path: Path, backend: Backend, summands: int, contributors: int) -> None:
    ell, t = 46, 65537
    z, messages = border_instances(t, ell)
    low, high = cut(z, ell, t, summands)
    private = {i: uniform(1, carry_rows(summands) * len(z)) for i in range(contributors)}
    head = {"summands": summands, "contributors": contributors, "size": len(z)}
    _, outputs = mpspdz.MpSpdz(tmp_path / "ring", backend).run("round_carry_odd_ring", head | {"l": ell}, private, shares=low)
    field = mpspdz.MpSpdz(tmp_path / "field", FIELD_OF[backend.protocol].over(f"F_{t}"))
    _, outputs = field.run("round_carry_odd_field", head | {"t": t, "receiver": 1}, private, outputs[0], high)
    assert np.array_equal(outputs[1] % t, messages)


def test_the_circuit_with_macs_needs_masks_alone(tmp_path: Path) -> None:
    """edaBits (-Y) and the comparison of MP-SPDZ, exact at the borders."""
    ell, j = 12, 4
    z, messages = (v[:16] for v in border_instances(2**j, ell))
    spdz = mpspdz.MpSpdz(tmp_path, MAC_RING)
    mask = spdz.run("round_mask", {"size": 16, "l": ell}, appended=16, compiler=["-Y"])[0]
    assert min(mask) >= 0 and max(mask) < 2**ell and len(set(mask)) > 8
    head: dict[str, Any] = {"size": 16, "l": ell, "j": j, "to": 1}
    _, outputs = spdz.run("round_ltz_circuit_online", head, shares=[*z, *mask], compiler=["-Y"])
    assert np.array_equal((outputs[1] >> (64 - j)) % 2**j, messages)


def test_rounding_over_a_small_field_with_shamir(tmp_path: Path) -> None:
    t, ell = 65537, 46
    z, messages = border_instances(t, ell)
    private = masks(2, len(z), ell, 2)
    head = {"contributors": 2, "size": len(z), "l": ell}
    low = [v % 2**ell for v in z]
    _, outputs = mpspdz.MpSpdz(tmp_path / "r", SEMI_RING).run("round_ltz_circuit_odd_ring", head, private, shares=low)
    field = mpspdz.MpSpdz(tmp_path / "f", SHAMIR_3.over(f"F_{t}"))
    second = head | {"t": t, "receiver": 1}
    _, outputs = field.run("round_ltz_circuit_odd_field", second, private, outputs[0], [v % t for v in z])
    assert np.array_equal(outputs[1] % t, messages)


@RINGS
def test_stored_roundings(tmp_path: Path, backend: Backend) -> None:
    """Masks, tables and online parts one after another, exact at the borders."""
    ell, j, b, levels = 12, 4, 4, 2
    if backend.protocol == "spdz2k":
        ell, b = 4, 2
    spdz = mpspdz.MpSpdz(tmp_path, backend)
    z, messages = border_instances(2**j, ell)
    z, messages = (z[:16], messages[:16]) if backend.protocol == "spdz2k" else (z, messages)
    size, blocks = len(z), ell // b
    made = spdz.run("round_mask", {"size": size, "l": ell, "bits": "all", "extra": 1}, appended=(2 + ell) * size)[0]
    r, bits = made[:size], made[size : (1 + ell) * size]
    tables: dict[str, Any] = {"size": size, "l": ell, "b": b, "levels": levels}
    rows = (blocks << b) + 1 + (2 << blocks)
    table = spdz.run("ltz_tables", tables, shares=bits, appended=rows * size)[0]
    head: dict[str, Any] = {"size": size, "l": ell, "j": j}
    _, outputs = spdz.run("round_ltz_table_online", head | {"b": b, "levels": levels, "to": 1}, shares=[*z, *r, *table])
    assert np.array_equal((outputs[1] >> (64 - j)) % 2**j, messages)
    own = spdz.run("ltz_tables", tables | {"method": "binary", "at": 0, "masks": "made"}, appended=(1 + rows) * size)[0]
    _, outputs = spdz.run("round_ltz_table_online", head | {"b": b, "levels": levels, "to": 1}, shares=[*z, *own])
    assert np.array_equal((outputs[1] >> (64 - j)) % 2**j, messages)
    _, outputs = spdz.run("round_ltz_circuit_online", head | {"to": 1}, shares=[*z, *made])
    assert np.array_equal((outputs[1] >> (64 - j)) % 2**j, messages)
    calm = messages * 2**ell + 2 ** (ell - 1)
    _, outputs = spdz.run("round_mask_open_online", head | {"to": 1}, shares=[*calm, *r])
    assert np.array_equal((outputs[1] >> (64 - j)) % 2**j, messages)


@EVERY
def test_lwe_phase_and_flooding(tmp_path: Path, backend: Backend) -> None:
    spdz, n, count = mpspdz.MpSpdz(tmp_path, backend), 7, 9
    a, b, s = RNG.integers(0, 2**40, (count, n)), RNG.integers(0, 2**40, count), RNG.integers(0, 2, n)
    public = np.concatenate([a[:5].ravel(), b[:5], a[5:].ravel(), b[5:]])
    arguments = {"n": n, "count": count, "offset": 8, "s_at": 0, "block": 5}
    assert np.array_equal(spdz.run("lwe_phase", arguments, public=public, shares=s, appended=count)[0], b - a @ s + 8)
    _, outputs = spdz.run("round_flood", {"size": 9, "f": 10, "to": 1}, shares=[*b, *[5] * 9])
    assert np.array_equal(outputs[1], b + 5 - 1024)
    bits = spdz.run("sample_bits", {"size": 200}, appended=200)[0]
    assert set(bits.tolist()) == {0, 1}


@EVERY
def test_lwe_public_key(tmp_path: Path, backend: Backend) -> None:
    spdz, n = mpspdz.MpSpdz(tmp_path, backend), 24
    a, s, e = RNG.integers(0, 2**40, n), RNG.integers(0, 2, n), RNG.integers(-50, 50, n)
    _, outputs = spdz.run("lwe_public_key", {"n": n, "s_at": 0, "e_at": n, "block": 7}, public=a, shares=[*s, *e])
    product = np.convolve(a, s)
    assert np.array_equal(outputs[0], product[:n] - np.append(product[n:], 0) + e)
    noise = spdz.run("sample_tuniform", {"size": 100, "b": 13}, appended=100)[0]
    assert np.abs(noise).max() <= 2**13 and len(set(noise.tolist())) > 50
    wide = spdz.run("sample_wide_noise", {"size": 100, "half": 4, "weight": 900, "b": 9}, appended=100)[0]
    assert np.abs(wide).max() <= 4 * 900 + 2**9 and len(set(wide.tolist())) > 50


@RINGS
def test_tfhe_keys(tmp_path: Path, backend: Backend) -> None:
    """Against the embedded engine, which tests/programs/test_tfhe_keys.py compares with clear arithmetic."""
    spdz, n, count, levels = mpspdz.MpSpdz(tmp_path, backend), 8, 3, 2
    words = RNG.integers(-(2**62), 2**62, count * levels * 2 * n)
    shares = [*RNG.integers(0, 2, n + count), *RNG.integers(-50, 50, len(words))]
    switch = {"n": n, "count": count, "base_log": 4, "levels": levels, "s_at": 0, "m_at": n, "e_at": n + count, "block": 4}
    bootstrap = {"count": count, "N": n, "base_log": 7, "levels": levels, "s_at": n, "z_at": 0, "e_at": n + count, "block": 3}
    compact = {"n": n, "s_at": 0, "e_at": n + count, "block": 3, "reverse": 1}
    for program, arguments, public in [
        ("lwe_switch_key", switch, words[: count * levels * n]),
        ("glwe_bootstrap_key", bootstrap, words),
        ("lwe_public_key", compact, words[:n]),
    ]:
        _, outputs = spdz.run(program, arguments, public=public, shares=shares)
        assert np.array_equal(outputs[0], run(program, arguments, backend, public=public, shares=shares).public), program


@RINGS
@pytest.mark.parametrize("program", ["round_ltz_circuit", "round_mask_open"])
def test_stored_roundings_for_odd_moduli(tmp_path: Path, backend: Backend, program: str) -> None:
    """Masks in two sharings, then both online runs."""
    ell, t, contributors = 12, 65537, 2
    z, messages = border_instances(t, ell)
    if program == "round_mask_open":
        z = [2**ell * int(m) + k % 3 - 1 + 2 ** (ell - 1) for k, m in enumerate(messages)]
    keep, size = ("all" if program == "round_ltz_circuit" else "carry"), len(z)
    extra = int(keep == "all")
    rng = np.random.default_rng(5)
    words = rng.integers(64, 1 << (ell - 1), (contributors, size))  # far from wrapping: mask and open never errs
    rows = rng.integers(0, 2, (contributors, 1 + extra, size))
    places = np.arange(ell)[:, None]
    bits = {i: np.concatenate([((w >> places) & 1).ravel(), r.ravel()]) for i, (w, r) in enumerate(zip(words, rows, strict=True))}
    given = {i: np.concatenate([w, r.ravel()]) for i, (w, r) in enumerate(zip(words, rows, strict=True))}
    ring = mpspdz.MpSpdz(tmp_path / "ring", backend)
    field = mpspdz.MpSpdz(tmp_path / "field", FIELD_OF[backend.protocol].over(f"F_{t}"))
    head: dict[str, Any] = {"contributors": contributors, "size": size, "l": ell, "keep": keep}
    low, outputs = ring.run("round_mask_odd_bits", head, bits, appended=extra * (ell + 1) * size)
    head = {"contributors": contributors, "size": size, "l": ell, "t": t, "keep": keep}
    kept, _ = field.run("round_mask_odd_field", head, given, outputs[0], appended=(1 + extra) * size)
    r = words.sum(0) % (1 << ell)
    assert np.array_equal(np.asarray(kept[:size]) % t, r % t)
    stored = [*(v % 2**ell for v in z), *map(int, r), *map(int, low)]
    _, outputs = ring.run(f"{program}_odd_ring_online", {"size": size, "l": ell}, shares=stored)
    head = {"size": size, "l": ell, "t": t, "destination": 1}
    _, outputs = field.run(f"{program}_odd_field_online", head, public=outputs[0], shares=[*(v % t for v in z), *map(int, kept)])
    assert np.array_equal(outputs[1] % t, messages)


BATCHES = {"circuit": (4, 2_500), "table": (4, 100)} if LONG else {"circuit": (1, 4), "table": (1, 2)}
"""Runs of each method, and random blocks of a run. The table method takes 42,240 shares a block, and most of a second."""
WITH_MACS = {"circuit": (2, 250), "table": (1, 4)}
"""The same with MACs: seconds a block."""


def batches(backend: Backend, method: str) -> tuple[int, int]:
    """Runs, and blocks of each."""
    return WITH_MACS[method] if LONG and backend == MAC_RING else BATCHES[method]


ENCRYPTS = pytest.mark.parametrize("direction", ["encrypt", "decrypt"])


@pytest.mark.timeout(7200 if LONG else 600)
@pytest.mark.parametrize("method", BATCHES)
@ENCRYPTS
@pytest.mark.parametrize("backend", [REPLICATED_RING, SEMI_RING, MAC_RING], ids=str)
def test_random_blocks_of_aes(tmp_path: Path, backend: Backend, direction: str, method: str) -> None:
    """Beside another implementation: to all parties, and as shares."""
    spdz, (runs, size) = mpspdz.MpSpdz(tmp_path, backend), batches(backend, method)
    for i in range(runs):
        key, data, share = RNG.bytes(16), RNG.bytes(16 * size), i % 2 == 1
        parts = [rows(data).ravel(), schedule(key).ravel()]
        at = {"blocks_at": 0, "keys_at": 128 * size}
        if method == "table":
            parts += hot_vectors(RNG.integers(0, 256, 160 * size))
            at |= {"masks_at": 128 * size + 1408, "hot_at": 1408 * (size + 1)}
        program = "aes_blocks" if method == "circuit" else "aes_blocks_table"
        arguments = {"size": size, "direction": direction, "destination": "share" if share else "all", **at}
        shares = np.concatenate(parts).astype(np.int64)
        opened, outputs = spdz.run(program, arguments, shares=shares, appended=128 * size if share else 0)
        for bits in [opened] if share else outputs.values():
            assert blocks(bits & 1) == reference(key, data, direction)


@pytest.mark.timeout(7200 if LONG else 600)
@pytest.mark.parametrize("backend", [REPLICATED_RING, SEMI_RING, MAC_RING], ids=str)
def test_random_blocks_of_clients(tmp_path: Path, backend: Backend) -> None:
    """Under masks and pads, which clients know."""
    spdz, (runs, size) = mpspdz.MpSpdz(tmp_path, backend), batches(backend, "circuit")
    for _ in range(runs):
        key, data = RNG.bytes(16), RNG.bytes(16 * size)
        masks, pads = RNG.integers(0, 2, (128, size), np.uint8), RNG.integers(0, 2, (128, size), np.uint8)
        shares = np.concatenate([masks.ravel(), schedule(key).ravel(), pads.ravel()]).astype(np.int64)
        arguments = {"size": size, "masks_at": 0, "keys_at": 128 * size, "pads_at": 128 * size + 1408}
        outputs = spdz.run("aes_blocks_masked", arguments, public=(rows(data) ^ masks).ravel().astype(np.int64), shares=shares)[1]
        for bits in outputs.values():
            assert blocks(bits & 1 ^ pads.ravel()) == reference(key, data, "encrypt")


@pytest.mark.parametrize("backend", [REPLICATED_RING, SEMI_RING, MAC_RING], ids=str)
def test_masks_of_clients(tmp_path: Path, backend: Backend) -> None:
    spdz, size, words = mpspdz.MpSpdz(tmp_path, backend), 50 if LONG else 3, 4
    opened = spdz.run("client_masks", {"size": size, "words": words}, appended=64 * size * (2 * words + 1))[0]
    assert set(opened.tolist()) == {0, 1}
    made = (opened.reshape(2 * words + 1, 64, size).astype(object) << np.arange(64)[None, :, None]).sum(1)
    for w in range(words):
        assert made[words + 1 + w].tolist() == [product(int(x), int(k)) for x, k in zip(made[w], made[words], strict=True)]
    assert len({*made[: words + 1].ravel()}) == size * (words + 1)
