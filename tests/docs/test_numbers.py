"""Pages do not repeat measured numbers of tables that are measured anew: they point to results/README.md, which is generated."""

from __future__ import annotations

import re

import pytest

from .test_links import ROOT

TABLE = re.compile(r"results/(?:README\.md|[\w/]+\.csv)")
MEASURED = re.compile(r"(?<![\w.])[0-9][0-9.,]* ?(?:s|ms|µs|minutes|[kMG]B)\b|[0-9][0-9.,]* (?:blocks|decryptions|requests) a second")
SETTING = re.compile(r"[0-9.]+ ms ping|ping of (?:[0-9.]+ and )?[0-9.]+ ms")
"""A ping is what was asked for."""
GENERATED = re.compile(r"<!-- figures -->.*<!-- end of figures -->", re.DOTALL)
END = re.compile(r"(?<=[.:;])\s+|\n\n|\n[*|]")


def repeated(text: str) -> list[str]:
    """Sentences that name a table of results and a measured number."""
    sentences = END.split(SETTING.sub("", GENERATED.sub("", text)))
    return [sentence for sentence in sentences if TABLE.search(sentence) and MEASURED.search(sentence)]


def test_pages_name_tables_without_their_numbers() -> None:
    found = {}
    for path in [*sorted((ROOT / "docs" / "pages").rglob("*.md")), ROOT / "README.md", ROOT / "SECURITY.md"]:
        if repeated(path.read_text()):
            found[str(path.relative_to(ROOT))] = repeated(path.read_text())
    assert not found, "point to results/README.md instead"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("A block took 12.0 ms by tables (`results/toprf.csv`).", True),
        ("It computes 3,300 blocks a second ([measured](results/README.md)).", True),
        ("A block takes 12.0 ms.", False),
        ("Over links of 1 ms ping, and at a ping of 1 and 10 ms: `results/latency.csv`.", False),
        ("<!-- figures -->\n| 5 s | (results/README.md) |\n<!-- end of figures -->", False),
    ],
)
def test_a_repeated_number_is_found(text: str, wrong: bool) -> None:
    assert bool(repeated(text)) == wrong
