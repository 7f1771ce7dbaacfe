"""A table of passwords that is useless without a committee: each entry is a value under a key that three parties hold as shares.

The parties learn neither passwords nor values. Each limits how often the web server may ask, so a thief of the server guesses slowly."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import keyquorum
from keyquorum.serve.client import RefusedByPolicy, make_receiver
from keyquorum.toprf import Toprf, toprf_keygen

PARTIES = 3
TABLE: dict[str, tuple[bytes, bytes]] = {}
"""User name: salt and hardened password."""


def register(committee: Toprf, user: str, password: str) -> None:
    salt = secrets.token_bytes(16)
    TABLE[user] = salt, committee.evaluate(salt + password.encode())


def log_in(committee: Toprf, user: str, password: str) -> bool:
    salt, value = TABLE.get(user, (bytes(16), bytes(32)))  # a name that nobody has takes as long
    return secrets.compare_digest(committee.evaluate(salt + password.encode()), value)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "committee"
        committee = keyquorum.init(folder, PARTIES)
        toprf_keygen(committee, "passwords")
        identity, _ = make_receiver(committee, "web")
        # On several hosts, each person starts their own party, with a policy of their own.
        command = [sys.executable, "-m", "keyquorum", "toprf", "serve", str(folder)]
        serving = [subprocess.Popen([*command, str(i), "passwords", "--rate", "4/h", "--quiet"], stdout=subprocess.DEVNULL) for i in range(PARTIES)]
        try:
            with Toprf(committee, "passwords", identity, domain=b"login", wait=60.0) as toprf:
                register(toprf, "ada", "correct horse")
                assert log_in(toprf, "ada", "correct horse") and not log_in(toprf, "ada", "battery staple")
                print("ada logs in with her password, and not with another one")
                try:
                    while True:  # a thief of the server tries passwords
                        log_in(toprf, "ada", secrets.token_hex(4))
                except RefusedByPolicy as error:
                    print(f"then the committee refuses: {error}")
        finally:
            for process in serving:
                process.terminate()
            for process in serving:
                process.wait(30)


if __name__ == "__main__":
    main()
