"""Share files of MP-SPDZ: positions and refusals. Their bytes, in both directions and for every protocol: tests/backends. The
embedded engine's: tests/dsl/test_inputs_outputs.py."""

from __future__ import annotations

import pytest

from .spdz import FIELD, NEEDED, Work, work

__all__ = ["work"]
WRITE = """
sint.write_to_file(sint([1, 2, 3]))
break_point()
sint.write_to_file([sint([4, 5]), sint([6, 7])])
break_point()
sint.write_to_file(sint([50]), 4)
break_point()
sint.write_to_file(sint([9, 9]), regint(9))
"""
READ = """
stop, (x, y) = sint.read_from_file(0, n_items=2, size=3)
print_ln('%s %s %s', stop, x.reveal(), y.reveal())
stop, (x,) = sint.read_from_file(regint(7), size=4)
print_ln('%s %s', stop, x.reveal())
"""


@NEEDED
@pytest.mark.parametrize(("protocol", "prime"), [("ring", ()), ("rep-field", FIELD), ("shamir", FIELD)])
def test_positions(work: Work, protocol: str, prime: tuple[str, ...]) -> None:
    """Appended, or stored over what is there; a gap is filled with zeros; the position after the last is -1."""
    assert not work.run(protocol, WRITE, run_time=prime).failed
    assert work.lines(protocol, READ, run_time=prime) == ["6 [1, 2, 3] [4, 50, 6]", "-1 [0, 0, 9, 9]"]


@NEEDED
def test_reading_past_the_end_is_fatal(work: Work) -> None:
    read = "x = sint.read_from_file({}, size={})[1][0]\nprint_ln('%s', x.reveal())"
    assert work.run("ring", read.format(0, 1)).failed, "no file"
    assert not work.run("ring", "sint.write_to_file(sint([1, 2]))").failed
    assert work.lines("ring", read.format(0, 2)) == ["[1, 2]"]
    for start, size in ((0, 3), (1, 2), (2, 1)):
        done = work.run("ring", read.format(start, size))
        assert done.failed and not any(done.printed)


@NEEDED
def test_other_protocols_and_primes_are_refused(work: Work) -> None:
    read = "x = sint.read_from_file(0, size=2)[1][0]\nprint_ln('%s', x.reveal())"
    assert not work.run("rep-field", "sint.write_to_file(sint([1, 2]))", run_time=FIELD).failed
    assert work.lines("rep-field", read, run_time=FIELD) == ["[1, 2]"]
    for protocol, run_time in (("shamir", FIELD), ("rep-field", ("-P", "65537")), ("ring", ())):
        assert work.run(protocol, read, run_time=run_time).failed, protocol


@NEEDED
def test_bits_are_not_stored(work: Work) -> None:
    """On both engines; converted, they are."""
    assert work.run("ring", "sbits.write_to_file(sbits.get_type(3)(5))").failed
    assert not work.run("ring", "sint.write_to_file(sint(sbits.get_type(3)(5)))").failed
    assert work.lines("ring", "print_ln('%s', sint.read_from_file(0, size=3)[1][0].reveal())") == ["[1, 0, 1]"]
