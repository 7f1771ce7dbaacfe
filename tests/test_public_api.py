"""The names of the package: all types of its signatures, errors, types for checkers, and the unchanged example of the README."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import subprocess
import sys
import tomllib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyquorum
import pytest
from keyquorum import api
from keyquorum.fhe import errors as fhe_errors
from keyquorum.model import errors

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "harness" / "keyquorum"


def parts(hint: Any) -> Iterator[Any]:
    """A hint and all that it is made of."""
    yield hint
    for argument in typing.get_args(hint):
        for each in argument if isinstance(argument, (list, tuple)) else (argument,):
            yield from parts(each)


def hints(thing: Any) -> Iterator[Any]:
    """What the signature of a function names, or the fields, methods and properties of a class."""
    if not inspect.isclass(thing):
        yield from typing.get_type_hints(thing).values()
        return
    yield from typing.get_type_hints(thing).values()
    for name, member in vars(thing).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            yield from typing.get_type_hints(function).values()


def named() -> set[type]:
    """Classes of this package that the public names lead to, through signatures of signatures."""
    todo = [thing for name in keyquorum.__all__ if callable(thing := getattr(keyquorum, name)) and typing.get_origin(thing) is None]
    seen: set[Any] = set()
    while todo:
        thing = todo.pop()
        if thing in seen:
            continue
        seen.add(thing)
        for part in (p for hint in hints(thing) for p in parts(hint)):
            if inspect.isclass(part) and part.__module__.startswith("keyquorum"):
                todo.append(part)
    return {thing for thing in seen if inspect.isclass(thing)}


def test_all_that_signatures_name_is_exported() -> None:
    found = named()
    assert {keyquorum.SealRequest, keyquorum.Noise, keyquorum.PhaseReport, keyquorum.Party} <= found  # reached through others
    missing = sorted(f"{kind.__module__}.{kind.__name__}" for kind in found if getattr(keyquorum, kind.__name__, None) is not kind)
    assert missing == []


def test_errors_are_exported() -> None:
    """Every kind of the model, and those of the SEAL bridge that the functions raise beyond the model's."""
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.KeyQuorumError)]
    assert len(kinds) > 15 and [kind.__name__ for kind in kinds if getattr(keyquorum, kind.__name__, None) is not kind] == []
    for kind in (fhe_errors.ValuesError, fhe_errors.SealOperationError, fhe_errors.SealFormatError, fhe_errors.UnknownParameterSetError):
        assert getattr(keyquorum, kind.__name__) is kind and issubclass(kind, keyquorum.KeyQuorumError)


def test_lists_of_names_agree() -> None:
    """The package's, the interface's, and what type checkers see."""
    assert keyquorum.__all__ == api.__all__ and len(set(api.__all__)) == len(api.__all__)
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    checked = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "keyquorum.api" for alias in node.names]
    assert checked == ["*"], "all names of the interface's list"
    assert set(keyquorum.__all__) <= set(dir(keyquorum))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        keyquorum.nothing  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    assert keyquorum.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert keyquorum.__version__ == tomllib.loads((ROOT / "Source" / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def test_type_checkers_see_types(tmp_path: Path) -> None:
    """py.typed, and a program of a user under mypy's strict mode; a mistake in it is found."""
    assert (PACKAGE / "py.typed").exists()
    program = (
        'import keyquorum\n\ncommittee: keyquorum.Committee = keyquorum.init("c")\ninfo: {kind} = keyquorum.keygen(committee, "k", "bfv-4096").info\n'
    )
    for kind, code in (("keyquorum.KeyInfo", 0), ("int", 1)):
        (tmp_path / "program.py").write_text(program.format(kind=kind))
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "program.py"]
        environment = {"MYPYPATH": str(ROOT / "harness"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == code, done.stdout
    assert 'variable has type "int"' in done.stdout


def snippets() -> list[str]:
    """Examples in Python of the README."""
    return re.findall(r"^```(?:python|pycon)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


def test_the_readme_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = snippets()
    assert len(found) == 1 and ">>> " in found[0]
    example = doctest.DocTestParser().get_doctest(found[0], {}, "README.md", "README.md", 0)
    assert len(example.examples) >= 6
    outcome = doctest.DocTestRunner().run(example)
    assert outcome.failed == 0 and outcome.attempted == len(example.examples)
    assert (tmp_path / "y.plain").exists()
