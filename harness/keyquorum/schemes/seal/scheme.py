"""BFV, BGV and CKKS of SEAL behind the interface of schemes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.fhe import seal
from keyquorum.fhe.keys import galois_elements
from keyquorum.fhe.parameters import ParameterSet, list_parameter_sets, load
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.fhe.seal_parms import write_parms
from keyquorum.fhe.values import Numbers
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Field
from keyquorum.model.errors import ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.protocols import named as protocol_named
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import MASKED_ONE, Decrypted, Scheme, Words
from keyquorum.schemes.holding import require_shares
from keyquorum.schemes.key_folder import load_public_file
from keyquorum.schemes.keys import KeyMaterial, Plain, SecretVector
from keyquorum.sharing.field_variant import FieldVariant, over_fields
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.noise_check import noise_within
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.rounding import scaled_words
from keyquorum.sharing.shares import Shares
from keyquorum.sharing.variants import PaddedOutput, Variant, combine_modulo

from . import decrypt
from .approvals import check_approved
from .budget import short_primes
from .decryptable import undecryptable
from .field_variant import SealFieldVariant, field_variant
from .files import CiphertextFile, decode_file, encrypt_to
from .fit import check_fit, prove_fit
from .inspect import KINDS
from .key import PARMS, SealKeyInfo
from .keygen import SealRequest, generate
from .mask_open_one import seal_mask_open_one
from .masked import COUNTED
from .phases import exact_summands
from .policy import FloodPolicy
from .precision import Precision, key_precision
from .receipts import check_noise, check_receipt
from .recognise import ciphertext_of
from .ring import RING, decrypts_in_ring, padded_output
from .ring_secret import check_ring_secret, make_ring_secret
from .ring_variant import RingVariant, ring_variant
from .texts import SealTexts
from .variant import SealVariant, seal_variant

LEAST_MAC_BITS = 36
"""Bits of the shortest prime over which keys are held with MACs."""
PLAINTEXT_HEADER = 4096
"""Bytes of a plaintext beside its coefficients, at most."""


class SealScheme(Scheme[SealKeyInfo, ParameterSet, SealRequest, Ciphertext]):
    """Keys for unmodified SEAL: exact decryption of BFV and BGV, flooded decryption of CKKS."""

    texts = SealTexts()
    names = ("bfv", "bgv", "ckks")
    order = 0
    job_fields = {"relin": bool, "galois_elements": list, "error_law": str, "policy": dict}  # noqa: RUF012
    file_fields = ("ring_degree", "coeff_modulus")
    batch = 4
    verified = True

    def set_names(self) -> list[str]:
        return list_parameter_sets()

    def load(self, name_or_path: str | Path, warn: bool = True) -> ParameterSet:
        return load(name_or_path, warn)

    def vectors_for(self, info: SealKeyInfo, committee: Committee) -> tuple[SecretVector, ...]:
        parameters, n = info.parameters, info.parameters.ring_degree
        fields = tuple(SecretVector(Field(q), n) for q in parameters.coeff_modulus)
        if not committee.capabilities.macs:
            return require_shares(fields, committee)
        if min(parameters.coeff_modulus).bit_length() < LEAST_MAC_BITS:
            raise ParameterError(
                f"{committee.protocol}: {parameters.name} has primes of less than {LEAST_MAC_BITS} bits, too short for MACs: choose a committee without MACs"
            )
        return (*fields, SecretVector(RING, n)) if decrypts_in_ring(parameters) else fields

    def passed_on(self, info: SealKeyInfo, held: Sequence[SecretVector], committee: Committee, burned: bool = False) -> tuple[Domain | None, ...]:
        *fields, last = self.vectors_for(info, committee)
        if burned:  # nothing shows that the vector modulo 2^64 is of the same integers
            held = [vector for vector in held if Domain.parse(vector.domain).prime is not None]
        if Domain.parse(last.domain).prime is not None or list(held) != fields:
            return super().passed_on(info, held, committee)
        check_ring_secret(info, committee)
        return (*(Domain.parse(vector.domain) for vector in fields), None)

    def make_last(self, context: PartyContext, info: SealKeyInfo, held: Sequence[Shares]) -> Shares:
        return make_ring_secret(context, info, held)

    def request(self, parameters: ParameterSet, options: Mapping[str, object]) -> SealRequest:
        given = {name: value for name, value in options.items() if value is not None}
        unknown = sorted(set(given) - {"relin", "galois_elements", "error_law", "policy"})
        if unknown:
            raise ParameterError(f"{unknown[0]} is no option of keys for SEAL: leave it out")
        policy, elements = given.get("policy", FloodPolicy()), given.get("galois_elements", ())
        relin, law = given.get("relin", True), given.get("error_law", "cbd")
        if not (isinstance(policy, FloodPolicy) and isinstance(elements, Sequence) and isinstance(law, str)):
            raise ParameterError("a policy, Galois elements or an error law of another type: see keyquorum.keygen")
        return SealRequest(parameters, bool(relin), tuple(elements), law, policy)

    def request_from_job(self, job: Plain) -> SealRequest:
        return SealRequest.from_json(job)

    def generate(self, context: PartyContext, request: SealRequest, folder: Path | None = None) -> KeyMaterial[SealKeyInfo]:
        return generate(context, request)

    def key_from_json(self, data: Plain) -> SealKeyInfo:
        return SealKeyInfo.from_json(data)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def undecryptable(self, info: SealKeyInfo, committee: Committee) -> str:
        return undecryptable(info.parameters, info.policy, committee)

    def weaknesses_in(self, info: SealKeyInfo, committee: Committee) -> list[str]:
        return [text for text in [short_primes(committee, info.parameters)] if text]

    def check_fit(self, info: SealKeyInfo, committee: Committee) -> None:
        check_fit(info, committee)

    def prove_fit(self, context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector], folder: Path, begun: Callable[[], object]) -> None:
        prove_fit(context, info, shares, load_public_file(folder, info, "public.key"), begun)

    def exported(self, info: SealKeyInfo) -> dict[str, bytes]:
        return {PARMS: write_parms(info.parameters)}

    def warnings(self, info: SealKeyInfo) -> list[str]:
        found = info.policy.weaknesses(info.parameters)
        if protocol_named(info.protocol).macs and info.parameters.scheme != "ckks" and not info.ring_secret:
            found.append(
                f"{info.protocol}: decryptions under this key are semi-honest, as its secret has no shares in the ring: make a new key, with a plain modulus of at most some 21 bits"
            )
        if protocol_named(info.protocol).macs and info.parameters.scheme == "ckks" and not info.lift_tested:
            found.append(
                f"{info.protocol}: decryptions under this key are semi-honest, as nothing shows that its secret is the same modulo all primes (it is of an earlier build, or was made on MP-SPDZ): make a new key on the embedded engine"
            )
        return found

    def rotations(self, parameters: ParameterSet, steps: Sequence[int]) -> tuple[int, ...]:
        return galois_elements(steps, parameters.ring_degree)

    def key_error(self, info: SealKeyInfo) -> Precision | None:
        # The error is at the scale of the parameter set.
        return key_precision(info) if info.parameters.scheme == "ckks" else None

    def encrypt_to(self, folder: Path, info: SealKeyInfo, values: Any, output: Path, bound: float | None = None) -> CiphertextFile:
        return encrypt_to(folder, info, values, output, bound)

    def decode_file(self, info: SealKeyInfo, path: Path, count: int = 0) -> tuple[Numbers, Precision | None]:
        return decode_file(info, path, count)

    def recognises(self, head: bytes) -> bool:
        # SEAL's keys and plaintexts begin as its ciphertexts do.
        return False

    def parse(self, info: SealKeyInfo, data: bytes, what: str, rounding: str) -> Ciphertext:
        return read_ciphertext(info.parameters, data, what)

    def read_ciphertext(self, info: SealKeyInfo, path: Path, data: bytes, rounding: str) -> Ciphertext:
        # BFV and BGV are switched to the last level.
        ciphertext = decrypt.ready_to_decrypt(info, data, str(path))
        check_receipt(path, data, info)
        check_noise(path, data, info)
        return ciphertext

    def check_decryption(self, info: SealKeyInfo, ciphertexts: Sequence[Ciphertext], receiver: int, rounding: str) -> None:
        decrypt.check_decryption(info, ciphertexts, receiver, rounding)

    def check_accepted(self, folder: Path, info: SealKeyInfo, paths: Sequence[Path], digests: Sequence[str]) -> None:
        check_approved(folder, info, paths, digests)

    def vectors_needed(self, info: SealKeyInfo, ciphertexts: Sequence[Ciphertext]) -> int | None:
        # The first vectors are modulo the primes of the levels; one modulo 2^64 is the last.
        if info.ring_secret:
            return None
        return max((c.level_primes for c in ciphertexts), default=1)

    def checks_noise(self, info: SealKeyInfo) -> bool:
        return info.parameters.scheme != "ckks"

    def noise_within(
        self, context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[Ciphertext], receiver: int
    ) -> bool | None:
        group, set_ = RoundingGroup.of(context, info.threshold, receiver), info.parameters
        u, origins = exact_summands(group, info, shares[0], ciphertexts)
        try:
            return noise_within(group, u, set_.coeff_modulus[0], set_.plain_modulus, origins) if group.member else None
        finally:
            wipe(u)

    def plaintext_size(self, info: SealKeyInfo, ciphertext: Ciphertext) -> int:
        return 8 * info.parameters.ring_degree * ciphertext.level_primes + PLAINTEXT_HEADER

    def item_count(self, info: SealKeyInfo, ciphertext: Ciphertext) -> int:
        # Each coefficient takes an item.
        return info.parameters.ring_degree

    def errors(self, info: SealKeyInfo, paths: Sequence[Path]) -> list[Precision] | None:
        if info.parameters.scheme != "ckks":
            return None
        return [key_precision(info, read_ciphertext(info.parameters, path.read_bytes(), str(path)).scale) for path in paths]

    def rounds(self, info: SealKeyInfo) -> bool:
        # CKKS results are flooded.
        return info.parameters.scheme != "ckks"

    def secret_domain(self, parameters: ParameterSet) -> Domain:
        return Field(parameters.coeff_modulus[0])

    def counts(self, parameters: ParameterSet, rounding: str) -> bool:
        return parameters.scheme == "ckks" or rounding in COUNTED

    def phases(
        self, context: PartyContext, group: RoundingGroup, info: SealKeyInfo, shares: Sequence[ShareVector], variant: Variant,
        ciphertexts: Sequence[Ciphertext], keep: bool = False,
    ) -> Words:  # fmt: skip
        # Shapes: [2, parts, items], modulo 2^l and modulo t; over prime fields alone [1, parts, items], modulo q; in one ring with MACs
        # [2, items words], modulo 2^64.
        if isinstance(variant, RingVariant):
            return variant.phases(context, info, shares[-1], ciphertexts, keep)
        assert isinstance(variant, SealVariant | FieldVariant)
        set_ = info.parameters
        u, _ = exact_summands(group, info, shares[0], ciphertexts, keep)
        if isinstance(variant, FieldVariant):
            return u[None]
        try:
            with context.phase("online"):
                return np.stack(scaled_words(group, u, set_.coeff_modulus[0], set_.plain_modulus, variant.length))
        finally:
            wipe(u)

    def plaintexts(self, info: SealKeyInfo, ciphertexts: Sequence[Ciphertext], words: Words) -> Sequence[Decrypted]:
        return decrypt.plaintexts(info.parameters, ciphertexts, words.view(np.int64))

    def decrypt_without_pool(
        self, context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[Ciphertext], receiver: int,
        rounding: str,
    ) -> Sequence[Decrypted] | None:  # fmt: skip
        return decrypt.decrypt(context, info, shares, ciphertexts, receiver, rounding)

    def check_served(self, committee: Committee, rounding: str) -> None:
        if rounding in COUNTED:
            raise ParameterError(
                f"{rounding} is sometimes wrong, and its errors tell of the secret key: a served committee counts no decryptions, so BFV and BGV are "
                "served with round_ltz_circuit alone"
            )

    def unit(self, parameters: ParameterSet) -> int:
        return parameters.ring_degree

    def request_limit(self, parameters: ParameterSet) -> int:
        return 64 * parameters.ring_degree + 65536

    def request_body(self, info: SealKeyInfo, path: Path, data: bytes) -> bytes:
        # BFV and BGV are sent at the last level.
        ciphertext = ciphertext_of(info.parameters, data, str(path))
        check_receipt(path, data, info)
        check_noise(path, data, info)
        lowest = info.parameters.scheme == "ckks" or ciphertext.level_primes == 1
        return data if lowest else seal.Evaluator(info.parameters).last_level(data)

    def message_modulus(self, parameters: ParameterSet, committee: Committee) -> int:
        return parameters.plain_modulus

    def combine(self, parameters: ParameterSet, shares: Sequence[Words], modulus: int) -> Words:
        return combine_modulo(shares, modulus)

    def padded(self, parameters: ParameterSet) -> PaddedOutput:
        return padded_output(parameters)

    def variant(
        self, committee: Committee, rounding: str, parameters: ParameterSet, width: int, levels: int
    ) -> SealVariant | SealFieldVariant | RingVariant:
        # No rounding has tables.
        if kind_of(committee).one_ring:
            return ring_variant(committee, rounding, parameters)
        if over_fields(committee):
            return field_variant(committee, rounding, parameters)
        if rounding == MASKED_ONE:
            return seal_mask_open_one(committee, parameters)
        return seal_variant(committee, rounding, parameters)


SCHEME = SealScheme()
