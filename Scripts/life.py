"""The life of two keys, shown to a person: ``make life``. A CKKS key for SEAL and a key for TFHE-rs go from committee to committee, are refreshed between, and survive killed parties and lost disks.

What others have never changes: stock SEAL and TFHE-rs encrypt and evaluate under the same public keys all the time, and the committee that has the key decrypts. Every result is compared with that in
clear. In every change of the epoch one process gets SIGKILL at a random time. Then the change ends by the orders of an operator, or is run again. A lost disk is the folder of a party, removed but for
``identity.pem``, of which an operator has a backup.

Needs the bridge to TFHE-rs (``make tfhe-bridge``).

    python Scripts/life.py [--kills-seed 7]
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from keyquorum import api
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.model.bridge import bridge_between
from keyquorum.model.chosen_committees import ADDITIVE_RING, REPLICATED, REPLICATED_RING, VERIFIED_SHAMIR, WITH_MACS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyQuorumError, PartyError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from tfhe import evaluated

KEY = "key"
DEVIATIONS = 8.0
"""Standard deviations of the flooding that a right CKKS result may be off."""
DELAY = 2.0
"""Seconds from the start of a change within which a process is killed."""


class Held(ABC):
    """A key as others use it. ``parameters``: its set; ``files``: what they compute with goes there."""

    parameters: str

    def __init__(self, files: Path) -> None:
        self.files = files
        files.mkdir()

    @abstractmethod
    def begin(self, folder: Path) -> None:
        """What is made once from the public files of the key."""

    @abstractmethod
    def wrong(self, committee: Committee) -> int:
        """Encrypts and evaluates something new under the public key, lets the committee decrypt, and returns the number of wrong results."""


class Ckks(Held):
    """Stock SEAL multiplies two encrypted vectors."""

    parameters = "ckks-16384"

    def begin(self, folder: Path) -> None:
        """See :meth:`Held.begin`: nothing."""

    def wrong(self, committee: Committee) -> int:
        """See :meth:`Held.wrong`."""
        x, y = np.random.default_rng().uniform(-1, 1, (2, 8))
        for name, values in {"x": x, "y": y}.items():
            api.encrypt(committee, KEY, values, self.files / name)
        product, plain = self.files / "product", self.files / "plain"
        api.evaluate(committee, KEY, "multiply", [self.files / "x", self.files / "y"], product)
        for _ in range(3):  # fewer primes, and so fewer random bits in committees with MACs
            api.evaluate(committee, KEY, "next-level", [product], product)
        done = api.decrypt(committee, KEY, [product], 0, [plain])
        assert done.precisions is not None
        errors = np.abs(api.decode(committee, KEY, plain, len(x)) - x * y)
        return int(np.sum(errors > DEVIATIONS * done.precisions[0].deviation))


class Tfhe(Held):
    """TFHE-rs adds, multiplies, compares and selects two encrypted integers."""

    parameters = "tfhers-2-2"

    def begin(self, folder: Path) -> None:
        """See :meth:`Held.begin`."""
        self.key = folder
        run_bridge(["keys", str(folder), str(self.files)])

    def wrong(self, committee: Committee) -> int:
        """See :meth:`Held.wrong`."""
        public, server, ciphertexts = (self.files / name for name in ("CompactPublicKey.bin", "ServerKey.bin", "results.lwe"))
        results = evaluated(str(public), str(server), "uint8", str(self.files / "uint8"))
        run_bridge(["to-lwe", str(self.key), *(result.file for result in results), str(ciphertexts)])
        api.pool_fill(committee, self.parameters, "round_ltz_circuit", sum(result.blocks for result in results))
        plain = self.files / "results.plain"
        api.decrypt(committee, KEY, [ciphertexts], 0, [plain])
        values, _ = api.decode_values(committee, KEY, plain)
        return sum(value != result.right for value, result in zip(values, results, strict=True))


@dataclass
class Life:
    """A key and the committees that had it, the last one last. ``folder``: an empty one for all of them."""

    folder: Path
    held: Held
    dice: random.Random
    committees: list[Committee] = field(default_factory=list)
    public: dict[str, bytes] = field(default_factory=dict)
    kills: int = 0
    wrong: int = 0
    lost: int = 0

    @property
    def now(self) -> Committee:
        """The committee that has the key."""
        return self.committees[-1]

    @property
    def epochs(self) -> int:
        """Changes of the epoch so far, as all parties say."""
        [epoch] = {status["number"] for status in api.epoch_status(self.now)}
        return int(epoch)

    def say(self, text: str) -> None:
        """A line for people."""
        print(f"{self.held.parameters}: {text}", flush=True)

    def born(self, protocol: str, parties: int) -> None:
        """The first committee makes the key."""
        self.committees.append(api.init(self.folder / "committee-0", parties, protocol))
        made = api.keygen(self.now, KEY, self.held.parameters)
        self.public = {name: (made.folder / name).read_bytes() for name in ("key.json", *made.info.files)}
        backup = self.folder / "public"
        shutil.copytree(made.folder, backup)  # what users of the key have
        self.held.begin(backup)
        self.say(f"{protocol} among {parties} made key {made.info.key_id}")
        self.used()

    def used(self) -> None:
        """The key is used; its public files are the first ones."""
        folder = api.key_folder(self.now, KEY)
        same = all((folder / name).read_bytes() == content for name, content in self.public.items())
        wrong = self.held.wrong(self.now) + (not same)
        self.wrong += wrong
        self.say(
            f"epoch {self.epochs}: {self.now.protocol} among {self.now.size} decrypts under the same public key: {'WRONG' if wrong else 'right'}"
        )

    # -- changes ------------------------------------------------------------------------------------------------------

    def refreshed(self) -> None:
        """New shares among the same members."""
        began = self.epochs
        self._killed(lambda kill: run_processes(self.now.folder, api.refresh_shares_job(self.now), on_start=kill))
        self._cured(self.now)
        if self.epochs == began:
            api.refresh_shares(self.now)
        self.say(f"shares refreshed, epoch {self.epochs}")

    def passed_on(self, protocol: str, parties: int, origin: str | None = None) -> None:
        """The key goes to a new committee. ``origin``: what a committee for malicious parties must accept of the old one."""
        old = self.now
        new = api.init_after(self.folder / f"committee-{len(self.committees)}", old, protocol=protocol, parties=parties)
        job, between = api.reshare_job(old, new, accept_origin=origin), bridge_between(old, new)
        self._killed(lambda kill: run_processes(between, job, on_start=kill))
        self._cured(old, new)
        if not api.epoch_status(new)[0]["number"]:
            api.reshare(old, new, accept_origin=origin)
        self.committees.append(new)
        self.lost += any(old.folder.rglob("share-*.kqs"))
        self.say(f"passed on from {old.protocol} among {old.size} to {protocol} among {parties}, epoch {self.epochs}")

    def _killed(self, change: Callable[[Callable[[list[subprocess.Popen[str]]], None]], list[Json]]) -> None:
        """Runs a change; one of its processes is killed at a random time."""
        delay, timers = self.dice.uniform(0.2, DELAY), list[threading.Timer]()

        def start(processes: list[subprocess.Popen[str]]) -> None:
            victim = self.dice.choice(processes)
            timers.append(threading.Timer(delay, lambda: self._kill(victim, delay)))
            timers[0].start()

        try:
            change(start)
        except PartyError as error:
            self.say(f"the change was cut off: {error}")
        finally:
            for timer in timers:
                timer.cancel()

    def _kill(self, victim: subprocess.Popen[str], delay: float) -> None:
        if victim.poll() is None:
            victim.kill()
            self.kills += 1
            self.say(f"a party was killed {delay:.1f} s after its start")

    def _cured(self, *committees: Committee) -> None:
        """The operators end a change that was cut off: its statements go around by files."""
        said = {committee.name: self.folder / f"{committee.name}.said" for committee in committees}
        for order in (api.epoch_commit, api.epoch_commit):
            for committee in committees:
                others = [path for name, path in said.items() if name != committee.name and path.exists()]
                with suppress(EpochError):  # nothing is unfinished there, or a party has yet to hear something
                    order(committee, others, said[committee.name])
        for committee in committees:
            with suppress(EpochError):
                api.epoch_erase(committee, [path for name, path in said.items() if name != committee.name and path.exists()])

    # -- losses -------------------------------------------------------------------------------------------------------

    def disks_die(self, *parties: int) -> None:
        """Parties lose their folders at the same time, and get their shares again from the others."""
        for party in parties:
            folder, identity = self.now.party_folder(party), self.now.identity_path(party)
            backup = self.folder / "identity.pem"
            shutil.move(identity, backup)
            shutil.rmtree(folder)
            folder.mkdir(mode=0o700)
            shutil.move(backup, identity)
        api.recover(self.now, parties)
        for party in parties:
            self.say(f"party {party} lost its disk and has its shares again")


def ckks_life(life: Life) -> None:
    """From a committee that follows the protocol to one for malicious parties, which loses two disks at once, to one where all but one may be malicious, and back."""
    life.born(REPLICATED, 3)
    life.refreshed()
    life.passed_on(VERIFIED_SHAMIR, 5, "semi-honest")
    api.epoch_prove(life.now, KEY)
    life.say("the shares fit the public key: tested")
    life.used()
    life.disks_die(1, 4)
    life.refreshed()
    life.used()
    life.passed_on(WITH_MACS, 2)
    life.used()
    life.passed_on(REPLICATED, 3)
    life.refreshed()
    life.used()


def tfhe_life(life: Life) -> None:
    """Among committees that follow the protocol: those for malicious parties have no decryption of TFHE."""
    life.born(REPLICATED, 3)
    life.disks_die(2)
    life.refreshed()
    life.passed_on(ADDITIVE_RING, 2)
    life.refreshed()
    life.used()
    life.passed_on(REPLICATED_RING, 3)
    life.refreshed()
    life.used()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="the life of two keys: refreshed, passed on, recovered")
    parser.add_argument("--kills-seed", type=int, help="repeats the times of kills (default: others each time)")
    given, began, lives = parser.parse_args(), time.monotonic(), list[Life]()
    dice = random.Random(given.kills_seed)
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", flush=True)
    try:
        bridge()
        with tempfile.TemporaryDirectory(prefix="keyquorum-life-") as folder:
            for kind, path in ((Ckks, ckks_life), (Tfhe, tfhe_life)):
                home = Path(folder) / kind.parameters
                home.mkdir()
                lives.append(Life(home, kind(home / "files"), dice))
                path(lives[-1])
            epochs = sum(life.epochs for life in lives)
    except KeyQuorumError as error:
        sys.exit(f"error: {error}")
    kills, wrong, lost = (sum(getattr(life, name) for life in lives) for name in ("kills", "wrong", "lost"))
    print(
        f"life: {'WRONG' if wrong or lost else 'ok'} epochs={epochs} kills={kills} wrong={wrong} lost={lost} seconds={time.monotonic() - began:.1f}"
    )
    sys.exit(bool(wrong or lost))


if __name__ == "__main__":
    main()
