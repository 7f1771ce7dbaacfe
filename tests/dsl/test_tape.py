"""Programs that run repeatedly are recorded and repeated with the data of each run, or are not recorded."""

from __future__ import annotations

import gc
import os
import textwrap
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import KeptEngine, ProgramIO, ShareVector
from keyquorum.dsl.control import imports
from keyquorum.dsl.recording import kept
from keyquorum.dsl.recording.recording import Recording
from keyquorum.dsl.values import secret
from keyquorum.model.errors import ProgramError

from .running import MALICIOUS_FIELDS, RING, SEMI, SEMI_2K, Backend, name

TIMES = 4
"""Runs of each program: as it is, recorded, and played twice."""


@dataclass
class Seen:
    """Results of several runs at one party."""

    outputs: list[np.ndarray] = field(default_factory=list)
    stored: list[np.ndarray] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    cost: list[dict[str, int]] = field(default_factory=list)
    recordings: list[Recording | None] = field(default_factory=list)
    described: list[str] = field(default_factory=list)


Data = Callable[[int, int], dict[str, Any]]


def runs(
    folder: Path, source: str, data: Data, backend: Backend = SEMI_2K, args: Sequence[str] = (), times: int = TIMES, records: bool = True,
    before: Callable[[int, Path], None] | None = None, path_of: Callable[[int], str] = lambda party: "program.mpc",
) -> list[Seen]:  # fmt: skip
    """Runs a program several times on kept engines. ``data(run, party)``: the fields of ProgramIO; ``before`` is called before each run,
    by party 0. ``path_of(party)``: the program's file."""
    protocol, n, domain = backend

    for party in range(n):
        (folder / path_of(party)).write_text(textwrap.dedent(source))

    def one(session: _engine.Session) -> Seen:
        path = folder / path_of(session.party)
        engine, seen = KeptEngine(session.engine(protocol, domain, "test"), records), Seen()
        try:
            for i in range(times):
                if before is not None and session.party == 0:
                    before(i, path)
                session.compare("next run", b"")
                io = ProgramIO(**data(i, session.party))
                io.stdout = seen.printed.append
                at = engine.engine.stats()
                engine.run(path, args, io)
                seen.cost.append({key: engine.engine.stats()[key] - at[key] for key in ("rounds", "bytes_sent", "offline_rounds")})
                seen.outputs.append(np.concatenate([np.empty(0, dtype=np.int64), *io.file_outputs]))
                seen.stored.append(io.shares.words.copy())
        except BaseException as error:
            session.abort(str(error))
            raise
        seen.recordings = list(engine.recordings.values())
        seen.described = [described(recording, engine.engine) for recording in seen.recordings if recording is not None]
        return seen

    with ThreadPoolExecutor(n) as pool:
        futures = [pool.submit(one, session) for session in _engine.local_sessions(n, 30.0)]
        errors = [e for e in (f.exception() for f in futures) if e is not None]
        if errors:
            raise next((e for e in errors if not isinstance(e, _engine.NetworkError)), errors[0])
        return [f.result() for f in futures]


def described(recording: Recording, engine: Any) -> str:
    """All that a recording holds: its steps, and constants, which are clear (the engine's recorder refuses others)."""
    return f"{recording.steps!r}{recording.steps.constants(engine)}"


def words(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def inputs(run: int, party: int) -> dict[str, Any]:
    """Public and private numbers below 1000 that differ from run to run."""
    rng = np.random.default_rng([run, 5])
    public, private = rng.integers(0, 1000, 4), np.random.default_rng([run, party]).integers(0, 1000, 4)
    return {"public_inputs": [public], "private_inputs": private}


START = """
from Compiler.library import *
from Compiler.types import *
public = cint(size=4)
fixinput(-1, public, 0, 0)
a, b = [sint.get_input_from(i, size=4, binary=True) for i in range(2)]
"""

PROGRAMS = {
    "sums and products": "((a + 3 * b) * public - a * b).reveal().binary_output()",
    "to one party": "(a * b + 1).reveal_to(1).binary_output()",
    "public numbers": "x = (a.reveal() + 5) % 16\n((x.to_regint() * 3 + regint.inc(4)) // 2).binary_output()\n(x << 2 >> 1).binary_output()",
    "comparisons of public numbers": "x = a.reveal()\n(x < 500).binary_output()\n(x.to_regint() >= public.to_regint()).binary_output()",
    "look-ups": "t = sint.Array(16)\nt.assign_vector(sint.concat([a, b, a, b]))\nt.get((a.reveal() % 16).to_regint()).reveal().binary_output()",
    "public tables": "t = cint.Array(4)\nt.assign_vector(a.reveal())\nt.get(regint([3, 2, 1, 0])).binary_output()",
    "loops": "t = sint.Array(4)\n@for_range(4)\ndef _(i):\n    t[i] = a[0] * b[1] + i\nt.get_vector().reveal().binary_output()",
    "powers and swaps": "x, y = (a % 2 if program.options.ring else a).cond_swap(a ** 3, b.square())\n(x + y).reveal().binary_output()\nabs(a.reveal() - public).binary_output()",
    "matrices": "M = sint.Matrix(2, 2)\nM.assign(a)\nM += M.schur(M) + b\n(M - M.transpose()).get_vector().reveal().binary_output()",
    "stored": "sint.write_to_file(a + b)\nsint.write_to_file([a, b])",
    "timers and texts": "start_timer(1)\n(a * b).reveal().binary_output()\nstop_timer(1)\nprint_ln('done')",
    "shares": "x = sint.read_from_file(2, size=4)[1][0]\n(x * a).reveal().binary_output()",
}
ON_BITS = {
    "bits": "rows = sbits.bit_decompose_clear(public, 10)\ns = [r & ~q for r, q in zip(a.bit_decompose(10, maybe_mixed=True), rows)]\nsint.bit_compose(s).reveal().binary_output()",
    "comparisons": "(a < b).reveal().binary_output()",
    "sorting": "t = Array.create_from(a)\nt.sort(n_bits=12)\nt.get_vector().reveal().binary_output()",
    "masked bits": "m = sint.get_random_bit(size=4)\nx = (a + m).reveal()\n(x - m - a).reveal().binary_output()",
}


def shares(run: int, party: int) -> dict[str, Any]:
    """Of additive sharing."""
    made = ShareVector.from_words(np.random.default_rng([run, party, 9]).integers(0, 1000, (1, 6), dtype=np.uint64))
    return {**inputs(run, party), "shares": made}


@pytest.mark.parametrize("backend", [SEMI_2K, SEMI, RING], ids=name)
@pytest.mark.parametrize("what", [*PROGRAMS, *ON_BITS])
def test_runs_that_are_played_do_what_the_program_does(what: str, backend: Backend, tmp_path: Path) -> None:
    if (what == "shares" and backend is RING) or (what in ON_BITS and backend is SEMI):
        pytest.skip("not of this domain")
    data = shares if what == "shares" else inputs
    source = START + {**PROGRAMS, **ON_BITS}[what]
    played = runs(tmp_path, source, data, backend)
    plainly = runs(tmp_path, source, data, backend, records=False)
    for one, other in zip(played, plainly, strict=True):
        for i in range(TIMES):
            assert np.array_equal(one.outputs[i], other.outputs[i])
            assert one.cost[i] == other.cost[i] and one.stored[i].shape == other.stored[i].shape
        assert one.recordings and all(recording is not None for recording in one.recordings) and other.recordings == []
    if what == "stored":
        total = sum(seen.stored[i] for i in range(TIMES) for seen in played[:1])
        assert total.any()
    elif what not in ("timers and texts", "masked bits", "comparisons", "comparisons of public numbers", "to one party"):
        assert len({o.tobytes() for o in played[0].outputs}) == TIMES


FAR = "F_1729382256910270481"


@pytest.mark.parametrize("backend", [*MALICIOUS_FIELDS[::2], ("mal-rep-field", 3, FAR), ("mal-shamir", 3, FAR)], ids=name)
def test_comparisons_under_masks_that_hide_every_number(backend: Backend, tmp_path: Path) -> None:
    """Masks are fresh in every repetition. Over a prime far from powers of two the number of draws is data, so nothing is recorded."""
    source = START + "(a.less_than(b, 10) + 2 * a.equal(b, 10)).reveal().binary_output()\n(a * 100).right_shift(3, 18).reveal().binary_output()"
    played = runs(tmp_path, source, inputs, backend)
    for i in range(TIMES):
        a, b = (inputs(i, party)["private_inputs"] for party in range(2))
        assert all(np.array_equal(seen.outputs[i], np.concatenate([(a < b) + 2 * (a == b), a * 100 >> 3])) for seen in played)
    assert all((recording is None) == (backend[2] == FAR) for seen in played for recording in seen.recordings)


LOOKS = {
    "a branch": "x = a.reveal()\n@if_(x[0] > 500)\ndef _():\n    print_ln('large')",
    "a loop's length": "x = a.reveal().to_regint()\nn = regint(0)\n@for_range(x[0] % 4)\ndef _(i):\n    n.update(n + i)\nn.binary_output()",
    "a place": "t = sint.Array(1000)\nt[a.reveal().to_regint()[0]] = b[0]\nt.get_vector().sum().reveal().binary_output()",
    "a text": "print_ln('%s', a.reveal())",
    "a slice of the share file": "sint.write_to_file(a)\nx = b.reveal().to_regint()\nsint.write_to_file(a, x[0] % 4)",
}


@pytest.mark.parametrize("text", LOOKS.values(), ids=LOOKS.keys())
def test_programs_that_data_steers_are_run_every_time(text: str, tmp_path: Path) -> None:
    played, plainly = (runs(tmp_path, START + text, inputs, records=records) for records in (True, False))
    assert [seen.recordings for seen in played] == [[None], [None]]
    assert played[0].printed == plainly[0].printed
    for one, other in zip(played, plainly, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(one.outputs, other.outputs, strict=True))


OUTSIDE = {
    "the clock": "import time\nx = time.perf_counter_ns() % (1 << 40)",
    "own randomness": "import os\nx = int.from_bytes(os.urandom(5), 'little')",
    "a function of os": "from os import urandom\nx = urandom(5)",
    "another name of os": "import os as system\nx = system.getpid()",
    "os by name": "import os\nx = getattr(os, 'get' + 'pid')()",
    "numpy": "import numpy\nx = int(numpy.random.default_rng().integers(5))",
    "the environment": "import os\nx = len(os.environ)",
    "a file": "x = open(program.infile).read().count('x')",
    "a file that is there": "import os\nx = os.path.exists('x')",
    "arguments of the process": "import sys\nx = len(sys.argv)",
    "an identity": "x = id(object()) % 5",
    "a hash": "x = hash(object()) % 5",
    "a hash of a text": "x = hash('text') % 5",
    "a hash by its method": "x = object().__hash__() % 5",
    "a text that has the address": "x = repr(object())",
    "the same by its method": "x = object.__repr__(object())",
    "the same in ASCII": "x = ascii(object())",
    "a text of an object of its own": "class C:\n    pass\nx = len(str(C()))",
    "a text in a text": "class C(object):\n    pass\nx = len(f'{C()}')",
    "a set of objects": "class C:\n    pass\nx = len({C()})",
    "an object of an abstract class": "from abc import ABC\nclass C(ABC):\n    pass\nx = len(str(C()))",
    "the context of decimals": "import decimal\nx = decimal.getcontext().prec",
    "a name that a library gives to nobody": "import functools\nx = functools.recursive_repr() is None",
    "another module of a package": "import collections.abc\nx = 5",
}
HELPED = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '.'))\n"


@pytest.mark.parametrize("text", OUTSIDE.values(), ids=OUTSIDE.keys())
@pytest.mark.parametrize("helper", [False, True], ids=["program", "helper"])
def test_what_is_no_input_is_not_recorded(helper: bool, text: str, tmp_path: Path) -> None:
    if helper:
        if "program." in text:
            pytest.skip("helpers do not see the program")
        lines = text.split("\n")
        (tmp_path / "helper.py").write_text("\n".join([*lines[:-1], "def value():", f"    {lines[-1]}", "    return x", ""]))
        text = f"{HELPED}import helper\nhelper.value()"
    seen = runs(tmp_path, START + text + "\na.reveal().binary_output()", inputs)
    assert all(s.recordings == [None] for s in seen)


def test_what_is_pure_is_recorded(tmp_path: Path) -> None:
    helper = """
        import math, os.path
        from abc import ABC
        from decimal import Context, Decimal, localcontext
        from functools import reduce
        from itertools import pairwise

        class Point(object):
            def __init__(self, x):
                self.x = x

            def __eq__(self, other):
                return self.x == other.x

            def __hash__(self):
                return self.x

            def __str__(self):
                return "named"

        def value():
            with localcontext(Context(prec=5)):
                third = int(Decimal(1) / Decimal(3) * 100000)
            assert isinstance(3, object) and isinstance(Point(1), object) and issubclass(int, object) and not isinstance(3, Point)
            points = {Point(1): 2, Point(2): 3}
            pairs = sum(b - a for a, b in pairwise([1, 4, 9]))
            return third + math.comb(5, 2) + reduce(max, [1, 2]) + points[Point(2)] + len(f"{Point(4)}") + len(os.path.basename("a/b")) + pairs
    """
    (tmp_path / "helper.py").write_text(textwrap.dedent(helper))
    source = START + HELPED + "from dataclasses import dataclass\nimport helper\n@dataclass(frozen=True)\nclass P:\n    x: int\n"
    source += "n = {P(1): 5}[P(1)] + len(f'{P(2)}')\n(a.reveal() + helper.value() + n).binary_output()"
    seen, plainly = (runs(tmp_path, source, inputs, records=records) for records in (True, False))
    assert all(recording is not None for s in seen for recording in s.recordings) and seen[0].recordings
    for one, other in zip(seen, plainly, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(one.outputs, other.outputs, strict=True))


@pytest.mark.parametrize("text", ["sint.seen = getattr(sint, 'seen', 0) + 1", "__builtins__['seen'] = __builtins__.get('seen', 0) + 1"])
def test_what_is_kept_outside_the_program_ends_the_recording(text: str, tmp_path: Path) -> None:
    """In a type of the language, or among the built-in functions."""
    try:
        seen = runs(tmp_path, f"{START}{text}\na.reveal().binary_output()", inputs)
    finally:
        if "sint" in text:
            del secret.sint.seen
        else:
            del imports._BUILTINS["seen"]
    assert all(s.recordings == [None] for s in seen)


def test_what_is_printed_to_a_file_ends_the_recording(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("from io import StringIO\n")
    seen = runs(tmp_path, f"{START}{HELPED}print('x', file=sys.stderr)\na.reveal().binary_output()", inputs)
    assert all(s.recordings == [None] for s in seen)


@pytest.mark.parametrize("backend", [SEMI_2K, RING], ids=name)
def test_shuffles_are_others_in_every_run(backend: Backend, tmp_path: Path) -> None:
    """Switching networks have control bits that the front end draws, which no recording may hold."""
    source = "from Compiler.types import *\nx = sint.Array(24)\nx.assign_vector(sint(cint(regint.inc(24))))\nx.secure_shuffle()\nx.get_vector().reveal().binary_output()"
    seen = runs(tmp_path, source, lambda run, party: {}, backend, times=6)
    assert len({output.tobytes() for output in seen[0].outputs}) == 6
    assert all(sorted(output.tolist()) == list(range(24)) for output in seen[0].outputs)


ONE_PARTY_CANNOT = "p = (a * b).reveal_to(1)\nq = p * 3 + public\nq.binary_output()\nsint(q).reveal().binary_output()"


@pytest.mark.parametrize("backend", [SEMI_2K, RING, SEMI], ids=name)
@pytest.mark.parametrize("why", ["one party cannot record", "sizes at one party", "a file of one party"])
def test_some_play_and_others_run_the_program(why: str, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The communication is the same, so the parties stay in step."""
    monkeypatch.setattr(kept, "CHECK_EVERY", 0.0)
    source = START + (ONE_PARTY_CANNOT if why == "one party cannot record" else "((a * b + cint([1, 2, 3, 4])) * b).reveal().binary_output()")

    def data(run: int, party: int) -> dict[str, Any]:
        given = inputs(run, party)
        if why == "sizes at one party" and party == 1 and run % 2:
            given["private_inputs"] = np.concatenate([given["private_inputs"], words(7)])
        return given

    def path_of(party: int) -> str:
        return f"program-{party}.mpc" if why == "a file of one party" else "program.mpc"

    def before(run: int, path: Path) -> None:
        if why == "a file of one party" and run == 4:
            os.utime(path.with_name("program-0.mpc"), (1, 1))

    played, plainly = (runs(tmp_path, source, data, backend, times=7, records=records, before=before, path_of=path_of) for records in (True, False))
    for one, other in zip(played, plainly, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(one.outputs, other.outputs, strict=True))
        assert one.cost == other.cost
    assert any(recording is not None for seen in played for recording in seen.recordings)


def test_outputs_are_the_caller_s(tmp_path: Path) -> None:
    outputs: list[list[int]] = []

    def data(run: int, party: int) -> dict[str, Any]:
        return {}

    class Changed(list):  # type: ignore[type-arg]
        def append(self, words: np.ndarray) -> None:
            outputs.append(words.tolist())
            words.fill(99)

    (tmp_path / "program.mpc").write_text("from Compiler.types import *\nregint([1, 2, 3]).binary_output()\n")
    engine = KeptEngine(_engine.local_sessions(1, 30.0)[0].engine("emulate", "Z2^64", "test"))
    for _ in range(5):
        engine.run(tmp_path / "program.mpc", [], ProgramIO(binary_outputs=Changed(), **data(0, 0)))
    assert outputs == [[1, 2, 3]] * 5


def test_nothing_of_a_recorded_run_waits_for_python_s_search_for_cycles(tmp_path: Path) -> None:
    (tmp_path / "program.mpc").write_text(
        "from Compiler.types import *\nx = sint.read_from_file(0, size=4)[1][0]\n(x * x).reveal().binary_output()\n"
    )
    engine = KeptEngine(_engine.local_sessions(1, 30.0)[0].engine("emulate", "Z2^64", "test"))
    gc.disable()
    try:
        for _ in range(4):
            share = ShareVector.from_words(np.arange(4, dtype=np.uint64).reshape(1, 4))
            gone = weakref.ref(share)
            engine.run(tmp_path / "program.mpc", [], ProgramIO(shares=share))
            del share
            assert gone() is None
    finally:
        gc.enable()
    assert engine.recordings and None not in engine.recordings.values()


def test_recorded_runs_hold_a_bounded_number_of_elements(tmp_path: Path) -> None:
    source = f"from Compiler.types import *\nfor _ in range(9):\n    x = sint.get_random(size={_engine.MOST_ELEMENTS // 8})\nx.sum().reveal().binary_output()"
    assert runs(tmp_path, source, lambda run, party: {}, times=3)[0].recordings == [None]


def test_a_helper_that_keeps_something_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text("seen = []\ndef count():\n    seen.append(1)\n    return len(seen)\n")
    source = "import os, sys\nsys.path.insert(0, os.path.dirname(program.infile))\nimport counting\n(cint(size=2) + counting.count()).binary_output()"
    seen = runs(tmp_path, source, lambda run, party: {})
    assert all(s.recordings == [None] for s in seen) and all(o.tolist() == [1, 1] for o in seen[0].outputs)


def test_randomness_is_drawn_in_every_run(tmp_path: Path) -> None:
    seen = runs(tmp_path, "from Compiler.types import *\nsint.get_random(size=4).reveal().binary_output()", lambda run, party: {}, times=6)
    assert len({x for output in seen[0].outputs for x in output.tolist()}) == 24 and seen[0].recordings[0] is not None


def test_shares_that_are_not_aligned_in_memory_are_refused() -> None:
    misaligned = np.frombuffer(bytearray(1 + 4 * 6), "<u4", 6, 1).reshape(1, 6)
    assert not misaligned.flags.aligned
    with pytest.raises(ValueError, match="not aligned in memory: copy it"):
        ShareVector.from_sections([misaligned.copy(), misaligned])
    engine = _engine.local_sessions(1, 30.0)[0].engine("emulate", "Z2^64", "test")
    empty = _engine.Recording.of(_engine.Recorder())
    assert empty is not None
    with pytest.raises(_engine.UsageError, match="not aligned in memory: copy it"):
        empty.play(engine, [misaligned], 1, [], np.empty(0, np.int64), print)


def test_outputs_of_played_programs_are_those_of_the_program(tmp_path: Path) -> None:
    """Outputs for all parties, for one player, and revealed to one party; shares are appended to the share file."""
    source = """
    from Compiler.types import *
    x = sint.read_from_file(0, size=3)[1][0] + sint.get_input_from(0, size=3, binary=True)
    (x * x).reveal().binary_output()
    x.reveal().binary_output(1)
    x.reveal_to(0).binary_output()
    sint.write_to_file(x)
    """
    (tmp_path / "program.mpc").write_text(textwrap.dedent(source))

    def one(session: _engine.Session) -> tuple[list[list[list[int]]], list[int], bool]:
        kept_engine, seen, stored = KeptEngine(session.engine("semi2k", "Z2^64", "test")), [], []
        for i in range(4):
            shares = ShareVector.from_words(np.full((1, 3), 10, np.uint64))
            private = np.arange(3 * (session.party == 0), dtype=np.int64) + i
            written = kept_engine.outputs(tmp_path / "program.mpc", (), private, (), shares)
            seen.append([words.tolist() for words in written])
            stored.append(shares.length)
        [made] = kept_engine.recordings.values()
        return seen, stored, made is not None

    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(one, _engine.local_sessions(2, 30.0))
    for i in range(4):
        x = [20 + i, 21 + i, 22 + i]
        assert ours[0][i] == [[v * v for v in x], x]
        assert theirs[0][i] == [[v * v for v in x], x]
    assert ours[1] == theirs[1] == [6] * 4
    assert ours[2] and theirs[2]


def test_share_files_that_a_program_leaves_alone_may_be_of_any_form(tmp_path: Path) -> None:
    (tmp_path / "program.mpc").write_text("from Compiler.types import *\ncint(7, size=2).binary_output()\n")
    engine = KeptEngine(_engine.local_sessions(1, 30.0)[0].engine("emulate", "Z2^64", "test"))
    for _ in range(4):
        engine.run(tmp_path / "program.mpc", [], ProgramIO(shares=ShareVector.from_words(np.ones((2, 3), dtype=np.uint64))))


def test_another_version_of_the_program_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "CHECK_EVERY", 0.0)

    def change(run: int, path: Path) -> None:
        if run == 3:
            path.write_text("from Compiler.types import *\ncint(700, size=3).binary_output()\n")

    seen = runs(tmp_path, "from Compiler.types import *\ncint(7, size=2).binary_output()", lambda run, party: {}, times=6, before=change)
    assert [output.tolist() for output in seen[0].outputs] == [[7, 7]] * 3 + [[700] * 3] * 3


def test_other_arguments_and_sizes_have_recordings_of_their_own(tmp_path: Path) -> None:
    source = "from Compiler.library import *\nfrom Compiler.types import *\nn = int(program.args[1])\nx = cint(size=n)\nfixinput(-1, x, 0, 0)\n(x + 1).binary_output()"
    seen = runs(tmp_path, source, lambda run, party: {"public_inputs": [words(run, 2, 3, 4)[: 3 + run % 2]]}, args=["3"], times=6)
    assert [output.tolist() for output in seen[0].outputs] == [[run + 1, 3, 4] for run in range(6)] and len(seen[0].recordings) == 2


def test_large_runs_and_long_programs_are_not_recorded(tmp_path: Path) -> None:
    source = "from Compiler.library import *\nfrom Compiler.types import *\nn = int(program.args[1])\nx = cint(size=n)\nfixinput(-1, x, 0, 0)\nx.binary_output()"
    many = kept.MOST_WORDS + 1
    assert runs(tmp_path, source, lambda run, party: {"public_inputs": [np.zeros(many, dtype=np.int64)]}, args=[str(many)])[0].recordings == []
    source = (
        f"from Compiler.types import *\nx = sint.get_random()\nfor i in range({_engine.MOST_STEPS + 1}):\n    x = x + 1\nx.reveal().binary_output()"
    )
    assert runs(tmp_path, source, lambda run, party: {})[0].recordings == [None]


def test_failures_of_a_played_run_name_the_program(tmp_path: Path) -> None:
    source = START + "t = sint.Array(1000)\nt.get(public.to_regint()).reveal().binary_output()"

    def data(run: int, party: int) -> dict[str, Any]:
        return {**inputs(run, party), "public_inputs": [words(1, 2, 3, 1000 if run == 3 else 999)]}

    with pytest.raises(ProgramError, match=r"^program.mpc: overflow: index 1000, length 1000$"):
        runs(tmp_path, source, data)


@pytest.mark.parametrize("what", [*PROGRAMS, *ON_BITS])
def test_recordings_hold_nothing_of_the_data(what: str, tmp_path: Path) -> None:
    """Those of runs with other data are the same."""
    made = []
    for first in (0, 100):
        source = START + {**PROGRAMS, **ON_BITS}[what]
        seen = runs(tmp_path, source, lambda run, party, first=first: shares(run + first, party))  # type: ignore[misc]
        assert all(s.described for s in seen)
        made.append([s.described for s in seen])
    assert made[0] == made[1]
