"""The helper over stock SEAL, and files of values."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyquorum.fhe import seal as bridge
from keyquorum.fhe.decode import decrypt_reference
from keyquorum.fhe.errors import SealMissingError, SealOperationError, ValuesError
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.fhe.lwe_public import integers
from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.fhe.values import as_numbers, fit_values, read_values, write_values
from keyquorum.model.errors import KeyQuorumError

from .dealer import T, dealer, keys

SCHEMES = ["ckks", "bfv", "bgv"]


def decrypted(scheme: str, data: bytes) -> Any:
    d = dealer(f"tiny-{scheme}")
    plain = decrypt_reference(d.parameters, d.secret, read_ciphertext(d.parameters, data))
    return bridge.decode(d.parameters, plain)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_operations(scheme: str) -> None:
    name = f"tiny-{scheme}"
    parameters = dealer(name).parameters
    public, relin, galois = keys(name)
    rng = np.random.default_rng(1)
    slots = parameters.slots
    x, y = rng.integers(-100, 100, (2, slots))
    if scheme == "ckks":
        x, y = x / 100, y / 100
    a, b = bridge.encrypt(parameters, public, x), bridge.encrypt(parameters, public, y)

    def run(operation: str, *operands: bytes, **options: Any) -> bytes:
        return bridge.evaluate(parameters, operation, operands, relin, galois, **options)

    def check(data: bytes, expected: Any) -> None:
        if scheme == "ckks":
            assert np.abs(decrypted(scheme, data) - expected).max() < 1e-4
        else:
            assert np.array_equal(decrypted(scheme, data), (expected + T // 2) % T - T // 2)

    def rotated(values: Any, step: int) -> Any:
        if scheme == "ckks":
            return np.roll(values, -step)
        return np.concatenate([np.roll(half, -step) for half in np.split(values, 2)])

    check(a, x)
    check(run("add", a, b), x + y)
    check(run("subtract", a, b), x - y)
    check(run("negate", a), -x)
    product = run("multiply", a, b)
    check(product, x * y)
    check(run("square", product), (x * y) ** 2)
    check(run("rotate", a, step=1), rotated(x, 1))
    check(run("rotate", a, step=-3), rotated(x, -3))
    check(run("swap", a), x if scheme == "ckks" else np.roll(x, slots // 2))
    check(run("next-level", a), x)
    last = run("last-level", product)
    assert read_ciphertext(parameters, last).level_primes == 1
    check(last, x * y)
    check(run("multiply", product, run("next-level", a)), x * y * x)
    if scheme == "ckks":
        raw = run("multiply", a, b, rescale=False)
        assert read_ciphertext(parameters, raw).scale == parameters.scale**2
        check(run("rescale", raw), x * y)
        with pytest.raises(SealOperationError, match="does not fit the last prime"):
            run("last-level", raw)
        with pytest.raises(SealOperationError, match="rescale or encode them alike"):
            run("add", raw, a)
        with pytest.raises(SealOperationError, match="nothing to rescale by"):
            run("rescale", run("last-level", a))
        with pytest.raises(SealOperationError, match="scale out of bounds: this level has too few bits left"):
            run("square", run("square", run("square", a)))
    else:
        with pytest.raises(SealOperationError, match="has no rescaling"):
            run("rescale", a)
    with pytest.raises(SealOperationError, match="SEAL refuses to rotate by 5"):
        run("rotate", a, step=5)
    with pytest.raises(SealOperationError, match="at the last level already"):
        run("next-level", last)


def test_evaluate_refusals() -> None:
    parameters = dealer("tiny-bfv").parameters
    a = bridge.encrypt(parameters, keys("tiny-bfv")[0], [1, 2])
    for arguments, message in (
        (("divide", [a]), "unknown operation 'divide': choose one of add"),
        (("add", [a]), "add takes 2 ciphertexts, 1 given"),
        (("square", [a, a]), "square takes 1 ciphertext, 2 given"),
        (("square", [a]), "products need relinearisation keys"),
        (("rotate", [a]), "rotate needs a step"),
        (("rotate", [a], None, None, 1), "rotations need Galois keys"),
        (("swap", [a]), "rotations need Galois keys"),
        (("negate", [b"junk"]), "SEAL refuses operand of negate"),
        (("square", [a], b"junk"), "SEAL refuses these relinearisation keys"),
    ):
        with pytest.raises(SealOperationError, match=message) as caught:
            bridge.evaluate(parameters, *arguments)
        assert "\n" not in str(caught.value)


def test_complex_values() -> None:
    parameters = dealer("tiny-ckks").parameters
    values = np.exp(1j * np.linspace(0, 6, 512))
    plain = bridge.encode(parameters, values).to_bytes()
    assert np.abs(bridge.decode(parameters, plain, complex_values=True) - values).max() < 1e-8


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-(T // 2), T - 1), min_size=1, max_size=1024))
def test_integers_round_trip(values: list[int]) -> None:
    parameters = dealer("tiny-bgv").parameters
    back = bridge.decode(parameters, bridge.encode(parameters, values).to_bytes())
    assert (back[: len(values)] % T).tolist() == [v % T for v in values]


@pytest.mark.parametrize(
    ("scheme", "values", "message"),
    [
        ("bfv", [0.5], "integers only"),
        ("bfv", [1j], "integers only"),
        ("bfv", [T], f"outside {-(T // 2)} to {T - 1}"),
        ("bfv", [-(T // 2) - 1], "outside"),
        ("bfv", [float("nan")], "integers only"),
        ("bfv", [], "takes 1 to 1024"),
        ("bfv", [0] * 1025, "takes 1 to 1024"),
        ("bfv", [[1]], "takes 1 to"),
        ("bfv", ["one"], "cannot be encoded"),
        ("ckks", [0.0] * 513, "takes 1 to 512"),
        ("ckks", [float("inf")], "infinite value or a NaN"),
    ],
)
def test_values_that_do_not_fit(scheme: str, values: list[Any], message: str) -> None:
    with pytest.raises(ValuesError, match=message):
        fit_values(dealer(f"tiny-{scheme}").parameters, values)


def test_too_large_values_are_refused_by_seal() -> None:
    with pytest.raises(SealOperationError, match="SEAL refuses these values"):
        bridge.encode(dealer("tiny-ckks").parameters, [1e40])


@pytest.mark.parametrize("suffix", [".json", ".csv", ".npy"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_files_of_values(tmp_path: Path, suffix: str, kind: type) -> None:
    values = np.array([0, -1, 3, 65536], dtype=kind) / (1 if kind is np.int64 else 7)
    values = values.astype(kind)
    path = tmp_path / f"values{suffix}"
    write_values(path, values)
    back = read_values(path)
    assert back.tolist() == values.tolist()
    assert back.dtype.kind == values.dtype.kind


def test_files_of_complex_values(tmp_path: Path) -> None:
    values = np.array([1 + 2j, -0.5j, 3])
    for suffix in (".csv", ".npy"):
        path = tmp_path / f"values{suffix}"
        write_values(path, values)
        assert read_values(path).tolist() == values.tolist()
    with pytest.raises(ValuesError, match="JSON has no complex numbers"):
        write_values(tmp_path / "values.json", values)


def test_csv_in_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1, 2,3\n\n4,5\n")
    assert read_values(path).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"1", "choose one of these endings"),
        ("a.json", b"{", "cannot be read as json numbers"),
        ("a.json", b'{"a": 1}', "not a list of numbers"),
        ("a.json", b"[]", "no numbers"),
        ("a.json", b"[1, [2, 3]]", "cannot be read as json"),
        ("a.json", b"[true]", "no numbers"),
        ("a.json", b"[[1, 2]]", "not a list of numbers, or with lists in it"),
        ("a.json", b"[[1], [2]]", "or with lists in it"),
        ("a.json", b"5", "not a list of numbers"),
        ("a.csv", b"1,x", "cannot be read as csv numbers"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read as csv"),
        ("a.npy", b"junk", "cannot be read as npy"),
        ("a.json", None, "a.json: no such file"),
    ],
)
def test_bad_files_of_values(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValuesError, match=message) as caught:
        read_values(path)
    assert "\n" not in str(caught.value)


def test_lists_of_unequal_lengths_are_refused() -> None:
    for encode in (as_numbers, lambda values: integers(lwe_parameters("lwe64-p2"), values)):
        with pytest.raises(ValuesError, match="give one list of numbers"):
            encode([[1], [0, 1]])


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValuesError, match="cannot be read as npy"):
        read_values(path)


def test_missing_seal_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "seal", None)
    with pytest.raises(SealMissingError, match="pip install seal-python"):
        bridge.require_seal()
    assert issubclass(SealMissingError, KeyQuorumError)


def test_json_written_is_plain(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_values(path, np.arange(3))
    with builtins.open(path, encoding="utf-8") as file:
        assert json.load(file) == [0, 1, 2]
