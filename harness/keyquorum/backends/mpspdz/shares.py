"""MP-SPDZ's share files, ``Persistence/Transactions-P<i>.data``, as :class:`ShareVector` and back.

A file of MP-SPDZ is a 64-bit length, a header of that length, and the shares one after another: all components of element 0, then
those of element 1. A :class:`ShareVector` has component after component. The header names the sharing and the domain; with authenticated
sharing it ends with the party's share of the MAC key. Words are little-endian; over a field they are in Montgomery
form, x * 2^64 mod q.

=============  ============================  =======================================  ======================
protocol       name in the header            domain in the header                     components
=============  ============================  =======================================  ======================
emulate        Z2^k                          u32 k                                    the value itself
ring           replicated Z2^k               u32 k                                    s_i, s_(i-1)
rep-field      replicated gfp                0, u32 bytes, big-endian prime, u32 1    s_i, s_(i-1)
mal-rep-ring   malicious replicated Z2^k     u32 k                                    s_i, s_(i-1)
mal-rep-field  malicious replicated gfp      as over other fields                     s_i, s_(i-1)
shamir         Shamir gfp                    as over other fields                     f(i + 1)
mal-shamir     Shamir gfp                    as over other fields                     f(i + 1)
semi2k         Z2^k                          u32 k                                    s_i
semi           gfp                           as over other fields                     s_i
spdz2k         SPDZ2^(k+64)                  u32 k + 64                               s_i, MAC (2 words each)
mascot         SPDZ gfp                      as over other fields                     s_i, MAC
=============  ============================  =======================================  ======================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.dsl import ShareVector
from keyquorum.model.domains import Domain
from keyquorum.model.errors import ParameterError, ProgramError

from .checkout import PROTOCOLS, on_mp_spdz, protocol_named

Words = NDArray[np.uint64]
WORD = 1 << 64
SPDZ2K_SECURITY = 64
"""Bits of a MAC key of spdz2k, MP-SPDZ's default: elements have k + 64 bits."""


def word_domain(text: str) -> Domain:
    """The domain of a text. Raises ParameterError for domains whose elements do not fit 64-bit words."""
    domain = Domain.parse(text)
    if domain.bits > (64 if domain.prime is None else 62):
        raise ParameterError(f"domain {text!r}: give Z2^k up to 64 bits, or F_q with a prime of up to 62 bits")
    return domain


def header(protocol: str, domain: Domain) -> bytes:
    """The header of a share file, without the MAC key."""
    if protocol not in PROTOCOLS:
        raise ParameterError(f"{protocol} has no share files on MP-SPDZ: choose one of {', '.join(PROTOCOLS)}")
    there = on_mp_spdz(protocol_named(protocol))
    if (domain.prime is not None) != there.field:
        wanted = "F_q" if there.field else "Z2^k"
        raise ParameterError(f"{protocol} on MP-SPDZ has the domain {wanted}, not that of {domain.modulus}")
    name = there.shares.format(k=domain.bits).encode()
    if domain.prime is None:
        bits = domain.bits + there.extra_bits
        return name + bits.to_bytes(4, "little")
    prime = domain.prime.to_bytes((domain.bits + 7) // 8, "big")
    return name + b"\0" + len(prime).to_bytes(4, "little") + prime + (1).to_bytes(4, "little")


def _element_words(protocol: str) -> int:
    return 1 + -(-on_mp_spdz(protocol_named(protocol)).extra_bits // 64)


def _parts(protocol: str) -> int:
    """Components of a share, which in MP-SPDZ do not depend on the number of parties."""
    entry = protocol_named(protocol)
    return entry.parts(entry.least_parties, entry.most_corruptions(entry.least_parties))


def share_form(protocol: str) -> tuple[int, int]:
    """Components of a share, and bytes of a component, of protocols in domains of up to 64 bits."""
    return _parts(protocol), 8 * _element_words(protocol)


def _mac_bytes(protocol: str) -> int:
    """Bytes of the MAC key share in a header: an element of spdz2k, whose upper half is zero, or of the field."""
    return 8 * _element_words(protocol) if protocol_named(protocol).macs else 0


def _montgomery(words: Words, domain: Domain, into: bool) -> Words:
    """Multiplies by 2^64 modulo the prime (``into``), or by its inverse; over a ring the words stay."""
    if domain.prime is None:
        return words
    factor = WORD % domain.prime if into else pow(WORD, -1, domain.prime)
    try:
        return mulmod_scalar(np.ascontiguousarray(words), factor, domain.prime)
    except Exception as error:
        raise ProgramError(f"a share file of MP-SPDZ holds numbers that are not below {domain.prime}") from error


def encode(protocol: str, domain: Domain, shares: ShareVector) -> bytes:
    """The bytes of MP-SPDZ's share file. An authenticated protocol needs ``shares.mac_key``."""
    head = header(protocol, domain)
    if protocol_named(protocol).macs:
        if shares.mac_key is None:
            raise ProgramError(f"shares of {protocol} without a MAC key: they were not made by {protocol}")
        key: bytes = _montgomery(shares.mac_key, domain, True).astype("<u8").tobytes()
        head += key.ljust(_mac_bytes(protocol), b"\0")
    if shares.exists:
        shares.bind(protocol, domain)
    parts, width = _parts(protocol), _element_words(protocol)
    words = shares.words if shares.exists else np.empty((parts, 0), dtype=np.uint64)
    if words.shape[0] != parts or (shares.exists and shares.element_words != width):
        raise ProgramError(
            f"shares of {words.shape[0]} parts of {8 * shares.element_words} bytes are not of {protocol}, which has {parts} of {8 * width}"
        )
    count = words.shape[1] // width
    ordered = words.reshape(parts, count, width).transpose(1, 0, 2).copy().reshape(-1)  # a copy, wiped below
    data: bytes = _montgomery(ordered, domain, True).astype("<u8").tobytes()
    ordered.fill(0)
    return len(head).to_bytes(8, "little") + head + data


def decode(protocol: str, domain: Domain, data: bytes) -> ShareVector:
    """The shares in the bytes of a share file. Raises ProgramError for another protocol or domain, and for truncated files."""
    head = header(protocol, domain)
    mac_bytes = _mac_bytes(protocol)
    size = int.from_bytes(data[:8], "little")
    found = data[8 : 8 + len(head)]
    if len(data) < 8 + size or size != len(head) + mac_bytes or found != head:
        raise ProgramError(
            f"not a share file of {protocol} over {domain.modulus} (its header is {found[:40]!r}): "
            "shares are read by the protocol and in the domain that wrote them"
        )
    parts, width = _parts(protocol), _element_words(protocol)
    if (len(data) - 8 - size) % (8 * parts * width):
        raise ProgramError(f"a share file of {protocol} ends inside an element: it was written by a run that failed")
    words = _montgomery(np.frombuffer(data, dtype="<u8", offset=8 + size).astype(np.uint64), domain, False)
    count = words.size // (parts * width)
    grouped = words.reshape(count, parts, width).transpose(1, 0, 2).reshape(parts, count * width)
    shares = ShareVector.from_words(grouped.copy(), width)
    shares.bind(protocol, domain)
    if mac_bytes:
        key = np.frombuffer(data, dtype="<u8", count=1, offset=8 + len(head)).astype(np.uint64)
        shares.mac_key = _montgomery(key, domain, False)
    return shares


def mac_key_path(protocol: str, domain: Domain, parties: int, party: int) -> str:
    """The path of a party's MAC key file, below ``Player-Data``."""
    kind, share = ("p", "p") if domain.prime is not None else (f"Z{domain.bits},{SPDZ2K_SECURITY}", "R")
    return f"{parties}-{kind}-{domain.bits}/Player-MAC-Keys-{share}-P{party}"


def mac_key_text(parties: int, key: Words) -> bytes:
    """The file of a MAC key: the number of parties, and the key in decimal."""
    return f"{parties}\n{int(key[0])}".encode()
