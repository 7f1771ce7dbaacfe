"""Metadata of keys for SEAL."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.domains import Field
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.keys import KeyInfo, Plain, SecretVector

from .masked import COUNTED, most_masked
from .policy import FloodPolicy, policy_from_json
from .ring import RING

ERROR_LAWS = ("cbd", "gaussian")
PARMS = "parms"
"""File with SEAL's ``EncryptionParameters``, in exported key folders."""


@dataclass(frozen=True, kw_only=True)
class SealKeyInfo(KeyInfo):
    """Metadata of a key for SEAL: of its noise (``error_law``), which key-switching keys it has, and its policy. ``ring_secret``: whether the secret is shared modulo
    2^64 as well, for decryptions in one ring. ``lift_tested``: whether a committee with MACs made it on the embedded engine, with tests that secret and noise are the same integers in all domains
    (:mod:`keyquorum.sharing.numbers.lift_tests`)."""

    parameters: ParameterSet
    error_law: str
    relin: bool
    galois_elements: tuple[int, ...]
    policy: FloodPolicy
    ring_secret: bool = False
    lift_tested: bool = False
    counted: ClassVar[bool] = True

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        """The secret modulo each prime, and then modulo 2^64 where it is shared there."""
        domains = [*(Field(q) for q in self.parameters.coeff_modulus), *((RING,) if self.ring_secret else ())]
        return tuple(SecretVector(domain, self.parameters.ring_degree) for domain in domains)

    def to_json(self) -> Plain:
        """See :class:`.KeyInfo`. Keys without a secret modulo 2^64, and without tests of lifted values, have the metadata of earlier builds."""
        data = super().to_json()
        for name in ("ring_secret", "lift_tested"):
            if not data[name]:
                del data[name]
        return data

    def most_decryptions(self, rounding: str) -> int | None:
        """CKKS: of the policy. BFV and BGV: of roundings whose errors leak the secret."""
        if self.parameters.scheme == "ckks":
            return self.policy.decryptions
        return most_masked(self.parameters) if rounding in COUNTED else None

    @property
    def most_counted(self) -> int:
        """See :class:`.KeyInfo`."""
        return max(self.most_decryptions(rounding) or 0 for rounding in COUNTED)

    @staticmethod
    def from_json(data: Plain) -> SealKeyInfo:
        """Inverse of :meth:`to_json`; checks the parameter set."""
        data = dict(data)
        data["parameters"] = parameters_from_json(data["parameters"])
        data["policy"] = policy_from_json(data["policy"])
        data["galois_elements"] = tuple(data["galois_elements"])
        info = SealKeyInfo(**data)
        info.check_types([info.error_law], info.galois_elements)
        if any(type(flag) is not bool for flag in (info.relin, info.ring_secret, info.lift_tested)):
            raise ValueError("entries of other types")
        return info


def parameters_to_json(parameters: ParameterSet) -> Plain:
    """A parameter set as plain data."""
    return asdict(parameters)


def parameters_from_json(data: Plain) -> ParameterSet:
    """Inverse of :func:`parameters_to_json`; the set is validated."""
    try:
        return ParameterSet(**{**data, "coeff_modulus": tuple(data["coeff_modulus"])})
    except (TypeError, KeyError) as error:
        raise ParameterError(f"not a parameter set ({error}): write the job or key file again") from None


def load_seal_key(folder: Path) -> SealKeyInfo:
    """The metadata of a key for SEAL. Raises KeyFileError for a key of another scheme."""
    info = load_key(folder)
    if not isinstance(info, SealKeyInfo):
        raise KeyFileError(f"{folder}: a key of {info.parameters.scheme.upper()}, which SEAL has no use for: name a key of CKKS, BFV or BGV")
    return info
