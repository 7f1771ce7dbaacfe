"""The command line as a user runs it: the tour of the README, and one line of error for every mistake."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import numpy as np
import pytest
from keyquorum.model.errors import CommitteeError
from keyquorum.parties import setup

from tests.commands import command, started
from tests.long import some


def keyquorum(*args: object, folder: Path, ok: bool = True) -> str:
    """Runs a command; returns standard output, or standard error if it must fail."""
    done = command(folder, *args)
    if ok:
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("progress: ")]  # of a busy machine
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    return lines[0]


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a committee, a CKKS and a BFV key."""
    folder = tmp_path_factory.mktemp("tour")
    keyquorum("init", "committee", folder=folder)
    keyquorum("keygen", "committee", "ckks", "-p", "ckks-8192-demo", "-s", "1", "--decryptions", "3", folder=folder)
    keyquorum("keygen", "committee", "bfv", "-p", "bfv-4096", folder=folder)
    return folder


def test_the_tour_of_the_readme(tour: Path) -> None:
    (tour / "x.json").write_text("[0.5, 0.25, -1]")
    keyquorum("encrypt", "committee", "ckks", "x.json", "-o", "x.ct", folder=tour)
    keyquorum("eval", "committee", "ckks", "square", "x.ct", "-o", "y.ct", folder=tour)
    keyquorum("eval", "committee", "ckks", "rotate", "y.ct", "-o", "z.ct", "--step", "1", folder=tour)
    keyquorum("decrypt", "committee", "ckks", "z.ct", "--to", "2", folder=tour)
    assert (tour / "z.ct.plain").stat().st_mode & 0o077 == 0
    shown = keyquorum("decode", "committee", "ckks", "z.ct.plain", "-n", "2", folder=tour).split()
    assert np.allclose([float(v) for v in shown[:2]], [0.0625, 1.0], atol=0.02)
    assert "1 of 3 decryptions used" in keyquorum("inspect", "committee/party-1/keys/ckks", folder=tour)


@pytest.mark.parametrize("parameters", some(["ckks-4096", "ckks-8192"], 1))
def test_small_flooding_blocked_first_use(tour: Path, parameters: str) -> None:
    """A shipped set and the default policy: every command states the error bound, and the values are within it."""
    stated = "error of a decrypted value at most "
    made = keyquorum("keygen", "committee", parameters, "-p", parameters, "--no-relin", folder=tour)
    (tour / "x.json").write_text("[0.5, 0.25, -1]")
    said = [made, keyquorum("encrypt", "committee", parameters, "x.json", "-o", "f.ct", folder=tour)]
    said.append(keyquorum("eval", "committee", parameters, "add", "f.ct", "f.ct", "-o", "g.ct", folder=tour))
    said.append(keyquorum("decrypt", "committee", parameters, "g.ct", "--to", "0", folder=tour))
    said.append(keyquorum("inspect", f"committee/party-0/keys/{parameters}", folder=tour))
    said.append(keyquorum("inspect", "g.ct", folder=tour))
    bounds = {float(text.split(stated)[1].split()[0]) for text in said}
    assert len(bounds) == 1
    done = command(tour, "decode", "committee", parameters, "g.ct.plain", "-n", "3")
    assert done.returncode == 0 and stated in done.stderr
    values = [float(v) for v in done.stdout.split()[:3]]
    assert np.abs(np.array(values) - [1, 0.5, -2]).max() < bounds.pop() < 0.05


def test_a_weak_policy_warns_loudly(tour: Path) -> None:
    """On standard error, and the key is made."""
    done = command(tour, "keygen", "committee", "weak", "-p", "ckks-4096", "--no-relin", "--flood-bits", "1")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("progress: ")]
    assert len(lines) == 1 and lines[0].startswith("WARNING: flooding of 1 bits is WEAK")


def test_a_weak_policy_warns_on_every_host(tour: Path) -> None:
    """The command that writes a job warns, and so do every party that runs it, and inspect."""
    asked = ("keygen", "committee", "far", "-p", "ckks-4096", "--no-relin", "--flood-bits", "1", "--job", "far.json")
    assert "WARNING: flooding of 1 bits is WEAK" in command(tour, *asked).stderr
    for run in [started(tour, "keyquorum", "party", "committee", i, "far.json") for i in range(3)]:
        done = run.ended()
        assert done.returncode == 0 and done.stderr.count("WARNING: flooding of 1 bits is WEAK") == 1, done.stderr
    assert "WARNING: flooding of 1 bits is WEAK" in keyquorum("inspect", "committee/party-1/keys/far", folder=tour)


def test_the_expected_error_is_stated_everywhere(tour: Path) -> None:
    """The default policy: right values, and the same figure in keygen, encrypt, eval, decrypt, decode and inspect."""
    made = keyquorum("keygen", "committee", "plain", "-p", "ckks-4096", folder=tour)
    stated = re.search(r"error of a decrypted value at most (\S+) \(standard deviation \S+\): \S+ bits of a value of size 1", made)
    assert stated is not None
    assert re.match(r"needs at most 0\.\d\d GB of memory and 0\.[1-9] MB of disk", made)
    (tour / "v.json").write_text("[0.5, 0.25, -1]")
    said = [
        keyquorum("encrypt", "committee", "plain", "v.json", "-o", "v.ct", folder=tour),
        keyquorum("eval", "committee", "plain", "negate", "v.ct", "-o", "w.ct", folder=tour),
        keyquorum("inspect", "v.ct", folder=tour),
        keyquorum("inspect", "committee/party-0/keys/plain", folder=tour),
        keyquorum("decrypt", "committee", "plain", "v.ct", "--to", "0", folder=tour),
        keyquorum("inspect", "v.ct.plain", folder=tour),
    ]
    assert [text for text in said if stated[0] not in text] == []
    done = command(tour, "decode", "committee", "plain", "v.ct.plain", "-n", "3")
    assert done.returncode == 0 and stated[0] in done.stderr
    assert np.abs(np.array([float(v) for v in done.stdout.split()[:3]]) - [0.5, 0.25, -1]).max() < float(stated[1])


def test_approvals(tour: Path) -> None:
    """Refused, nothing counted; approved; a result by computing it again."""
    keyquorum("keygen", "committee", "careful", "-p", "ckks-4096", "--no-relin", "--approvals", folder=tour)
    (tour / "x.json").write_text("[0.5]")
    keyquorum("encrypt", "committee", "careful", "x.json", "-o", "a.ct", folder=tour)
    keyquorum("eval", "committee", "careful", "add", "a.ct", "a.ct", "-o", "b.ct", folder=tour)
    assert "was not approved" in keyquorum("decrypt", "committee", "careful", "b.ct", "--to", "0", folder=tour, ok=False)
    shown = keyquorum("inspect", "committee/party-0/keys/careful", folder=tour)
    assert "0 of 16 decryptions used" in shown and "must be approved at every party" in shown
    keyquorum("approve", "committee", "careful", "a.ct", "--party", "0", "--party", "1", "--party", "2", folder=tour)
    derived = ("--operation", "add", "--input", "a.ct", "--input", "a.ct")
    assert "approved at party 0, 1, 2" in keyquorum("approve", "committee", "careful", "b.ct", *derived, folder=tour)
    keyquorum("decrypt", "committee", "careful", "b.ct", "--to", "0", folder=tour)
    assert float(keyquorum("decode", "committee", "careful", "b.ct.plain", "-n", "1", folder=tour).split()[0]) == pytest.approx(1, abs=0.001)


def test_eval_states_the_noise_of_its_result(tour: Path) -> None:
    """The noise follows from the receipts of the inputs; a sum of a ciphertext with itself doubles it; noise above the policy's bound is reported, and
    refused by decrypt."""
    keyquorum("keygen", "committee", "noisy", "-p", "ckks-4096", "--no-relin", folder=tour)
    (tour / "x.json").write_text("[0.5]")
    assert "noise at most 2^4.1 (root mean square; values up to 1), the policy hides 2^13" in keyquorum(
        "encrypt", "committee", "noisy", "x.json", "-o", "0.ct", folder=tour
    )
    for i in range(9):
        said = keyquorum("eval", "committee", "noisy", "add", f"{i}.ct", f"{i}.ct", "-o", f"{i + 1}.ct", folder=tour)
        assert f"noise at most 2^{4.09 + i + 1:.1f} (root mean square; values up to {2 ** (i + 1)})" in said
        assert ("TOO MUCH" in said) == (i == 8)
    refused = keyquorum("decrypt", "committee", "noisy", "9.ct", "--to", "0", folder=tour, ok=False)
    assert "may have a noise of 2^13.1 by its receipt, the flooding of the key hides up to 2^13" in refused
    assert "0 of 16 decryptions used" in keyquorum("inspect", "committee/party-0/keys/noisy", folder=tour)
    (tour / "large.json").write_text("[3]")
    assert "values up to 4" in keyquorum("encrypt", "committee", "noisy", "large.json", "-o", "l.ct", folder=tour)
    assert "reach beyond --bound 2" in keyquorum("encrypt", "committee", "noisy", "large.json", "-o", "l.ct", "--bound", "2", folder=tour, ok=False)


def test_bfv_is_exact(tour: Path) -> None:
    values = list(range(-50, 50))
    (tour / "v.json").write_text(json.dumps(values))
    keyquorum("encrypt", "committee", "bfv", "v.json", "-o", "v.ct", folder=tour)
    keyquorum("decrypt", "committee", "bfv", "v.ct", "--to", "1", folder=tour)
    shown = keyquorum("decode", "committee", "bfv", "v.ct.plain", "-n", "100", folder=tour).split()
    assert [int(float(v)) for v in shown[:100]] == values


@pytest.mark.parametrize("key", some(["bfv", "bgv"], 1))
def test_an_exhausted_noise_budget_is_refused(tour: Path, key: str) -> None:
    """BFV and BGV: products until no budget is left. eval reports it, and decryption is refused, by a party as well; without a receipt the budget is
    unknown."""
    if key == "bgv":
        keyquorum("keygen", "committee", key, "-p", "bgv-4096", folder=tour)
    (tour / "n.json").write_text("[2, 3]")
    said = keyquorum("encrypt", "committee", key, "n.json", "-o", "n0.ct", folder=tour)
    left = [int(re.findall(r"noise budget left when decrypted: (\d+) bits", said)[0])]
    last = 0
    while left[-1] > 0:
        name, last = f"n{last}.ct", last + 1
        said = keyquorum("eval", "committee", key, "square", name, "-o", f"n{last}.ct", folder=tour)
        left.append(int(re.findall(r"noise budget left when decrypted: (\d+) bits", said)[0]))
    assert left[0] > left[-1] == 0 and 1 <= last <= 3
    warned = command(tour, "eval", "committee", key, "negate", f"n{last}.ct", "-o", f"{key}.ct")
    assert warned.returncode == 0 and "WARNING: the noise budget is used up" in warned.stderr
    line = keyquorum("decrypt", "committee", key, f"{key}.ct", "--to", "0", folder=tour, ok=False)
    assert f"{key}.ct: its noise budget is used up (-" in line and "remove the receipt to decrypt all the same" in line
    assert not (tour / f"{key}.ct.plain").exists()
    (tour / f"{key}.ct.json").unlink()
    keyquorum("decrypt", "committee", key, f"{key}.ct", "--to", "0", folder=tour)


def test_inspect_knows_every_file(tour: Path) -> None:
    (tour / "i.json").write_text("[1]")
    keyquorum("encrypt", "committee", "bfv", "i.json", "-o", "i.ct", folder=tour)
    key = "committee/party-0/keys/bfv"
    for path, text in {
        "committee": "rep-field",
        key: "made by 3 parties",
        f"{key}/public.key": "SEAL public key, bfv-4096",
        f"{key}/relin.key": "SEAL relinearisation or Galois keys",
        f"{key}/share-0.kqs": "share file of party 0 of 3",
        "i.ct": "SEAL ciphertext, bfv-4096",
        "committee/party-0/identity.pem": "identity of a party",
    }.items():
        assert text in keyquorum("inspect", path, folder=tour), path
    (tour / "noise").write_bytes(bytes(100))
    said = keyquorum("inspect", "noise", folder=tour, ok=False)
    assert said == "error: noise: not a file of KeyQuorum, of SEAL or of TFHE-rs, or a damaged one"


def test_doctor(tour: Path) -> None:
    said = keyquorum("doctor", "committee", folder=tour)
    assert "everything is in order" in said
    assert said.count("TLSv1_3 X25519MLKEM768 TLS13_AES_128_GCM_SHA256") == 6


def test_doctor_tells_what_to_fix(tmp_path: Path) -> None:
    keyquorum(
        "init",
        "c",
        "--host",
        "127.0.0.1:4",
        "--host",
        "127.0.0.1:5",
        "--host",
        "127.0.0.1:6",
        "--me",
        0,
        folder=tmp_path,
    )
    assert "thing(s) to fix" in keyquorum("doctor", "c", "--seconds", "1", folder=tmp_path, ok=False)
    text = keyquorum("keygen", "c", "key", "-p", "bfv-4096", folder=tmp_path, ok=False)
    assert "party 1 is not on this host" in text
    keyquorum("trust", "c", 1, "ab" * 32, folder=tmp_path)
    assert "fingerprint" in keyquorum("trust", "c", 2, "abc", folder=tmp_path, ok=False)


def test_parties_of_a_job(tour: Path) -> None:
    keyquorum("keygen", "committee", "job", "-p", "bfv-4096", "--no-relin", "--job", "job.json", folder=tour)
    parties = [started(tour, "keyquorum", "party", "committee", i, "job.json", "--json") for i in range(3)]
    done = [party.ended(60) for party in parties]
    assert len({json.loads(each.stdout)["key_id"] for each in done}) == 1 and all(each.returncode == 0 for each in done)
    assert "key " in keyquorum("inspect", "committee/party-2/keys/job", folder=tour)


@pytest.mark.parametrize("protocol", ["ring", "rep-field", "shamir", "emulate"])
def test_run_with_files(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "p.mpc").write_text(
        "a = sint.get_input_from(0, size=3, binary=True)\nb = (a * a).reveal()\nb.binary_output()\nprint_ln('first %s', b[0])\n"
    )
    (tmp_path / "Player-Data").mkdir()
    (tmp_path / "Player-Data/Input-Binary-P0-0").write_bytes(np.array([3, -4, 5], dtype="<i8").tobytes())
    out = keyquorum("run", "p.mpc", "-E", protocol, folder=tmp_path)
    assert "first 9" in out and "Time = " in out and "Data sent = " in out
    words = np.fromfile(tmp_path / "Player-Data/Binary-Output-P0-0", dtype="<i8")
    assert words.tolist() == [9, 16, 25]


def test_parameters_are_listed(tmp_path: Path) -> None:
    listed = keyquorum("parameters", folder=tmp_path)
    assert "ckks-16384-bench" in listed and "bgv-8192" in listed


MISTAKES = [
    (["keygen", "nowhere", "k"], "no committee here"),
    (["keygen", "committee", "../k", "-p", "bfv-4096"], "key name"),
    (["keygen", "committee", "ckks", "-p", "bfv-4096"], "already"),
    (["keygen", "committee", "k", "-p", "bfv-1"], "bfv-1"),
    (["keygen", "committee", "k", "-p", "bfv-4096", "--error", "flat"], "flat"),
    (["keygen", "committee", "k", "--flood-bits", "200"], "200"),
    (["keygen", "committee", "k", "-p", "ckks-8192", "--decryptions", "100000"], "fewer --decryptions"),
    (["keygen", "committee", "k", "-p", "ckks-4096", "--noise-bits", "0"], "noise of 0 bits"),
    (["approve", "committee", "ckks", "committee/committee.toml"], "wants no approvals"),
    (["approve", "committee", "ckks", "x.ct", "--operation", "add", "--noise-bits", "9"], "leave out --bound and --noise-bits"),
    (["init", "committee"], "already"),
    (["init", "c2", "-E", "bmr"], "bmr"),
    (["init", "c2", "-E", "mascot", "-N", "1"], "n >= 2"),
    (["init", "c2", "-E", "semi", "-N", "3", "-T", "1"], "t = n - 1"),
    (["keygen", "committee", "k", "-p", "bfv-4096", "--backend", "other"], "embedded, mp-spdz"),
    (["keygen", "committee", "k", "-p", "bfv-4096", "--backend", "mp-spdz", "--mp-spdz", "nowhere"], "no such folder"),
    (["run", "sample_cbd", "5", "-E", "mascot", "-P", "65537"], "more than 32 bits"),
    (["run", "sample_cbd", "5", "-E", "ring", "--backend", "mp-spdz", "--mp-spdz", "."], "not a checkout of MP-SPDZ"),
    (["init", "c2", "-N", "4"], "3 parties"),
    (
        ["init", "c2", "-E", "semi", "-N", "4", "--openings", "round"],
        "unknown openings 'round': choose one of direct, star",
    ),
    (["init", "c2", "--openings", "star"], "rep-field opens values directly"),
    (["init", "c2", "-E", "mascot", "-N", "4", "--openings", "star"], "mascot opens values directly"),
    (["init", "c2", "-E", "shamir", "-N", "5", "-T", "3"], "t < n/2"),
    (["encrypt", "committee", "ckks", "missing.json", "-o", "m.ct"], "missing.json: no such file"),
    (["keygen", "committee", "k", "-p", "/dev/zero"], "/dev/zero cannot be read: more than 64 MiB"),
    (["party", "committee", "0", "/dev/zero"], "/dev/zero: not a job file (more than 64 MiB)"),
    (["audit", "verify", "committee/committee.toml"], "committee.toml: no line is of a chain"),
    (["encrypt", "committee", "nokey", "x.json", "-o", "m.ct"], "nokey"),
    (["decrypt", "committee", "ckks", "missing.ct", "--to", "0"], "missing.ct"),
    (["run", "nothing"], "nothing"),
    (["run", "sample_cbd", "many"], "many"),
    (["run", "sample_cbd", "10", "arith", "-E", "ring", "-P", "97"], "-R"),
    (["run", "sample_cbd", "10", "arith", "-E", "emulate", "-N", "2"], "emulate"),
    (
        ["keygen", "committee", "k", "-p", "bfv-4096", "--job", "nowhere/j.json"],
        "nowhere/j.json: No such file or directory: check the path, whose folder must exist",
    ),
    (["init", "committee/committee.toml"], "committee.toml: File exists: name another place"),
    (["inspect", "nothing"], "nothing"),
    (["doctor", "nowhere"], "no committee"),
]


@pytest.mark.parametrize(("args", "culprit"), MISTAKES, ids=lambda v: "-".join(v)[:40] if isinstance(v, list) else "")
def test_mistakes_end_with_one_line(tour: Path, args: list[str], culprit: str) -> None:
    assert culprit in keyquorum(*args, folder=tour, ok=False)


@pytest.mark.parametrize("size", [0, 10, 1000])
def test_a_cut_ciphertext_is_named_by_every_command(tour: Path, size: int) -> None:
    (tour / "v.json").write_text("[1]")
    keyquorum("encrypt", "committee", "bfv", "v.json", "-o", "v.ct", folder=tour)
    (tour / "cut.ct").write_bytes((tour / "v.ct").read_bytes()[:size])
    for words in (["eval", "committee", "bfv", "negate", "cut.ct", "-o", "n.ct"], ["decrypt", "committee", "bfv", "cut.ct", "--to", "0"]):
        text = keyquorum(*words, folder=tour, ok=False)
        assert "cut.ct" in text and "was the file cut" in text
    assert not (tour / "n.ct").exists()
    text = keyquorum("encrypt", "committee", "bfv", "v.json", "-o", "b.ct", "--bound", "4", folder=tour, ok=False)
    assert "--bound is for CKKS, and this is a key of BFV: leave it out" in text


def test_a_ciphertext_of_another_key_is_refused(tour: Path) -> None:
    (tour / "w.json").write_text("[1]")
    keyquorum("encrypt", "committee", "bfv", "w.json", "-o", "w.ct", folder=tour)
    assert "w.ct" in keyquorum("decrypt", "committee", "ckks", "w.ct", "--to", "0", folder=tour, ok=False)
    keyquorum("keygen", "committee", "bfv2", "-p", "bfv-4096", "--no-relin", folder=tour)
    text = keyquorum("decrypt", "committee", "bfv2", "w.ct", "--to", "0", folder=tour, ok=False)
    assert "another key" in text


def test_how_values_are_opened_is_said(tmp_path: Path) -> None:
    said = "openings: star (one party"
    assert said in keyquorum("init", "star", "-E", "semi", "-N", "4", "--openings", "star", folder=tmp_path)
    assert said in keyquorum("inspect", "star", folder=tmp_path)
    keyquorum("init", "direct", "-E", "semi", "-N", "4", folder=tmp_path)
    assert "openings" not in keyquorum("inspect", "direct", folder=tmp_path) + (tmp_path / "direct" / "committee.toml").read_text()


def test_the_policy_is_enforced_across_runs(tour: Path) -> None:
    keyquorum("keygen", "committee", "once", "--decryptions", "1", "--no-relin", folder=tour)
    (tour / "o.json").write_text("[1]")
    keyquorum("encrypt", "committee", "once", "o.json", "-o", "o.ct", folder=tour)
    keyquorum("decrypt", "committee", "once", "o.ct", "--to", "0", folder=tour)
    assert "make a new key" in keyquorum("decrypt", "committee", "once", "o.ct", "--to", "0", folder=tour, ok=False)


def test_ports_of_local_parties_are_free_and_not_those_of_outgoing_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        monkeypatch.setattr(setup, "LOWEST_PORT", (1 << 16) - 40)
        monkeypatch.setattr(setup, "_outgoing_ports", lambda: range((1 << 16) - 20, 1 << 16))
        found = setup._free_ports(5)
        assert len(set(found)) == 5 and all((1 << 16) - 40 <= port < (1 << 16) - 20 for port in found)
        monkeypatch.setattr(setup, "LOWEST_PORT", number)
        monkeypatch.setattr(setup, "_outgoing_ports", lambda: range(number + 1, 1 << 16))
        assert setup._free_ports(3) and number not in setup._free_ports(3)
    monkeypatch.setattr(setup, "LOWEST_PORT", 1 << 16)
    with pytest.raises(CommitteeError, match="--host"):
        setup._free_ports(1)
