"""The receiver: shares its inputs among the parties, and combines their answers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from keyquorum import api
from keyquorum.api import PathLike
from keyquorum.model.arguments import checked
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.subset import subset_of
from keyquorum.schemes.prf.client_masks import MOST_MASKED, opened_masks, same_values
from keyquorum.schemes.prf.function import BLOCK, MOST_INPUTS, check_output, finalised
from keyquorum.schemes.prf.functions import inner_of
from keyquorum.schemes.prf.key import load_prf_key
from keyquorum.serve.answers import Answers
from keyquorum.serve.client import Channels

HASH_BYTES = hashlib.sha256().digest_size
MOST_DERIVED = 255 * HASH_BYTES
"""Bytes of the longest key that HKDF with SHA-256 derives."""


class Toprf:
    """Values of the function of a key (:mod:`keyquorum.schemes.prf.function` defines it) for a receiver's identity, from a served committee.

    ``identity``: of :func:`keyquorum.serve.client.make_receiver`; ``places``: addresses of the parties in their order (default: those of this host);
    ``domain``: separates uses of one key, at most 255 bytes; ``output_bytes``: 16 or 32; ``timeout``: seconds for an answer; ``wait``: seconds to
    wait for parties that do not listen yet; ``parties``: those that evaluate, t of a key shared by :func:`toprf_share` (default: all). Needs ``committee.toml`` and ``key.json``, as :func:`keyquorum.export_key` writes them, and no party.
    """

    @checked
    def __init__(
        self, committee: Committee | PathLike, key: str, identity: PathLike, places: list[tuple[str, int]] | None = None, *, domain: bytes = b"",
        output_bytes: int = 32, timeout: float = 90.0, wait: float = 0.0, parties: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        whole = api.as_committee(committee)
        self._committee = whole if parties is None else subset_of(whole, parties)
        self._padded = Answers.of(self._committee) is Answers.PADDED
        self._head = {} if parties is None else {"parties": sorted(parties)}
        info = load_prf_key(api.key_folder(whole, key))
        self._key_id, self._inner = info.key_id, inner_of(info.parameters)
        self._inner.check(self._committee, "circuit")
        self._blocks, self._output, self._domain = check_output(output_bytes), output_bytes, domain
        self._inner.point(b"", domain, output_bytes)  # refuses a domain that is too long
        if not Path(identity).exists():
            raise ParameterError(f"{identity}: no such identity: make one with keyquorum receiver")
        self._channels = Channels(self._committee, Path(identity), places, timeout, wait, "keyquorum toprf serve")

    def __enter__(self) -> Toprf:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the channels; a later evaluation opens new ones."""
        self._channels.close()

    @checked
    def evaluate(self, data: bytes) -> bytes:
        """The value of one input of any length. One request; see :meth:`evaluate_many`."""
        return self.evaluate_many([data])[0]

    @checked
    def evaluate_many(self, inputs: Iterable[bytes]) -> list[bytes]:
        """The values of inputs, in their order, by requests of up to 1,024 inputs (64 where shares have MACs). Each input counts as an evaluation, also one that occurs twice.

        Raises :class:`.RefusedByPolicy` if a party's policy allows no more, :class:`.Refused`, or PartyError. Requests before the one that failed
        were counted, and their values are lost: :meth:`evaluate_each` gives them."""
        return list(self.evaluate_each(inputs))

    @checked
    def evaluate_each(self, inputs: Iterable[bytes]) -> Iterator[bytes]:
        """As :meth:`evaluate_many`, one value after another, as soon as its request is answered: an error loses none of the values before."""
        given, most = list(inputs), MOST_MASKED if self._padded else MOST_INPUTS
        for first in range(0, len(given), most):
            yield from self._request(given[first : first + most])

    @checked
    def derive(self, data: bytes, info: bytes = b"", salt: bytes = b"", length: int = 32) -> bytes:
        """A key of ``length`` bytes from one input: HKDF with SHA-256 (RFC 5869) of D, which the value of :meth:`evaluate` does not reveal. ``info``: the
        use of the key; ``salt``: as of the user, so that users of one password have other keys. Raises ParameterError before anything is counted, and
        as :meth:`evaluate_many`."""
        check_derived(length)
        if self._output != HASH_BYTES:
            raise ParameterError(f"keys are derived from {HASH_BYTES} bytes, and this client has values of {self._output}: leave output_bytes out")
        return hkdf(self._request([data], derives=True)[0], info, salt, length)

    def _request(self, inputs: Sequence[bytes], derives: bool = False) -> list[bytes]:
        points = [self._inner.point(data, self._domain, self._output) for data in inputs]
        head = {"key": self._key_id, "output": self._output, **self._head}
        if self._padded:
            blocks = self._by_masks(points, head)
        else:
            answers = self._channels.ask(self._inner.shared(self._committee, points), head)
            blocks = self._inner.combined(self._committee, answers, len(inputs) * self._blocks)
        size = self._blocks * BLOCK
        return [finalised(data, self._domain, self._output, blocks[size * i : size * (i + 1)], derives) for i, data in enumerate(inputs)]

    def _by_masks(self, points: Sequence[bytes], head: dict[str, object]) -> bytes:
        """The blocks of points, from parties whose shares have MACs: see :mod:`keyquorum.schemes.prf.client_masks`. Two requests. Raises PartyError for wrong answers."""
        size, count, name = self._committee.size, len(points), secrets.token_hex(16)
        answers = self._channels.ask([b""] * size, {**head, "id": name, "masks": count})
        known = opened_masks(self._committee, answers, count, self._blocks)
        masked = np.frombuffer(b"".join(points), np.uint8).reshape(count, BLOCK) ^ known.masks
        answers = self._channels.ask([masked.tobytes()] * size, {**head, "use": name})
        padded = same_values(self._committee, answers, count * self._blocks * BLOCK)
        return (np.frombuffer(padded, np.uint8).reshape(known.pads.shape) ^ known.pads).tobytes()


def check_derived(length: int) -> None:
    """Raises ParameterError for a length that no derived key has."""
    if not 1 <= length <= MOST_DERIVED:
        raise ParameterError(f"a key of {length} bytes: choose 1 to {MOST_DERIVED}")


def hkdf(value: bytes, info: bytes, salt: bytes, length: int) -> bytes:
    """HKDF with SHA-256 (RFC 5869) of a value: ``length`` bytes. Raises ParameterError."""
    check_derived(length)
    extracted = hmac.digest(salt or bytes(HASH_BYTES), value, "sha256")
    derived, block = b"", b""
    for number in range(1, -(-length // HASH_BYTES) + 1):
        block = hmac.digest(extracted, block + info + bytes([number]), "sha256")
        derived += block
    return derived[:length]


__all__ = ["Toprf", "check_derived", "hkdf"]
