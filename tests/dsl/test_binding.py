"""What binds shares to the run that made them is the same in the protocol table, in the engine and in files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.binding import KINDS, Binding, KeyTest, RunName, StatedOrigins, Unstated, binding_of
from keyquorum.dsl.files.origin import NO_ORIGIN, Origin
from keyquorum.model.errors import KeyFileError, ParameterError, ProgramError
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.schemes.origin_file import OriginFile

T = TypeVar("T")
NAME = 16
"""Bytes of a name."""
DOMAIN = "F_1152921504606584833"
ONE_EACH: list[Binding] = [binding_of(name) for name in ("rep-field", "mal-rep-field", "mascot")]
UNSTATED, NAMED, TESTED = ONE_EACH


def _ids(binding: Binding) -> str:
    return type(binding).__name__


def test_every_protocol_has_a_binding() -> None:
    assert {type(binding_of(name)) for name in PROTOCOLS} == set(KINDS.values())
    assert [type(binding) for binding in ONE_EACH] == [Unstated, RunName, KeyTest]
    with pytest.raises(ParameterError, match="unknown protocol"):
        binding_of("none of them")


def _by_all(parties: int, one: Callable[[_engine.Session], T]) -> list[T]:
    with ThreadPoolExecutor(parties) as pool:
        return list(pool.map(one, _engine.local_sessions(parties, 20.0)))


@pytest.mark.parametrize("protocol", [p.name for p in PROTOCOLS.values() if p.field or p.ring])
def test_engines_state_what_the_binding_stores(protocol: str) -> None:
    """The bytes of an engine's first shares: nothing, a name, or more than a name."""
    can, binding = PROTOCOLS[protocol], binding_of(protocol)
    parties = can.least_parties

    def one(session: _engine.Session) -> tuple[bytes, int]:
        if can.macs:
            session.set_mac_key(bytes(range(session.party, session.party + 16)))
        engine = session.engine(protocol, DOMAIN if can.field else "Z2^64", "test", can.threshold(parties, None))
        stated = StatedOrigins()
        binding.first_written(stated, engine)
        return bytes(stated), engine.element_bytes

    made = _by_all(parties, one)
    for data, element in made:
        assert binding.complete(len(data))
        assert {Unstated: not data, RunName: len(data) == NAME, KeyTest: len(data) > element + NAME}[type(binding)]
        again = StatedOrigins()
        if data:
            binding.parse(again, data, element)
        assert bytes(again) == data
    assert (len({data for data, _ in made}) == 1) == (not can.macs), "only MAC keys are of one party"


def test_shares_under_another_mac_key_are_refused() -> None:
    """By each party alone, before anything is sent."""

    def one(session: _engine.Session) -> None:
        session.set_mac_key(bytes(range(session.party, session.party + 16)))
        engine, stated = session.engine(TESTED.protocol, DOMAIN, "test", 1), StatedOrigins()
        TESTED.first_written(stated, engine)
        TESTED.check(stated, engine, True)
        assert stated.mac_key is not None
        stated.mac_key += 1
        with pytest.raises(ProgramError, match="MACs are under another key than this run's mascot engine has"):
            TESTED.check(stated, engine, True)
        stated.mac_key, stated.origins = None, []
        with pytest.raises(ProgramError, match=NO_ORIGIN[:40]):
            TESTED.check(stated, engine, True)

    _by_all(2, one)


@pytest.mark.parametrize("binding", ONE_EACH, ids=_ids)
def test_bytes_beside_shares(binding: Binding) -> None:
    """Names may be missing in files of programs by earlier builds; in pools, and with MACs, they are never."""
    assert (binding.complete(0), binding.complete(NAME)) == (not binding.stored, binding.stored)
    assert (binding.fits(0), binding.fits(NAME)) == (binding is not TESTED, binding is not UNSTATED)


@pytest.mark.parametrize("binding", ONE_EACH, ids=_ids)
def test_joint_integers_have_a_name_where_products_are_verified(binding: Binding) -> None:
    for name in (None, bytes(NAME)):
        shares = ShareVector()
        if binding is (UNSTATED if name is None else NAMED):
            for _ in range(2):
                shares.append_joint(binding.protocol, DOMAIN, bytearray(np.arange(4, dtype="<u8").tobytes()), 2, name)
            assert shares.length == 4 and [len(bytes(origin)) for origin in shares.origins] == ([] if name is None else [NAME])
        else:
            with pytest.raises(ProgramError, match=r"joint integers with(out a| the) name of their draw are not stored with shares of"):
                shares.append_joint(binding.protocol, DOMAIN, bytearray(16), 2, name)


def _file(folder: Path, binding: Binding) -> OriginFile:
    header = {"protocol": binding.protocol, "domain": DOMAIN, "parties": 3, "threshold": 1, "party": 0, "key_id": "00" * 16, "length": 5}
    folder.mkdir(exist_ok=True)
    return OriginFile(folder, 1, header)


def test_no_file_where_nothing_is_stored(tmp_path: Path) -> None:
    old, new = _file(tmp_path / "old", UNSTATED), _file(tmp_path / "new", UNSTATED)
    old.write(b"")
    old.load(ShareVector())
    old.check()
    old.carry(new, "a change")
    new.restore([])
    assert old.read() == b"" and old.public() == "" and not old.path.exists() and not new.path.exists()


def test_a_name_goes_to_the_next_epoch(tmp_path: Path) -> None:
    """All parties carry it to the same name, which the change decides, or state it to a party that lost it."""
    old, new, lost = (_file(tmp_path / name, NAMED) for name in ("old", "new", "lost"))
    with pytest.raises(KeyFileError, match=r"mac-1\.kqs: missing: restore it from a backup, with the shares of the same time"):
        old.read()
    old.write(bytes(range(NAME)))
    old.carry(new, "a change")
    assert new.read() == bytes(Origin.derived("a change", [Origin(old.read())])) != old.read()
    lost.restore(["", old.public()])
    assert lost.read() == old.read()
    shares = ShareVector()
    lost.load(shares)
    assert list(map(bytes, shares.origins)) == [old.read()] and shares.mac_key is None
    lost.check()
    lost.path.unlink()
    with pytest.raises(_engine.StoreError):
        lost.check()


def test_a_share_of_a_mac_key_is_not_public(tmp_path: Path) -> None:
    """It does not leave the party, and stays in its epoch."""
    old, new = _file(tmp_path / "old", TESTED), _file(tmp_path / "new", TESTED)
    with pytest.raises(KeyFileError, match="without a MAC key"):
        old.write(b"")
    with pytest.raises(KeyFileError, match=r"missing: restore it from a backup; LWE keys of earlier builds"):
        old.load(ShareVector())
    old.write(bytes(8) + bytes(range(NAME)))
    assert old.public() == ""
    with pytest.raises(ProgramError, match="stay in the epoch"):
        old.carry(new, "a change")
    shares = ShareVector()
    old.load(shares)
    assert shares.mac_key is not None and shares.export_mac() == old.read()
    old.write(bytes(8))
    with pytest.raises(KeyFileError, match="do not state the run"):
        old.load(ShareVector())
    old.load(ShareVector(), tested=False)
    old.write(bytes(7))
    with pytest.raises(KeyFileError, match="the MAC key's share has 7 bytes, it needs 8"):
        old.load(ShareVector())
