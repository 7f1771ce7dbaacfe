"""Parameter sets of the multi-key baseline. They are constants: a file in ``params`` would let commands make keys of them."""

from __future__ import annotations

from dataclasses import dataclass

from keyquorum.fhe.parameters import ParameterSet, load
from keyquorum.model.errors import ParameterError

BGV = ParameterSet(
    "mk-bgv-16384", "bgv", 16384,
    (281449206448129, 281412698669057, 281335388078081, 562913445511169, 562898412896257, 562891970347009),
    65537, source="multi-key baseline of paper 001: depth 3, primes that are 1 mod 2 N t",
)  # fmt: skip
"""N = 16384, five data primes of [48, 48, 48, 49, 49] bits and a special prime, t = 65537: what OpenFHE takes for depth 3."""
SMALL_BGV = load("bgv-8192")
"""N = 8192, four data primes and a special prime, t = 65537: for the bit gadget, whose keys are large."""

QUICK = ParameterSet(
    "mk-bgv-1024", "bgv", 1024, (35180479707137, 35180748146689, 35182090344449, 70368073062401), 65537, security="none",
    source="multi-key baseline: INSECURE, to see whether it runs",
)  # fmt: skip
SETS = {chosen.name: chosen for chosen in (BGV, SMALL_BGV, QUICK)}
"""Sets whose keys are made, by name."""


@dataclass(frozen=True)
class Shape:
    """The form of a set of which nothing but sizes is computed: ring degree, data primes and digits of a gadget with one special prime."""

    name: str
    ring_degree: int
    levels: int

    @staticmethod
    def of(parameters: ParameterSet) -> Shape:
        """The form of a set whose keys are made."""
        return Shape(parameters.name, parameters.ring_degree, parameters.levels)

    def ciphertext(self, polynomials: int) -> int:
        """Bytes of a ciphertext: k + 1 polynomials of k parties, 2 k as pairs, 2 under a joint key."""
        return 8 * polynomials * self.ring_degree * self.levels

    @property
    def public_key(self) -> int:
        """Bytes of the public key of a party, a row a digit."""
        return 8 * self.levels * (self.levels + 1) * self.ring_degree

    @property
    def evaluation_key(self) -> int:
        """Bytes of the evaluation key of a party: three rows a digit."""
        return 3 * self.public_key

    @property
    def joint_key(self) -> int:
        """Bytes of a joint relinearisation key, not seeded: two polynomials a digit."""
        return 2 * self.public_key


OF_CKKS_SET2 = ParameterSet(
    "mk-ckks-set2", "bgv", 16384,
    (18014336227311617, 18014297572016129, 18014269654302721, 18014168721031169, 18014136508284929, 18014130065735681, 18014102148022273, 1152921497895862273),
    65537, source="multi-key baseline of paper 004: the form of MK-CKKS, 438 bits",
)  # fmt: skip
"""BGV in the form of the multi-key CKKS that table 6 of paper 004 quotes: 7 primes of 54 bits and one of 60. Products and their relinearisation take the same operations on polynomials
in both schemes."""
CKKS_SET2 = Shape.of(OF_CKKS_SET2)
"""Its form, of which sizes are computed."""


def check(parameters: ParameterSet) -> ParameterSet:
    """The set, if multi-key BGV takes it. Raises ParameterError for another scheme, or for primes that are not 1 mod t: modulus switching would change
    messages by a factor."""
    if parameters.scheme != "bgv":
        raise ParameterError(f"{parameters.name}: the multi-key baseline is BGV, not {parameters.scheme.upper()}: take {BGV.name}")
    wrong = [q for q in parameters.coeff_modulus if q % parameters.plain_modulus != 1]
    if wrong:
        raise ParameterError(f"{parameters.name}: prime {wrong[0]} is not 1 mod t = {parameters.plain_modulus}: take primes that are 1 mod 2 N t")
    return parameters


__all__ = ["BGV", "CKKS_SET2", "OF_CKKS_SET2", "QUICK", "SETS", "SMALL_BGV", "Shape", "check"]
