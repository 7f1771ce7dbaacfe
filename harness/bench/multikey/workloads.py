"""What is timed of the multi-key baseline, in this process: sums, products, relinearised products, and rows of RGSW products. Every result is decrypted and
compared, outside of the times unless the row says otherwise."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model import published
from keyquorum.model.errors import KeyQuorumError

from ..runner import Row
from . import relinearisation, rgsw, scheme
from .gadgets import GADGETS, Gadget
from .relinearisation import EvaluationKey
from .ring import Ints
from .scheme import Ciphertext, Layout, Party, Product, Reference
from .sets import BGV

R = TypeVar("R")


class WrongResultError(KeyQuorumError):
    """A result of the baseline is not what was computed in clear: its times are worth nothing."""


@dataclass(frozen=True)
class Times:
    """Milliseconds of several runs: median, fastest, slowest, and the median of the CPU time."""

    ms: float
    low: float
    high: float
    cpu: float
    runs: int

    @property
    def cells(self) -> Row:
        """Columns of a row."""
        return {
            "quantity": "ms",
            "ours": rounded(self.ms),
            "low": rounded(self.low),
            "high": rounded(self.high),
            "runs": self.runs,
            "cpu_ms": rounded(self.cpu),
        }


def rounded(x: float) -> float:
    """Four digits."""
    return float(f"{x:.4g}")


def timed(run: Callable[[], R], runs: int, warm_up: bool = True) -> tuple[Times, R]:
    """Times of several runs after one that does not count, and the last result."""
    if warm_up:
        run()
    seconds, cpu = [], []
    for _ in range(runs):
        start, used = time.perf_counter(), time.process_time()
        result = run()
        seconds.append(1e3 * (time.perf_counter() - start))
        cpu.append(1e3 * (time.process_time() - used))
    return Times(statistics.median(seconds), min(seconds), max(seconds), statistics.median(cpu), runs), result


class Keys:
    """Keys of parties under one gadget, made as they are needed."""

    def __init__(self, parameters: ParameterSet, gadget: str) -> None:
        self.gadget: Gadget = GADGETS[gadget](parameters)
        self.t, self.degree = parameters.plain_modulus, parameters.ring_degree
        self.parties: list[Party] = []
        self.evaluation: dict[int, EvaluationKey] = {}
        self.rng = np.random.default_rng()

    @cached_property
    def reference(self) -> Reference:
        """The common reference string."""
        return Reference(self.gadget, os.urandom(32))

    def of(self, k: int, evaluation: bool = False) -> list[Party]:
        """The first k parties, and their evaluation keys if asked for."""
        while len(self.parties) < k:
            self.parties.append(Party(len(self.parties), self.reference))
        for party in self.parties[:k] if evaluation else ():
            if party.index not in self.evaluation:
                self.evaluation[party.index] = relinearisation.evaluation_key(party)
        return self.parties[:k]

    def values(self, k: int) -> Ints:
        """Random values of k parties, [k, N] modulo t. They are no secrets."""
        return self.rng.integers(0, self.t, (k, self.degree))

    def fresh(self, values: Ints, layout: Layout = "compact") -> list[Ciphertext]:
        """A ciphertext of each party."""
        parties = self.of(len(values))
        return [scheme.encrypt(self.reference, p.public, scheme.encode(v, self.t), layout) for p, v in zip(parties, values, strict=True)]

    def sum(self, ciphertexts: list[Ciphertext]) -> Ciphertext:
        """The sum, of all parties."""
        return scheme.total(self.gadget, ciphertexts)

    def check(self, of: Ciphertext | Product, values: Ints) -> None:
        """Decrypts with all secrets. Raises WrongResultError."""
        secrets = {p.index: p.secret for p in self.parties}
        if not np.array_equal(scheme.decode(scheme.decrypt(self.gadget, of, secrets), self.t), values % self.t):
            raise WrongResultError(f"a ciphertext of {len(of.parties)} parties decrypts to something else: the baseline is wrong")

    def multiply(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """A relinearised product."""
        publics = {p.index: p.public for p in self.parties}
        return relinearisation.relinearise(self.gadget, scheme.multiply(self.gadget, a, b), publics, self.evaluation)


@lru_cache(maxsize=2)  # keys of bit gadgets take hundreds of megabytes
def keys(parameters: ParameterSet, gadget: str) -> Keys:
    """Keys of a set and gadget, made once while they are in use."""
    return Keys(parameters, gadget)


def paper(table: str, column: str, value: int) -> float | None:
    """The figure of paper 001 in the row of a table where ``column`` has this value, ms; None if there is no such row."""
    for row in published.load(table):
        if row[column] == value:
            return float(row["ms"] or 0) if "ms" in row else 1e3 * (60 * float(row["minutes"] or 0) + float(row["seconds"] or 0))
    return None


def beside(table: str, ours: float, figure: float | None) -> Row:
    """Columns for a published figure, if there is one."""
    return {} if figure is None else {"table": table, "paper": figure, "ratio": float(f"{figure / ours:.3g}")}


def _row(workload: str, reading: str, made: Keys, parties: int, times: Times, table: str = "") -> Row:
    figure = paper(table, "parties", parties) if table and made.gadget.parameters is BGV else None
    return {
        "workload": workload, "reading": reading, "parameters": made.gadget.parameters.name, "gadget": made.gadget.name, "parties": parties, "threads": 1,
        **times.cells, **beside(table, times.ms, figure),
    }  # fmt: skip


def additions(parameters: ParameterSet, k: int, runs: int) -> Iterator[Row]:
    """W1: what table 1 of paper 001 may have measured, in three readings."""
    made, table = keys(parameters, "rns"), "001_table1_addition"
    x = made.values(k)
    fresh = made.fresh(x)
    whole = made.sum(fresh)
    for reading, run, factor in (
        ("one addition", lambda: scheme.add(made.gadget, whole, whole), 2),
        ("k ciphertexts extended and added", lambda: made.sum(fresh), 1),
        ("k ciphertexts encrypted, extended and added", lambda: made.sum(made.fresh(x)), 1),
    ):
        times, result = timed(run, runs)
        made.check(result, factor * x.sum(axis=0))
        yield _row("W1", reading, made, k, times, table)


def products(parameters: ParameterSet, k: int, runs: int) -> Iterator[Row]:
    """W2: products that are not relinearised, what table 2 of paper 001 may have measured, in four readings."""
    made, table = keys(parameters, "rns"), "001_table2_multiplication"
    layouts: tuple[tuple[Layout, str], ...] = (("compact", "k + 1 polynomials"), ("pairs", "2 k polynomials"))
    for layout, polynomials in layouts:
        x, y = made.values(k), made.values(k)
        wanted = x.sum(axis=0) * y.sum(axis=0)
        a, b = made.sum(made.fresh(x, layout)), made.sum(made.fresh(y, layout))

        times, result = timed(partial(scheme.multiply, made.gadget, a, b), runs)
        made.check(result, wanted)
        yield _row("W2", polynomials, made, k, times, table)
        times, _ = timed(partial(_checked_product, made, a, b, wanted), runs)
        yield _row("W2", f"{polynomials}, with decryption and check", made, k, times, table)


def _checked_product(made: Keys, a: Ciphertext, b: Ciphertext, wanted: Ints) -> None:
    made.check(scheme.multiply(made.gadget, a, b), wanted)


@cache
def relinearised(parameters: ParameterSet, gadget: str, k: int, runs: int) -> Times:
    """W2r: times of one relinearised product of two ciphertexts of k parties."""
    made = keys(parameters, gadget)
    made.of(k, evaluation=True)
    x, y = made.values(k), made.values(k)
    a, b = made.sum(made.fresh(x)), made.sum(made.fresh(y))
    times, result = timed(lambda: made.multiply(a, b), runs)
    made.check(result, x.sum(axis=0) * y.sum(axis=0))
    return times


def relinearised_products(parameters: ParameterSet, gadget: str, k: int, runs: int) -> Iterator[Row]:
    """The row of W2r."""
    times = relinearised(parameters, gadget, k, runs)
    yield _row("W2r", "multi-key", keys(parameters, gadget), k, times)


class _Rgsw:
    """Two RGSW encryptions of ternary polynomials under one key: rows of X are made when they are taken (all of them, or the first), rows of Y are in a file."""

    def __init__(self, gadget: Gadget, folder: Path, every_row: bool = False) -> None:
        self.gadget, ring = gadget, gadget.key_ring
        self.secret, self.x, self.y = (ring.ternary() for _ in range(3))
        self.rows = islice(rgsw.encrypt_rows(gadget, self.secret, self.x), None if every_row else 1)
        self.stored = rgsw.StoredRows.write(folder / "rows-of-y", gadget, rgsw.encrypt_rows(gadget, self.secret, self.y))

    def check(self, found: np.ndarray, number: int) -> None:
        """Whether a row (of the first half) encrypts w x y with noise that is a multiple of t. Raises WrongResultError."""
        gadget, data, digits = self.gadget, self.gadget.ring, slice(0, len(self.gadget.ring.primes))
        weighted = relinearisation.weighted(gadget, gadget.key_ring.mul(self.x, self.y))[digits, number]
        wanted = data.scale(weighted, pow(gadget.special, -1, data.modulus))
        noise = scheme.integers(gadget, data.sub(scheme.phase(gadget, Ciphertext((0,), found), {0: self.secret}), wanted))
        if any(noise % gadget.t) or 4 * max(map(abs, noise)) > data.modulus:
            raise WrongResultError(f"row {number} of an RGSW product encrypts something else: the baseline is wrong")


def rgsw_row(parameters: ParameterSet, gadget: str, threads: int, runs: int) -> Iterator[Row]:
    """W3: one row of X ⊡ Y, by bits what tables 3 and 4 of paper 001 measured. Y is read from a file."""
    made = keys(parameters, gadget)
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        pair = _Rgsw(made.gadget, Path(folder))
        first = next(pair.rows)
        with pair.stored:
            times, found = timed(lambda: rgsw.row_product(made.gadget, first, pair.stored, threads), runs)
    pair.check(found, 0)
    row = {**_row("W3", "one row of an RGSW product", made, 1, times), "threads": threads}
    tables = ("001_table3_rgsw_openfhe_1_1_1", "001_table4_rgsw_openfhe_1_0_3") if made.gadget.name == "bits" and parameters is BGV else ("",)
    for table in tables:
        yield {**row, **(beside(table, times.ms, paper(table, "threads", threads)) if table else {})}


def rgsw_all(parameters: ParameterSet) -> Iterator[Row]:
    """W3all: all rows of X ⊡ Y with the bit gadget, once; rows are made as they are multiplied, outside of the time."""
    made, spent, cpu = keys(parameters, "bits"), 0.0, 0.0
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        pair = _Rgsw(made.gadget, Path(folder), every_row=True)
        with pair.stored:
            for number, row in enumerate(pair.rows):
                times, found = timed(partial(rgsw.row_product, made.gadget, row, pair.stored), 1, warm_up=False)
                spent, cpu = spent + times.ms, cpu + times.cpu
                if number in (0, made.gadget.digits - 1):
                    pair.check(found, number)
    yield _row("W3all", f"all {2 * made.gadget.digits} rows", made, 1, Times(spent, spent, spent, cpu, 1))


__all__ = [
    "Keys",
    "Times",
    "WrongResultError",
    "additions",
    "keys",
    "paper",
    "products",
    "relinearised",
    "relinearised_products",
    "rgsw_all",
    "rgsw_row",
    "rounded",
    "timed",
]
