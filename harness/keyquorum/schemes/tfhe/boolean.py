"""Boolean circuits as programmable bootstraps of TFHE-rs, for `keyquorum-tfhe circuit`.

A ciphertext holds a bit in a block of four. A bootstrap looks up a function of w1 x1 + w2 x2 + .., for bits x and weights w. A sum of bits is x1 + x2 + .., whose
lowest bit is their XOR. An AND of two sums takes one bootstrap of left + (L + 1) right, where L is the number of bits on the left. Weights are bounded by the
values of a block, sum w <= 15, and by the noise for which the set is made, sum w^2 <= 25: the set's bound on failures holds for the 2-norm 5 of the weights, where the noise
of different ciphertexts counts as independent (a heuristic that the set takes too). Equal bootstraps would have equal noise, so there are none. Sums that do not fit are bootstrapped first, once for all their uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keyquorum.model.errors import ParameterError
from keyquorum.schemes.circuit import AND, NOT, Circuit

MOST_VALUE, MOST_SQUARES = 15, 25
Terms = frozenset[int]
"""Numbers of ciphertexts, whose bits are added modulo 2."""


@dataclass(frozen=True)
class Sum:
    """A sum modulo 2 of bits, and the constant that is added."""

    terms: Terms
    one: int = 0

    def __xor__(self, other: Sum) -> Sum:
        return Sum(self.terms ^ other.terms, self.one ^ other.one)


@dataclass(frozen=True)
class Bootstrap:
    """``table``: bit v is the result for the value v; ``inputs``: pairs of a weight and the number of a ciphertext."""

    table: int
    inputs: tuple[tuple[int, int], ...]


@dataclass
class Schedule:
    """Bootstraps in an order in which they can be computed. The ``inputs`` have the numbers from 0, the bootstraps the following ones."""

    inputs: int
    bootstraps: list[Bootstrap] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    _sums: dict[Terms, int] = field(default_factory=dict)
    _known: dict[Bootstrap, int] = field(default_factory=dict)

    def add(self, bootstrap: Bootstrap) -> int:
        """Appends a bootstrap, unless it is there already; returns the number of its ciphertext. Raises ParameterError for one without inputs."""
        if not bootstrap.inputs:
            raise ParameterError("a sum of no bits: a circuit has no constant wires")
        if bootstrap not in self._known:
            self.bootstraps.append(bootstrap)
            self._known[bootstrap] = self.inputs + len(self.bootstraps) - 1
        return self._known[bootstrap]

    def xor(self, terms: Terms) -> int:
        """The number of a ciphertext of a sum of at most 15 bits, the same whenever it is asked for."""
        if len(terms) == 1:
            [number] = terms
            return number
        if terms not in self._sums:
            table = sum((v & 1) << v for v in range(MOST_VALUE + 1))
            self._sums[terms] = self.add(Bootstrap(table, tuple((1, part) for part in sorted(terms))))
        return self._sums[terms]

    def product(self, left: Sum, right: Sum) -> int:
        """The number of a ciphertext of the AND of two sums."""
        while not fits(left, right):
            longer, other = (left, right) if len(left.terms) >= len(right.terms) else (right, left)
            left, right = Sum(frozenset([self.xor(longer.terms)]), longer.one), other
        if len(left.terms) < len(right.terms):  # the larger weight goes to fewer bits
            left, right = right, left
        step = len(left.terms) + 1
        table = sum(((v % step + left.one) & (v // step + right.one) & 1) << v for v in range(step * (len(right.terms) + 1)))
        weights = {number: 1 for number in left.terms}
        for number in right.terms:
            weights[number] = weights.get(number, 0) + step
        return self.add(Bootstrap(table, tuple((weight, number) for number, weight in sorted(weights.items()))))

    def levels(self) -> list[list[int]]:
        """Numbers of bootstraps that depend on those of earlier levels alone."""
        depth = [0] * self.inputs
        found: list[list[int]] = []
        for number, bootstrap in enumerate(self.bootstraps, self.inputs):
            depth.append(1 + max(depth[i] for _, i in bootstrap.inputs))
            while len(found) < depth[-1]:
                found.append([])
            found[depth[-1] - 1].append(number)
        return found

    def lines(self) -> Iterable[str]:
        """The text that `keyquorum-tfhe circuit` reads: ``inputs N``; for each level a line ``level``, and a line ``table weight:number ..`` for each of its bootstraps, in hexadecimal and
        decimal; ``outputs`` and their numbers. Bootstraps are numbered in the order of the lines."""
        yield f"inputs {self.inputs}"
        renamed = list(range(self.inputs)) + [0] * len(self.bootstraps)
        at = self.inputs
        for level in self.levels():
            yield "level"
            for number in level:
                bootstrap = self.bootstraps[number - self.inputs]
                yield " ".join([f"{bootstrap.table:x}", *(f"{weight}:{renamed[i]}" for weight, i in bootstrap.inputs)])
            for number in level:
                renamed[number] = at
                at += 1
        yield " ".join(["outputs", *(str(renamed[i]) for i in self.outputs)])

    def evaluate(self, bits: Sequence[int]) -> list[int]:
        """The outputs in clear text."""
        values = list(bits)
        for bootstrap in self.bootstraps:
            values.append(bootstrap.table >> sum(weight * values[i] for weight, i in bootstrap.inputs) & 1)
        return [values[i] for i in self.outputs]


def fits(left: Sum, right: Sum) -> bool:
    """Whether the AND of two sums takes one bootstrap: the smaller sum has the larger weight."""
    few, many = sorted((left.terms, right.terms), key=len)
    step, shared = len(many) + 1, len(few & many)
    squares = (len(many) - shared) + (len(few) - shared) * step**2 + shared * (step + 1) ** 2
    return step * (len(few) + 1) <= MOST_VALUE + 1 and squares <= MOST_SQUARES


def bootstraps_of(circuit: Circuit) -> Schedule:
    """A circuit as bootstraps. XORs are free until an AND, an output, or a sum of more than 15 bits needs their ciphertext."""
    made = Schedule(circuit.inputs)
    wires = [Sum(frozenset([i])) for i in range(circuit.inputs)]
    for kind, a, b in circuit.gates:
        if kind == AND:
            wires.append(Sum(frozenset([made.product(wires[a], wires[b])])))
        elif kind == NOT:
            wires.append(Sum(wires[a].terms, 1 ^ wires[a].one))
        else:
            total = wires[a] ^ wires[b]
            if len(total.terms) > MOST_VALUE:
                for wire in (a, b):
                    if len(wires[wire].terms) > 1:
                        wires[wire] = Sum(frozenset([made.xor(wires[wire].terms)]), wires[wire].one)
                total = wires[a] ^ wires[b]
            wires.append(total)
    for wire in circuit.outputs:
        value = wires[wire]
        made.outputs.append(
            made.add(Bootstrap(sum(((v + value.one) & 1) << v for v in range(MOST_VALUE + 1)), tuple((1, i) for i in sorted(value.terms))))
        )
    return made


__all__ = ["Bootstrap", "Schedule", "bootstraps_of"]
