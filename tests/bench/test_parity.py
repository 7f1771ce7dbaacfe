"""The side-by-side run covers every program, variant and protocol that a header names."""

from __future__ import annotations

import pytest
from keyquorum.bench.parity.cases import PROTOCOLS, cases, declared

from tests.programs.costs import PROGRAMS, header


def variants(program: str) -> set[str]:
    """The variants that a header names; one without a name if it names none."""
    named = {variant for _, variant in header(program) if variant}
    return named or {""}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_declared_variant_is_a_row(protocol: str) -> None:
    rows = {(case.program, case.variant) for case in cases(protocol)}
    for path in PROGRAMS.glob("*.mpc"):
        for variant in variants(path.stem):
            over_fields = header(path.stem).get(("domains", variant)) == "fields"
            wanted = protocol in declared(path.stem, variant)
            if wanted and not (over_fields and protocol in ("ring", "semi2k", "spdz2k")):
                assert (path.stem, variant) in rows, f"{path.stem} {variant} on {protocol}"


def test_headers_name_known_protocols_once() -> None:
    for path in PROGRAMS.glob("*.mpc"):
        for variant in variants(path.stem):
            here = declared(path.stem, variant, everywhere=False)
            lines = header(path.stem)
            there = (lines.get(("on MP-SPDZ", variant)) or lines.get(("on MP-SPDZ", ""), "")).split()
            assert here <= {*PROTOCOLS, "emulate"} and set(there) <= set(PROTOCOLS), path.stem
            assert not here & set(there), f"{path.stem} {variant}: named on both engines and on one alone"
