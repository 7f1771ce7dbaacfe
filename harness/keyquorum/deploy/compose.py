"""``keyquorum compose``: a committee whose parties are containers, each with its own volume and address, for Docker Compose.

The file is JSON, which Compose reads as YAML. Identities are made here, for all parties: a set-up for tests and
experiments on one machine. Parties that do not trust this machine make their own (``keyquorum init --me``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import CommitteeError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import DEFAULT_COMMITTEE
from keyquorum.parties.setup import init
from keyquorum.parties.shaping import VARIABLE as NETEM

PORT = 4000
IMAGE = "keyquorum"
FILE = "compose.yaml"
INTERFACE = "eth0"
"""The interface of a container in a bridge network."""


@dataclass(frozen=True)
class Deployment:
    """A folder with ``compose.yaml``, a volume ``volumes/party-I`` for each party, and ``jobs/``."""

    folder: Path
    parties: int

    @property
    def file(self) -> Path:
        """The Compose file."""
        return self.folder / FILE

    @property
    def job(self) -> Path:
        """The job that the containers run."""
        return self.folder / "jobs" / "job.json"

    def volume(self, party: int) -> Path:
        """The committee folder of one party: its own identity and nothing of the others."""
        return self.folder / "volumes" / f"party-{party}"

    def services(self) -> dict[str, Json]:
        """The services of the Compose file. Raises CommitteeError."""
        try:
            services: dict[str, Json] = json.loads(self.file.read_text())["services"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommitteeError(f"{self.file}: no Compose file of keyquorum compose ({error})") from error
        return services


def host(party: int) -> str:
    """The name under which the others find a party."""
    return f"party-{party}"


def _service(party: int, image: str, timeouts: tuple[float, float], netem: bool) -> Json:
    connect, io = timeouts
    service: Json = {
        "image": image,
        "hostname": host(party),
        # Plaintexts go to the receiver's own volume: all parties see the folder of jobs.
        "command": [
            "party", "/committee", str(party), "/jobs/job.json", "--output", "/committee",
            "--connect-timeout", f"{connect:g}", "--io-timeout", f"{io:g}",
        ],
        "volumes": [f"./volumes/{host(party)}:/committee", "./jobs:/jobs:ro"],
        "networks": {"quorum": {"aliases": [host(party)]}},
        "healthcheck": {"test": ["CMD", "keyquorum", "inspect", "/committee"], "interval": "10s", "timeout": "10s", "retries": 3},
        "cap_drop": ["ALL"],
        "cap_add": ["DAC_OVERRIDE"],  # volumes of the user who ran keyquorum compose
        "security_opt": ["no-new-privileges:true"],
        "init": True,
        "restart": "no",
    }  # fmt: skip
    if netem:
        service["cap_add"].append("NET_ADMIN")
        service["environment"] = {NETEM: INTERFACE}
    return service


def prepare(
    folder: Path,
    parties: int = 3,
    protocol: str = DEFAULT_COMMITTEE,
    threshold: int | None = None,
    image: str = IMAGE,
    timeouts: tuple[float, float] = (60.0, 60.0),
    netem: bool = False,
) -> Deployment:
    """Makes the committee and the Compose file. ``timeouts``: seconds to wait for the other parties, and for a message. ``netem``:
    the kernel simulates links where it has tc netem, see :mod:`keyquorum.parties.shaping`.

    Raises CommitteeError if there is a deployment already, or for an impossible committee.
    """
    deployment = Deployment(folder, parties)
    if deployment.file.exists():
        raise CommitteeError(f"{folder}: there is a deployment already: choose another folder")
    if not 2 <= parties <= 64:
        raise CommitteeError(f"{parties} parties: choose 2 to 64")
    hosts = [f"{host(i)}:{PORT}" for i in range(parties)]
    folder.mkdir(parents=True, exist_ok=True)
    committee = init(folder / "all", parties, protocol, threshold, hosts, name="compose")
    for party in range(parties):
        _move(committee, party, deployment.volume(party))
    (folder / "all" / "committee.toml").unlink()
    (folder / "all").rmdir()
    deployment.job.parent.mkdir()
    services = {host(i): _service(i, image, timeouts, netem) for i in range(parties)}
    text = json.dumps({"name": "keyquorum", "services": services, "networks": {"quorum": {"driver": "bridge"}}}, indent=2)
    write_atomically(deployment.file, text.encode() + b"\n")
    return deployment


def _move(committee: Committee, party: int, volume: Path) -> None:
    volume.mkdir(parents=True, mode=0o700)
    write_atomically(volume / "committee.toml", (committee.folder / "committee.toml").read_bytes())
    committee.party_folder(party).rename(volume / f"party-{party}")


def docker_run(deployment: Deployment, party: int, network: str, name: str) -> Sequence[str]:
    """The arguments of ``docker run`` that do what the Compose file says for one party, where Compose is not installed."""
    service = deployment.services()[host(party)]
    words = ["run", "--detach", "--name", name, "--hostname", service["hostname"], "--network", network]
    words += ["--network-alias", host(party), "--init", "--cap-drop", "ALL"]
    words += [word for capability in service["cap_add"] for word in ("--cap-add", capability)]
    words += [word for name, value in service.get("environment", {}).items() for word in ("--env", f"{name}={value}")]
    words += ["--security-opt", service["security_opt"][0]]
    for volume in service["volumes"]:
        source, rest = str(volume).split(":", 1)
        words += ["--volume", f"{(deployment.folder / source).resolve()}:{rest}"]
    return [*words, service["image"], *service["command"]]
