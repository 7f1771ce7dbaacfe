"""Imports of the package go down its floors, without circles. Imports in functions and for type checkers count as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[1] / "harness"
PACKAGE = "keyquorum"
FLOORS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    ("inspection",),
    ("sweep",),
    ("report",),
    ("toprf",),
    ("cnn", "deploy", "serve", "terminal"),
    ("",),  # the package's own names, which are those of api
    ("api",),
    ("in_process",),
    ("plans",),
    ("schemes",),
    ("sharing",),
    ("parties",),
    ("backends",),
    ("fhe",),
    ("dsl",),
    ("programs",),
    ("model",),
    ("_engine",),
)
"""Modules and folders of the package, highest first. Those of one floor do not import one another."""
HEIGHTS = {name: -number for number, floor in enumerate(FLOORS) for name in floor}
Graph = Mapping[str, Sequence[str]]


def modules(root: Path) -> dict[str, Path]:
    """Files of the package by dotted name. A compiled module stands with its stub; programs' own helpers are no part of the package."""
    found = {}
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.pyi")]):
        names = path.relative_to(root.parent).with_suffix("").parts
        if "_share" not in names:
            found[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return found


def imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """Modules of the package that a module imports anywhere, with lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            folder = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
            above = folder[: len(folder) - node.level + 1] if node.level else []
            whole = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                one = f"{whole}.{alias.name}"
                if one in known or whole in known:
                    yield (one if one in known else whole), node.lineno


def circles(graph: Graph) -> list[list[str]]:
    """Groups of modules that import one another, directly or through others (strongly connected components, by Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        path.append(name)
        for other in graph[name]:
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in path:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            group = path[path.index(name) :]
            del path[path.index(name) :]
            if len(group) > 1 or name in graph[name]:
                found.append(sorted(group))

    for name in graph:
        if name not in order:
            visit(name)
    return found


def floor_of(name: str) -> str:
    """The module or folder of the package that a module belongs to."""
    return name.removeprefix(PACKAGE).removeprefix(".").split(".")[0]


def climbs(known: Mapping[str, Path]) -> list[str]:
    """Imports that do not go down, with file and line."""
    return [
        f"{path}:{line}: {name} imports {other}"
        for name, path in known.items()
        for other, line in imported(name, path, known)
        if floor_of(name) != floor_of(other) and HEIGHTS[floor_of(name)] <= HEIGHTS[floor_of(other)]
    ]


@pytest.fixture(scope="module")
def known() -> dict[str, Path]:
    return modules(HARNESS / PACKAGE)


def graph_of(known: Mapping[str, Path]) -> dict[str, list[str]]:
    return {name: [other for other, _ in imported(name, path, known)] for name, path in known.items()}


def test_every_module_has_a_floor(known: dict[str, Path]) -> None:
    assert {floor_of(name) for name in known} == HEIGHTS.keys()


def test_no_circles(known: dict[str, Path]) -> None:
    assert circles(graph_of(known)) == []


def test_no_circles_of_folders(known: dict[str, Path]) -> None:
    folders: dict[str, list[str]] = {floor_of(name): [] for name in known}
    for name, others in graph_of(known).items():
        folders[floor_of(name)] += [floor_of(other) for other in others if floor_of(other) != floor_of(name)]
    assert circles(folders) == []


def test_benchmarks_lie_above_the_package(known: dict[str, Path]) -> None:
    """``harness/bench`` imports the package, which does not import it and so can be installed alone."""
    benches = modules(HARNESS / "bench")
    assert len(benches) > 20 and [f"{path}:{line}" for name, path in known.items() for _, line in imported(name, path, benches)] == []
    assert circles(graph_of(benches)) == []


def test_imports_go_down(known: dict[str, Path]) -> None:
    assert climbs(known) == []


def test_circles_and_climbs_are_found(tmp_path: Path) -> None:
    """Imports in functions, for type checkers, relative ones, and those of a module as a name of its folder."""
    root = tmp_path / PACKAGE
    for name, text in {
        "__init__": "",
        "model/__init__": "",
        "model/a": "def f():\n    from keyquorum.model import b\n",
        "model/b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .c import x\n",
        "model/c": "import keyquorum.model.a\nfrom ..plans.d import y\n",
        "plans/__init__": "",
        "plans/d": "from keyquorum.model import c\n",
    }.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    known = modules(root)
    assert circles(graph_of(known)) == [[f"{PACKAGE}.{m}" for m in ("model.a", "model.b", "model.c", "plans.d")]]
    assert climbs(known) == [f"{root / 'model/c.py'}:2: {PACKAGE}.model.c imports {PACKAGE}.plans.d"]
