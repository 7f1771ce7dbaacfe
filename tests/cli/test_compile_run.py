"""MP-SPDZ's command line on the embedded engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from keyquorum.cli import compile_run
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.resources import find_program, program_path
from keyquorum.plans.program import ProgramRequest

from tests.commands import run

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts" / "compile-run.py"
Q60, M61 = "1152921504606584833", "2305843009213693951"


def script(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    names = {k: v for k, v in os.environ.items() if k not in ("PLAYERS", "THRESHOLD")} | environment
    command = [sys.executable, str(SCRIPT), *args]
    return run(command, folder, environment=names)


@pytest.mark.parametrize(
    "options",
    [
        ["-E", "ring", "-R", "64", "-Z", "3", "sample_cbd", "100", "bits"],
        ["-E", "rep-field", "sample_cbd", "100", "bits", "--", "-P", Q60, "-e"],
        ["-E", "shamir", "-P", M61, "sample_cbd", "100", "arith", "--", "-N", "5", "-T", "2"],
        ["emulate", "sample_cbd", "100", "bits"],
    ],
    ids=lambda o: next(w for w in o if not w.startswith("-")),
)
def test_runs(tmp_path: Path, options: list[str]) -> None:
    done = script(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert "Time = " in done.stdout and "Data sent = " in done.stdout
    assert list((tmp_path / "Persistence").iterdir())


def test_players_come_from_the_environment(tmp_path: Path) -> None:
    done = script(tmp_path, "shamir", "sample_cbd", "10", "arith", PLAYERS="5", THRESHOLD="1")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "Persistence").iterdir())) == 5


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for args, text in (
        (["-E", "rep-field", "-R", "64", "sample_cbd", "10"], "-P"),
        (["-E", "mascot", "-P", "65537", "sample_cbd", "10"], "more than 32 bits"),
        (["ring", "sample_cbd", "none"], "size"),
        (["ring", "nothing"], "no program 'nothing'"),
        (["--wrong", "ring", "sample_cbd"], "no such option: --wrong"),
    ):
        done = script(tmp_path, *args)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and text in done.stderr, done.stderr


def asked(*words: str) -> ProgramRequest:
    return compile_run.request(compile_run.parse(words))


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAYERS", raising=False)
    monkeypatch.delenv("THRESHOLD", raising=False)


def test_the_protocol_is_an_option_or_the_first_word() -> None:
    for words in (["-E", "ring", "p", "1"], ["ring", "p", "1"], ["-Ering", "p", "1"], ["p", "1", "--execute=ring"]):
        assert asked(*words) == ProgramRequest("p", ("1",), "ring")
    for name, short in (("replicated-field-party.x", "rep-field"), ("replicated-ring", "ring"), ("emulate.x", "emulate")):
        assert asked(name, "p").protocol == short


def test_options_that_are_used() -> None:
    got = asked("-R", "72", "ring", "p", "7", "--", "-R", "72", "-N", "3")
    assert (got.ring, got.parties, got.args) == (72, None, ("7",))
    assert asked("semi2k", "-Z", "4", "p", "--", "-N", "4").size == 4
    assert asked("semi", "p").size == 2
    got = asked("shamir", "-F", "18", "p", "--", "--prime", Q60, "--nparties", "5", "-T", "1")
    assert (got.field, got.prime, got.parties, got.threshold) == (18, int(Q60), 5, 1)


def test_options_without_effect() -> None:
    plain = asked("ring", "p", "1")
    for option in compile_run.COMPILE_OPTIONS:
        if option.action == "take":
            words = [option.short or option.long, *(["1"] if option.value else [])]
            assert asked(*words, "ring", "p", "1") == plain
    for option in compile_run.RUN_TIME_OPTIONS:
        if option.action == "take":
            words = [option.long, *(["1"] if option.value else [])]
            assert asked("ring", "p", "1", "--", *words) == plain


def test_options_that_are_refused() -> None:
    refused = 0
    for options, late in ((compile_run.COMPILE_OPTIONS, False), (compile_run.RUN_TIME_OPTIONS, True)):
        for option in options:
            if option.action in ("take", "use"):
                continue
            for name in filter(None, (option.short, option.long)):
                words = [name, *(["1"] if option.value else [])]
                line = ["ring", "p", "--", *words] if late else [*words, "ring", "p"]
                with pytest.raises(ParameterError, match=re.escape(option.action)) as error:
                    asked(*line)
                assert "\n" not in str(error.value)
                refused += 1
    assert refused > 30


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["p"], "no protocol"),
        (["-E", "ring"], "no program"),
        (["ring", "p", "-F", "18"], "modulo 2^k"),
        (["-Z", "2", "ring", "p"], "3 summands"),
        (["-Z", "3", "rep-field", "p"], "-Z is for ring, mal-rep-ring and semi2k"),
        (["-Z", "3", "semi2k", "p"], "2 summands"),
        (["semi2k", "-F", "18", "p"], "modulo 2^k"),
        (["-P", M61, "shamir", "p", "--", "-P", Q60], "two values of the prime"),
        (["-R", "sixty", "ring", "p"], "ring is a number"),
        (["ring", "p", "--", "-N"], "needs a value"),
        (["ring", "p", "--", "-N", "4"], "3 parties"),
        (["ring", "p", "--", "-m", "old"], "memory is not kept"),
        (["ring", "p", "--", "--threads"], "unknown run-time option '--threads'"),
    ],
)
def test_mistakes(words: list[str], text: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(text)):
        asked(*words)


@pytest.mark.skipif(not os.environ.get("MP_SPDZ_HOME"), reason="MP_SPDZ_HOME is not set")
def test_every_option_of_mp_spdz_is_known() -> None:
    home = Path(os.environ["MP_SPDZ_HOME"])
    shown = subprocess.run(
        [sys.executable, str(home / "Scripts" / "compile-run.py"), "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    theirs = set(re.findall(r"--[A-Za-z_-]+", shown.split("ptions:")[-1])) - {"--help", "--field", "--prime"}
    known = {option.long for option in compile_run.COMPILE_OPTIONS}
    assert theirs - known == set() and len(theirs) > 25
    for binary in ("replicated-ring-party.x", "replicated-field-party.x", "shamir-party.x"):
        done = subprocess.run([str(home / binary)], capture_output=True, text=True, timeout=60, check=False)
        theirs = set(re.findall(r", (--[a-z0-9-]+)", done.stdout)) | set(re.findall(r"^(--[a-z0-9-]+)", done.stdout, re.M))
        known = {option.long for option in compile_run.RUN_TIME_OPTIONS}
        assert theirs - known == set() and len(theirs) > 20


PRINTS = "print_ln('{}')\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_where_programs_are_looked_for(tmp_path: Path) -> None:
    """A path, then Programs/Source of the working folder, then the collection; with or without the ending, as in MP-SPDZ."""
    own = tmp_path / "Programs" / "Source"
    write(own / "mine.mpc", PRINTS.format("in Source"))
    write(own / "other.py", PRINTS.format("other"))
    write(tmp_path / "here.mpc", PRINTS.format("here"))
    write(tmp_path / "plain", PRINTS.format("plain"))
    for name, text in (
        ("mine", "in Source"),
        ("mine.mpc", "in Source"),
        ("other", "other"),
        ("here.mpc", "here"),
        ("./here.mpc", "here"),
        ("plain", "plain"),
    ):
        done = script(tmp_path, "emulate", name)
        assert done.stdout.splitlines()[0] == text, (name, done.stderr)
    assert find_program("sample_cbd", tmp_path).name == "sample_cbd.mpc"
    assert find_program(str(own / "mine.mpc"), tmp_path / "elsewhere") == own / "mine.mpc"
    with pytest.raises(KeyQuorumError, match="no program 'here': choose one of"):
        find_program("here", tmp_path)


def test_two_programs_of_a_name_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "Programs" / "Source" / "sample_cbd.mpc", PRINTS.format("mine"))
    with pytest.raises(KeyQuorumError, match=r"two programs .sample_cbd.: .* and .*: rename one"):
        find_program("sample_cbd", tmp_path)
    file.unlink()
    file.symlink_to(find_program("sample_cbd", tmp_path / "elsewhere"))  # the same file under two names is one program
    assert find_program("sample_cbd", tmp_path).resolve() == file.resolve()


def test_plans_take_the_collection_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the working folder does not replace one of the collection in plans."""
    write(tmp_path / "Programs" / "Source" / "sample_cbd.mpc", PRINTS.format("mine"))
    monkeypatch.chdir(tmp_path)
    assert tmp_path not in program_path("sample_cbd").resolve().parents


@pytest.mark.parametrize("protocol", ["ring", "emulate"])
def test_numbers_of_files_and_typed_ones(tmp_path: Path, protocol: str) -> None:
    """Player-Data/Input-P<i>-0; with -I a line of standard input for each party."""
    write(
        tmp_path / "Programs" / "Source" / "add.mpc", "print_ln('%s %s', sint.get_input_from(0, size=2).reveal(), sint.get_input_from(1).reveal())\n"
    )
    for party, text in enumerate(("5 6", "-7\n")):
        write(tmp_path / "Player-Data" / f"Input-P{party}-0", text)
    assert script(tmp_path, protocol, "add").stdout.splitlines()[0] == "[5, 6] -7"
    command = [sys.executable, str(SCRIPT), protocol, "add", "--", "-I"]
    typed = run(command, tmp_path, typed="1 2\n3\n\n")
    assert typed.stdout.splitlines()[0] == "[1, 2] 3", typed.stderr
    typed = run(command, tmp_path, typed="1\n3\n\n")
    assert typed.returncode == 1 and "the numbers typed for party 0 end after 1" in typed.stderr
    typed = run(command, tmp_path, typed="1 x\n3\n\n")
    assert typed.returncode == 1 and "input is decimal numbers" in typed.stderr


def test_typed_numbers_are_for_the_embedded_engine() -> None:
    with pytest.raises(ParameterError, match="-I is for the embedded engine"):
        ProgramRequest("p", backend="mp-spdz", interactive=True).check()
    assert asked("ring", "p", "--", "-I").interactive and not asked("ring", "p").interactive
