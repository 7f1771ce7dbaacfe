"""Parameter sets of LWE with encrypted tables: `lwe32-p2.toml` and `lwe32-p2-seed003.toml` in this folder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from keyquorum.fhe.lwe import LweParameters
from keyquorum.fhe.lwe_sets import tuniform_deviation
from keyquorum.model.domains import Domain, Ring
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import toml_loads

NAMES = ("lwe32-p2", "lwe32-p2-seed003")


@dataclass(frozen=True, kw_only=True)
class GateParameters(LweParameters):
    """A set modulo q = 2^``modulus_bits`` with messages of one bit. ``noise_bound``: b of TUniform(b), the noise of fresh ciphertexts, |e| <= 2^b;
    ``security_bits``: log2 of the operations of the primal attack."""

    modulus_bits: int
    noise_bound: int
    security_bits: int
    scheme: str = "prf-lwe"

    @property
    def modulus(self) -> int:
        """q."""
        return 1 << self.modulus_bits

    @property
    def ring_bits(self) -> int:
        """k: the roundings are modulo q."""
        return self.modulus_bits

    @property
    def domain(self) -> Domain:
        """The domain of the shares."""
        return Ring(self.modulus_bits)

    def check_sums(self, longest: int) -> None:
        """Raises ParameterError unless sums of ``longest`` fresh ciphertexts and a mask are always decrypted rightly: |e| <= (longest + 1) 2^b < q/4."""
        if (longest + 1) << self.noise_bound >= self.modulus >> 2:
            raise ParameterError(
                f"{self.name}: sums of {longest + 1} ciphertexts with noise of up to 2^{self.noise_bound} may reach the border {self.modulus >> 2}: take a circuit with shorter sums"
            )


@lru_cache(maxsize=8)
def gate_parameters(name: str) -> GateParameters:
    """A shipped set by name."""
    if name not in NAMES:
        raise ParameterError(f"unknown parameter set {name!r}: choose one of {', '.join(NAMES)}")
    return read_gate_parameters(parameters_path(name))


def parameters_path(name: str) -> Path:
    """The file of a shipped set."""
    return Path(__file__).parent / f"{name}.toml"


def read_gate_parameters(path: Path) -> GateParameters:
    """A set from its file. Raises ParameterError for a file without these fields, or with others."""
    try:
        fields = toml_loads(path.read_text(encoding="utf-8"))
        made = GateParameters(**fields, deviation=tuniform_deviation(fields["noise_bound"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParameterError(f"{path} is no set of LWE with tables ({error}): restore the file of this version") from None
    if made.message_bits != 1 or made.prime or made.modulus_bits != 32 or math.log2(made.deviation) >= 29:
        raise ParameterError(f"{path}: messages have one bit, q is 2^32, and noise is far below q: restore the file of this version")
    return made


__all__ = ["NAMES", "GateParameters", "gate_parameters", "parameters_path", "read_gate_parameters"]
