"""The side-by-side run covers every program, variant and protocol that a header names."""

from __future__ import annotations

import pytest
from keyquorum.bench.parity.cases import PROTOCOLS, cases, declared
from keyquorum.programs.header import collection, header


def variants(program: str) -> set[str]:
    """The variants that a header names; one without a name if it names none."""
    named = {variant for field in header(program).fields for variant in field.variants}
    return named or {""}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_declared_variant_is_a_row(protocol: str) -> None:
    rows = {(case.program, case.variant) for case in cases(protocol)}
    for program in collection():
        for variant in variants(program):
            over_fields = header(program).values("domains").get(variant) == "fields"
            wanted = protocol in declared(program, variant)
            if wanted and not (over_fields and protocol in ("ring", "semi2k", "spdz2k")):
                assert (program, variant) in rows, f"{program} {variant} on {protocol}"


def test_headers_name_known_protocols_once() -> None:
    for program in collection():
        for variant in variants(program):
            here = declared(program, variant, everywhere=False)
            there = header(program).value("on MP-SPDZ", variant).split()
            assert here <= {*PROTOCOLS, "emulate"} and set(there) <= set(PROTOCOLS), program
            assert not here & set(there), f"{program} {variant}: named on both engines and on one alone"
