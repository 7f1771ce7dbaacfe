"""Key generation: ``make bench-keygen``.

With an honest majority CKKS at N = 16384, coefficient bits [60,52,52,52,52,52,52,60], public key, relinearisation key and 7 Galois keys (steps 1, 4, 16, 64, 256,
1024, 4096), each semi-honest protocol beside the one that verifies products. With MACs the public key of BFV at N = 4096, and public key and relinearisation key at N = 8192. Every party
is a process of this host, over TLS. Prints time, bytes and rounds a phase, and ends with one line a configuration.

    python -m bench.keygen [--only TEXT]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keyquorum import api
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.chosen_committees import REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS
from keyquorum.terminal.output import console, print_reports

from .runner import MACHINE, Bench, Options, Row, new_key, phase_rows

STEPS = (1, 4, 16, 64, 256, 1024, 4096)
COLUMNS = ("protocol", "parties", "parameters", "keys", "seconds", "rss_gb", "sent_mb", "rounds", *MACHINE)
PHASES = ("protocol", "parties", "parameters", "keys", "phase", "seconds", "sent_mb", "rounds")


@dataclass(frozen=True)
class Configuration:
    """A committee and its keys: ``steps`` are those of the Galois keys."""

    protocol: str
    parties: int
    parameters: str = "ckks-16384-bench"
    relinearisation: bool = True
    steps: tuple[int, ...] = STEPS

    @property
    def keys(self) -> str:
        """Which keys are made."""
        more = ["relinearisation"] if self.relinearisation else []
        return " + ".join(["public", *more, *([f"{len(self.steps)} Galois"] if self.steps else [])])


CONFIGURATIONS = (
    *(
        Configuration(p, n)
        for p, n in ((REPLICATED, 3), (VERIFIED_REPLICATED, 3), (SHAMIR, 3), (VERIFIED_SHAMIR, 3), (SHAMIR, 5), (VERIFIED_SHAMIR, 5))
    ),
    Configuration(WITH_MACS, 2, "bfv-4096", relinearisation=False, steps=()),
    Configuration(WITH_MACS, 2, "bfv-8192", steps=()),
)


def job(asked: Configuration, options: Options) -> Iterator[Row]:
    """Makes one key: the row of the configuration, and a row a phase (of party 0)."""
    protocol, parties = asked.protocol, asked.parties
    elements = api.galois_elements(load_parameters(asked.parameters), asked.steps)
    result, seconds, _ = new_key(protocol, parties, asked.parameters, relin=asked.relinearisation, galois_elements=elements)
    console.print(f"\n{protocol}, {parties} parties, {asked.parameters}, {asked.keys}")
    print_reports(result.reports)
    who: Row = {"protocol": protocol, "parties": parties, "parameters": asked.parameters, "keys": asked.keys}
    yield {
        **who,
        "seconds": round(seconds, 1),
        "rss_gb": round(max(r.peak_memory for r in result.reports) / 1e9, 2),
        "sent_mb": round(sum(r.total.bytes_sent for r in result.reports) / 1e6),
        "rounds": result.reports[0].total.rounds,
    }
    yield from phase_rows(who, result.reports[0].phases)


BENCH = Bench("keygen", lambda options: CONFIGURATIONS, job, COLUMNS, phases=PHASES)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
