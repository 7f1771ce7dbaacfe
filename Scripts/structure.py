"""Counts of the structure of the code: what a reader has to carry. Prints one line a count; ``--places`` adds where each one is found.

Python counts are of ``harness/keyquorum`` (blank lines, comments and docstrings included); Rust counts are of all crates but the fuzz targets, without
unit tests for circles. A circle is a set of folders or files of a crate's ``src`` whose modules import one another. A name that ``lib.rs`` re-exports counts as
its module.

A keyword interface is a function whose callers name the arguments, so nobody has to know their order. There are three kinds, and a long signature of any other
function is counted apart from them: a function of :mod:`keyquorum.api`, or a class of :mod:`keyquorum.toprf` (``__all__``, wherever it is defined), that takes at most
seven arguments by position; a command
of ``cli/``, whose parameters are options of the command line (the module registers it with ``command`` or ``callback``); and a declared signature of a program
(``@program``), which takes names alone. The long ones among them are printed too.

A parameter called ``seed`` is the seed of a run, for tests, outside ``fhe/``. There it is a public seed of a file format, of which masks are expanded.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "harness" / "keyquorum"
KINDS = {"authenticated", "verifies_products"}
"""Attributes and names that ask for the kind of a committee."""
OWNERS = ("sharing/numbers", "model/protocols", "model/committee")
"""The modules that may ask: the owner of private numbers, and the descriptors."""
DOMAINS = ("F_", "Z2^")
MOST_ARGUMENTS = 7
PUBLIC_SEEDS = "fhe/"
"""The folder where a parameter called seed is not the seed of a run."""
OWN_DOMAINS = "model/domains.py"
"""The module that makes the text of a domain."""

UNIT_TESTS = re.compile(r"^#\[cfg\(test\)\]\s*(?:#\[.*\s*)*mod \w+ \{", re.MULTILINE)
"""The start of the unit tests of a Rust file: they stand at its end."""

TEST_MODULE = re.compile(r"^#\[cfg\(test\)\]\s*(?:#\[.*\s*)*(?:pub(?:\(\w+\))? )?mod (\w+);", re.MULTILINE)
"""The declaration of a module of tests that is a file of its own."""

Place = tuple[str, int, str]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Names of the parameters, without the first one of a method."""
    found = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return found[1:] if found[:1] in (["self"], ["cls"]) else found


def by_position(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Number of arguments that may be given by position, without the first one of a method."""
    return len(arguments(function)) - len(function.args.kwonlyargs)


def public_names() -> set[str]:
    """The names of the Python interface."""
    found = set[str]()
    for path in (PACKAGE / "api.py", PACKAGE / "toprf" / "__init__.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found |= set(ast.literal_eval(node.value))
    return found


def registered(tree: ast.AST) -> set[str]:
    """The functions that a module of the command line registers as commands: by a decorator, or by a call of its result."""
    makers = ("command", "callback")
    found = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Call)
            and isinstance(node.func.func, ast.Attribute)
            and node.func.func.attr in makers
        ):
            found |= {name.id for argument in node.args for name in ast.walk(argument) if isinstance(name, ast.Name)}
        if isinstance(node, ast.FunctionDef):
            decorators = (d.func for d in node.decorator_list if isinstance(d, ast.Call))
            found |= {node.name for d in decorators if isinstance(d, ast.Attribute) and d.attr in makers}
    return found


def why_by_keyword(name: str, tree: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef, public: set[str]) -> str:
    """The reason why a function is a keyword interface; empty if it is not."""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and function in node.body and function.name == "__init__")
    called = next((node.name for node in classes), function.name if function in tree.body else "")
    if name.startswith("cli/") and function.name in registered(tree):
        return "a command"
    if called in public and by_position(function) <= MOST_ARGUMENTS and not name.startswith("cli/"):
        return "public, options by name alone"
    if any(isinstance(d, ast.Name) and d.id == "program" for d in function.decorator_list) and not by_position(function):
        return "declared signature of a program"
    return ""


def tests(tree: ast.AST) -> Iterator[ast.expr]:
    """The conditions of a module: of if, while, assert, conditional expressions and comprehensions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def asks_for_kind(test: ast.expr) -> bool:
    names = {n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute)} | {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return bool(names & KINDS)


def starts_as_domain(node: ast.JoinedStr) -> bool:
    first = node.values[0] if node.values else None
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value in DOMAINS


def python_places() -> dict[str, list[Place]]:
    """Places of each count of the package."""
    found: dict[str, list[Place]] = defaultdict(list)
    public = public_names()
    for path in sorted(PACKAGE.rglob("*.py")):
        name, tree = path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())
        for function in functions(tree):
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            found["length"].append((name, function.lineno, f"{function.name}: {length}"))
            if len(arguments(function)) > MOST_ARGUMENTS:
                reason = why_by_keyword(name, tree, function, public)
                text = f"{function.name}: {len(arguments(function))}"
                found["keywords" if reason else "arguments"].append((name, function.lineno, f"{text}, {reason}" if reason else text))
            if "seed" in arguments(function) and not name.startswith(PUBLIC_SEEDS):
                found["seed"].append((name, function.lineno, function.name))
        if not name.startswith(OWNERS):
            found["kind"] += [(name, test.lineno, ast.unparse(test)) for test in tests(tree) if asks_for_kind(test)]
        if name != OWN_DOMAINS:
            domains = (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and starts_as_domain(node))
            found["domain"] += [(name, node.lineno, ast.unparse(node)) for node in domains]
    return found


def rust_code(path: Path) -> str:
    """A Rust file without comments and unit tests."""
    return re.sub(r"//.*", "", UNIT_TESTS.split(path.read_text(), maxsplit=1)[0])


def re_exports(source: Path, tops: set[str]) -> dict[str, str]:
    """The top module of each name that ``lib.rs`` re-exports."""
    uses = re.findall(r"\bpub(?:\(crate\))? use (?:self::|crate::)?(\w+)::([^;]*);", rust_code(source / "lib.rs"))
    return {name: top for top, names in uses if top in tops for name in re.findall(r"\w+", names)}


def test_modules(source: Path) -> set[Path]:
    """Files and folders, without their ending, of the modules that are compiled for tests alone."""
    found = set[Path]()
    for path in source.rglob("*.rs"):
        home = path.parent if path.stem in ("lib", "mod") else path.with_suffix("")
        found |= {home / name for name in TEST_MODULE.findall(path.read_text())}
    return found


def of_root(path: Path, source: Path) -> str:
    """A pattern of the names by which a file calls the root of its crate: ``crate``, and as many ``super`` as it is below."""
    parts = path.relative_to(source).with_suffix("").parts
    depth = len(parts) - (parts[-1] == "mod")
    return rf"(?<!\w)(?:crate|(?<!super::){'::'.join(['super'] * depth)})::"


def rust_imports(source: Path) -> dict[str, set[str]]:
    """For each top module (folder or file) of a crate, the top modules that its code names by ``crate::`` or ``super::``. Unit tests are left out."""
    tops = {path.stem if path.is_file() else path.name for path in source.iterdir() if path.is_dir() or path.suffix == ".rs"} - {"lib", "main"}
    known = re_exports(source, tops) | {top: top for top in tops}
    found: dict[str, set[str]] = {top: set() for top in tops}
    tests = test_modules(source)
    for path in source.rglob("*.rs"):
        top = path.relative_to(source).parts[0].removesuffix(".rs")
        if top not in tops or tests & {path.with_suffix(""), *path.parents}:
            continue
        text = rust_code(path)
        root = of_root(path, source)
        named = set(re.findall(rf"{root}(\w+)", text))
        for group in re.findall(rf"{root}\{{([^;]*?)\}};", text, flags=re.DOTALL):
            named |= set(re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group)))
        found[top] |= {known[name] for name in named & known.keys()} - {top}
    return found


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Sets of two modules or more that reach one another."""
    reach: dict[str, set[str]] = {}
    for start in imports:
        seen, open_ = set[str](), [start]
        while open_:
            for other in imports[open_.pop()] - seen:
                seen.add(other)
                open_.append(other)
        reach[start] = seen
    groups = {frozenset({a, *(b for b in reach[a] if a in reach[b])}) for a in imports if a in reach[a]}
    return sorted(sorted(group) for group in groups)


def rust_circles() -> list[Place]:
    """The circles of each crate."""
    sources = sorted(path for path in (ROOT / "Source").glob("*/src") if path.parent.name not in ("fuzz", "target"))
    return [(source.parent.name, len(group), " ".join(group)) for source in sources for group in circles(rust_imports(source))]


def lines(folder: Path, *suffixes: str) -> int:
    """Lines of the files below a folder, without links, build products and the environment."""
    files = (p for p in folder.rglob("*") if p.suffix in suffixes and not p.is_symlink() and not {"target", ".venv", "node_modules"} & set(p.parts))
    return sum(len(path.read_text().splitlines()) for path in files)


def main() -> int:
    found, round_ = python_places(), rust_circles()
    longest = max(found["length"], key=lambda place: int(place[2].rpartition(" ")[2]))
    counts: list[tuple[str, int, list[Place]]] = [
        ("lines of the longest function", int(longest[2].rpartition(" ")[2]), [longest]),
        (f"functions of more than {MOST_ARGUMENTS} arguments", len(found["arguments"]), found["arguments"]),
        (f"keyword interfaces of more than {MOST_ARGUMENTS} arguments", len(found["keywords"]), found["keywords"]),
        ("conditions on the kind of committee", len(found["kind"]), found["kind"]),
        ("parameters that are seeds of runs", len(found["seed"]), found["seed"]),
        ("formatted domains outside model/domains.py", len(found["domain"]), found["domain"]),
        ("circles among the folders of Rust crates", len(round_), round_),
        ("lines of the package", lines(PACKAGE, ".py", ".pyi"), []),
        (
            "lines of all code",
            sum(lines(ROOT / f, ".py", ".pyi", ".rs", ".mpc") for f in ("Programs", "Source", "Scripts", "harness", "tests", "examples")),
            [],
        ),
    ]
    for title, count, places in counts:
        print(f"{count:>8,}  {title}")
        for path, line, text in places if "--places" in sys.argv[1:] else []:
            print(f"{'':10}{path}:{line} {text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
