"""The simulation of links: by the kernel if it can and KEYQUORUM_NETEM is set, else by the engine; outputs name which."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from keyquorum import _engine, api
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties import shaping as module
from keyquorum.parties.shaping import netem_command, shaping


@pytest.fixture
def tc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tc that writes down how it was called; it fails if a file "broken" is beside it."""
    program = tmp_path / "bin" / "tc"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ntest ! -e {tmp_path}/broken || {{ echo "Error: Specified qdisc kind is unknown." >&2; exit 2; }}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    module._refused.cache_clear()
    yield tmp_path
    module._refused.cache_clear()


def test_without_being_asked_the_engine_shapes(monkeypatch: pytest.MonkeyPatch, tc: Path) -> None:
    monkeypatch.delenv("KEYQUORUM_NETEM", raising=False)
    assert shaping("").notice == "" and not shaping("").by_kernel
    assert shaping("lan").engine == "lan" and shaping("lan").notice.endswith("by the engine")
    assert not (tc / "calls").exists()


def test_the_kernel_is_asked_once_for_half_the_round_trip(monkeypatch: pytest.MonkeyPatch, tc: Path) -> None:
    monkeypatch.setenv("KEYQUORUM_NETEM", "eth0")
    for _ in range(2):
        assert shaping("wan").by_kernel and shaping("wan").engine == "" and "by tc netem on eth0" in shaping("wan").notice
    assert (tc / "calls").read_text() == "qdisc replace dev eth0 root netem limit 100000 delay 50ms rate 100mbit\n"
    assert netem_command("eth1", "rtt=3")[-2:] == ["delay", "1.5ms"]


def test_a_kernel_without_netem_leaves_it_to_the_engine(monkeypatch: pytest.MonkeyPatch, tc: Path) -> None:
    monkeypatch.setenv("KEYQUORUM_NETEM", "eth0")
    (tc / "broken").touch()
    found = shaping("lan")
    assert found.engine == "lan" and not found.by_kernel
    assert found.notice.endswith("by the engine: no tc netem here (Error: Specified qdisc kind is unknown.)")
    monkeypatch.setenv("PATH", str(tc))
    module._refused.cache_clear()
    assert "tc is not installed" in shaping("lan").notice


def test_parties_that_shape_in_two_ways_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 2, "semi")
    job = api.keygen_job("key", api.load_parameters("bfv-4096"), link="lan")
    kinds = iter([module.Shaping("lan", "by the engine"), module.Shaping("", "by tc netem")])
    monkeypatch.setattr("keyquorum.parties.worker.shaping", lambda spec: next(kinds))

    def one(party: int) -> str:
        with pytest.raises((KeyQuorumError, _engine.EngineError)) as caught:
            api.run_party(committee.folder, party, job)
        return str(caught.value)

    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(one, range(2)))
    assert any("netem" in text for text in texts), texts
