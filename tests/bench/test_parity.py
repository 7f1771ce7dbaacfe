"""The side-by-side run covers every program and variant, on every protocol that has what its header needs."""

from __future__ import annotations

import pytest
from bench.parity.cases import PROTOCOLS, cases, runs_on
from bench.parity.reference import reference
from bench.parity.sampled import sample_of
from keyquorum.model.errors import ProgramError
from keyquorum.programs.header import collection, header, parse_header


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_declared_variant_is_a_row(protocol: str) -> None:
    rows = {(case.program, case.variant) for case in cases(protocol)}
    for program in collection():
        for variant in header(program).variants:
            if runs_on(protocol, program, variant):
                assert (program, variant) in rows, f"{program} {variant} on {protocol}"


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
