"""Bits and conversions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..running import BINARY, RINGS, Backend, name, printed, run
from .spdz import FIELD, NEEDED, Work, encrypted, needs, work

__all__ = ["work"]

SPLIT_BITS = """
rows = sint.get_random(size=100).split_to_n_summands(4, program.use_split())
bits = [a ^ b ^ c for a, b, c in rows] if program.use_split() == 3 else [a ^ b for a, b in rows]
"""


@NEEDED
def test_random_bits_of_the_binary_domain_are_single(work: Work) -> None:
    """There is no vector of them; the bits of an edaBit are one."""
    assert work.run("ring", "x = sbit.get_random_bit(size=10)").failed
    assert work.run("ring", "x = sbits.get_type(10).get_random_bit(size=10)").failed
    text = "b = sint.get_edabit(3, False, size=10)[1]\nprint_ln('%s %s', len(b), b[2].n)"
    assert work.lines("ring", text) == ["3 10"]


@pytest.mark.parametrize("backend", BINARY, ids=name)
def test_bits_of_edabits_here(tmp_path: Path, backend: Backend) -> None:
    text = "b = sint.get_edabit(3, False, size=10)[1]\nprint_ln('%s %s', len(b), b[2].n)"
    assert printed(tmp_path, text, backend) == ["3 10"]


@NEEDED
@pytest.mark.parametrize(("protocol", "parties"), [("ring", 3), ("semi2k", 2)])
def test_bits_of_summands_cost_nothing(tmp_path: Path, protocol: str, parties: int) -> None:
    needs(protocol)
    work = Work(tmp_path, parties)
    done = work.run(protocol, SPLIT_BITS, run_time=encrypted(protocol))
    sent = re.search(r"Global data sent = (\S+) MB", done.output)
    assert not done.failed and sent and float(sent[1]) == 0, done.output[-500:]
    opened = SPLIT_BITS + "print_ln('%s', sum(sint(b).sum() for b in bits).reveal())"
    total = int(work.lines(protocol, opened, run_time=encrypted(protocol))[0])
    assert 120 <= total <= 280, "400 fair bits: eight standard deviations"


@pytest.mark.parametrize("backend", [b for b in RINGS if b[0] != "emulate"], ids=name)
def test_bits_of_summands_cost_nothing_here(tmp_path: Path, backend: Backend) -> None:
    stats = run(tmp_path, SPLIT_BITS, backend)[0].stats
    assert stats["bytes_sent"] == stats["rounds"] == 0


A2B = """
x = sint([11, 5, 0])
rows = sbitvec(x, 4, 4).v
print_ln('%s', [r.reveal() for r in rows])
print_ln('%s %s', sint(rows[0]).reveal(), sint(sbitvec(x, 4, 4)).reveal())
print_ln('%s', sint.bit_compose(rows).reveal())
"""
A2B_PRINTED = ["[3, 1, 2, 1]", "[1, 1, 0] [11, 5, 0]", "[11, 5, 0]"]
ROUTES = [
    ("ring", 3, []), ("ring", 3, ["-Z", "3"]), ("semi2k", 2, []), ("semi2k", 2, ["-Z", "2"]),
    ("spdz2k", 2, ["-X"]), ("spdz2k", 2, ["-Y"]), ("shamir", 3, ["-X", "-F", "16"]), ("shamir", 3, ["-Y", "-F", "16"]),
    ("semi", 2, ["-X", "-F", "16"]), ("semi", 2, ["-Y", "-F", "16"]), ("rep-field", 3, ["-F", "16"]), ("mascot", 2, ["-F", "16"]),
]  # fmt: skip


@NEEDED
@pytest.mark.parametrize(("protocol", "parties", "options"), ROUTES, ids=lambda v: "".join(v) if isinstance(v, list) else str(v))
def test_conversions(tmp_path: Path, protocol: str, parties: int, options: list[str]) -> None:
    """-Z on ring and semi2k, -X and -Y elsewhere; mascot and rep-field by their own calls."""
    needs(protocol)
    prime = list(FIELD) if "-F" in options else []
    lines = Work(tmp_path, parties).lines(protocol, A2B, compiler=options, run_time=[*prime, *encrypted(protocol)])
    assert lines == A2B_PRINTED


@NEEDED
@pytest.mark.parametrize("protocol", ["rep-field", "shamir", "spdz2k"])
def test_local_splits_are_for_ring_and_semi2k(tmp_path: Path, protocol: str) -> None:
    needs(protocol)
    parties = 2 if protocol == "spdz2k" else 3
    prime = [] if protocol == "spdz2k" else list(FIELD)
    done = Work(tmp_path, parties).run(
        protocol, "x = sint([3]).split_to_n_summands(2, 3)\nprint_ln('%s', x[0][0].reveal())", compiler=["-Z", "3"],
        run_time=[*prime, *encrypted(protocol)],
    )  # fmt: skip
    assert done.failed


@pytest.mark.parametrize("backend", BINARY, ids=name)
def test_conversions_here(tmp_path: Path, backend: Backend) -> None:
    from keyquorum.dsl import ProgramOptions

    assert printed(tmp_path, A2B, backend, options=ProgramOptions(field=16 if backend[2].startswith("F") else 0)) == A2B_PRINTED
