"""Uniform secret bits in the binary domain."""

from Compiler.types import sint
from trees import tree


def random_rows(count, size, summands):
    """`count` rows of `size` uniform bits (sbits).

    summands: `program.use_split()`: where a share splits into summands, their bits do and cost nothing; elsewhere edaBits.
    """
    if not summands:
        return sint.get_edabit(count, False, size=size)[1]
    columns = []
    while len(columns) < count:  # 16 bits of a random element at a time: they exist in every ring of use
        columns += sint.get_random(size=size).split_to_n_summands(min(16, count - len(columns)), summands)
    return [tree(lambda a, b: a ^ b, column) for column in columns]
