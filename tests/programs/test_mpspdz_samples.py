"""MP-SPDZ's own sample programs, unmodified, print the same here and there. Needs a built checkout at MP_SPDZ_HOME, from which the programs are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, run_program

from tests.long import LONG

from ..dsl.claims.spdz import HOME, NEEDED, Work, work

__all__ = ["work"]

SAMPLES = Path(HOME) / "Programs" / "Source"


@dataclass(frozen=True)
class Sample:
    """A sample program: its arguments, the ring, the text inputs of parties 0 and 1 that it asks for, and what it prints by name."""

    name: str
    args: tuple[str, ...] = ()
    ring: int = 64
    inputs: Mapping[int, Sequence[object]] = field(default_factory=dict)
    last: str = ""
    """What the last line says, as far as the program's source says so."""

    def __str__(self) -> str:
        return "-".join([self.name, *self.args])


NUMBERS = {party: [(7 * i * (party + 3)) % 101 for i in range(200)] for party in (0, 1)}
MIXED = {0: [3, 1.5, -2, 8.25, 4], 1: [-7, 20, 0.5, 90, 3]}
RUNNING = [
    Sample("aes_circuit", last="0x3ad77bb40d7a3660a89ecaf32466ef97"),
    Sample("bio", ("10",), inputs=NUMBERS),
    Sample("bio", ("12", "3"), inputs=NUMBERS),
    Sample("gc_and"),
    Sample("gc_and", ("100", "3")),
    Sample("l2h_comparison", last="comparison in VM: 0"),
    Sample("l2h_multiplication"),
    Sample("prf_mimc", ("1",)),
    Sample("test_dot", last="[[40, 34, 28, 22], [112, 97, 82, 67], [184, 160, 136, 112], [256, 223, 190, 157]]"),
    Sample("test_gc"),
    Sample("test_sbitint"),
    Sample("test_thread_mul", last="4"),
    Sample("tutorial", inputs=MIXED),
    Sample("vickrey", ring=128, inputs=NUMBERS),
    pytest.param(
        Sample("tpmpc_tutorial", inputs=NUMBERS, last="Average in intersection: 79.5"),
        marks=pytest.mark.skipif(not LONG, reason="minutes on both engines: KEYQUORUM_LONG=1"),
    ),
]


def printed_here(folder: Path, sample: Sample) -> list[str]:
    """What party 0 prints on the embedded engine, with the inputs of a folder."""
    printed: list[str] = []

    def one(session: _engine.Session) -> None:
        engine = session.engine("ring", f"Z2^{sample.ring}", "sample")
        io = ProgramIO.from_folder(folder, engine, str(sample))
        io.stdout = printed.append if session.party == 0 else lambda text: None
        try:
            run_program(engine, SAMPLES / f"{sample.name}.mpc", sample.args, io)
        except BaseException as error:
            session.abort(str(error))
            raise

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(one, _engine.local_sessions(3, 60.0)))
    return "".join(printed).splitlines()


@NEEDED
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sample", RUNNING, ids=str)
def test_the_same_as_on_mp_spdz(work: Work, sample: Sample) -> None:
    if sample.name == "aes_circuit":
        if not (Path(HOME) / "Programs" / "Circuits" / "aes_128.txt").exists():
            pytest.skip("MP-SPDZ without its circuits (make Programs/Circuits)")
        (work.folder / "Programs" / "Circuits").symlink_to(Path(HOME) / "Programs" / "Circuits")
    for party, numbers in sample.inputs.items():
        (work.folder / "Player-Data" / f"Input-P{party}-0").write_text(" ".join(map(str, numbers)))
    there = work.start("ring", sample.name, sample.args, compiler=["-R", str(sample.ring)], seconds=600)
    assert not there.failed, there.output[-2000:]
    here = printed_here(work.folder, sample)
    assert here == there.printed[0].splitlines()
    assert sample.last in (here[-1] if here else "")


@NEEDED
def test_the_page_lists_every_sample() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pages" / "dsl.md").read_text().partition("## MP-SPDZ's sample programs")[2]
    listed = re.findall(r"`([\w*-]+)`", page)
    for sample in SAMPLES.glob("*.mpc"):
        assert any(fnmatch(sample.stem, name) for name in listed), sample.stem
    assert {case.name for case in RUNNING if isinstance(case, Sample)} <= set(listed)
