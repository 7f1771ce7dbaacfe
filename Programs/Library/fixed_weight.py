"""The oblivious Knuth shuffle of 1^w 0^(N-w) by linear scan. Paper: GMPFHE, section 4.1.3 and figure 3."""

from Compiler.GC.types import sbits
from Compiler.library import break_point
from Compiler.types import cint, regint, sint
from logic import Arithmetic, Binary, adder, one_hot, parity
from trees import Prefix, tree

BLOCK = 64  # entries of a row of the packed vector


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
    reduced = [propagate[0]] + [Arithmetic.xor(propagate[i], prefix.generate(0, i)) for i in range(1, width)]
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
        tables = joined + tables[len(joined) * 2 :]
    return tables[0]


def as_array(vector):
    """A secret vector in memory."""
    array = sint.Array(vector.size)
    array.assign_vector(vector)
    return array


def knuth_shuffle(contributors, length, weight):
    """A 0/1 vector uniform among those of a given weight.

    Step i swaps entry i with entry i + j, j uniform below N - i: every party gives a uniform summand of each j, bit by bit.
    Entry i is still 1 at step i (a swap never takes a 1 away from entries i+1..w-1), so the swap sets entry i + j to 1
    and entry i to what was there: one product per entry and one round per step.
    """
    width = max(1, (length - 1).bit_length())
    indices = [[sint.get_input_from(party, size=weight, binary=True) for _ in range(width)] for party in range(contributors)]
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


def public_row(numbers, i):
    """Row i of a list of integers, as sbits."""
    return sbits.get_type(len(numbers))(sum((number >> i & 1) << k for k, number in enumerate(numbers)))


def packed_sum_below(a, b, bounds):
    """(a + b) mod M for rows of sbits, M a list of integers: 3 + 2 * ceil(log2 rows) levels at most."""
    width = len(a)
    total = adder(Binary, [*a, a[0] ^ a[0]], [*b, None])
    negative = [2 ** (width + 1) - bound for bound in bounds]
    pairs = [Binary.half_add(x, public_row(negative, i)) for i, x in enumerate(total)]
    prefix = Prefix(Binary, [pair[1] for pair in pairs], [pair[0] for pair in pairs])
    reaches = prefix.generate(0, width + 1)
    reduced = [pairs[0][0]] + [pairs[i][0] ^ prefix.generate(0, i) for i in range(1, width)]
    return [x ^ (reaches & (y ^ x)) for x, y in zip(total, reduced, strict=False)]


def packed_indices(contributors, length, weight, summands):
    """Rows of i + j_i for i = 0..weight-1, the j_i uniform below length - i."""
    width = max(1, (length - 1).bit_length())
    given = [[sint.get_input_from(party, size=weight, binary=True) for _ in range(width)] for party in range(contributors)]
    shares = [[parity(bit, 2, summands) for bit in bits] for bits in given]
    offsets = tree(lambda a, b: packed_sum_below(a, b, [length - i for i in range(weight)]), shares)
    return adder(Binary, offsets, [public_row(list(range(weight)), i) for i in range(width)])


def packed_knuth_shuffle(contributors, length, weight, summands):
    """The vector of knuth_shuffle as one row of sbits: the scan is in the binary domain, an AND and entry in each step.

    The vector is cut in blocks. An index is (block, place in it): its one-hot vector is that of the place, where the bit of the block
    is set; that takes one AND an entry more, for all steps in one level.
    """
    index = packed_indices(contributors, length, weight, summands)
    bits, count = sbits.get_type(BLOCK), -(-length // BLOCK)
    low = BLOCK.bit_length() - 1
    places = [row.bit_decompose(weight) for row in one_hot(Binary, (index + [index[0] ^ index[0]] * low)[:low])]
    tops = [row.bit_decompose(weight) for row in one_hot(Binary, index[low:])[:count]] if len(index) > low else None
    v = [bits((1 << max(0, min(BLOCK, weight - r * BLOCK))) - 1) for r in range(count)]
    for i in range(weight):
        place = bits.bit_compose([row[i] for row in places])
        chosen = [place] if tops is None else [top[i].if_else(place, bits(0)) for top in tops]
        hits = [h & x for h, x in zip(chosen, v, strict=True)]
        v = [x ^ h ^ hit for x, h, hit in zip(v, chosen, hits, strict=True)]
        found = tree(Binary.xor, tree(Binary.xor, hits).bit_decompose(BLOCK))
        zero = found ^ found
        cleared = [zero] * BLOCK
        cleared[i % BLOCK] = ~found  # entry i was 1
        v[i // BLOCK] ^= bits.bit_compose(cleared)
    return sbits.bit_compose([bit for row in v for bit in row.bit_decompose(BLOCK)][:length])
