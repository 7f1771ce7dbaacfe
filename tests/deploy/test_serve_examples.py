"""The systemd unit and the Compose example for keyquorum serve: well formed, with options that the command has."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.parties.epochs import read_epoch
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.serve.client import fetch, make_receiver
from keyquorum.serve.daemon import Daemon, Own, Service
from typer.testing import CliRunner

from tests.commands import Forked
from tests.deploy.test_compose import filled
from tests.plans.test_refresh import with_keys

FOLDER = Path(__file__).resolve().parents[2] / "docker" / "serve"
UNIT, REFRESH, TIMER = (FOLDER / name for name in ("keyquorum-serve@.service", "keyquorum-refresh@.service", "keyquorum-refresh@.timer"))
COMPOSE = FOLDER / "compose.yaml"


def unit(path: Path = UNIT) -> configparser.ConfigParser:
    """The unit; keys may repeat in a file of systemd, here they do but for Environment."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return parser


def compose_command() -> list[str]:
    """The command of the service, with its variables filled in."""
    return filled(json.loads(COMPOSE.read_text())["services"]["party"]["command"], {"PARTY": "0", "KEY": "key"})


def unit_command() -> list[str]:
    """What systemd runs, from the name of the program on."""
    command = unit()["Service"]["ExecStart"].replace("%i", "0").replace("${KEY}", "key").replace("$OPTIONS", "--keep 20000")
    words = shlex.split(command)
    return words[words.index("keyquorum") + 1 :]


@pytest.fixture(scope="module")
def committee(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "committee"
    api.keygen(api.init(folder, 2, "semi"), "key", "lwe64-p2")
    make_receiver(api.as_committee(folder), "bob")
    return folder


@pytest.mark.parametrize("words", [unit_command(), compose_command()], ids=["systemd", "compose"])
def test_the_command_starts_a_party(committee: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """All words are understood by the real command line, up to where the party would connect."""
    started: list[tuple[Any, ...]] = []

    def serve(committee: Any, party: int, service: Service, own: Own, *rest: Any) -> None:
        started.append((party, service, own.ports, own.host))

    monkeypatch.setattr("keyquorum.serve.daemon.serve", serve)
    assert words[:2] in (["serve", "/committee"], ["serve", "/var/lib/keyquorum/committee"])
    result = CliRunner().invoke(app, ["serve", str(committee), *words[2:]], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert started == [(0, Service("key", keep=20000), (4443, 9464), "0.0.0.0")]


def refresh_words() -> list[str]:
    """What the timer runs, from the name of the program on."""
    words = shlex.split(unit(REFRESH)["Service"]["ExecStart"].replace("%i", "0"))
    return words[words.index("keyquorum") + 1 :]


def test_a_quarterly_refresh(tmp_path: Path) -> None:
    """The command of the timer, at all parties while they serve: a new epoch, and they serve in it. The Compose file has the same command."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    alice, _ = make_receiver(committee, "alice")
    data = api.encrypt(committee, "key", [1, 0, 3], tmp_path / "x.lwe").path.read_bytes()
    job = tmp_path / "refresh.json"
    api.write_job(job, api.refresh_shares_job(committee))
    (said,) = (line for line in json.loads(COMPOSE.read_text())["x-about"] if "refresh.json" in line)
    composed = shlex.split(said.partition("exec -T party keyquorum ")[2])
    words = refresh_words()
    assert composed[0] == words[0] == "party" and (composed[2], words[2]) == ("${PARTY}", "0") and composed[4:] == words[4:]
    daemons = [Daemon(committee, party, Service("key", keep=16, chunk=16)) for party in range(3)]
    threads = [threading.Thread(target=daemon.run, daemon=True) for daemon in daemons]
    for thread in threads:
        thread.start()
    try:
        assert isinstance(fetch(committee, alice, data, wait=60), LweDecrypted)
        jobs = [
            Forked([sys.executable, "-m", "keyquorum", "party", str(committee.folder), str(party), str(job), *words[4:]], stdout=subprocess.DEVNULL)
            for party in range(3)
        ]
        assert [each.wait(120) for each in jobs] == [0, 0, 0]
        assert {read_epoch(committee.party_folder(party)).number for party in range(3)} == {1}
        found = fetch(committee, alice, data, wait=60)
        assert isinstance(found, LweDecrypted) and found.messages.tolist() == [1, 0, 3]
    finally:
        for daemon, thread in zip(daemons, threads, strict=True):
            daemon.stop()
            thread.join(30)


def test_the_timer_is_of_all_parties_at_one_time() -> None:
    """All start at one time, so none is late by a random delay, and none catches up alone. The unit protects shares as that of serving does."""
    timer, service, serving = unit(TIMER)["Timer"], unit(REFRESH)["Service"], unit()["Service"]
    assert timer["OnCalendar"].endswith("UTC") and timer["RandomizedDelaySec"] == "0" and timer["Persistent"] == "false"
    other = {"Type", "EnvironmentFile", "ExecStart", "ExecReload", "Restart", "RestartSec", "TimeoutStopSec", "TimeoutStartSec"}
    assert {name: value for name, value in service.items() if name not in other} == {n: v for n, v in serving.items() if n not in other}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_timer(tmp_path: Path) -> None:
    copies = [tmp_path / "keyquorum-refresh@0.service", tmp_path / "keyquorum-refresh@0.timer"]
    for copy, source in zip(copies, (REFRESH, TIMER), strict=True):
        copy.write_text(source.read_text())
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not [line for line in done.stderr.splitlines() if "keyquorum" in line], done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "keyquorum-serve@0.service"
    copy.write_text(UNIT.read_text())
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
    ours = [line for line in done.stderr.splitlines() if "keyquorum" in line]
    assert done.returncode == 0 and ours == [], done.stderr
    copy.write_text(UNIT.read_text().replace("Restart=on-failure", "Restart=sometimes").replace("UMask=", "Umask="))
    broken = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60)
    assert "sometimes" in broken.stderr, "systemd-analyze finds no mistakes here"


def test_the_unit_protects_shares() -> None:
    service = unit()["Service"]
    for name, value in {"LimitCORE": "0", "UMask": "0077", "NoNewPrivileges": "yes", "User": "keyquorum", "MemorySwapMax": "0"}.items():
        assert service[name] == value


def test_the_compose_file_is_whole() -> None:
    """Keys that Compose knows, and the ports of the command."""
    parsed = json.loads(COMPOSE.read_text())
    assert {key for key in parsed if not key.startswith("x-")} == {"name", "services"}
    service = parsed["services"]["party"]
    known = {
        "image", "command", "environment", "volumes", "ports", "healthcheck", "read_only", "tmpfs", "cap_drop", "cap_add", "security_opt", "ulimits",
        "init", "stop_grace_period", "restart",
    }  # fmt: skip
    assert set(service) <= known
    assert "4443:4443" in service["ports"] and service["read_only"] and service["cap_drop"] == ["ALL"]


def test_alerts_are_of_metrics_that_are_there() -> None:
    documented = set(re.findall(r"`(keyquorum_[a-z_]+)", (FOLDER.parents[1] / "docs" / "pages" / "deployment.md").read_text()))
    (group,) = json.loads((FOLDER / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "annotations"}
        assert set(re.findall(r"keyquorum_[a-z_]+", rule["expr"])) <= documented, rule["alert"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])


@pytest.mark.skipif(
    subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0 if shutil.which("docker") else True,
    reason="no Docker Compose here",
)
def test_compose_accepts_the_file() -> None:
    environment = {"PARTY": "0", "KEY": "key", "PORT": "4000", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = subprocess.run(["docker", "compose", "-f", str(COMPOSE), "config", "-q"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_health_check_looks_at_readiness(committee: Path) -> None:
    """It fails until all parties are connected."""
    check = json.loads(COMPOSE.read_text())["services"]["party"]["healthcheck"]["test"][-1]
    daemons = [Daemon(api.as_committee(committee), party, Service("key", keep=1)) for party in range(2)]
    port = daemons[0].metrics.port
    words = ["python3", "-c", check.replace("9464", str(port))]
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200
    assert subprocess.run(words, timeout=30, check=False).returncode == 1
    threads = [threading.Thread(target=daemon.run, daemon=True) for daemon in daemons]
    for thread in threads:
        thread.start()
    try:
        assert any(subprocess.run(words, timeout=30, check=False, capture_output=True).returncode == 0 for _ in range(60))
    finally:
        for daemon, thread in zip(daemons, threads, strict=True):
            daemon.stop()
            thread.join(30)
