"""Values of a public table at secret positions, from one-hot vectors that were made in advance."""

from Compiler.library import break_point
from Compiler.types import regint, sint


class OneHotVectors:
    """One-hot vectors of secret numbers r, `step` of them: a secret vector of entry 0 of all, then entry 1 of all, ..

    lookup: `getattr(program, 'table_lookup', None)`: the engine's own look-ups. MP-SPDZ has none: there the entries v of the shifted vectors are picked.
    """

    def __init__(self, entries, step, lookup=None):
        self.entries, self.step, self.lookup = entries, step, lookup
        if not lookup:
            self.entries = sint.Array(len(entries))
            self.entries.assign_vector(entries)
            break_point()

    def look_up(self, y, table, bits, first):
        """Bits of the values of a table at secret positions x = y xor r: bit 0 of all values, then bit 1 of all, .. Local.

        y: the bits of public numbers, each a regint vector, for the vectors from `first` on; table: its values; bits: of a value. Entry y xor v of the vector
        of r is [x = v], and a bit of a value is the sum of those at which the table has it.
        """
        if self.lookup:
            return self.lookup(self.entries, sum(2**j * row for j, row in enumerate(y)), table, bits, first)
        size = len(y[0])
        positions = [regint.inc(size, first, 1)]
        for j, row in enumerate(y):
            width = self.step << j
            positions = [p + width * row for p in positions] + [p + width * (1 - row) for p in positions]
        there = [self.entries.get(position) for position in positions]
        values = []
        for j in range(bits):
            chosen = [row for row, value in zip(there, table, strict=True) if value >> j & 1]
            values.append(sum(chosen[1:], chosen[0]) if chosen else sint(0, size=size))
        return sint.concat(values)
