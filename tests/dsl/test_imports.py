"""Stateless helpers are loaded once for many runs; all others are loaded anew."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from keyquorum.dsl.control.stateless import cached_helpers

from .running import EMULATE, RING, printed

PATH = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '..', 'Library'))\n"
LIBRARY = Path(__file__).parents[2] / "Programs" / "Library"

STATEFUL = {
    "a list": "seen = []\ndef count():\n    seen.append(1)\n    return len(seen)",
    "a global": "seen = 0\ndef count():\n    global seen\n    seen += 1\n    return seen",
    "an inner function's global": "n = 0\ndef count():\n    def up():\n        global n\n        n += 1\n    up()\n    return n",
    "an attribute of a function": "def count():\n    count.n = getattr(count, 'n', 0) + 1\n    return count.n",
    "an attribute of a class": "class C:\n    n = 0\ndef count():\n    C.n += 1\n    return C.n",
    "a class method": "class C:\n    n = 0\n    @classmethod\n    def up(cls):\n        cls.n = cls.n + 1\n        return cls.n\ncount = C.up",
    "the type of an object": (
        "class C:\n    n = 0\n    def up(self):\n        type(self).n = self.n + 1\n        return self.n\ndef count():\n    return C().up()"
    ),
    "a default": "def count(seen=[]):\n    seen.append(1)\n    return len(seen)",
    "a closure": "def make():\n    seen = []\n    def up():\n        seen.append(1)\n        return len(seen)\n    return up\ncount = make()",
    "an object": "class C:\n    def __init__(self):\n        self.n = 0\nc = C()\ndef count():\n    c.n += 1\n    return c.n",
    "a cache": (
        "from functools import lru_cache\n@lru_cache\ndef cached(x):\n    return []\ndef count():\n    cached(1).append(1)\n    return len(cached(1))"
    ),
    "an alias of a class": "class C:\n    n = 0\ndef count():\n    c = C\n    c.n = c.n + 1\n    return c.n",
    "setattr": "class C:\n    n = 0\ndef count():\n    setattr(C, 'n', C.n + 1)\n    return C.n",
    "globals": "n = 0\ndef count():\n    globals()['n'] += 1\n    return n",
    "a method of a list": "add = [].append\ndef count():\n    add(1)\n    return len(add.__self__)",
    "a base class": (
        "def base():\n    class B:\n        seen = []\n    return B\nclass C(base()):\n    pass\n"
        "def count():\n    C.seen.append(1)\n    return len(C.seen)"
    ),
    "a first parameter that is another": (
        "class C:\n    n = 0\n    def up(self):\n        self = C\n        self.n = self.n + 1\n        return self.n\ndef count():\n    return C().up()"
    ),
    "a closure's number": "def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up\ncount = make()",
    "a helper's list": "import seen\ndef count():\n    seen.items.append(1)\n    return len(seen.items)",
}


def is_kept(folder: Path, name: str) -> bool:
    return any(path == str((folder / "Programs" / "Library" / f"{name}.py").resolve()) for path, _ in cached_helpers())


@pytest.mark.parametrize("text", STATEFUL.values(), ids=STATEFUL.keys())
def test_what_a_helper_keeps_ends_with_the_run(text: str, tmp_path: Path) -> None:
    helpers = {"counting": text, "seen": "items = []"}
    for _ in range(3):
        assert printed(tmp_path, PATH + "import counting\nprint_ln('%s', counting.count())", helpers=helpers) == ["1"]
    assert not is_kept(tmp_path, "counting")


STATELESS = """
    from functools import partial
    from itertools import pairwise
    import math, os.path
    from Compiler.types import sint, program
    from Compiler import util
    from other import double

    LENGTHS = (1, (2, 3), 'four', None)

    class Base:
        def __init__(self, x):
            self.x = x

    class Doubled(Base):
        factor = 2

        def __init__(self, x):
            super().__init__(x)

        @property
        def value(self):
            return double(self.x) * self.factor

        @staticmethod
        def of(x, offset=0):
            return Doubled(x + offset)

    def walker():
        def walk(depth):
            return walk(depth - 1) if depth else 0
        return walk

    walk = walker()

    def parties(x):
        return [name for name in program.args], [Doubled.of(x, offset=i).value for i in range(2)]
    """


def test_stateless_helpers_are_loaded_once(tmp_path: Path) -> None:
    source = PATH + "from helper import parties\nargs, values = parties(sint(3))\nprint_ln('%s %s %s', len(args), *(v.reveal() for v in values))"
    helpers = {"helper": STATELESS, "other": "def double(x):\n    return x + x"}
    for backend, args in ((EMULATE, ()), (RING, ("a",)), (EMULATE, ("a", "b"))):
        assert printed(tmp_path, source, backend, *args, helpers=helpers) == [f"{1 + len(args)} 12 16"]
        assert is_kept(tmp_path, "helper") and is_kept(tmp_path, "other")
    before = {helper for _, helper in cached_helpers()}
    assert printed(tmp_path, source, helpers=helpers) == ["1 12 16"]  # written again: another version
    assert printed(tmp_path, source) == ["1 12 16"]
    assert len({helper for _, helper in cached_helpers()} - before) == 2
    helpers["other"] = "def double(x):\n    return 10 * x"
    assert printed(tmp_path, source, helpers={"other": helpers["other"]}) == ["1 60 80"], "a helper of a helper has changed"


@pytest.mark.parametrize(
    "text",
    [
        "from Compiler.types import program\nVALUE = program.use_split()",
        "from Compiler.types import program\nVALUE = len(program.args)",
        "from Compiler.library import get_number_of_players\nVALUE = 0 if get_number_of_players() is None else 1",
        "from Compiler.types import program\nif program.bit_length > 60:\n    VALUE = 1\nelse:\n    VALUE = 2",
    ],
)
def test_what_is_made_of_the_run_is_made_anew(text: str, tmp_path: Path) -> None:
    source = PATH + "import helper, other\nprint_ln('%s %s', helper.VALUE, other.get())"
    helpers = {"helper": text, "other": "import helper\ndef get():\n    return helper.VALUE"}
    first = printed(tmp_path, source, RING, helpers=helpers)
    assert not is_kept(tmp_path, "helper") and not is_kept(tmp_path, "other")
    assert printed(tmp_path, source, ("semi2k", 2, "Z2^32"), "argument", helpers=helpers) != first or "players" in text


def test_a_module_of_the_compiler_cannot_be_changed(tmp_path: Path) -> None:
    source = """
        import Compiler.types
        try:
            Compiler.types.sint = 5
        except CompilerError as error:
            print(error)
        """
    assert printed(tmp_path, source) == ["Compiler.types.sint cannot be changed: keep the value in the program"]


def test_our_own_helpers_are_kept(tmp_path: Path) -> None:
    names = sorted(path.stem for path in LIBRARY.glob("*.py"))
    source = f"import sys\nsys.path.insert(0, {str(LIBRARY)!r})\n" + textwrap.dedent(f"import {', '.join(names)}\n")
    printed(tmp_path, source)
    assert {n for n in names if str(LIBRARY / f"{n}.py") not in {path for path, _ in cached_helpers()}} == set()


KEPT = "LIMIT = 1\ndef get():\n    return LIMIT\nclass C:\n    n = 1"
CHANGES = {
    "a name": "print_ln('%s', kept.get())\nkept.LIMIT = 2",
    "a class": "print_ln('%s', kept.C.n)\nkept.C.n = 2",
    "a function": "print_ln('%s', kept.get())\nkept.get = lambda: 2",
    "setattr": "print_ln('%s', kept.get())\nsetattr(kept, 'LIMIT', 2)",
    "another helper": "import meddling\nprint_ln('%s', kept.get())\nmeddling.change()",
}


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES.keys())
def test_what_a_program_changes_in_a_helper_ends_with_the_run(text: str, tmp_path: Path) -> None:
    helpers = {"kept": KEPT, "meddling": "import kept\ndef change():\n    kept.LIMIT = 2"}
    plain = PATH + "import kept\nprint_ln('%s %s', kept.get(), kept.C.n)"
    assert printed(tmp_path, plain, helpers=helpers) == ["1 1"] and is_kept(tmp_path, "kept")
    for _ in range(3):
        assert printed(tmp_path, PATH + "import kept\n" + text) == ["1"]
    assert printed(tmp_path, plain) == ["1 1"]
