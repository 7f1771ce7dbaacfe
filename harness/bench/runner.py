"""The runner of benchmarks: options, cases one after another, a line for each row, and a table that says where it comes from."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import keyquorum
from keyquorum import api
from keyquorum.backends.mpspdz import Checkout
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.idle import busy_cores
from keyquorum.parties import PhaseReport
from keyquorum.schemes.keys import Parameters
from keyquorum.sweep.rows import commit, machine
from keyquorum.terminal.output import console, fail
from keyquorum.terminal.progress import progress_bars

Row = dict[str, str | int | float]
C = TypeVar("C")
Options = argparse.Namespace
Arguments = Mapping[str, Mapping[str, Any]]
RESULTS = Path("results")
MACHINE = ("cores", "machine", "version")
CIRCUMSTANCES = ("busy", *MACHINE)
"""Columns that say where a row comes from. ``busy``: cores that other work kept busy when the measurement began."""


@dataclass(frozen=True)
class Bench(Generic[C]):
    """A benchmark. ``name``: of its lines, and of its table in ``results``; ``cases``: what is measured, by the options; ``job``: measures a case; its rows
    may have more than the ``columns`` of the table. Without columns there is no table.

    ``reference``: lines with figures of others, printed in the end; figures that belong to a row are columns of it. ``beside_mp_spdz``: MP-SPDZ is measured
    too, where MP_SPDZ_HOME names a checkout (``options.checkout``, or None); a table without its figures does not replace one that has them."""

    name: str
    cases: Callable[[Options], Iterable[C]]
    job: Callable[[C, Options], Iterable[Row]]
    columns: tuple[str, ...]
    reference: Callable[[], Iterable[str]] = tuple
    summary: Callable[[Sequence[Row]], Iterable[str]] = lambda rows: ()
    """Lines about all rows, printed in the end."""
    shown: tuple[str, ...] = ()
    """Columns of the printed lines; none: all columns but those of :data:`MACHINE`, and commits."""
    table: Callable[[Options], str] = lambda options: ""
    """The name of the table, if it is not that of the benchmark."""
    label: Callable[[C], str] = lambda case: " ".join(map(str, vars(case).values()))
    """The text of a case in which the words of ``--only`` are looked for."""
    axes: tuple[str, ...] = ()
    """Fields of a case that have options, with which values are chosen."""
    options: Arguments = field(default_factory=dict)
    """Options of this benchmark: of each name what :meth:`argparse.ArgumentParser.add_argument` takes."""
    restricting: tuple[str, ...] = ()
    """Those of them with which, if their values are not the defaults, no table is written."""
    key: tuple[str, ...] = ()
    """Columns by which rows of the table are known that stay there if they are not measured; none: a table is always measured as a whole."""
    phases: tuple[str, ...] = ()
    """Columns of a second table, ``NAME_phases``: of the rows that have a ``phase``, which are not printed."""
    more: Callable[[Sequence[Row], Path], object] = lambda rows, folder: None
    """Makes further files of a table that is written, in its folder."""
    failed: Callable[[Sequence[Row]], bool] = lambda rows: False
    """Whether rows are not as they must be: the exit code is 1 then."""

    def chosen(self, options: Options) -> list[C]:
        """The cases that the options leave."""
        wanted = {axis: set(getattr(options, axis).split(",")) for axis in self.axes if getattr(options, axis)}
        words = options.only.split()
        return [
            case
            for case in self.cases(options)
            if all(word in self.label(case) for word in words) and all(str(getattr(case, axis)) in values for axis, values in wanted.items())
        ]

    def measure(self, case: C, options: Options) -> list[Row]:
        """The rows of a case, with where they come from."""
        origin = circumstances()
        if self.beside_mp_spdz:
            origin["mpspdz_commit"] = options.checkout.commit if options.checkout else ""
        return [{**row, **origin} for row in self.job(case, options)]

    @property
    def beside_mp_spdz(self) -> bool:
        """Whether the table has figures of MP-SPDZ."""
        return "mpspdz_commit" in self.columns

    def line(self, row: Row) -> str:
        """The line of a row, ``name: column=value ...``."""
        shown = self.shown or tuple(name for name in self.columns if name not in (*MACHINE, "commit", "mpspdz_commit"))
        return f"{self.name}: " + " ".join(f"{name}={str(row[name]).replace(' ', '_') or 'none'}" for name in shown if name in row)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measures the chosen cases; exit code 2 after an error. The table is written if its folder is there, and no option left out cases."""
        words = sys.argv[1:] if arguments is None else list(arguments)
        options = self._parser().parse_args(words)
        rows: list[Row] = []
        try:
            cases = self.chosen(options)
            if not cases:
                raise ParameterError(f"no measurement of {self.name} has these values: leave out options to see all")
            options.checkout = Checkout.find(None) if self.beside_mp_spdz and os.environ.get("MP_SPDZ_HOME") else None
            for case in cases:
                for row in self.measure(case, options):
                    if "phase" not in row:
                        console.print(self.line(row), markup=False, highlight=False, soft_wrap=True)
                    rows.append({**row, "command": " ".join([f"python -m {_module()}", *words])})
        except KeyQuorumError as error:
            fail(str(error))
            return 2
        for line in (*self.reference(), *self.summary(rows)):
            console.print(line, markup=False, soft_wrap=True)
        self._keep(rows, options)
        console.print(f"\nmachine: {machine()}, {os.cpu_count()} cores, all parties on it")
        return int(self.failed(rows))

    def _keep(self, rows: Sequence[Row], options: Options) -> None:
        """Writes the table if the options allow it."""
        path = options.output or RESULTS / f"{self.table(options) or self.name}.csv"
        usual = self._parser().parse_args([])
        choices = (*self.restricting, *(() if self.key else ("only", *self.axes)))
        part = any(getattr(options, name) != getattr(usual, name) for name in choices)
        poorer = self.beside_mp_spdz and options.checkout is None and path.exists()
        if self.columns and (options.output or (path.parent.is_dir() and not part and not poorer)):
            self.write(path, rows)

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Writes the table, and what belongs to it."""
        table = [row for row in rows if "phase" not in row]
        write_table(path, table, self.columns, self.key)
        if self.phases:
            key = tuple(name for name in (*self.key, "phase") if self.key and name in self.phases)
            write_table(path.with_stem(f"{path.stem}_phases"), [row for row in rows if "phase" in row], self.phases, key)
        self.more(table, path.parent)

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m {_module()}", description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--only", default="", help="cases in whose names all these words occur; the table is not written then")
        parser.add_argument("--output", type=Path, help="write this table, also of a part (default: one in results, of all)")
        for axis in self.axes:
            parser.add_argument(f"--{axis}", default="", help="some of them, comma-separated (default: all)")
        for name, words in self.options.items():
            parser.add_argument(f"--{name}", **words)
        return parser


def one_of(benches: Mapping[str, Bench[Any]], arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark that the first word of the command line names."""
    name, *words = [*(sys.argv[1:] if arguments is None else arguments), ""]
    if name not in benches:
        fail(f"name a benchmark first: {' or '.join(benches)}")
        return 2
    return benches[name].main(words[:-1])


def _module() -> str:
    """The module that was started."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec.name.removesuffix(".__main__") if spec else "bench"


def circumstances() -> Row:
    """Where a measurement is made that begins now."""
    busy = busy_cores()
    return {
        "busy": "" if busy is None else f"{busy:.2f}", "cores": os.cpu_count() or 0, "machine": machine(),
        "version": keyquorum.__version__, "commit": commit(),
    }  # fmt: skip


@contextmanager
def committee_of(protocol: str, parties: int, **options: Any) -> Iterator[Committee]:
    """A new committee with all parties on this host; its folder is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        yield api.init(Path(folder) / "committee", parties, protocol, **options)


def new_key(protocol: str, parties: int, parameters: str | Parameters, **options: Any) -> tuple[api.KeygenResult, float, int]:
    """Makes a key, by processes of this host over TLS; returns also the seconds from their start to the files on disk, and bytes of public files."""
    with committee_of(protocol, parties) as committee, progress_bars() as report:
        start = time.monotonic()
        result = api.keygen(committee, "bench", parameters, progress=report, io_timeout=900, **options)
        seconds = time.monotonic() - start
        return result, seconds, sum((result.folder / name).stat().st_size for name in result.info.files)


def phase_rows(who: Row, phases: Iterable[PhaseReport], cpu: bool = False) -> list[Row]:
    """A row for each phase of a party."""
    return [
        {**who, "phase": p.name, "seconds": round(p.seconds, 3), **({"cpu_seconds": round(p.cpu_seconds, 3)} if cpu else {}),
         "sent_mb": round(p.bytes_sent / 1e6, 3), "rounds": p.rounds}
        for p in phases
    ]  # fmt: skip


def write_table(path: Path, rows: Sequence[Row], columns: Sequence[str] = (), key: Sequence[str] = ()) -> None:
    """Writes rows as CSV. ``columns``: those of the table (default: those of the first row); the commit that was measured is the last, unless it is
    among them. ``key``: rows of the table stay whose values in these columns no new row has."""
    names = list(dict.fromkeys([*(columns or rows[0]), "commit"]))

    def known(row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in key)

    stamp: Row = {"commit": commit()}
    new = {known(row) if key else number: stamp | row for number, row in enumerate(rows)}
    with path.open(newline="") if key and path.exists() else io.StringIO() as file:
        kept = [new.pop(known(row), row) for row in csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows([*kept, *new.values()])


def add_line(path: Path, row: Row) -> None:
    """Adds a row to a table of counts, whose rows are added up. Columns that the table lacks are added, empty in its older rows."""
    with path.open(newline="") if path.exists() else io.StringIO() as file:
        rows: list[dict[str, str | int | float]] = [dict(old) for old in csv.DictReader(file)]
    names = list(dict.fromkeys(name for one in (*rows, row) for name in one))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows([*rows, row])


__all__ = [
    "CIRCUMSTANCES", "MACHINE", "RESULTS", "Arguments", "Bench", "Options", "Row", "add_line", "circumstances", "committee_of", "new_key", "one_of", "phase_rows", "write_table",
]  # fmt: skip
