"""The oblivious Knuth shuffle of 1^w 0^(N-w) by linear scan. Paper: GMPFHE, section 4.1.3 and figure 3."""

from Compiler.library import break_point
from Compiler.types import cint, regint, sint
from logic import Arithmetic, adder
from trees import Prefix, tree


def public_bits(values, width):
    """Rows of the bits of a public vector."""
    return [(values >> i) % 2 for i in range(width)]


def sum_below(a, b, bound):
    """(a + b) mod M for secret a, b < M given as rows, M a public vector: exact, so a uniform summand makes a uniform sum.

    Depth 4 + 2 * ceil(log2 rows).
    """
    width = len(a)
    total = adder(Arithmetic, [*a, 0], [*b, None])
    negative = public_bits(2 ** (width + 1) - bound, width + 1)
    # total - M, whose last carry is missing where total < M
    pairs = [Arithmetic.half_add(x, m) for x, m in zip(total, negative, strict=True)]
    propagate = [pair[0] for pair in pairs]
    prefix = Prefix(Arithmetic, [pair[1] for pair in pairs], propagate)
    reaches = prefix.generate(0, width + 1)
    reduced = [propagate[0]] + [Arithmetic.differ(propagate[i], prefix.generate(0, i)) for i in range(1, width)]
    return [x + reaches * (y - x) for x, y in zip(total, reduced, strict=False)]


def one_hot_columns(bits, length):
    """sint.Array of length * m entries, entry v * m + i = [number i = v], for m numbers given as rows of arithmetic bits.

    Neighbouring digits are joined until one is left: depth ceil(log2 rows), length * m products at the last level.
    """
    m = bits[0].size
    tables = [as_array(sint.concat([1 - bit, bit])) for bit in bits]
    while len(tables) > 1:
        break_point()
        joined = []
        for low, high in zip(tables[::2], tables[1::2], strict=False):
            size = min(len(low) * len(high) // m, length * m)
            row = regint.inc(size, 0, m, len(low)) + regint.inc(size, 0, 1, 1, m)
            joined.append(as_array(low.get(regint.inc(size, 0, 1, 1, len(low))) * high.get(row)))
        tables = joined + tables[len(joined) * 2:]
    return tables[0]


def as_array(vector):
    """A secret vector in memory."""
    array = sint.Array(vector.size)
    array.assign_vector(vector)
    return array


def knuth_shuffle(dealers, length, weight):
    """A 0/1 vector uniform among those of a given weight.

    Step i swaps entry i with entry i + j, j uniform below N - i: every party gives a uniform summand of each j, bit by bit.
    Entry i is still 1 at step i (a swap never takes a 1 away from entries i+1..w-1), so the swap sets entry i + j to 1
    and entry i to what was there: one product per entry and one round per step.
    """
    width = max(1, (length - 1).bit_length())
    indices = [[sint.get_input_from(party, size=weight, binary=True) for _ in range(width)] for party in range(dealers)]
    bound = cint(regint.inc(weight, length, -1))
    chosen = one_hot_columns(tree(lambda a, b: sum_below(a, b, bound), indices), length)
    v = sint.Array(length)
    v.assign_all(0)
    v.assign_vector(sint(1, size=weight))
    for i in range(weight):
        break_point()
        here, there = chosen.get(regint.inc(length - i, i, weight)), v.get_vector(i, length - i)
        hit = here * there
        v.assign_vector(there + here - hit, i)
        break_point()
        v[i] = hit.sum()
    break_point()
    return v.get_vector()
