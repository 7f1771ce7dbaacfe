"""What tests know of each protocol: the parties and domains in which they run it, and what its operations cost. A new protocol adds its lines here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Q60 = 1152921504606584833
"""A 60-bit prime, 1 mod 2^18."""
RING, FIELD = "Z2^64", f"F_{Q60}"
MERSENNE = 2**61 - 1

CASES = [
    ("emulate", 1, "Z2^64"),
    ("emulate", 1, f"F_{Q60}"),
    ("ring", 3, "Z2^64"),
    ("ring", 3, "Z2^72"),
    ("ring", 3, "Z2^41"),
    ("rep-field", 3, f"F_{Q60}"),
    ("rep-field", 3, "F_65537"),
    ("mal-rep-ring", 3, "Z2^64"),
    ("mal-rep-ring", 3, "Z2^72"),
    ("mal-rep-ring", 3, "Z2^41"),
    ("mal-rep-field", 3, f"F_{Q60}"),
    ("mal-rep-field", 3, "F_65537"),
    ("shamir", 3, f"F_{Q60}"),
    ("shamir", 3, f"F_{MERSENNE}"),
    ("shamir", 4, "F_65537"),
    ("shamir", 5, f"F_{MERSENNE}"),
    ("shamir", 7, f"F_{Q60}"),
    ("shamir", 11, f"F_{MERSENNE}"),
    ("shamir", 13, f"F_{Q60}"),
    ("mal-shamir", 3, f"F_{Q60}"),
    ("mal-shamir", 4, "F_65537"),
    ("mal-shamir", 5, f"F_{MERSENNE}"),
    ("mal-shamir", 7, f"F_{Q60}"),
    ("semi2k", 2, "Z2^64"),
    ("semi2k", 3, "Z2^72"),
    ("semi2k", 4, "Z2^41"),
    ("semi", 2, f"F_{Q60}"),
    ("semi", 3, "F_65537"),
    ("semi", 4, f"F_{MERSENNE}"),
    ("spdz2k", 2, "Z2^64"),
    ("spdz2k", 3, "Z2^72"),
    ("mascot", 2, f"F_{Q60}"),
    ("mascot", 3, f"F_{MERSENNE}"),
]
"""Protocols, parties and domains of the tests of the engine's operations."""

ROUNDS = {
    ("ring", 3): dict(mul=(1, 8), open=(1, 8), bits=(2, 8), input=(1, 8 / 3)),
    ("rep-field", 3): dict(mul=(1, 8), open=(1, 8), bits=(2, 8), input=(1, 8 / 3)),
    ("shamir", 3): dict(mul=(1, 8), open=(1, 8), bits=(2, 8), input=(1, 8 / 3)),
}
"""Of a protocol and a number of parties: rounds, and payload bytes an element a party on average. For protocols without preprocessing."""


@dataclass(frozen=True)
class Backend:
    """A protocol with its parties and domain."""

    protocol: str
    parties: int
    domain: str
    threshold: int

    @property
    def modulus(self) -> int:
        return 1 << int(self.domain[3:]) if self.domain.startswith("Z2^") else int(self.domain[2:])

    def over(self, domain: str) -> Backend:
        """The same protocol in another domain."""
        return Backend(self.protocol, self.parties, domain, self.threshold)

    def __str__(self) -> str:
        return f"{self.protocol}-{self.parties}-{self.domain[:2]}"


EMULATE_RING, EMULATE_FIELD = Backend("emulate", 1, RING, 0), Backend("emulate", 1, FIELD, 0)
REPLICATED_RING, REPLICATED_FIELD = Backend("ring", 3, RING, 1), Backend("rep-field", 3, FIELD, 1)
SHAMIR_3, SHAMIR_5 = Backend("shamir", 3, FIELD, 1), Backend("shamir", 5, FIELD, 2)
SEMI_RING, SEMI_FIELD = Backend("semi2k", 2, RING, 1), Backend("semi", 2, FIELD, 1)
MAC_RING, MAC_FIELD = Backend("spdz2k", 2, RING, 1), Backend("mascot", 2, FIELD, 1)
VERIFIED_RING, VERIFIED_FIELD, VERIFIED_SHAMIR = (
    Backend("mal-rep-ring", 3, RING, 1),
    Backend("mal-rep-field", 3, FIELD, 1),
    Backend("mal-shamir", 5, FIELD, 2),
)
ON_MPSPDZ = [SEMI_RING, SEMI_FIELD, MAC_RING, MAC_FIELD]
WITH_CHECKS = {"spdz2k", "mascot", "mal-rep-ring", "mal-rep-field", "mal-shamir"}
"""Checks of MACs or products add rounds and bytes to what headers state, before whatever a program opens."""
SMALLEST_PRIMES = {"shamir": 5, "mal-shamir": 1 << 12}
"""Above the number of parties; long enough that products can be verified."""
SEMI_RING_4, SEMI_FIELD_3 = Backend("semi2k", 4, RING, 3), Backend("semi", 3, FIELD, 2)
ADDITIVE = [SEMI_RING, SEMI_FIELD, SEMI_RING_4, SEMI_FIELD_3]
VERIFIED = [VERIFIED_RING, VERIFIED_FIELD, VERIFIED_SHAMIR]
BINARY = [EMULATE_RING, EMULATE_FIELD, REPLICATED_RING, REPLICATED_FIELD, VERIFIED_RING, VERIFIED_FIELD, *ADDITIVE]
FIELDS = [EMULATE_FIELD, REPLICATED_FIELD, VERIFIED_FIELD, SHAMIR_3, SHAMIR_5, VERIFIED_SHAMIR, SEMI_FIELD, SEMI_FIELD_3]
ALL = [*BINARY, SHAMIR_3, SHAMIR_5, VERIFIED_SHAMIR]


def operation_costs(protocol: str, n: int, t: int, w: int) -> dict[str, Any]:
    """What an operation costs, by the names of :mod:`tests.programs.costs`; none of protocols whose costs have checks. ``w``: bytes of an element."""
    if protocol in ("ring", "rep-field"):

        def row(m: int) -> int:
            return 3 * 8 * -(-m // 64)

        return {
            "INPUT": 1,
            "OPEN": 3,
            "OPEN_TO": 1,
            "MUL": 3,
            "BIT": 3,
            "B2A": lambda m: 3 * m * w,
            "B2A_ROUNDS": 2,
            "BIT_ROUNDS": 2,
            "BIT_PRODUCTS": lambda count, length, m: 3 * -(-count * length * m // 8),
            "AND": row,
            "ROW": row,
            "SHUFFLE_ROUNDS": lambda m: 3 * (m > 1),
            "SHUFFLE": lambda m: 6 * m * (m > 1),
        }
    elif protocol in ("semi2k", "semi"):
        pairs = n * (n - 1)

        def lanes(m: int) -> int:
            return pairs * 8 * -(-m // 64)

        def bit_products(count: int, length: int, m: int) -> int:
            segments = [(i + 1) * count // n - i * count // n for i in range(n)]
            return pairs * (512 * -(-count // 128) + sum(-(-rows * length * m // 8) for rows in segments))

        return {
            "INPUT": 0,
            "OPEN": pairs,
            "OPEN_TO": n - 1,
            "MUL": 2 * pairs,
            "SQUARE": pairs,
            "DOT": lambda length: 2 * length * pairs,
            "BIT": 0,
            "BIT_ROUNDS": 1,
            "BIT_PRODUCTS": bit_products,
            "BIT_PRODUCTS_ROUNDS": n + 1,
            "B2A": lanes,
            "B2A_ROUNDS": 1,
            "ROW": lanes,
            "AND": lambda m: 2 * lanes(m),
        }
    elif protocol == "shamir":
        costs: dict[str, Any] = {"INPUT": n - 1 - t, "OPEN": n * t, "OPEN_TO": t, "MUL": (2 * t + 1) * (n - 1 - t)}
        if n == 3:
            return costs | {"BIT": 3, "BIT_ROUNDS": 2, "SHUFFLE_ROUNDS": lambda m: 4 * (m > 1), "SHUFFLE": lambda m: 8 * m * (m > 1)}
        return costs | {"BIT": (2 * t + 1) * (n - 1), "BIT_ROUNDS": 1}
    return {}
