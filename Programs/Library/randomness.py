"""Uniform secret bits in the binary domain."""

from Compiler.types import sint
from trees import tree


def random_rows(count, size, summands):
    """`count` rows of `size` uniform bits (sbits).

    summands: `program.use_split()`: where a share splits into summands, their bits do and cost nothing; elsewhere edaBits.
    """
    if not summands:
        return sint.get_edabit(count, False, size=size)[1]
    columns = sint.get_random(size=size).split_to_n_summands(count, summands)
    return [tree(lambda a, b: a ^ b, column) for column in columns]
