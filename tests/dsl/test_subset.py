"""The edge of the subset: every method that MP-SPDZ's types have works, or is refused as outside the subset; and the methods that are here."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from keyquorum.dsl import ProgramOptions
from keyquorum.dsl.containers import sorting
from keyquorum.model.errors import ProgramError

from .running import ALL, EMULATE, RING, SHAMIR, Backend, name, printed, run

PUBLIC_NAMES = {
    "sint([1, 2, 3])": """
        Array Matrix MemValue Norm PreOR PreOp Tensor TruncMul TruncPr add arg_type bit_adder bit_and bit_compose bit_decompose
        bit_decompose_clear bit_not bit_or bit_xor clear_type concat cond_swap conv copy_from_part direct_matrix_mul dot_product equal
        expand_to_vector extend field_div free get_dabit get_edabit get_input_from get_random get_random_bit get_random_input_mask_for
        get_random_int get_random_inverse get_random_square get_random_triple get_raw_input_from get_reverse_vector get_secure_shuffle
        get_type get_vector greater_equal greater_than half_adder hard_conv iadd if_else input_tensor_from input_tensor_from_client
        input_tensor_via instruction_type int_div int_mod inverse_permutation left_shift less_equal less_than load_clear load_int load_mem
        load_other long_one malloc matrix_mul max mem_size min mod2m mov mul mul_no_reduce n_elements new_vector not_equal output
        popcnt_bits pow2 prefix_sum prep_res private_division raw_mod2m raw_right_shift read_from_file read_from_socket
        receive_from_client reduce_after_mul reg_type require_bit_length reveal reveal_to reveal_to_clients right_shift ripple_carry_adder
        round row_matrix_mul secret_op secure_permute secure_shuffle size_for_mem sizeof split_to_n_summands split_to_two_summands square
        store_in_mem sum trunc_zeros two_power vector_size write_fully_to_socket write_share_to_socket write_shares_to_socket
        write_to_file write_to_socket zero_if_not zip
    """,
    "cint([1, 2, 3])": """
        Array Matrix MemValue Norm Tensor add arg_type binary_output bit_adder bit_and bit_compose bit_decompose bit_not bit_or bit_xor
        clear_op coerce_op concat cond_swap conv convert_from copy_from_part digest dot_product equal expand_to_vector extend field_div
        free get_type greater_than half_adder hard_conv iadd if_else in_immediate_range instruction_type legendre less_than load_int
        load_mem load_other long_one malloc max mem_size min mod2m mov mul mul_no_reduce n_elements new_vector output_if popcnt_bits pow2
        prep_res print_if print_reg print_reg_plain raw_output read_from_socket reduce_after_mul reg_type reveal right_shift
        ripple_carry_adder round row_matrix_mul size_for_mem sizeof square store_in_mem to_regint two_power vector_size write_to_socket
        zero_if_not
    """,
    "regint([1, 2, 3])": """
        Array Matrix MemValue Tensor add arg_type binary_output bit_adder bit_and bit_compose bit_decompose bit_not bit_or bit_xor cint_op
        concat cond_swap conv copy_from_part dot_product expand_to_vector extend free get_random half_adder hard_conv iadd if_else inc
        instruction_type int_op load_int load_mem load_other long_one malloc max mem_size min mod2m mov mul mul_no_reduce n_elements
        new_vector output_if pop popcnt_bits pow2 prep_res print_if print_reg_plain push read_from_socket reduce_after_mul reg_type reveal
        ripple_carry_adder row_matrix_mul shuffle size_for_mem sizeof square store_in_mem vector_size write_to_socket zero_if_not
    """,
    "get_player_id()": """
        output
    """,
    "sint(1).reveal_to(0)": """
        binary_output bit_decompose get_vector read_fix read_fix_from_socket read_from_socket read_int read_int_from_socket reveal_to size
    """,
    "sbits.get_type(3)(5)": """
        Array Matrix MemValue PreOR PreOp Tensor TruncPr arg_type bit_adder bit_and bit_compose bit_decompose bit_decompose_clear bit_not
        bit_or bit_xor bitcom bitdec carry_out clear_type compose concat cond_swap conv conv_regint conv_regint_by_bit copy copy_from_part
        decomposed direct_matrix_mul equal expand get_input_from get_random_bit get_raw_input_from get_type half_adder hard_conv if_else
        is_clear is_long_one load_dynamic_mem load_inst load_int load_mem load_other long_one malloc max_length mem_op mem_size mov
        mul_int n n_elements new new_vector output popcnt reg_type res_type reveal reveal_to right_shift ripple_carry_adder row_matrix_mul
        same_type set_length set_size size_for_mem store_in_dynamic_mem store_in_mem store_inst trans two_power types unit vec vector_size
        xor_int zero_if_not
    """,
    "cbits.get_type(3)(5)": """
        Array Matrix MemValue PreOR PreOp Tensor arg_type bit_and bit_compose bit_decompose bit_decompose_clear bit_not bit_or bit_xor
        bitdec carry_out clear_op compose concat cond_swap conv conv_cint_vec conv_regint conv_regint_by_bit copy copy_from_part
        decomposed direct_matrix_mul expand get_type half_adder hard_conv if_else is_clear is_long_one load_inst load_int load_mem
        load_other long_one malloc max_length mem_op mem_size mov n n_elements new new_vector output output_if print_if print_reg
        print_reg_plain reg_type res_type reveal reveal_to row_matrix_mul same_type set_length set_size size_for_mem store_in_dynamic_mem
        store_in_mem store_inst to_regint to_regint_by_bit types unit vec vector_size zero_if_not
    """,
    "sbitvec(sint(1), 3)": """
        bit_and bit_compose bit_decompose bit_extend bit_not bit_or bit_xor carry_out coerce combine comp_result compose cond_swap conv
        demux direct_matrix_mul elements equal eqz expand from_hex from_matrix from_vec get_type half_adder hard_conv if_else is_clear
        link long_one n_bits popcnt reveal reveal_print_hex reveal_to reverse_bytes reverse_type right_shift size store_in_mem tree_reduce
        update
    """,
    "sint.Array(3)": """
        Array address alloc assign assign_all assign_part_vector assign_slice_vector assign_vector binary_output check check_indices
        concat create_from delete dot expand_to_vector get get_address get_mem_value get_part get_part_vector get_range get_reverse_vector
        get_slice get_slice_addresses get_slice_vector get_sub get_vector input_from maybe_get maybe_set output output_if permute
        print_reveal_nested randomize read_from_file read_from_socket reveal reveal_list reveal_nested reveal_to reveal_to_binary_output
        reveal_to_clients reveal_to_socket_by_party same_shape secure_permute secure_shuffle set_range shape shuffle sort sum to_array
        to_column_matrix to_row_matrix total_size write_to_file write_to_socket
    """,
    "sint.Tensor([2, 2, 2])": """
        assign assign_all assign_part_vector assign_slice_vector assign_vector assign_vector_by_indices check check_indices concat diag
        direct_mul direct_mul_to_matrix direct_mul_trans direct_trans_mul dot from_vector get_addresses get_column get_part get_part_size
        get_part_vector get_slice_addresses get_slice_vector get_vector get_vector_by_indices iadd input_from maybe_get maybe_set mul
        mul_trans mul_trans_to output parallel_mul part_size permute plain_mul print_reveal_nested randomize read_from_file
        read_from_socket reveal reveal_list reveal_nested reveal_to_binary_output reveal_to_clients reveal_to_socket_by_party same_shape
        schur secure_permute secure_shuffle set_column shape sort to_array total_size trace trans_mul trans_mul_to transpose write_to_file
        write_to_socket
    """,
    "sint.Matrix(2, 2)": """
        address alloc assign assign_all assign_part_vector assign_slice_vector assign_vector assign_vector_by_indices check check_indices
        concat concat_columns create_from delete diag direct_mul direct_mul_to_matrix direct_mul_trans direct_trans_mul
        disable_index_checks dot from_vector get_addresses get_column get_column_by_row_indices get_columns get_part get_part_size
        get_part_vector get_slice_addresses get_slice_vector get_vector get_vector_by_indices iadd input_from maybe_get maybe_set mul
        mul_trans mul_trans_to output parallel_mul part_size permute plain_mul print_reveal_nested randomize read_from_file
        read_from_socket reveal reveal_list reveal_nested reveal_to_binary_output reveal_to_clients reveal_to_socket_by_party same_shape
        schur secure_permute secure_shuffle set_column shape sort to_array total_size trace trans_mul trans_mul_to transpose write_to_file
        write_to_socket
    """,
    "MemValue(sint(1))": """
        bit_and bit_decompose bit_not check delete dot_product equal expand_to_vector greater_equal greater_than iadd iand if_else
        if_necessary ifloordiv ilshift imod imul ior ipow irshift isub itruediv ixor less_equal less_than max min mod2m mul_no_reduce
        not_equal popcnt_bits pow2 print_if read reduce_after_mul reveal reveal_to_clients reveal_to_socket_by_party right_shift
        same_shape shape square store_in_mem write zero_if_not
    """,
}
"""Methods and attributes of MP-SPDZ's types (commit 3a0a7b1d, with those of their base classes), beside a value of the type."""
SAFE = """
    for name in NAMES:
        try:
            getattr(VALUE, name)
        except AttributeError as error:
            print_ln('%s', name)
"""


@pytest.mark.parametrize("value", PUBLIC_NAMES)
def test_every_method_of_mp_spdz_works_or_is_outside_the_subset(tmp_path: Path, value: str) -> None:
    """Each alone, as a program would use it: a run ends well, or with one line that names the method."""
    names = PUBLIC_NAMES[value].split()
    absent = printed(tmp_path, SAFE.replace("VALUE", value).replace("NAMES", repr(names)))
    assert absent, "MP-SPDZ has more"
    for method in absent:
        with pytest.raises(ProgramError) as caught:
            run(tmp_path, f"{value}.{method}")
        kind, rest = str(caught.value).removeprefix("Programs/Source/program.mpc:1: ").split(".", 1)
        assert rest.startswith(f"{method} is outside the supported subset of the language (docs/pages/dsl.md)") and kind.isalnum()


CONTAINERS = """
A = sint.Array(3)
A.assign([5, -7, 1])
B = A
A += sint([1, 1, 1])
print_ln('%s %s', A.reveal(), B.reveal())
A -= B
print_ln('%s', A.reveal())
A.assign([2, 3, 4])
A *= A
print_ln('%s %s', B.reveal(), (A ** 2).reveal())
C = cint.Array(3)
C.assign([4, 9, 17])
print_ln('%s %s %s', cint(C == 9), cint(C < cint([5, 5, 5])), cint(C >= C))
print_ln('%s', cint(cint([9, 9, 9]) == C))
M, N = sint.Matrix(2, 2), cint.Matrix(2, 2)
M.assign([1, 2, 3, 4])
N.assign([10, 20, 30, 40])
S = M + N
print_ln('%s %s %s', type(S).__name__, S.reveal(), (N + M).reveal())
print_ln('%s %s', (M - N).reveal(), sum([M, M, M]).reveal())
print_ln('%s %s', M.schur(M).reveal(), (M + sint([1, 1, 1, 1])).reveal())
L = M
M += N
print_ln('%s', L.reveal())
M.iadd(N)
M -= M
print_ln('%s', L.reveal())
print_ln('%s', cint((N > N.transpose()).get_vector()))
T = cint.Tensor([2, 1, 2])
T.assign([1, 2, 3, 4])
print_ln('%s %s', T + T, T.schur(T))
m = MemValue(regint(20))
n = m
m //= 3
m **= 2
m <<= 1
print_ln('%s %s', m, n)
m.imod(5)
x = cint(3)
y = x
x.iadd(4)
print_ln('%s %s', n, y)
"""
CONTAINERS_PRINTED = """\
[6, -6, 2] [6, -6, 2]
[0, 0, 0]
[4, 9, 16] [16, 81, 256]
[0, 1, 0] [1, 0, 0] [1, 1, 1]
[0, 1, 0]
Matrix [[11, 22], [33, 44]] [[11, 22], [33, 44]]
[[-9, -18], [-27, -36]] [[3, 6], [9, 12]]
[[1, 4], [9, 16]] [[2, 3], [4, 5]]
[[11, 22], [33, 44]]
[[0, 0], [0, 0]]
[0, 0, 1, 0]
[[[2, 4]], [[6, 8]]] [[[1, 4]], [[9, 16]]]
72 72
2 7
"""


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_containers_element_by_element(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, CONTAINERS, backend) == CONTAINERS_PRINTED.splitlines()


@pytest.mark.parametrize("n", [*range(20), 64, 100])
def test_the_network_sorts(n: int) -> None:
    """All sequences of 0 and 1 up to 12 places, which is enough for all numbers of these lengths; random ones above."""
    rng = random.Random(n)
    steps = [pair for low, high in sorting.layers(n) for pair in zip(low.tolist(), high.tolist(), strict=True)]
    t = max(0, n - 1).bit_length()
    assert len(list(sorting.layers(n))) <= t * (t + 1) // 2
    cases = range(1 << n) if n <= 12 else (rng.getrandbits(n) for _ in range(500))
    for case in cases:
        values = [case >> i & 1 for i in range(n)]
        for i, j in steps:
            if values[i] > values[j]:
                values[i], values[j] = values[j], values[i]
        assert values == sorted(values)


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_arrays_are_sorted_in_place(tmp_path: Path, backend: Backend) -> None:
    source = """
        A = sint.Array(7)
        A.assign([5, -3, 100, 5, 0, -128, 127])
        B = sint.Array(5)
        B.assign([4, 3, 2, 1, 0])
        A.sort(n_bits=8)
        B.get_part(1, 3).sort(batcher=True, n_threads=2, n_bits=8)
        sint.Array(0).sort()
        print_ln('%s %s', A.reveal(), B.reveal())
        """
    assert printed(tmp_path, source, backend) == ["[-128, -3, 0, 5, 5, 100, 127] [4, 1, 2, 3, 0]"]


@pytest.mark.parametrize(("backend", "options"), [(RING, None), (SHAMIR, ProgramOptions(field=18))], ids=["ring", "shamir"])
def test_sort_takes_the_length_of_the_program(tmp_path: Path, backend: Backend, options: ProgramOptions | None) -> None:
    values = [131071, -131072, 7, 7, 0]
    source = f"A = sint.Array(5)\nA.assign({values})\nA.sort()\nprint_ln('%s', A.reveal())"
    assert printed(tmp_path, source, backend, options=options) == [str(sorted(values))]


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_random_integers_have_their_length_and_all_values(tmp_path: Path, backend: Backend) -> None:
    """2000 numbers of 3 bits: each value 250 times, within 6 standard deviations (89)."""
    source = """
        r = sint.get_random_int(3, size=2000).reveal()
        print_ln('%s', r)
        """
    numbers = [int(v) for v in printed(tmp_path, source, backend)[0].strip("[]").split(", ")]
    assert sorted(set(numbers)) == list(range(8)) and all(161 <= numbers.count(v) <= 339 for v in range(8))


@pytest.mark.parametrize(
    ("backend", "bits"), [(RING, 64), (("ring", 3, "Z2^72"), 70), (SHAMIR, 59)], ids=lambda v: "" if isinstance(v, int) else v[2][:5]
)
def test_long_random_integers(tmp_path: Path, backend: Backend, bits: int) -> None:
    """The top bit of 200 numbers: 0 and 1, within 6 standard deviations (43)."""
    source = f"r = sint.get_random_int({bits}, size=200).reveal()\nprint_ln('%s %s', (r >> {bits - 1}), (r >> {bits - 1}) >> 1)"
    top, above = printed(tmp_path, source, backend)[0].rsplit(" [", 1)
    assert 57 <= top.count("1") <= 143 and "1" not in above


def test_powers_cost_what_they_say(tmp_path: Path) -> None:
    """x ** 5: two squares and a product, one after another."""
    source = "x = sint.get_random(size=10)\nstart_timer(1)\ny = (x ** 5).reveal()\nstop_timer(1)"
    result = run(tmp_path, source, RING)[0].result
    assert result is not None and result.timers[1].rounds == 4


def test_a_swap_is_one_product(tmp_path: Path) -> None:
    source = "x, y, b = (sint.get_random(size=10) for _ in range(3))\nstart_timer(1)\n[v.reveal() for v in b.cond_swap(x, y)]\nstop_timer(1)"
    result = run(tmp_path, source, RING)[0].result
    assert result is not None and result.timers[1].rounds == 2 and result.timers[1].bytes_sent == 3 * 10 * 8


def test_names_outside_the_subset_are_refused_alike(tmp_path: Path) -> None:
    for line in ("sgf2n(1)", "cgf2n.get_random()", "sfloat(1)", "library_function(1)", "listen_for_clients(1)"):
        with pytest.raises(ProgramError, match="is not defined here, or outside the supported subset"):
            run(tmp_path, line, EMULATE)
