"""The security pages: one form, tests that exist, and a table of plans that agrees with what the code refuses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.plans.pool_variants import check_verified, variant_for
from keyquorum.schemes import encryption_of, load_parameters, scheme_of
from keyquorum.schemes.prf.evaluate import check_evaluation

from .test_links import ROOT

PAGES = sorted((ROOT / "docs" / "pages" / "security").glob("*.md"))
FORM = ["Promise", "Argument", "Attacks and tests", "Limits"]
PAST = "past-vulnerabilities"
"""A list, which does not have the form of a plan."""
LARGEST = 16_000
"""Bytes of SECURITY.md: more belongs to a page."""
TICKS = re.compile(r"^(\|.*\| Legendre PRF \|.*\n(?:\|.*\n)+)", re.M)
"""The table of plans, by one of its columns."""
YES, NO = "✓", "–"


@pytest.mark.parametrize("page", [p for p in PAGES if p.stem != PAST], ids=lambda p: p.stem)
def test_every_plan_has_the_same_headings(page: Path) -> None:
    assert re.findall(r"^## (.*)$", page.read_text(), re.M) == FORM


def test_the_first_page_is_short_and_names_every_page() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert len(text.encode()) <= LARGEST
    assert {page.name for page in PAGES} == set(re.findall(r"docs/pages/security/([\w-]+\.md)", text))


@pytest.fixture(scope="module")
def code() -> tuple[set[str], set[str]]:
    """Names of functions of Python and Rust, and paths of files."""
    paths = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    if not paths:
        pytest.skip("no checkout of git")
    texts = [(ROOT / p).read_text() for p in paths if p.endswith((".py", ".rs")) and (ROOT / p).is_file()]
    return {name for text in texts for name in re.findall(r"\b(?:def|fn) (\w+)", text)}, set(paths)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_tests_that_a_page_names_exist(page: Path, code: tuple[set[str], set[str]]) -> None:
    functions, paths = code
    quoted = re.findall(r"`([^`\n]+)`", page.read_text())
    names = {q for q in quoted if re.fullmatch(r"(?:test|crash_guess|finding)_\w+", q)}
    files = {q for q in quoted if re.fullmatch(r"[\w./-]+\.(?:py|rs)", q)}
    assert names <= functions, names - functions
    assert not (wrong := {f for f in files if not any(p == f or p.endswith(f"/{f}") for p in paths)}), wrong
    folders = {q.rstrip("/") for q in quoted if re.fullmatch(r"(?:tests|Source|harness)/[\w/]+", q)}
    assert not (wrong := {f for f in folders if not any(p.startswith(f"{f}/") for p in paths)}), wrong


def ticks(path: Path) -> dict[str, dict[str, str]]:
    """Cells by committee and column."""
    found = TICKS.search(path.read_text())
    assert found is not None, path
    head, _, *rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in found[1].splitlines()]
    return {name: dict(zip(head, row, strict=False)) for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}


def allowed(ask: Callable[[], object]) -> str:
    """The cell of a plan: whether a committee may run it."""
    try:
        ask()
    except KeyQuorumError:
        return NO
    return YES


def decrypts(committee: Committee, name: str) -> None:
    """Raises what key generation and decryption under a parameter set raise."""
    parameters = load_parameters(name)
    scheme_of(parameters).request(parameters, {}).check_plan(committee)
    check_verified(committee, encryption_of(parameters))
    if parameters.scheme != "ckks":
        variant_for(committee, "round_ltz_circuit", parameters)


def evaluates(committee: Committee, name: str) -> None:
    """Raises what key generation and evaluation of a pseudorandom function raise."""
    parameters = load_parameters(name)
    scheme_of(parameters).request(parameters, {}).check_plan(committee)
    check_evaluation(committee, "circuit") if name == "prf-aes128" else None


@pytest.mark.parametrize("document", ["README.md", "SECURITY.md"])
@pytest.mark.parametrize("name", [p.name for p in COMMITTEES.values() if not p.emulated])
def test_the_table_of_plans_is_what_committees_run(document: str, name: str) -> None:
    """A dash is a refusal of the code, and the adversary is the adversary of the descriptor. The argument for a tick stands on the pages.

    Served decryptions take the variants of pools, so what these refuse is not served."""
    row, protocol = ticks(ROOT / document)[name], COMMITTEES[name]
    committee = api.in_process_committee(protocol.parties or max(3, protocol.least_parties), name)
    lwe = "lwe64-p2" if committee.ring_protocol is not None else "lwe53-p16"
    ckks = "ckks-4096-mac"
    assert row["adversary"] == protocol.adversary
    for plan in ("keys: SEAL, LWE", "BFV, BGV, LWE", "served BFV, BGV, LWE"):
        assert {row[plan]} == {allowed(partial(decrypts, committee, parameters)) for parameters in ("bfv-4096", "bgv-4096", lwe)}, plan
    assert row["CKKS"] == allowed(lambda: decrypts(committee, ckks))
    assert row["AES"] == allowed(lambda: evaluates(committee, "prf-aes128"))
    assert row["Legendre PRF"] == allowed(lambda: evaluates(committee, "prf-legendre127"))
    assert row["keys: TFHE-rs"] == allowed(lambda: decrypts(committee, "tfhers-2-2"))
    assert row["keys: FHEW"] == allowed(lambda: decrypts(committee, "ajax53"))


def test_both_tables_have_the_same_ticks() -> None:
    first, second = (ticks(ROOT / name) for name in ("README.md", "SECURITY.md"))
    plans = [column for column in second["mascot"] if column not in ("committee", "parties n, corruptions t")]
    assert len(plans) == 10 and set(second) == {*COMMITTEES, "emulate"}
    assert {name: [row.get(p) for p in plans] for name, row in first.items() if name in COMMITTEES} == {
        name: [row.get(p) for p in plans] for name, row in second.items() if name in COMMITTEES
    }
