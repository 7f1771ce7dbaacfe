"""TLS certificates of MP-SPDZ's parties, made anew for every working folder.

MP-SPDZ trusts the certificates in ``Player-Data``: ``P<i>.pem`` with the common name ``P<i>``, found by OpenSSL through a link
named after a hash of that name. Its own key is ``P<i>.key``. It accepts a peer as party i if OpenSSL finds a chain to such a
certificate, and the peer's certificate has the host name ``P<i>``: a DNS name if it has any, else the common name. So a malicious
certificate could do more than identify its owner: with further names its owner could impersonate other parties, and with the rights of an
authority it could certify keys for them. OpenSSL takes X.509 certificates of version 1 for authorities as well.

So all certificates of a job have one form (:func:`_form`), and a certificate of another party is accepted only if it has that form,
byte by byte: version 3, Ed25519, subject and issuer are the common name ``P<i>`` alone, the only extension is CA:FALSE, and
its own key signed it. There is no keyUsage: with a keyUsage that lacks keyCertSign, OpenSSL 1.1.1 does not take a
certificate for self-signed and finds no chain to it. CA:FALSE is enough in every release.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path

from keyquorum import _engine
from keyquorum.model.errors import PartyError

from .workdir import wipe_file, write_secret

_MARK = "-----BEGIN CERTIFICATE-----"
_END = "-----END CERTIFICATE-----"
_OURS = bytes.fromhex("3051020101300506032b657004220420")
_PLAIN = bytes.fromhex("302e020100300506032b657004220420")
"""The bytes before the 32 bytes of an Ed25519 key in PKCS #8, with the public key after them (RFC 5958) and without it.
Older releases of OpenSSL 3 read only the second form."""
_COMMON_NAME = bytes.fromhex("0603550403")
"""DER of the object identifier 2.5.4.3."""
_VERSION_3 = bytes.fromhex("a003020102")
_ED25519 = bytes.fromhex("300506032b6570")
_PUBLIC_KEY = bytes.fromhex("302a300506032b6570032100")
"""The bytes before the 32 bytes of an Ed25519 key in a certificate."""
_VALIDITY = bytes.fromhex("3020170d") + b"750101000000Z" + bytes.fromhex("180f") + b"40960101000000Z"
"""Unlimited validity: the keys of a job are deleted when it ends."""
_NO_AUTHORITY = bytes.fromhex("a310300e300c0603551d130101ff04023000")
"""The extension basicConstraints, critical, CA:FALSE."""


def _der(tag: int, *parts: bytes) -> bytes:
    """A value of DER of less than 65536 bytes."""
    content = b"".join(parts)
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else bytes([0x82, *divmod(size, 256)])
    return bytes([tag]) + length + content


def subject_hash(common_name: str) -> str:
    """The name under which OpenSSL looks for a certificate with only this common name: SHA-1 of its canonical form, the
    first four bytes as a little-endian number."""
    text = " ".join(common_name.lower().split()).encode()
    name = _der(0x31, _der(0x30, _COMMON_NAME, _der(0x0C, text)))
    return hashlib.sha1(name).digest()[3::-1].hex()


def _form(party: int, serial: bytes, key: bytes) -> bytes:
    """The signed part of the certificate of a party, with this serial number and Ed25519 key."""
    name = _der(0x30, _der(0x31, _der(0x30, _COMMON_NAME, _der(0x0C, f"P{party}".encode()))))
    return _der(0x30, _VERSION_3, _der(0x02, serial), _ED25519, name, _VALIDITY, name, _PUBLIC_KEY, key, _NO_AUTHORITY)


def make_certificate(folder: Path, party: int) -> str:
    """Makes key (``P<i>.key``, 0600) and certificate of a party in ``folder``; returns the certificate (PEM). The folder's owner wipes
    the key."""
    both = folder / f".P{party}.identity"
    try:
        _engine.make_identity(str(both), f"P{party}")
        text = both.read_text()
    finally:
        wipe_file(both)
    at = text.index(_MARK)
    certificate = text[at:]
    trust_certificate(folder, party, certificate)
    write_secret(folder / f"P{party}.key", _plain_key(text[:at]).encode())
    return certificate


def _plain_key(pem: str) -> str:
    """A private key in the form that every release of OpenSSL reads."""
    der = base64.b64decode("".join(line for line in pem.splitlines() if "-----" not in line))
    if not der.startswith(_OURS):
        return pem
    body = base64.b64encode(_PLAIN + der[len(_OURS) : len(_OURS) + 32]).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"


def trust_certificate(folder: Path, party: int, certificate: str) -> None:
    """Places the certificate of a party in ``folder``, so that MP-SPDZ accepts exactly the owner of its key as that party.

    Raises :class:`PartyError` if it has not the form of a certificate of this party and this job (see the module)."""
    der = _checked(party, certificate)
    body = base64.b64encode(der).decode()
    lines = [_MARK, *(body[i : i + 64] for i in range(0, len(body), 64)), _END, ""]
    (folder / f"P{party}.pem").write_text("\n".join(lines))
    link = folder / f"{subject_hash(f'P{party}')}.0"
    link.unlink(missing_ok=True)
    link.symlink_to(f"P{party}.pem")


def _checked(party: int, certificate: str) -> bytes:
    """The DER of a certificate. Raises PartyError unless it equals, byte by byte, the form with its serial number, key and signature."""
    body = certificate.strip()
    if not body.startswith(_MARK) or not body.endswith(_END) or body.count(_MARK) != 1 or len(body) > 1 << 14:
        raise PartyError(f"party {party} sent something that is not one certificate: run the same version everywhere")
    try:
        der = base64.b64decode("".join(body[len(_MARK) : -len(_END)].split()), validate=True)
    except (binascii.Error, ValueError):
        raise PartyError(f"party {party} sent a certificate that is no base64: run the same version everywhere") from None
    start, at = der.find(_VERSION_3 + b"\x02"), der.find(_PUBLIC_KEY) + len(_PUBLIC_KEY)
    number = start + len(_VERSION_3) + 1
    serial = der[number + 1 : number + 1 + der[number]] if start >= 0 and number < len(der) else b""
    signed, signature = _form(party, serial[:20], der[at : at + 32]), der[-64:]
    if der != _der(0x30, signed, _ED25519, _der(0x03, b"\0", signature)):
        raise PartyError(
            f"party {party} sent a certificate that is not of the form of this job's (Ed25519, self-signed, the name P{party} alone, no authority): "
            "it could pass for other parties: run the same version everywhere"
        )
    if not _engine.verify_ed25519(der[at : at + 32], signed, signature):
        raise PartyError(f"party {party} sent a certificate that its own key did not sign: run the same version everywhere")
    return der
