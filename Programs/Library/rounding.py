"""Exact decryption: the noise of z = 2^l * m + e + 2^(l-1) mod t * 2^l is removed under a mask, and only m is opened.

Contributors 0..d-1 give masks r_i uniform in [0, 2^l); R is their sum over the integers. R mod 2^l hides z mod 2^l, and the carry
floor(R / 2^l) < d is corrected for. A bit goes from the binary domain to the arithmetic one, or from the ring to F_t, under a
random bit known to both: the masked bit is opened.
"""

from Compiler.GC.types import sbits
from Compiler.types import cint, sint
from conversions import sum_mod_2
from inputs import StoredReader, contributions
from logic import Arithmetic, Binary, ElementsWithTriples, WithTriples, below, below_blocks, block_lengths, parity, ring_bits


def carry_length(contributors):
    """Number of bits of the carry of the sum of `contributors` masks."""
    return (contributors - 1).bit_length()


def mask_sum(contributors, size):
    """R as a secret vector. One round."""
    return sum(contributions(contributors, size))


def mask_rows(mask, contributors, noise_bits, summands, first=0):
    """Rows first..l-1 of the bits of R, and the rows of its carry, for l = noise_bits (ring)."""
    length = noise_bits + carry_length(contributors)
    rows = ring_bits(mask, length, summands, first) if first < length else []
    return rows[: noise_bits - first], rows[noise_bits - first :]


def bits_in_both_rings(contributors, size, count, summands, joint=None):
    """`count` rows of XORs of bits that the contributors give; the low bit of a share splits locally (ring). One round.

    joint: a reader of joint integers in place of inputs: of each row, sums of a bit of each summand. Then local where a share splits.
    """
    sums = [joint.next(size) if joint else sum(contributions(contributors, size)) for _ in range(count)]  # all inputs before their bits: one round
    return [parity(total, contributors + 1, summands) for total in sums]


def bits_in_field(contributors, size, count, joint=None):
    """The same bits over F_t, from the same inputs. 1 + ceil(log2 d) rounds. joint: of each summand, its bits of all rows; then a round less."""
    if joint:
        given = [[joint.next(size) for _ in range(count)] for _ in range(contributors)]
        return [sum_mod_2(bits) for bits in zip(*given, strict=True)]
    return [sum_mod_2(contributions(contributors, size)) for _ in range(count)]


def dabits(size, count):
    """`count` vectors of random bits, as a list of sint and as a list of rows of the same bits."""
    pairs = [sint.get_dabit(size=size) for _ in range(count)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def open_row(row):
    """Opens a row of sbits as a public vector of 0 and 1. One round."""
    return cint(row.reveal().to_regint_by_bit())


def unmask(bit, opened):
    """bit xor opened, for a public vector of bits; local."""
    return bit + opened - 2 * bit * opened


def open_low(x, bits, ring_length, deferred=False):
    """Opens x mod 2^bits and nothing above: a public vector in [0, 2^bits). One round.

    deferred: x mod 2^bits is under a mask that serves once, and the check may wait; `getattr(program, 'defers_checks', False)`, as MP-SPDZ would
    verify after the result.
    """
    shifted = x << (ring_length - bits)
    return (shifted.reveal(check=False) if deferred else shifted.reveal()) >> (ring_length - bits)


def public_rows(values, count):
    """Rows of the low bits of a public vector."""
    return sbits.bit_decompose_clear(values, count)


def weighted(rows):
    """The number with these digits, as a secret vector (0 if there are none)."""
    return sum(2**i * row for i, row in enumerate(rows))


def compared_elements(z, reader, size, noise_bits, ring_length, deferred, block=0):
    """Opens z' = z + r mod 2^l, and compares: u = [z' < r], for l = noise_bits and shares that do not split. 1 + ceil(log2 m) rounds, m = l.

    reader: the share file where it has r, its l bits, then a, b, a & b of the triples; size shares each. block: the mask has, in place of bits, the `thermometer`
    rows of each block of so many bits; then m is the number of blocks. Returns z' (public), r and u as shares.
    """
    r = reader.next(size)
    lengths = block_lengths(noise_bits, block) if block else []
    low = [[reader.next(size) for _ in range(2**length - 1)] for length in lengths] or [reader.next(size) for _ in range(noise_bits)]
    opened = open_low(z + r, noise_bits, ring_length, deferred)
    public = [(opened << (ring_length - 1 - i)) >> (ring_length - 1) for i in range(noise_bits)]
    products = ElementsWithTriples(lambda: [reader.next(size) for _ in range(3)], lambda x: open_low(x, 1, ring_length, deferred))
    return opened, r, below_blocks(products, public, low, block) if block else below(Arithmetic, public, low, products)


def stored_comparison(z, at, size, noise_bits, ring_length, triples, summands):
    """Opens z' = z + r mod 2^l, and u = [z' < r] under a further bit, for l = noise_bits and a mask in the share file: 2 + ceil(log2 l) rounds.

    From `at` on the share file has r, its l bits and the further bit, then a, b, a & b of the triples if `triples`; size shares each.
    Returns z', u xor the further bit (both public), and r and the further bit as shares.
    """
    reader = StoredReader(at)

    def next_row():
        return parity(reader.next(size), 2, summands)

    def next_triple():
        return [next_row() for _ in range(3)]

    r, low, further = reader.next(size), [next_row() for _ in range(noise_bits)], reader.next(size)
    opened = open_low(z + r, noise_bits, ring_length)
    u = below(Binary, public_rows(opened, noise_bits), low, WithTriples(next_triple) if triples else Binary)
    return opened, open_row(u ^ parity(further, 2, summands)), r, further
