"""A served committee and its Python client (LWE).

Two parties serve a joint key, each a process of ``keyquorum serve``. A receiver, who is no party, asks them to decrypt, through
``keyquorum.serve.client``. Every party sends its shares of the messages to the receiver alone, who adds them up. No party learns a message.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keyquorum
from keyquorum.serve.client import Receiver, make_receiver

MESSAGES = 40
PARTIES = 2


def start(folder: Path) -> list[subprocess.Popen[bytes]]:
    """The processes of the parties, each with a log file. On several hosts, each person starts their own party."""
    serving = []
    for party in range(PARTIES):
        # --keep: items of the pool that the parties make ahead while there are no requests; each serves one decryption
        command = [sys.executable, "-m", "keyquorum", "serve", str(folder / "committee"), str(party), "key", "--keep", "128", "--chunk", "128"]
        with (folder / f"serve-{party}.log").open("wb") as log:
            serving.append(subprocess.Popen(command, stdout=log, stderr=log))
    return serving


def wait_for(committee: keyquorum.Committee, serving: list[subprocess.Popen[bytes]], seconds: float = 60.0) -> None:
    """Returns when every party has written the address at which it serves."""
    end = time.monotonic() + seconds
    while not all((committee.party_folder(party) / "serve.json").exists() for party in range(PARTIES)):
        if time.monotonic() > end or any(process.poll() is not None for process in serving):
            logs = [path.read_text() for path in sorted(committee.folder.parent.glob("serve-*.log"))]
            sys.exit("error: a party does not serve:\n" + "\n".join(logs))
        time.sleep(0.1)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        committee = keyquorum.init(folder / "committee", PARTIES, "semi")
        keyquorum.keygen(committee, "key", "lwe64-p16")  # messages of 4 bits
        identity, _ = make_receiver(committee, "alice")  # before the parties start, or at any time while they serve
        serving = start(folder)
        try:
            wait_for(committee, serving)
            receiver = Receiver(committee, identity, wait=30.0)
            for request in range(3):  # over the same channels
                messages = [secrets.randbelow(16) for _ in range(MESSAGES)]
                encrypted = keyquorum.encrypt(committee, "key", messages, folder / f"{request}.lwe").path
                begin = time.monotonic()
                received = receiver.decrypt(encrypted.read_bytes()).messages
                print(f"request {request}: {MESSAGES} messages in {time.monotonic() - begin:.3f} s, the first: {received[:8].tolist()}")
                assert received.tolist() == messages, "the receiver got other messages than were encrypted"
            receiver.close()
        finally:
            for process in serving:
                process.terminate()
            for process in serving:
                process.wait(30)
        lines = (committee.party_folder(0) / "audit.jsonl").read_text().splitlines()
        print(f"the audit log of party 0 has {len(lines)} lines")


if __name__ == "__main__":
    main()
