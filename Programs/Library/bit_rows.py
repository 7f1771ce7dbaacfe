"""Many rows of secret bits, on which Boolean circuits work."""

from Compiler.GC.types import sbits
from Compiler.types import regint, sint
from logic import parity


class BitRows:
    """`count` rows of `size` secret bits.

    Where the engine evaluates circuits itself (`getattr(program, 'bit_circuit', None)`), all rows are one vector, one after another, and a circuit is one call:
    all ANDs of a level are one product of packed bits. In MP-SPDZ every row is a vector.
    """

    def __init__(self, circuit, rows, count, size):
        self.circuit, self.rows, self.count, self.size = circuit, rows, count, size

    @staticmethod
    def of_shares(program, x, count, size):
        """The lowest bits of a secret vector of count * size entries 0 and 1. Local where shares split."""
        circuit, split = getattr(program, "bit_circuit", None), program.use_split()
        if circuit:
            return BitRows(circuit, parity(x, 2, split), count, size)
        return BitRows(circuit, [parity(x.get_vector(i * size, size), 2, split) for i in range(count)], count, size)

    @staticmethod
    def random(program, count, size):
        """Random bits."""
        circuit = getattr(program, "bit_circuit", None)
        if circuit:
            return BitRows(circuit, _random_bits(count * size), count, size)
        return BitRows(circuit, [_random_bits(size) for _ in range(count)], count, size)

    @staticmethod
    def random_with_shares(program, count, size):
        """Random bits, and the same bits as elements of the domain, row after row. Use the elements first: with MACs both are then made together.
        (MP-SPDZ's numbers that are not strict may have bits above the lowest.)"""
        circuit = getattr(program, "bit_circuit", None)
        if circuit:
            elements, bits = sint.get_edabit(1, True, size=count * size)
            return BitRows(circuit, bits[0], count, size), elements
        made = [sint.get_edabit(1, True, size=size) for _ in range(count)]
        return BitRows(circuit, [bits[0] for _, bits in made], count, size), sint.concat([elements for elements, _ in made])

    def part(self, first, count):
        """Some consecutive rows."""
        if self.circuit:
            rows = self.rows.right_shift(first * self.size, (first + count) * self.size)
        else:
            rows = self.rows[first : first + count]
        return BitRows(self.circuit, rows, count, self.size)

    @staticmethod
    def joined(parts):
        """The rows of several objects, one after another."""
        circuit, rows = parts[0].circuit, [part.rows for part in parts]
        rows = sbits.bit_compose(rows) if circuit else [row for of_part in rows for row in of_part]
        return BitRows(circuit, rows, sum(part.count for part in parts), parts[0].size)

    def map(self, function, *others, copies=1):
        """The rows that a function of lists of rows gives, which works on them with ^, & and ~. Of the other rows those of one bit are repeated.

        copies: the function is applied to so many groups of consecutive rows, one after another. A round for each level of ANDs.
        """
        operands = (self, *others)
        if self.circuit:
            made = self.circuit(function, [(operand.rows, operand.count // copies) for operand in operands], self.size, copies)
            return BitRows(self.circuit, made, made.n // self.size, self.size)
        lists = [[row.expand(self.size) for row in operand.rows] for operand in operands]
        made = []
        for c in range(copies):
            made += function(*(rows[c * len(rows) // copies : (c + 1) * len(rows) // copies] for rows in lists))
        return BitRows(self.circuit, made, len(made), self.size)

    def shares(self):
        """The bits as elements of the domain, row after row: a conversion, local modulo 2 without MACs."""
        if self.circuit:
            return sint(self.rows)
        return sint.concat([sint(row, size=self.size) for row in self.rows])

    def reveal(self):
        """Opens the bits, as regint, row after row. One round."""
        if self.circuit:
            return self.rows.reveal().to_regint_by_bit()
        return regint.concat([row.to_regint_by_bit() for row in [row.reveal() for row in self.rows]])


def _random_bits(size):
    return sint.get_edabit(1, False, size=size)[1][0]
