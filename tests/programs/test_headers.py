"""Headers: what they state is complete, defined and true."""

from __future__ import annotations

import ast
import builtins
from dataclasses import replace

import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, run_program
from keyquorum.model.errors import ParameterError, ProgramError
from keyquorum.model.protocols import CLEAR_TEXT, COMMITTEES, PROTOCOLS
from keyquorum.model.resources import program_path
from keyquorum.programs import Call, Layout, Segment
from keyquorum.programs.header import FORMULAS, SYMBOLS, Argument, Read, Write, collection, header, parse_header
from keyquorum.programs.signatures import and_triples, lift_open, lift_test, lwe_public_key, rlwe_switch_key, round_mask, round_mask_open_online

EVERY = pytest.mark.parametrize("program", collection())


def names_of(expression: str) -> set[str]:
    """Free names of a Python expression."""
    nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - bound


@EVERY
def test_the_program_takes_the_arguments_of_its_header(program: str) -> None:
    """The usage, which is made of what the program parses, is the line of the header."""
    engine = _engine.local_sessions(1)[0].engine("emulate", "Z2^64", program)
    with pytest.raises(ProgramError) as caught:
        run_program(engine, program_path(program), ["?"], ProgramIO())
    assert str(caught.value).partition(" [in ")[0].endswith(f"(usage: {program} {header(program).value('arguments')})")


@EVERY
def test_a_header_has_costs_whose_names_are_defined(program: str) -> None:
    head = header(program)
    assert head.prose[1].startswith(("Paper: ", "Source: ")) or any(line.startswith(("Paper: ", "Source: ")) for line in head.prose)
    assert head.has("bytes")
    assert head.has("rounds") or (head.has("offline rounds") and head.has("online rounds"))
    symbols = {name.split("(")[0].strip() for entry in SYMBOLS for name in ([entry] if "(" in entry else entry.split(","))}
    known = symbols | {f"{argument.name}s" if argument.rest else argument.name for argument in head.arguments}
    for field in head.fields:
        if field.key == "where":
            for assignment in field.value.split("; "):
                name, _, value = assignment.partition(" = ")
                assert names_of(value) <= known, assignment
                known.add(name)
    for field in head.fields:
        if field.key in FORMULAS:
            assert names_of(field.value) <= known, field


@EVERY
def test_sizes_of_shares_are_stated_in_the_arguments(program: str) -> None:
    head = header(program)
    known = {f"{argument.name}s" if argument.rest else argument.name for argument in head.arguments} | set(dir(builtins))
    for part in (*head.reads, *head.writes):
        assert part.size is None or names_of(part.size) <= known, part


@EVERY
def test_some_committee_and_clear_text_have_what_a_program_needs(program: str) -> None:
    head = header(program)
    for variant in head.variants:
        assert head.runs_on(PROTOCOLS[CLEAR_TEXT], variant) and any(head.runs_on(p, variant) for p in COMMITTEES.values())


def test_needs_are_compared_with_capabilities() -> None:
    """Protocols that verify products have what those of the same sharing have, and a new protocol needs no change of a header."""
    head = parse_header("one", "# needs: field bits\n# needs of sums: replicated\n")
    over_fields = {p.name for p in COMMITTEES.values() if head.runs_on(p)}
    replicated = {p.name for p in COMMITTEES.values() if head.runs_on(p, "sums")}
    assert over_fields == {p.name for p in COMMITTEES.values() if p.field and p.binary} >= {"rep-field", "mal-rep-field", "semi", "mascot"}
    assert replicated == {p.name for p in COMMITTEES.values() if p.sharing == "replicated"} >= {"ring", "rep-field", "mal-rep-ring", "mal-rep-field"}
    shamir = PROTOCOLS["shamir"]
    assert head.runs_on(shamir, on_mp_spdz=True) and head.runs_on(replace(shamir, name="other", binary=True))
    assert not parse_header("one", "").runs_on(PROTOCOLS["semi-bin"]), "packed bits alone: no arithmetic"
    with pytest.raises(ProgramError, match="one: needs has cheap: write some of ring, field"):
        parse_header("one", "# needs: ring cheap\n").runs_on(shamir)


def test_the_grammar_of_a_header() -> None:
    head = parse_header("one", "# What it does. More.\n#   a  a way\n# arguments: n to(party|all) [way=a|b] [at=n] target(relin|odd)...\n#   (n: a size)\n"
                        "# reads: s[2*max(n, 1)] at at, mask at at\n# writes: x[n if to == 'all' else 0]\n# rounds of a, b: 2\n# bytes: 0\n\nimport os\n")  # fmt: skip
    assert head.summary == "What it does."
    assert head.arguments == (
        Argument("n"), Argument("to", ("party", "all")), Argument("way", ("a", "b"), "a"), Argument("at", (), "n"),
        Argument("target", ("relin", "odd"), None, True),
    )  # fmt: skip
    assert head.reads == (Read("s", "2*max(n, 1)", "at"), Read("mask", None, "at")) and head.writes == (Write("x", "n if to == 'all' else 0"),)
    assert head.value("rounds", "b") == "2" and head.value("rounds") == "" and head.value("bytes", "b") == "0"
    with pytest.raises(ProgramError, match=r"one: '\[n\]' is no argument"):
        _ = parse_header("one", "# arguments: [n]").arguments
    with pytest.raises(ProgramError, match="one: reads has 's': write"):
        _ = parse_header("one", "# reads: s").reads


def test_calls_have_the_order_of_the_command_line() -> None:
    layout = Layout(secret=8, noise=48)
    call = rlwe_switch_key(
        N=8, q=17, f=1, digits=2, i=0, P_mod_q=3, s=layout["secret"], e=layout["noise"].rows(1, 5, 8), targets=["relin", 3]
    )  # fmt: skip
    assert (call.program, call.words) == ("rlwe_switch_key", ("8", "17", "1", "2", "0", "3", "0", "16", "relin", "3"))
    assert lwe_public_key(n=8).words == ("8",), "arguments that have their defaults are left out"
    assert lwe_public_key(n=8, block=4).words == ("8", "0", "8", "4")
    assert round_mask_open_online(size=5, l=6, j=1, destination="share").words == ("5", "6", "1", "share")
    assert lift_open(contributors=2, size=3, b=1, lam=2, modulus=99, x=Segment(7, 3)).words == ("2", "3", "1", "2", "99", "7")
    stored = lift_open(contributors=3, size=3, b=1, lam=2, modulus=99, x=Segment(7, 3), masks="stored", r=Segment(10, 3))
    assert stored.words == ("3", "3", "1", "2", "99", "7", "stored", "10")


def test_a_position_may_follow_from_other_arguments() -> None:
    assert lift_test(size=5, tests=2, offset=1, block=8).words == ("5", "2", "1", "0", "5", "8")
    assert lift_test(size=5, tests=2, offset=1, s=Segment(5, 2)).words == ("5", "2", "1")
    with pytest.raises(TypeError, match="missing"):
        lift_test(size=5, tests=2)  # type: ignore[call-arg]


def test_segments_are_checked() -> None:
    with pytest.raises(ParameterError, match="lwe_public_key reads 8 shares of e: the segment has 7"):
        lwe_public_key(n=8, e=Segment(8, 7))
    layout = Layout(secret=8)
    layout.append(and_triples(size=2, count=1), triples="kept")
    layout.append(round_mask(size=2, l=4, bits="sum"))
    assert layout["kept"] == Segment(8, 6) and layout["r"] == Segment(14, 2) and layout.length == 16
    assert layout["kept"].slice == slice(8, 14) and layout["kept"].rows(1, 3, 2) == Segment(10, 4)
    with pytest.raises(ParameterError, match="has no segment 'noise': it has secret, kept, r"):
        layout["noise"]
    with pytest.raises(ParameterError, match="a segment 'secret' already"):
        layout.add("secret", 1)
    with pytest.raises(ParameterError, match="rows 1 to 4 of 2 shares are not in a segment of 6 shares"):
        layout["kept"].rows(1, 4, 2)
    with pytest.raises(ParameterError, match="the header does not state how many shares x has"):
        layout.append(Call("one", (), {"x": None}))
    with pytest.raises(ParameterError, match="no segment of 1 shares at position -1"):
        Segment(-1, 1)
