"""The files of epochs of a party that lost its folder, from what others show: what is not proven is not taken, and nothing is written or signed then."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.epochs.restore import public_records, restore
from keyquorum.parties.epochs.statements import signed

from .changes import committee_of, prepare, record_of, talk

LOST = 2


def _lose(committee: Committee) -> None:
    folder = committee.party_folder(LOST)
    for path in folder.iterdir():
        if path.name != "identity.pem":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def changes(tmp_path: Path) -> list[Change]:
    """A change that all three parties committed; then party 2 lost its folder."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    made = [prepare(committee, party, record) for party in range(3)]
    assert talk(made) == ["committed"] * 3
    return made


def _statements(change: Change) -> list[dict[str, object]]:
    return list(json.loads(change.show())["statements"])


def _shown(change: Change, statements: Sequence[object]) -> bytes:
    return json.dumps({"epoch": change.record.name, "statements": statements}).encode()


def _restored(committee: Committee, changes: Sequence[Change], second: bytes) -> Change:
    """Party 2 after what party 0 shows, and this of party 1."""
    return restore(committee, LOST, public_records(committee, 0), {0: changes[0].show(), 1: second})


def _signed(committee: Committee, change: Change, stage: Stage, lost: int) -> dict[str, object]:
    return dict(signed(change.record, committee.identity_path(1), stage, [committee.parties[lost].fingerprint]).to_json())


def test_it_is_in_the_epoch_of_the_others(tmp_path: Path, changes: list[Change]) -> None:
    committee = Committee.load(tmp_path / "committee")
    _lose(committee)
    assert _restored(committee, changes, changes[1].show()).standing.stage == Stage.COMMITTED
    assert read_epoch(committee.party_folder(LOST)) == read_epoch(committee.party_folder(0))


def test_a_member_that_contradicts_itself_stops_no_recovery(tmp_path: Path, changes: list[Change]) -> None:
    """Party 1 said one thing to party 0 and shows another one."""
    committee = Committee.load(tmp_path / "committee")
    _lose(committee)
    one, other = (_signed(committee, changes[1], Stage.FROZEN, lost) for lost in (0, LOST))
    with pytest.raises(EpochError, match="exclude each other"):
        changes[0].hear(_shown(changes[0], [one]))
    assert _restored(committee, changes, _shown(changes[1], [*_statements(changes[1]), other])).standing.stage == Stage.COMMITTED


def _without_votes(statements: list[dict[str, object]]) -> list[dict[str, object]]:
    return [each for each in statements if each["kind"] != Stage.VOTED]


def _forged(statements: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**each, "signature": "00" * 64} for each in statements]


@pytest.mark.parametrize(
    ("change", "said"), [(_without_votes, "not all members voted"), (_forged, "party 1, which may be left out with --from: .* did not sign this")]
)
def test_what_is_not_proven_is_refused(
    tmp_path: Path, changes: list[Change], change: Callable[[list[dict[str, object]]], list[dict[str, object]]], said: str
) -> None:
    committee = Committee.load(tmp_path / "committee")
    _lose(committee)
    records, second = public_records(committee, 0), _shown(changes[1], change(_statements(changes[1])))
    shown = {1: second, 0: _shown(changes[0], _without_votes(_statements(changes[0])))}
    with pytest.raises(EpochError, match=said):
        restore(committee, LOST, records, shown)
    assert [path.name for path in committee.party_folder(LOST).iterdir()] == ["identity.pem"]


def test_records_of_another_change_are_refused(tmp_path: Path, changes: list[Change]) -> None:
    committee = Committee.load(tmp_path / "committee")
    _lose(committee)
    other = replace(changes[0].record, name=secrets.token_hex(len(changes[0].record.name) // 2))
    with pytest.raises(EpochError, match="statements of epoch"):
        restore(committee, LOST, [other.data.decode()], {0: changes[0].show()})
    with pytest.raises(EpochError, match="do not lead to epoch"):
        restore(committee, LOST, [other.data.decode(), changes[0].record.data.decode()], {0: changes[0].show()})


def test_nothing_is_signed_where_the_party_would_go_back(tmp_path: Path) -> None:
    """Its disk died after its vote; the others committed, and one of them shows a refusal as well."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    first, second, third = (prepare(committee, party, record) for party in range(3))
    talk([first, second])
    first.hear(third.show())
    second.hear(third.show())
    assert talk([first, second]) == ["committed", "committed"]
    _lose(committee)
    refusal = dict(signed(record, committee.identity_path(1), Stage.REFUSED, []).to_json())
    with pytest.raises(EpochError, match="party 2 would be given-up"):
        _restored(committee, [first, second], _shown(second, [*_statements(second), refusal]))
    assert [path.name for path in committee.party_folder(LOST).iterdir()] == ["identity.pem"]
