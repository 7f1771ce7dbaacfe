"""The benchmark of served decryptions with MACs: a small run, and the rounds that the documentation states."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import served
from keyquorum.fhe.lwe import lwe_parameters

from tests.long import LONG

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "roundings.md"
LENGTH = lwe_parameters("lwe64-p2").noise_length


def test_rounds_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Commitments, a toss, the openings of the rounding, their check, the opening under pads, its check."""
    assert served.BENCH.main(["--parties", "2", "--counts", "1", "--runs", "1"]) == 0
    fields = dict(word.split("=") for word in capsys.readouterr().out.split() if "=" in word)
    assert int(fields["rounds"]) == 1 + 2 + 1 + (LENGTH - 1).bit_length() + 2 + 1 + 2
    assert int(fields["answer_bytes"]) == 32 * 4 + 16 * 3 and fields["n"] == "2"


def test_the_page_has_the_rounds_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    for parties, counts in (("2", "1,100"), ("3", "1,100" if LONG else "1")):
        assert served.BENCH.main(["--parties", parties, "--counts", counts, "--runs", "1"]) == 0
    made = [
        dict(word.split("=") for word in line.split() if "=" in word) for line in capsys.readouterr().out.splitlines() if line.startswith("served:")
    ]
    assert [(row["n"], row["messages"]) for row in made] == [("2", "1"), ("2", "100"), ("3", "1"), *([("3", "100")] if LONG else [])]
    for row in made:
        line = f"| {row['n']} parties, {row['messages']} | {row['rounds']} | {int(row['bytes_sent']) / 1e3:.3g} | {int(row['answer_bytes']):,} |"
        assert line in PAGE.read_text().splitlines(), line
