"""A MAC key after a failed check: no share and no pool under the key is used again, by any command."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl.files.share_files import shares_path
from keyquorum.fhe.lwe import encrypt, lwe_parameters, read_lwe
from keyquorum.inspection import describe
from keyquorum.model.committee import Committee
from keyquorum.model.errors import BurnedKeyError, KeyFileError, KeyInUseError, KeyQuorumError, PartyError, PoolTooSmall
from keyquorum.parties import PartyContext, mac_key, run_in_process
from keyquorum.parties.doctor import examine
from keyquorum.plans.examine import examine_keys
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.plans.program import DEFAULT_PRIME
from keyquorum.schemes.key_folder import read_share
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.serve.daemon import Daemon, Service

from .deployment import Parties

pytestmark = pytest.mark.alone
SET = lwe_parameters("lwe64-p2")
ROUNDING = "round_mask_open"
CAUSE_AND_CURE = r"^[^\n]*mac\.key: this MAC key is burned \([^\n]*MAC check of opened values failed[^\n]*make a new committee and new keys$"


@pytest.fixture(scope="module")
def made_with_macs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee of `mascot` with a key, a pool and a file of ciphertexts; tests work on copies."""
    folder = tmp_path_factory.mktemp("burned") / "c"
    committee = api.init(folder, 2, "mascot")
    api.keygen(folder, "key", SET.name)
    api.pool_fill(folder, SET.name, ROUNDING, 12)
    folders = [committee.key_folder(party, "key") for party in range(2)]
    info = load_lwe_key(folders[0])
    shares = [read_share(path, info, party, 0) for party, path in enumerate(folders)]
    secret = np.asarray(sum(share.words[0, : 2 * SET.dimension : 2] for share in shares)).astype(np.int64)
    ciphertexts = encrypt(SET, secret, np.array([1, 0, 1]), np.random.default_rng(1))
    (folder / "x.lwe").write_bytes(ciphertexts.to_bytes(info.key_id))
    return folder


@pytest.fixture
def with_macs(made_with_macs: Path, tmp_path: Path) -> Path:
    """A copy that a test may burn."""
    target = tmp_path / "c"
    shutil.copytree(made_with_macs, target)
    return target


def decrypt(folder: Path) -> str:
    """Decrypts the ciphertexts; returns what party 0 got."""
    output = folder / "x.plain"
    output.unlink(missing_ok=True)
    api.decrypt(folder, "key", [folder / "x.lwe"], 0, [output], ROUNDING, io_timeout=20.0)
    return output.read_text()


def cheat(folder: Path) -> None:
    """Party 1 changes its share of the key, and decrypts: the check fails. Then it has its own share again."""
    committee = Committee.load(folder)
    path = committee.key_folder(1, "key") / "share-0.kqs"
    kept, header = path.read_bytes(), load_lwe_key(path.parent).share_header(1, 0)
    data = bytearray(_engine.ShareFile.read(str(path), header))
    data[0] ^= 1
    _engine.ShareFile.write(str(path), header, bytes(data))
    with pytest.raises(PartyError, match=r"MAC check of opened values failed.*; the MAC key .*mac\.key is burned: make a new committee"):
        decrypt(folder)
    path.write_bytes(kept)


def alpha(folder: Path) -> int:
    """The MAC key of both parties together. The adversary has it from the sums that a failed check reveals: see the attack on an engine
    in ``Source/mpc/src/session/tests/burned.rs``, which finds it there."""

    def one(session: Any) -> int:
        session.set_mac_key(Committee.load(folder).mac_key_path(session.party).read_bytes())
        return int.from_bytes(session.engine("spdz2k", "Z2^64").mac_key, "little")

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(one, _engine.local_sessions(2, 20.0)))


def forge(folder: Path) -> str:
    """Party 1, which knows the MAC key, adds 2^63 to an element of the key, and shifts the MAC as it must be. Returns the messages of
    the ciphertexts under that other key."""
    committee = Committee.load(folder)
    path = committee.key_folder(1, "key") / "share-0.kqs"
    header = load_lwe_key(path.parent).share_header(1, 0)
    words = np.frombuffer(_engine.ShareFile.read(str(path), header), dtype="<u8").reshape(2, SET.dimension, 2).copy()
    shift, modulus = 1 << 63, 1 << (64 + 48)
    ciphertexts, _ = read_lwe((folder / "x.lwe").read_bytes(), "x.lwe")
    element = next(i for i in range(SET.dimension) if ciphertexts.a[0, i] & np.uint64(1))
    for part, by in ((0, shift), (1, shift * alpha(folder))):
        low, high = (int(word) for word in words[part, element])
        value = (low + (high << 64) + by) % modulus
        words[part, element] = (value & (1 << 64) - 1, value >> 64)
    _engine.ShareFile.write(str(path), header, words.tobytes())
    messages = [m ^ int(a & np.uint64(1)) for m, a in zip((1, 0, 1), ciphertexts.a[:, element], strict=True)]
    return json.dumps(messages) + "\n"


def test_failed_check_blocked_decryption_with_the_key(with_macs: Path) -> None:
    """Refused before anything is started."""
    assert decrypt(with_macs) == "[1, 0, 1]\n"
    cheat(with_macs)
    with pytest.raises(BurnedKeyError, match=CAUSE_AND_CURE):
        decrypt(with_macs)
    for path in with_macs.glob("party-*/mac.key.burned"):
        assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_text().splitlines()) == 1
    assert len(list(with_macs.glob("party-*/mac.key.burned"))) == 2


def test_failed_check_ablated_decryption_with_the_key(with_macs: Path) -> None:
    """Without the mark, and without the check that is still open beside the key, the next decryption accepts a forged share of the key: its result is wrong, and no check fails."""
    cheat(with_macs)
    for path in with_macs.glob("party-*/mac.key.burned"):
        path.unlink()
        path.with_name("mac.key.session").unlink()
        path.with_name("mac.key.checks").unlink()
    wrong = forge(with_macs)
    assert wrong != "[1, 0, 1]\n" and decrypt(with_macs) == wrong


def test_failed_check_blocked_restarted_party(with_macs: Path) -> None:
    """The honest party, restarted alone, refuses before it connects to any party."""
    cheat(with_macs)
    job = api.keygen_job("another", SET)
    with Parties([with_macs] * 2, [job, None]) as parties:
        outcome = parties.wait(0)[0]
    assert outcome.code == 1 and outcome.kind == "BurnedKeyError" and re.match(CAUSE_AND_CURE, outcome.message), outcome


def test_failed_check_blocked_its_pool(with_macs: Path) -> None:
    """It is neither filled nor used."""
    cheat(with_macs)
    with pytest.raises(BurnedKeyError, match=CAUSE_AND_CURE):
        api.pool_fill(with_macs, SET.name, ROUNDING, 2)
    assert all("this MAC key is burned" in line for line in api.pool_lines(with_macs))
    pool = pools_folder(Committee.load(with_macs), 0)
    before = {path: path.read_bytes() for path in pool.glob("*/*")}

    def job(context: PartyContext) -> None:
        Pool(context, pool_group(context), variant_for(context.committee, ROUNDING, SET))

    with pytest.raises(BurnedKeyError, match=CAUSE_AND_CURE):
        run_in_process(Committee.load(with_macs), job)
    # Another MAC key does not help: the items are under the old one.
    context = PartyContext(_engine.local_sessions(1)[0], Committee.load(with_macs), backend=Embedded(None))
    with pytest.raises(BurnedKeyError, match=CAUSE_AND_CURE):
        job(context)
    assert {path: path.read_bytes() for path in pool.glob("*/*")} == before


def test_failed_check_blocked_its_shares_and_services(with_macs: Path) -> None:
    """Key shares, a served committee, doctor and inspect."""
    cheat(with_macs)
    committee = Committee.load(with_macs)
    folder = committee.key_folder(0, "key")
    refused: list[Callable[[], Any]] = [
        lambda: read_share(folder, load_lwe_key(folder), 0, 0),
        lambda: Daemon(committee, 0, Service("key")),
        lambda: mac_key.mac_key(committee.mac_key_path(0)),
        lambda: api.keygen(committee, "new", "ckks-4096-mac", backend="embedded"),
    ]
    for use in refused:
        with pytest.raises(BurnedKeyError, match=CAUSE_AND_CURE):
            use()
    assert any("this MAC key is burned" in line for line in describe(with_macs))
    assert sum(not f.ok and "this MAC key is burned" in f.text for f in examine(committee, [0, 1], 5.0)) == 2


def test_failed_check_blocked_stored_shares_of_programs(tmp_path: Path) -> None:
    """Party 1 changes its stored share; the program that reads it fails, and no program of the folder runs afterwards."""
    store, load = tmp_path / "store.mpc", tmp_path / "load.mpc"
    store.write_text("sint.write_to_file(sint([0, 0]))\n")
    load.write_text("_, x = sint.read_from_file(0, 1)\nprint_ln('%s', x[0].reveal())\n")

    def run(path: Path) -> list[str]:
        return api.run(api.ProgramRequest(str(path), (), "mascot", 2, folder=str(tmp_path)))

    run(store)
    assert run(load)[0] == "0"
    path = shares_path(tmp_path, 1)
    header = _engine.ShareFile.header(str(path))
    data = bytearray(_engine.ShareFile.read(str(path), header))
    data[0] ^= 1
    _engine.ShareFile.write(str(path), header, bytes(data))
    with pytest.raises(PartyError, match=r"MAC-Key-P[01] is burned"):
        run(load)
    for program in (load, store):
        with pytest.raises(BurnedKeyError, match=CAUSE_AND_CURE.replace("mac\\.key", "MAC-Key-P0")):
            run(program)


STORE = "sint.write_to_file(sint([0, 0]))\n"
LOAD = "_, x = sint.read_from_file(0, 1)\nprint_ln('%s', x[0].reveal())\n"


def program(folder: Path, text: str) -> list[str]:
    """Runs a program in this folder."""
    path = folder / "program.mpc"
    path.write_text(text)
    return api.run(api.ProgramRequest(str(path), (), "mascot", 2, folder=str(folder)))


def take_another_key(key: Path, stored: Path, at: int) -> None:
    """A party's key of elements gets another lowest bit, also in the copy at a byte of what is stored with its shares."""
    words = bytearray(key.read_bytes())
    words[8] ^= 1
    key.write_bytes(bytes(words))
    header = _engine.ShareFile.header(str(stored))
    data = bytearray(_engine.ShareFile.read(str(stored), header))
    data[at] ^= 1
    _engine.ShareFile.write(str(stored), header, bytes(data))


def test_another_key_later_is_found_by_programs(tmp_path: Path) -> None:
    """Party 1 uses another MAC key in the session that reads stored shares, and changes its own file accordingly."""
    program(tmp_path, STORE)
    shares = shares_path(tmp_path, 1)
    take_another_key(shares.with_name("MAC-Key-P1"), shares, 2 * 2 * 8)
    with pytest.raises(PartyError, match=r"MAC check of stored shares failed.*MAC-Key-P[01] is burned"):
        program(tmp_path, LOAD)
    with pytest.raises(BurnedKeyError, match="MAC check of stored shares failed"):
        program(tmp_path, STORE)


def test_another_key_later_is_found_by_decryptions(with_macs: Path) -> None:
    """The same with a key of LWE and a pool."""
    committee = Committee.load(with_macs)
    take_another_key(committee.mac_key_path(1), committee.key_folder(1, "key") / "mac-0.kqs", 0)
    with pytest.raises(PartyError, match=r"MAC check of stored shares failed.*mac\.key is burned"):
        decrypt(with_macs)


def test_shares_that_were_not_stored_together_burn_nothing(tmp_path: Path) -> None:
    """Party 1 restores a file of another time."""
    program(tmp_path, STORE)
    shares = shares_path(tmp_path, 1)
    old = shares.read_bytes()
    for party in range(2):
        shares_path(tmp_path, party).unlink()
    program(tmp_path, STORE)
    new = shares.read_bytes()
    shares.write_bytes(old)
    with pytest.raises(PartyError, match="not made together"):
        program(tmp_path, LOAD)
    shares.write_bytes(new)
    assert program(tmp_path, LOAD)[0] == "0"


def test_shares_without_a_test_of_their_key_are_refused(tmp_path: Path, with_macs: Path) -> None:
    """As earlier builds stored them, and as MP-SPDZ makes them; nothing is burned, and nothing of the pool is used."""
    program(tmp_path, STORE)
    for party in range(2):
        path = shares_path(tmp_path, party)
        header = _engine.ShareFile.header(str(path))
        _engine.ShareFile.write(str(path), header, _engine.ShareFile.read(str(path), header)[: 2 * 2 * 8 + 8])
    with pytest.raises(KeyQuorumError, match=r"do not state the run that made them.*an earlier build"):
        program(tmp_path, LOAD)
    assert not list(shares_path(tmp_path, 0).parent.glob("*.burned"))
    committee = Committee.load(with_macs)
    path = committee.key_folder(1, "key") / "mac-0.kqs"
    header = _engine.ShareFile.header(str(path))
    kept = path.read_bytes()
    _engine.ShareFile.write(str(path), header, _engine.ShareFile.read(str(path), header)[:16])
    with pytest.raises(KeyQuorumError, match=r"mac-0\.kqs: the shares do not state the run that made them"):
        decrypt(with_macs)
    assert any("do not state the run that made them" in f.text for f in examine_keys(committee, [1]) if not f.ok)
    path.unlink()
    with pytest.raises(KeyQuorumError, match=r"mac-0\.kqs: missing"):
        decrypt(with_macs)
    path.write_bytes(kept)
    path.chmod(0o600)
    assert decrypt(with_macs)


def test_failed_check_blocked_committee_without_a_folder() -> None:
    """This process remembers which of its keys are burned. Another committee, also of the same size and protocol, has keys of its own."""
    committee, others = (api.in_process_committee(2, "mascot") for _ in range(2))
    assert committee.digest != others.digest

    def job(context: PartyContext, cheat: int) -> list[int]:
        engine = context.session.engine("mascot", f"F_{DEFAULT_PRIME}")
        x = engine.input(0, 1, np.array([5], dtype=np.int64) if context.party == 0 else None)
        data = bytearray(engine.export(x))
        engine.origin()
        data[0] ^= cheat * context.party
        value: list[int] = engine.read(engine.open(engine.import_(bytes(data), 1))).tolist()
        return value

    assert run_in_process(committee, lambda context: job(context, 0)) == [[5], [5]]
    with pytest.raises(_engine.CheckError, match=r"MAC check of opened values failed.*is burned"):
        run_in_process(committee, lambda context: job(context, 1))
    with pytest.raises(BurnedKeyError, match=r"MAC check of opened values failed.*make a new committee and new keys$"):
        run_in_process(committee, lambda context: job(context, 0))
    for cured in (others, api.in_process_committee(2, "mascot")):
        assert run_in_process(cured, lambda context: job(context, 0)) == [[5], [5]]


def test_refusals_and_kills_cost_no_key(with_macs: Path) -> None:
    """Jobs that end with an ordinary error after an engine with MACs was opened, however many a corrupted party has made fail."""

    def job(context: PartyContext) -> None:
        context.session.engine("mascot", f"F_{DEFAULT_PRIME}")
        raise PoolTooSmall("needs 5 items, has 0")

    committee = Committee.load(with_macs)
    for _ in range(36):
        with pytest.raises(PoolTooSmall):
            run_in_process(committee, job, 20.0)
    assert not list(with_macs.glob("party-*/mac.key.burned"))
    assert decrypt(with_macs) == "[1, 0, 1]\n"


HOLDER = """
import sys
from keyquorum import _engine
session = _engine.local_sessions(1)[0]
session.set_mac_key(open(sys.argv[1], "rb").read(), sys.argv[1])
print("holds", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held_by_another_process(folder: Path) -> Iterator[int]:
    """A process in which a session has the key of party 0; its number."""
    path = Committee.load(folder).mac_key_path(0)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        yield process.pid
        process.stdin.close()


def test_failed_check_blocked_second_process_under_the_key(with_macs: Path) -> None:
    """It is refused at once, with the number of the one that has the key, and works when that has ended."""
    with held_by_another_process(with_macs) as number:
        text = rf"^[^\n]*mac\.key: another session of process {number} uses this MAC key[^\n]*wait until that session has ended, then try again$"
        with pytest.raises(PartyError, match=text):
            decrypt(with_macs)
        with pytest.raises(KeyInUseError, match=text):
            run_in_process(Committee.load(with_macs), lambda context: None)
    assert decrypt(with_macs) == "[1, 0, 1]\n"


def test_failed_check_ablated_second_process_under_the_key(with_macs: Path) -> None:
    """Without the file that both lock they compute under one key at once: see the attack in ``Source/mpc/src/session/tests/burned.rs``."""
    with held_by_another_process(with_macs):
        Committee.load(with_macs).mac_key_path(0).with_name("mac.key.session").unlink()
        assert decrypt(with_macs) == "[1, 0, 1]\n"


def test_a_mac_key_that_others_can_read_or_that_is_damaged(with_macs: Path) -> None:
    path = Committee.load(with_macs).mac_key_path(0)
    path.chmod(0o640)
    with pytest.raises(KeyFileError, match=r"^[^\n]*mac\.key: readable by others: chmod 600 it[^\n]*$"):
        mac_key.mac_key(path)
    path.chmod(0o600)
    key = path.read_bytes()
    assert mac_key.mac_key(path) == key
    for damaged in (key[:15], key + b"x", b""):
        path.write_bytes(damaged)
        with pytest.raises(KeyFileError, match=r"restore it from a backup only after all other parties have said that no check has failed"):
            mac_key.mac_key(path)
