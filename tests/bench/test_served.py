"""The benchmark of served decryptions with MACs: a small run, and the rounds that the documentation states."""

from __future__ import annotations

import pytest
from bench import served
from keyquorum.fhe.lwe import lwe_parameters

LENGTH = lwe_parameters("lwe64-p2").noise_length


def test_rounds_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Commitments, a toss, the openings of the rounding, their check, the opening under pads, its check."""
    assert served.BENCH.main(["--parties", "2", "--counts", "1", "--runs", "1"]) == 0
    fields = dict(word.split("=") for word in capsys.readouterr().out.split() if "=" in word)
    assert int(fields["rounds"]) == 1 + 2 + 1 + (LENGTH - 1).bit_length() + 2 + 1 + 2
    assert int(fields["answer_bytes"]) == 32 * 4 + 16 * 3 and fields["n"] == "2"
