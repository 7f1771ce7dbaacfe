"""The suites: the measurements of a sweep, quick and full, restricted by the user's axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from keyquorum.backends import BACKENDS
from keyquorum.cnn.run import DIGITS, MODEL_TOO, PARAMETERS, WAYS
from keyquorum.fhe.lwe import LWE_SETS
from keyquorum.fhe.parameters import load
from keyquorum.model.chosen_committees import (
    ADDITIVE,
    REPLICATED,
    SHAMIR,
    VERIFIED_REPLICATED,
    VERIFIED_SHAMIR,
    WITH_MACS,
    distinct,
    lwe_set,
    over_field,
    over_ring,
    with_capability,
)
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.sweep.peers import PEERS, SCHEMES

from .cases import ADDITIVE as ADDITIVE_FHE
from .cases import SINGLE_KEY, Axes, Case
from .programs import PROGRAMS, WEIGHT, Setting

WITHOUT_MACS = distinct(macs=False)
"""One protocol for each committee."""
VERIFIED = (VERIFIED_REPLICATED, VERIFIED_SHAMIR)
"""Committees that verify products, in full sweeps: three parties, no simulated links but for single decryptions of LWE."""
MAC_SET = "ckks-4096-mac"
"""A small set with primes that are long enough for MACs."""
MOST_OF_SEMI = 4
"""Parties up to which exact decryption is measured with a dishonest majority: with more it takes minutes on one machine."""
ROUNDINGS = ("round_ltz_circuit", "round_mask_open")
LWE_ROUNDINGS = (*ROUNDINGS, "round_ltz_table")
PARTIES_OF_MAC_SET = (2, 3, 4)
"""The time of noise with MACs grows with the cube of the number of parties: eight would take too long for a sweep."""
LWE_COMMITTEES = tuple(map(over_ring, (*distinct(), *VERIFIED)))
KEYS, LWE_SECRET = "public and relinearisation key", "secret of LWE"
PINGS = ("", "paper000-1ms", "paper000-10ms")

Maker = Callable[[Axes, bool], Iterator[Case]]


def _verifies(protocol: str) -> bool:
    """Whether a committee verifies products, by either of its names."""
    return over_field(protocol) in VERIFIED


def _programs(suite: str) -> Maker:
    def make(axes: Axes, quick: bool) -> Iterator[Case]:
        backends = axes.backends or ("embedded",)
        protocols = axes.protocols or with_capability()
        links = axes.link_specs(("",) if quick or suite != "primitives" else ("", "lan", "wan"))
        rows = [p for (s, _), p in PROGRAMS.items() if s == suite]
        for backend, protocol, row, link in product(backends, protocols, rows, links):
            smallest = COMMITTEES[protocol].least_parties
            for parties in axes.parties or ((smallest,) if quick or link else (smallest, 4)):
                if not row.runs_on(protocol, backend):
                    continue
                # Products with MACs cost a hundred times as much: smaller batches, the fewest parties, no links.
                macs = COMMITTEES[protocol].macs
                if macs and ((parties > smallest and not axes.parties) or (link and axes.links is None)):
                    continue
                less = 16 if macs else row.products if COMMITTEES[protocol].oblivious_transfer else 1
                batch = max(row.quick // 8 if macs else row.quick, WEIGHT * 2) if quick else row.batch // less
                domain = Setting(protocol, parties, 1, batch).domain
                case = Case(suite, row.name, backend, protocol, parties, domain, batch, link)
                if case.possible and (not axes.parameters or domain in axes.parameters):
                    yield case

    return make


def _keygen(axes: Axes, quick: bool) -> Iterator[Case]:
    """Every committee with 2, 3, 4 and 8 parties, those that verify products with 3; a small set with MACs, and the same set without MACs; secrets of LWE."""
    for backend in axes.backends or ("embedded",):
        for protocol, parties, name, link in _keys(axes, quick):
            load(name)
            yield Case("keygen", KEYS, backend, protocol, parties, name, 1, link)
    if not axes.backends or "embedded" in axes.backends:
        yield from _lwe_keys(axes, quick)


def _keys(axes: Axes, quick: bool) -> Iterator[tuple[str, int, str, str]]:
    links = axes.link_specs(("",) if quick else ("", "lan", "wan"))
    for protocol in axes.protocols or ((*distinct(), *VERIFIED) if not quick else WITHOUT_MACS):
        macs = COMMITTEES[protocol].macs
        sets = [name for name in axes.parameters or () if name not in LWE_SETS]
        if axes.parameters is None:
            sets = ["ckks-4096"] if quick else [MAC_SET] if macs else ["ckks-8192", "bfv-8192", *([] if _verifies(protocol) else [MAC_SET])]
        for name in sets:
            small = name == MAC_SET and not axes.parameters
            counts = axes.parties or ((2, 3) if quick else PARTIES_OF_MAC_SET if small else (3,) if _verifies(protocol) else (2, 3, 4, 8))
            for parties, link in product(counts, links):
                # Links for one set only, and for few parties, since all parties share the cores.
                if axes.links is None and link and (small or parties > 3 or _verifies(protocol) or (not axes.parameters and name != sets[0])):
                    continue
                yield protocol, parties, name, link


def _lwe_keys(axes: Axes, quick: bool) -> Iterator[Case]:
    """Secrets of LWE: random bits, which every committee except Shamir's can share over 2^64, with MACs or without."""
    links = axes.link_specs(("",))
    for protocol in axes.protocols or LWE_COMMITTEES:
        name = lwe_set(protocol)
        if axes.parameters is not None and name not in axes.parameters:
            continue
        counts = (2, 3) if quick else (3,) if _verifies(protocol) else (2, 3, 4, 8)
        for parties, link in product(axes.parties or counts, links):
            yield Case("keygen", LWE_SECRET, "embedded", protocol, parties, name, 1, link)


def _decrypt(axes: Axes, quick: bool) -> Iterator[Case]:
    yield from _lwe(axes, quick)
    default = ("bfv-4096",) if quick else ("bfv-4096", "ckks-8192-demo")
    sets = [s for s in axes.parameters or default if not s.startswith(("lwe", "tfhe", "ajax"))]
    counts = axes.parties or ((3,) if quick else (3, 4, 8, 16))
    links = axes.link_specs(PINGS[:2] if quick else PINGS)
    committees = axes.protocols or (WITHOUT_MACS if quick else (*WITHOUT_MACS, *VERIFIED))
    for backend, protocol, name, parties in product(axes.backends or ("embedded",), committees, sets, counts):
        if not axes.parties and parties > MOST_OF_SEMI and COMMITTEES[protocol].dishonest_majority:
            continue
        verified = _verifies(protocol)
        if not axes.parties and parties > 3 and verified:
            continue
        scheme = load(name).scheme
        if scheme == "ckks" and parties > 8 and not axes.parties:  # every measurement makes a key of its own
            continue
        for kind in ("flood",) if scheme == "ckks" else ROUNDINGS[:1] if verified else ROUNDINGS:
            # Throughput against the size of the batch, at the least number of parties.
            batches = (1,) if quick or scheme == "ckks" or parties != min(counts) else (1, 4, 16)
            for batch, link in product(batches, links):
                if (batch == 1 or not link) and not (verified and link and axes.links is None):
                    yield Case("decrypt", f"{scheme} {kind}", backend, protocol, parties, name, batch, link)


def _lwe(axes: Axes, quick: bool) -> Iterator[Case]:
    """Decryption of LWE with a pool: one ciphertext at a time, and a batch."""
    links = axes.link_specs(PINGS[:2] if quick else PINGS)
    committees = [
        (REPLICATED, 3),
        *((ADDITIVE, n) for n in ((4,) if quick else (2, 3, 4, 8, 16))),
        (SHAMIR, 3),
        *((p, 3) for p in VERIFIED if not quick),
    ]
    for protocol, parties in committees:
        name = lwe_set(protocol)
        if (axes.protocols and protocol not in axes.protocols) or (axes.parties and parties not in axes.parties):
            continue
        if (axes.parameters and name not in axes.parameters) or (axes.backends and "embedded" not in axes.backends):
            continue
        verified_field = _verifies(protocol) and COMMITTEES[protocol].ring_protocol is None  # these have no tables
        roundings = ROUNDINGS[:1] if verified_field else LWE_ROUNDINGS
        for rounding, link in product(roundings, links):
            throughput = not quick and parties <= 4 and (not link or (protocol == ADDITIVE and parties == 4 and link == PINGS[1]))
            for batch in (1, 1024) if throughput else (1,):
                yield Case("decrypt", f"lwe {rounding}", "embedded", protocol, parties, name, batch, link)
    if not quick:
        yield from _lwe_with_macs(axes, links)


def _lwe_with_macs(axes: Axes, links: Sequence[str]) -> Iterator[Case]:
    """Single decryptions by two parties with MACs, by the rounding with the fewest rounds: their preprocessing takes long."""
    name = lwe_set(WITH_MACS)
    if any(
        chosen and value not in chosen
        for chosen, value in ((axes.protocols, WITH_MACS), (axes.parties, 2), (axes.parameters, name), (axes.backends, "embedded"))
    ):
        return
    for link in links:
        yield Case("decrypt", "lwe round_ltz_table", "embedded", WITH_MACS, 2, name, 1, link)


def _threat_models(axes: Axes, quick: bool) -> Iterator[Case]:
    """All that stands in the table of threat models, in one sweep: three parties, keys and exact or flooded decryptions one at a time, LWE over links of 1 ms ping."""
    three = replace(axes, parties=axes.parties or (3,), links=("none", PINGS[1]))
    yield from _keygen(replace(three, links=("none",)), quick)
    for case in _decrypt(three, quick):
        if case.batch == 1 and bool(case.link) == case.name.startswith("lwe") and not case.name.endswith("mask_open"):
            yield case
    if not quick and WITH_MACS in (axes.protocols or (WITH_MACS,)):
        for parties in three.parties or ():
            yield Case("decrypt", "lwe round_ltz_table", "embedded", WITH_MACS, parties, lwe_set(WITH_MACS), 1, PINGS[1])
            yield Case("decrypt", "bfv round_ltz_circuit", "embedded", WITH_MACS, parties, "bfv-4096", 1)


def _cnn(axes: Axes, quick: bool) -> Iterator[Case]:
    for backend, protocol in product(axes.backends or ("embedded",), axes.protocols or WITHOUT_MACS):
        for parties, link in product(axes.parties or ((3,) if quick or protocol != ADDITIVE else (2, 4)), axes.link_specs(("",))):
            if backend == "embedded" and (protocol == REPLICATED or not quick or axes.protocols):
                yield Case("cnn", DIGITS, backend, protocol, parties, PARAMETERS, 8 if quick else 104, link)
    if quick or (axes.backends and "embedded" not in axes.backends) or "" not in axes.link_specs(("",)):
        return
    # Only the number of ciphertexts changes the work of the parties: one committee.
    protocol, parties = (axes.protocols or (REPLICATED,))[0], (axes.parties or (3,))[0]
    for name, (_, digits) in WAYS.items():
        if name != DIGITS:
            yield Case("cnn", name, "embedded", protocol, parties, PARAMETERS, 104 if digits > 1 else 8)


def _cnn_thousand(axes: Axes, quick: bool) -> Iterator[Case]:
    """Digits and model encrypted, on all digits that the network was not trained on."""
    if (axes.backends and "embedded" not in axes.backends) or "" not in axes.link_specs(("",)):
        return
    protocol, parties = (axes.protocols or (REPLICATED,))[0], (axes.parties or (3,))[0]
    yield Case("cnn", MODEL_TOO, "embedded", protocol, parties, PARAMETERS, 8 if quick else 1000)


def _peers(axes: Axes, quick: bool) -> Iterator[Case]:
    """SEAL with one key; OpenFHE's threshold FHE."""
    if axes.links is not None and "none" not in axes.links:
        return
    sets = axes.parameters or ("ckks-8192", "bfv-8192", "bgv-8192")
    for backend in axes.backends or PEERS:
        if backend == "seal":
            found = [(SINGLE_KEY, 1, name) for name in sets if name not in SCHEMES]
        elif backend == "openfhe":
            counts = axes.parties or ((3,) if quick else (2, 3, 4, 8))
            found = [(ADDITIVE_FHE, n, name) for name, n in product(axes.parameters or SCHEMES, counts) if name in SCHEMES]
        else:
            continue
        for protocol, parties, name in found:
            if axes.protocols is None and (axes.parties is None or parties in axes.parties):
                yield Case("peers", "keys, encryption, decryption", backend, protocol, parties, name, 1)


SUITES: dict[str, tuple[str, Maker]] = {
    "peers": ("other libraries, beside ours: SEAL with one key, OpenFHE's threshold FHE", _peers),
    "keygen": ("joint keys for SEAL", _keygen),
    "decrypt": ("joint decryption: of LWE with a pool; of BFV, exact; of CKKS, flooded", _decrypt),
    "cnn": ("classification of encrypted digits: keys, encryption, evaluation, decryption", _cnn),
    "primitives": ("products, random bits, openings, comparisons, ANDs", _programs("primitives")),
    "conversion": ("between Z_2, Z_3 and Z_q", _programs("conversion")),
    "sampling": ("secrets and noise", _programs("sampling")),
    "cnn_thousand": ("the same with the model encrypted, on 1,000 digits: its accuracy and times, in a sweep of its own", _cnn_thousand),
    "threat_models": ("keys and decryptions of the table of threat models, for three parties: of other suites, in one sweep", _threat_models),
}
"""Description and cases of each suite, in the order of ``all``, the most important suites first."""
OF_OTHERS = ("cnn_thousand", "threat_models")
"""Suites that ``all`` leaves out, since other suites have their measurements, or smaller ones of the same kind."""


def cases_of(suite: str, axes: Axes, quick: bool = False) -> list[Case]:
    """The measurements of a suite that are possible. Raises ParameterError if there is no such suite or nothing is left."""
    if suite not in SUITES:
        raise ParameterError(f"unknown suite {suite!r}: choose one of {', '.join(SUITES)}, or all")
    for name, known, chosen in (("backend", (*BACKENDS, *PEERS), axes.backends), ("protocol", tuple(COMMITTEES), axes.protocols)):
        for value in chosen or ():
            if value not in known:
                raise ParameterError(f"unknown {name} {value!r}: choose one of {', '.join(known)}")
    cases = [case for case in SUITES[suite][1](axes, quick) if case.possible and axes.only in case.name]
    if not cases:
        raise ParameterError(f"nothing is left of the suite {suite}: name fewer axes (-E, -N, -p, --link, --only)")
    return cases
