"""The side-by-side run covers every program, variant and protocol that a header names."""

from __future__ import annotations

import pytest
from bench.parity.cases import PROTOCOLS, cases, declared, runs_on
from bench.parity.reference import reference
from bench.parity.sampled import sample_of
from keyquorum.model.errors import ProgramError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.programs.header import collection, header, parse_header


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
            wanted = runs_on(protocol, program, variant)
            if wanted and not (over_fields and COMMITTEES[protocol].ring):
                assert (program, variant) in rows, f"{program} {variant} on {protocol}"


def test_headers_name_known_protocols_once() -> None:
    for program in collection():
        for variant in variants(program):
            here = declared(program, variant, everywhere=False)
            there = header(program).value("on MP-SPDZ", variant).split()
            assert here <= {*PROTOCOLS, "emulate"} and set(there) <= set(PROTOCOLS), program
            assert not here & set(there), f"{program} {variant}: named on both engines and on one alone"


def test_samples_of_headers_are_rows() -> None:
    """The arguments in their order, and random inputs; what does not fit the header is refused."""
    (row,) = [case for case in cases("ring") if case.program == "open_masked"]
    assert row.args == ("1000", "0", "1000") and row.shares is not None and len(row.shares) == 2000 and len(set(row.shares.tolist())) > 1900
    assert reference(row).public == row.shares.reshape(2, -1).sum(axis=0).tolist()
    head = parse_header("one", "# arguments: contributors size [at=0]\n")
    assert sample_of(head, "contributors=2 size=3 private=4 stores=5") == (("2", "3"), {"private": 4, "public": 0, "shares": 0, "stores": 5})
    for text in ("size=3 contributors=2", "contributors=2 word", "contributors=2 size=3 at=0 more=1"):
        with pytest.raises(ProgramError, match=r"one: sample .*: write the first arguments in their order"):
            sample_of(head, text)


def test_rows_read_back_all_that_programs_append() -> None:
    """What a header states is compared: a row that reads nothing back would differ from the reference on MP-SPDZ alone."""
    (row,) = [case for case in cases("ring") if case.program == "rlwe_phase_ring"]
    assert row.appended == len(reference(row).appended) == 4096
