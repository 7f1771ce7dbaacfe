"""SEAL with one key beside SEAL with a committee's key: clients do the same with both, and decryption is where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from keyquorum.fhe import seal
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.errors import KeyQuorumError
from keyquorum.sweep import peers

from .base import Pair, Peer, Setting, Spent, timed
from .ours import Quorum, log2_q, quorum, random_values, same

SAME = "The same library does the same work with a key of one party and with the committee's: the times are of the same code."
DIFFERS = {
    "keys": "One party makes its key alone, without communication; nobody ever has the committee's key.",
    "encryption": SAME,
    "multiplication": SAME,
    "decryption": "One party has the key and needs no communication; the committee's parties are processes over TLS, and its preprocessing counts.",
}


class Client:
    """What a client does with public keys: one context, one vector, encryptions and relinearised products."""

    def __init__(self, parameters: ParameterSet, public: Any, relin: Any) -> None:
        library, context = seal.require_seal(), seal.context(parameters)
        self.parameters, self.values = parameters, random_values(parameters)
        self._plain = seal.encode(parameters, self.values)
        self._encryptor, self._evaluator, self._relin = library.Encryptor(context, public), library.Evaluator(context), relin

    def encrypt(self) -> Any:
        """A fresh encryption."""
        return self._encryptor.encrypt(self._plain)

    def operations(self, runs: int) -> dict[str, Spent]:
        """Encryptions, and products of two fresh ciphertexts."""
        encryption, made = timed(self.encrypt, runs)
        other = self.encrypt()
        product: Callable[[], Any] = lambda: self._evaluator.relinearize(self._evaluator.multiply(made, other), self._relin)  # noqa: E731
        return {"encryption": encryption, "multiplication": timed(product, runs)[0]}


def _alone(parameters: ParameterSet, runs: int) -> dict[str, Spent]:
    """All operations with a key of one party. Raises KeyQuorumError for a wrong decryption."""
    library, context = seal.require_seal(), seal.context(parameters)

    def keys() -> tuple[Any, Any, Any]:
        generator = library.KeyGenerator(context)
        return generator.secret_key(), generator.create_public_key(), generator.create_relin_keys()

    made, (secret, public, relin) = timed(keys, runs)
    client = Client(parameters, public, relin)
    decryptor, ciphertext = library.Decryptor(context, secret), client.encrypt()
    decryption, plain = timed(lambda: decryptor.decrypt(ciphertext), runs)
    if not same(parameters, seal.decode(parameters, plain.to_bytes()), client.values):
        raise KeyQuorumError(f"{parameters.name}: SEAL decrypts to something else: the comparison is worth nothing")
    return {"keys": made, **client.operations(runs), "decryption": decryption}


def _together(quorum: Quorum) -> dict[str, Spent]:
    """The same operations with the committee's key."""
    context = seal.context(quorum.parameters)
    public, relin = context.from_public_str(quorum.file("public.key")), context.from_relin_str(quorum.file("relin.key"))
    client = Client(quorum.parameters, public, relin)
    return {"keys": quorum.keys, **client.operations(quorum.setting.runs), "decryption": quorum.decryption()}


class SingleSeal(Peer):
    """SEAL, one party."""

    @property
    def name(self) -> str:
        """See :class:`Peer`."""
        return "SEAL"

    @property
    def sets(self) -> Sequence[str]:
        """A set of each scheme."""
        return ("bfv-8192", "bgv-8192", "ckks-8192")

    @property
    def quick_sets(self) -> Sequence[str]:
        """A small set."""
        return ("bfv-4096",)

    def model(self, parameters: str) -> str:
        """One party has the key."""
        return "single-key"

    def version(self) -> str:
        """See :class:`Peer`."""
        return peers.version("seal")

    def pairs(self, setting: Setting) -> Iterator[Pair]:
        """Keys, encryption, a relinearised product, decryption."""
        with quorum(setting) as made:
            parameters, bits = made.parameters, log2_q(made.parameters)
            ours, theirs = _together(made), _alone(made.parameters, setting.runs)
            for name, text in DIFFERS.items():
                yield Pair(name, parameters.ring_degree, parameters.plain_modulus, (bits, bits), theirs[name], ours[name], text)


__all__ = ["SingleSeal"]
