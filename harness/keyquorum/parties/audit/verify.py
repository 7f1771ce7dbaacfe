"""Verification of an audit log: its chain, its signatures, and that it is whole (:mod:`.chain`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.errors import AuditError, CommitteeError

from .chain import HEAD, Head, Line, hashed, read_head, read_line, signed_by


@dataclass
class Verified:
    """What was found in a log. ``first``: number of its first line; ``head``: where it ends; ``signed``: where the last signed line is; ``certificates``: SHA-256 of those in it; ``earlier``: lines before
    the chain begins, of an earlier build; ``torn``: lines that are no part of the chain, as a full disk leaves them: nothing was answered for one."""

    first: int = 0
    head: Head = field(default_factory=Head)
    signed: Head = field(default_factory=Head)
    certificates: list[str] = field(default_factory=list)
    earlier: int = 0
    torn: int = 0

    @property
    def unsigned(self) -> int:
        """Lines at the end that are not signed yet."""
        return self.head.number - self.signed.number


class Verification:
    """Follows the chain through the files of a log, the oldest first. ``fingerprint``: SHA-256 of the party's certificate (None: any, which is reported)."""

    def __init__(self, fingerprint: str | None = None) -> None:
        self._fingerprint, self._certificate = fingerprint, ""
        self.found = Verified()
        self._begun = False
        self._seen: dict[str, int] = {}
        """Of each line's chain: how many lines there were with it."""

    def add(self, path: Path) -> None:
        """Verifies one file. Raises AuditError, with file and line, for a line that was changed, removed or moved, and for a signature that is not the party's."""
        with path.open("rb") as file:
            for place, data in enumerate(file, 1):
                line = read_line(data)
                if line is not None:
                    self._follow(line, f"{path}: line {place}")
                elif self._begun:
                    self.found.torn += 1
                else:
                    self.found.earlier += 1

    def _follow(self, line: Line, where: str) -> None:
        found = self.found
        begins = "previous" in line.entry
        if not self._begun:
            if not begins:
                raise AuditError(
                    f"{where}: the log does not begin here: lines before it are missing; name the files that were moved away first, the oldest first"
                )
            if found.earlier and line.number:
                raise AuditError(
                    f"{where}: the chain goes on here after lines that are no part of it: a line before this one was changed, or lines before it are missing"
                )
            found.first, self._begun = line.number, True
            found.head = found.signed = Head(line.number, line.entry["previous"])
        if begins:
            self._take_certificate(line.entry["certificate"], where)
            previous = line.entry["previous"]
            if line.number < found.head.number and self._seen.get(previous) == line.number:
                # A party that was killed, and whose log was moved away before it started again, may not know its last lines.
                found.head = Head(line.number, previous)
            if line.number > found.head.number:
                raise AuditError(
                    f"{where}: lines {found.head.number} to {line.number - 1} before it are missing: they were removed, or lost with a disk"
                )
        if not self._links(line):
            raise AuditError(f"{where}: the chain breaks here: this line or one before it was changed, removed or moved")
        found.head = Head(line.number + 1, line.chain)
        self._seen[line.chain] = found.head.number
        if line.signature:
            if not self._is_signed(line):
                raise AuditError(f"{where}: its signature is not of the party's key: the log was made or changed by somebody else")
            found.signed = found.head

    def _links(self, line: Line) -> bool:
        last = self.found.head
        return line.number == last.number and line.chain == hashed(last.chain, line.body) and line.entry.get("previous", last.chain) == last.chain

    def _is_signed(self, line: Line) -> bool:
        return bool(self._certificate) and signed_by(self._certificate, self.found.head, line.signature)

    def _take_certificate(self, certificate: str, where: str) -> None:
        self._certificate = certificate
        if not certificate:
            if self._fingerprint is not None:
                raise AuditError(f"{where}: the log is not signed, and the party signs its log: it was made by somebody else")
            return
        fingerprint = hashlib.sha256(bytes.fromhex(certificate)).hexdigest()
        if self._fingerprint is not None and fingerprint != self._fingerprint:
            raise AuditError(
                f"{where}: signed under the certificate {fingerprint}, the party's is {self._fingerprint}: the log is another party's, or forged"
            )
        if fingerprint not in self.found.certificates:
            self.found.certificates.append(fingerprint)

    def reaches(self, head: Head, signature: str, source: str) -> None:
        """Raises AuditError unless the log has a head that the party signed; ``source``: where we have it from."""
        if signature and self._certificate and not signed_by(self._certificate, head, signature):
            raise AuditError(f"{source}: its signature is not of the party's key: see who wrote it")
        if head.number > self.found.head.number:
            missing = head.number - self.found.head.number
            raise AuditError(
                f"the log ends at line {self.found.head.number - 1}, {source} has line {head.number - 1}: {missing:,} lines at its end are missing"
            )
        if head.number > self.found.first and self._seen.get(head.chain) != head.number:
            raise AuditError(f"{source} has another line {head.number - 1} than the log: the log is another one, or was made anew")

    def require(self, chain: str) -> None:
        """Raises AuditError unless a line of the log has this chain, as an earlier verification printed it."""
        if chain not in self._seen:
            raise AuditError(f"no line has the chain {chain}, which the log had: lines were removed, or it is another log")


def verify(paths: Sequence[Path], fingerprint: str | None = None, known: Sequence[str] = ()) -> Verified:
    """Verifies a log in one or more files, the oldest first, and that it reaches the head in the file beside the last one. ``fingerprint``: of the party's certificate; ``known``: chains that the log had
    earlier. Raises AuditError."""
    verification = Verification(fingerprint)
    for path in paths:
        try:
            verification.add(path)
        except OSError as error:
            raise AuditError(f"{path}: cannot be read ({error.strerror}): name the files of an audit log") from None
    if verification.found.earlier and not verification.found.head.number:
        raise AuditError(
            f"{paths[-1]}: no line is of a chain: it is no audit log, one of an earlier build, or its chain was removed; name the party's log"
        )
    beside = read_head(paths[-1])
    if beside is not None:
        verification.reaches(*beside, str(paths[-1]) + HEAD)
    for chain in known:
        verification.require(chain)
    return verification.found


def party_fingerprint(folder: Path, party: int) -> str:
    """SHA-256 of a party's certificate, from committee.toml. Raises CommitteeError."""
    committee = Committee.load(folder)
    if not 0 <= party < committee.size:
        raise CommitteeError(f"there is no party {party} in {folder}: choose 0 to {committee.size - 1}")
    return committee.parties[party].fingerprint


def fingerprint_beside(log: Path) -> str | None:
    """The fingerprint of the party in whose folder a log is; None where it is elsewhere."""
    place = log.absolute().parent
    number = place.name.removeprefix("party-")
    if not (place.parent / "committee.toml").is_file() or place.name == number or not number.isdigit():
        return None
    return party_fingerprint(place.parent, int(number))


__all__ = ["Verification", "Verified", "fingerprint_beside", "party_fingerprint", "verify"]
