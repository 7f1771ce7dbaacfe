"""GHS behind the interface of schemes. Its keys are for comparisons: no library loads them. Bits are encrypted and decrypted, and nothing here evaluates under them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.ghs import PUBLIC, SET_NAMES, GhsParameters, Words, load_set
from keyquorum.fhe.ghs_ciphertexts import GhsCiphertext, bits_of, encrypt, is_ciphertext, read_ciphertext
from keyquorum.fhe.lwe import read_messages
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Field
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.inspected import Kind
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import EncryptedFile, Scheme
from keyquorum.schemes.keys import KeyMaterial, Plain
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import Variant, combine

from .decrypt import GhsDecrypted, phases, plaintexts, rounded_set, rounding_of
from .inspect import KINDS
from .key import NOISES, GhsKeyInfo, check_file
from .keygen import GhsRequest, generate, request_from_json
from .texts import GhsTexts

SEAL_OPTIONS: Mapping[str, object] = {"relin": True, "galois_elements": (), "error_law": "cbd", "policy": None}
"""Options of :func:`keyquorum.api.keygen` for keys of SEAL, with values that ask for nothing: those of a caller that does not name them."""
HEADER = 4096
"""Bytes of a ciphertext file beside its residues, at most."""


class GhsScheme(Scheme[GhsKeyInfo, GhsParameters, GhsRequest, GhsCiphertext]):
    """BGV modulo cyclotomic polynomials: keys, encryption of bits, exact decryption."""

    texts = GhsTexts()
    names = ("ghs",)
    order = 5
    job_fields: ClassVar[Mapping[str, type]] = {"noise": str}
    batch = 4

    def set_names(self) -> list[str]:
        return list(SET_NAMES)

    def load(self, name_or_path: str | Path, warn: bool = True) -> GhsParameters:
        found = load_set(name_or_path)
        if warn and isinstance(name_or_path, Path):
            warnings.warn(
                f"parameter set {found.name!r} of GHS is not a shipped set, and nothing here estimates its security: for experiments only",
                SecurityWarning,
                stacklevel=2,
            )
        return found

    def request(self, parameters: GhsParameters, options: Mapping[str, object]) -> GhsRequest:
        for name, usual in SEAL_OPTIONS.items():
            given = options.get(name, usual)
            if (tuple(given) if isinstance(given, list) else given) != usual:
                raise ParameterError(f"{name} is for keys of SEAL, and {parameters.name} is a set of {self.title}: leave it out")
        unknown = sorted(set(options) - {*SEAL_OPTIONS, *self.job_fields})
        if unknown:
            raise ParameterError(f"{unknown[0]} is no option of keys of {self.title}, which have noise: leave it out")
        made = GhsRequest(parameters, str(options.get("noise", NOISES[0])))
        made.check()
        return made

    def request_from_job(self, job: Plain) -> GhsRequest:
        return request_from_json(job)

    def key_from_json(self, data: Plain) -> GhsKeyInfo:
        return GhsKeyInfo.from_json(data)

    def generate(self, context: PartyContext, request: GhsRequest, folder: Path | None = None) -> KeyMaterial[GhsKeyInfo]:
        return generate(context, request, folder)

    def check_public(self, folder: Path, info: GhsKeyInfo) -> None:
        for kind in info.parameters.kinds:
            check_file(folder, info, kind)

    def check_made(self, folder: Path, info: GhsKeyInfo) -> None:
        self.check_public(folder, info)

    def kinds(self) -> tuple[Kind, ...]:
        return KINDS

    def check_backend(self, parameters: GhsParameters, backend: str, link: str | None) -> None:
        if backend != "embedded":
            raise ParameterError(f"{parameters.name}: keys of {self.title} are made on the embedded engine: leave out --backend")

    # Files

    def encrypt_to(self, folder: Path, info: GhsKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        if bound is not None:
            raise ParameterError(f"--bound is for CKKS, and this is a key of {self.title}: leave it out")
        data = encrypt(check_file(folder, info, PUBLIC), bits_of(info.parameters, values)).to_bytes(info.key_id)
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def decode_file(self, info: GhsKeyInfo, path: Path, count: int = 0) -> tuple[NDArray[np.int64], None]:
        if count < 0:
            raise ParameterError(f"{count} values: choose how many to print, or 0 for all")
        messages = np.array(read_messages(path)[0], dtype=np.int64)
        return (messages[:count] if count else messages), None

    # Ciphertexts, phases, plaintexts

    def recognises(self, head: bytes) -> bool:
        return is_ciphertext(head)

    def parse(self, info: GhsKeyInfo, data: bytes, what: str, rounding: str) -> GhsCiphertext:
        ciphertext, key_id = read_ciphertext(data, what)
        if (key_id, ciphertext.order, ciphertext.primes) != (info.key_id, info.parameters.order, info.parameters.primes[:1]):
            raise CiphertextError(f"{what} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
        return ciphertext

    def vectors_needed(self, info: GhsKeyInfo, ciphertexts: Sequence[GhsCiphertext]) -> int:
        # Ciphertexts are under s_0.
        return 1

    def plaintext_size(self, info: GhsKeyInfo, ciphertext: GhsCiphertext) -> int:
        return 3 * info.parameters.degree + 2  # a digit, a comma and a space each

    def item_count(self, info: GhsKeyInfo, ciphertext: GhsCiphertext) -> int:
        # Each coefficient takes an item.
        return info.parameters.degree

    def secret_domain(self, parameters: GhsParameters) -> Domain:
        return Field(parameters.primes[0])

    def phases(
        self, context: PartyContext, group: RoundingGroup, info: GhsKeyInfo, shares: Sequence[ShareVector], variant: Variant,
        ciphertexts: Sequence[GhsCiphertext], keep: bool = False,
    ) -> Words:  # fmt: skip
        with context.phase("phase"):
            return phases(group, info.parameters, shares[0], ciphertexts)

    def plaintexts(self, info: GhsKeyInfo, ciphertexts: Sequence[GhsCiphertext], words: Words) -> list[GhsDecrypted]:
        return plaintexts(info.parameters, len(ciphertexts), words)

    def decrypt_without_pool(
        self, context: PartyContext, info: GhsKeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[GhsCiphertext], receiver: int, rounding: str
    ) -> list[GhsDecrypted] | None:  # fmt: skip
        group = RoundingGroup.of(context, info.threshold, receiver)
        variant = self.variant(context.committee, rounding, info.parameters, 0, 0)
        z = self.phases(context, group, info, shares, variant, ciphertexts)
        words = None
        try:
            if group.member:
                with context.phase("offline"):
                    items = variant.make(group, z.shape[-1])
                try:
                    with context.phase("online"):
                        words = variant.use(group, z, items, group.receiver)
                finally:
                    wipe(*items)
        finally:
            wipe(z)
        return None if words is None or context.party != receiver else self.plaintexts(info, ciphertexts, words[0])

    # The served committee

    def check_served(self, committee: Committee, rounding: str) -> None:
        pass  # no exact decryption is counted, and others are refused by the variant

    def unit(self, parameters: GhsParameters) -> int:
        return parameters.degree

    def request_limit(self, parameters: GhsParameters) -> int:
        return 2 * 8 * parameters.degree + HEADER

    def combine(self, parameters: GhsParameters, shares: Sequence[Words], modulus: int) -> Words:
        return combine(shares, rounded_set(parameters).ring_bits)

    def variant(self, committee: Committee, rounding: str, parameters: GhsParameters, width: int, levels: int) -> Variant:
        # No rounding has tables.
        return rounding_of(committee, rounding, parameters)


SCHEME = GhsScheme()
