"""Numbers modulo q in the binary domain: the bits of a sum of summands that one party each knows. Paper: GMPFHE, section 4.2.2.

The paper adds modulo q two at a time. Here all summands are added as integers first, and multiples of q are taken off at the end, one
AND a bit each: the sum is below 2^L q for L = ceil(log2 contributors), and non-restoring division by q takes L steps and a correction.
"""

from logic import Binary, full_adder
from trees import Prefix


def quotient_bits(contributors):
    """L: the sum of `contributors` numbers below q is below 2^L q."""
    return (contributors - 1).bit_length()


def carry_save(x, y, z):
    """Two numbers with the sum of three, mod 2^rows: one AND a position, depth 1. Rows may be None (zero)."""
    added = [full_adder(*rows) for rows in zip(x[:-1], y[:-1], z[:-1], strict=True)]
    top = full_sum([x[-1], y[-1], z[-1]])
    return [*(s for s, _ in added), top], [None, *(carry for _, carry in added)]


def full_sum(rows):
    """XOR of those rows that are not None."""
    total = None
    for row in rows:
        if row is not None:
            total = row if total is None else total ^ row
    return total


def ripple(x, y, carry=None):
    """x + y + carry mod 2^rows, one AND a position and as deep. Rows may be None (zero)."""
    total = []
    for a, b in zip(x[:-1], y[:-1], strict=True):
        s, carry = full_adder(a, b, carry)
        total.append(s)
    return [*total, full_sum([x[-1], y[-1], carry])]


def prefix_sum(x, y, carry=None):
    """The same by a prefix adder: about m log2(m) ANDs, 1 + ceil(log2 m) levels."""
    generate = [None if a is None or b is None else a & b for a, b in zip(x[:-1], y[:-1], strict=True)]
    propagate = [full_sum(rows) for rows in zip(x, y, strict=True)]
    first = [] if carry is None else [carry]
    prefix = Prefix(Binary, [*first, *generate], [*first, *propagate])  # the lowest place never passes anything on
    carries = [prefix.generate(0, i + len(first)) if i + len(first) else None for i in range(len(x))]
    return [full_sum(rows) for rows in zip(propagate, carries, strict=True)]


def sum_by(adder):
    """How two numbers are added: `ripple` or `prefix`."""
    return {"ripple": ripple, "prefix": prefix_sum}[adder]


def integer_sum(numbers, carry_rows, add):
    """The l + carry_rows rows of a sum of numbers of l rows each, of which none is lost. add: see sum_by; with `ripple` about
    (n - 1) l ANDs at depth l + n - 2."""
    numbers = [[*rows, *[None] * carry_rows] for rows in numbers]
    while len(numbers) > 2:
        numbers = [*numbers[3:], *carry_save(*numbers[:3])]
    return add(*numbers) if len(numbers) == 2 else numbers[0]


def bits_of_sum(numbers, q, add):
    """The rows of (sum of v_i) mod q for an odd q and 0 <= v_i < q.

    numbers: for m bits of q and L = quotient_bits: the m + L rows of v_0 - 2^(L-1) q (v_0 alone: its m rows) in two's complement, then
    the m rows of each of the others. add: see sum_by; with `ripple` about (n - 1 + L) m ANDs at depth (L + 1) m + L - 2.
    """
    m, steps = q.bit_length(), quotient_bits(len(numbers))
    if not steps:
        return numbers[0]
    total, carries, *rest = [[*rows, *[None] * (m + steps - len(rows))] for rows in numbers]
    for number in rest:
        total, carries = carry_save(total, carries, number)
    total = add(total, carries)
    # -2^j q <= total < 2^j q after step j: its sign says whether 2^(j-1) q is to be added or taken off
    for j in reversed(range(steps - 1)):
        negative = total[m + j + 1]
        positive = ~negative
        # 2^j q if negative; else its complement, and a carry that the low j positions pass on
        summand = [negative if q >> i & 1 else positive for i in range(m + 1)]
        total = [*total[:j], *add(total[j : m + j + 1], summand, positive)]
    negative = total[m]
    return add(total[:m], [negative if q >> i & 1 else None for i in range(m)])


def unmasked_bits(opened, mask, q, add):
    """The rows of (c - r) mod q for rows of a public c < q and of a secret r <= c + q, for an odd q; with `ripple` 2m - 2 ANDs, as
    deep."""
    # c - r = c + not r + 1; the carry beyond the highest place says that it is not negative
    carry = ~(~opened[0] & mask[0])
    *rest, positive = add([*opened[1:], None], [*(~r for r in mask[1:]), None], carry)
    negative = ~positive
    return add([opened[0] ^ mask[0], *rest], [negative if q >> i & 1 else None for i in range(len(opened))])
