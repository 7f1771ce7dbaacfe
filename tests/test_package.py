"""Data of an installed package: programs and parameter sets, linked one by one into the package's folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "harness" / "keyquorum"
LINKS = [
    (ROOT / "Programs" / "Source", "*.mpc", PACKAGE / "_share" / "Programs" / "Source"),
    (ROOT / "Programs" / "Library", "*.py", PACKAGE / "_share" / "Programs" / "Library"),
    (ROOT / "params", "*.toml", PACKAGE / "fhe" / "params"),
    (ROOT / "params" / "published", "*.*", PACKAGE / "_share" / "params" / "published"),
    (ROOT / "params" / "published" / "ours", "*", PACKAGE / "_share" / "params" / "published" / "ours"),
    (ROOT / "params" / "cnn", "*", PACKAGE / "_share" / "params" / "cnn"),
]


@pytest.mark.parametrize(("source", "pattern", "target"), LINKS, ids=lambda v: v.name if isinstance(v, Path) else "")
def test_links_are_complete(source: Path, pattern: str, target: Path) -> None:
    """If this fails after a file was added: ln -s it into the folder of the package."""
    wanted = {path.name: path.resolve() for path in source.glob(pattern)}
    assert {path.name: path.resolve() for path in target.glob(pattern)} == wanted


def script(name: str) -> dict[str, Any]:
    """The names of a script of this project."""
    path = ROOT / "Scripts" / f"{name}.py"
    namespace: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    exec(path.read_text(), namespace)
    return namespace


def test_the_page_of_programs_is_up_to_date() -> None:
    """If this fails: run Scripts/program_table.py."""
    assert (ROOT / "docs" / "pages" / "programs.md").read_text() == script("program_table")["table"]()


def test_the_signatures_of_programs_are_up_to_date() -> None:
    """If this fails: run Scripts/program_signatures.py."""
    assert (PACKAGE / "programs" / "signatures.py").read_text() == script("program_signatures")["module"]()


def test_the_least_versions_are_the_same_everywhere() -> None:
    """The least versions of Rust and Python, in build files and in documents."""
    rust = tomllib.loads((ROOT / "Source" / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    for name in ("Makefile", "README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        assert set(re.findall(r"Rust (?:\| )?(1\.\d+)", text)) == {rust}, name
        assert set(re.findall(r"Python (?:\| )?(3\.\d+)", text)) == {python}, name
