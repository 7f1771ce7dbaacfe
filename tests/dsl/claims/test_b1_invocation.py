"""Invocation and imports of MP-SPDZ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from keyquorum.model.errors import ProgramError

from ..running import EMULATE, printed, run
from .spdz import FIELD, NEEDED, Work, encrypted, needs, work

__all__ = ["work"]

HELPER = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '..', 'Library'))\n"


@NEEDED
def test_everything_lies_in_the_folder_of_the_call(work: Work) -> None:
    """... and the program's name is that of the file and its arguments, joined with dashes."""
    work.source("print_ln('%s', program.args)\nsint.write_to_file(sint(1))\ncint(5).binary_output()")
    done = work.start("ring", args=[12, "x"])
    assert done.printed[0] == "[kq_claim, 12, x]\n"
    places = ("Programs/Bytecode/kq_claim-12-x-0.bc", "Programs/Schedules/kq_claim-12-x.sch", "Player-Data/Binary-Output-P0-0",
              "Persistence/Transactions-P0.data", "logs/kq_claim-12-x-1")  # fmt: skip
    assert [p for p in places if not (work.folder / p).exists()] == []


@NEEDED
def test_certificates_of_all_parties_are_needed(work: Work) -> None:
    (work.folder / "Player-Data" / "P2.pem").unlink()
    done = work.run("ring", "print_ln('%s', sint(1).reveal())", seconds=15)  # the others wait for the party without
    assert done.failed and not any(done.printed)


@NEEDED
def test_a_name_of_a_program_there_is_ambiguous(work: Work) -> None:
    work.source("print_ln('mine')", "tutorial")
    done = work.start("emulate", "tutorial")
    assert done.failed and "ambiguous" in done.output.lower()


@NEEDED
def test_imports(work: Work) -> None:
    """A plain import fails and __file__ is unknown; helpers are found by program.infile and take names by import."""
    (work.folder / "Programs" / "Source" / "kq_helper.py").write_text("from Compiler.types import sint\ntwo = lambda: sint(2)\n")
    assert "No module named 'kq_helper'" in work.run("emulate", "import kq_helper").output
    assert "__file__" in work.run("emulate", "print(__file__)").output
    library = work.folder / "Programs" / "Library"
    library.mkdir()
    (work.folder / "Programs" / "Source" / "kq_helper.py").rename(library / "kq_helper.py")
    text = HELPER + "import kq_helper\nprint_ln('%s', kq_helper.two().reveal())"
    assert work.lines("emulate", text) == ["2"]
    (library / "kq_helper.py").write_text("two = lambda: sint(2)\n")
    assert "name 'sint' is not defined" in work.run("emulate", text).output


def test_imports_here(tmp_path: Path) -> None:
    text = HELPER + "import kq_helper\nprint_ln('%s', kq_helper.two().reveal())"
    with pytest.raises(ProgramError, match="No module named 'kq_helper'"):
        run(tmp_path, "import kq_helper", helpers={"kq_helper": "x = 1"})
    with pytest.raises(ProgramError, match="__file__"):
        run(tmp_path, "print(__file__)")
    assert printed(tmp_path, text, helpers={"kq_helper": "from Compiler.types import sint\ntwo = lambda: sint(2)\n"}) == ["2"]
    with pytest.raises(ProgramError, match="'sint' is not defined"):
        run(tmp_path, text, EMULATE, helpers={"kq_helper": "two = lambda: sint(2)\n"})


@NEEDED
@pytest.mark.parametrize(
    ("protocol", "parties", "split", "ring"),
    [("ring", 3, "3", "64"), ("semi2k", 2, "2", "64"), ("semi2k", 3, "3", "64"), ("spdz2k", 2, "False", "64"),
     ("rep-field", 3, "False", "0"), ("shamir", 3, "False", "0"), ("semi", 2, "False", "0"), ("mascot", 2, "False", "0")],
)  # fmt: skip
def test_what_a_protocol_sets(tmp_path: Path, protocol: str, parties: int, split: str, ring: str) -> None:
    """The embedded engine: tests/dsl/test_namespace.py."""
    needs(protocol)
    text = """
        print('settings', program.use_split(), program.options.ring, program.use_dabit, program.use_edabit())
        print_ln('%s', (sint(6) * sint(7)).reveal())
        """
    prime = list(FIELD) if ring == "0" else []
    done = Work(tmp_path, parties).run(protocol, text, run_time=[*prime, *encrypted(protocol)])
    assert f"settings {split} {ring} " in done.output, done.output[-1000:]
    assert done.printed[0] == "42\n"


@NEEDED
@pytest.mark.parametrize(
    ("protocol", "parties", "threshold"),
    [("shamir", 3, 1), ("shamir", 4, 1), ("shamir", 5, 1), ("shamir", 5, 2), ("semi2k", 4, None), ("semi", 4, None), ("spdz2k", 3, None)],
)
def test_numbers_of_parties(tmp_path: Path, protocol: str, parties: int, threshold: int | None) -> None:
    """By PLAYERS and THRESHOLD in the environment."""
    needs(protocol)
    names = {"THRESHOLD": str(threshold)} if threshold else {}
    prime = list(FIELD) if protocol in ("shamir", "semi") else []
    done = Work(tmp_path, parties).run(
        protocol, "print_ln('%s %s', get_number_of_players(), (sint(6) * sint(7)).reveal())", names=names,
        run_time=[*prime, *encrypted(protocol)],
    )  # fmt: skip
    assert not done.failed and done.printed == [f"{parties} 42\n"] * parties


@NEEDED
@pytest.mark.parametrize(("protocol", "clear"), [("semi2k", True), ("ring", False)])
def test_links_of_dishonest_majority_protocols_are_in_the_clear_without_e(tmp_path: Path, protocol: str, clear: bool) -> None:
    """Without certificates nothing encrypted starts."""
    needs(protocol)
    work = Work(tmp_path, 3 if protocol == "ring" else 2)
    for path in (work.folder / "Player-Data").iterdir():
        path.unlink()
    text = "print_ln('%s', sint(1).reveal())"
    assert work.run(protocol, text).failed != clear
    assert work.run(protocol, text, run_time=encrypted(protocol)).failed


@NEEDED
def test_ports(work: Work) -> None:
    """PORT, or one from 10000 on."""
    assert "-pn 15432" in work.run("ring", "print_ln('x')", names={"PORT": "15432"}).output
    drawn = re.search(r"-pn (\d+)", work.run("ring", "print_ln('x')", names={"PORT": ""}).output)
    assert drawn and 10000 <= int(drawn[1]) < 20000
