"""Boolean circuits on vectors of secret bits, in the binary domain (sbits) or the arithmetic one (sint with values 0, 1).

A row is one bit of every entry of a vector: `sbits.get_type(size)` or `sint` of that size. Lists of rows are least significant
first. Costs are per entry: one AND is one bit of a product in the binary domain, one product in the arithmetic one.
"""

from Compiler.GC.types import sbitvec
from trees import Prefix, tree


class Binary:
    """Rows of sbits: XOR and NOT are local."""

    @staticmethod
    def and_(a, b):
        return a & b

    @staticmethod
    def xor(a, b):
        return a ^ b

    @staticmethod
    def half_add(a, b):
        """XOR and AND."""
        return a ^ b, a & b

    or_ = xor  # of events that exclude each other
    and_not = xor  # a and not b, where b implies a

    @staticmethod
    def not_(a):
        return ~a


class Arithmetic:
    """Rows of sint with values 0 and 1: NOT and the disjunction of exclusive events are local, XOR is a product."""

    @staticmethod
    def and_(a, b):
        return a * b

    @staticmethod
    def xor(a, b):
        return a + b - 2 * (a * b)

    @staticmethod
    def half_add(a, b):
        """XOR and AND."""
        product = a * b
        return a + b - 2 * product, product

    @staticmethod
    def or_(a, b):
        return a + b

    @staticmethod
    def and_not(a, b):
        return a - b

    @staticmethod
    def not_(a):
        return 1 - a


class WithTriples(Binary):
    """Rows of sbits whose ANDs use triples (a, b, a & b) that were made before: two openings of a row each, in one round.

    next_triple(): the rows of another triple. Every triple serves once.
    """

    def __init__(self, next_triple):
        self.next_triple = next_triple

    def and_(self, x, y):
        a, b, c = self.next_triple()
        d, e = (x ^ a).reveal(), (y ^ b).reveal()
        # xy = (a + d)(b + e) with y = b + e: ab + ae + dy
        return c ^ (a & e) ^ (y & d)


class ElementsWithTriples(Arithmetic):
    """Rows of sint whose ANDs use triples (a, b, a & b) of bits that were made before: the low bits of two sums are opened, in one round.

    next_triple(): the vectors of another triple; every triple serves once. open_bit(x): opens x mod 2.
    """

    def __init__(self, next_triple, open_bit):
        self.next_triple, self.open_bit = next_triple, open_bit

    def and_(self, x, y):
        a, b, c = self.next_triple()
        d, e = self.open_bit(x + a), self.open_bit(y + b)
        # x = d xor a = d + (1 - 2d) a, and y likewise
        signs = 1 - 2 * d, 1 - 2 * e
        return d * e + (d * signs[1]) * b + (e * signs[0]) * a + (signs[0] * signs[1]) * c


def adder(logic, a, b, first=0):
    """Sum of two numbers of equally many rows, mod 2^m; rows below `first` are left out (and not computed).

    b[i] may be None (zero). Depth 1 + ceil(log2 m).
    """
    m = len(a)
    pairs = [(x, None) if y is None else logic.half_add(x, y) for x, y in zip(a[: m - 1], b[: m - 1], strict=True)]
    p = [pair[0] for pair in pairs] + [a[-1] if b[-1] is None else logic.xor(a[-1], b[-1])]
    prefix = Prefix(logic, [pair[1] for pair in pairs], p)
    rows = []
    for i in range(first, m):
        carry = prefix.generate(0, i) if i else None
        rows.append(p[i] if carry is None else logic.xor(p[i], carry))
    return rows


def below_blocks(products, public, blocks, block):
    """[public < secret], for rows of public bits, and a secret number of which `blocks` has the `thermometer` rows of every block. Of m blocks as many ANDs, and as deep, as
    `below` of m bits. products: the logic of the ANDs."""
    firsts = range(0, len(public), block)
    pairs = [block_below(public[first : first + block], rows) for first, rows in zip(firsts, blocks, strict=True)]
    return Prefix(products, [g for g, _ in pairs], [p for _, p in pairs]).generate(0, len(pairs))


def below(logic, public, secret, products=None):
    """[public < secret], for rows of public bits and rows of secret ones: m - 1 to 2m ANDs, depth ceil(log2 m).

    products: the logic of ANDs of two secret rows, if it is another one.
    """
    g = [logic.and_(y, logic.not_(x)) for x, y in zip(public, secret, strict=True)]
    p = [logic.not_(logic.xor(y, x)) for x, y in zip(public, secret, strict=True)]
    return Prefix(products or logic, g, p).generate(0, len(secret))


def block_lengths(length, block):
    """Bits of each block of a number of `length` bits, from the lowest: `block`, and what is left."""
    return [min(block, length - first) for first in range(0, length, block)]


def thermometer(logic, bits):
    """The 2^b - 1 rows [v >= 1], .., [v >= 2^b - 1] of the number v with these b bits: 2^b - b - 1 ANDs, depth ceil(log2 b). `logic`: the arithmetic one."""
    rows = []
    for row in reversed(one_hot(logic, bits)[1:]):
        rows.append(rows[-1] + row if rows else row)
    return rows[::-1]


def block_below(public, reached):
    """[c < v] and [c = v] for a public number c and a secret one v of b bits, as sint. Local.

    public: the b rows of c; reached: the rows of `thermometer` for v. With T_0 = 1 and T_(2^b) = 0 these are T_(c+1) and T_c - T_(c+1), and [c = i] is public.
    """
    here = [1]
    for bit in public:
        here = [x - x * bit for x in here] + [x * bit for x in here]
    less = sum(x * row for x, row in zip(here, reached, strict=False))
    reaches = here[0] + sum(x * row for x, row in zip(here[1:], reached, strict=True))
    return less, reaches - less


def one_hot(logic, bits):
    """The 2^b rows [bits = v]: 2^b - b - 1 ANDs, depth ceil(log2 b).

    Rows of the two halves are multiplied; the last row and column of that product follow from the sums of the others.
    """
    if len(bits) == 1:
        return [logic.not_(bits[0]), bits[0]]
    half = len(bits) // 2
    low, high = one_hot(logic, bits[:half]), one_hot(logic, bits[half:])

    def with_last(rows, total):
        for row in rows:
            total = logic.and_not(total, row)
        return [*rows, total]

    blocks = [with_last([logic.and_(h, x) for x in low[:-1]], h) for h in high[:-1]]
    last = [with_last([block[i] for block in blocks], x)[-1] for i, x in enumerate(low)]
    return [row for block in [*blocks, last] for row in block]


def rotated(rows, digits):
    """2^b rows, of which row i is row i + d modulo 2^b of the given ones, for the number d of these b public bits. Local in the arithmetic domain."""
    for place, digit in enumerate(digits):
        further = rows[2**place :] + rows[: 2**place]
        rows = [row + digit * (other - row) for row, other in zip(rows, further, strict=True)]
    return rows


def popcount(rows):
    """Number of ones among rows of sbits: m - (number of ones in m) ANDs, depth floor(log2 m), by columns of full adders.

    A full adder has one AND, and its sum is local; so all of a column's carries come one level after its inputs.
    """
    result = []
    while rows:
        carries = []
        column = rows[0]
        rest = rows[1:]
        while rest:
            if len(rest) == 1:
                carries.append(column & rest[0])
                column, rest = column ^ rest[0], []
            else:
                x, y, rest = rest[0], rest[1], rest[2:]
                carries.append(((column ^ y) & (x ^ y)) ^ y)
                column = column ^ x ^ y
        result.append(column)
        rows = carries
    return result


def full_adder(x, y, z):
    """Sum and carry of three rows of sbits, any of which may be None (zero): one AND."""
    rows = [row for row in (x, y, z) if row is not None]
    if len(rows) < 2:
        return rows[0] if rows else None, None
    if len(rows) == 2:
        return rows[0] ^ rows[1], rows[0] & rows[1]
    return x ^ y ^ z, ((x ^ z) & (y ^ z)) ^ z


def ring_bits(x, m, summands, first=0):
    """Rows first..m-1 of a secret vector over Z_2^k with entries below 2^m.

    x: sint; summands: `program.use_split()`. Where a share splits into summands, their bits are added: full adders, then one
    prefix adder of depth 1 + ceil(log2 m); elsewhere the conversion is that of the backend.
    """
    if not summands:
        return sbitvec(x, m, m).v[first:]
    columns = x.split_to_n_summands(m, summands)
    numbers = [[column[i] for column in columns] for i in range(summands)]
    while len(numbers) > 2:
        added = [full_adder(*rows) for rows in zip(*[number[:-1] for number in numbers[:3]], strict=True)]
        top = tree(Binary.xor, [number[-1] for number in numbers[:3] if number[-1] is not None])
        numbers = [*numbers[3:], [*(s for s, _ in added), top], [None, *(carry for _, carry in added)]]
    return adder(Binary, numbers[0], numbers[1], first) if len(numbers) == 2 else numbers[0][first:]


def parity(x, bound, summands):
    """The row of lowest bits of a secret vector over Z_2^k with entries below `bound`; local where a share splits."""
    if not summands:
        return sbitvec(x, bound.bit_length(), bound.bit_length()).v[0]
    return tree(Binary.xor, x.split_to_n_summands(1, summands)[0])
