"""The chain of an audit log: each line has the hash of the line before it in its own, and the party signs the last line of every write.

A line is JSON, ``BODY, "chain": "H"}`` or ``BODY, "chain": "H", "signature": "S"}``. H = SHA-256("keyquorum audit line" P BODY}), P the H of the line before. S is the Ed25519 signature of
"keyquorum audit head N H" under the key of the party's identity, N the number of the line. (Signatures of TLS begin with 64 spaces, so neither is one of the other.) The first line of a file, and of a start
of the party, has P as ``previous``, and the party's certificate, by which committee.toml knows it. Numbers begin at 0, and go on in the next file when the log is moved away.

Who changes, removes or moves lines cannot make the signature of any later head without the party's key. A log that is cut off at its end has lost heads: the party's file ``LOG.head``, or a value that
an earlier verification printed, show that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.parties import signatures

NO_CHAIN = bytes(32).hex()
HEAD = ".head"
"""Appended to the name of a log: the file with its last signed line."""
_CHAIN, _SIGNATURE = ', "chain": "', '", "signature": "'


@dataclass(frozen=True)
class Head:
    """A place in the chain: the number of lines so far, and the H of the last one."""

    number: int = 0
    chain: str = NO_CHAIN


class Signer:
    """Signs heads with a party's identity."""

    def __init__(self, identity: Path) -> None:
        self._identity = identity
        self.certificate = signatures.certificate_in(identity)

    def sign(self, head: Head) -> str:
        """The signature of a head, hexadecimal."""
        return signatures.sign(self._identity, _message(head))


def _message(head: Head) -> bytes:
    return f"keyquorum audit head {head.number} {head.chain}".encode()


def hashed(previous: str, body: str) -> str:
    """The hash of a line with this body."""
    return hashlib.sha256(f"keyquorum audit line{previous}{body}".encode()).hexdigest()


def signed_by(certificate: str, head: Head, signature: str) -> bool:
    """Whether the key in a certificate (DER, hexadecimal) made this signature of a head."""
    return signatures.is_signed(certificate, _message(head), signature)


def chained(entries: Sequence[Json], last: Head, signer: Signer | None, begins: bool) -> tuple[bytes, Head, str]:
    """The lines of some entries after ``last``, the new head, and its signature. ``begins``: whether the first one names what it follows, and the certificate."""
    lines, signature = list[str](), ""
    for i, entry in enumerate(entries):
        named = {"previous": last.chain, "certificate": "" if signer is None else signer.certificate} if begins and not i else {}
        body = json.dumps({**entry, "number": last.number, **named})
        last = Head(last.number + 1, hashed(last.chain, body))
        lines.append(f"{body[:-1]}{_CHAIN}{last.chain}")
    if signer is not None and lines:
        signature = signer.sign(last)
        lines[-1] += f"{_SIGNATURE}{signature}"
    return "".join(f'{line}"}}\n' for line in lines).encode(), last, signature


@dataclass(frozen=True)
class Line:
    """A line with its place in the chain, as it says itself. ``body``: what its hash is of; ``entry``: its content."""

    entry: Json
    body: str
    chain: str
    signature: str

    @property
    def number(self) -> int:
        return int(self.entry["number"])


def read_line(data: bytes) -> Line | None:
    """A line of a chain; None for any other one, as those of earlier builds, or one that a full disk cut off."""
    try:
        text = data.decode()
        entry = json_loads(text)
        signature = entry.pop("signature", "")
        chain = entry.pop("chain")
        ending = f'{_CHAIN}{chain}{f"{_SIGNATURE}{signature}" if signature else ""}"}}\n'
        proper = is_count(entry["number"]) and is_hex(chain, 64) and (signature == "" or is_hex(signature, 128)) and text.endswith(ending)
        first = "previous" not in entry or (is_hex(entry["previous"], 64) and _is_certificate(entry["certificate"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Line(entry, text[: -len(ending)] + "}", chain, signature) if proper and first else None


def _is_certificate(value: object) -> bool:
    return isinstance(value, str) and len(value) % 2 == 0 and is_hex(value, len(value))


def write_head(path: Path, head: Head, signature: str) -> bytes:
    """The content of the file with the last signed line of the log at ``path``."""
    return json.dumps({"log": path.name, "number": head.number, "chain": head.chain, "signature": signature}).encode() + b"\n"


def read_head(log: Path) -> tuple[Head, str] | None:
    """The head in the file beside a log, and its signature; None where there is no whole one."""
    try:
        data = json_loads(log.with_name(log.name + HEAD).read_bytes())
        if not (is_count(data["number"]) and is_hex(data["chain"], 64) and (data["signature"] == "" or is_hex(data["signature"], 128))):
            return None
        return Head(data["number"], data["chain"]), data["signature"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def last_line(read: Callable[[int, int], bytes], size: int, signed: Callable[[Line], bool] | None = None) -> tuple[int, Line | None]:
    """The end of the last whole line in a file of ``size`` bytes, and its last line of a chain. ``read``: (position, bytes) to the bytes there. ``signed``: whether the party signed a line; then the last one of these that follows
    the line before it, and its end: as every write ends with one, what comes after was cut off, or is not of the party. Without such a line the whole file is kept."""
    end, found = 0, None
    for at, data in _backwards(read, size):
        end = end or at + len(data)
        line = read_line(data)
        if line is None:
            continue
        if found is not None and _follows(found[1], line.chain):
            return found
        if signed is None:
            return end, line
        found = (at + len(data), line) if signed(line) else None
        if found is not None and "previous" in line.entry and _follows(line, line.entry["previous"]):
            return found
    return found or (end, None)


def _follows(line: Line, chain: str) -> bool:
    """Whether a line is the one after that with this chain."""
    return line.entry.get("previous", chain) == chain and hashed(chain, line.body) == line.chain


def lines_from(read: Callable[[int, int], bytes], size: int, number: int, chain: str) -> Iterator[Line]:
    """Lines that have this number or a later one, the last one first, in a file of ``size`` bytes: of the chain that ends with ``chain``. Others are not of the party."""
    last: Line | None = None
    for _, data in _backwards(read, size):
        line = read_line(data)
        if line is None or not (line.chain == chain if last is None else _follows(last, line.chain)):
            continue
        if line.number < number:
            return
        last = line
        yield line


def _backwards(read: Callable[[int, int], bytes], size: int, step: int = 1 << 16) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file with their positions, the last one first. What follows the last line break is no line."""
    rest, at = b"", size
    while at:
        start = max(0, at - step)
        rest, at = read(start, at - start) + rest, start
        first, *lines = rest.splitlines(keepends=True)
        place = start + len(rest)
        for line in reversed(lines):
            place -= len(line)
            if line.endswith(b"\n"):
                yield place, line
        rest = first
    if rest.endswith(b"\n"):
        yield 0, rest


__all__ = [
    "HEAD",
    "NO_CHAIN",
    "Head",
    "Line",
    "Signer",
    "chained",
    "hashed",
    "last_line",
    "lines_from",
    "read_head",
    "read_line",
    "signed_by",
    "write_head",
]
