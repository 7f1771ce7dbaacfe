"""The documented steps on several hosts and in containers: parties that see only their own folder, as on a host of their own.

Each party runs in a mount namespace, in which its folder is at a path that is the same for all, and the folders of the others do not exist. The
tests copy fingerprints, jobs and ciphertexts between the hosts by name.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.deploy.compose import prepare
from keyquorum.fhe.lwe import LweParameters, encrypt
from keyquorum.model.committee import Committee
from keyquorum.schemes.key_folder import load_key, load_shares

from tests.long import LONG
from tests.plans.quorum import reconstruct

pytestmark = pytest.mark.alone
PARTIES = 3
ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-c", "from keyquorum.cli import main; main()"]


def why_not() -> str:
    """The reason why hosts cannot be separated here; empty if they can."""
    try:
        done = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unshare is not there"
    return "" if done.returncode == 0 else "mount namespaces need root"


def free_ports(count: int) -> list[int]:
    """Ports of this machine, on which all hosts are."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Hosts:
    """A folder for each host."""

    def __init__(self, folder: Path, count: int = PARTIES) -> None:
        self._all, self.here = folder / "hosts", folder / "here"
        self.here.mkdir(parents=True)
        self.folders = [self._all / str(i) for i in range(count)]
        for each in self.folders:
            each.mkdir(parents=True, mode=0o700)

    def start(self, host: int, *args: object) -> subprocess.Popen[str]:
        """Starts a command in the folder of a host, where nothing is seen of the other ones."""
        words = shlex.join([*COMMAND, *map(str, args)])
        here, hosts = shlex.quote(str(self.here)), shlex.quote(str(self._all))
        inside = f"mount --bind {hosts}/{host} {here} && mount -t tmpfs none {hosts} && cd {here} && exec {words}"
        return subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": f"{ROOT}/harness:{ROOT}"},
        )  # fmt: skip

    def run(self, host: int, *args: object) -> str:
        """Runs a command to its end; returns what it printed."""
        return finished([self.start(host, *args)])[0]

    def copy(self, name: str, source: int = 0) -> None:
        """Copies a public file from one host to all others."""
        for host, folder in enumerate(self.folders):
            if host != source:
                shutil.copy(self.folders[source] / name, folder / name)


def finished(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Standard outputs of processes that all succeeded."""
    results = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), results
    return [out for out, _ in results]


def ended(process: subprocess.Popen[str], seconds: float = 100) -> tuple[int, str]:
    """Exit code and standard error."""
    _, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err
    return process.returncode, err.strip()


def committee_on_hosts(folder: Path, *options: object) -> Hosts:
    """docs/pages/deployment.md, steps 1 to 3: a committee on three hosts."""
    if reason := why_not():
        pytest.skip(reason)
    made = Hosts(folder)
    addresses = [word for port in free_ports(PARTIES) for word in ("--host", f"127.0.0.1:{port}")]
    finished([made.start(i, "init", "committee", "--name", "demo", *options, *addresses, "--me", i) for i in range(PARTIES)])
    prints = [Committee.load(folder / "committee").parties[i].fingerprint for i, folder in enumerate(made.folders)]
    for i in range(PARTIES):
        for j in range(PARTIES):
            if i != j:
                api.trust(made.folders[i] / "committee", j, prints[j])
    return made


def run_job(hosts: Hosts, name: str, *words: object) -> list[str]:
    """Writes a job on host 0, copies it, and runs it on all hosts; returns what each printed."""
    hosts.run(0, *words, "--job", name)
    hosts.copy(name)
    return finished([hosts.start(i, "party", "committee", i, name, "--json") for i in range(PARTIES)])


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """docs/pages/deployment.md, steps 1 to 4: a committee on three hosts, with a BFV key."""
    made = committee_on_hosts(tmp_path_factory.mktemp("deployment"))
    made.run(0, "keygen", "committee", "key", "-p", "bfv-4096", "--no-relin", "--job", "keygen.json")
    made.copy("keygen.json")
    parties = [made.start(i, "party", "committee", i, "keygen.json", "--json") for i in range(PARTIES)]
    assert len({json.loads(out)["key_id"] for out in finished(parties)}) == 1
    (made.folders[0] / "values.json").write_text("[3, 1, 4, -1, 5]")
    made.run(0, "encrypt", "committee", "key", "values.json", "-o", "x.ct")
    made.run(0, "decrypt", "committee", "key", "x.ct", "--to", "2", "--job", "decrypt.json")
    yield made


def test_hosts_that_see_nothing_of_each_other_decrypt(hosts: Hosts) -> None:
    """Step 5, with the job and the ciphertext copied, and nothing else."""
    hosts.copy("decrypt.json")
    hosts.copy("x.ct")
    assert str(hosts.here) not in (hosts.folders[0] / "decrypt.json").read_text()
    said = finished([hosts.start(i, "party", "committee", i, "decrypt.json") for i in range(PARTIES)])
    assert "party 2 wrote" in said[2] and "party 2 has the result" in said[0] and "done in" in said[1]
    assert "3 1 4 -1 5" in hosts.run(2, "decode", "committee", "key", "x.ct.plain")
    assert (hosts.folders[2] / "x.ct.plain").stat().st_mode & 0o077 == 0
    assert not any((folder / "x.ct.plain").exists() for folder in hosts.folders[:2])


@pytest.mark.parametrize(
    "name", ["lwe64-p2", pytest.param("tfhers-2-2", marks=pytest.mark.skipif(not LONG, reason="a key of 200 MB: KEYQUORUM_LONG=1"))]
)
@pytest.mark.timeout(600)
def test_pools_of_several_hosts(tmp_path: Path, name: str) -> None:
    """docs/pages/tfhe.md on three hosts: key, pool, decryption; then key and tables of the pseudorandom function. The test encrypts, under the secret of the shares of all hosts, as the bridge would."""
    hosts = committee_on_hosts(tmp_path, "--protocol", "rep-field")
    run_job(hosts, "keygen.json", "keygen", "committee", "key", "-p", name)
    code, error = ended(hosts.start(0, "pool", "fill", "committee", "-p", name, "-n", 8))
    assert code == 1 and "party 1 is not on this host: write the job with --job FILE, and run keyquorum party committee INDEX FILE" in error
    run_job(hosts, "fill.json", "pool", "fill", "committee", "-p", name, "-n", 8)
    assert api.pool_lines(hosts.folders[1] / "committee") == [f"party 1: {name}-round_ltz_circuit: 8 items left of 8"]
    folders = [hosts.folders[i] / "committee" / f"party-{i}" / "keys" / "key" for i in range(PARTIES)]
    info = load_key(folders[0])
    shares = [load_shares(folder, info, i)[0] for i, folder in enumerate(folders)]  # they wipe themselves
    parameters, messages = info.parameters, np.array([1, 0, 1, 1])
    assert isinstance(parameters, LweParameters)
    secret = reconstruct("rep-field", 1, [s.words[:, : parameters.dimension] for s in shares], parameters.modulus)
    (hosts.folders[0] / "x.lwe").write_bytes(encrypt(parameters, secret, messages, np.random.default_rng(1)).to_bytes(info.key_id))
    hosts.copy("x.lwe")
    run_job(hosts, "decrypt.json", "decrypt", "committee", "key", "x.lwe", "--to", 2)
    assert hosts.run(2, "decode", "committee", "key", "x.lwe.plain").split() == ["1", "0", "1", "1"]
    run_job(hosts, "prf.json", "toprf", "keygen", "committee", "prf")
    run_job(hosts, "tables.json", "toprf", "fill", "committee", "-n", 2)
    assert "party 2: prf-aes128-table: 2 items left of 2" in api.pool_lines(hosts.folders[2] / "committee")


def test_a_host_may_keep_its_files_elsewhere(hosts: Hosts) -> None:
    """--ciphertext and --output replace the names of the job."""
    (hosts.folders[1] / "data").mkdir()
    shutil.copy(hosts.folders[0] / "x.ct", hosts.folders[1] / "data" / "mine.ct")
    hosts.copy("decrypt.json")
    hosts.copy("x.ct")
    (hosts.folders[1] / "x.ct").unlink()
    (hosts.folders[2] / "private").mkdir()
    more: dict[int, list[str]] = {0: [], 1: ["--ciphertext", "data/mine.ct"], 2: ["--output", "private"]}
    finished([hosts.start(i, "party", "committee", i, "decrypt.json", *more[i]) for i in range(PARTIES)])
    assert "3 1 4 -1 5" in hosts.run(2, "decode", "committee", "key", "private/x.ct.plain")


def test_a_party_that_cannot_run_a_job_reports_it_at_once_to_the_others(hosts: Hosts) -> None:
    """Party 1 has another ciphertext, which it notices before it connects; the waiting parties name party 1 and the reason."""
    hosts.copy("decrypt.json")
    hosts.copy("x.ct")
    (hosts.folders[1] / "x.ct").write_bytes(b"other")
    others = [hosts.start(i, "party", "committee", i, "decrypt.json") for i in (0, 2)]
    time.sleep(1)
    code, error = ended(hosts.start(1, "party", "committee", 1, "decrypt.json"), 30)
    assert code == 1 and "x.ct is not the ciphertext that the committee was asked to decrypt" in error and len(error.splitlines()) == 1
    for other in others:
        code, error = ended(other, 30)
        assert code == 1 and "party 1" in error.splitlines()[-1] and "is not the ciphertext" in error.splitlines()[-1], error


def test_a_missing_ciphertext_is_named_with_the_option(hosts: Hosts) -> None:
    """No other party runs: it need not connect."""
    hosts.copy("decrypt.json")
    (hosts.folders[1] / "x.ct").unlink(missing_ok=True)
    code, error = ended(hosts.start(1, "party", "committee", 1, "decrypt.json"), 30)
    assert code == 1 and "x.ct: no such file: copy the ciphertext there, or name it with keyquorum party --ciphertext" in error


def test_jobs_that_differ_are_compared_by_entry(hosts: Hosts) -> None:
    """The error names the entry, and both values."""
    hosts.copy("decrypt.json")
    hosts.copy("x.ct")
    path = hosts.folders[1] / "decrypt.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "receiver": 0}))
    errors = [ended(process) for process in [hosts.start(i, "party", "committee", i, "decrypt.json") for i in range(PARTIES)]]
    assert all(code == 1 for code, _ in errors)
    assert 'party 1 has receiver "0" where we have "2"' in errors[0][1] + errors[2][1]
    assert '"2" where we have "0"' in errors[1][1]


def test_committee_files_that_differ_are_compared_by_entry(hosts: Hosts) -> None:
    """At ``keyquorum doctor`` as well."""
    path = hosts.folders[1] / "committee" / "committee.toml"
    text = path.read_text()
    path.write_text(text.replace('name = "demo"', 'name = "other"'))
    try:
        runs = [hosts.start(i, "doctor", "committee", "--seconds", "8") for i in range(PARTIES)]
        seen = [process.communicate(timeout=60)[0] for process in runs]
    finally:
        path.write_text(text)
    assert 'party 1 has committee.name "other" where we have "demo"' in seen[0] and "FIX" in seen[2]


def test_ctrl_c_says_who_was_interrupted(hosts: Hosts) -> None:
    """Exit code 130, while it waits for a party that does not come; the party that is there names it."""
    hosts.copy("decrypt.json")
    hosts.copy("x.ct")
    first, second = (hosts.start(i, "party", "committee", i, "decrypt.json") for i in (0, 1))
    assert first.stderr is not None
    line = first.stderr.readline()
    while "party 1" in line:  # it may have come a second later
        line = first.stderr.readline()
    assert line.startswith("waiting for party 2 (127.0.0.1:")
    second.send_signal(signal.SIGINT)
    code, error = ended(second, 20)
    assert code == 130 and error.splitlines()[-1] == "error: party 1 was interrupted; keys made before are untouched"
    code, error = ended(first, 20)
    assert code == 1 and error.splitlines()[-1] == "error: party 1 aborted: party 1 was interrupted"


def test_containers_decrypt_as_documented(tmp_path: Path) -> None:
    """docs/pages/containers.md: the commands of the Compose file on its volumes, at other paths and on this machine's ports."""
    if reason := why_not():
        pytest.skip(reason)
    made = prepare(tmp_path / "quorum", PARTIES, "shamir", timeouts=(60, 60))
    containers = Hosts(tmp_path)
    ports = free_ports(PARTIES)
    for party, folder in enumerate(containers.folders):
        text = (made.volume(party) / "committee.toml").read_text()
        for i in range(PARTIES):
            text = text.replace(f'host = "party-{i}"\nport = 4000', f'host = "127.0.0.1"\nport = {ports[i]}')
        made.volume(party).rename(folder / "committee")
        (folder / "committee" / "committee.toml").write_text(text)
        (folder / "jobs").mkdir()

    def up() -> list[str]:
        processes = []
        for party, folder in enumerate(containers.folders):
            for name in ("job.json", "x.ct"):
                if (containers.folders[0] / "jobs" / name).exists() and party:
                    shutil.copy(containers.folders[0] / "jobs" / name, folder / "jobs" / name)
            words = [w.replace("/committee", "committee").replace("/jobs", "jobs") for w in made.services()[f"party-{party}"]["command"]]
            processes.append(containers.start(party, *words))
        return finished(processes)

    containers.run(0, "keygen", "committee", "key", "-p", "bfv-4096", "--no-relin", "--job", "jobs/job.json")
    up()
    (containers.folders[0] / "values.json").write_text("[2, 7, 1, 8]")
    containers.run(0, "encrypt", "committee", "key", "values.json", "-o", "jobs/x.ct")
    containers.run(0, "decrypt", "committee", "key", "jobs/x.ct", "--to", "2", "--job", "jobs/job.json")
    for folder in containers.folders:  # as /jobs is in a container: an output there would fail
        assert not (folder / "jobs" / "x.ct.plain").exists()
    assert "party 2 wrote" in up()[2]
    assert "2 7 1 8" in containers.run(2, "decode", "committee", "key", "committee/x.ct.plain")
