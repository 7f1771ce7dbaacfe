"""One measurement of a sweep, and the axes along which a sweep is cut."""

from __future__ import annotations

from dataclasses import dataclass

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.links import parse
from keyquorum.model.protocols import PROTOCOLS, default_threshold

LABELS = {"mp-spdz": "MP-SPDZ", "seal": "SEAL", "openfhe": "OpenFHE"}


SINGLE_KEY, ADDITIVE = "single key", "additive, noise flooded"
"""Values of the column ``protocol`` for other libraries: one key, or their own threshold FHE."""


class CaseError(KeyQuorumError):
    """A measurement failed, took too long, or gave a wrong result."""


class SkippedError(CaseError):
    """A measurement cannot be made on this host: the text has the reason."""


@dataclass(frozen=True)
class Case:
    """One measurement. ``name``: the operation; ``parameters``: arithmetic domain or parameter set; ``batch``: results of a
    run; ``link``: simulated links, empty for real ones."""

    suite: str
    name: str
    backend: str
    protocol: str
    parties: int
    parameters: str
    batch: int
    link: str = ""

    @property
    def identity(self) -> str:
        """A text that is equal for the same measurement in all sweeps."""
        return "/".join(map(str, vars(self).values()))

    @property
    def label(self) -> str:
        """The text for progress and errors."""
        words = [self.name, f"-E {self.protocol}", f"n={self.parties}", self.parameters, f"x{self.batch}"]
        return " ".join(
            [*words, *([self.link] if self.link else []), *([LABELS.get(self.backend, self.backend)] if self.backend != "embedded" else [])]
        )

    @property
    def threshold(self) -> int:
        """Corruptions tolerated."""
        if self.suite == "peers":
            return self.parties - 1
        return default_threshold(self.protocol, self.parties)

    @property
    def security(self) -> str:
        """Adversary and majority, in the terms of the threat-model table."""
        if self.protocol == SINGLE_KEY:
            return "one party has the key"
        if self.protocol == ADDITIVE:
            return "semi-honest, dishonest majority, in one process"
        majority = "dishonest majority" if PROTOCOLS[self.protocol].dishonest_majority else "honest majority"
        programs = self.suite in ("primitives", "sampling", "conversion")
        if PROTOCOLS[self.protocol].macs:
            # With MACs single programs are secure against malicious parties, and so are the plans that SECURITY.md names. Plans keep the old label, which promises less:
            # stored rows are matched by it.
            return f"{'malicious with abort' if programs else 'semi-honest (programs with MACs)'}, {majority}"
        return f"{'malicious with abort' if PROTOCOLS[self.protocol].adversary == 'malicious' else 'semi-honest'}, {majority}"

    @property
    def possible(self) -> bool:
        """Whether the protocol allows this number of parties."""
        if self.suite == "peers":
            return (self.parties == 1) == (self.protocol == SINGLE_KEY)
        protocol = PROTOCOLS[self.protocol]
        return protocol.least_parties <= self.parties <= (protocol.most_parties or self.parties)


@dataclass(frozen=True)
class Axes:
    """Restrictions of a sweep; None: the values of the suite. The link "none" stands for real links."""

    backends: tuple[str, ...] | None = None
    protocols: tuple[str, ...] | None = None
    parties: tuple[int, ...] | None = None
    parameters: tuple[str, ...] | None = None
    links: tuple[str, ...] | None = None
    only: str = ""
    """Text that the names of the measurements must contain."""

    def link_specs(self, default: tuple[str, ...]) -> tuple[str, ...]:
        """The links to sweep, checked."""
        chosen = default if self.links is None else tuple("" if link == "none" else link for link in self.links)
        for link in chosen:
            if link:
                parse(link)
        return chosen
