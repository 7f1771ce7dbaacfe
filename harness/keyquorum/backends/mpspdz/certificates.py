"""TLS certificates of MP-SPDZ's parties, made anew for every working folder.

MP-SPDZ trusts what lies in ``Player-Data``: ``P<i>.pem`` with the common name ``P<i>``, found by OpenSSL through a link
named after a hash of that name. Its own key is ``P<i>.key``.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

from keyquorum import _engine
from keyquorum.model.errors import PartyError

_MARK = "-----BEGIN CERTIFICATE-----"
_END = "-----END CERTIFICATE-----"
_OURS = bytes.fromhex("3051020101300506032b657004220420")
_PLAIN = bytes.fromhex("302e020100300506032b657004220420")
"""What comes before the 32 bytes of an Ed25519 key, in PKCS #8 with the public key behind them (RFC 5958), and without
it: older releases of OpenSSL 3 read the second alone."""
_COMMON_NAME = bytes.fromhex("0603550403")
"""DER of the object identifier 2.5.4.3."""


def subject_hash(common_name: str) -> str:
    """The name under which OpenSSL looks for a certificate with only this common name: SHA-1 of its canonical form, the
    first four bytes as a little-endian number."""
    text = " ".join(common_name.lower().split()).encode()
    pair = _COMMON_NAME + bytes([0x0C, len(text)]) + text
    entry = bytes([0x30, len(pair)]) + pair
    return hashlib.sha1(bytes([0x31, len(entry)]) + entry).digest()[3::-1].hex()


def make_certificate(folder: Path, party: int) -> str:
    """Makes key (``P<i>.key``, 0600) and certificate of a party in ``folder``; returns the certificate (PEM)."""
    both = folder / f".P{party}.identity"
    _engine.make_identity(str(both), f"P{party}")
    text = both.read_text()
    both.unlink()
    at = text.index(_MARK)
    descriptor = os.open(folder / f"P{party}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(_plain_key(text[:at]))
    certificate = text[at:]
    trust_certificate(folder, party, certificate)
    return certificate


def _plain_key(pem: str) -> str:
    """A key as every release of OpenSSL reads it."""
    der = base64.b64decode("".join(line for line in pem.splitlines() if "-----" not in line))
    if not der.startswith(_OURS):
        return pem
    body = base64.b64encode(_PLAIN + der[len(_OURS) : len(_OURS) + 32]).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"


def trust_certificate(folder: Path, party: int, certificate: str) -> None:
    """Places the certificate of a party in ``folder``, so that MP-SPDZ accepts whoever has its key as that party."""
    body = certificate.strip()
    if not body.startswith(_MARK) or not body.endswith(_END) or body.count(_MARK) != 1 or len(body) > 1 << 14:
        raise PartyError(f"party {party} sent something that is not one certificate")
    (folder / f"P{party}.pem").write_text(body + "\n")
    link = folder / f"{subject_hash(f'P{party}')}.0"
    link.unlink(missing_ok=True)
    link.symlink_to(f"P{party}.pem")
