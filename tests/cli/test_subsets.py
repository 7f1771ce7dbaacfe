"""Decryption by any t parties from the command line: shares, a pool of the subset, decryption here and by a job file, and by parties that serve."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyFileError, ParameterError, PartyError
from keyquorum.model.subset import subset_of
from keyquorum.parties.jobs import read_job
from keyquorum.serve.client import Refused, fetch, make_receiver
from keyquorum.serve.kinds import Service
from typer.testing import CliRunner

from tests.serve.daemons import Threads

RUNNER = CliRunner()


def call(*arguments: object) -> str:
    result = RUNNER.invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee of three, a key shared for any two, a pool of parties 0 and 2, and a ciphertext of 1, 0, 1."""
    folder = tmp_path_factory.mktemp("subsets")
    api.init(folder / "committee", 3, "semi")
    call("keygen", folder / "committee", "key", "-p", "lwe64-p2")
    said = call("share", folder / "committee", "key", "-t", 2)
    assert "any 2 parties use it (--parties), and have it together; 16,384 bytes at each party" in said
    assert "before up to 2, from now on up to 1" in said
    (folder / "x.json").write_text("[1, 0, 1]")
    call("encrypt", folder / "committee", "key", folder / "x.json", "-o", folder / "x.lwe")
    said = call("pool", "fill", folder / "committee", "-n", 30, "--parties", "0,2")
    assert "party 2: lwe64-p2-round_ltz_circuit.0-2: 30 items left of 30" in said and "party 1" not in said
    return folder


def test_two_of_three_by_hand(shared: Path) -> None:
    committee, output = shared / "committee", shared / "by-hand"
    said = call("decrypt", committee, "key", shared / "x.lwe", "--to", 2, "--parties", "2,0", "-o", output)
    assert f"party 2 wrote {output}" in said and json.loads(output.read_text()) == [1, 0, 1]
    assert "party 1" not in said
    with pytest.raises(PartyError, match=r"lwe64-p2-round_ltz_circuit.0-1: needs 3 items, has 0: keyquorum pool fill --parties 0,1"):
        call("decrypt", committee, "key", shared / "x.lwe", "--to", 0, "--parties", "0,1", "-o", output)
    with pytest.raises(PartyError, match=r"lwe64-p2-round_ltz_circuit: needs 3 items, has 0: keyquorum pool fill, or"):
        call("decrypt", committee, "key", shared / "x.lwe", "--to", 0, "-o", output)
    with pytest.raises(ParameterError, match="--parties 0;2: give numbers of parties, as 0,2"):
        call("decrypt", committee, "key", shared / "x.lwe", "--to", 0, "--parties", "0;2", "-o", output)
    with pytest.raises(KeyFileError, match="a key of LWE, not of a PRF"):
        call("toprf", "share", committee, "key", "-t", 2)


def test_by_job_files(shared: Path) -> None:
    """As on several hosts: each member runs the job. Another party is refused, and so is a file for another subset."""
    folder, job = shared / "committee", shared / "job.json"
    call("share", folder, "key", "-t", 2, "--job", shared / "share.json")
    assert read_job(shared / "share.json")["members"] == 2
    call("decrypt", folder, "key", shared / "x.lwe", "--to", 0, "--parties", "0,2", "-o", shared / "by-job", "--job", job)
    with pytest.raises(ParameterError, match="party 1 is none of parties 0, 2, which do this without the others"):
        api.run_party(folder, 1, read_job(job))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda party: api.run_party(folder, party, read_job(job)), (0, 2)))
    assert [result["report"]["party"] for result in results] == [0, 2]
    assert json.loads((shared / "by-job").read_text()) == [1, 0, 1]
    with ThreadPoolExecutor(2) as pool:
        jobs = {0: read_job(job), 2: {**read_job(job), "subset": [1, 2]}}
        runs = [pool.submit(api.run_party, folder, party, jobs[party], connect_timeout=3.0) for party in (0, 2)]
        assert all(run.exception() is not None for run in runs)


def test_parties_that_serve(shared: Path) -> None:
    """To a receiver that names them, and to nobody else."""
    committee = Committee.load(shared / "committee")
    identity, _ = make_receiver(committee, "alice")
    service = Service("key", keep=8, chunk=8, patience=20.0)
    with Threads(subset_of(committee, (0, 1)), service) as served:
        said = call("decrypt", committee.folder, "key", shared / "x.lwe", "--committee", "--identity", identity, "--parties", "0,1",
                    "-o", shared / "served", "--wait", 20)  # fmt: skip
        assert "3 messages under key key" in said and json.loads((shared / "served").read_text()) == [1, 0, 1]
        data = (shared / "x.lwe").read_bytes()
        with pytest.raises(Refused, match="here serve parties 0, 1, name them with --parties"):
            fetch(served.renamed((0, 2)), identity, data, served.addresses())
        with pytest.raises(CommitteeError, match="party 2 does not serve on this host"):
            fetch(subset_of(committee, (0, 2)), identity, data)
    assert not served.failures
    lines = [json.loads(line) for line in (committee.party_folder(1) / "audit.jsonl").read_text().splitlines()]
    assert lines[0]["party"] == 1 and lines[0]["parties"] == [0, 1] and lines[0]["result"] == "answered"
