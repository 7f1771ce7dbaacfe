"""The suites: which measurements a sweep consists of, quick and full, cut along the user's axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from keyquorum.backends import BACKENDS
from keyquorum.cnn.run import PARAMETERS
from keyquorum.fhe.parameters import load
from keyquorum.model.errors import ParameterError

from .cases import Axes, Case
from .programs import PROGRAMS, Setting

PROTOCOLS = ("ring", "rep-field", "shamir", "semi2k", "semi", "spdz2k", "mascot")
COMMITTEES = ("rep-field", "shamir", "semi")
"""One protocol a committee: ``ring`` and ``semi2k`` are the same committees as ``rep-field`` and ``semi``."""
ROUNDINGS = ("round_ltz_circuit", "round_mask_open")
LWE_ROUNDINGS = (*ROUNDINGS, "round_ltz_table")

Maker = Callable[[Axes, bool], Iterator[Case]]


def _programs(suite: str) -> Maker:
    def make(axes: Axes, quick: bool) -> Iterator[Case]:
        backends = axes.backends or ("embedded",)
        protocols = axes.protocols or PROTOCOLS
        links = axes.link_specs(("",) if quick or suite != "primitives" else ("", "lan", "wan"))
        rows = [p for (s, _), p in PROGRAMS.items() if s == suite]
        for backend, protocol, row, link in product(backends, protocols, rows, links):
            smallest = 2 if protocol in ("semi2k", "semi", "spdz2k", "mascot") else 3
            for parties in axes.parties or ((smallest,) if quick or link else (smallest, 4)):
                if not row.runs_on(protocol, backend):
                    continue
                batch = row.quick if quick else row.batch
                domain = Setting(protocol, parties, 1, batch).domain
                case = Case(suite, row.name, backend, protocol, parties, domain, batch, link)
                if case.possible and (not axes.parameters or domain in axes.parameters):
                    yield case

    return make


def _keygen(axes: Axes, quick: bool) -> Iterator[Case]:
    protocols = axes.protocols or COMMITTEES
    sets = axes.parameters or (("ckks-4096",) if quick else ("ckks-8192", "bfv-8192"))
    counts = axes.parties or ((2, 3) if quick else (2, 3, 4, 8))
    links = axes.link_specs(("",) if quick else ("", "lan", "wan"))
    for backend, protocol, name, parties, link in product(
        axes.backends or ("embedded",), protocols, sets, counts, links
    ):
        load(name)
        if link and parties > 3 and axes.links is None:
            continue
        yield Case("keygen", "public and relinearisation key", backend, protocol, parties, name, 1, link)


def _decrypt(axes: Axes, quick: bool) -> Iterator[Case]:
    protocols = axes.protocols or COMMITTEES
    yield from _lwe(axes, quick)
    sets = [
        s
        for s in axes.parameters or (("bfv-4096",) if quick else ("bfv-4096", "ckks-8192-demo"))
        if not s.startswith("lwe")
    ]
    counts = axes.parties or ((3,) if quick else (3, 4))
    links = axes.link_specs(("", "paper000-1ms") if quick else ("", "paper000-1ms", "paper000-10ms"))
    for backend, protocol, name, parties in product(axes.backends or ("embedded",), protocols, sets, counts):
        scheme = load(name).scheme
        for kind in ("flood",) if scheme == "ckks" else ROUNDINGS:
            # Throughput against the size of the batch, at the least number of parties.
            batches = (1,) if quick or scheme == "ckks" or parties != min(counts) else (1, 4, 16)
            for batch, link in product(batches, links):
                if batch == 1 or not link:
                    yield Case("decrypt", f"{scheme} {kind}", backend, protocol, parties, name, batch, link)


def _lwe(axes: Axes, quick: bool) -> Iterator[Case]:
    """Decryption of LWE with stored material: one at a time, and a batch."""
    links = axes.link_specs(("", "paper000-1ms") if quick else ("", "paper000-1ms", "paper000-10ms"))
    committees = [("rep-field", 3, "lwe64-p2"), *(("semi", n, "lwe64-p2") for n in ((4,) if quick else (2, 4, 8, 16)))]
    for protocol, parties, name in [*committees, ("shamir", 3, "lwe53-p16")]:
        if (axes.protocols and protocol not in axes.protocols) or (axes.parties and parties not in axes.parties):
            continue
        if (axes.parameters and name not in axes.parameters) or (axes.backends and "embedded" not in axes.backends):
            continue
        for rounding, link in product(LWE_ROUNDINGS if protocol != "shamir" else ROUNDINGS, links):
            for batch in (1,) if link or quick or parties > 4 else (1, 1024):
                yield Case("decrypt", f"lwe {rounding}", "embedded", protocol, parties, name, batch, link)


def _cnn(axes: Axes, quick: bool) -> Iterator[Case]:
    for backend, protocol in product(axes.backends or ("embedded",), axes.protocols or ("rep-field", "shamir", "semi")):
        for parties, link in product(
            axes.parties or ((3,) if quick or protocol != "semi" else (2, 4)), axes.link_specs(("",))
        ):
            if backend == "embedded" and (protocol == "rep-field" or not quick or axes.protocols):
                yield Case("cnn", "encrypted digits", backend, protocol, parties, PARAMETERS, 8 if quick else 104, link)


SUITES: dict[str, tuple[str, Maker]] = {
    "primitives": ("products, random bits, openings, comparisons, ANDs", _programs("primitives")),
    "sampling": ("secrets and noise", _programs("sampling")),
    "conversion": ("between Z_2, Z_3 and Z_q", _programs("conversion")),
    "keygen": ("joint keys for SEAL", _keygen),
    "decrypt": ("joint decryption: of LWE with stored material; of BFV, exact; of CKKS, flooded", _decrypt),
    "cnn": ("classification of encrypted digits: keys, encryption, evaluation, decryption", _cnn),
}
"""What each suite measures, and what makes its cases."""


def cases_of(suite: str, axes: Axes, quick: bool = False) -> list[Case]:
    """The measurements of a suite that are possible. Raises ParameterError if there is no such suite or nothing is left."""
    if suite not in SUITES:
        raise ParameterError(f"unknown suite {suite!r}: choose one of {', '.join(SUITES)}, or all")
    for name, known, chosen in (("backend", BACKENDS, axes.backends), ("protocol", PROTOCOLS, axes.protocols)):
        for value in chosen or ():
            if value not in known:
                raise ParameterError(f"unknown {name} {value!r}: choose one of {', '.join(known)}")
    cases = [case for case in SUITES[suite][1](axes, quick) if case.possible and axes.only in case.name]
    if not cases:
        raise ParameterError(f"nothing is left of the suite {suite}: name fewer axes (-E, -N, -p, --link, --only)")
    return cases
