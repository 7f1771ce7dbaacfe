"""Values of expressions. MP-SPDZ prints the same (replicated ring with -R 64 -Z 3, replicated-field over q60 with -F 18)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import ALL, BINARY, FIELDS, RINGS, Backend, name, printed, shown

COMMON = [
    # regint: 64 bits, division towards zero
    ("regint(-7)//2", "-3"),
    ("regint(-7)%2", "-1"),
    ("regint(-7)>>1", "-3"),
    ("regint(-7)//regint(-2)", "3"),
    ("regint(7)%-2", "1"),
    ("regint((1<<63)-1)+1", "-9223372036854775808"),
    ("regint(3)-5", "-2"),
    ("5-regint(3)", "2"),
    ("-regint(3)*7", "-21"),
    ("regint(3)<<2", "12"),
    ("regint([1,2,3])*2", "2"),  # only the first element of a regint vector is printed
    ("cint(regint([1,2,3])*regint([4,5,6]))", "[4, 10, 18]"),
    ("cint(regint([1,2,3])==2)", "[0, 1, 0]"),
    ("regint(3)!=3", "0"),
    ("cint(regint.inc(10,1,2,3))", "[1, 1, 1, 3, 3, 3, 5, 5, 5, 7]"),
    ("cint(regint.inc(10,1,2,3,2))", "[1, 1, 1, 3, 3, 3, 1, 1, 1, 3]"),
    ("cint(regint.inc(4,regint(7),-2))", "[7, 5, 3, 1]"),
    ("cint(regint.concat([regint([1,2]),regint(5)]))", "[1, 2, 5]"),
    ("regint(5).expand_to_vector(2)", "5"),
    ("regint(1).if_else(5,6)", "5"),
    ("cint(regint(6).bit_decompose(3))", "[0, 1, 1]"),
    ("regint([1,2])[1]", "2"),
    ("len(regint([1,2]))", "2"),
    # cint
    ("cint([1,2,3])+cint(4)", "[5, 6, 7]"),
    ("cint([1,2,3])-cint([4,5,6])", "[-3, -3, -3]"),
    ("cint([1,2,3])*regint(2)", "[2, 4, 6]"),
    ("regint([1,2])+cint([3,4])", "[4, 6]"),
    ("7-cint([1,2])", "[6, 5]"),
    ("-cint(3)", "-3"),
    ("[cint([1,2])*0, 0*regint([1,2]), sint([1,2])*0]", "[0, 0, 0]"),  # Python's 0, whatever the size
    ("cint(regint(4))<<3", "32"),
    ("cint([1<<40,5])>>2", "[274877906944, 1]"),
    ("cint(13)&6", "4"),
    ("6&cint(13)", "4"),
    ("cint([7,9])%4", "[3, 1]"),
    ("cint(-3)<0", "1"),
    ("regint(cint(-3))<0", "1"),
    ("cint(3)==3", "1"),
    ("cint(3)!=cint(3)", "0"),
    ("cint(3)>=regint(3)", "1"),
    ("2<cint(3)", "1"),
    ("cint(5).expand_to_vector(3)", "[5, 5, 5]"),
    ("cint(5,size=2)", "[5, 5]"),
    ("cint(size=2)", "[0, 0]"),
    ("cint([1,cint(2),regint(3)])", "[1, 2, 3]"),
    ("cint([1,0]).if_else(cint([5,6]),cint([7,8]))", "[5, 8]"),
    ("cint(5).bit_decompose(3)", "[1, 0, 1]"),
    ("cint([1,2,3,4]).get_vector(1,2)", "[2, 3]"),
    ("cint([4,5,6])[-1]", "6"),
    ("cint([4,5,6])[1:]", "[5, 6]"),
    ("cint.concat([cint([1]),cint([2,3])])", "[1, 2, 3]"),
    ("sum(cint([1,2,3]))", "6"),
    # sint
    ("sint([1,2,3]).reveal()", "[1, 2, 3]"),
    ("(sint([1,2,3])*sint([1,2,3])).reveal()", "[1, 4, 9]"),
    ("(sint([1,2,3])*sint(2)).reveal()", "[2, 4, 6]"),
    ("(sint(2)*sint([1,2,3])).reveal()", "[2, 4, 6]"),
    ("(sint([1,2,3])*cint([4])).reveal()", "[4, 8, 12]"),
    ("(sint([1,2,3])*sint(3)+cint(2)-1).reveal()", "[4, 7, 10]"),
    ("(1-sint([1,2])).reveal()", "[0, -1]"),
    ("(regint([1,2])*sint([3,4])).reveal()", "[3, 8]"),
    ("(-sint([1,2])).reveal()", "[-1, -2]"),
    ("(sint(3)<<4).reveal()", "48"),
    ("(sint([1,2])+True).reveal()", "[2, 3]"),
    ("sint(5,size=3).reveal()", "[5, 5, 5]"),
    ("sint(cint([1,2])).reveal()", "[1, 2]"),
    ("sint(regint([1,2])).reveal()", "[1, 2]"),
    ("sint([sint(1),2,cint(3)]).reveal()", "[1, 2, 3]"),
    ("sint(5).expand_to_vector(4).reveal()", "[5, 5, 5, 5]"),
    ("sint([1,2,3]).sum().reveal()", "6"),
    ("sum(sint([1,2,3])).reveal()", "6"),
    ("sint.concat([sint([1,2]),sint(3)]).reveal()", "[1, 2, 3]"),
    ("sint([1,2,3,4]).get_vector(1,2).reveal()", "[2, 3]"),
    ("[x.reveal() for x in sint([1,2,3])[1:3]]", "[2, 3]"),
    ("sint([1,2,3])[2].reveal()", "3"),
    ("sint.dot_product(sint([1,2,3]),sint([4,5,6])).reveal()", "32"),
    ("sint.dot_product([sint([1,2]),sint([3,4])],[sint([5,6]),sint([7,8])]).reveal()", "[26, 44]"),
    ("sint.bit_compose([sint([1,0]),sint([1,1])]).reveal()", "[3, 2]"),
    ("sint([1,0]).if_else(sint([5,6]),sint([7,8])).reveal()", "[5, 8]"),
    ("sint(1).bit_xor(sint(1)).reveal()", "0"),
    ("sint(1).bit_or(sint(0)).reveal()", "1"),
    ("sint(1).bit_and(sint(0)).reveal()", "0"),
    ("sint(1).bit_not().reveal()", "0"),
    ("(sint(MemValue(3))+MemValue(sint(4))).reveal()", "7"),
    # powers, squares, absolute values, swaps
    ("cint([3,-2])**3", "[27, -8]"),
    ("cint([3,-2])**0", "[1, 1]"),
    ("cint(regint([3,-2])**5)", "[243, -32]"),
    ("(sint([3,-2,0])**4).reveal()", "[81, 16, 0]"),
    ("(sint([3,-2,0])**0).reveal()", "[1, 1, 1]"),
    ("(sint(2)**1).reveal()", "2"),
    ("(sint(2)**45).reveal()", "35184372088832"),
    ("(MemValue(sint(3))**2).reveal()", "9"),
    ("[sint([3,-4]).square().reveal(), cint(-4).square(), regint(5).square(), MemValue(sint(6)).square().reveal()]", "[[9, 16], 16, 25, 36]"),
    ("[abs(cint([3,-4,0])), abs(regint(-5)), cint(abs(regint([2,-2])))]", "[[3, 4, 0], 5, [2, 2]]"),
    ("[x.reveal() for x in sint([0,1]).cond_swap(sint([1,2]),sint([3,4]))]", "[[1, 4], [3, 2]]"),
    ("[x.reveal() for x in sint(1).cond_swap(3,cint(4))]", "[4, 3]"),
    ("cint(1).cond_swap(cint(5),6)", "[6, 5]"),
    ("regint(0).cond_swap(5,6)", "[5, 6]"),
    ("[cint([1,5]).min(3), cint([1,5]).max(cint(3)), regint(2).min(1), regint(2).max(MemValue(3))]", "[[1, 3], [3, 5], 1, 3]"),
    ("[sint([4,5]).zero_if_not(sint([1,0])).reveal(), [x.reveal() for x in sint([1,1]).half_adder(sint([0,1]))]]", "[[4, 0], [[1, 0], [0, 1]]]"),
    ("(sint.get_random_int(9,size=4).reveal()>>9)", "[0, 0, 0, 0]"),
    # comparisons, of 8-bit integers so that the mask fits q60
    ("sint([1,-5,7,7]).less_than(cint([2,-6,7,8]),8).reveal()", "[1, 0, 0, 1]"),
    ("sint([1,-5,7]).greater_than(sint([2,-6,7]),8).reveal()", "[0, 1, 0]"),
    ("sint([1,-5,7]).less_equal(7,8).reveal()", "[1, 1, 1]"),
    ("sint([1,-5,7]).greater_equal(7,8).reveal()", "[0, 0, 1]"),
    ("sint([1,-5,7]).equal(regint([1,5,7]),8).reveal()", "[1, 0, 1]"),
    ("sint([1,-5,7]).not_equal(1,8).reveal()", "[0, 1, 1]"),
    ("(sint(1).less_than(2,8)&sint(3).less_than(2,8)^sint(1).equal(1,8)).reveal()", "1"),
    ("(sint(1).less_than(2,8)|0).reveal()", "1"),
    ("((1-sint(1).less_than(2,8))&sint(1).less_than(2,8)).reveal()", "0"),
    ("sint([5,-5]).mod2m(2,8).reveal()", "[1, 3]"),
    ("sint([5,-5]).right_shift(1,8).reveal()", "[2, -3]"),
    ("[x.reveal() for x in sint([5,2]).bit_decompose(3)]", "[[1, 0], [0, 1], [1, 0]]"),
    ("sint.bit_compose(sint([11,3]).bit_decompose(6)).reveal()", "[11, 3]"),
    # printing
    ("(cint(1),2,3.5)", "[1, 2, 3.5]"),
    ("[[1,2],[cint(3),cint([4,5])]]", "[[1, 2], [3, [4, 5]]]"),
    ("'x'", "x"),
    ("None", "None"),
    ("MemValue(7)", "7"),
    ("get_player_id()-0 if False else get_player_id()==99", "0"),
]

RING_ONLY = [
    ("cint([-1,-7,5])%10", "[9, 3, 5]"),  # centred on rings
    ("cint([-1,-7,5])&15", "[15, 9, 5]"),
    ("cint([-1,-7,5])>>1", "[9223372036854775807, 9223372036854775804, 2]"),
    ("cint([-1,-7,5])<<2", "[-4, -28, 20]"),
    ("cint([1<<63,(1<<64)-1,-1,3])", "[-9223372036854775808, -1, -1, 3]"),
    ("regint(cint(1<<63))>>1", "-4611686018427387904"),
    ("(sint([1,-5,7])<cint([2,-6,7])).reveal()", "[1, 0, 0]"),
    ("(sint([1,-5,7])>-5).reveal()", "[1, 0, 1]"),
    ("(sint([1,-5,7])==sint([1,5,7])).reveal()", "[1, 0, 1]"),
    ("(3>=sint([1,-5,7])).reveal()", "[1, 1, 0]"),
    ("(sint([5,-5])%4).reveal()", "[1, 3]"),
    ("abs(sint([1,-5,0])).reveal()", "[1, 5, 0]"),
    ("[sint([1,-5]).min(0).reveal(), sint([1,-5]).max(sint(0)).reveal(), abs(MemValue(sint(-3))).reveal()]", "[[0, -5], [1, 0], 3]"),
    ("sint.get_random_int(64,size=2).reveal()*0", "0"),
    ("(sint([5,-5])>>1).reveal()", "[2, -3]"),
    ("sint.bit_compose(sint([11,-1]).bit_decompose(64)).reveal()", "[11, -1]"),
    ("(sint([-8,8,-9])>>3).reveal()", "[-1, 1, -2]"),
    ("sint([5,-2]).bit_decompose(8,maybe_mixed=True)[1].reveal()", "-2"),  # a row of sbits, as shares split
]

FIELD_ONLY = [
    ("cint([-1,-7,5,1<<59])%10", "[2, 6, 5, 8]"),  # canonical over fields
    ("cint([-1,-7,5,1<<59])&15", "[0, 10, 5, 0]"),
    ("cint([-1,-7,5,1<<59])>>1", "[576460752303292416, 576460752303292413, 2, 288230376151711744]"),
    ("cint([-1,-7,5,1<<59])<<2", "[-4, -28, 20, 524286]"),
    ("cint([-1,-7,5,1<<59])>>58", "[3, 3, 0, 2]"),
    ("regint(cint(-1))", "-1"),
    ("sint([5,-2]).bit_decompose(8,maybe_mixed=True)[1].reveal()", "[0, 1]"),
]

BITS = [
    ("sbits.get_type(100)(5).reveal()", "5"),
    ("(~sbits.get_type(100)(0)).reveal()", "-1"),
    ("(~sbits.get_type(40)(3)).reveal()", "-4"),
    ("sbits.get_type(70)(1<<65).reveal()", "36893488147419103232"),
    ("sbits.get_type(3)(7).reveal()", "-1"),
    ("[sbits.get_type(3)(7)&0, cbits.get_type(3)(7)&0]", "[0, 0]"),
    ("(len(sbits.get_type(3)(7)), sbits.get_type(3)(7).size, sbits.get_type(3)(7).n)", "[1, 1, 3]"),
    ("sint.bit_compose(sbitvec.from_vec([sbits.get_type(3)(7)]*11).popcnt().v).reveal()", "[11, 11, 11]"),
    ("(sbits.get_type(32)(3)^sbits.get_type(32)(5)).reveal()", "6"),
    ("(sbits.get_type(32)(3)&sbits.get_type(32)(5)).reveal()", "1"),
    ("(sbits.get_type(64)(0b1011)^3).reveal()", "8"),
    ("(sbits.get_type(64)(0b1011)&-1).reveal()", "11"),
    ("sbits.get_type(64)(0b1011).reveal().to_regint()", "11"),
    ("~sbits.get_type(64)(0b1011).reveal()", "-12"),
    ("cint(sbits.get_type(4)(0b1011).reveal().to_regint_by_bit())", "[1, 1, 0, 1]"),
    ("sbits.get_type(64)(0b1011).reveal()^cbits.get_type(64)(3)", "8"),
    ("(sbits.get_type(64)(0b1011)&sbits.get_type(64)(0b1001).reveal()).reveal()", "9"),
    ("(sbits.get_type(64)(0b1001).reveal()&sbits.get_type(64)(0b1011)).reveal()", "9"),
    ("sbits.get_type(64)(regint(5)).reveal()", "5"),
    ("sbits.get_type(3)(cint([1,0,1])).reveal()", "-3"),
    ("sint(sbits.get_type(5)(0b1011)).reveal()", "[1, 1, 0, 1, 0]"),
    ("[x.reveal() for x in sbits.get_type(5)(0b1011).bit_decompose()]", "[1, 1, 0, 1, 0]"),
    ("sbits.bit_compose([sbit(1),0,sbit(1),sbit(0)]).reveal()", "5"),
    ("sbits.get_type(32)(3).if_else(sbits.get_type(32)(5),sbits.get_type(32)(2)).reveal()", "1"),
    ("sbit(1).if_else(sbits.get_type(32)(5),sbits.get_type(32)(2)).reveal()", "5"),
    ("[x.reveal() for x in sbit(1).cond_swap(sbits.get_type(32)(5),sbits.get_type(32)(2))]", "[2, 5]"),
    ("[x.reveal() for x in sbit(0).cond_swap(sbit(1),sbit(0))]", "[1, 0]"),
    ("[x.reveal() for x in sbits.get_type(4)(5).half_adder(sbits.get_type(4)(3))]", "[6, 1]"),
    ("sbits.get_type(7)(0b1011011).popcnt().reveal()", "-3"),
    ("[x.reveal() for x in sbitvec.from_vec([sbits.get_type(3)(i) for i in range(1,8)]).popcnt().v]", "[0, 0, -1]"),
    ("[x.reveal() for x in sbitvec([sbits.get_type(32)(5),sbits.get_type(32)(3),sbits.get_type(32)(0)]).v][:3]",
     "[3, 2, 1]"),
    ("[x.reveal() for x in sbitvec([sbits.get_type(4)(5),sbits.get_type(4)(3)]).elements()]", "[5, 3]"),
    ("sbitvec.from_vec([sbits.get_type(3)(i) for i in range(1,8)]).reveal()", "[-43, -26, -8]"),
    ("sint(sbitvec.from_vec([sbits.get_type(3)(i) for i in range(1,8)])).reveal()", "[85, 102, 120]"),
    ("[x.reveal() for x in sbitvec(sint([5,9]),5,5).v]", "[-1, 0, 1, -2, 0]"),
    ("(sbitvec.from_vec([sbit(1),sbit(0)])^sbitvec.from_vec([sbit(1),sbit(1)])).reveal()", "-2"),
    ("(sbitvec.from_vec([sbit(1),sbit(0)])&~sbitvec.from_vec([sbit(1),sbit(1)])).reveal()", "0"),
    ("sint.bit_compose(sbits.bit_adder([sbits.get_type(3)(7),sbits.get_type(3)(1)],"
     "[sbits.get_type(3)(1),sbits.get_type(3)(3)],get_carry=True)).reveal()", "[6, 3, 1]"),
    ("sint.bit_compose(sbits.bit_adder([sbit(1),sbit(1)],[sbit(0),0],1)).reveal()", "0"),
    ("cint(sbits.bit_decompose_clear(cint([5,2]),3)[2].to_regint_by_bit())", "[1, 0]"),
    ("sbits.get_type(4)(sint(11)).reveal() if program.options.ring else -5", "-5"),
    ("MemValue(sbits.get_type(4)(3)).reveal()", "3"),
]  # fmt: skip


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_common(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, shown(COMMON), backend) == [expected for _, expected in COMMON]


@pytest.mark.parametrize("backend", RINGS, ids=name)
def test_ring(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, shown(RING_ONLY), backend) == [expected for _, expected in RING_ONLY]


@pytest.mark.parametrize("backend", FIELDS, ids=name)
def test_field(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, shown(FIELD_ONLY), backend) == [expected for _, expected in FIELD_ONLY]


@pytest.mark.parametrize("backend", BINARY, ids=name)
def test_bits(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, shown(BITS), backend) == [expected for _, expected in BITS]


@pytest.mark.parametrize("backend", [("ring", 3, "Z2^41"), ("ring", 3, "Z2^72"), ("emulate", 1, "Z2^128")], ids=name)
def test_other_rings(tmp_path: Path, backend: Backend) -> None:
    k = int(backend[2][3:])
    source = f"""
        k = {k}
        print_ln('%s', sint([1, -1, 5]).reveal())
        print_ln('%s', cint([(1 << (k-1)) - 1, 1 << (k-1)]) == cint([(1 << (k-1)) - 1, -(1 << (k-1))]))
        print_ln('%s', cint(-1) >> (k-3))
        print_ln('%s', cint(-1) % 10)
        print_ln('%s', (sint([3, -3]) < sint([4, -4])).reveal())
        print_ln('%s', (sint([3, -3]) == -3).reveal())
        print_ln('%s', sint.bit_compose(sint([3, -3]).bit_decompose(k)).reveal())
        print_ln('%s', ((sint([5, 6]) << (k-2)).reveal() >> (k-2)))
        print_ln('%s %s', program.options.ring, program.bit_length)
        """
    assert printed(tmp_path, source, backend) == [
        "[1, -1, 5]", "1", "7", "9", "[1, 0]", "[0, 1]", "[3, -3]", "[1, 2]", f"{k} {k - 1}"
    ]  # fmt: skip


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_randomness(tmp_path: Path, backend: Backend) -> None:
    source = """
        r = sint.get_random(size=50)
        print_ln('%s', (r - r).sum().reveal())
        print_ln('%s', r.reveal().size)
        b = sint.get_random_bit(size=2000)
        print_ln('%s', (b * b - b).sum().reveal())
        s = b.sum().reveal()
        print_ln('%s', (s > 900) * (s < 1100))     # 4.5 standard deviations
        """
    assert printed(tmp_path, source, backend) == ["0", "50", "0", "1"]


@pytest.mark.parametrize("backend", BINARY, ids=name)
def test_dabits_and_edabits(tmp_path: Path, backend: Backend) -> None:
    source = """
        e, rows = sint.get_edabit(5, False, size=100)
        print_ln('%s %s', len(rows), (sint.bit_compose(rows) - e).reveal().get_vector(0, 3))
        print_ln('%s', (e < 32).sum().reveal() if program.options.ring else 100)
        a, b = sint.get_dabit(size=100)
        d = sint(b) - a
        print_ln('%s', (d * d).sum().reveal())
        """
    assert printed(tmp_path, source, backend) == ["5 [0, 0, 0]", "100", "0"]


@pytest.mark.parametrize("backend", RINGS, ids=name)
def test_summands(tmp_path: Path, backend: Backend) -> None:
    source = """
        from Compiler import util
        n = program.use_split()
        x = sint([5, 11, -1])
        columns = x.split_to_n_summands(64, n)
        total = sum(sint(row) << i for i, column in enumerate(columns) for row in column)
        print_ln('%s %s %s', n, len(columns), total.reveal())
        """
    assert printed(tmp_path, source, backend) == [f"{backend[1] if backend[1] > 1 else 3} 64 [5, 11, -1]"]


def test_unused_edabit_sums_cost_nothing(tmp_path: Path) -> None:
    from .running import RING, run

    used = run(tmp_path, "a, b = sint.get_edabit(8, False, size=64)\nprint_ln('%s', a.reveal().size)", RING)
    unused = run(tmp_path, "b = sint.get_edabit(8, False, size=64)[1]\nprint_ln('%s', b[0].reveal().n)", RING)
    assert unused[0].stats["rounds"] == 1
    assert unused[0].stats["bytes_sent"] == 8
    assert used[0].stats["rounds"] > 1
