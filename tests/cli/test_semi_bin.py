"""Programs on bits alone: semi-bin with MP-SPDZ's command line, and on MP-SPDZ itself where MP_SPDZ_HOME is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from keyquorum.backends.mpspdz import Checkout
from keyquorum.backends.mpspdz.certificates import make_certificate
from keyquorum.cli import compile_run
from keyquorum.model.errors import ParameterError

from tests.commands import run

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts" / "compile-run.py"
SOURCE = """
t = sbits.get_type(16)
a, b = t.get_input_from(0), t.get_input_from(1)
total = sbits.bit_compose(sbits.bit_adder(a.bit_decompose(), b.bit_decompose()))
print_ln('%s %s %s %s', (a & b).reveal(), (a ^ b).reveal(), (~a).reveal(), total.reveal())
c = t.get_input_from(0, 4)
print_ln('%s %s', c.reveal(), t.get_input_from(1, 16).reveal())
r = [sbit.get_random_bit() for _ in range(60)]
s = sbits.bit_compose(r)
print_ln('%s', (s ^ s).reveal())
start_timer(1)
lanes = sbits.get_type(60)
ones = lanes((1 << 60) - 1)
x = lanes(5)
for _ in range(3):
    x = x & ones
stop_timer(1)
print_ln('%s', x.bit_decompose(3)[2].if_else(a, b).reveal())
"""
INPUTS = {0: [1234, 11], 1: [-77, 32767]}
WANTED = [f"{1234 & -77} {1234 ^ -77} {~1234} {1234 - 77}", "11 32767", "0", "1234"]


def work_folder(folder: Path, source: str = SOURCE) -> Path:
    """The program ``bits`` with its inputs, where MP-SPDZ has them."""
    (folder / "Programs" / "Source").mkdir(parents=True)
    (folder / "Programs" / "Source" / "bits.mpc").write_text(source)
    (folder / "Player-Data").mkdir()
    for party, numbers in INPUTS.items():
        (folder / "Player-Data" / f"Input-P{party}-0").write_text(" ".join(map(str, numbers)) + "\n")
    return folder


def script(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *args]
    return run(command, folder)


@pytest.mark.parametrize("options", [["-B", "64", "-E", "semi-bin"], ["semi-bin-party.x"], ["-E", "emulate"], ["-E", "semi2k"]], ids=" ".join)
def test_a_program_on_bits(tmp_path: Path, options: list[str]) -> None:
    """The same lines on bits alone and beside arithmetic; three parties as well."""
    folder = work_folder(tmp_path)
    for parties in ([], ["--", "-N", "3"]) if options[0] == "-B" else ([],):
        done = script(folder, *options, "Programs/Source/bits.mpc", *parties)
        assert done.returncode == 0, done.stderr
        assert [line for line in done.stdout.splitlines() if line[0] in "-0123456789"] == WANTED
        assert ("Time1 = " in done.stdout and "offline phase" in done.stdout) or options[-1] == "emulate"


@pytest.mark.skipif("MP_SPDZ_HOME" not in os.environ, reason="MP_SPDZ_HOME is not set")
def test_the_same_program_on_mp_spdz(tmp_path: Path) -> None:
    checkout, folder = Checkout.find(None), work_folder(tmp_path)
    for name in ("Programs/Bytecode", "Programs/Schedules", "Programs/Public-Input", "Persistence", "logs"):
        (folder / name).mkdir()
    for party in range(2):
        make_certificate(folder / "Player-Data", party)
    command = [str(checkout.path / "Scripts" / "compile-run.py"), "-B", "64", "-E", "semi-bin", "bits", "--", "-e"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line[0] in "-0123456789"] == WANTED


def test_random_bits_are_not_constant(tmp_path: Path) -> None:
    source = "print_ln('%s', sbits.bit_compose([sbit.get_random_bit() for _ in range(60)]).reveal())\n"
    folder = work_folder(tmp_path, source)
    seen = {script(folder, "semi-bin", "Programs/Source/bits.mpc").stdout.splitlines()[0] for _ in range(2)}
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("sint(5)", "semi-bin computes on bits alone, sint needs an arithmetic domain: use sbits, or semi2k or semi"),
        ("sint.get_random_bit()", "sint needs an arithmetic domain"),
        ("cint(1)", "cint needs an arithmetic domain"),
        ("from Compiler.types import sint; sint.Array(5)", "sint needs an arithmetic domain"),
        ("sbits.get_type(8).get_input_from(0)", "input out of range for a 8-bit (un)signed integer: a number of party 0"),
        ("[sbits.get_type(16).get_input_from(1) for _ in range(3)]", "Player-Data/Input-P1-0 has 2 values, the program wants at least 3"),
        ("sbits.get_type(8).get_input_from(0, 9)", "takes 1 to 8 bits, not 9"),
        ("sbits.get_type(8).get_input_from(2)", "there is no party 2 among 2"),
    ],
)
def test_refusals(tmp_path: Path, source: str, text: str) -> None:
    """One line that names the culprit; numbers themselves are private and not shown."""
    done = script(work_folder(tmp_path, source + "\n"), "semi-bin", "Programs/Source/bits.mpc")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and text in done.stderr, done.stderr
    assert "1234" not in done.stderr


def test_programs_of_the_collection_need_arithmetic(tmp_path: Path) -> None:
    """Programs of the collection have inputs and shares of numbers, which a protocol on bits does not have."""
    done = script(tmp_path, "semi-bin", "sample_cbd", "64")
    assert done.returncode == 1 and "sint needs an arithmetic domain" in done.stderr


def test_options() -> None:
    for words, text in (
        (["-B", "64", "-E", "ring", "bits"], "option -B has no meaning for ring"),
        (["-E", "semi-bin", "-R", "64", "bits"], "bits alone"),
        (["-E", "semi-bin", "bits", "--", "-P", "65537"], "bits alone"),
    ):
        with pytest.raises(ParameterError, match=text):
            _ = compile_run.request(compile_run.parse(words)).domain
    asked = compile_run.request(compile_run.parse(["-E", "semi-bin", "bits"]))
    assert (asked.size, asked.domain) == (2, "bits")
