"""u = [x < r] for a public x and a secret random r by look-up tables that are made in advance.

Paper: "High Throughput Universally Composable Threshold FHE Decryption" (LTRand): r is cut into blocks of b bits, and a table of
2^b entries a block gives Sign(x_i - r_i); the d signs make S = sum of Sign_i * 2^i, whose sign is that of x - r; S is opened under
a mask mod 2^(d+1), and a table of 2^(d+1) entries gives [S < 0]. With more levels the signs are combined in a tree, in groups.

All tables are linear in one-hot vectors of secret random bits. A row is a vector of `size` shares, one for each decryption.
"""

from itertools import pairwise

from Compiler.types import cint, regint, sint
from logic import Arithmetic, Binary, one_hot
from rounding import dabits, open_low, parity, weighted


class Shape:
    """How numbers of `length` bits are compared: blocks of b bits, then groups of signs on levels - 1 further levels.

    blocks: (number of blocks, width) in order, the lowest bits first; groups: for each further level the sizes of its groups.
    """

    def __init__(self, length, b, levels):
        self.levels = levels
        self.blocks = [(count, width) for count, width in ((length // b, b), (1 if length % b else 0, length % b)) if count]
        count = sum(n for n, _ in self.blocks)
        group = 1
        while group ** (levels - 1) < count and levels > 1:
            group += 1
        self.groups = []
        while len(self.groups) < levels - 1:
            last = len(self.groups) == levels - 2
            sizes = [count] if last else [min(group, count - i) for i in range(0, count, group)]
            self.groups.append(sizes)
            count = len(sizes)
        self.fits = count == 1 and all(size <= 15 for sizes in self.groups for size in sizes)

    @property
    def bits(self):
        """Bits of the largest mask of a group of signs, and so of the ring that the tables need at least."""
        return max([size + 1 for sizes in self.groups for size in sizes], default=1)

    @property
    def rows(self):
        """Vectors of all tables and of the masks of the groups."""
        first = sum(count << width for count, width in self.blocks)
        return first + sum(1 + (2 << size) for sizes in self.groups for size in sizes)


def _convert(rows):
    """Rows of bits as shares: converted from the binary domain if they are there."""
    return [sint(row) for row in rows]


def _running(logic, hot):
    """Rows [R < 1], [R < 2], .., [R < 2^w - 1] from the one-hot rows of R."""
    rows = [hot[0]]
    for row in hot[1:-1]:
        rows.append(logic.or_(rows[-1], row))
    return rows


def first_tables(logic, rows, last):
    """The table of a block with these bit rows: entries x = 0, 1, .. of Sign(x - R), or of [x < R] if nothing follows."""
    below = [0, *_convert(_running(logic, one_hot(logic, rows))), 1]  # [R < x] for x = 0..2^w
    if last:
        return [1 - y for y in below[1:]]
    return [x + y - 1 for x, y in pairwise(below)]


def group_tables(logic, rows, last):
    """The table of a group with the mask of these bit rows: entries y of Sign(y - mask) mod 2^m as a signed number, or of its
    being negative."""
    hot, m = one_hot(logic, rows), len(rows)
    half = 1 << (m - 1)
    if not last:
        hot = _convert(hot[:-1])
        hot.append(1 - sum(hot[1:], hot[0]))
        logic = Arithmetic
    # negative[y] = sum of hot[y + 1 .. y + half]; that of y + half is the complement
    negative = [hot[1]]
    for v in range(2, half + 1):
        negative[0] = logic.or_(negative[0], hot[v])
    for y in range(1, half):
        negative.append(logic.and_not(logic.or_(negative[-1], hot[y + half]), hot[y]))
    if last:
        negative = _convert(negative)
    negative += [1 - row for row in negative]
    return negative if last else [1 - h - 2 * below for below, h in zip(negative, hot, strict=True)]


def make_tables(shape, size, method, summands, stored_bit=None):
    """Appends all tables to the share file; stored_bit(i): the shares of bit i of r. Without it r is made as well, of bits that are known
    in both domains, and appended first; then the method is binary.

    Order: the tables of equally wide blocks, entry after entry and in it block after block; then for each group its mask and its
    table, entry after entry.
    """

    def logical(rows):
        return (Binary, [parity(row, 2, summands) for row in rows]) if method == "binary" else (Arithmetic, rows)

    # The bits of all masks come first, so that tables do not wait for each other.
    if stored_bit is None:
        pairs = [[dabits(size, length + 1) for length in sizes] for sizes in shape.groups]
        masks = [[bits for bits, _ in level] for level in pairs]
        digits = [[(Binary, rows) for _, rows in level] for level in pairs]
        blocks = [dabits(count * size, width) for count, width in shape.blocks]
        sint.write_to_file(_number(shape, size, [bits for bits, _ in blocks]))
        blocks = [(Binary, rows) for _, rows in blocks]
    else:
        masks = [[[sint.get_random_bit(size=size) for _ in range(length + 1)] for length in sizes] for sizes in shape.groups]
        digits = [[logical(bits) for bits in level] for level in masks]
        blocks = [logical(rows) for rows in _side_by_side(shape, stored_bit)]
    made = [(first_tables(*rows, shape.levels == 1), count * size) for rows, (count, _) in zip(blocks, shape.blocks, strict=True)]
    for level, groups in enumerate(digits):
        for bits, digit in zip(masks[level], groups, strict=True):
            made.append(([weighted(bits)], size))
            made.append((group_tables(*digit, level == shape.levels - 2), size))
    for rows, width in made:
        sint.write_to_file([row if isinstance(row, sint) else sint(row, size=width) for row in rows])


def _side_by_side(shape, stored_bit):
    """For each width of blocks its rows: bit i of all blocks of that width, block after block."""
    base = 0
    for count, width in shape.blocks:
        yield [
            sint.concat([stored_bit(base + block * width + i) for block in range(count)]) if count > 1 else stored_bit(base + i) for i in range(width)
        ]
        base += count * width


def _number(shape, size, blocks):
    """The number whose bits are these, in the order of `_side_by_side`."""
    base, parts = 0, []
    for (count, width), rows in zip(shape.blocks, blocks, strict=True):
        digits = weighted(rows)
        parts += [2 ** (base + block * width) * digits.get_vector(block * size, size) for block in range(count)]
        base += count * width
    return sum(parts)


class Lookup:
    """The online part: opens what is masked and looks it up. `read(count)` gives the next shares of the file. deferred: of `open_low`."""

    def __init__(self, shape, size, ring_length, read, deferred=False):
        self.shape, self.size, self.ring_length, self.read, self.deferred = shape, size, ring_length, read, deferred

    def below(self, x):
        """[x < r] as shares modulo the ring of the tables, for a public vector x. levels - 1 rounds."""
        signs = self._first(x)
        for sizes in self.shape.groups:
            signs = self._combine(signs, sizes)
        return signs[0]

    def _first(self, x):
        size, signs, base = self.size, [], 0
        for count, width in self.shape.blocks:
            table, top = self._table(count << width), self.ring_length - base - width
            digits = cint.concat([x << (top - block * width) for block in range(count)]) >> (self.ring_length - width)
            found = table.get(digits.to_regint() * (count * size) + regint.inc(count * size))
            signs += [found.get_vector(block * size, size) for block in range(count)]
            base += count * width
        return signs

    def _combine(self, signs, sizes):
        opened, tables, first = [], [], 0
        for length in sizes:
            masked = self.read(self.size) + sum(2**i * sign for i, sign in enumerate(signs[first : first + length]))
            opened.append(open_low(masked, length + 1, self.ring_length, self.deferred))
            tables.append(self._table(2 << length))
            first += length
        return [table.get(y.to_regint() * self.size + regint.inc(self.size)) for table, y in zip(tables, opened, strict=True)]

    def _table(self, rows):
        table = sint.Array(rows * self.size)
        table.assign_vector(self.read(rows * self.size))
        return table
