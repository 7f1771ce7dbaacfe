"""The discrete Gaussian by its cumulative distribution table. Paper: GMPFHE, section 4.1.2 and figure 2."""

from decimal import Context, Decimal, localcontext

from logic import one_hot
from trees import Prefix

BLOCK = 4  # width of the one-hot blocks of the uniform number


def cumulative_table(sigma_milli, bits, tail):
    """T_k = round(2^bits * P(|X| <= k)) for k = 0..tail-1, X discrete Gaussian of deviation sigma_milli/1000.

    A magnitude is the number of T_k that a uniform bits-bit number reaches, so `tail` stands for all magnitudes >= tail. The
    probability of every value below the tail is exact to 2^-(bits+1); that of +-tail gains half of P(|X| > tail) besides
    (2^-42.4 for sigma = 3.2 and tail = 23).
    """
    with localcontext(Context(prec=60)):
        variance = (Decimal(sigma_milli) / 1000) ** 2
        ratio = (-1 / (2 * variance)).exp()  # weight k is ratio^(k^2) = weight k-1 * ratio^(2k-1)
        weights, step = [Decimal(1)], ratio
        for _ in range(1, tail + 12 * sigma_milli // 1000 + 40):
            weights.append(weights[-1] * step)
            step *= ratio * ratio
        both_signs = [weights[0]] + [2 * weight for weight in weights[1:]]
        total, reached, table = sum(both_signs), Decimal(0), []
        for weight in both_signs[:tail]:
            reached += weight
            table.append(int((reached / total * 2**bits).to_integral_value()))
    return table


def below_thresholds(logic, x, table):
    """[x < T] for every T of the table; x: rows of a uniform number, least significant first.

    The comparisons share one-hot vectors of blocks of x (so that less-than and equality of a block are sums of rows), and
    whatever two thresholds have in common from a block boundary on. None where [x < T] is always 0; T = 2^bits is refused.
    """
    blocks = [one_hot(logic, x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)]
    starts = []
    for rows in blocks:  # starts[block][v] = [block < v]
        sums = [None, rows[0]]
        for row in rows[1:-1]:
            sums.append(logic.or_(sums[-1], row))
        starts.append(sums)
    shared = {}

    def comparison(threshold):
        digits = [(threshold >> (BLOCK * i)) % (1 << BLOCK) for i in range(len(blocks))]
        prefix = Prefix(logic, [starts[i][d] for i, d in enumerate(digits)], [blocks[i][d] for i, d in enumerate(digits)])
        prefix.share_with(shared, digits)
        return prefix.generate(0, len(digits))

    return [comparison(threshold) for threshold in table]


def thermometer_digits(rows):
    """Binary digits of the number of ones among rows of sbits of the form 1..10..0 (row v-1 = [number >= v]); local."""
    digits = []
    for j in range(len(rows).bit_length()):
        digit = None
        for row in rows[(1 << j) - 1 :: 1 << j]:
            digit = row if digit is None else digit ^ row
        digits.append(digit)
    return digits
