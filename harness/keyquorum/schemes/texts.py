"""What people are told of a scheme's parameter sets, keys and results. Each scheme has one object of texts, in its module ``texts``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from .keys import K, P, Plain

C = TypeVar("C")


class KeyTexts(Generic[K, P]):
    """Texts about parameter sets and keys. ``title``: of the scheme; ``instead``: what to do with keys that encrypt nothing."""

    title: ClassVar[str]
    instead: ClassVar[str] = ""

    def parameter_set(self, parameters: P) -> tuple[str, Plain]:
        """What ``keyquorum parameters`` says of a set after its name: a line, and plain data."""
        return parameters.scheme, {"scheme": parameters.scheme}

    def file(self, parameters: P) -> str:
        """What ``keyquorum inspect`` says of a TOML file with a set."""
        return self.parameter_set(parameters)[0]

    def key(self, info: K) -> list[str]:
        """What ``keyquorum inspect`` says of a key's metadata: a first line with key id and parameter set, and more."""
        return [f"{self.title} key {info.key_id}, {info.parameters.name}"]

    def noise(self, info: K) -> str:
        """What follows the line about the committee, as the distribution of the key's noise."""
        return ""

    def state(self, folder: Path, info: K) -> list[str]:
        """The state of a key beside the metadata, such as decryptions used. Raises KeyFileError for damaged files."""
        return []

    def shares(self, info: K) -> str:
        """What a party has of a key: its shares and the names of the public files."""
        return f"{len(info.secrets)} shares, {', '.join(info.files)}"

    def made(self, key: str, folder: Path, info: K) -> tuple[list[str], Plain]:
        """What ``keyquorum keygen`` says of a new key ``key`` in ``folder``: lines, and plain data of its own."""
        return [f"key {key} ({info.key_id}): public files in {folder}"], {}


class Texts(KeyTexts[K, P], Generic[K, P, C]):
    """Texts about a scheme of encryption."""

    def plaintext(self, ciphertext: C) -> str:
        """What is in the plaintext file of a ciphertext file."""
        return "a plaintext"

    def masked_limit(self, parameters: P) -> str:
        """The limit of decryptions by :data:`.MASKED`, whose errors leak the secret; empty for a set without that rounding."""
        return (
            f"{self.title} decryptions are not counted: take it for noise that the receiver cannot relate to the secret, "
            "as that of fresh ciphertexts of others"
        )
