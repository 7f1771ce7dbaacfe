"""First commands of a newcomer: each mistake gives one line with the remedy, and no option is ignored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from keyquorum import __version__, api
from keyquorum.fhe import seal
from keyquorum.fhe.ghs import SET_NAMES as GHS_SETS
from keyquorum.fhe.lwe import FHEW_SETS, LWE_SETS, TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.plans.pool_store import packed_bytes
from keyquorum.serve.client import make_receiver

from tests.commands import command


def run(folder: Path, *args: object, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command that ends with an exit code."""
    done = command(folder, *args)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def refused(folder: Path, *args: object) -> str:
    """The one line of error of a command that fails."""
    out, err = run(folder, *args, code=1)
    lines = [line for line in err.strip().splitlines() if not line.startswith("progress: ")]  # of a busy machine
    assert len(lines) == 1 and lines[0].startswith("error: "), (out, err)
    return lines[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee in a folder with a space, keys of BFV (no Galois key) and CKKS (one step), ciphertexts and plaintexts."""
    folder = tmp_path_factory.mktemp("first")
    api.init(folder / "my quorum", name="my-quorum")
    api.keygen(folder / "my quorum", "bfv", "bfv-4096", relin=False)
    ckks = api.load_parameters("ckks-4096")
    api.keygen(folder / "my quorum", "ckks", ckks, relin=False, galois_elements=api.galois_elements(ckks, [1]))
    for scheme, values in (("bfv", [1, 2, 3]), ("ckks", [0.5, 0.25])):
        key = api.key_folder(folder / "my quorum", scheme)
        info = api.load_key(key)
        (folder / f"{scheme}.ct").write_bytes(seal.encrypt(info.parameters, api.load_public_file(key, info, "public.key"), values))
        api.decrypt(folder / "my quorum", scheme, [folder / f"{scheme}.ct"], 0, [folder / f"{scheme}.ct.plain"])
    return folder


def test_help_and_version(tmp_path: Path) -> None:
    assert run(tmp_path, "--version")[0] == f"keyquorum {__version__}\n"
    assert run(tmp_path, "-h")[0] == run(tmp_path, "--help")[0]
    assert run(tmp_path, "pool", "fill", "-h")[0] == run(tmp_path, "pool", "fill", "--help")[0]


def test_python_m_keyquorum(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "keyquorum", "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"keyquorum {__version__}\n"


def test_a_negative_count_is_refused(made: Path) -> None:
    assert "--count -5: choose how many values to print, or 0 for all" in refused(made, "decode", "my quorum", "bfv", "bfv.ct.plain", "-n", "-5")
    assert run(made, "decode", "my quorum", "bfv", "bfv.ct.plain", "-n", "3")[0] == "1 2 3 ...\n"
    assert len(run(made, "decode", "my quorum", "bfv", "bfv.ct.plain", "-n", "0")[0].split()) == 4096


def test_me_wants_hosts(tmp_path: Path) -> None:
    assert "--me without --host: the other parties run elsewhere" in refused(tmp_path, "init", "c", "--me", "1")
    assert not (tmp_path / "c").exists()
    run(tmp_path, "init", "all", "--me", "0", "--me", "1", "--me", "2")
    assert Committee.load(tmp_path / "all").local_parties() == [0, 1, 2]


def test_two_parties_at_one_address(tmp_path: Path) -> None:
    line = refused(tmp_path, "init", "c", "--host", "a:4000", "--host", "b:4000", "--host", "a:4000")
    assert "party 0 and party 2 have the same address a:4000: give each party a port of its own" in line
    assert not (tmp_path / "c").exists()
    run(tmp_path, "init", "c", "--host", "a:4000", "--host", "b:4000", "--host", "c:4000")
    file = tmp_path / "c" / "committee.toml"
    file.write_text(file.read_text().replace('"c"\nport', '"b"\nport'))
    assert "committee.toml: party 1 and party 2 have the same address b:4000" in refused(tmp_path, "inspect", "c")


@pytest.mark.parametrize(("folder", "name"), [("my committee", "my-committee"), ("_x", "x"), ("ü", "committee"), (".", "here and there")])
def test_names_of_folders(tmp_path: Path, folder: str, name: str) -> None:
    """A committee takes the name of any folder; --name is refused if it is none."""
    place = tmp_path / "here and there" if folder == "." else tmp_path
    place.mkdir(exist_ok=True)
    run(place, "init", folder)
    assert Committee.load(place / folder).name == name.replace(" ", "-")
    assert "committee name 'my committee'" in refused(place, "init", "other", "--name", "my committee")


def test_hints_can_be_pasted(tmp_path: Path) -> None:
    """Folders with spaces are quoted in the commands that errors suggest."""
    run(tmp_path, "init", "a b", "--host", "a:1", "--host", "b:1", "--host", "c:1", "--me", "0")
    assert "keyquorum party 'a b' INDEX" in refused(tmp_path, "keygen", "a b", "k", "-p", "bfv-4096")
    assert "keyquorum init 'no where'" in refused(tmp_path, "keygen", "no where", "k", "-p", "bfv-4096")
    out, _ = run(tmp_path, "keygen", "a b", "k", "-p", "bfv-4096", "--job", "a job.json")
    assert "keyquorum party FOLDER INDEX 'a job.json'" in out


def test_all_parameter_sets_are_listed(tmp_path: Path) -> None:
    """The list has the sets of the other schemes as well, and gives no warnings."""
    out, err = run(tmp_path, "parameters")
    assert {line.split()[0] for line in out.splitlines()} == {
        *api_sets(),
        *LWE_SETS,
        *TFHE_SETS,
        *FHEW_SETS,
        *GHS_SETS,
        "prf-aes128",
        "prf-legendre127",
    }
    assert err == ""


def api_sets() -> list[str]:
    from keyquorum.fhe.parameters import list_parameter_sets

    return list_parameter_sets()


def test_pool_fill_states_what_it_needs(tmp_path: Path) -> None:
    """The bytes that are stated before the start are those of the files of the pool, without headers."""
    api.init(tmp_path / "c", 2, "semi")
    out, _ = run(tmp_path, "pool", "fill", "c", "-n", "5000", "--chunk", "2048", "--rounding", "round_ltz_circuit")
    size = api.pool_needs(tmp_path / "c", "lwe64-p2", "round_ltz_circuit", 5000, chunk=2048)
    assert out.startswith(f"needs {size / 1e6:.2f} MB of disk at each party, for 5,000 items in 3 chunks\n")
    on_disk = sum(p.stat().st_size for p in (tmp_path / "c" / "party-0").rglob("*.kqs"))
    assert size <= on_disk <= size + 3 * 1000
    assert size > packed_bytes([], 1, 1)
    assert "0 items by 4096: choose 1 to 2^40" in refused(tmp_path, "pool", "fill", "c", "-n", "0")


def test_rounding_has_no_meaning_for_ckks(made: Path) -> None:
    for rounding in ("round_mask_open", "round_ltz_circuit"):
        line = refused(made, "decrypt", "my quorum", "ckks", "ckks.ct", "--to", "0", "--rounding", rounding)
        assert f"CKKS results are flooded, not rounded: --rounding {rounding} has no meaning for key 'ckks': leave it out" in line
    with pytest.raises(api.ParameterError, match="CKKS results are flooded, not rounded"):
        api.decrypt_job(made / "my quorum", "ckks", [made / "ckks.ct"], 0, [made / "o"], rounding="round_mask_open")


@pytest.mark.parametrize("option", [["--flood-bits", "30"], ["--decryptions", "16"], ["--noise-bits", "9"], ["--approvals"]])
def test_options_of_ckks_are_refused_elsewhere(made: Path, option: list[str]) -> None:
    line = refused(made, "keygen", "my quorum", "k", "-p", "bfv-4096", *option)
    assert f"{option[0]} is for CKKS, and bfv-4096 is a set of BFV: leave it out" in line


@pytest.mark.parametrize("option", [["--to", "0"], ["--pool"], ["--job", "j"], ["--link", "wan"], ["--rounding", "round_ltz_circuit"]])
def test_nothing_is_ignored_beside_committee(made: Path, option: list[str]) -> None:
    line = refused(made, "decrypt", "my quorum", "bfv", "bfv.ct", "--committee", "--identity", "x", *option)
    assert f"{option[0]} has no meaning beside --committee" in line


def test_identity_is_for_a_served_committee(made: Path) -> None:
    assert "--identity is for a served committee" in refused(made, "decrypt", "my quorum", "bfv", "bfv.ct", "--to", "0", "--identity", "x")


def test_the_receiver_names_the_output(made: Path) -> None:
    """A folder, or a file for each ciphertext; other numbers of names are refused, and no file is written."""
    (made / "results").mkdir()
    decrypt = ("decrypt", "my quorum", "bfv", "bfv.ct", "--to", "0")
    run(made, *decrypt, "-o", "results")
    run(made, *decrypt, "--output", "results/again.pt")
    assert sorted(p.name for p in (made / "results").iterdir()) == ["again.pt", "bfv.ct.plain"]
    assert run(made, "decode", "my quorum", "bfv", "results/again.pt", "-n", "3")[0] == "1 2 3 ...\n"
    said = "--output: 2 names for 1 ciphertexts: give a folder that exists, or a file for each, in their order"
    assert said in refused(made, *decrypt, "-o", "a.pt", "-o", "b.pt")
    (made / "other").mkdir()
    (made / "other" / "bfv.ct").write_bytes((made / "bfv.ct").read_bytes())
    said = "--output results: two ciphertexts have the same name: give --output once for each, as a file"
    assert said in refused(made, *decrypt, "other/bfv.ct", "-o", "results")
    assert "none: no such file" in refused(made, "decrypt", "my quorum", "bfv", "none", "--to", "0", "-o", "results")
    assert len(list((made / "results").iterdir())) == 2 and not (made / "a.pt").exists()


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_a_plaintext_is_not_decrypted(made: Path, scheme: str) -> None:
    said = f"{scheme}.ct.plain is a SEAL plaintext, not a ciphertext: it is decrypted already, and keyquorum decode prints its numbers"
    assert said in refused(made, "decrypt", "my quorum", scheme, f"{scheme}.ct.plain", "--to", "0")
    assert said in refused(made, "eval", "my quorum", scheme, "add", f"{scheme}.ct", f"{scheme}.ct.plain", "-o", "s.ct")
    assert not (made / f"{scheme}.ct.plain.plain").exists() and not (made / "s.ct").exists()
    assert f"{scheme}.ct is a SEAL ciphertext, not a plaintext: decrypt it first" in refused(made, "decode", "my quorum", scheme, f"{scheme}.ct")


def test_other_files_are_named(made: Path) -> None:
    public = made / "my quorum/party-0/keys/bfv/public.key"
    assert "is a SEAL public key, not a SEAL ciphertext" in refused(made, "decrypt", "my quorum", "bfv", public, "--to", "0")
    (made / "x.json").write_text("[1]")
    assert "x.json is a text (JSON), not a SEAL ciphertext" in refused(made, "eval", "my quorum", "bfv", "negate", "x.json", "-o", "s.ct")
    assert "x.json is a text (JSON), not a SEAL plaintext" in refused(made, "decode", "my quorum", "bfv", "x.json")
    assert "keyquorum decrypt writes it at the receiver" in refused(made, "decode", "my quorum", "bfv", "missing.plain")


def test_operations_want_their_keys(made: Path) -> None:
    cases = [
        ("bfv", "rotate", ["--step", "2"], "has no Galois key for rotate by 2: make a key with keyquorum keygen -p bfv-4096 -s 2"),
        ("bfv", "swap", [], "has no Galois key for swap: make a key with keyquorum keygen -p bfv-4096 -s 0"),
        ("ckks", "rotate", ["--step", "2"], "has no Galois key for rotate by 2: make a key with keyquorum keygen -p ckks-4096 -s 2"),
        ("bfv", "square", [], "has no relinearisation key, which square takes: make a key with keyquorum keygen -p bfv-4096 --relin"),
        ("ckks", "rotate", ["--step", "0"], "rotate by step 0: nothing would move"),
    ]
    for key, operation, options, message in cases:
        assert message in refused(made, "eval", "my quorum", key, operation, f"{key}.ct", "-o", "r.ct", *options), operation
    run(made, "eval", "my quorum", "ckks", "rotate", "ckks.ct", "-o", "r.ct")


def test_asking_a_served_committee_leaves_no_files(made: Path) -> None:
    """The ciphertext is switched to the last level in memory."""
    from keyquorum.cli import data
    from keyquorum.cli.options import Asking

    asked = []

    def answer(committee: Committee, identity: Path, ciphertext: bytes, places: object, wait: float, info: object) -> object:
        asked.append(ciphertext)
        return type("Answer", (), {"plaintext": b"plain"})

    identity, _ = make_receiver(api.as_committee(made / "my quorum"), "bob")
    (made / "served.ct").write_bytes((made / "bfv.ct").read_bytes())
    data._ask_committee(
        api.as_committee(made / "my quorum"), "bfv", made / "served.ct", made / "served.ct.plain", Asking(identity, None, 0.0), answer
    )
    assert len(asked) == 1 and len(asked[0]) < len((made / "served.ct").read_bytes())
    assert sorted(p.name for p in made.glob("served.ct*")) == ["served.ct", "served.ct.plain"]


def test_the_python_interface_encrypts_evaluates_and_decodes(made: Path, tmp_path: Path) -> None:
    """As the commands do, with receipts."""
    committee = made / "my quorum"
    first = api.encrypt(committee, "bfv", [5, -6], tmp_path / "x.ct")
    assert json.loads((tmp_path / "x.ct.json").read_text())["key_id"] == first.info.key_id and first.budget is not None and first.budget > 0
    total = api.evaluate(committee, "bfv", "add", [first.path, first.path], tmp_path / "y.ct")
    api.decrypt(committee, "bfv", [total.path], 0, [tmp_path / "y.plain"])
    assert api.decode(committee, "bfv", tmp_path / "y.plain", 3).tolist() == [10, -12, 0]
    with pytest.raises(api.ParameterError, match="-1 values"):
        api.decode(committee, "bfv", tmp_path / "y.plain", -1)
