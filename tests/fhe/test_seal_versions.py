"""Files of KeyQuorum under two releases of SEAL: each loads them all, computes, and saves what a committee decrypts."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe._stream import VERSION, labelled
from keyquorum.fhe.errors import HeaderError, SealFormatError
from keyquorum.fhe.keys import galois_elements
from keyquorum.fhe.parameters import Scheme
from keyquorum.fhe.seal_format import CIPHERTEXT_HEADERS, read_ciphertext
from keyquorum.fhe.seal_parms import Parms, read_parms, write_parms
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.decrypt import ready_to_decrypt
from keyquorum.schemes.seal.keygen import SealRequest

from tests.plans.quorum import WEAK

from .dealer import tiny

PROGRAM = Path(__file__).with_name("seal_program.py")
OLD = "4.1.2.1"
"""The oldest release that README names."""
INSTALLED: str = seal.require_seal().__version__
BUILD = Path(__file__).resolve().parents[2] / "build"
MEMBERS = api.in_process_committee(3, "rep-field")


@pytest.fixture(scope="session")
def old() -> Path:
    """A folder with the old release alone, in front of the installed one for programs that are run with it. Installed once."""
    folder = BUILD / f"seal-python-{OLD}"
    if not folder.exists():
        BUILD.mkdir(exist_ok=True)
        made = BUILD / f"seal-python-{OLD}.{os.getpid()}"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--target",
            str(made),
            f"seal-python=={OLD}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            pytest.skip(
                f"seal-python {OLD} cannot be installed here: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no reason given'}"
            )
        try:
            made.rename(folder)
        except OSError:  # another worker was first
            assert folder.exists()
    return folder


def run(folder: Path, step: str, old: Path | None) -> str:
    """Runs the program, with the old release or the installed one; returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if old is not None:
        environment["PYTHONPATH"] = str(old)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), step], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@cache
def key(scheme: Scheme) -> list[KeyMaterial]:
    """A key for products and one rotation."""
    parameters = tiny(scheme)
    return api.keygen_in_process(MEMBERS, SealRequest(parameters, True, galois_elements((1,), parameters.ring_degree), "cbd", WEAK))


@pytest.mark.parametrize("encrypt", ["by SEAL", "by KeyQuorum"])
@pytest.mark.parametrize("release", [OLD, INSTALLED])
@pytest.mark.parametrize("scheme", ["bfv", "bgv", "ckks"])
def test_every_file_loads(scheme: Scheme, release: str, encrypt: str, tmp_path: Path, old: Path) -> None:
    """Parameters, public, relinearisation and Galois keys, a ciphertext and a plaintext; the committee decrypts what the release computed."""
    material, used = key(scheme), old if release == OLD else None
    info, parameters = material[0].info, material[0].info.parameters
    for name, content in {"parms": write_parms(parameters), **material[0].public}.items():
        (tmp_path / name).write_bytes(content)
    values = np.arange(1, 9)
    if encrypt == "by KeyQuorum":
        (tmp_path / "encrypted").write_bytes(seal.encrypt(parameters, material[0].public["public.key"], values))
    assert run(tmp_path, "compute", used) == release
    computed = ready_to_decrypt(info, (tmp_path / "computed").read_bytes())
    assert computed.level_primes == (2 if scheme == "ckks" else 1)
    found = api.decrypt_in_process(MEMBERS, material, [(tmp_path / "computed").read_bytes() if scheme == "ckks" else _lowest(material, tmp_path)])
    (tmp_path / "plain").write_bytes(found[0].plaintext)
    run(tmp_path, "decode", used)
    expected = np.roll(np.pad(values**2, (0, parameters.ring_degree // 2 - 8)), -1)
    decoded = np.load(tmp_path / "values.npy")[: expected.size]
    assert np.allclose(decoded, expected, atol=0.05) if scheme == "ckks" else np.array_equal(decoded, expected)


def _lowest(material: list[KeyMaterial], folder: Path) -> bytes:
    return seal.Evaluator(material[0].info.parameters).last_level((folder / "computed").read_bytes())


def test_versions_in_headers() -> None:
    """All headers of all files have the one version that both releases load, and a ciphertext the places where we set it."""
    material = key("bfv")
    parameters = material[0].info.parameters
    data = seal.encrypt(parameters, material[0].public["public.key"], [1, 2])
    files = [*material[0].public.values(), write_parms(parameters), data, seal.Evaluator(parameters).last_level(data)]
    for content in files:
        found = [content[i + 3 : i + 5] for i in range(len(content)) if content.startswith(bytes.fromhex("5ea110"), i)]
        assert len(found) >= 2 and set(found) == {bytes(VERSION)}
    assert VERSION == (4, 1)
    other = data.replace(bytes.fromhex("5ea1100401"), bytes.fromhex("5ea1100404"))
    assert other != data and labelled(other, CIPHERTEXT_HEADERS) == data
    assert np.array_equal(read_ciphertext(parameters, other).data, read_ciphertext(parameters, data).data)
    with pytest.raises(HeaderError, match="no SEAL object"):
        labelled(data, (0, 88))


@pytest.mark.parametrize("scheme", ["bfv", "bgv", "ckks"])
def test_parms(scheme: Scheme) -> None:
    """Ours, and those of SEAL itself, compressed or not."""
    parameters = tiny(scheme)
    assert read_parms(write_parms(parameters)) == Parms.of(parameters)
    theirs = seal.require_seal().EncryptionParameters(seal.require_seal().scheme_type.bfv)
    theirs.load_bytes(write_parms(parameters))
    assert read_parms(theirs.to_bytes()) == Parms.of(parameters)
    data = write_parms(parameters)
    for at in range(len(data)):
        with pytest.raises(SealFormatError):
            read_parms(data[:at])
    for changed in (data[:16] + b"\x04" + data[17:], data[:25] + bytes([65]) + data[26:], data[:41] + bytes([25]) + data[42:]):
        with pytest.raises(SealFormatError):
            read_parms(changed)
