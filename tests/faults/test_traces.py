"""A party's process that dies leaves no core dump, and no temporary file after the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.parties import run_party
from keyquorum.parties.traces import OLDEST, sweep
from keyquorum.serve.client import make_receiver
from keyquorum.serve.wire import client_context

STARTS = {
    "worker": "from keyquorum.parties.worker import main; main()",
    "daemon": "from keyquorum.serve.daemon import serve; serve(None, 0, None)",
    "party": "from pathlib import Path; from keyquorum.cli.programs import party; party(Path('none'), 0, Path('none'), 1.0, 1.0)",
}
"""How processes of parties start; none of them comes far here."""
STATE = """
import ctypes, resource
try:
    START
except BaseException as error:
    assert not isinstance(error, ImportError), error
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is of Linux")
@pytest.mark.parametrize("start", STARTS)
def test_a_party_dumps_no_core(start: str) -> None:
    done = subprocess.run([sys.executable, "-c", STATE.replace("START", STARTS[start])], input="", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "(0, 0) 0", done.stderr


ATOMICALLY = """
import os, sys, time
from pathlib import Path
from keyquorum.model.committee import write_atomically
os.replace = lambda *_: (print("writes", flush=True), time.sleep(60))
write_atomically(Path(sys.argv[1]) / "secret", b"secret")
"""
PRIVATE_KEY = """
import ssl, sys, time
from pathlib import Path
from keyquorum.serve.wire import client_context
ssl.SSLContext.load_cert_chain = lambda *_: (print("writes", flush=True), time.sleep(60))
client_context(Path(sys.argv[1]) / "identity.pem")
"""
SHARES = """
import sys
from pathlib import Path
from keyquorum import _engine
header = {"protocol": "shamir", "domain": "F_97", "parties": 3, "threshold": 1, "party": 2, "key_id": "ab" * 16, "length": 5}
data = bytes(1 << 28)
print("writes", flush=True)
while True:
    _engine.ShareFile.write(str(Path(sys.argv[1]) / "s.kqs"), header, data)
"""


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(".")]


def aged(path: Path) -> None:
    then = time.time() - 2 * OLDEST
    os.utime(path, (then, then))


@contextmanager
def writing(folder: Path, program: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that has stopped while it writes a file, and the temporary file, which looks as if it was old."""
    with subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "writes\n"
            until = time.monotonic() + 30
            while True:
                assert time.monotonic() < until
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                found = [path for path in hidden(folder) if path.stat().st_size]
                if found:
                    break
                process.send_signal(signal.SIGCONT)
                time.sleep(0.01)
            aged(found[0])
            yield process, found[0]
        finally:
            process.kill()


@pytest.mark.parametrize("program", [ATOMICALLY, PRIVATE_KEY, SHARES], ids=["file", "private-key", "shares"])
def test_what_a_killed_writer_left_goes(tmp_path: Path, program: str) -> None:
    committee = api.init(tmp_path / "c", 3, "shamir")
    folder = committee.party_folder(1)
    kept = sorted(folder.iterdir())
    with writing(folder, program) as (process, path):
        sweep(folder)
        assert path.exists(), "its writer lives"
        process.kill()
        process.wait()
        sweep(folder)
        assert not path.exists() and hidden(folder) == []
    assert set(kept) <= set(folder.iterdir())


def test_a_receiver_sweeps_copies_of_its_key(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "c", 3, "shamir")
    identity, _ = make_receiver(committee, "alice")
    left, other = (identity.with_name(f".{name}.123.0123abcd") for name in (identity.name, "receiver-bob.pem"))
    for path in (left, other):
        path.write_bytes(b"secret")
        aged(path)
    client_context(identity)
    assert not left.exists() and other.exists()


def test_a_party_sweeps_when_it_starts(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "c", 3, "shamir")
    folder = committee.party_folder(0)
    (folder / "keys" / "k").mkdir(parents=True)
    left = [folder / "keys" / "k" / ".tmpAb3dEf", folder / ".identity.pem.123.0123abcd", folder / ".decryptions.json.0123456789abcdef.tmp"]
    young, others, foreign = folder / ".tmpAAAAAA", folder / "keys" / "share.kqs", committee.party_folder(1) / ".tmpAb3dEf"
    for path in (*left, young, others, foreign):
        path.write_bytes(b"secret")
        if path != young:
            aged(path)
    target = tmp_path / "elsewhere"
    target.write_text("not ours")
    link = folder / ".tmpBBBBBB"
    link.symlink_to(target)
    aged(target)
    with pytest.raises(Exception, match="party 1"):
        run_party(committee.folder, 0, api.keygen_job("new", api.load_parameters("bfv-4096")), connect_timeout=0.2)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in (young, others, foreign, target, link))
