"""Paths that documents and comments name exist, and the page of formats has the constants of the code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from keyquorum.fhe.lwe import MAGIC
from keyquorum.fhe.lwe_public import PUBLIC_MAGIC
from keyquorum.plans.epochs.refresh import MOST_SETS

from .test_links import ROOT

FORMATS = (ROOT / "docs" / "pages" / "formats.md").read_text()
PLACE = re.compile(r"\b(?:docs|Source|harness|Scripts|params|docker)/[\w./-]+\.(?:md|py|rs|toml|csv|sh|yml)\b")
MADE_UP = {"docs/pages/mp-spdz.md": {"Scripts/setup-ssl.sh"}}
"""Places in another repository, by the document."""


def tracked() -> list[Path]:
    """Documents and code of the repository, without tests, whose paths may be invented."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    kinds = (".py", ".rs", ".mpc", ".md", ".toml", ".sh")
    return [ROOT / n for n in names if n.endswith(kinds) and not n.startswith(("tests/", "CHANGELOG")) and "/tests" not in n and (ROOT / n).is_file()]


def test_named_places_exist() -> None:
    files = tracked()
    if not files:
        pytest.skip("no checkout of git")
    missing = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in files
        for place in PLACE.findall(path.read_text())
        if not (ROOT / place).exists() and place not in MADE_UP.get(str(path.relative_to(ROOT)), ())
    ]
    assert not missing


def rust(name: str, text: str) -> str:
    """The value of a constant."""
    found = re.search(rf"const {name}: [^=]+= ([^;]+);", text)
    assert found, name
    return found[1]


def test_formats_have_the_constants_of_the_code() -> None:
    source = ROOT / "Source"
    frame, hello, store = ((source / p).read_text() for p in ("net/src/frame.rs", "net/src/hello.rs", "core/src/store.rs"))
    for number, name in enumerate(("DataLast", "DataMore", "Hello", "Abort", "Close")):
        assert f"{name} = {number}," in frame and f"| {number} | {name} |" in FORMATS
    assert rust("MAX_FRAME", frame) == "1 << 20" and "2^20 − 5" in FORMATS
    assert rust("MAX_HELLO", frame) == "64 * 1024" and "at most 65,536 bytes" in FORMATS
    assert rust("MAX_REASON", frame) == "500" and "at most 500 characters" in FORMATS
    assert f"| wire version | `u32` | {rust('WIRE_VERSION', hello)} |" in FORMATS
    assert rust("MAGIC", hello) == 'b"keyquorum"' and "| magic | 9 bytes | `keyquorum` |" in FORMATS
    assert (
        rust("MAGIC", store) == 'b"KQSHARE\\0"'
        and f"| version | `u32` | {rust('FIRST_VERSION', store)} in epoch 0; {rust('EPOCH_VERSION', store)} in later epochs" in FORMATS
    )
    assert rust("PRSS_SUBSETS", (source / "protocols/src/shamir/prss.rs").read_text()) == str(MOST_SETS)
    assert all(f"`{magic.decode()}`" in FORMATS for magic in (MAGIC, PUBLIC_MAGIC))


def test_formats_name_all_fields_of_headers() -> None:
    text = (ROOT / "Source" / "core" / "src" / "store.rs").read_text()
    fields = re.findall(r"    pub (\w+): ", text.split("pub struct ShareHeader")[1].split("}")[0])
    row = next(line for line in FORMATS.splitlines() if line.startswith("| header | JSON | `protocol`"))
    assert fields and all(f"`{field}`" in row for field in fields)
