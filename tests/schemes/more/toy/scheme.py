"""The whole of a small scheme behind the interface. Its roundings are those of LWE."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LweCiphertexts, LweParameters, pack, unpack
from keyquorum.fhe.lwe_public import LwePublicKey, expand_mask
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.inspected import Kind, Report
from keyquorum.model.needs import Needs
from keyquorum.model.outputs import save_file
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call
from keyquorum.programs.signatures import lwe_phase, lwe_public_key, sample_bits, sample_tuniform
from keyquorum.schemes.base import EXACT, Decrypted, EncryptedFile, Scheme, Words
from keyquorum.schemes.key_folder import load_public_file
from keyquorum.schemes.keys import KeyInfo, KeyMaterial, KeyRequest, Plain, SecretVector
from keyquorum.schemes.lwe.variant import LweVariant, messages_of
from keyquorum.schemes.texts import Texts
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import Variant, combine

MAGIC = b"KQTOY001"
PUBLIC, LARGE = "toy.public", "toy.large"
PIECES = 1000


@dataclass(frozen=True)
class ToyParameters:
    name: str
    bits: int
    scheme: str = "toy"

    @property
    def lwe(self) -> LweParameters:
        return LweParameters(self.name, 16, 0, self.bits, 0, 1.0, 20, "tests")


SETS = {name: ToyParameters(name, bits) for name, bits in (("toy-2", 2), ("toy-3", 3))}


@dataclass(frozen=True, kw_only=True)
class ToyKeyInfo(KeyInfo):
    parameters: ToyParameters
    noise: int

    @property
    def secrets(self) -> tuple[SecretVector, ...]:
        return (SecretVector("Z2^64", 16),)


@dataclass(frozen=True)
class ToyRequest(KeyRequest):
    parameters: ToyParameters
    noise: int = 3

    def check(self, contributors: int = 1) -> None:
        if not 1 <= self.noise <= 9:
            raise ParameterError(f"noise {self.noise}: choose 1 to 9")

    def check_committee(self, committee: Committee) -> None:
        self.check()
        if committee.ring_protocol is None or committee.authenticated:
            raise ParameterError("toys take a committee over rings, without MACs")

    def warnings(self, committee: Committee | None = None) -> list[str]:
        return [] if committee else ["a toy hides nothing"]

    def needs(self, committee: Committee) -> Needs | None:
        return Needs(10**6, 1000)


class ToyTexts(Texts[ToyKeyInfo, ToyParameters, LweCiphertexts]):
    title = "toys"


class ToyScheme(Scheme[ToyKeyInfo, ToyParameters, ToyRequest, LweCiphertexts]):
    texts = ToyTexts()
    names, order, batch, most_asked = ("toy",), 99, 16, 64
    job_fields = {"noise": int}  # noqa: RUF012

    def set_names(self) -> list[str]:
        return list(SETS)

    def load(self, name_or_path: str | Path, warn: bool = True) -> ToyParameters:
        return SETS[str(name_or_path)]

    def request(self, parameters: ToyParameters, options: Mapping[str, object]) -> ToyRequest:
        return ToyRequest(parameters, int(str(options.get("noise", 3))))

    def request_from_job(self, job: Plain) -> ToyRequest:
        return ToyRequest(SETS[job["parameters"]["name"]], job["noise"])

    def key_from_json(self, data: Plain) -> ToyKeyInfo:
        info = ToyKeyInfo(**{**data, "parameters": SETS[data["parameters"]["name"]]})
        info.check_types(numbers=[info.noise])
        return info

    def generate(self, context: PartyContext, request: ToyRequest, folder: Path | None = None) -> KeyMaterial[ToyKeyInfo]:
        committee, parameters, share = context.committee, request.parameters, ShareVector()
        public_seed = hashlib.shake_256(b"toy" + context.session.toss(64)).digest(64)

        def run(call: Call, **options: Any) -> Any:
            assert committee.ring_protocol is not None
            return context.backend.run(committee.ring_protocol, "Z2^64", call, **options, mode=Mode(committee.threshold, seed=context.seed)).words

        with context.phase("secret"):
            run(sample_bits(size=16), shares=share)
            working = share.copy()
            run(sample_tuniform(size=16, b=request.noise), shares=working)
            opened = run(lwe_public_key(n=16), public=[expand_mask(parameters.lwe, public_seed).view(np.int64)], shares=working)
            working.wipe()
        key_id = hashlib.sha256(public_seed).hexdigest()[:32]
        public = LwePublicKey(parameters.lwe, key_id, public_seed, opened.astype(np.uint64))
        data = pack(MAGIC, {"seed": public_seed.hex()}, public.body.tobytes())
        info = ToyKeyInfo(
            key_id=key_id, parameters=parameters, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold,
            noise=request.noise,
        )  # fmt: skip
        assert folder is not None
        with (folder / LARGE).open("wb") as file:
            for _ in range(PIECES):
                file.write(MAGIC)
        return KeyMaterial(info, {PUBLIC: data}, [share], (LARGE,))

    def kinds(self) -> tuple[Kind, ...]:
        return (Kind("toy", lambda c: c.head[:8] == MAGIC, lambda c: Report(["a file of toys"]), ("toy",)),)

    def encrypt_to(self, folder: Path, info: ToyKeyInfo, values: Any, output: Path, bound: float | None = None) -> EncryptedFile:
        header, body = unpack(load_public_file(folder, info, PUBLIC))
        set_ = info.parameters.lwe
        # as many ciphertexts as there are values, of few coefficients: the noise of the public key alone
        key = LwePublicKey(set_, info.key_id, bytes.fromhex(header["seed"]), np.frombuffer(body, np.uint64))
        made = _small(key, np.asarray(values, dtype=np.int64))
        data = pack(MAGIC, {"key_id": info.key_id, "count": made.count}, made.a.tobytes() + made.b.tobytes())
        save_file(output, data)
        return EncryptedFile(output, data, info)

    def decode_file(self, info: ToyKeyInfo, path: Path, count: int = 0) -> tuple[Any, None]:
        return np.array(json.loads(path.read_text())[: count or None]), None

    def recognises(self, head: bytes) -> bool:
        return head[:8] == MAGIC

    def parse(self, info: ToyKeyInfo, data: bytes, what: str, rounding: str) -> LweCiphertexts:
        header, body = unpack(data)
        if header["key_id"] != info.key_id:
            raise CiphertextError(f"{what} is of another key")
        words = np.frombuffer(body, np.uint64)
        return LweCiphertexts(info.parameters.lwe, words[: 16 * header["count"]].reshape(-1, 16), words[16 * header["count"] :])

    def plaintext_size(self, info: ToyKeyInfo, ciphertext: LweCiphertexts) -> int:
        return 8 * ciphertext.count

    def item_count(self, info: ToyKeyInfo, ciphertext: LweCiphertexts) -> int:
        return ciphertext.count

    def pooled(self, info: ToyKeyInfo, wanted: bool) -> bool:
        return True

    def secret_domain(self, parameters: ToyParameters) -> Domain:
        return Domain.parse("Z2^64")

    def phases(
        self, context: PartyContext, group: RoundingGroup, info: ToyKeyInfo, shares: Sequence[ShareVector], variant: Variant,
        ciphertexts: Sequence[LweCiphertexts], keep: bool = False,
    ) -> Words:  # fmt: skip
        a, b = np.concatenate([c.a for c in ciphertexts]), np.concatenate([c.b for c in ciphertexts])
        joined, working = LweCiphertexts(info.parameters.lwe, a, b), shares[0].copy()
        call = lwe_phase(n=16, count=joined.count, offset=1 << (info.parameters.lwe.noise_length - 1), block=128)
        protocol = context.committee.ring_protocol
        assert protocol is not None
        with context.phase("phase"):
            context.backend.run(protocol, "Z2^64", call, public=joined.words(128), shares=working, mode=Mode(info.threshold, keep=keep))
        return working.tail(joined.count)

    def plaintexts(self, info: ToyKeyInfo, ciphertexts: Sequence[LweCiphertexts], words: Words) -> list[Decrypted]:
        parts = np.split(messages_of(info.parameters.lwe, words), np.cumsum([c.count for c in ciphertexts])[:-1])
        return [Decrypted(json.dumps(part.tolist()).encode()) for part in parts]

    def check_served(self, committee: Committee, rounding: str) -> None:
        pass

    def request_limit(self, parameters: ToyParameters) -> int:
        return 1 << 16

    def combine(self, parameters: ToyParameters, shares: Sequence[Words], modulus: int) -> Words:
        return combine(shares, 64)

    def variant(self, committee: Committee, rounding: str, parameters: ToyParameters, width: int, levels: int) -> LweVariant:
        return LweVariant(rounding, parameters.lwe, width, levels, triples=rounding == EXACT and committee.rounds_with_triples)


def _small(key: LwePublicKey, messages: Any) -> LweCiphertexts:
    """Row k mod 16 of the public key, and the message of each."""
    from keyquorum.fhe.lwe_public import rows_of

    set_ = key.parameters
    rows = np.arange(messages.size) % 16
    b = key.body[rows] + (messages.astype(np.uint64) << np.uint64(64 - set_.message_bits))
    return LweCiphertexts(set_, rows_of(set_, expand_mask(set_, key.seed), 16)[rows], b)


SCHEME = ToyScheme()
