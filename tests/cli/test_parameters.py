"""keyquorum parameters, parameters new, parameters check."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.cli import main


@dataclass
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Runs the command in this process."""

    def one(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["keyquorum", "parameters", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return Done(int(ended.value.code or 0), printed.out, printed.err)

    return one


def test_a_set_is_made_and_checked(tmp_path: Path, run: Callable[..., Done]) -> None:
    """keygen takes it; a file is never overwritten."""
    path = tmp_path / "mine.toml"
    made = run("new", str(path), "--scheme", "bgv", "--depth", "1", "--json")
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)
    others = [committee for committee in said["committees"] if committee["protocol"] != "mascot"]
    assert all(committee["decrypts"] and committee["products"] >= 1 for committee in others) and len(others) == 5
    (macs,) = (committee for committee in said["committees"] if committee["protocol"] == "mascot")
    assert not macs["decrypts"] and "a prime of 32 bits" in macs["why_not"]  # with -E mascot the primes are longer
    checked = run("check", str(path))
    assert checked.returncode == 0 and "semi, 3 parties: decrypts exactly, after 1 product one after another" in checked.stdout
    assert api.keygen_job("key", path)["parameters"]["name"] == "mine"
    again = run("new", str(path), "--scheme", "bfv")
    assert again.returncode == 1 and again.stderr == f"error: {path}: there is such a file already: name another one\n"


def test_what_is_wrong(tmp_path: Path, run: Callable[..., Done]) -> None:
    """A line each; and a set with which nobody decrypts."""
    path = tmp_path / "wrong.toml"
    text = api.load_parameters("bfv-4096").to_toml().replace("68719403009", "15").replace("= 65537", "= 1000")
    path.write_text(text)
    done = run("check", str(path))
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    assert done.returncode == 1 and len(lines) == 3 and "15 is not prime" in lines[0] and "1000 is not a prime" in lines[1]
    short = api.ParameterSet("short", "bfv", 4096, (1032193, *api.load_parameters("bfv-4096").coeff_modulus[1:]), 65537)
    path.write_text(short.to_toml())
    done = run("check", str(path))
    assert (
        done.returncode == 1
        and done.stdout.count("CANNOT decrypt: short: ciphertexts cannot be decrypted, since fresh noise fills the first prime") == 6
    )
    assert done.stderr == f"error: {path}: no committee can decrypt what is encrypted with it: see the reasons above\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "none.toml"], "parameter file none.toml cannot be read"),
        (["check", "tfhers-2-2"], "a set of TFHE, of which nothing can be chosen"),
        (["new", "x.json", "--scheme", "bfv"], "x.json: a parameter set is a TOML file"),
        (["new", "x.toml", "--scheme", "bfv", "-E", "x"], "unknown protocol 'x'"),
        (["new", "x.toml", "--scheme", "ckks", "--flood-bits", "0"], "flooding of 0 bits: choose 1 to 80"),
    ],
)
def test_refusals(words: list[str], message: str, run: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert done.returncode == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_list(run: Callable[..., Done]) -> None:
    done = run("--json")
    assert done.returncode == 0 and [one["name"] for one in json.loads(done.stdout)["parameters"]] == api.parameter_set_names()
