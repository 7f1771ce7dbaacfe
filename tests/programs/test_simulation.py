"""Simulation of the online roundings (docs/pages/model.md): what is opened is the list of openings there and nothing else; it is uniform, whatever message and
noise are; and the shares of the message are uniform but for the message.

The openings are taken from the engine itself, below the programs. The masks come from the programs that make them, in the same session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from scipy import stats

from tests.long import LONG
from tests.plans.distributions import bits_of, smallest_p
from tests.protocols import MAC_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, VERIFIED_RING, Backend

from .costs import PROGRAMS, below_ands
from .running import at_every_party

L, J, COUNT = 12, 3, 4096
FALSE_ALARM = 1e-6
"""Of each test of a program and protocol, over all its bits."""
LONG_RUN = pytest.mark.skipif(not LONG, reason="220,000 bits with MACs; KEYQUORUM_LONG=1 runs it")
Log = list[tuple[str, Any]]


class Watched:
    """An engine whose openings are kept: the operation with its size and bits, and the value."""

    def __init__(self, engine: Any, log: Log) -> None:
        self._engine, self._log = engine, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def open(self, a: Any) -> Any:
        made = self._engine.open(a)
        self._log.append((f"open {a.kind} {a.size}", made))
        return made

    def open_low(self, a: Any, bits: int) -> Any:
        made = self._engine.open_low(a, bits)
        self._log.append((f"open {a.kind} {a.size} low {bits}", made))
        return made

    def open_masked(self, a: Any, bits: int) -> Any:
        made = self._engine.open_masked(a, bits)
        self._log.append((f"open {a.kind} {a.size} masked low {bits}", made))
        return made

    def open_to(self, a: Any, player: int) -> Any:
        self._log.append((f"open {a.kind} {a.size} to {player}", None))
        return self._engine.open_to(a, player)


@dataclass
class Seen:
    """Openings of the online program at party 0, with the words of those to all, and each party's shares of what it stores."""

    openings: list[str]
    words: list[np.ndarray]
    shares: list[np.ndarray]


def masks_of(program: str, macs: bool = False) -> list[tuple[str, list[Any]]]:
    """The programs that make the preprocessing of an online program, with arguments."""
    if program == "round_ltz_table_online":
        return [("ltz_tables", [COUNT, L, 4, 2, "binary", 0, "made"])]
    if program == "round_mask_open_online":
        return [("round_mask", [COUNT, L])]
    return [("round_mask", [COUNT, L, "all", int(not macs)]), ("and_triples", [COUNT, below_ands(L)])]


def arguments_of(program: str, destination: str) -> list[Any]:
    if program == "round_ltz_table_online":
        return [COUNT, L, J, 4, 2, destination, 0, COUNT]
    more = [64, 1] if program == "round_ltz_circuit_online" else [64]
    return [COUNT, L, J, destination, 0, COUNT, *more]


def see(program: str, backend: Backend, z: Sequence[int], destination: str, masked: bool = True) -> Seen:
    """Runs the online program on shares of z. ``masked``: without it all preprocessing is zero."""

    def one(session: Any) -> tuple[list[str], list[np.ndarray], np.ndarray]:
        engine = session.engine(backend.protocol, backend.domain, "deal", None)
        values = np.asarray(z, dtype=np.int64)
        dealt = engine.input(0, COUNT, values if session.party == 0 else None)
        shares = ShareVector()
        shares.write(engine, engine.export(dealt))
        for name, words in masks_of(program, backend is MAC_RING):
            engine = session.engine(backend.protocol, backend.domain, name, None)
            run_program(engine, PROGRAMS / f"{name}.mpc", [str(w) for w in words], ProgramIO(shares=shares))
        if not masked:
            shares.words[:, COUNT:] = 0
        start, log = shares.length, Log()
        engine = session.engine(backend.protocol, backend.domain, program, None)
        words = [str(w) for w in arguments_of(program, destination)]
        run_program(Watched(engine, log), PROGRAMS / f"{program}.mpc", words, ProgramIO(shares=shares))  # type: ignore[arg-type]
        read = [np.asarray(engine.read_bits(v) if v.kind == "cb" else engine.read(v)).astype(np.uint64) for _, v in log if v is not None]
        return [name for name, _ in log], read, shares.words[:, start:].copy()

    results = at_every_party(backend.parties, one)
    assert all(r[0] == results[0][0] for r in results)
    return Seen(results[0][0], results[0][1], [r[2] for r in results])


RNG = np.random.default_rng(17)
LOW = f"open s {COUNT} low {L}"
MASKED = f"open s {COUNT} masked low {L}"
BITS = f"open sb {COUNT}"
BIT = f"open s {COUNT} masked low 1"
OPENED = {
    "round_ltz_circuit_online": [LOW, *[BITS] * (2 * below_ands(L) + 1)],
    "round_ltz_table_online": [MASKED, f"open s {COUNT} masked low 4"],
    "round_mask_open_online": [MASKED],
}
OPENED_WITH_MACS = {**OPENED, "round_ltz_circuit_online": [MASKED, *[BIT] * (2 * below_ands(L))]}
"""What a run opens before the messages. Tables: two bits for the blocks of 4, and their signs: 4 bits in all."""
PROGRAMS_AND_RINGS = pytest.mark.parametrize(
    ("program", "ring"),
    [
        (program, ring)
        for program in OPENED
        for ring in (SEMI_RING, SEMI_RING_4, REPLICATED_RING, VERIFIED_RING)
        if ring != SEMI_RING_4 or "circuit" not in program
    ],
    ids=str,
)


def ciphertexts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Messages m, noises e + 2^(l-1), and z = 2^l m + e + 2^(l-1) mod 2^64 with random bits above. Noise has the sizes of real ones, far from uniform."""
    messages, noises = RNG.integers(0, 1 << J, COUNT), RNG.integers(-200, 200, COUNT) + (1 << (L - 1))
    high = RNG.integers(0, 1 << (63 - L - J), COUNT)
    return messages, noises, (high << (L + J)) + (messages << L) + noises


def opened_bits(found: Seen) -> list[np.ndarray]:
    lengths = {BITS: 1, LOW: L, MASKED: L, BIT: 1}
    return [bit for name, words in zip(found.openings, found.words, strict=True) for bit in bits_of(words, lengths.get(name, 4))]


@PROGRAMS_AND_RINGS
def test_openings_are_those_of_the_table_and_uniform(program: str, ring: Backend) -> None:
    """Also together with the bits of message and noise, as far as pairs of bits show it. Then the same with masks that are zero: that is found."""
    messages, noises, z = ciphertexts()
    known = [*bits_of(messages, J), *bits_of(noises, L - 3)]
    found = see(program, ring, z.tolist(), "share")
    assert found.openings == OPENED[program]
    assert smallest_p(opened_bits(found), known) > FALSE_ALARM
    bytes_ = (found.words[0] & np.uint64(0xFF)).astype(np.int64)
    assert stats.chisquare(np.bincount(bytes_, minlength=256)).pvalue > FALSE_ALARM
    assert smallest_p(opened_bits(see(program, ring, z.tolist(), "share", masked=False)), known) < FALSE_ALARM


@pytest.mark.parametrize(
    "program", [p if p not in ("round_ltz_circuit_online", "round_ltz_table_online") else pytest.param(p, marks=LONG_RUN) for p in OPENED]
)
def test_with_macs_openings_are_those_of_the_table_and_uniform(program: str) -> None:
    """Of spdz2k, two parties: as :func:`test_openings_are_those_of_the_table_and_uniform`, with nothing that is opened to all but under masks that the checks may wait for."""
    messages, noises, z = ciphertexts()
    known = [*bits_of(messages, J), *bits_of(noises, L - 3)]
    found = see(program, MAC_RING, z.tolist(), "0")
    assert found.openings == [*OPENED_WITH_MACS[program], f"open s {COUNT} to 0"]
    assert smallest_p(opened_bits(replace(found, openings=found.openings[:-1])), known) > FALSE_ALARM


@pytest.mark.parametrize("program", OPENED)
@pytest.mark.parametrize(("destination", "last"), [("all", f"open s {COUNT} low {L + J}"), ("0", f"open s {COUNT} to 0")])
def test_only_messages_are_opened_besides(program: str, destination: str, last: str) -> None:
    """To all: the highest bits are the message, and all others are zero."""
    messages, _, z = ciphertexts()
    found = see(program, SEMI_RING, z.tolist(), destination)
    assert found.openings == [*OPENED[program], last]
    if destination == "all":
        right = found.words[-1] == messages.astype(np.uint64) << np.uint64(L)
        assert right.all() or (program == "round_mask_open_online" and right.mean() > 0.85)


@PROGRAMS_AND_RINGS
def test_shares_of_messages_are_uniform_given_the_message(program: str, ring: Backend) -> None:
    """The sums of the summands that any coalition lacks one of: uniform in the bits that there are, and without relation to message and noise."""
    messages, noises, z = ciphertexts()
    known = [*bits_of(messages, J), *bits_of(noises, L - 3)]
    found = see(program, ring, z.tolist(), "share")
    if ring in (REPLICATED_RING, VERIFIED_RING):
        summands = [found.shares[party][0] for party in range(3)]
        assert all(
            np.array_equal(found.shares[party][1], summands[(party + 1) % 3]) or np.array_equal(found.shares[party][1], summands[(party + 2) % 3])
            for party in range(3)
        )
    else:
        summands = [shares[0] for shares in found.shares]
    total = np.sum(np.stack(summands).astype(np.uint64), axis=0, dtype=np.uint64)
    assert (total >> np.uint64(64 - J) == messages.astype(np.uint64)).mean() > 0.85
    assert not (total & np.uint64((1 << (64 - J)) - 1)).any()
    views = [subset for size in range(1, len(summands)) for subset in combinations(summands, size)]
    seen = [bit for view in views for bit in bits_of(np.sum(np.stack(view), axis=0, dtype=np.uint64), L + J, 64 - L - J)]
    assert smallest_p(seen, known) > FALSE_ALARM
    assert smallest_p(list(bits_of(total, J, 64 - J)), known) < FALSE_ALARM
