"""The C++ example, where CMake and SEAL are installed (CMAKE_PREFIX_PATH names an unusual place): it loads a joint key's files, and the committee decrypts what it saves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "cpp"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled example."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed")
    build = tmp_path_factory.mktemp("cpp")
    configure = [cmake, "-S", str(SOURCE), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"]
    done = subprocess.run(configure, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode and 'find a package configuration file provided by "SEAL"' in " ".join(done.stderr.split()):
        pytest.skip("find_package(SEAL) finds nothing here: install SEAL 4.1 or newer, or name its place in CMAKE_PREFIX_PATH")
    assert done.returncode == 0, done.stderr
    compiled = subprocess.run([cmake, "--build", str(build)], capture_output=True, text=True, timeout=300, check=False)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    return build / "example"


def test_it_computes_under_a_joint_key(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "committee"
    api.init(folder, 3, "rep-field")
    parameters = api.load_parameters("bgv-8192")
    api.keygen(folder, "key", parameters, galois_elements=api.galois_elements(parameters, [1]))
    exported, _ = api.export_key(api.as_committee(folder), "key", api.key_folder(folder, "key"), tmp_path / "public")
    command = [str(program), str(exported), str(tmp_path / "result.ct"), *map(str, range(1, 9))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "8 squares, rotated by 1, SEAL 4." in done.stdout, done.stdout + done.stderr
    [output] = api.decrypt(folder, "key", [tmp_path / "result.ct"], 0, [tmp_path / "result.plain"]).outputs
    expected = np.roll(np.pad(np.arange(1, 9) ** 2, (0, parameters.ring_degree // 2 - 8)), -1)
    assert np.array_equal(api.decode(folder, "key", output)[: expected.size], expected)
    refused = subprocess.run([str(program), str(tmp_path), "x", "1"], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1 and refused.stderr == f"example: {tmp_path}/parms: cannot be read\n"
