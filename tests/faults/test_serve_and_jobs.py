"""A served committee beside one-off jobs, and beside a second daemon of the same party."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.parties.queue import job_lock
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.serve.client import fetch, local_addresses
from keyquorum.serve.daemon import Daemon, Service

from tests.commands import Forked

from .test_served import Served, process, until_right


def test_a_second_daemon_of_a_party_is_refused(tmp_path: Path) -> None:
    """The error names the running daemon and its address; clients keep their address; and after a kill the next daemon starts at once."""
    s = Served(tmp_path, 0, start=False)
    log = tmp_path / "log"
    parties = {party: process(s, party, log) for party in (0, 1)}
    try:
        until_right(s, 1, log)
        places = local_addresses(s.committee)
        for key in ("key", "other"):
            with pytest.raises(CommitteeError) as caught:
                Daemon(s.committee, 0, Service(key))
            text = str(caught.value)
            assert f"serves already, key key (process {parties[0].pid} on " in text and f"at 127.0.0.1:{places[0][1]}: stop that one first" in text
        assert local_addresses(s.committee) == places
        until_right(s, 2, log)
        parties[0].kill()
        parties[0].wait()
        parties[0] = process(s, 0, log)
        until_right(s, 3, log)
    finally:
        for child in parties.values():
            child.kill()
            child.wait()


def test_jobs_run_beside_a_served_key(tmp_path: Path) -> None:
    """A key generation while the committee serves, and requests after it; a decryption from the pool that serves is refused and says so."""
    s = Served(tmp_path, 500)
    try:
        s.filled(500)
        api.keygen(s.committee, "bfv", "bfv-4096", relin=False)
        api.keygen(s.committee, "second", "lwe64-p2")
        data, messages = s.request(20, 1)
        assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)
        assert load_lwe_key(s.committee.key_folder(0, "key")) == s.info
        path = tmp_path / "x.lwe"
        path.write_bytes(data)
        with pytest.raises(PartyError, match="another process uses this pool: stop it, or wait until it has ended"):
            api.decrypt(s.committee, "key", [path], 0, [tmp_path / "out"], "round_mask_open")
        assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)
    finally:
        for party in list(s.daemons):
            s.stop(party)
    assert not s.failures


def test_a_daemon_connects_after_the_job_before_it(tmp_path: Path) -> None:
    """While a job runs, a daemon waits for it and names it."""
    s = Served(tmp_path, 0, start=False)
    lock = job_lock(s.committee, 0, "a long job")
    assert lock.take()
    log = tmp_path / "log"
    parties: dict[int, Forked] = {}
    try:
        parties = {party: process(s, party, log) for party in (0, 1)}
        for _ in range(200):
            if "waits for a long job" in log.read_text():
                break
            with pytest.raises(subprocess.TimeoutExpired):
                parties[0].wait(0.1)
        assert log.read_text().count("party 0: not connected: waits for a long job (process ") == 1
        assert "party 0: connected" not in log.read_text()
        lock.release()
        until_right(s, 1, log)
    finally:
        lock.release()
        for child in parties.values():
            child.kill()
            child.wait()
