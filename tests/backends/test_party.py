"""One party of a program on MP-SPDZ: its inputs, its files, and its failures. MP-SPDZ is a fake here, whose
executables run the program as Python."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.backends import ProgramOutput
from keyquorum.backends.base import Mode
from keyquorum.backends.mpspdz import commands, executable, party
from keyquorum.backends.mpspdz.checkout import Checkout
from keyquorum.backends.mpspdz.party import MpSpdz
from keyquorum.dsl import ShareVector
from keyquorum.model.errors import BackendError, BurnedKeyError, CommitteeError, ParameterError, PartyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.programs import Call, Segment
from keyquorum.sharing.numbers.lift import MERSENNE
from keyquorum.sharing.numbers.lift_tests import LiftedDomain, LiftTests
from keyquorum.sharing.shares import Run

from .fake import fake_checkout

FIELD = "F_65537"
GOOD = """
words = Path(f"Player-Data/Input-Binary-P{party}-0").read_bytes()
Path(f"Player-Data/Binary-Output-P{party}-0").write_bytes(words + bytes([party] + 7 * [0]))
shares = Path(f"Persistence/Transactions-P{party}.data")
old = shares.read_bytes()
shares.write_bytes(old + old[-8:])
for line in Path("hosts").read_text().splitlines():
    assert line.startswith("127.0.0.1:")
assert "-e" in options and options[options.index("-N") + 1] == "2" and options[options.index("-P") + 1] == "65537"
print("Time = 0.5 seconds", file=sys.stderr)
print("Data sent = 1.5 MB in ~7 rounds (party 0 only)", file=sys.stderr)
"""


def run_all(tmp_path: Path, program: str, *, folder: Path | None = None, job: Callable[[PartyContext, Path], Any] | None = None) -> list[Any]:
    """Runs a program among two parties of ``semi`` in this process."""
    checkout = folder or fake_checkout(tmp_path / "mp")
    path = tmp_path / "program.mpc"
    path.write_text(program)

    def plain(context: PartyContext, source: Path) -> Any:
        return context.backend.run("semi", FIELD, Call(str(source)))

    chosen = job or plain
    committee = api.in_process_committee(2, "semi")
    return run_in_process(committee, lambda c: chosen(c, path), 20.0, backend="mp-spdz", mp_spdz=checkout)


def counted(tmp_path: Path) -> str:
    """Lines of a program that add an x to the file ``tries`` of the party, and wait for the other to do so: whatever a party does afterwards, nobody ends the
    other one before it is counted."""
    return f"""
tries, others = (Path({str(tmp_path / "tries")!r} + str(i)) for i in (party, 1 - party))
with tries.open("a") as file:
    file.write("x")
for _ in range(3000):
    if others.exists() and others.stat().st_size >= tries.stat().st_size:
        break
    time.sleep(0.01)
else:
    raise SystemExit("the other party was never counted")
"""


def failure(tmp_path: Path, program: str, **options: Any) -> str:
    """The error of a run that must fail, without a long wait."""
    start = time.monotonic()
    with pytest.raises(PartyError) as error:
        run_all(tmp_path, program, **options)
    assert time.monotonic() - start < 15 and "\n" not in str(error.value)
    return str(error.value)


def test_inputs_outputs_shares_and_costs(tmp_path: Path) -> None:
    def job(context: PartyContext, source: Path) -> tuple[ProgramOutput, ShareVector, Any]:
        shares = ShareVector.from_words(np.array([[3, 5 + context.party]], dtype=np.uint64))
        with context.phase("one"):
            output = context.backend.run(
                "semi", FIELD, Call(str(source), ["x"]), private=np.array([10 + context.party]), public=[np.array([-1, 2])],
                shares=shares,
            )  # fmt: skip
        return output, shares, context.report.phases[0]

    for i, (output, shares, phase) in enumerate(run_all(tmp_path, GOOD, job=job)):
        assert output.words.tolist() == [10 + i, -1, 2, i]
        assert shares.words.tolist() == [[3, 5 + i, 5 + i]]
        assert phase.rounds == 7 and 1_500_000 < phase.bytes_sent < 1_510_000


def test_a_party_has_its_own_secrets_only(tmp_path: Path) -> None:
    program = """
import os, stat
mine = sorted(p.name for p in Path("Player-Data").iterdir())
assert f"P{party}.key" in mine and f"P{1 - party}.key" not in mine and f"P{1 - party}.pem" in mine, mine
assert f"Input-Binary-P{party}-0" in mine and f"Input-Binary-P{1 - party}-0" not in mine
for path in [Path("."), *Path(".").rglob("*")]:
    if not path.is_symlink():
        mode = stat.S_IMODE(path.stat().st_mode)
        assert path == Path(".") and mode == 0o700 or not mode & 0o077 or path.suffix in (".pem",) or path.is_dir() or path.name == "hosts", (path, oct(mode))
Path(os.environ["WATCH"] + str(party)).write_text(os.getcwd())
"""
    os.environ["WATCH"] = str(tmp_path / "cwd")
    try:
        run_all(tmp_path, program)
    finally:
        del os.environ["WATCH"]
    folders = [Path((tmp_path / f"cwd{i}").read_text()) for i in range(2)]
    assert folders[0] != folders[1] and not any(f.exists() for f in folders), "nothing is left behind"


def test_programs_are_compiled_once(tmp_path: Path) -> None:
    checkout = fake_checkout(tmp_path / "mp")
    script = checkout / "compile.py"
    script.write_text(f"open({str(tmp_path / 'log')!r}, 'a').write('x')\n" + script.read_text())

    def job(context: PartyContext, source: Path) -> None:
        for args, domain in (([1], FIELD), ([1], FIELD), ([2], FIELD), ([1], "F_257")):
            context.backend.run("semi", domain, Call(str(source), args))

    run_all(tmp_path, "", folder=checkout, job=job)
    assert (tmp_path / "log").read_text() == "x" * 4, "two parties, two argument lists, any prime"


def test_a_party_that_fails_is_named_and_nobody_waits(tmp_path: Path) -> None:
    program = """
if party == 1:
    print("Using a lot", file=sys.stderr)
    print("Fatal error: no luck today", file=sys.stderr)
    sys.exit(1)
time.sleep(60)
"""
    text = failure(tmp_path, program)
    assert "party 1" in text and "no luck today" in text and "exit code 1" in text and "semi" in text


def test_the_cause_comes_before_its_consequences(tmp_path: Path) -> None:
    program = """
print("Fatal error: read_some: End of file" if party == 0 else "Fatal error: MAC check failed", file=sys.stderr)
sys.exit(1)
"""
    text = failure(tmp_path, program)
    assert text.startswith("party 1") and "MAC check failed" in text


def runs_with_macs(tmp_path: Path) -> Callable[..., list[Any]]:
    """Runs programs, or another job, under the MAC keys of one committee of this process."""
    checkout = fake_checkout(tmp_path / "mp", [f"{name}-party.x" for name in ("mascot", "spdz2k", "semi")])
    committee = api.in_process_committee(2, "mascot")
    source = tmp_path / "program.mpc"

    def run(program: str, job: Callable[[PartyContext], Any] | None = None) -> list[Any]:
        source.write_text(program)
        return run_in_process(
            committee,
            job or (lambda c: c.backend.run("mascot", "F_1152921504606584833", Call(str(source)))),
            20.0,
            backend="mp-spdz",
            mp_spdz=checkout,
        )

    return run


def test_failed_check_blocked_check_that_fails_on_mp_spdz(tmp_path: Path) -> None:
    """Under a protocol with MACs the committee's key is burned, as on the embedded engine, unless the executable was never connected to the
    others."""
    run = runs_with_macs(tmp_path)
    for line, error, reason in (
        ("Timed out waiting for peer. See x", PartyError, r"See x \(exit code 1\)$"),
        ("Fatal error: MAC check failed", PartyError, r"MAC check failed \(exit code 1\); the MAC key is burned: make a new committee and new keys$"),
        ("Timed out waiting for peer. See x", BurnedKeyError, r"^this MAC key is burned \(mascot on MP-SPDZ failed in [^\n]*MAC check failed[^\n]*new keys$"),
    ):  # fmt: skip
        with pytest.raises(error, match=reason):
            run(f"print({line!r}, file=sys.stderr)\nsys.exit(1)\n")


CUT_OFF = """
for peer in range(4):
    print("Connection took 0.1 seconds.", file=sys.stderr)
if party == 1:
    print("Binding to socket on host:1 failed (Address already in use)", file=sys.stderr)
else:
    print("Fatal error: read_some: End of file", file=sys.stderr)
sys.exit(1)
"""
"""Party 1 has the sums of party 0, breaks off before it gives its own, and says that it never started."""


def test_failed_check_blocked_check_cut_off_on_mp_spdz(tmp_path: Path) -> None:
    run = runs_with_macs(tmp_path)
    with pytest.raises(PartyError):
        run(CUT_OFF)
    with pytest.raises(
        BurnedKeyError, match=r"^this MAC key is burned \(mascot on MP-SPDZ (failed|was cut off) in [^\n]*make a new committee and new keys"
    ):
        run("print('x')")


def test_a_peer_that_says_a_check_failed_burns_no_key(tmp_path: Path) -> None:
    """Party 1 reports it before any party has connected. Party 0, whose executable was never connected, keeps its key."""
    run = runs_with_macs(tmp_path)
    line = {0: "Timed out waiting for peer. See x", 1: "Fatal error: MAC check failed"}
    with pytest.raises(PartyError) as error:
        run(f"print({line!r}[party], file=sys.stderr)\nsys.exit(1)\n")
    assert str(error.value).count("MAC key is burned") <= 1  # its own


def test_failed_check_ablated_check_cut_off_on_mp_spdz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the remedy the next program computes under the key that party 1 knows."""
    monkeypatch.setattr(party, "may_have_begun", lambda *_: False)
    run = runs_with_macs(tmp_path)
    with pytest.raises(PartyError) as error:
        run(CUT_OFF)
    assert "burned" not in str(error.value)
    assert len(run("print('x')")) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_the_note_of_lifted_values_outlasts_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    """A party breaks off between two runs of the tests of lifted values, whose subsets it has seen: the MAC key is burned. If a run clears the note, the key survives."""
    run, good = runs_with_macs(tmp_path), tmp_path / "good.mpc"
    good.write_text("print('x')")
    runs = []

    def opened(tests: LiftTests, *_: Any) -> list[int]:
        runs.append(tests._context.backend.run("mascot", "F_1152921504606584833", Call(str(good))))
        raise CommitteeError("as the adversary wants it")

    def tested(context: PartyContext) -> None:
        with LiftTests(context, [Segment(0, 4)], MERSENNE, 8) as tests:
            tests._domains, tests._masks_at = [LiftedDomain(Run(context).field(MERSENNE).shares(), 1)], [0]
            tests.run()

    monkeypatch.setattr(LiftTests, "_opened", opened)
    if not kept:
        monkeypatch.setattr(MpSpdz, "keep_note", lambda backend, note: None)
    with pytest.raises(CommitteeError, match="as the adversary wants it"):
        run("", tested)
    assert len(runs) == 2
    if kept:
        with pytest.raises(BurnedKeyError):
            run("print('x')")
    else:
        assert len(run("print('x')")) == 2


def test_a_killed_executable(tmp_path: Path) -> None:
    text = failure(tmp_path, "import os\nif party == 0: os.kill(os.getpid(), 9)\ntime.sleep(60)\n")
    assert text.startswith("party 0") and "killed by signal 9" in text


def test_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "RUN_SECONDS", 0.5)
    monkeypatch.setattr(executable, "HEARTBEAT", 0.2)
    started: list[int] = []
    start = commands.start

    def noted(*args: Any) -> subprocess.Popen[str]:
        process = start(*args)
        started.append(process.pid)
        return process

    monkeypatch.setattr(commands, "start", noted)
    assert "took longer" in failure(tmp_path, "time.sleep(60)\n")
    assert len(started) == 4  # two compilers, two executables
    for number in started:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_a_program_that_does_not_compile(tmp_path: Path) -> None:
    text = failure(tmp_path, "# broken\n")
    assert "does not compile program" in text and "this program is broken" in text


def test_different_programs_and_different_commits(tmp_path: Path) -> None:
    def differ(context: PartyContext, source: Path) -> None:
        context.backend.run("semi", FIELD, Call(str(source), [context.party]))

    assert "another program" in failure(tmp_path, "", job=differ)
    committee = api.in_process_committee(2, "semi")
    checkouts = [Checkout.find(fake_checkout(tmp_path / f"v{i}", version=f"0.4.{i}")) for i in range(2)]

    def one(session: Any) -> None:
        backend = MpSpdz(session, committee, checkouts[session.party])
        try:
            backend.run("semi", FIELD, Call(str(tmp_path / "program.mpc")))
        finally:
            backend.close()

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(one, session) for session in _engine.local_sessions(2, 20.0)]
        for future in futures:
            with pytest.raises(BackendError, match="check out and build the same commit"):
                future.result()


def test_mistakes(tmp_path: Path) -> None:
    def asks(**options: Any) -> Callable[[PartyContext, Path], Any]:
        return lambda context, source: context.backend.run(
            options.pop("protocol", "semi"), options.pop("domain", FIELD), Call(str(source)), **options
        )

    for job, text in (
        (asks(mode=Mode(seed=b"x")), "test seed"),
        (asks(protocol="ring"), "3 parties"),
        (asks(domain="Z2^64"), "prime"),
    ):
        with pytest.raises(ParameterError, match=text):
            run_all(tmp_path, "", job=job, folder=fake_checkout(tmp_path / text))
    with pytest.raises(ParameterError, match="65 bits"):
        MpSpdz(_engine.local_sessions(1)[0], api.in_process_committee(2, "semi"), None).ring_bits(65)  # type: ignore[arg-type]


def test_primes_that_are_too_short_for_macs() -> None:
    from keyquorum.backends.mpspdz.checkout import PROTOCOLS
    from keyquorum.model.domains import Domain

    assert "-S" not in commands.run_options(PROTOCOLS["mascot"], Domain.parse("F_1099511480321"))
    options = commands.run_options(PROTOCOLS["mascot"], Domain.parse("F_68719403009"))
    assert options[options.index("-S") + 1] == "36"
    assert "-S" not in commands.run_options(PROTOCOLS["semi"], Domain.parse(FIELD))
    with pytest.raises(ParameterError, match="at least 32 bits"):
        commands.run_options(PROTOCOLS["mascot"], Domain.parse(FIELD))


def test_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MP_SPDZ_PORTS", raising=False)
    with commands.Ports(3) as ports:
        assert 20000 <= ports.first <= 31998
    monkeypatch.setenv("MP_SPDZ_PORTS", "7320-7325")  # below those that committees of other tests draw
    with commands.Ports(3) as first, commands.Ports(2) as second:
        kept = {first.first, first.first + 1, first.first + 2, second.first, second.first + 1}
        assert len(kept) == 5 and kept < set(range(7320, 7326))
        with pytest.raises(BackendError, match="found no 2 free ports"):
            commands.Ports(2)
        with socket.socket() as listener:  # as MP-SPDZ does
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("", first.first))
            listener.listen()
            with socket.create_connection(("127.0.0.1", first.first), timeout=5):
                listener.accept()[0].close()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            monkeypatch.setenv("MP_SPDZ_PORTS", f"{port}-{port}")
            with pytest.raises(BackendError, match="found no 1 free ports"):
                commands.Ports(1)
    monkeypatch.setenv("MP_SPDZ_PORTS", "7320-7325")
    with commands.Ports(6):
        pass  # also that of the connection, which ended a moment ago
    with pytest.raises(BackendError, match="fewer ports"):
        commands.Ports(7)
    for bad in ("23000", "9-10", "30000-20000", "a-b", "1024-70000"):
        monkeypatch.setenv("MP_SPDZ_PORTS", bad)
        with pytest.raises(BackendError, match="FIRST-LAST"):
            commands.Ports(1)


@pytest.mark.parametrize("wait", [0, 60])
def test_a_snatched_port_is_given_up_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: int) -> None:
    monkeypatch.setattr(executable, "HEARTBEAT", 0.3)
    program = f"""
{counted(tmp_path)}
if party == 1 and len(tries.read_text()) < NEEDED:
    for _ in range(600):
        print("Binding to socket on host:1 failed (Address already in use), trying again in a second ...", file=sys.stderr, flush=True)
        time.sleep(0.1)
if party == 0 and len(tries.read_text()) < NEEDED:
    print("Connection took 0.1 seconds.", file=sys.stderr)  # to itself
    time.sleep(WAIT)
    print("Timed out waiting for peer. See x", file=sys.stderr)
    sys.exit(1)
"""
    program = program.replace("WAIT", str(wait))
    run_all(tmp_path, program.replace("NEEDED", "3"))
    assert [(tmp_path / f"tries{i}").read_text() for i in range(2)] == ["xxx", "xxx"]
    text = failure(tmp_path, program.replace("NEEDED", "9"), folder=tmp_path / "mp")
    assert "Binding to socket" in text or "Timed out" in text


BINDING = 'print("Binding to socket on host:1 failed (Address already in use), trying again in a second ...", file=sys.stderr, flush=True)'
CONNECTED = 'print("Connection took 0.1 seconds.", file=sys.stderr, flush=True)'


def test_a_port_that_was_had_late_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of the output from before the run have no effect once it runs, however often they were printed."""
    monkeypatch.setattr(executable, "HEARTBEAT", 0.3)
    tries = f"open({str(tmp_path / 'tries')!r} + str(party), 'a').write('x')\n"
    run_all(tmp_path, f"{tries}if party == 1: {BINDING}\ntime.sleep(1.5)\n")
    begun = f"{tries}for _ in range(3): {CONNECTED}\nfor _ in range(15):\n    {BINDING}\n    time.sleep(0.1)\n"
    run_all(tmp_path, begun, folder=tmp_path / "mp")
    assert [(tmp_path / f"tries{i}").read_text() for i in range(2)] == ["xx", "xx"]


@pytest.mark.parametrize(
    ("connections", "version", "tries"), [((1, 1), "0.4.2", 3), ((2, 1), "0.4.2", 1), ((1, 3), "0.4.2", 1), ((1, 1), "0.4.0", 1)]
)
def test_a_run_that_may_have_begun_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: tuple[int, int], version: str, tries: int
) -> None:
    """Also if another party than the failed one has begun, and if MP-SPDZ does not report connections."""
    monkeypatch.setattr(executable, "HEARTBEAT", 0.2)
    program = f"""
for _ in range({connections}[party]): {CONNECTED}
{counted(tmp_path)}
time.sleep(60 * party)
sys.exit("Timed out waiting for peer. See x")
"""
    assert "Timed out" in failure(tmp_path, program, folder=fake_checkout(tmp_path / "mp", version=version))
    assert [(tmp_path / f"tries{i}").read_text() for i in range(2)] == ["x" * tries] * 2


def with_shares(before: Any, results: list[Any], name: str = "semi") -> Callable[[PartyContext, Path], Any]:
    """A job that runs with a share file of these words, by party, and stores the file afterwards, also after a failure."""

    def job(context: PartyContext, source: Path) -> Any:
        shares = ShareVector.from_words(np.array([before[context.party]], dtype=np.uint64))
        results[context.party] = shares
        return context.backend.run(
            name, FIELD, Call(str(source), ["x"]), private=np.array([10 + context.party]), public=[np.array([-1, 2])], shares=shares
        )

    return job


def test_every_try_finds_the_same_files(tmp_path: Path) -> None:
    spoil = f"""
{counted(tmp_path)}
if tries.read_text() != "xxx":
    shares = Path(f"Persistence/Transactions-P{{party}}.data")
    shares.write_bytes(shares.read_bytes()[:-8] + bytes(24))
    Path(f"Player-Data/Input-Binary-P{{party}}-0").write_bytes(b"")
    Path(f"Player-Data/Binary-Output-P{{party}}-0").write_bytes(b"of this try")
    sys.exit("Timed out waiting for peer. See x")
assert not Path(f"Player-Data/Binary-Output-P{{party}}-0").exists()
"""
    shares: list[Any] = [None, None]
    for i, output in enumerate(run_all(tmp_path, spoil + GOOD, job=with_shares([[3, 5], [3, 6]], shares))):
        assert output.words.tolist() == [10 + i, -1, 2, i] and shares[i].words.tolist() == [[3, 5 + i, 5 + i]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("old + old[-8:] * (1 + party)", "party 0 has 3, party 1 has 4"),
        ("old[:-8] if party else old", "party 1: .* has 1 shares, 2 before the run"),
        ("old[:-3] if party else old", "party 1: .* ends inside an element"),
        ("b'torn' if party else old", "party 1: .* not a share file of semi"),
        ("None if party else old", "party 1: .* has 0 shares, 2 before the run"),
    ],
)  # fmt: skip
def test_share_files_after_a_run_that_do_not_fit(tmp_path: Path, change: str, reason: str) -> None:
    """All parties refuse them, and keep their old shares."""
    program = f"""
shares = Path(f"Persistence/Transactions-P{{party}}.data")
old = shares.read_bytes()
new = {change}
shares.unlink() if new is None else shares.write_bytes(new)
"""
    shares: list[Any] = [None, None]
    with pytest.raises(PartyError, match=reason) as error:
        run_all(tmp_path, program, job=with_shares([[3, 5], [3, 6]], shares))
    assert "\n" not in str(error.value) and "the old shares are kept, run it again" in str(error.value)
    assert [s.words.tolist() for s in shares] == [[[3, 5]], [[3, 6]]]


def test_share_files_before_a_run_that_do_not_fit(tmp_path: Path) -> None:
    started = f"open({str(tmp_path / 'started')!r}, 'w')\n"
    text = failure(tmp_path, started, job=with_shares([[3, 5], [3, 6, 7]], [None, None]))
    assert "a share file of 3 shares" in text and "a share file of 2 shares" in text and "give all the share files of the same run" in text

    def one_has_none(context: PartyContext, source: Path) -> Any:
        return context.backend.run("semi", FIELD, Call(str(source)), shares=ShareVector() if context.party else None)

    assert "no share file" in failure(tmp_path, started, job=one_has_none, folder=tmp_path / "mp")
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a process whose parent has ended")
def test_an_executable_ends_with_the_party_that_started_it(tmp_path: Path) -> None:
    launch = Path(party.__file__).with_name("launch.py")
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {str(launch)!r}, str(os.getpid()), sys.executable, '-c', {child!r}], start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", parent])
    for _ in range(200):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
        time.sleep(0.05)
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, 0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return  # ended, but its new parent has not reaped it yet
        time.sleep(0.05)
    pytest.fail("the executable outlived its party")
