"""Output of commands: --json, --quiet and --verbose of every command, progress without a terminal, completion in a shell."""

from __future__ import annotations

import importlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.terminal import output, progress
from keyquorum.terminal.output import chosen
from rich.console import Console
from typer.testing import CliRunner

from tests.cli.test_first_use import run
from tests.cli.test_option_fuzz import commands
from tests.commands import run as forked
from tests.long import some

SHELL_SECONDS = 60
COMMAND = [sys.executable, "-c", "from keyquorum.cli import main; main()"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee with a key of BFV, and a ciphertext that is decrypted."""
    folder = tmp_path_factory.mktemp("output")
    api.init(folder / "committee", 3)
    api.keygen(folder / "committee", "key", "bfv-4096", relin=False)
    (folder / "x.json").write_text("[1, 2, 3]")
    api.encrypt(folder / "committee", "key", [1, 2, 3], folder / "x.ct")
    api.decrypt(folder / "committee", "key", [folder / "x.ct"], 0, [folder / "x.plain"])
    return folder


def test_every_command_has_the_shared_options() -> None:
    for name, parameters in commands().items():
        own = [option for parameter in parameters for option in parameter.names]
        assert {"--json", "--quiet", "-q", "--verbose", "-v"} <= set(own), name
        assert len(own) == len(set(own)), f"{name} has an option twice: {own}"


def of(words: list[str], folder: Path) -> Any:
    """The one document on standard output."""
    out, _ = run(folder, *words, "--json")
    assert out.count("\n") == 1, out
    return json.loads(out)


def test_json_of_commands(made: Path, tmp_path: Path) -> None:
    """Each prints one document and nothing else, with the right results."""
    a = str(made / "committee")
    init = of(["init", "c", "-E", "semi", "-N", "2"], tmp_path)
    assert (init["protocol"], init["threshold"], init["here"], len(init["parties"])) == ("semi", 1, [0, 1], 2)
    assert {p["fingerprint"] for p in init["parties"]} == {p.fingerprint for p in api.as_committee(tmp_path / "c").parties}
    listed = of(["parameters"], tmp_path)["parameters"]
    assert {"lwe64-p2", "bfv-4096", "ckks-8192"} <= {p["name"] for p in listed}
    assert next(p for p in listed if p["name"] == "bfv-4096")["plain_modulus"] == api.load_parameters("bfv-4096").plain_modulus
    key = of(["keygen", "c", "lwe", "-p", "lwe64-p2"], tmp_path)
    assert key["key"] == "lwe" and [c["party"] for c in key["costs"]] == [0, 1] and key["costs"][0]["phases"][0]["bytes_sent"] >= 0
    pool = of(["pool", "fill", "c", "-n", "7"], tmp_path)
    assert pool["items"] == 7 and pool["pools"][1] == {"party": 1, "pool": "lwe64-p2-round_ltz_circuit", "left": 7, "made": 7}
    assert of(["pool", "status", "c"], tmp_path)["pools"] == pool["pools"]
    assert of(["pool", "drop", "c", "lwe64-p2-round_ltz_circuit"], tmp_path) == {"pool": "lwe64-p2-round_ltz_circuit", "parties": [0, 1]}
    made_ct = of(["encrypt", a, "key", str(made / "x.json"), "-o", "y.ct"], tmp_path)
    assert made_ct["bytes"] == (tmp_path / "y.ct").stat().st_size and made_ct["noise_budget"] > 0
    assert of(["eval", a, "key", "add", "y.ct", "y.ct", "-o", "z.ct"], tmp_path)["output"] == "z.ct"
    done = of(["decrypt", a, "key", "z.ct", "--to", "1"], tmp_path)
    assert done["outputs"] == ["z.ct.plain"] and done["receiver"] == 1 and len(done["costs"]) == 3
    assert of(["decode", a, "key", "z.ct.plain", "-n", "3"], tmp_path) == {"values": [2, 4, 6], "of": 4096, "largest_error": None}
    assert any("rep-field" in line for line in of(["inspect", a], tmp_path)["lines"])
    assert of(["doctor", a, "--party", "0", "--party", "1", "--party", "2"], tmp_path)["ok"] is True
    assert of(["receiver", a, "eve"], tmp_path)["name"] == "eve"
    assert of(["bench", "primitives", "--list", "--quick"], tmp_path)["measurements"][0]["suite"] == "primitives"
    assert of(["run", "sample_cbd", "5", "-E", "emulate"], tmp_path)["output"]
    assert of(["compose", "q", "-N", "3"], tmp_path)["volumes"] == [f"q/volumes/party-{i}" for i in range(3)]
    assert of(["keygen", a, "other", "-p", "bfv-4096", "--job", "j.json"], tmp_path) == {"job": "j.json"}
    assert "complete" in of(["completion", "bash"], tmp_path)["script"]


def test_every_command_emits_json() -> None:
    """Also those that take long: each calls what prints, or run_party, which does."""
    for group in (app, *(importlib.import_module(f"keyquorum.cli.{name}").app for name in ("pools", "toprf"))):
        for command in group.registered_commands:
            function: Any = command.callback
            function = function.__wrapped__
            names = {*function.__code__.co_names}
            names |= {name for constant in function.__code__.co_consts if hasattr(constant, "co_names") for name in constant.co_names}
            assert names & {"emit", "print_summary", "run_party"}, command.name


def test_errors_with_json_are_one_line(made: Path) -> None:
    out, err = run(made, "decode", "committee", "key", "missing", "--json", code=1)
    assert out == "" and err.startswith("error: missing: no such file") and err.count("\n") == 1


def test_json_holds_what_json_can(capsys: pytest.CaptureFixture[str]) -> None:
    with chosen(True, False, False):
        output.emit({"values": np.array([1.5, np.nan, np.inf]), "path": Path("a"), "n": np.int64(3), "pair": (1, None), "z": 1 + 2j})
    assert json.loads(capsys.readouterr().out) == {"values": [1.5, None, None], "path": "a", "n": 3, "pair": [1, None], "z": "(1+2j)"}
    output.emit({"never": "printed"})
    assert capsys.readouterr().out == ""


def test_quiet_prints_results_alone(made: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "init", "c", "-q") == ("", "")
    assert run(made, "encrypt", "committee", "key", "x.json", "-o", "q.ct", "-q") == ("", "")
    assert run(made, "decrypt", "committee", "key", "q.ct", "--to", "0", "--quiet") == ("", "")
    assert run(made, "decode", "committee", "key", "q.ct.plain", "-n", "3", "-q") == ("1 2 3 ...\n", "")
    assert "bfv-4096" in run(tmp_path, "parameters", "-q")[0]


def test_verbose_prints_phases_and_every_party(made: Path) -> None:
    run(made, "encrypt", "committee", "key", "x.json", "-o", "v.ct")
    out, err = run(made, "decrypt", "committee", "key", "v.ct", "--to", "0", "-v")
    assert all(re.search(rf"^  party {i}: \d+\.\d\d s, .* MB sent, \d+ rounds, .* of CPU", out, re.M) for i in range(3)), out
    assert re.search(r"^progress: rounding: \d+ of \d+, \d+ s$", err, re.M), err


def test_verbose_errors_say_their_kind(made: Path) -> None:
    (made / "list.json").write_text("{")
    _, err = run(made, "encrypt", "committee", "key", "list.json", "-o", "e.ct", "--verbose", code=1)
    lines = err.splitlines()
    assert lines[0].startswith("error: list.json cannot be read") and lines[1] == "  kind: ValuesError" and lines[2].startswith("  cause: ")
    assert "quiet and --verbose contradict" in run(made, "parameters", "-q", "-v", code=1)[1]
    with pytest.raises(ParameterError, match="contradict"), chosen(False, True, True):
        raise AssertionError("chosen")


def test_the_choice_ends_with_the_command(made: Path) -> None:
    """In one process, as tests and notebooks call commands."""
    runner = CliRunner()
    silent = runner.invoke(app, ["decode", str(made / "committee"), "key", str(made / "x.plain"), "-n", "1", "--json"])
    assert json.loads(silent.output)["values"] == [1]
    with pytest.raises(KeyQuorumError):
        runner.invoke(app, ["decode", str(made / "committee"), "key", "missing", "-q"], catch_exceptions=False)
    assert not output.console.quiet and not output.printed.quiet
    assert runner.invoke(app, ["decode", str(made / "committee"), "key", str(made / "x.plain"), "-n", "1"]).output.startswith("1 ...\n")


def said(monkeypatch: pytest.MonkeyPatch, seconds: float) -> io.StringIO:
    """A stream for progress that is no terminal, with a line every ``seconds`` seconds."""
    text = io.StringIO()
    monkeypatch.setattr(progress, "errors", Console(file=text, force_terminal=False, soft_wrap=True))
    monkeypatch.setattr(progress, "LINE_AFTER", seconds)
    return text


def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are printed also without new reports, and name the last one; short commands print none; no line comes after the end."""
    text = said(monkeypatch, 0.05)
    with progress.progress_bars() as report:
        report("keys", 1, 3)
        time.sleep(0.4)
    lines = text.getvalue().splitlines()
    assert 2 <= len(lines) <= 8 and all(re.fullmatch(r"progress: keys: 1 of 3, \d+ s", line) for line in lines)
    time.sleep(0.2)
    assert text.getvalue().splitlines() == lines
    text = said(monkeypatch, 5.0)
    with progress.progress_bars() as report:
        report("keys", 1, 3)
    assert text.getvalue() == ""
    text = said(monkeypatch, 0.05)
    with chosen(False, True, False), progress.progress_bars() as report:
        report("keys", 1, 3)
        time.sleep(0.2)
    assert text.getvalue() == "" and not [t for t in threading.enumerate() if "_Lines" in repr(t)]


def test_bench_is_not_silent(tmp_path: Path) -> None:
    """A sweep without a terminal says where it is while a measurement runs."""
    words = ["bench", "primitives", "--quick", "--only", "product", "-E", "ring", "--repeats", "1", "--budget", "0.05", "-o", str(tmp_path)]
    code = "import keyquorum.terminal.progress as p; p.LINE_AFTER = 0.3; from keyquorum.cli import main; main()"
    done = forked([sys.executable, "-c", code, *words], tmp_path)
    assert re.search(r"^progress: primitives: \d+ of \d+, \d+ s$", done.stderr, re.M), (done.stdout, done.stderr)


def complete(line: str, folder: Path, tmp_path: Path) -> list[str]:
    """What bash offers for a line, by the script of the command, as it would at TAB."""
    binary = tmp_path / "bin" / "keyquorum"
    binary.parent.mkdir(exist_ok=True)
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from keyquorum.cli import main; main()" "$@"\n')
    binary.chmod(0o755)
    script = tmp_path / "completion.bash"
    if not script.exists():
        script.write_text(run(folder, "completion", "bash")[0])
    ask = (
        f'set -eu; source {script}; complete -p keyquorum >/dev/null; COMP_WORDS=({line}); [[ "{line}" == *" " ]] && COMP_WORDS+=(""); '
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _keyquorum_completion keyquorum || true; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], cwd=folder, env=environment, capture_output=True, text=True, timeout=SHELL_SECONDS, check=False)
    assert done.returncode == 0 and done.stderr == "", (done.stdout, done.stderr)
    return done.stdout.split()


def offered(line: str, folder: Path) -> list[str]:
    """What the command prints for bash, with the variables that the script of the shell sets."""
    words = line.split(" ")
    variables = {"_KEYQUORUM_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = forked([sys.executable, "-m", "keyquorum"], folder, environment={**os.environ, **variables})
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


COMPLETED = {
    "keyquorum decode committee ": ["key"],
    "keyquorum eval committee key rot": ["rotate"],
    "keyquorum de": ["decrypt", "decode", "demo"],
    "keyquorum pool ": ["fill", "status", "drop"],
    "keyquorum decrypt --ro": ["--rounding"],
    "keyquorum keygen committee k -p bfv-4": ["bfv-4096"],
    "keyquorum pool fill committee -p lwe5": ["lwe53-p16", "lwe53-p16-eta52"],
    "keyquorum init c -E se": ["semi2k", "semi"],
    "keyquorum completion ": ["bash", "zsh", "fish"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes(made: Path, tmp_path: Path) -> None:
    """At the end of a word and after a space."""
    for line in some(COMPLETED, 2):
        assert sorted(complete(line, made, tmp_path)) == sorted(COMPLETED[line]), line


def test_what_is_offered(made: Path) -> None:
    for line, expected in COMPLETED.items():
        assert sorted(offered(line, made)) == sorted(expected), line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(tmp_path: Path, shell: str) -> None:
    script = run(tmp_path, "completion", shell)[0]
    assert "_KEYQUORUM_COMPLETE" in script and "keyquorum" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        assert subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, timeout=SHELL_SECONDS, check=False).returncode == 0
    assert "no completion for 'tcsh': choose one of bash, zsh, fish" in run(tmp_path, "completion", "tcsh", code=1)[1]


def test_bars_stay_on_a_terminal(made: Path) -> None:
    """On a terminal no lines of progress."""
    parent, child = pty.openpty()
    words = ["decrypt", "committee", "key", "x.ct", "--to", "2"]
    done = subprocess.run([*COMMAND, *words], cwd=made, stdout=subprocess.PIPE, stderr=child, timeout=60, check=False)
    os.close(child)
    assert done.returncode == 0 and b"party 2 wrote" in done.stdout
    try:
        text = os.read(parent, 1 << 16)
    except OSError:
        text = b""
    assert b"progress:" not in text
    os.close(parent)
