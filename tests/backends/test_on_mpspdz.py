"""With a built MP-SPDZ (MP_SPDZ_HOME): its share files, single programs, whole plans and their failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.backends.mpspdz import Checkout, Given, MpSpdzRun, Players, Way, run_program
from keyquorum.dsl import ShareVector
from keyquorum.fhe import seal
from keyquorum.model.errors import BurnedKeyError, PartyError, ProgramError
from keyquorum.model.links import parse
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties import run_processes
from keyquorum.schemes.key_folder import load_key, load_public_file
from keyquorum.schemes.seal.policy import FloodPolicy

from tests.fhe.dealer import narrow

pytestmark = [
    pytest.mark.skipif(not os.environ.get("MP_SPDZ_HOME"), reason="MP_SPDZ_HOME is not set"),
    pytest.mark.timeout(600),
]
Q36, Q60 = 68719403009, 1152921504606584833
RING = "Z2^64"
SHARINGS = [
    ("ring", 3, RING),
    ("rep-field", 3, f"F_{Q60}"),
    ("rep-field", 3, "F_65537"),
    ("shamir", 3, f"F_{Q60}"),
    ("shamir", 5, f"F_{Q36}"),
    ("semi2k", 3, RING),
    ("semi", 2, "F_65537"),
    ("semi", 3, f"F_{Q60}"),
    ("spdz2k", 2, RING),
    ("mascot", 2, f"F_{Q60}"),
    ("mascot", 3, f"F_{Q36}"),
]
DEAL = "sint.write_to_file(sint.get_input_from(0, size=4, binary=True))\n"
SQUARE = (
    "x = sint.read_from_file(0, size=4)[1][0]\nsint.write_to_file(x * x)\nx.reveal().binary_output()\n"
    "(x + 1).reveal_to(1).binary_output()\nprint_ln('square of the last: %s', (x * x).reveal()[3])\n"
)
VALUES = [0, 1, -1, 12345]


def program(folder: Path, text: str) -> Path:
    path = folder / f"kq_{abs(hash(text)) % 1000}.mpc"
    path.write_text(text)
    return path


def ran(folder: Path, sharing: tuple[str, int, str], text: str, link: Any = None, **given: Any) -> MpSpdzRun:
    protocol, parties, domain = sharing
    return run_program(
        Players(Checkout.find(), protocol, parties, domain, link=link), program(folder, text), given=Given(**given), way=Way(timeout=120)
    )


def modulus(domain: str) -> int:
    return 1 << 64 if domain == RING else int(domain[2:])


def lagrange(points: list[int], q: int) -> list[int]:
    """Weights of the values at some points for the value at 0."""
    weights = []
    for i in points:
        weight = 1
        for j in points:
            if j != i:
                weight = weight * j * pow(j - i, -1, q) % q
        weights.append(weight)
    return weights


def put_together(protocol: str, domain: str, shares: list[ShareVector]) -> list[int]:
    """The secrets of all parties' share files, by arithmetic in clear text; checks redundant shares."""
    m, n = modulus(domain), len(shares)
    words = [[[int(w) for w in row] for row in s.words] for s in shares]
    if protocol in ("ring", "rep-field"):
        assert all(words[i][0] == words[(i + 1) % 3][1] for i in range(3)), "each summand is known to two parties"
    if protocol == "shamir":
        secrets = []
        for points in (range(1, (n - 1) // 2 + 2), range((n + 1) // 2, n + 1)):
            weights = lagrange(list(points), m)
            secrets.append([sum(w * words[p - 1][0][k] for w, p in zip(weights, points, strict=True)) % m for k in range(len(words[0][0]))])
        assert secrets[0] == secrets[1]
        return secrets[0]
    if protocol == "spdz2k":
        big = 1 << 128
        pairs = [[[row[k] + (row[k + 1] << 64) for k in range(0, len(row), 2)] for row in parts] for parts in words]
        totals, macs = ([sum(column) % big for column in zip(*(p[part] for p in pairs), strict=True)] for part in (0, 1))
        key = sum(int(s.mac_key[0]) for s in shares if s.mac_key is not None)
        assert macs == [key * x % big for x in totals]
        return [x % m for x in totals]
    totals = [sum(column) % m for column in zip(*(w[0] for w in words), strict=True)]
    if protocol == "mascot":
        key = sum(int(s.mac_key[0]) for s in shares if s.mac_key is not None)
        assert [sum(column) % m for column in zip(*(w[1] for w in words), strict=True)] == [key * x % m for x in totals]
    return totals


@pytest.mark.parametrize("sharing", SHARINGS, ids=lambda s: "-".join(map(str, s))[:18])
def test_share_files(tmp_path: Path, sharing: tuple[str, int, str]) -> None:
    protocol, _, domain = sharing
    m = modulus(domain)
    dealt = ran(tmp_path, sharing, DEAL, private={0: VALUES})
    assert put_together(protocol, domain, dealt.shares) == [v % m for v in VALUES]
    done = ran(tmp_path, sharing, SQUARE, shares=dealt.shares)  # another folder: the MAC key moves with the shares
    assert put_together(protocol, domain, done.shares) == [v % m for v in [*VALUES, *(v * v for v in VALUES)]]
    assert done.outputs[0].tolist() == VALUES and done.outputs[1].tolist() == [*VALUES, *(v + 1 for v in VALUES)]
    square = 12345**2 % m
    assert done.printed[0] == f"square of the last: {square - m if 2 * square > m else square}\n"
    assert done.rounds >= 2 and done.bytes_global > 0 and 0 < done.seconds < done.wall_seconds
    assert all(s.element_words == (2 if protocol == "spdz2k" else 1) for s in done.shares)


def test_emulate_and_public_words(tmp_path: Path) -> None:
    text = (
        "x = cint(size=2)\na = sint.get_input_from(0, size=1, binary=True)\nfixinput(-1, x, 0, 0)\n(a + x).reveal().binary_output()\n"
        "y = cint(size=2)\npubinput(y)\ny.binary_output()\nsint.write_to_file(a)\n"
    )
    done = ran(tmp_path, ("emulate", 1, RING), text, private={0: [5]}, public=[10, -20], listed=[7, -8])
    assert done.outputs[0].tolist() == [15, -15, 7, -8] and done.shares[0].words.tolist() == [[5]]
    done = ran(tmp_path, ("semi", 2, f"F_{Q60}"), text, private={0: [5]}, public=[10, -20], listed=[7, -8])
    assert [o.tolist() for o in done.outputs] == [[15, -15, 7, -8]] * 2


@pytest.mark.parametrize(
    ("sharing", "text", "reason"),
    [
        (("rep-field", 3, f"F_{Q60}"), "this is no program\n", "invalid syntax"),
        (("rep-field", 3, f"F_{Q60}"), "sint.read_from_file(0, size=1)[1][0].reveal().binary_output()\n", "failed"),
        (("mascot", 2, f"F_{Q60}"), "crash()\n", "Crash requested by program"),
        (("semi", 2, f"F_{Q60 + 2}"), DEAL, "not a prime"),
        (("ring", 3, "Z2^63"), DEAL, "not compiled for 63-bit computation"),
    ],
    ids=["syntax", "no shares", "crash", "no prime", "other ring"],
)
def test_failures_are_one_line(tmp_path: Path, sharing: tuple[str, int, str], text: str, reason: str) -> None:
    with pytest.raises(ProgramError) as error:
        ran(tmp_path, sharing, text, private={0: VALUES})
    assert "\n" not in str(error.value) and reason in str(error.value), str(error.value)


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    text = "@while_do(lambda i: i >= 0, regint(0))\ndef _(i):\n    return (i + 1) % 10\n"
    start = time.monotonic()
    with pytest.raises(ProgramError, match="took longer than 4 s"):
        run_program(Players(Checkout.find(), "semi", 2, f"F_{Q60}"), program(tmp_path, text), way=Way(timeout=4))
    assert time.monotonic() - start < 20


def keyquorum(*words: object, folder: Path) -> str:
    command = [sys.executable, "-c", "from keyquorum.cli import main; main()", *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("protocol", ["rep-field", "shamir"])
def test_share_files_of_keyquorum_run_serve_both_backends(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "sum.mpc").write_text("print_ln('%s', sint.read_from_file(0, size=100)[1][0].sum().reveal())\n")
    for first, second in (("mp-spdz", "embedded"), ("embedded", "mp-spdz")):
        for path in (tmp_path / "Persistence").glob("*"):
            path.unlink()
        keyquorum("run", "sample_cbd", 100, "arith", "-E", protocol, "--backend", first, folder=tmp_path)
        sums = [keyquorum("run", "sum.mpc", "-E", protocol, "--backend", b, folder=tmp_path).splitlines()[0] for b in (first, second)]
        assert sums[0] == sums[1] and abs(int(sums[0])) < 2100


POLICY = FloodPolicy(bits=4, decryptions=16, noise_bits=4)
KEYS = [
    ("rep-field", 3, "ckks-4096"),
    ("rep-field", 3, "bfv-4096"),
    ("ring", 3, "bgv-4096"),
    ("shamir", 3, "ckks-4096"),
    ("shamir", 3, "bfv-4096"),
    ("semi", 2, "ckks-4096"),
    ("semi", 3, "bfv-4096"),
    ("mascot", 2, "ckks-4096-mac"),
    ("mascot", 2, "bfv-4096"),
]


def clear_and_decrypted(folder: Path, committee: api.Committee, key: api.KeygenResult, backend: str) -> tuple[Any, Any]:
    """The expected values and the values that the committee decrypted: x * y relinearised, rotated by one (CKKS: without the product
    if the scale does not fit the modulus); x + y."""
    parameters = key.info.parameters
    rng = np.random.default_rng(5)
    public = {name: load_public_file(key.folder, key.info, name) for name in key.info.files}
    evaluator = seal.Evaluator(parameters, public["relin.key"], public.get("galois.key"))
    if parameters.scheme == "ckks":
        x, y = rng.uniform(-1, 1, (2, parameters.slots))
        if not parameters.name.endswith("-narrow"):
            y = np.ones_like(x)
        factors = [seal.encrypt(parameters, public["public.key"], v) for v in (x, y)]
        result = evaluator.rotate(evaluator.multiply(*factors) if parameters.name.endswith("-narrow") else factors[0], 1)
        clear = np.roll(x * y, -1)
    else:
        t = parameters.plain_modulus
        clear = rng.integers(0, t, parameters.ring_degree)
        result = seal.encrypt(parameters, public["public.key"], clear)
    source, output = folder / f"{backend}.ct", folder / f"{backend}.plain"
    source.write_bytes(result)
    api.write_receipt(source, result, key.info)
    api.decrypt(committee, "key", [source], committee.size - 1, [output], backend=backend)
    return clear, seal.decode(parameters, output.read_bytes())


@pytest.mark.parametrize(("protocol", "parties", "parameters"), KEYS)
def test_keys_and_decryptions(tmp_path: Path, protocol: str, parties: int, parameters: str) -> None:
    committee = api.init(tmp_path / "committee", parties, protocol)
    chosen = narrow(parameters) if parameters == "ckks-4096" else api.load_parameters(parameters)
    elements = api.galois_elements(chosen, (1,)) if chosen.scheme == "ckks" else ()
    key = api.keygen(committee, "key", chosen, True, elements, policy=POLICY, backend="mp-spdz")
    assert {p.name for p in key.reports[0].phases} >= {"secret", "noise", "lift", "keys"}
    assert all(p.rounds > 0 and p.bytes_sent > 0 for p in key.reports[0].phases if p.name in ("noise", "lift", "keys"))
    for backend in ("mp-spdz",) if PROTOCOLS[protocol].macs else ("mp-spdz", "embedded"):
        clear, got = clear_and_decrypted(tmp_path, committee, key, backend)
        if chosen.scheme == "ckks":
            assert np.abs(np.real(got) - clear).max() < 0.05
        else:
            assert np.array_equal(np.asarray(got).astype(np.int64) % chosen.plain_modulus, clear)
    assert not list(tmp_path.rglob("mp-spdz-*")), "working folders are gone"


def test_a_key_of_the_embedded_engine_serves_on_mp_spdz(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee")
    key = api.keygen(committee, "key", narrow("ckks-4096"), True, (3,), policy=POLICY)
    clear, got = clear_and_decrypted(tmp_path, committee, key, "mp-spdz")
    assert np.abs(np.real(got) - clear).max() < 0.05


def running(folder: Path, name: str) -> list[int]:
    """Processes of MP-SPDZ that run in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in os.readlink(path / "cwd") and name in (path / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(path.name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("victim", ["worker", "executable"])
def test_a_party_that_dies_in_the_middle(tmp_path: Path, victim: str) -> None:
    """Its executable ends as well, the others end with one line that names the party, no secret stays on the disk, and the key's name is free."""
    committee = api.init(tmp_path / "committee", 2, "mascot")
    chosen = narrow("ckks-4096-mac")
    job = api.keygen_job("key", chosen, policy=POLICY, backend="mp-spdz")
    killed: list[int] = []

    def disturb(processes: list[subprocess.Popen[str]]) -> None:
        def wait() -> None:
            folder = committee.party_folder(1)
            for _ in range(600):
                found = running(folder, "mascot-party.x")
                if found:
                    time.sleep(1.0)
                    killed.append(processes[1].pid if victim == "worker" else found[0])
                    os.kill(killed[0], signal.SIGKILL)
                    return
                time.sleep(0.1)

        threading.Thread(target=wait, daemon=True).start()

    start = time.monotonic()
    with pytest.raises(PartyError) as error:
        run_processes(committee.folder, job, io_timeout=20.0, on_start=disturb)
    assert killed and time.monotonic() - start < 60
    assert "party 1" in str(error.value) and "signal 9" in str(error.value) and "\n" not in str(error.value)
    time.sleep(0.5)
    assert not running(tmp_path, "mascot-party.x")
    with pytest.raises(BurnedKeyError, match="new committee"):  # it is unknown what the others had seen of party 0's checks
        api.keygen(committee, "key", chosen, False, policy=POLICY, backend="mp-spdz")
    for path in tmp_path.rglob("mac.key*"):
        path.unlink()  # as in a new committee
    api.keygen(committee, "key", api.load_parameters("bfv-4096"), False, policy=POLICY, backend="mp-spdz")
    assert not list(tmp_path.rglob("mp-spdz-*")), "what the killed party left is swept"
    assert load_key(committee.key_folder(1, "key")).protocol == "mascot"


@pytest.mark.parametrize("sharing", SHARINGS, ids=str)
def test_every_protocol_runs_behind_relays(sharing: tuple[str, int, str], tmp_path: Path) -> None:
    """Three consecutive openings take three times half the round trip, on every protocol, and give the right values."""
    text = (
        "x = sint.get_input_from(0, size=4, binary=True)\nx.reveal().binary_output()\nbreak_point()\nstart_timer(1)\n"
        "for i in range(3):\n    x = x + 0 * x.reveal()\n    x.reveal().binary_output()\n    break_point()\nstop_timer(1)\n"
    )
    here = ran(tmp_path, sharing, text, private={0: np.array(VALUES)})
    there = ran(tmp_path, sharing, text, private={0: np.array(VALUES)}, link=parse("rtt=60"))
    for done in (here, there):
        assert np.array_equal(done.outputs[0], VALUES * 4)
    added = there.result.timers[1].seconds - here.result.timers[1].seconds
    assert added >= 3 * 0.030 * 0.9, f"{added} s more"
