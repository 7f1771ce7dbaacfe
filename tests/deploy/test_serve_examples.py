"""The systemd unit and the Compose example for keyquorum serve: well formed, with options that the command has."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.serve.client import make_receiver
from keyquorum.serve.daemon import Daemon, Own, Service
from typer.testing import CliRunner

FOLDER = Path(__file__).resolve().parents[2] / "docker" / "serve"
UNIT = FOLDER / "keyquorum-serve@.service"
COMPOSE = FOLDER / "compose.yaml"


def unit() -> configparser.ConfigParser:
    """The unit; keys may repeat in a file of systemd, here they do but for Environment."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return parser


def compose_command() -> list[str]:
    """The command of the service, with its variables filled in."""
    values = {"PARTY": "0", "KEY": "key"}
    service = json.loads(COMPOSE.read_text())["services"]["party"]
    return [re.sub(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}", lambda m: values.get(m[1]) or m[2], word) for word in service["command"]]


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
