"""Share files of protocols that verify products have the name of the run that stored them: parties with files of different runs are refused. So are files that a run
used before it broke off."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, run_program
from keyquorum.dsl.files import share_files
from keyquorum.dsl.files.origin import NO_ORIGIN
from keyquorum.dsl.files.share_files import claim_path, shares_path
from keyquorum.dsl.files.share_vector import ShareVector
from keyquorum.model.errors import ProgramError
from keyquorum.model.protocols import PROTOCOLS

from tests.protocols import VERIFIED_FIELD, VERIFIED_RING, VERIFIED_SHAMIR, Backend

NAME = 16
"""Bytes of a name."""
STORE = "sint.write_to_file(sint(int(program.args[1]), size=3))\n"
READ = "sint.read_from_file(0, 1, size=3)[1][0].reveal().binary_output()\n"
MASK = "(sint.read_from_file(0, 1, size=3)[1][0] + sint(int(program.args[1]), size=3)).reveal().binary_output()\n"
READ_AND_STORE = "sint.write_to_file(sint.read_from_file(0, 1, size=3)[1][0] + 1, 0)\n"
MASK_ONCE = MASK + READ_AND_STORE


class Broken(Exception):
    """How a corrupted party stops."""


def _run(
    folder: Path,
    backend: Backend,
    source: str,
    *words: str,
    ends: Callable[[ProgramIO, _engine.Session], None] = lambda io, session: None,
    fails: Callable[[], object] = lambda: None,
    loaded: Callable[[int], object] = lambda party: None,
) -> list[list[int]]:
    """Runs a program with the share files of a folder; returns the output of each party. The first own error of a party is raised. ``ends``: called before the shares
    are saved; ``fails``: after an error, before the others get it; ``loaded``: when a party has read its share file."""
    file = folder / "program.mpc"
    file.write_text(source)

    def one(session: _engine.Session) -> list[int]:
        try:
            engine = session.engine(backend.protocol, backend.domain, "test", backend.threshold)
            io = ProgramIO.from_folder(folder, engine, "program")
            loaded(session.party)
            with io.run(engine):
                run_program(engine, file, list(words), io)
                ends(io, session)
                io.save(folder, engine)
        except BaseException as error:
            fails()
            session.abort(str(error))
            raise
        return [int(word) for words in io.binary_outputs for word in words]

    with ThreadPoolExecutor(backend.parties) as pool:
        futures = [pool.submit(one, session) for session in _engine.local_sessions(backend.parties, 20.0)]
        errors = [error for future in futures if (error := future.exception()) is not None]
    own = [error for error in errors if not isinstance(error, _engine.NetworkError)]
    for error in [*own, *errors]:
        raise error
    return [future.result() for future in futures]


def _stored(folder: Path, backend: Backend) -> list[bytes]:
    """The name of the run in each party's file."""
    names = []
    for party in range(backend.parties):
        path = str(shares_path(folder, party))
        names.append(bytes(_engine.ShareFile.read(path, _engine.ShareFile.header(path)))[-NAME:])
    return names


@pytest.mark.parametrize("backend", [VERIFIED_FIELD, VERIFIED_RING, VERIFIED_SHAMIR], ids=str)
def test_every_run_that_stores_shares_has_a_name(tmp_path: Path, backend: Backend) -> None:
    assert PROTOCOLS[backend.protocol].verifies_products
    _run(tmp_path, backend, STORE, "41")
    first = _stored(tmp_path, backend)
    assert _run(tmp_path, backend, READ) == [[41, 41, 41]] * backend.parties
    assert _stored(tmp_path, backend) == first  # nothing was changed
    _run(tmp_path, backend, READ_AND_STORE)
    second = _stored(tmp_path, backend)
    assert _run(tmp_path, backend, READ) == [[42, 42, 42]] * backend.parties
    assert len(set(first)) == len(set(second)) == 1 and first != second


def test_files_of_two_runs_are_refused(tmp_path: Path) -> None:
    backend = VERIFIED_FIELD
    _run(tmp_path, backend, STORE, "41")
    old = tmp_path / "old"
    shutil.copytree(tmp_path / "Persistence", old)
    _run(tmp_path, backend, STORE, "42")
    after = [shares_path(tmp_path, party).read_bytes() for party in range(3)]
    said = "were not made together .*give every party its own files of the same time"
    for party in range(3):
        shutil.copy(old / f"Shares-P{party}", shares_path(tmp_path, party))
        with pytest.raises(_engine.StoreError, match=said):
            _run(tmp_path, backend, READ)
        # The same where a party has no file; nothing is stored.
        shares_path(tmp_path, party).unlink()
        with pytest.raises((_engine.StoreError, _engine.ProtocolError), match=said):
            _run(tmp_path, backend, STORE, "43")
        assert not shares_path(tmp_path, party).exists()
        shares_path(tmp_path, party).write_bytes(after[party])
        shares_path(tmp_path, party).chmod(0o600)
    assert [shares_path(tmp_path, party).read_bytes() for party in range(3)] == after
    assert _run(tmp_path, backend, READ)[0][:3] == [41, 41, 41]


def test_files_without_a_name_are_refused(tmp_path: Path) -> None:
    """As earlier builds stored them."""
    backend = VERIFIED_FIELD
    _run(tmp_path, backend, STORE, "41")
    for party in range(3):
        path = str(shares_path(tmp_path, party))
        header = _engine.ShareFile.header(path)
        _engine.ShareFile.write(path, header, bytes(_engine.ShareFile.read(path, header))[:-NAME])
    with pytest.raises(ProgramError, match=NO_ORIGIN[:40]):
        _run(tmp_path, backend, READ)
    # A program that uses no shares runs.
    assert _run(tmp_path, backend, "regint(7).binary_output()\n") == [[7]] * 3


def _saved_twice(folder: Path) -> None:
    """One engine saves twice. Party 0 stops it when party 2 has not saved the second time, and changes its own file: of each summand it has what the honest party has that
    holds it as well."""
    backend, file = VERIFIED_FIELD, folder / "program.mpc"
    file.write_text("sint.write_to_file(sint.get_random(size=3), 0)\n")
    first: dict[int, bytes] = {}

    def one(session: _engine.Session) -> None:
        engine = session.engine(backend.protocol, backend.domain, "test", backend.threshold)
        io = ProgramIO.from_folder(folder, engine, "program")
        for _ in range(2):
            run_program(engine, file, [], io)
            io.save(folder, engine)
            first.setdefault(engine.party, shares_path(folder, engine.party).read_bytes())

    with ThreadPoolExecutor(backend.parties) as pool:
        list(pool.map(one, _engine.local_sessions(backend.parties, 20.0)))
    second, own = shares_path(folder, 0), folder / "first"
    own.write_bytes(first[0])
    own.chmod(0o600)
    header = _engine.ShareFile.header(str(second))
    old, new = (bytes(_engine.ShareFile.read(str(path), header)) for path in (own, second))
    half = (len(new) - NAME) // 2
    _engine.ShareFile.write(str(second), header, new[:half] + old[half:-NAME] + old[-NAME:])
    shares_path(folder, 2).write_bytes(first[2])


def test_two_saves_by_one_engine_blocked(tmp_path: Path) -> None:
    _saved_twice(tmp_path)
    names = _stored(tmp_path, VERIFIED_FIELD)
    assert names[0] == names[2] != names[1]
    with pytest.raises(_engine.StoreError, match="were not made together"):
        _run(tmp_path, VERIFIED_FIELD, READ)


def test_two_saves_by_one_engine_ablated_with_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The honest parties open different values. Party 0, which follows the protocol, notices it."""
    opened: dict[int, list[int]] = {}
    both = Event()

    def seen(io: ProgramIO, session: _engine.Session) -> None:
        opened[session.party] = [int(word) for words in io.binary_outputs for word in words]
        if len(opened) == 2:
            both.set()

    monkeypatch.setattr(ShareVector, "end_run", lambda self, engine: self.exists)
    _saved_twice(tmp_path)
    assert len(set(_stored(tmp_path, VERIFIED_FIELD))) == 1
    with pytest.raises(_engine.CheckError, match=r"party 2 and party 1 hold the same summand|party 1 and party 2 hold the same summand"):
        _run(tmp_path, VERIFIED_FIELD, READ, ends=seen, fails=lambda: both.wait(10))
    assert opened.keys() == {1, 2} and opened[1] != opened[2]


def _stop(io: ProgramIO, session: _engine.Session) -> None:
    """The adversary has seen what was opened, and stops before anybody comes to the end of the run."""
    raise Broken(str(io.binary_outputs[0][0]))


def _masked_twice(folder: Path, backend: Backend) -> int:
    """What a corrupted party learns of the difference of two secrets of other parties, each of which is opened under a mask from the share file."""
    seen = []
    for secret in ("1000", "1234"):
        with pytest.raises(Broken) as stopped:
            _run(folder, backend, MASK, secret, ends=_stop)
        seen.append(int(str(stopped.value)))
    return seen[1] - seen[0]


@pytest.mark.parametrize("backend", [VERIFIED_FIELD, VERIFIED_SHAMIR], ids=str)
def test_stored_masks_blocked_after_a_run_that_broke_off(tmp_path: Path, backend: Backend) -> None:
    _run(tmp_path, backend, STORE, "41")
    with pytest.raises(ProgramError, match=r"was broken off, after it may have opened .*store new ones .*remove Shares-P\d\.claimed beside it"):
        _masked_twice(tmp_path, backend)
    assert all(claim_path(shares_path(tmp_path, party)).stat().st_mode & 0o777 == 0o600 for party in range(backend.parties))
    # The same if one honest party has a mark, whatever the program does; the others get none.
    for party in range(1, backend.parties):
        claim_path(shares_path(tmp_path, party)).unlink()
    for source in (READ, "sint.write_to_file(sint(1))\n", "regint(7).binary_output()\n"):
        with pytest.raises(ProgramError, match="Shares-P0: a run that had read these shares"):
            _run(tmp_path, backend, source)
    # As the error says, for shares that may be used again.
    claim_path(shares_path(tmp_path, 0)).unlink()
    assert _run(tmp_path, backend, READ) == [[41, 41, 41]] * backend.parties
    assert _run(tmp_path, backend, READ) == [[41, 41, 41]] * backend.parties


def test_stored_masks_ablated_without_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyquorum.dsl.files.program_io.claim", lambda path, loaded: None)
    _run(tmp_path, VERIFIED_FIELD, STORE, "41")
    assert _masked_twice(tmp_path, VERIFIED_FIELD) == 234


def _masked_by_two_runs(folder: Path) -> int:
    """The same difference, if a run comes to its end, and replaces the mask, while another one has read the file and waits."""
    seen: list[int] = []
    done = Event()

    def meanwhile(party: int) -> None:
        if party == 0:
            seen.append(_run(folder, VERIFIED_FIELD, MASK_ONCE, "1234")[0][0])
            done.set()
        assert done.wait(15)

    _run(folder, VERIFIED_FIELD, STORE, "41")
    first = _run(folder, VERIFIED_FIELD, MASK_ONCE, "1000", loaded=meanwhile)[0][0]
    return seen[0] - first


def test_stored_masks_blocked_of_two_runs_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="another run has replaced it, and may have used the shares"):
        _masked_by_two_runs(tmp_path)
    assert not claim_path(shares_path(tmp_path, 0)).exists()


def test_stored_masks_ablated_files_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("share_files", "program_io"):
        monkeypatch.setattr(f"keyquorum.dsl.files.{module}.identity", lambda path: (0, 0, 0))
    assert _masked_by_two_runs(tmp_path) == 234


def test_a_claim_ends_with_its_run(tmp_path: Path) -> None:
    """Also if the run failed before anything was sent. A mark without a file says nothing, and nobody marks a file a second time."""
    backend, marks = VERIFIED_FIELD, [claim_path(shares_path(tmp_path, party)) for party in range(3)]

    def claimed(io: ProgramIO, session: _engine.Session) -> None:
        assert marks[session.party].read_bytes() == share_files.CLAIMED

    _run(tmp_path, backend, STORE, "41")
    _run(tmp_path, backend, READ, ends=claimed)
    assert not any(mark.exists() for mark in marks)
    with pytest.raises(Broken):
        _run(tmp_path, backend, "a = sint.read_from_file(0, 1, size=3)[1][0] + 1\nregint(1).binary_output()\n", ends=_stop)
    assert not any(mark.exists() for mark in marks)
    loaded = share_files.identity(shares_path(tmp_path, 1))
    share_files.claim(shares_path(tmp_path, 1), loaded)
    with pytest.raises(ProgramError, match="or still runs"):
        share_files.claim(shares_path(tmp_path, 1), loaded)
    for party in range(3):
        shares_path(tmp_path, party).unlink()
    _run(tmp_path, backend, STORE, "42")
    assert _run(tmp_path, backend, READ) == [[42, 42, 42]] * 3
