"""Signatures under the Ed25519 keys of identities, and their check by the certificates that committee files know by fingerprint.

The same key signs handshakes of TLS, whose messages begin with 64 spaces. A message here begins with the name of its purpose, so neither is one of the other."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from keyquorum import _engine

_KEY = bytes.fromhex("302a300506032b6570032100")
"""What stands before an Ed25519 key in the DER of a certificate (RFC 8410)."""


def certificate_in(identity: Path) -> str:
    """The certificate (DER, hexadecimal) in the file of an identity."""
    text = identity.read_text()
    pem = text[text.index("-----BEGIN CERTIFICATE-----") :]
    return base64.b64decode("".join(line for line in pem.splitlines() if "-----" not in line)).hex()


def fingerprint_of(certificate: str) -> str:
    """SHA-256 of a certificate, as committee files list it."""
    return hashlib.sha256(bytes.fromhex(certificate)).hexdigest()


def sign(identity: Path, message: bytes) -> str:
    """The signature of a message under the key of an identity, 128 hexadecimal digits."""
    return _engine.sign_with_identity(str(identity), message).hex()


def is_signed(certificate: str, message: bytes, signature: str) -> bool:
    """Whether the key in a certificate (DER, hexadecimal) made this signature of a message. The certificate itself proves nothing: compare its fingerprint."""
    der = bytes.fromhex(certificate)
    at = der.find(_KEY) + len(_KEY)
    return _KEY in der and _engine.verify_ed25519(der[at : at + 32], message, bytes.fromhex(signature))
