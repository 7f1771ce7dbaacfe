"""Reductions of logarithmic depth."""


def tree(combine, values):
    """Combines neighbours until one value is left: ceil(log2(len(values))) levels, len(values) - 1 combinations."""
    values = list(values)
    while len(values) > 1:
        pairs = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def last_two(combine, values):
    """The two values whose combination `tree` would return."""
    half = 1 << ((len(values) - 1).bit_length() - 1)
    return tree(combine, values[:half]), tree(combine, values[half:])


class Prefix:
    """The generate/propagate recursion over positions 0 (least significant) .. m-1, for adders and comparisons.

    generate(lo, hi) = generate(mid, hi) or (propagate(mid, hi) and generate(lo, mid)), where the two cases exclude each other.
    Only what is asked for is computed, once; ranges split at the largest power of two (Sklansky), so a range of m positions
    has depth ceil(log2 m). `logic` is a class of logic.py; g[i] may be None (never generates).
    """

    def __init__(self, logic, g, p):
        self.logic, self.g, self.p = logic, g, p
        self._known, self._digits = {}, None

    def share_with(self, known, digits):
        """Takes what another instance has computed for ranges of equal digits: `known` is a dictionary common to all."""
        self._known, self._digits = known, tuple(digits)

    def _once(self, kind, lo, hi, compute):
        key = kind, lo, hi if self._digits is None else self._digits[lo:hi]
        if key not in self._known:
            mid = lo + (1 << ((hi - lo - 1).bit_length() - 1))
            self._known[key] = compute(lo, mid, hi)
        return self._known[key]

    def generate(self, lo, hi):
        """Whether the range lo..hi-1 generates; None if it never does."""
        return self.g[lo] if hi - lo == 1 else self._once("g", lo, hi, self._generate)

    def propagate(self, lo, hi):
        """Whether the range lo..hi-1 propagates."""
        return self.p[lo] if hi - lo == 1 else self._once("p", lo, hi, self._propagate)

    def _generate(self, lo, mid, hi):
        high, low = self.generate(mid, hi), self.generate(lo, mid)
        if low is None:
            return high
        passed = self.logic.and_(self.propagate(mid, hi), low)
        return passed if high is None else self.logic.or_(high, passed)

    def _propagate(self, lo, mid, hi):
        return self.logic.and_(self.propagate(mid, hi), self.propagate(lo, mid))
