"""--job of commands that all parties run: the job that keyquorum party takes, and refusals at the host that writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.model.errors import CommitteeError, KeyQuorumError, ParameterError
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import check_job, read_job, run_job
from keyquorum.plans.pools import pools_folder
from keyquorum.toprf import toprf_fill, toprf_keygen
from typer.testing import CliRunner


@pytest.fixture
def committee(tmp_path: Path) -> Path:
    """The folder of party 0 of three, on this host alone."""
    api.init(tmp_path / "committee", 3, "rep-field", hosts=["a:1", "b:2", "c:3"], me=[0])
    return tmp_path / "committee"


def written(folder: Path, *words: object) -> dict[str, Any]:
    """The job that a command writes."""
    path = folder / "job.json"
    result = CliRunner().invoke(app, [*map(str, words), "--job", str(path), "--json"], catch_exceptions=False)
    assert result.exit_code == 0 and json.loads(result.stdout) == {"job": str(path)}
    job = read_job(path)
    check_job(job)
    return job


def test_each_command_writes_its_job(committee: Path, tmp_path: Path) -> None:
    job = written(tmp_path, "pool", "fill", committee, "-p", "lwe64-p2", "-n", 7, "--chunk", 3, "--parties", "2,0")
    assert job == {
        "kind": "pool_fill", "parameters": "lwe64-p2", "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "count": 7, "chunk": 3, "subset": [0, 2],
    }  # fmt: skip
    assert written(tmp_path, "toprf", "fill", committee, "-n", 7)["kind"] == "toprf_fill"
    job = written(tmp_path, "toprf", "keygen", committee, "prf", "--prf", "legendre")
    assert job["kind"] == "keygen" and job["key"] == "prf" and job["parameters"]["name"] == "prf-legendre127"


def test_a_set_of_a_file_goes_with_the_job(committee: Path, tmp_path: Path) -> None:
    """The other hosts need not have the file: their pool is that of the same set."""
    own = api.load_parameters("bfv-4096").to_toml().replace('"bfv-4096"', '"own"')
    (tmp_path / "own.toml").write_text(own)
    job = written(tmp_path, "pool", "fill", committee, "-p", tmp_path / "own.toml", "-n", 2)
    (tmp_path / "own.toml").unlink()
    assert api.load_parameters(job["parameters"]).name == "own"
    here = api.init(tmp_path / "here", 3, "rep-field")
    run_in_process(here, lambda context: run_job(context, job))
    assert [path.name for path in pools_folder(here, 1).iterdir() if path.is_dir()] == ["own-round_ltz_circuit"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"pool": 17}, "the decrypt job has no 'pool', or not as a bool"),
        ({"width": "8"}, "has no 'width', or not as a int"),
        ({"subsets": [0, 1]}, "the decrypt job has a field 'subsets', which it does not know: write the job file again"),
        ({"local": []}, "has no 'local'"),
    ],
)
def test_fields_that_no_party_would_obey_are_refused(more: dict[str, Any], why: str) -> None:
    """A misspelled name, or a value of another type, would be ignored."""
    job = {"kind": "decrypt", "key": "key", "receiver": 0, "rounding": "round_ltz_circuit", "sha256": ["ab" * 32], "backend": "embedded", "local": {}}
    check_job({**job, "pool": True, "width": 8, "levels": 2, "link": None, "subset": [0, 1]})
    with pytest.raises(KeyQuorumError, match=why):
        check_job({**job, **more})


def test_nothing_is_written_for_what_no_party_can_run(committee: Path, tmp_path: Path) -> None:
    for words, error, why in (
        (("pool", "fill", committee, "-n", 0), ParameterError, "choose 1 to"),
        (("pool", "fill", committee, "-n", 1, "--rounding", "round_flood"), ParameterError, "is too small for flooding"),
        (("toprf", "fill", committee, "-n", 1, "--method", "circuit"), ParameterError, "nothing to make ahead"),
        (("toprf", "share", committee, "prf", "-t", 2), CommitteeError, "no key 'prf' at any party"),
        (("toprf", "encrypt-key", committee, "prf", "key"), CommitteeError, "no key 'prf' at any party"),
    ):  # fmt: skip
        with pytest.raises(error, match=why):
            written(tmp_path, *words)
    assert not (tmp_path / "job.json").exists()


def test_the_error_on_one_of_several_hosts_names_the_job(committee: Path) -> None:
    """At every command and function that starts all parties here."""
    for run in (
        lambda: api.pool_fill(committee, "lwe64-p2", "round_ltz_circuit", 1),
        lambda: toprf_fill(committee, 1),
        lambda: toprf_keygen(committee, "prf"),
    ):
        with pytest.raises(
            KeyQuorumError, match=r"party 1 is not on this host: write the job with --job FILE, and run keyquorum party .* INDEX FILE on every"
        ):
            run()
