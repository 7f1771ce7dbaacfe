"""Share files of protocols that verify products have the name of the run that stored them: parties with files of different runs are refused."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, run_program
from keyquorum.dsl.persistence import NO_NAME
from keyquorum.dsl.share_files import shares_path
from keyquorum.model.errors import ProgramError
from keyquorum.model.protocols import PROTOCOLS

from .running import VERIFIED_FIELD, VERIFIED_RING, VERIFIED_SHAMIR, Backend

NAME = 16
"""Bytes of a name."""
STORE = "sint.write_to_file(sint(int(program.args[1]), size=3))\n"
READ = "sint.read_from_file(0, 1, size=3)[1][0].reveal().binary_output()\n"
READ_AND_STORE = "sint.write_to_file(sint.read_from_file(0, 1, size=3)[1][0] + 1, 0)\n"


def _run(folder: Path, backend: Backend, source: str, *words: str) -> list[list[int]]:
    """Runs a program with the share files of a folder; returns the output of each party. The first own error of a party is raised."""
    file = folder / "program.mpc"
    file.write_text(source)

    def one(session: _engine.Session) -> list[int]:
        try:
            engine = session.engine(backend.protocol, backend.domain, "test", backend.threshold)
            io = ProgramIO.from_folder(folder, engine, "program")
            run_program(engine, file, list(words), io)
            io.save(folder, engine)
        except BaseException as error:
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
    assert PROTOCOLS[backend.protocol].names_runs
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
    with pytest.raises(ProgramError, match=NO_NAME[:40]):
        _run(tmp_path, backend, READ)
    # A program that uses no shares runs.
    assert _run(tmp_path, backend, "regint(7).binary_output()\n") == [[7]] * 3
