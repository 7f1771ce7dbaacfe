"""Committees to which the keys of others are to go: their addresses, and the parties that are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.errors import CommitteeError


def test_a_committee_after_another_one(tmp_path: Path) -> None:
    """Hosts of before with other ports, and one that is replaced; identities are new, and only those of this host are made."""
    places = ["a.example:7000", "b.example:7000", "c.example:7000"]
    old = api.init(tmp_path / "old", 3, "rep-field", hosts=places, me=[1])
    new = api.init_after(tmp_path / "new", old, {2: "d.example:7009"}, name="second")
    assert [p.place for p in new.parties] == ["a.example:7003", "b.example:7003", "d.example:7009"]
    assert new.local_parties() == [1] and (new.protocol, new.threshold, new.name) == ("rep-field", 1, "second")
    assert new.parties[1].fingerprint not in ("", old.parties[1].fingerprint)
    larger = api.init_after(tmp_path / "larger", old, {3: "e.example:1", 4: "e.example:2"}, protocol="shamir", me=[4])
    assert (larger.size, larger.threshold, larger.local_parties()) == (5, 2, [4])
    for given, said in (
        ({"replace": {1: "d.example:1"}}, "no party of .* is on this host: name those of .* with --me"),
        ({"parties": 4}, "party 3 is not in .*: name its address with --replace 3=HOST:PORT"),
        ({"replace": {5: "d.example:1"}, "parties": 3}, "there is no party 5 among 3"),
        ({"replace": {0: "d.example"}}, "is no address"),
        (
            {"replace": {2: "b.example:7000"}},
            "party 2 has the address b.example:7000 of party 1 of .*, and both run at once: name another port with --replace 2=b.example:PORT",
        ),
    ):
        with pytest.raises(CommitteeError, match=said):
            api.init_after(tmp_path / "not", old, **given)  # type: ignore[arg-type]
    steps = api.init(tmp_path / "steps", 2, "semi", hosts=["[::1]:7000", "[::1]:7002"], me=[0])
    with pytest.raises(
        CommitteeError, match=r"party 0 has the address \[::1\]:7002 of party 1 of .*: name another port with --replace 0=\[::1\]:PORT"
    ):
        api.init_after(tmp_path / "not", steps)
    assert not (tmp_path / "not").exists()
    high = api.init(tmp_path / "high", 2, "semi", hosts=["a.example:65535", "b.example:1"], me=[0])
    with pytest.raises(CommitteeError, match=r"no higher one is left: name its address with --replace 0=a\.example:PORT"):
        api.init_after(tmp_path / "not", high)


def test_free_ports_are_not_those_of_the_old_committee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens there while it is made."""
    old = api.init(tmp_path / "old", 3, "rep-field")
    ports = [p.port for p in old.parties]
    others = sorted({*range(20_000, 20_006)} - {*ports})
    monkeypatch.setattr("keyquorum.parties.setup._free_ports", lambda count: [*ports, *others][:count])
    assert [p.port for p in api.init_after(tmp_path / "new", old).parties] == others[:3]
