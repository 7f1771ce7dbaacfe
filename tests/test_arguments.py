"""Arguments of other types than the annotations name: one line, with function, argument and what it should be; in every function of the interface."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api, toprf
from keyquorum._engine import EngineError
from keyquorum.fhe import seal
from keyquorum.model.arguments import checked
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.schemes.base import EncryptedFile

BAD: tuple[object, ...] = (None, 17, 1.5, object(), [], [None], b"bytes", {}, True)
GOOD: dict[str, object] = {
    "key": "key", "parameters": "bfv-4096", "rounding": "round_ltz_circuit", "items": 5, "receiver": 0, "values": [1], "operation": "add", "members": 2, "job": {},
    "steps": [1], "party": 0, "fingerprint": "ab" * 32, "place": "a:1", "text": "a:1", "points": [bytes(16)], "blocks": 1, "rate": 5, "tfhe": "t",
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., object]] = {
    **{name: getattr(api, name) for name in api.__all__ if inspect.isfunction(getattr(api, name))},
    **{name: getattr(toprf, name) for name in toprf.__all__ if inspect.isfunction(getattr(toprf, name))},
    "Toprf": toprf.Toprf,
}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee whose parties are on other hosts: nothing runs."""
    folder = tmp_path_factory.mktemp("arguments")
    api.init(folder / "committee", 3, hosts=["a:1", "b:1", "c:1"], me=[])
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_ends_in_an_error_of_python(name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each argument in turn has another type. What a function takes all the same may work, or fail by an error of the package."""
    monkeypatch.chdir(elsewhere)
    parameters = [p for p in inspect.signature(FUNCTIONS[name]).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    places: dict[str, object] = {"committee": elsewhere / "committee", "ciphertexts": [elsewhere / "x"], "outputs": [elsewhere / "y"]}
    base = {p.name: places.get(p.name, GOOD.get(p.name, elsewhere / p.name)) for p in parameters if p.default is p.empty}
    for parameter in parameters:
        for number, bad in enumerate(BAD):
            fresh = {"folder": elsewhere / f"{name}-{parameter.name}-{number}"} if name == "init" else {}
            try:
                FUNCTIONS[name](**{**base, **fresh, parameter.name: bad})
            except (KeyQuorumError, EngineError, OSError) as error:
                assert "\n" not in str(error) and "bytes'" not in str(error)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: api.keygen("c", "k", None), r"keygen: parameters is None, and should be .*or str or a path"),  # type: ignore[arg-type]
        (lambda: api.evaluate("c", "k", "add", "x.ct", "y.ct"), r"evaluate: ciphertexts is the text 'x.ct', and should be a list of str or a path"),
        (lambda: api.keygen_job("k", "bfv-4096", galois_elements="3"), r"galois_elements is the text '3', and should be a list of int"),  # type: ignore[arg-type]
        (lambda: api.decrypt("c", "k", "x.ct", 0, ["y"]), r"decrypt: ciphertexts is the text"),
        (lambda: api.decrypt("c", "k", ["x.ct"], "0", ["y"]), r"receiver is the text '0', and should be int"),  # type: ignore[arg-type]
        (lambda: api.init(), r"init: missing a required argument: 'folder'"),  # type: ignore[call-arg]
        (lambda: toprf.Toprf.evaluate(object.__new__(toprf.Toprf), "text"), r"evaluate: data is the text 'text', and should be bytes"),  # type: ignore[arg-type]
        (lambda: toprf.Toprf.evaluate_many(object.__new__(toprf.Toprf), b"bytes"), r"evaluate_many: inputs is of type bytes, and should be a list of bytes"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_the_error_names_function_and_argument(call: Callable[[], object], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        call()


def test_what_fits_passes_and_keeps_its_signature() -> None:
    @checked
    def f(number: int, more: Sequence[float] = (), *, path: str | Path = "", action: Callable[[int], Any] | None = None, **options: int) -> int:
        """What it does."""
        return number

    assert f(np.int64(3), [1, np.float64(2.5)], path=Path("x"), action=print, other=1) == 3
    assert f.__name__ == "f" and f.__doc__ == "What it does." and "number" in inspect.signature(f).parameters
    for wrong in (
        {"number": True},
        {"number": 1, "more": "12"},
        {"number": 1, "more": [None]},
        {"number": 1, "action": 3},
        {"number": 1, "path": b"x"},
    ):
        with pytest.raises(ParameterError, match=r"^f: "):
            f(**wrong)  # type: ignore[arg-type]


def test_files_are_not_printed_with_their_bytes() -> None:
    file = EncryptedFile(Path("x.ct"), b"SECRETBYTES", None)  # type: ignore[arg-type]
    assert "SECRETBYTES" not in repr(file) and "x.ct" in repr(file)
    assert issubclass(api.CiphertextFile, EncryptedFile) and seal is not None
