"""What a party says of itself over HTTP: whether it serves, which party is away, and how its requests went."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.serve.client import Refused, fetch, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.metrics import Metrics
from prometheus_client.parser import text_string_to_metric_families

from .daemons import Threads

DOCS = Path(__file__).resolve().parents[2] / "docs" / "pages" / "deployment.md"
MESSAGES = np.array([1, 0, 1, 1])
SECONDS = 60.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Committee, Path, bytes]:
    """A committee of two with a key, a receiver, and ciphertexts."""
    folder = tmp_path_factory.mktemp("metrics")
    committee = api.init(folder / "committee", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    identity, _ = make_receiver(committee, "alice")
    api.encrypt(committee, "key", np.zeros(3000, int), folder / "large.lwe")
    return committee, identity, api.encrypt(committee, "key", MESSAGES, folder / "x.lwe").path.read_bytes()


def get(daemon: Daemon, path: str) -> tuple[int, str]:
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def values(daemon: Daemon) -> dict[str, float]:
    """Samples by name and labels."""
    found = {}
    for family in text_string_to_metric_families(get(daemon, "/metrics")[1]):
        for sample in family.samples:
            found[sample.name + "".join(f" {value}" for value in sample.labels.values())] = sample.value
    return found


def wait_for_ready(daemon: Daemon, status: int, text: str) -> None:
    end = time.monotonic() + SECONDS
    while (said := get(daemon, "/ready")) and not (said[0] == status and re.search(text, said[1])):
        assert time.monotonic() < end, said
        time.sleep(0.05)


def test_health_readiness_and_gauges(made: tuple[Committee, Path, bytes]) -> None:
    committee, identity, data = made
    parties = Threads(committee, Service("key", keep=600, chunk=600))
    daemon = parties._daemons[0]
    assert get(daemon, "/health")[0] == 200 and get(daemon, "/other")[0] == 404
    assert get(daemon, "/ready") == (503, "the parties are not connected yet\n")
    with parties:
        wait_for_ready(daemon, 200, "^ready$")
        assert np.array_equal(fetch(committee, identity, data).messages, MESSAGES)
        with pytest.raises(Refused, match="needs 3,000 items"):
            fetch(committee, identity, (committee.folder.parent / "large.lwe").read_bytes())
        (committee.party_folder(0) / "receivers" / "bad.crt").write_text("")
        end = time.monotonic() + SECONDS
        while "keyquorum_requests_total refused" not in (now := values(daemon)) and time.monotonic() < end:
            time.sleep(0.05)  # the other party was faster
        assert (
            now["keyquorum_connected"] == now["keyquorum_audit_log_writable"] == now["keyquorum_receivers"] == now["keyquorum_receivers_skipped"] == 1
        )
        assert now["keyquorum_request_seconds_count"] == 1 and 0 < now["keyquorum_request_seconds_sum"] < SECONDS
        assert now["keyquorum_requests_total answered"] == 1 and now["keyquorum_requests_total refused"] == 1
        assert now["keyquorum_refusals_total PoolTooSmall"] == 1
        assert now["keyquorum_filled_items_total"] >= 600 and now["keyquorum_fill_seconds_total"] > 0 and now["keyquorum_filling"] in (0, 1)
        assert now["keyquorum_party_away_seconds 1"] == 0 and "keyquorum_party_away_seconds 0" not in now
        assert now["keyquorum_waiting_requests"] == now["keyquorum_waiting_oldest_seconds"] == 0
        (info,) = (name for name in now if name.startswith("keyquorum_info "))
        assert set(info.split()[1:4]) == {"0", "key", daemon.served_key.key_id}
        assert now["process_open_fds"] > 0
        parties._daemons[1].stop()
        parties._threads[1].join(30)
        wait_for_ready(daemon, 503, "party 1 is away since")
        now = values(daemon)
        assert now["keyquorum_connected"] == 0 and 0 < now["keyquorum_party_away_seconds 1"] < SECONDS
    (committee.party_folder(0) / "receivers" / "bad.crt").unlink()


def test_the_address_is_chosen() -> None:
    elsewhere = Metrics(0, "127.0.0.9", lambda: "not now")
    try:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"http://127.0.0.9:{elsewhere.port}/ready", timeout=10)
        with pytest.raises(CommitteeError, match=r"metrics at 127\.0\.0\.9:\d+: .*: choose another --metrics-host or --metrics-port"):
            Metrics(elsewhere.port, "127.0.0.9")
    finally:
        elsewhere.close()
    for host in ("no host", "192.0.2.1", "x" * 100):
        with pytest.raises(CommitteeError, match="choose another --metrics-host"):
            Metrics(0, host)


def test_the_table_of_the_docs_has_every_metric(made: tuple[Committee, Path, bytes]) -> None:
    with Threads(made[0], Service("key")) as parties:
        families = {family.name for family in text_string_to_metric_families(get(parties._daemons[0], "/metrics")[1])}
    ours = {name.removesuffix("_created") for name in families if name.startswith("keyquorum_")}
    documented = set(re.findall(r"`(keyquorum_[a-z_]+)", DOCS.read_text()))
    assert ours <= {name.removesuffix("_total") for name in documented}
