"""Messages that the page of troubleshooting quotes are messages of the code."""

from __future__ import annotations

import re

import pytest

from .test_links import ROOT

PAGE = (ROOT / "docs" / "pages" / "troubleshooting.md").read_text()
QUOTED = [message for row in re.findall(r"^\| (.*?) \|", PAGE, re.M) for message in re.findall(r"`([^`]+)`", row)]
FOREIGN = {"incompatible version"}
"""Messages of SEAL."""


@pytest.fixture(scope="module")
def code() -> str:
    files = [*(ROOT / "harness" / "keyquorum").rglob("*.py"), *(ROOT / "Source").glob("*/src/**/*.rs"), ROOT / "Makefile"]
    return "\n".join(path.read_text() for path in files if "_share" not in path.parts)


def fragments(message: str) -> list[str]:
    """What stands between the values of a message: numbers, names of schemes, and what the page leaves out."""
    return [part.strip() for part in re.split(r"…|\b\d+(?:\.\d+)?\b|\bLWE\b", message) if len(part.strip()) > 3]


@pytest.mark.parametrize("message", [m for m in QUOTED if m not in FOREIGN])
def test_the_code_has_the_message(message: str, code: str) -> None:
    assert all(part in code for part in fragments(message)), message


def test_the_page_quotes_many() -> None:
    assert len(QUOTED) > 20
