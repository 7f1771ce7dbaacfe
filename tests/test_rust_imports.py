"""The top modules of a Rust crate (files and folders of its ``src``) import one another without circles."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "Scripts" / "structure.py"


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structure", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_circles(structure: ModuleType) -> None:
    assert structure.rust_circles() == []


def test_circles_are_found(structure: ModuleType, tmp_path: Path) -> None:
    """Imports of files of a folder, of groups, and of names that ``lib.rs`` re-exports; comments and tests are left out."""
    for name, text in {
        "lib": "mod a;\nmod b;\npub use c::{Name, inner::Other};\n",
        "a": "use crate::{b::{X, Y}, Error};\n",
        "b/mod": "mod part;\n",
        "b/part": "use super::d;\nfn f(_: crate::Other) {}\n",
        "c": "use crate::a::Z;\n",
        "d": "// use crate::e;\n#[cfg(test)]\n#[allow(clippy::unwrap_used)] // a failed test may panic\nmod tests {\n    use crate::e;\n}\n",
        "e": "use crate::d;\n#[cfg(test)]\nmod tests;\n",
        "e/tests": "use crate::d;\n",
        "f": "use crate::e;\n#[cfg(test)]\npub(super) mod attacks;\n",
        "f/attacks/mod": "mod more;\n",
        "f/attacks/more": "use crate::g;\n",
        "g/mod": "use super::f;\n",
        "g/part": "use super::super::{a, b::X};\nuse super::e;\n",
    }.items():
        path = tmp_path / f"{name}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = structure.rust_imports(tmp_path)
    assert found == {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set(), "e": {"d"}, "f": {"e"}, "g": {"a", "b", "f"}}
    assert structure.circles(found) == [["a", "b", "c"]]
