"""The life of committees: refreshes, resharings and recoveries, one after another, with SIGKILL at each checkpoint in turn, or a disk that is full from there on, in parties and in orders. With KEYQUORUM_LONG=1 1,000 epochs, or what an hour allows, else a few.

After each change all members are in one epoch, the secrets of all keys are what they were, public files too, and nothing of an old share is below any folder of a party. In the end keys decrypt what was encrypted in the beginning.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties.epochs import read_epoch
from keyquorum.plans.epochs.helpers import must_test
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.epochs.prove import proofs_run
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.schemes.base import FIT_RUNS
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.prf.evaluations import JOURNAL

from tests.commands import started
from tests.faults.epoch_worker import TINY
from tests.long import LONG
from tests.plans.epochs.reshared import has_any, secrets_of
from tests.plans.epochs.test_prove import TOY, with_scheme
from tests.plans.epochs.test_recover import lose
from tests.plans.test_refresh import run, share_bytes

ROOT = Path(__file__).resolve().parents[2]
EPOCHS, AT_A_TIME, MOST_SECONDS = (1000, 10, 3300.0) if LONG else (4, 4, 60.0)
"""Epochs of all worlds, of one of them before the next one is in turn, and after how many seconds no more begin."""
MOST_TIMES = 3
"""Of a checkpoint that a process passes more often, the first ones count."""
RECOVERED, GIVEN_UP, DECRYPTED = (8, 6, 25) if LONG else (3, 2, EPOCHS + 1)
"""After so many epochs a disk is lost; of so many kills one party is taken for lost; and after so many epochs a key decrypts by the command."""
BFV, CKKS = TOY, with_scheme("ckks")
pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")


@dataclass(frozen=True)
class World:
    """A committee with keys (name to set), and the protocols and sizes to which the keys go in turn, the first one last."""

    keys: dict[str, Any]
    shapes: tuple[tuple[str, int], ...]


WORLDS = (
    World({"lwe": "lwe53-p16", "bfv": BFV, "ckks": CKKS}, (("shamir", 5), ("rep-field", 3), ("semi", 3))),
    World({"lwe64": "lwe64-p2", "tfhe": TINY.name, "aes": "prf-aes128", "bfv": BFV}, (("rep-field", 3), ("semi", 3))),
    World({"bfv": BFV}, (("mal-rep-field", 3), ("mal-shamir", 5))),
    World({"lwe": "lwe53-p16", "bfv": BFV}, (("mal-shamir", 5), ("mal-rep-field", 3))),
)
SHORT = (World({"bfv": TOY}, (("rep-field", 3), ("shamir", 3))),)


@dataclass
class Life:
    """One world. ``points``: of each kind of work the checkpoints that its processes passed, with the processes, in the order in which they are tried."""

    folder: Path
    world: World
    committee: Committee
    epochs: int = 0
    kills: int = 0
    full: int = 0
    repaired: int = 0
    lost: int = 0
    wrong: int = 0
    numbers: Any = field(default_factory=count)
    points: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    tried: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    random: Random = field(default_factory=lambda: Random(1))

    @staticmethod
    def begin(folder: Path, world: World) -> Life:
        """Makes the committee and its keys, in threads of this process."""
        protocol, size = world.shapes[0]
        committee = api.init(folder / "c", size, protocol)
        for name, parameters in world.keys.items():
            options: dict[str, Any] = {} if isinstance(parameters, str) else {"relin": False}
            run(committee, api.keygen_job(name, parameters, **options))
        life = Life(folder, world, committee)
        life.truth = {name: (secrets_of(committee, name), public_of(committee, name)) for name in world.keys}
        if "bfv" in world.keys:
            api.encrypt(committee, "bfv", np.arange(50), folder / "x.ct")
        return life

    truth: dict[str, Any] = field(default_factory=dict)
    ablated: bool = False
    """Whether parties commit with any vote, and erase at once."""
    said: list[str] = field(default_factory=list)
    """What the last processes printed."""
    failed: list[list[str]] = field(default_factory=list)
    """What the processes of each attempt printed."""

    # -- processes ----------------------------------------------------------------------------------------------------

    def processes(self, kind: str, asked: Sequence[Json], kill: bool) -> list[int]:
        """Runs workers, of which one dies at the next checkpoint if it is to, or each third time has a full disk; their exit codes. Those that die know nothing of it before."""
        points, victim, fault = self.points[kind], -1, "kill"
        if kill and points:
            turn = self.tried[kind]
            self.tried[kind] += 1
            fault, turn = ("full", turn // 3) if turn % 3 == 2 else ("kill", turn - turn // 3)
            point = list(points)[turn % len(points)]
            victim = self.random.choice(points[point])
        workers, passed = [], []
        for index, each in enumerate(asked):
            place = self.folder / f"asked-{next(self.numbers)}.json"
            passed.append(place.with_suffix(".passed"))
            faults = {"kill": "-", "full": "-"} | ({fault: point} if index == victim else {})
            place.write_text(json.dumps({**each, **faults, "passed": str(passed[-1]), "ablated": self.ablated}))
            workers.append((place, started(ROOT, "tests.faults.epoch_worker", place)))
        ended = [worker.ended(60) for _, worker in workers]
        died = [done.returncode == -signal.SIGKILL for done in ended]
        assert not any(dead for index, dead in enumerate(died) if index != victim), ended
        assert all(done.returncode in (0, 1, -signal.SIGKILL) and "Traceback" not in done.stderr for done in ended), ended
        self.kills += any(died)
        self.full += victim >= 0 and fault == "full"
        for index, path in enumerate(passed):
            for name in path.read_text().split() if path.exists() else ():
                if int(name.partition("@")[2]) <= MOST_TIMES and index not in points.setdefault(name, []):
                    points[name].append(index)
            path.unlink(missing_ok=True)
            workers[index][0].unlink()
        self.said = [done.stdout.strip() for done in ended]
        return [done.returncode for done in ended]

    def job(self, kind: str, committee: Committee, job: Json, kill: bool, to: Committee | None = None) -> list[int]:
        """A job among all its parties."""
        asked = []
        for index in range(committee.size):
            folder, number = committee.started_by(index)
            leaves = to is None or folder != to.folder
            other = None if to is None else str(to.folder if leaves else self.committee.folder)
            asked.append({"folder": str(folder), "party": number, "job": job, "to": other if leaves else None, "old": None if leaves else other})
        return self.processes(kind, asked, kill)

    def order(self, name: str, committee: Committee, lost: Sequence[int | str] = (), kill: bool = False) -> None:
        """An order at all parties that are here; again, if the process died or failed."""
        files = [str(path) for path in self.folder.glob("*.said") if path.stem != committee.folder.name]
        asked: Json = {
            "order": name,
            "folder": str(committee.folder),
            "files": files,
            "output": str(self.folder / f"{committee.folder.name}.said"),
            "lost": list(lost),
        }
        if self.processes(name, [asked], kill) != [0]:
            self.processes(name, [asked], False)

    # -- changes ------------------------------------------------------------------------------------------------------

    def change(self, number: int) -> None:
        """One epoch: a refresh, or a resharing where there is another shape, with a kill; cured and repeated until it is done."""
        here = self.committee
        before, shares = self.epochs, share_bytes(here)
        for path in self.folder.glob("*.said"):
            path.unlink()
        target = self.next_committee(number) if number % 2 else None
        self.failed = []
        for attempt in range(4):
            self.attempt(target, kill=attempt == 0, give_up=number % GIVEN_UP == 0 and attempt == 0)
            holder = here if target is None else target
            found = {read_epoch(holder.party_folder(party)).number for party in range(holder.size)}
            if found == {before + 1}:
                break
            assert found <= {before, 0}, (found, self.said)
        else:
            raise AssertionError(f"no change after several attempts: {self.failed}")
        if target is not None:
            self.committee = target
        self.epochs = before + 1
        folders = [here.folder] if target is None else [here.folder, target.folder]
        self.check(folders, shares)
        if target is not None:
            shutil.rmtree(here.folder)

    def attempt(self, target: Committee | None, kill: bool, give_up: bool) -> None:
        here = self.committee
        if target is None:
            codes = self.job("refresh", here, api.refresh_shares_job(here), kill)
        else:
            accepted = "semi-honest" if target.malicious and not here.malicious else None
            job = api.reshare_job(here, target, accept_origin=accepted)
            codes = self.job(f"reshare {here.size} {target.size}", bridge(here, target), job, kill, target)
        self.failed.append(self.said)
        if codes.count(0) < len(codes):
            self.cure([here] if target is None else [here, target], codes.index(-signal.SIGKILL) if -signal.SIGKILL in codes else None, give_up)

    def cure(self, committees: Sequence[Committee], victim: int | None, give_up: bool) -> None:
        """What operators do: statements go around; who is dead may be taken for lost, and come back."""
        if victim is not None and give_up:
            among = bridge(committees[0], committees[1]) if len(committees) == 2 else committees[0]
            folder, number = among.started_by(victim)
            own = next(committee for committee in committees if committee.folder == folder)
            away = own.party_folder(number).rename(self.folder / "away")
            for _ in range(2):
                for committee in committees:
                    self.order("give_up", committee, [number if committee is own else own.parties[number].fingerprint[:16]], kill=True)
            away.rename(own.party_folder(number))
        for turn in range(3):
            for committee in committees:
                self.order("commit", committee, kill=turn == 0)
        for committee in committees:
            self.order("erase", committee, kill=True)

    def next_committee(self, number: int) -> Committee | None:
        """Where the keys go next; None where they stay, since keys are not passed on between the two."""
        shapes = self.world.shapes
        at = shapes.index((self.committee.protocol, self.committee.size))
        protocol, size = shapes[(at + 1) % len(shapes)]
        target = api.init_after(self.folder / f"c{number}", self.committee, protocol=protocol, parties=size)
        try:
            bridge(self.committee, target)
        except ParameterError:
            shutil.rmtree(target.folder)
            return None
        return target

    def recover(self) -> None:
        """A party loses its disk, and gets its shares again, with a kill."""
        here = self.committee
        if here.capabilities.sharing == "additive" or any(proofs_run(folder, load_key(folder)) > FIT_RUNS - 4 for folder in self.key_folders()):
            return
        if must_test(here, range(1, here.size)) and "lwe" in self.world.keys:
            return  # its shares are not tested against a public key
        party = self.random.randrange(here.size)
        lose(here, party)
        self.lost += 1
        for attempt in range(4):
            if self.job("recover", here, api.recover_job(here, party), attempt == 0).count(0) == here.size:
                break
        else:
            raise AssertionError(f"not recovered: {self.said}")
        for name in self.world.keys:  # a lost count of evaluations is the operator's: all parties count the same requests
            there = here.key_folder((party + 1) % here.size, name) / JOURNAL
            if there.exists():
                shutil.copy(there, here.key_folder(party, name) / JOURNAL)
        self.check([here.folder], [])
        self.lost -= 1

    def key_folders(self) -> list[Path]:
        return [self.committee.key_folder(party, name) for party in range(self.committee.size) for name in self.world.keys]

    # -- what must hold -------------------------------------------------------------------------------------------------

    def check(self, folders: Sequence[Path], shares: Sequence[bytes]) -> None:
        here = self.committee
        if self.full > self.repaired:  # a line that an audit log lacks holds nothing up, and follows with this order
            self.repaired = self.full
            for folder in folders:
                self.order("commit", Committee.load(folder))
        for name, truth in self.truth.items():
            self.wrong += (secrets_of(here, name), public_of(here, name)) != truth
        assert not self.wrong
        assert {(found["number"], found["epoch"]) for found in (status(here, party) for party in range(here.size))} == {
            (self.epochs, read_epoch(here.party_folder(0)).name)
        }
        bad = [finding.text for finding in examine_epochs(here, range(here.size)) if not finding.ok]
        assert not bad, bad
        assert not any(has_any(folder, shares) for folder in folders), "bytes of an old share"

    def decrypts(self) -> None:
        """By processes, as the command does: without a pool, that is BFV. The secrets of the other keys are what they were."""
        if "bfv" in self.world.keys:
            output = self.folder / "plain"
            output.unlink(missing_ok=True)
            api.decrypt(self.committee, "bfv", [self.folder / "x.ct"], 0, [output])
            self.wrong += np.asarray(api.decode(self.committee, "bfv", output))[:50].tolist() != list(range(50))
        assert not self.wrong

    def live(self, epochs: int) -> Life:
        for number in range(self.epochs, self.epochs + epochs):
            self.change(number)
            if number % RECOVERED == RECOVERED - 1:
                self.recover()
            if number % DECRYPTED == DECRYPTED - 1:
                self.decrypts()
        self.decrypts()
        return self


def public_of(committee: Committee, key: str) -> dict[str, bytes]:
    """Metadata and public files, which stay as they are."""
    folder = committee.key_folder(committee.size - 1, key)
    return {name: (folder / name).read_bytes() for name in ("key.json", *load_key(folder).files)}


@pytest.mark.timeout(5400 if LONG else 120)
def test_the_life_of_committees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    worlds = WORLDS if LONG else SHORT
    lives = []
    for number, world in enumerate(worlds):
        (tmp_path / str(number)).mkdir()
        lives.append(Life.begin(tmp_path / str(number), world))
    end = time.monotonic() + MOST_SECONDS
    with ThreadPoolExecutor(2) as pool:
        while sum(life.epochs for life in lives) < EPOCHS and time.monotonic() < end:
            done = list(pool.map(lambda life: life.live(AT_A_TIME), lives))
    said = {name: sum(getattr(life, name) for life in done) for name in ("epochs", "kills", "full", "wrong", "lost")}
    print(" ".join(f"{name}={value}" for name, value in said.items()))
    tried = sum(min(life.tried[kind] - life.tried[kind] // 3, len(points)) for life in done for kind, points in life.points.items())
    print(f"checkpoints={sum(len(points) for life in done for points in life.points.values())} tried={tried}")
    assert said["wrong"] == 0 and said["lost"] == 0 and said["kills"] >= said["epochs"] // 3


@pytest.mark.timeout(120)
def test_without_the_wait_for_all_votes_members_part(tmp_path: Path) -> None:
    """The check of the test: where parties commit before all have voted, one that dies before its vote is left in the epoch whose shares the others erased."""
    life = Life.begin(tmp_path, SHORT[0])
    life.change(0)
    point = list(life.points["refresh"]).index("epoch/stored@1")
    life.ablated, life.tried["refresh"] = True, point + point // 2  # each third fault is a full disk
    with pytest.raises(AssertionError):
        life.change(2)
