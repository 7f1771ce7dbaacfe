"""Containers: the Compose file, and, with a Docker engine and the image, parties that run, fail and rejoin.

KEYQUORUM_IMAGE names the image; ``make test-containers`` sets it. Without the variable, an engine or the image these tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.deploy.compose import Deployment, docker_run, host, prepare
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.serve.client import fetch, make_receiver
from typer.testing import CliRunner

IMAGE = os.environ.get("KEYQUORUM_IMAGE", "keyquorum")
PARTIES = 5
SERVED = Path(__file__).resolve().parents[2] / "docker" / "serve" / "compose.yaml"


def filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Words of a Compose file, with its variables filled in."""
    return [re.sub(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}", lambda m: values.get(m[1]) or m[2], word) for word in words]


def docker(*words: str, ok: bool = True) -> str:
    """Runs docker; returns what it printed."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=120, check=False)
    assert not ok or done.returncode == 0, f"docker {' '.join(words)}: {done.stderr}"
    return (done.stdout + done.stderr).strip()


def why_not() -> str:
    """The reason why containers cannot be tested; empty if they can. An image that exists by chance may have other code."""
    if not os.environ.get("KEYQUORUM_IMAGE"):
        return "make test-containers tests containers (KEYQUORUM_IMAGE names no image)"
    if shutil.which("docker") is None:
        return "docker is not installed"
    try:
        if subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False).returncode != 0:
            return "no Docker engine answers"
        found = subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "no Docker engine answers"
    return "" if found.returncode == 0 else f"no image {IMAGE}: make it with docker/build.sh"


def test_every_party_has_a_volume_with_its_own_identity_only(tmp_path: Path) -> None:
    made = prepare(tmp_path / "q", PARTIES, "shamir")
    for party in range(PARTIES):
        committee = Committee.load(made.volume(party))
        assert committee.local_parties() == [party]
        assert [(p.host, p.port) for p in committee.parties] == [(host(i), 4000) for i in range(PARTIES)]
        assert made.volume(party).stat().st_mode & 0o077 == 0
    assert len({Committee.load(made.volume(i)).digest for i in range(PARTIES)}) == 1
    identities = list((tmp_path / "q").rglob("identity.pem"))
    assert len(identities) == PARTIES


def test_the_file_has_a_service_for_each_party(tmp_path: Path) -> None:
    made = prepare(tmp_path / "q", 3, "semi", image="mine", timeouts=(7, 9))
    data = json.loads(made.file.read_text())
    assert list(data["services"]) == ["party-0", "party-1", "party-2"]
    volumes = [service["volumes"][0].split(":")[0] for service in data["services"].values()]
    assert len(set(volumes)) == 3 and all((made.folder / v).is_dir() for v in volumes)
    for party, service in enumerate(data["services"].values()):
        assert service["image"] == "mine" and service["healthcheck"]["test"][0] == "CMD"
        assert service["command"][:6] == ["party", "/committee", str(party), "/jobs/job.json", "--output", "/committee"]
        assert service["command"][-4:] == ["--connect-timeout", "7", "--io-timeout", "9"]
        words = list(docker_run(made, party, "net", "name"))
        assert words[-len(service["command"]) - 1 :] == ["mine", *service["command"]]
        assert f"{made.volume(party).resolve()}:/committee" in words and "ALL" in words


def test_netem_needs_a_right_and_is_asked_for(tmp_path: Path) -> None:
    made = prepare(tmp_path / "q", 3, netem=True)
    for party, service in enumerate(made.services().values()):
        assert service["cap_add"] == ["DAC_OVERRIDE", "NET_ADMIN"] and service["environment"] == {"KEYQUORUM_NETEM": "eth0"}
        words = list(docker_run(made, party, "net", "name"))
        assert "KEYQUORUM_NETEM=eth0" in words and words[words.index("NET_ADMIN") - 1] == "--cap-add"


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    prepare(tmp_path / "q", 3)
    with pytest.raises(CommitteeError, match="there is a deployment already"):
        prepare(tmp_path / "q", 3)
    with pytest.raises(CommitteeError, match="rep-field is for 3 parties"):
        prepare(tmp_path / "r", 5, "rep-field")
    with pytest.raises(CommitteeError, match="no Compose file"):
        Deployment(tmp_path / "nothing", 3).services()


def test_the_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compose", str(tmp_path / "q"), "-n", "5"])
    assert done.exit_code == 0, done.output
    assert "5 parties (shamir)" in done.output and "docker compose -f" in done.output


class Containers:
    """A deployment that runs, with plain docker: Compose need not be installed."""

    def __init__(self, folder: Path, parties: int = PARTIES) -> None:
        self.made, self.parties = prepare(folder, parties, "shamir", image=IMAGE, timeouts=(20, 5), netem=True), parties
        self.network = f"keyquorum-{secrets.token_hex(4)}"
        docker("network", "create", self.network)

    def name(self, party: int) -> str:
        """Of a container."""
        return f"{self.network}-{party}"

    def start(self, key: str, link: str | None = None, parameters: str = "bfv-4096") -> None:
        """Starts key generation in all of them."""
        self.remove()
        job = api.keygen_job(key, api.load_parameters(parameters), link=link)
        api.write_job(self.made.job, job)
        for party in range(self.parties):
            docker(*docker_run(self.made, party, self.network, self.name(party)))

    def serve(self) -> None:
        """Starts what docker/serve/compose.yaml says, in place of what ran, with the options of plain docker that do the same."""
        self.remove()
        (service,) = json.loads(SERVED.read_text())["services"].values()
        words = ["--read-only", "--init", "--tmpfs", service["tmpfs"][0], "--security-opt", service["security_opt"][0]]
        words += ["--cap-drop", *service["cap_drop"], "--cap-add", *service["cap_add"]]
        words += [word for name, value in service["ulimits"].items() for word in ("--ulimit", f"{name}={value}")]
        for party in range(self.parties):
            place = ["--network", self.network, "--network-alias", host(party), "--volume", f"{self.made.volume(party).resolve()}:/committee"]
            command = filled(service["command"], {"PARTY": str(party), "KEY": "key", "KEEP": "16"})
            docker("run", "--detach", "--name", self.name(party), *place, *words, IMAGE, *command)

    def addresses(self) -> list[tuple[str, int]]:
        """Where receivers ask."""
        shown = (
            json.loads(docker("inspect", self.name(i)))[0]["NetworkSettings"]["Networks"][self.network]["IPAddress"] for i in range(self.parties)
        )
        return [(address, 4443) for address in shown]

    def wait(self) -> list[tuple[int, str]]:
        """Exit codes and outputs."""
        codes = [int(docker("wait", self.name(i))) for i in range(self.parties)]
        return [(code, docker("logs", self.name(i))) for i, code in enumerate(codes)]

    def until_connected(self) -> None:
        """Waits until party 0 talks to all others."""
        for _ in range(100):
            listening = docker("exec", self.name(0), "sh", "-c", "cat /proc/1/net/tcp /proc/1/net/tcp6", ok=False)
            # State 01: established; four peers, one connection a direction.
            if sum(line.split()[3] == "01" for line in listening.splitlines() if len(line.split()) > 3) >= 2 * (self.parties - 1):
                return
            time.sleep(0.1)
        raise AssertionError("the parties did not connect: " + docker("logs", self.name(0)))

    def remove(self) -> None:
        """Removes the containers."""
        docker("rm", "--force", *[self.name(i) for i in range(self.parties)], ok=False)

    def close(self) -> None:
        """Removes everything."""
        self.remove()
        docker("network", "rm", self.network, ok=False)


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    made = Containers(tmp_path / "quorum")
    yield made
    made.close()


def test_five_containers_make_a_key_survive_a_kill_and_a_cut(containers: Containers) -> None:
    """After a container is killed, the others report an error that names it; a cut link ends all waits; and a rerun succeeds."""
    containers.start("key", link="rtt=400")  # slow enough to be disturbed in the middle
    containers.until_connected()
    docker("kill", containers.name(3))
    results = containers.wait()
    assert results[3][0] == 137
    for party in (0, 1, 2, 4):
        code, text = results[party]
        assert code == 1 and "party 3" in text and "Traceback" not in text, f"party {party}: {text}"

    containers.start("key", link="rtt=400")
    containers.until_connected()
    docker("network", "disconnect", "--force", containers.network, containers.name(2))
    results = containers.wait()
    # All waits are equally long, so the one that ends first may be for a party that itself waits for the one cut off.
    for party, (code, text) in enumerate(results):
        assert code == 1 and "error: " in text and "Traceback" not in text, f"party {party}: {text}"
        assert re.search(r"party [0-4]\b", text), text

    containers.start("key")
    results = containers.wait()
    assert [code for code, _ in results] == [0] * PARTIES, results
    assert all("SIMULATED" not in text for _, text in results)
    containers.start("shaped", link="rtt=20")
    results = containers.wait()
    # One of both is in force, and the same at all parties: which depends on the kernel.
    said = {re.search(r"SIMULATED LINKS: round trip 20 ms, any bandwidth, by (the engine|tc netem)", text) for _, text in results}
    assert None not in said and len({match[1] for match in said if match}) == 1, results
    for party in range(PARTIES):
        info = api.load_key(containers.made.volume(party) / f"party-{party}" / "keys" / "key")
        assert info.parties == PARTIES


def test_three_containers_refresh_shares_while_they_serve(tmp_path: Path) -> None:
    """With docker/serve/compose.yaml, and the command of its quarterly refresh in all of them at one time: the committee answers in the new epoch."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    containers = Containers(tmp_path / "quorum", parties=3)
    volumes = [containers.made.volume(party) for party in range(3)]
    (said,) = (line for line in json.loads(SERVED.read_text())["x-about"] if "refresh.json" in line)
    refresh = shlex.split(said.partition("exec -T party ")[2])
    try:
        containers.start("key", parameters="lwe53-p16")
        assert [code for code, _ in containers.wait()] == [0, 0, 0]
        whole = tmp_path / "whole"
        whole.mkdir()
        shutil.copy(volumes[0] / "committee.toml", whole)
        for party, volume in enumerate(volumes):
            (whole / f"party-{party}").symlink_to(volume / f"party-{party}")
            api.write_job(volume / "refresh.json", api.refresh_shares_job(volume))
        committee = Committee.load(whole)
        alice, _ = make_receiver(committee, "alice")
        data = api.encrypt(volumes[0], "key", [1, 0, 3], tmp_path / "x.lwe").path.read_bytes()
        containers.serve()
        for epoch in (0, 1):
            found = fetch(committee, alice, data, containers.addresses()[: committee.threshold + 1], wait=60)
            assert isinstance(found, LweDecrypted) and found.messages.tolist() == [1, 0, 3]
            if not epoch:
                jobs = [subprocess.Popen(["docker", "exec", containers.name(i), *filled(refresh, {"PARTY": str(i)})]) for i in range(3)]
                assert [job.wait(120) for job in jobs] == [0, 0, 0]
            status = [docker("exec", containers.name(i), "keyquorum", "epoch", "status", "/committee") for i in range(3)]
            assert all("epoch 1" in text for text in status), status
    finally:
        containers.close()


def test_the_demo_and_a_bench_run_in_a_container(tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    assert "demo: ok" in docker("run", "--rm", IMAGE, "demo")
    out = docker("run", "--rm", IMAGE, "bench", "primitives", "--quick", "--only", "opening", "-E", "ring", "--repeats", "1")
    assert "bench: ok suite=primitives" in out
