"""``make bench-paper004``: sampling, conversion, keys and decryption beside the figures of GMPFHE (params/published/004_*.csv).

Every party is a process of this host, over TLS, semi-honest with a dishonest majority (`semi2k`, `semi`), correlated randomness included. Rows of tables 2 to 4
are measured with each method that takes less than minutes, among them the paper's own: medians of several runs, with a mark at the fastest. A row of one size is
for one result of a ``batch``. Conversions use a prime of 60 and one of 62 bits (``q_bits``); the paper's has 64.

``link``: none, or the paper's networks, simulated; then the links of a party share the bandwidth (``shared_link``), as those of the paper's machines. ``runs``: 5 for
up to 4 parties, 3 for up to 8, and 1. ``cpu_party``: CPU of the busiest party for one result, in the unit of the row: all parties share the cores of this host, and
the paper's had two each.

``ours`` of a row of bytes is what one party sends and receives. The paper does not say whose bytes its figures are. They seem to be those of one party: in tables 2 and 3 they grow as n - 1, what one of n
exchanges with the others, in table 4 as the sum of 2^i - 1 for i up to log2 n, what one exchanges in a tree.
``sent_by_a_party`` is the most that a party sends, ``ours_all_parties`` what all parties send. For decryption ``ours`` is what a party sends, as the paper's.

Decryption is online, of one ciphertext: opened plainly at the last prime, as the paper does, which gives the secret key away and which no command does; and flooded,
at the fewest primes that hold the flooding. Table 6 and appendix A: sizes of keys, computed, with our Galois keys; and ANDs of a key generation, counted. Section
4.3: powers by quartic tuples or by triples.

Ends with the number of figures that were compared, and names every row that is not below the paper's, and every figure of the paper without a row of ours.
Rows that were not measured stay in the table.

    python -m bench.paper004 [--parties 2,4,8,16] [--link none,paper004-lan,paper004-wan] [--only 'Z2 to Zq'] [--repeats N] [--quick]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.errors import ParameterError
from keyquorum.parties import run_processes

from ..runner import CIRCUMSTANCES, Arguments, Bench, Options, Row, committee_of
from .beside import NETWORKS, Asked, Cost, summary, time_and_traffic
from .cnn import KEY_SETS, KeySet, decryption_rows, key_rows, size_rows
from .counts import and_rows, power_rows
from .methods import methods

PLAIN, FLOODED, SIZES, ANDS, POWERS = "decryption plain", "decryption flooded", "table 6 sizes of keys", "appendix A ANDs", "section 4.3 powers"
RUNS = ((4, 5), (8, 3))
"""Up to so many parties, and runs of each row; one run for more."""


@dataclass(frozen=True)
class Case:
    """What is measured together: a row of tables 2 to 4 with all its methods, or one of the other rows."""

    row: str
    parties: int
    link: str

    @property
    def label(self) -> str:
        """The text in which the words of ``--only`` are looked for."""
        return f"{self.row} n={self.parties} {self.link}"


def repeats(parties: int, options: Options) -> int:
    """Runs of each row."""
    return options.repeats or next((runs for most, runs in RUNS if parties <= most), 1)


def key_row(made: KeySet) -> str:
    """The row of a key generation."""
    return f"key generation {made.name} {made.error_law}"


def row_names(quick: bool = False) -> list[str]:
    """Rows that are measured for every number of parties and link. ``quick``: all keys are of one set."""
    keys = KEY_SETS[:2] if quick else KEY_SETS
    return [*dict.fromkeys(m.row for m in methods()), *map(key_row, keys), PLAIN, FLOODED]


def cases(options: Options) -> Iterator[Case]:
    """All measurements. What does not depend on links is measured once, and powers among two parties."""
    links = options.link.split(",")
    for link in links:
        if link not in NETWORKS:
            raise ParameterError(f"link {link!r} is no network of the paper: choose from {', '.join(NETWORKS)}")
    for parties in map(int, options.parties.split(",")):
        for link in links:
            yield from (Case(row, parties, link) for row in row_names(options.quick))
        if parties == 2:
            yield Case(POWERS, parties, "none")
            yield Case(ANDS, parties, "none")
            yield Case(SIZES, parties, "none")


def method_rows(row: str, asked: Asked) -> list[Row]:
    """A row of tables 2 to 4 with each method and each length of q; for each length the fastest method is marked."""
    found: dict[int | str, list[tuple[float, list[Row]]]] = {}
    with committee_of(ADDITIVE, asked.parties) as committee:
        for index, method in enumerate(methods()):
            if method.row != row:
                continue
            for bits in method.bits or (60,):
                job = {"kind": "bench:paper004", "method": index, "bits": bits, "quick": asked.quick, "repeats": asked.repeats, **asked.job}
                results = run_processes(committee.folder, job, io_timeout=900)
                size = method.quick if asked.quick else method.size
                cost = Cost.of([r["runs"] for r in results], size if method.batch else 1)
                other_size = asked.quick and not method.batch
                row_of: Row = {
                    "table": method.table, "row": f"{row.rsplit(' ', 1)[0]} {size}" if other_size else row, "cell": row, "method": method.name, "best": "no",
                    "q_bits": bits if method.bits else "", "batch": size if method.batch else 1,
                }  # fmt: skip
                match = None if other_size else method.match
                made = time_and_traffic(row_of | asked.columns, asked, match, (method.time, method.traffic), cost)
                found.setdefault(bits, []).append((cost.seconds, made))
    for tried in found.values():
        for best in min(tried, key=lambda t: t[0])[1]:
            best["best"] = "yes"
    return [each for tried in found.values() for _, rows in tried for each in rows]


ROWS: dict[str, Callable[[Asked], Iterable[Row]]] = {
    POWERS: power_rows,
    ANDS: and_rows,
    SIZES: lambda asked: size_rows(),
    PLAIN: lambda asked: decryption_rows(asked, False),
    FLOODED: lambda asked: decryption_rows(asked, True),
    **{key_row(made): partial(key_rows, made=made) for made in KEY_SETS},
}
"""What measures a row; all other rows are measured with each of their methods."""


def job(case: Case, options: Options) -> Iterable[Row]:
    """The rows of a case."""
    asked = Asked(case.parties, case.link, repeats(case.parties, options), options.quick)
    return ROWS.get(case.row, partial(method_rows, case.row))(asked)


OPTIONS: Arguments = {
    "parties": {"default": "2,4", "help": "comma-separated (2, 4, 8, 16)"},
    "link": {"default": "none", "help": f"comma-separated: {', '.join(NETWORKS)}"},
    "repeats": {"type": int, "default": 0, "help": "runs of each row (default: 5 for up to 4 parties, 3 for up to 8, 1)"},
    "quick": {"action": "store_true", "help": "small batches, vectors and keys: whether it runs, not how fast; no table is written"},
}
COLUMNS = (
    "table", "row", "method", "best", "parties", "quantity", "ours", "ours_all_parties", "paper", "ratio", "link", "shared_link", "q_bits", "batch", "sent_by_a_party",
    "cpu_party", "runs", "version", "commit", "busy", "machine", "cores", "command",
)  # fmt: skip
SHOWN = (
    "table",
    "row",
    "method",
    "best",
    "parties",
    "link",
    "q_bits",
    "batch",
    "quantity",
    "ours",
    "sent_by_a_party",
    "cpu_party",
    "paper",
    "ratio",
    "runs",
)
BENCH = Bench(
    "paper004", cases, job, COLUMNS, summary=summary, shown=SHOWN, label=lambda case: case.label, options=OPTIONS, restricting=("quick",),
    key=("row", "method", "parties", "link", "q_bits", "quantity"), failed=lambda rows: any(row.get("wrong") for row in rows),
)  # fmt: skip
assert set(CIRCUMSTANCES) < set(COLUMNS)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
