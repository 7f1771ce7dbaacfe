"""The function by one-time tables: values, pools that are used up or filled while parties serve, and items of batches that fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError, ShareFile
from keyquorum.cli import app
from keyquorum.model.errors import KeyQuorumError, PoolError
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.prf.evaluations import JOURNAL
from keyquorum.schemes.prf.function import combined, held_by, shared_points
from keyquorum.serve.client import Refused
from keyquorum.serve.kinds import toprf as kind
from keyquorum.toprf import toprf_fill
from typer.testing import CliRunner

from tests.programs.test_aes import VECTORS, schedule
from tests.schemes.test_prf import key_of, reference
from tests.schemes.test_prf_tables import summands
from tests.serve.test_toprf import Served, eventually, served

POOL = "prf-aes128-table"
ITEMS = 40


def with_key(made: Served, key: bytes) -> None:
    """Puts shares of a known key in the place of the committee's."""
    committee = made.committee
    for party, words in enumerate(summands(committee, schedule(key).ravel())):
        folder = committee.key_folder(party, "prf")
        assert words.shape == (len(held_by(committee, party)), 1408)
        ShareFile.write(str(folder / "share-0.kqs"), load_key(folder).share_header(party, 0), words.astype("<u8").tobytes())
    made.key = key_of(committee)
    assert made.key == key


def fill(made: Served, count: int, chunk: int = 256) -> None:
    """As toprf fill, with the parties as threads of this process."""
    job = {"kind": "toprf_fill", "count": count, "chunk": chunk}
    assert all(r["available"] == count for r in run_in_process(made.committee, lambda context: run_job(context, job), timeout=60))


def left(made: Served) -> set[int]:
    """Items left at the parties, without those that the open pools have claimed ahead."""
    return {pool["left"] for pool in api.pool_list(made.committee) if pool["pool"] == POOL}


@pytest.fixture(scope="module", params=[("ring", 3), ("semi2k", 2)], ids=lambda value: value[0])
def tables(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Served]:
    """Running parties with a pool, and the key of FIPS-197, appendix B."""
    made = served(tmp_path_factory.mktemp("toprf"), *request.param, method="table")
    with_key(made, bytes.fromhex(VECTORS[0][0]))
    fill(made, ITEMS, 24)
    made.start()
    yield made
    made.stop()
    assert not made.failures


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Served]:
    """Two parties that do not run yet, with a pool of 6 items."""
    made = served(tmp_path, "semi2k", 2, method="table")
    fill(made, 6)
    yield made
    made.stop()


def test_the_vectors_of_the_standard_and_replays(tables: Served) -> None:
    """Points as FIPS-197 has them, without the hashes around: two sharings of one block have one value. An id that was counted takes no items."""
    committee = tables.committee
    plain, cipher = map(bytes.fromhex, VECTORS[0][1:])
    head: dict[str, Any] = {"key": tables.key_id, "output": 16}
    bodies = [shared_points(committee, [plain]) for _ in range(2)]
    assert bodies[0] != bodies[1]
    with tables.client() as toprf:
        answers = [toprf._channels.ask(body, {**head, "id": f"request{number}"}) for number, body in enumerate(bodies)]
    assert [combined(committee, answer, 1) for answer in answers] == [cipher, cipher] and answers[0] != answers[1]
    before = tables.totals(), left(tables)
    for _ in range(2):
        with tables.client() as toprf, pytest.raises(Refused, match="a request of this id was counted already"):
            toprf._channels.ask(bodies[0], {**head, "id": "request0"})
    assert (tables.totals(), left(tables)) == before


def test_values_by_parts_and_an_exhausted_pool(tables: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of more blocks than one run takes. A request that needs more items than there are is refused in one line: nothing is counted or used."""
    monkeypatch.setattr(kind, "AT_ONCE", 3)
    inputs = [b"1", b"2", b"1", b"", b"3"]
    with tables.client() as toprf:
        assert toprf.evaluate_many(inputs) == [reference(tables.key, data) for data in inputs]
        before = tables.totals()
        with pytest.raises(
            Refused, match=rf"^party \d: {POOL}: needs {ITEMS} items, has \d+: fill the pool \(keyquorum toprf fill, or serve"
        ) as error:
            toprf.evaluate_many([b"x"] * (ITEMS // 2))
        assert "\n" not in str(error.value) and tables.totals() == before
    with tables.client(output_bytes=16) as toprf:
        assert toprf.evaluate(b"x") == reference(tables.key, b"x", length=16)
    assert tables.totals() == [total + 1 for total in before]
    with pytest.raises(KeyQuorumError, match="another process uses this pool: stop it, or wait until it has ended"):
        toprf_fill(tables.committee, 5)


def test_every_item_of_a_pool_serves(two: Served) -> None:
    """Then nothing is served, and after filling it is. Restarts give up what was claimed ahead."""
    two.start()
    with two.client(output_bytes=16) as toprf:
        for number in range(6):
            assert toprf.evaluate(b"%d" % number) == reference(two.key, b"%d" % number, length=16)
        with pytest.raises(Refused, match=f"{POOL}: needs 1 items, has 0: fill the pool"):
            toprf.evaluate(b"x")
    assert two.totals() == [6, 6] and left(two) == {0}
    two.stop()
    words = ["toprf", "fill", str(two.committee.folder), "-n", "3", "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    made = json.loads(result.stdout)
    assert (made["made"], made["left"], made["pool"]) == (3, 3, POOL) and made["costs"]
    lines = CliRunner().invoke(app, ["pool", "status", str(two.committee.folder)], catch_exceptions=False).stdout
    assert f"party 1: {POOL}: 3 items left of 9" in lines
    two.start()
    with two.client(output_bytes=16) as toprf:
        assert toprf.evaluate(b"0") == reference(two.key, b"0", length=16)
    two.stop()
    assert CliRunner().invoke(app, ["pool", "drop", str(two.committee.folder), POOL], catch_exceptions=False).exit_code == 0
    assert left(two) == set()


def test_a_pool_is_filled_while_there_is_nothing_else_to_do(two: Served) -> None:
    """A request that takes more than there is, but not more than is kept, waits for it."""
    two.options |= {"keep": 20, "chunk": 8}
    two.start()
    with two.client() as toprf:
        inputs = [b"%d" % i for i in range(9)]
        assert toprf.evaluate_many(inputs) == [reference(two.key, data) for data in inputs]
        with pytest.raises(Refused, match=f"{POOL}: needs 22 items"):
            toprf.evaluate_many([b"x"] * 11)
    eventually_left = eventually(lambda: _at_least(two, 20))
    assert eventually_left < 28 and two.totals() == [9, 9]


def _at_least(made: Served, count: int) -> int:
    found = min(left(made))
    if found < count:
        raise PoolError(f"{found} items")
    return found


def test_a_batch_that_fails_has_used_its_items(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """At one party, before or after it opened anything. The next batch gets others, and both parties give up the same."""
    evaluate, failing = kind.evaluate_by_tables, [True]
    used: list[bytes] = []

    def fails_once(context: Any, key: Any, points: Any, tables: Any, bound: bytes) -> Any:
        used.append(tables[0].tobytes())
        if context.party == 1 and failing:
            failing.clear()
            raise EngineError("the power went out")
        return evaluate(context, key, points, tables, bound)

    monkeypatch.setattr(kind, "evaluate_by_tables", fails_once)
    two.start()
    with two.client() as toprf, pytest.raises(Refused, match=r"the batch was interrupted|send the request again"):
        toprf.evaluate(b"x")
    with two.client() as toprf:
        assert eventually(lambda: toprf.evaluate(b"x")) == reference(two.key, b"x")
    two.stop()
    assert len(used) == len(set(used)) == 4 and left(two) == {2} and two.totals() == [2, 2]


def test_a_party_that_cannot_count_opens_nothing(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its items are claimed by then, and used up."""
    evaluate, parties = kind.evaluate_by_tables, []

    def looked_at(context: Any, *rest: Any) -> Any:
        parties.append(context.party)
        return evaluate(context, *rest)

    monkeypatch.setattr(kind, "evaluate_by_tables", looked_at)
    two.start()
    with two.client() as toprf:
        toprf._channels._connect()
        (two.committee.key_folder(1, "prf") / JOURNAL).unlink()
        with pytest.raises(Refused):
            toprf.evaluate(b"x")
    two.stop()
    assert 1 not in parties and left(two) == {4}


def test_two_parties_that_serve_by_other_methods(two: Served) -> None:
    """They do not connect: the first messages compare the options."""
    two.start(0)
    two.options = {"method": "circuit"}
    two.start(1, patience=3.0)
    with two.client(timeout=20.0) as toprf, pytest.raises(Refused, match=r"not answered within|interrupted"):
        toprf.evaluate(b"x")
    assert two.totals() == [0, 0] and left(two) == {6}


def test_shares_of_the_key_are_left_alone(tables: Served) -> None:
    """Tables and shares of the key lie in one share file during a run, of which the tables alone are wiped."""
    with tables.client(output_bytes=16) as toprf:
        values = [toprf.evaluate(b"again") for _ in range(2)]
    assert values == [reference(tables.key, b"again", length=16)] * 2
    assert all(np.any(daemon.served_key._key.words) for daemon, _ in tables.daemons.values())  # type: ignore[attr-defined]
