"""Types of the harness: few are Any, and an Any with a meaning has a name."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "harness" / "keyquorum"
MOST = 160


def lines_with_any(package: Path) -> list[str]:
    """Lines of a package with the word, imports among them, as ``grep -rw Any`` counts them."""
    return [
        f"{path.relative_to(package)}:{number}: {line.strip()}"
        for path in sorted(package.rglob("*.py"))
        if "_share" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\bAny\b", line)
    ]


def test_few_types_are_any() -> None:
    """If this fails: write the type; write object for a value that a function inspects; or give an Any with one meaning a name and a docstring."""
    found = lines_with_any(PACKAGE)
    assert len(found) < MOST, "\n".join(found)


def test_any_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from typing import Any\n\nx: Any = 1\ny: AnyStr = 2\nMany = 3\n")
    (tmp_path / "_share").mkdir()
    (tmp_path / "_share" / "b.py").write_text("z: Any = 4\n")
    assert lines_with_any(tmp_path) == ["a.py:1: from typing import Any", "a.py:3: x: Any = 1"]
