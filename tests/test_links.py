"""Simulated links: their options, their effect between threads and between processes, and their notice in outputs.

Source/net/tests/links.rs measures their precision.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyquorum import _engine, api
from keyquorum.cli import app
from keyquorum.model.errors import KeyQuorumError, ParameterError, PartyError
from keyquorum.model.links import Link, parse
from keyquorum.parties import run_in_process, run_processes
from keyquorum.parties.context import PartyContext, RunReport
from keyquorum.plans.program import ProgramRequest, run_locally
from typer.testing import CliRunner

ROUNDS = 10


@pytest.mark.parametrize(
    ("name", "rtt", "mbit"),
    [
        ("lan", 1, 1000),
        ("wan", 100, 100),
        ("paper004-lan", 0.5, 2000),
        ("paper004-wan", 20, 500),
        ("paper000-1ms", 1, 1000),
        ("paper000-10ms", 10, 1000),
    ],
)
def test_profiles(name: str, rtt: float, mbit: float) -> None:
    link = parse(name)
    assert (link.rtt_ms, link.mbit, link.spec) == (rtt, mbit, name)
    assert link.shape == (rtt / 1e3, mbit * 1_000_000, False)
    assert name in link.describe()
    shared = parse(f"{name},shared")
    assert (shared.spec, shared.shape) == (f"{name},shared", (rtt / 1e3, mbit * 1_000_000, True))
    assert shared.describe() == f"{link.describe()}, shared by the links of a party"


@given(st.integers(0, 10_000), st.none() | st.integers(1, 1_000_000))
def test_custom_links_are_read_back(rtt: int, mbit: int | None) -> None:
    link = Link(rtt, mbit)
    again = parse(link.spec)
    assert again.shape == (rtt / 1e3, None if mbit is None else mbit * 1_000_000, False)
    assert again.profile == ""
    if mbit is not None:
        assert parse(f"{link.spec},shared") == Link(rtt, mbit, shared=True) == parse(Link(rtt, mbit, shared=True).spec)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("moon", "unknown link 'moon'"),
        ("", "unknown link"),
        ("rtt=1,rtt=2", "unknown link"),
        ("rtt=1,loss=2", "unknown link"),
        ("rtt=one", "'one' is no number"),
        ("rtt=-1", "round trip is 0 to"),
        ("rtt=nan", "round trip is 0 to"),
        ("rtt=10001", "round trip is 0 to"),
        ("mbit=0", "bandwidth is"),
        ("mbit=inf", "bandwidth is"),
        ("shared", "unknown link"),
        ("shared,rtt=1", "unknown link"),
        ("rtt=1,mbit=9,shared,shared", "unknown link"),
        ("rtt=1,shared", "no bandwidth to share"),
    ],
)
def test_bad_links_are_refused(text: str, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        parse(text)


def test_the_engine_refuses_what_it_cannot_simulate() -> None:
    for link in [(-1.0, None, False), (11.0, None, False), (0.1, 5, True)]:
        with pytest.raises(_engine.EngineError):
            _engine.local_sessions(2, 10.0, link)


def test_sessions_of_one_process_have_the_link() -> None:
    """A round of all-to-all takes half a round trip: all messages are sent at the same time."""
    sessions = _engine.local_sessions(3, 20.0, (0.04, None, False))

    def one(session: _engine.Session) -> float:
        start = time.monotonic()
        for _ in range(ROUNDS):
            session.all_gather(b"x")
        return time.monotonic() - start

    with ThreadPoolExecutor(3) as pool:
        times = list(pool.map(one, sessions))
    assert min(times) >= ROUNDS * 0.019


def test_peers_of_a_party_share_its_bandwidth(tmp_path: Path) -> None:
    """Each of four parties sends 150 kB at 8 Mbit/s to each other one. The party that begins first waits at least until three
    messages have arrived, later ones may wait less. Without sharing, a pair has 150 kB, which take 0.14 s."""

    def job(context: PartyContext) -> RunReport:
        with context.phase("messages"):
            context.session.all_gather(bytes(150_000))
        return context.report

    reports = run_in_process(api.in_process_committee(4, "semi"), job, link="rtt=1,mbit=8,shared")
    assert max(report.phases[0].seconds for report in reports) >= (3 * 150_000 - 20_000) / 1e6


def _rounds(link: str) -> list[RunReport]:
    def job(context: PartyContext) -> RunReport:
        with context.phase("rounds"):
            for _ in range(ROUNDS):
                context.session.all_gather(b"x")
        return context.report

    return run_in_process(api.in_process_committee(), job, link=link)


def test_reports_name_the_link() -> None:
    for report in _rounds("rtt=20"):
        assert report.link == "rtt=20"
        assert report.phases[0].seconds >= ROUNDS * 0.0095
        assert RunReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_processes_have_the_link_and_the_output_says_so(tmp_path: Path) -> None:
    def run(link: str | None) -> list[str]:
        return run_locally(ProgramRequest("sample_cbd", ("64",), "ring", folder=str(tmp_path), link=link))

    plain, shaped = run(None), run("rtt=100,mbit=100")
    assert not any("SIMULATED" in line for line in plain)
    assert sum("SIMULATED LINKS: round trip 100 ms, 100 Mbit/s" in line for line in shaped) == 1
    sent = next(line for line in shaped if line.startswith("Data sent"))
    rounds = int(sent.split()[-2])
    seconds = float(next(line for line in shaped if line.startswith("Time = ")).split()[2])
    assert rounds > 0
    # The first round may find the others behind, all others take half a round trip at least.
    assert seconds >= (rounds - 1) * 0.05
    assert sent in plain


def test_parties_with_different_links_do_not_start(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 3)
    job = api.keygen_job("key", api.load_parameters("bfv-4096"), link="lan")

    def one(party: int) -> str:
        mine = job if party else {**job, "link": "wan"}
        with pytest.raises((KeyQuorumError, _engine.EngineError)) as caught:
            api.run_party(committee.folder, party, mine)
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        texts = list(pool.map(one, range(3)))
    assert any("link" in text and "wan" in text for text in texts), texts


def test_links_of_jobs_are_checked(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 3)
    job = api.keygen_job("key", api.load_parameters("bfv-4096"))
    with pytest.raises(PartyError, match="unknown link 'moon'"):
        run_processes(committee.folder, {**job, "link": "moon"})
    with pytest.raises(PartyError, match="link is no text"):
        run_processes(committee.folder, {**job, "link": 3})
    with pytest.raises(ParameterError, match="unknown link 'moon'"):
        api.keygen_job("key", api.load_parameters("bfv-4096"), backend="mp-spdz", link="moon")
    with pytest.raises(ParameterError, match="relays of MP-SPDZ limit each pair"):
        api.keygen_job("key", api.load_parameters("bfv-4096"), backend="mp-spdz", link="lan,shared")
    with pytest.raises(ParameterError, match="emulate is one process"):
        run_locally(ProgramRequest("sample_ternary", ("3", "64"), "emulate", link="lan"))


def test_the_command_line_reports_simulated_links(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 3)
    arguments = ["keygen", str(committee.folder), "key", "-p", "bfv-4096", "--no-relin", "--link", "lan"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "SIMULATED LINKS: lan, round trip 1 ms, 1000 Mbit/s each way" in result.output
