"""Random values for every option of every command: each gives a result or an error of one line, never a traceback.

The commands run in this process. No party is started: where a command would start one, an error is raised. The checks before that are tested here;
tests/faults and tests/deploy test the rest. ``SEED`` chooses other values, ``SECONDS`` a longer time (8, in long tests 20).
"""

from __future__ import annotations

import inspect
import io
import os
import shutil
import time
import types
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import typer.main
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.cli import app
from keyquorum.fhe import seal
from keyquorum.model.errors import KeyQuorumError, PartyError
from keyquorum.parties import processes, setup, worker
from keyquorum.schemes.key_folder import load_key
from keyquorum.serve import daemon
from keyquorum.serve.client import make_receiver
from typer.models import ArgumentInfo
from typer.testing import CliRunner

from tests import long

SECONDS = float(os.environ.get("SECONDS", "20" if long.LONG else "8"))
RUNS = 300
"""Of each command, if the time suffices."""
INTEGERS = ["0", "1", "2", "3", "-1", "7", "64", "99999", "2147483648", "9223372036854775808", "18446744073709551616", "1" + "0" * 40, "x", "", "1.5"]
FLOATS = ["0", "-1", "1e-9", "0.01", "nan", "inf", "-inf", "1e300", "x", ""]
TEXTS = [
    "", " ", ".", "..", "../k", "a/b", "k", "key", "ü", "A" * 300, "-", "\n", "\x1b[31m", "\ud800", "{}", "%s", "0", "127.0.0.1:1", "host:99999",
    "host:-1", ":1", "[::1]:5", "rtt=1", "rtt=1e999,mbit=0", "wan", "ring", "rep-field", "shamir", "semi", "semi2k", "mascot", "emulate", "star",
    "bfv-4096", "ckks-4096", "lwe64-p2", "bgv-4096", "round_mask_open", "round_ltz_circuit", "round_ltz_table", "gaussian", "embedded", "mp-spdz",
    "add", "rotate", "square", "sample_cbd", "primitives", "keygen", "decrypt", "all", "[red]x[/red]", "ab" * 32,
]  # fmt: skip
FILES = [
    "committee", "c", "missing", "a/b/missing", "x.ct", "x.json", "garbage", "empty", "empty.json", "list.json", "deep.json", "job.json", "keygen.json",
    "committee/committee.toml", "committee/party-0/identity.pem", "committee/party-0/keys/key/public.key", "committee/party-0/keys/key/key.json",
    "committee/party-0/keys/key/share-0.kqs", "committee/party-0", "committee/receiver-bob.pem", "committee/receiver-bob.crt", "/dev/null", ".", "",
    "ü", "A" * 300,
]  # fmt: skip
RIGHT: dict[str, list[str]] = {
    "folder": ["committee"], "key": ["key"], "index": ["0", "1"], "job": ["job.json", "keygen.json"], "ciphertexts": ["x.ct"], "values": ["x.json"],
    "params": ["bfv-4096"], "to": ["0"], "identity": ["committee/receiver-bob.pem"], "plaintext": ["x.ct", "garbage"], "output": ["out"],
    "operation": ["add"], "items": ["5"], "suite": ["primitives"], "fingerprint": ["ab" * 32], "program": ["nothing"], "path": ["committee"],
    "seconds": ["0.01"], "connect_timeout": ["0.01"],
}  # fmt: skip
ALWAYS: dict[str, list[str]] = {"bench": ["--list"]}
SHORT = {"party": ["--connect-timeout"], "doctor": ["--seconds"]}
"""Options with a default that would take long: they always get a value."""

LONG = ("cnn", "report")
"""Their libraries take seconds to load, and they have few options."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee with a key, a receiver, a ciphertext, jobs, and malformed files."""
    folder = tmp_path_factory.mktemp("options")
    api.init(folder / "committee", 3)
    made = api.keygen(folder / "committee", "key", "bfv-4096", relin=False)
    info = load_key(made.folder)
    (folder / "x.json").write_text("[1, 2, 3]")
    (folder / "x.ct").write_bytes(seal.encrypt(info.parameters, api.load_public_file(made.folder, info, "public.key"), [1, 2, 3]))
    api.write_job(folder / "job.json", api.decrypt_job(folder / "committee", "key", [folder / "x.ct"], 0, [folder / "x.plain"]))
    api.write_job(folder / "keygen.json", api.keygen_job("new", info.parameters, False))
    (folder / "garbage").write_bytes(bytes(range(256)))
    (folder / "empty").write_bytes(b"")
    (folder / "empty.json").write_text("{}")
    (folder / "list.json").write_text('[1, "a", null]')
    (folder / "deep.json").write_text("[" * 100_000)
    make_receiver(api.as_committee(folder / "committee"), "bob")
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to work in, in which no party starts."""
    shutil.copytree(made, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")

    def refuse(*args: Any, **options: Any) -> Any:
        raise PartyError("no party is started here")

    def no_run(self: daemon.Daemon) -> None:
        self.listener.close()
        self.served_key.close()
        self.lending.release()

    monkeypatch.setattr(daemon.Daemon, "run", no_run)
    monkeypatch.setattr(processes, "_Worker", refuse)
    monkeypatch.setattr(setup, "_free_ports", lambda count: list(range(20_000, 20_000 + count)))
    monkeypatch.setattr(worker, "ABORT_SECONDS", 0.01)
    return tmp_path / "work"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command: its kind, ``names`` of an option (empty: an argument), and whether it can be repeated or must be given."""

    name: str
    kind: type
    names: tuple[str, ...]
    many: bool
    required: bool


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """From the signature, as Typer reads it."""
    found = []
    for name, hint in get_type_hints(function, include_extras=True).items():
        if name == "return":
            continue
        kind, info = get_args(hint)
        for inner in get_args(kind) if get_origin(kind) is types.UnionType else (kind,):
            if inner is not types.NoneType:
                kind = inner
        many = get_origin(kind) is list
        kind = get_args(kind)[0] if many else kind
        required = inspect.signature(function).parameters[name].default is inspect.Parameter.empty
        if isinstance(info, ArgumentInfo):
            found.append(Parameter(name, kind, (), many, required))
            continue
        plain = "--" + name.replace("_", "-")
        first = (info.default,) if isinstance(info.default, str) else ()  # the first name stands in the place of the default
        declared = tuple(d for d in (*first, *(info.param_decls or ())) if d.startswith("-"))
        found.append(Parameter(name, kind, declared or ((plain, f"--no-{plain[2:]}") if kind is bool else (plain,)), many, required))
    return found


def commands() -> dict[str, list[Parameter]]:
    """The parameters of all commands, those of groups too."""
    apps = {
        "": app,
        **{f"{group.typer_instance.info.name or group.name} ": group.typer_instance for group in app.registered_groups if group.typer_instance},
    }
    return {
        prefix + str(command.name): parameters_of(command.callback)
        for prefix, each in apps.items()
        for command in each.registered_commands
        if command.callback
    }


def value(random: Random, parameter: Parameter, odd: float) -> str:
    """A value for a parameter: with probability ``odd`` any value, else a valid one."""
    if parameter.name in RIGHT and random.random() >= odd:
        return random.choice(RIGHT[parameter.name])
    return random.choice({int: INTEGERS, float: FLOATS, Path: FILES, str: TEXTS}[parameter.kind])


def words_of(random: Random, name: str, parameters: list[Parameter]) -> list[str]:
    """A command line: two times of three only one parameter is odd, else many are."""
    words, arguments = [*name.split(), *ALWAYS.get(name, [])], []
    chosen = random.choice(parameters) if parameters and random.randrange(3) else None
    for parameter in parameters:
        odd = 0.3 if chosen is None else float(parameter is chosen)
        if not parameter.names:
            arguments += [value(random, parameter, odd) for _ in range(random.randrange(1, 3) if parameter.many else 1)]
            continue
        option = random.choice(parameter.names)
        forced = parameter.required or option in SHORT.get(name, []) or parameter is chosen
        if option in ALWAYS.get(name, []) or (not forced and random.random() >= odd):
            continue
        if parameter.kind is bool:
            words.append(option)
            continue
        for _ in range(max(random.randrange(3) if parameter.many else 1, forced)):
            words += [option, value(random, parameter, odd)]
    return [*words, "--", *arguments] if random.random() < 0.5 else [*words, *arguments]


GROUP: Any = typer.main.get_command(app)


def judge(words: list[str]) -> None:
    """Runs a command line, which may end in success, a usage error, or a typed error of one line."""
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            GROUP.main(words, prog_name="keyquorum")
    except SystemExit as end:
        assert end.code in (None, 0, 1, 2), words
    except (KeyQuorumError, EngineError) as error:
        assert str(error).isprintable() and str(error), (words, error)
    except OSError:
        pass
    except BaseException as error:
        raise AssertionError(f"keyquorum {words}: {error!r}") from error
    assert "Traceback" not in said.getvalue(), words


@pytest.mark.timeout(120)
def test_no_option_gives_a_traceback(place: Path) -> None:
    """Round after round through all commands, each with other values."""
    random, end, runs = Random(os.environ.get("SEED", "0")), time.monotonic() + SECONDS, 0
    known = {name: parameters for name, parameters in commands().items() if name not in LONG}
    for _ in range(RUNS):
        for name, parameters in known.items():
            if time.monotonic() < end:
                judge(words_of(random, name, parameters))
                runs += 1
    print(f"{runs} command lines")
    assert runs >= len(known)


MISTAKES = [
    (["party", "committee", "0", "empty.json"], "empty.json: unknown job None: choose one of"),
    (["party", "committee", "0", "list.json"], "list.json: not a job file (not an object)"),
    (["party", "committee", "9", "job.json"], "there is no party 9"),
    (["party", "committee", "0", "job.json", "--ciphertext", "x.ct", "--ciphertext", "x.ct"], "2 ciphertexts for the decrypt job, which has 1"),
    (["party", "committee", "0", "keygen.json", "--ciphertext", "x.ct"], "leave out --ciphertext"),
    (["party", "committee", "0", "job.json", "--connect-timeout", "1e300"], "positive number of seconds, at most"),
    (["serve", "committee", "0", "key", "--port", "99999"], "--port 99999: choose a port from 1 to 65535, or 0"),
    (["serve", "committee", "0", "key", "--port=-1"], "--port -1: choose"),
    (["serve", "committee", "0", "key", "--metrics-port", "99999"], "--metrics-port 99999: choose"),
    (["decrypt", "committee", "key", "x.ct", "--committee", "--identity", "x.ct"], "x.ct is no identity"),
    (["decrypt", "committee", "key", "x.ct", "--committee", "--identity", "committee/receiver-bob.crt"], "no Ed25519 key"),
    (["toprf", "eval", "committee", "key", "x", "--identity", "committee/receiver-bob.pem"], "a key of BFV, not of a PRF"),
    (["toprf", "eval", "committee", "key", "x", "--identity", "x", "--wait", "nan"], "--wait nan: choose 0 to 86400 seconds"),
    (["toprf", "eval", "committee", "key", "x", "--identity", "x", "--stdin"], "name one input"),
    (["toprf", "eval", "committee", "key", "--identity", "x", "--batch", "empty"], "empty: no inputs"),
    (["toprf", "eval", "committee", "key", "\ud800", "--identity", "x"], "the input is no text"),
    (["toprf", "derive", "committee", "key", "x", "--identity", "x", "-o", "k", "--length", "8161"], "choose 1 to 8160"),
    (["toprf", "derive", "committee", "key", "x", "--identity", "x", "-o", "k", "--salt", "x"], "give hexadecimal digits"),
    (["toprf", "serve", "committee", "0", "key", "--rate", "100"], "give evaluations an hour, as 100/h"),
    (["toprf", "serve", "committee", "0", "key", "--total", "5"], "name its --rate as well"),
    (["toprf", "fill", "committee", "-n", "0"], "0 items: choose at least 1"),
    (["toprf", "fill", "committee", "-n", "5", "--chunk", "0"], "5 items by 0: choose 1 to 2^40, and chunks of 1 to 2^20"),
    (["toprf", "fill", "committee", "-n", "5", "--method", "tables"], "unknown method 'tables': choose one of circuit, table"),
    (["compose", "many", "-N", "2147483648"], "2147483648 parties: choose 2 to 64"),
    (["doctor", "committee", "--party", "99"], "there is no party 99"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[" ".join(w) for w, _ in MISTAKES])
def test_mistakes_that_gave_tracebacks(place: Path, words: list[str], message: str) -> None:
    """Each ends with a typed error."""
    result = CliRunner().invoke(app, words)
    text = str(result.exception) if isinstance(result.exception, (KeyQuorumError, EngineError)) else result.output
    assert message in text and not isinstance(result.exception, (KeyError, OverflowError, ValueError)), repr(result.exception)
