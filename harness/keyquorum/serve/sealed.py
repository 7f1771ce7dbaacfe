"""A channel between a receiver and a party that stays secret when a quantum computer reads its TLS later: sealed by ML-KEM-768.

Python's TLS is that of the system's OpenSSL, which before 3.5 has no key exchange with ML-KEM. So the two ends exchange keys once more
inside the channel, and seal all that they send (``Source/net/src/sealed.rs``). TLS says who the other end is. Both ends insist on this
layer: there is nothing to fall back to.

After the handshake the receiver sends :data:`MAGIC` and an encapsulation key, and the party a ciphertext. From then on both send records:
the length of the sealed content (``u32``), and the sealed content of at most :data:`LONGEST` bytes.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import TypeVar

from keyquorum._engine import SEALED_TAG_BYTES, SEALING_ANSWER_BYTES, SEALING_OFFER_BYTES, NetworkError, SealedRecords, SealingOffer, answer_sealing

MAGIC = b"kq-seal1"
LONGEST = 1 << 16
"""Bytes of content in a record."""
_LENGTH = 4
_Result = TypeVar("_Result")


def _checked(call: Callable[[bytes], _Result], received: bytes) -> _Result:
    try:
        return call(received)
    except NetworkError as error:
        raise ConnectionError(str(error)) from None


class SealedSocket(ssl.SSLSocket):
    """A TLS socket whose ``recv`` and ``sendall`` are those of the sealed channel, after :meth:`offer_seal` or :meth:`answer_seal`; use no others.
    Made by a context of :func:`sealing`."""

    _records: SealedRecords | None = None
    _received = b""

    def offer_seal(self) -> None:
        """Makes the keys, as the end that dialled. Raises ConnectionError."""
        offer = SealingOffer()
        super().sendall(MAGIC + offer.message)
        self._records = _checked(offer.finish, self._whole(SEALING_ANSWER_BYTES))

    def answer_seal(self) -> None:
        """Makes the keys, as the end that accepted. Raises ConnectionError."""
        if self._whole(len(MAGIC)) != MAGIC:
            raise ConnectionError("the other end does not seal its channel: run the same version of KeyQuorum there")
        answer, records = _checked(answer_sealing, self._whole(SEALING_OFFER_BYTES))
        super().sendall(answer)
        self._records = records

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """At most ``buflen`` bytes, or none at the end of the channel. Waits for a whole record, in all at most the timeout of the socket."""
        if self._records is None:
            return super().recv(buflen, flags)
        while not self._received:
            first = super().recv(_LENGTH)
            if not first:
                return b""
            size = int.from_bytes(first + self._whole(_LENGTH - len(first)), "little")
            if not SEALED_TAG_BYTES < size <= LONGEST + SEALED_TAG_BYTES:
                raise ConnectionError(f"a sealed record of {size} bytes")
            self._received = _checked(self._records.open, self._whole(size))
        part, self._received = self._received[:buflen], self._received[buflen:]
        return part

    def sendall(self, data: object, flags: int = 0) -> None:
        """Seals and sends everything."""
        if self._records is None:
            super().sendall(data, flags)  # type: ignore[arg-type]
            return
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        for start in range(0, len(view), LONGEST):
            record = self._records.seal(bytes(view[start : start + LONGEST]))
            super().sendall(len(record).to_bytes(_LENGTH, "little") + record)

    def _whole(self, size: int) -> bytes:
        """Exactly ``size`` bytes of the channel below, within the timeout of the socket."""
        seconds = self.gettimeout()
        until = None if seconds is None else time.monotonic() + seconds
        data = bytearray()
        try:
            while len(data) < size:
                part = super().recv(size - len(data))
                if not part:
                    raise ConnectionError("the channel was closed in the middle of a sealed record: is the same version of KeyQuorum at both ends?")
                data += part
                if until is not None:
                    left = until - time.monotonic()
                    if left <= 0 and len(data) < size:
                        raise TimeoutError("a sealed record took too long")
                    self.settimeout(max(left, 1e-3))
        finally:
            self.settimeout(seconds)
        return bytes(data)


def sealing(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context, whose sockets can be sealed from now on."""
    context.sslsocket_class = SealedSocket
    return context


def sealed(channel: ssl.SSLSocket) -> SealedSocket:
    """A socket of such a context. Raises ConnectionError for another one."""
    if not isinstance(channel, SealedSocket):
        raise ConnectionError("the channel cannot be sealed: please report it")
    return channel
