"""A receiver: asks every party of a served committee for its shares of the messages (with MACs: of pads, and for messages under them), and combines them. Nobody else learns the messages."""

from __future__ import annotations

import hashlib
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import make_identity
from keyquorum.model.committee import Committee, check_name, write_atomically
from keyquorum.model.errors import CommitteeError, KeyQuorumError, MovedError, ParameterError, PartyError, PolicyError
from keyquorum.model.plain import Json, json_loads
from keyquorum.model.subset import Subset
from keyquorum.schemes import encryption_of, recognise
from keyquorum.schemes.base import EXACT, AnyEncryption, Decrypted
from keyquorum.schemes.keys import KeyInfo
from keyquorum.sharing.receivers import received_messages

from .answers import Answers
from .connection import EpochChanging, NotConnected
from .copies import answer_bytes, summands_of
from .successor import moved
from .wire import certificate_of, client_context, connect, receive_message, send_message

ANSWER_LIMIT = 1 << 24
LONGEST_WAIT = 86400.0
"""Seconds for which a receiver may wait for parties that do not listen yet."""


class Refused(KeyQuorumError):
    """The committee refused a request; the text has the reason. Nothing was decrypted wrongly: send the request again, or remove the cause."""


def make_receiver(committee: Committee, name: str) -> tuple[Path, Path]:
    """Makes the identity of a receiver in the committee's folder, and admits it at the parties of this host. Returns the paths of identity and
    certificate. Parties on other hosts need the certificate in their folder ``receivers``."""
    check_name(name, "receiver name")
    identity = committee.folder / f"receiver-{name}.pem"
    if identity.exists():
        raise CommitteeError(f"{identity}: there is a receiver of this name already: choose another name")
    make_identity(str(identity), f"receiver-{name}")
    certificate = committee.folder / f"receiver-{name}.crt"
    text = certificate_of(identity).encode()
    write_atomically(certificate, text)
    for party in committee.local_parties():
        folder = committee.party_folder(party) / "receivers"
        folder.mkdir(mode=0o700, exist_ok=True)
        write_atomically(folder / certificate.name, text)
    return identity, certificate


def admit(committee: Committee, certificate: Path) -> tuple[str, list[int]]:
    """Admits a receiver, whose certificate was made elsewhere, at the parties of this host. Returns the SHA-256 of the certificate, and the parties.

    Raises CommitteeError where the file is no certificate, or another one is admitted under the same name."""
    parties = committee.local_parties()
    if not parties:
        raise CommitteeError(f"{committee.folder}: no party of the committee is on this host: admit the receiver on the hosts of the parties")
    if not certificate.is_file():
        raise CommitteeError(f"{certificate}: no such file")
    text = certificate_of(certificate)
    try:
        ssl.create_default_context(cadata=text)
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()
    except (ssl.SSLError, ValueError):
        raise CommitteeError(f"{certificate}: not a certificate: copy the receiver's .crt again") from None
    for party in committee.parties:
        if digest == party.fingerprint:
            raise CommitteeError(
                f"{certificate}: the certificate of party {party.index}, which is not a receiver: keyquorum receiver makes an identity for one"
            )
    name = check_name(f"{certificate.stem}.crt", "receiver name")
    targets = [committee.party_folder(party) / "receivers" / name for party in parties]
    for target in targets:
        if target.exists() and target.read_text() != text:
            raise CommitteeError(f"{target}: another receiver of this name is admitted: remove that file first, or rename {certificate}")
    for target in targets:
        target.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(target, text.encode())
    return digest, parties


def local_addresses(committee: Committee, server: str = "keyquorum serve") -> list[tuple[str, int]]:
    """Addresses (host, port) at which the parties of this host serve receivers, in the order of parties. Raises CommitteeError, which names ``server``, the command."""
    return [local_address(committee, party, server) for party in _members(committee)]


def local_address(committee: Committee, party: int, server: str = "keyquorum serve") -> tuple[str, int]:
    """The address of one of them."""
    path = committee.party_folder(party) / "serve.json"
    if not path.exists():
        raise CommitteeError(
            f"{path}: party {committee.number_of(party)} does not serve on this host: start {server} there, or name all addresses, HOST:PORT in the order of parties"
        )
    try:
        data = json_loads(path.read_text())
        return str(data["host"]), int(data["port"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise CommitteeError(f"{path}: damaged: start {server} of party {committee.number_of(party)} again, which writes it") from None


def _members(committee: Committee) -> range:
    """The parties that round: see ``RoundingGroup.of``."""
    everyone = committee.ring_protocol is not None or committee.verifies_products
    return range(committee.size if everyone else committee.threshold + 1)


class RefusedByPolicy(Refused):
    """A party's policy does not allow the request; the text names the limit, and when it is free again. Nothing was computed."""


class RefusedUnconnected(Refused):
    """The parties are not connected to one another; the text names the one that is away. Nothing was computed: the same request may be sent again."""


class SaysMoved(Refused):
    """A party says that the committee passed the key on. ``proof``: what it shows (:func:`.moved`)."""

    def __init__(self, text: str, party: int, proof: bytes) -> None:
        super().__init__(text)
        self.party, self.proof = party, proof


def refusal_of(party: int, head: Json, body: bytes | bytearray) -> Refused:
    """The error of a party's answer that is none."""
    kind, text = str(head.get("type")), f"party {party}: {head.get('error', 'no reason given')}"
    return SaysMoved(text, party, bytes(body)) if kind == MovedError.__name__ else REFUSALS.get(kind, Refused)(text)


def raise_moved(committee: Committee, errors: Sequence[BaseException | None]) -> None:
    """Raises :class:`.Moved` if parties among those that refused show that the keys moved, and EpochError if they only say so. Returns if none says so."""
    shown = {f"party {error.party}": error.proof for error in errors if isinstance(error, SaysMoved)}
    if shown:
        raise moved(committee, shown)


REFUSALS: dict[str, type[Refused]] = {
    PolicyError.__name__: RefusedByPolicy,
    NotConnected.__name__: RefusedUnconnected,
    EpochChanging.__name__: RefusedUnconnected,
}
"""Errors for receivers by the type that a party names; :class:`Refused` for all others."""
MOVED_SECONDS = 3.0
"""How long further parties are heard after one said that the keys moved."""
AGAIN_SECONDS = 0.2
"""Pause until a request is sent again to parties that are not connected."""


class Channels:
    """Channels of a receiver to all parties that serve. An object sends one request at a time; several objects may share an identity."""

    def __init__(
        self, committee: Committee, identity: Path, places: list[tuple[str, int]] | None = None, timeout: float = 90.0, wait: float = 0.0,
        server: str = "keyquorum serve",
    ) -> None:  # fmt: skip
        """``places``: addresses of the parties that round, in their order (default: those of this host). ``wait``: seconds to wait for parties that
        do not listen yet, or are not connected to one another. ``server``: the command that serves, which errors name."""
        self._committee, self._context, self._timeout, self._wait = committee, client_context(identity), timeout, wait
        self._addresses, self._server = places, server
        self._channels: list[ssl.SSLSocket] = []
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes the channels."""
        for channel in self._channels:
            channel.close()
        self._channels = []

    def ask(self, bodies: Sequence[bytes], head: Mapping[str, object]) -> list[bytearray]:
        """The answers of all parties to one request: a body for each, with the same head and a fresh id. Raises :class:`Refused` or PartyError."""
        until = time.monotonic() + self._wait
        while True:
            try:
                return self._ask_once(bodies, head)
            except RefusedUnconnected:
                if time.monotonic() >= until:
                    raise
            time.sleep(AGAIN_SECONDS)

    def _ask_once(self, bodies: Sequence[bytes], head: Mapping[str, object]) -> list[bytearray]:
        with self._lock:
            try:
                self._connect()
                return [body for _, body in self._ask(bodies, head)]
            except BaseException:
                self.close()
                raise

    def _connect(self) -> None:
        if self._channels:
            return
        until = time.monotonic() + self._wait
        if self._addresses is not None and len(self._addresses) != len(_members(self._committee)):
            raise CommitteeError(f"{len(self._addresses)} addresses for {len(_members(self._committee))} parties: name each once, in their order")
        for party in _members(self._committee):
            try:
                host, port = self._listening(party, until)
                pinned = self._committee.parties[party].fingerprint
                self._channels.append(connect(self._context, self._committee.number_of(party), host, port, pinned, self._timeout, self._server))
            except (PartyError, CommitteeError):
                self._raise_if_moved()
                raise

    def _raise_if_moved(self) -> None:
        """Asks the parties that are there, while another one is not, whether the keys moved: a request without a body is one that others refuse at once."""
        said, places = list[BaseException](), self._addresses
        for party in _members(self._committee):
            number, pinned = self._committee.number_of(party), self._committee.parties[party].fingerprint
            with suppress(OSError, ConnectionError, PartyError, CommitteeError):
                place = places[party] if places is not None else local_address(self._committee, party, self._server)
                with connect(self._context, number, *place, pinned, MOVED_SECONDS, self._server) as channel:
                    answer = exchanged(channel, {"id": secrets.token_hex(16)}, b"")
                if answer is not None and answer[0].get("status") != "ok":
                    said.append(refusal_of(number, *answer))
        raise_moved(self._committee, said)

    def _listening(self, party: int, until: float) -> tuple[str, int]:
        """The address of a party when a process listens there, or at the time ``until`` of the monotonic clock. Addresses of this host are read again each
        time: a party that starts anew may have another port."""
        while True:
            last = time.monotonic() >= until
            try:
                place = (self._addresses or local_addresses(self._committee, self._server))[party]
                if last or _listens(*place):
                    return place
            except CommitteeError:
                if last:
                    raise
            time.sleep(0.1)

    def _ask(self, bodies: Sequence[bytes], more: Mapping[str, object]) -> list[tuple[Json, bytearray]]:
        head = {"id": secrets.token_hex(16), **more}

        def one(item: tuple[int, ssl.SSLSocket]) -> tuple[Json, bytearray]:
            index, channel = item
            party = self._committee.number_of(index)
            try:
                answer = exchanged(channel, head, bodies[index])
            except (OSError, ConnectionError) as error:
                raise PartyError(f"party {party}: {error}: nothing was learned, send the request again") from None
            if answer is None:
                raise PartyError(f"party {party} closed the channel: nothing was learned, send the request again")
            if answer[0].get("status") != "ok":
                raise refusal_of(party, *answer)
            return answer

        with ThreadPoolExecutor(len(self._channels)) as pool:
            asked = [pool.submit(one, item) for item in enumerate(self._channels)]
            finished, _ = wait(asked, return_when=FIRST_EXCEPTION)
            if any(isinstance(f.exception(), SaysMoved) for f in finished):
                finished, _ = wait(asked, MOVED_SECONDS)
            failed = [f for f in asked if f in finished and f.exception() is not None]
            if failed:  # without the shares of one party the others' shares are useless
                for channel in self._channels:
                    with suppress(OSError):
                        channel.shutdown(socket.SHUT_RDWR)
                raise_moved(self._committee, [f.exception() for f in failed])
                failed.sort(key=lambda f: not isinstance(f.exception(), RefusedByPolicy))  # that reason, if one party gives it
                failed[0].result()
            return [f.result() for f in asked]


class Receiver(Channels):
    """A receiver of messages."""

    def decrypt(self, data: bytes, info: KeyInfo | None = None) -> Decrypted:
        """The messages of a ciphertext file. ``info``: metadata of its key, which may be left out where the file names its key (LWE).

        A file of more ciphertexts than a request may have is sent in parts, one after another; if one part is refused, the whole file is. BFV and BGV
        ciphertexts are at the last level (:meth:`.Scheme.request_body`). Raises :class:`Refused` or PartyError; where parties contradict one another :class:`.DifferentCopies`,
        :class:`.WrongDegree`, or with MACs :class:`.DifferentAnswers` and :class:`.WrongPads`."""
        if info is None:
            named = recognise(data)
            if named is None:
                raise ParameterError("the ciphertext does not name its key: name the key")
            info = named.key_of(data, "the ciphertexts")
        scheme = encryption_of(info)
        ciphertext = scheme.parse(info, data, "the ciphertext", EXACT)
        scheme.check_decryption(info, [ciphertext], 0, EXACT)
        head: dict[str, object] = {} if scheme.names_key else {"key": info.key_id}
        parties = self._named()
        if parties is not None:
            head["parties"] = parties
        words = [self._words(scheme, info, part, count, head) for part, count in scheme.request_parts(info, data, ciphertext)]
        return scheme.plaintexts(info, [ciphertext], np.concatenate(words))[0]

    def _named(self) -> list[int] | str | None:
        """What requests name under ``parties``."""
        return list(self._committee.numbers) if isinstance(self._committee, Subset) else None

    def _words(self, scheme: AnyEncryption, info: KeyInfo, data: bytes, count: int, head: dict[str, object]) -> NDArray[np.uint64]:
        """The rounded phases of one request. Raises PartyError where parties contradict one another, or their answers are not right."""
        if Answers.of(self._committee) is not Answers.PADDED:
            modulus = scheme.message_modulus(info.parameters, self._committee)
            return scheme.combine(info.parameters, self._shares(data, count, head, modulus), modulus)
        padded = scheme.padded(info.parameters)
        answers = self.ask([data] * len(_members(self._committee)), head)
        return scheme.words_of(info.parameters, received_messages(self._committee, padded, answers, count))

    def _shares(self, data: bytes, count: int, head: dict[str, object], modulus: int) -> list[NDArray[np.uint64]]:
        """Summands of ``count`` messages, of every party, shape [1, count]. Raises :class:`.DifferentCopies` or :class:`.WrongDegree` where parties contradict one another."""
        return checked_summands(self._committee, self.ask([data] * len(_members(self._committee)), head), count, modulus)


def checked_summands(committee: Committee, answers: Sequence[bytes | bytearray], count: int, modulus: int) -> list[NDArray[np.uint64]]:
    """See :func:`.summands_of`, of answers of any length. Raises PartyError for another one."""
    for party, body in enumerate(answers):
        if len(body) != answer_bytes(committee, count):
            raise PartyError(f"party {committee.number_of(party)} sent {len(body)} bytes for {count} messages: run the same version everywhere")
    return summands_of(committee, answers, count, modulus)


def exchanged(channel: ssl.SSLSocket, head: Json, body: bytes) -> tuple[Json, bytearray] | None:
    """The answer to one message. A party that does not take all of it has sent its reason, which is read then."""
    try:
        send_message(channel, head, body)
    except OSError:
        with suppress(OSError, ConnectionError):
            answer = receive_message(channel, ANSWER_LIMIT)
            if answer is not None:
                return answer
        raise
    return receive_message(channel, ANSWER_LIMIT)


def _listens(host: str, port: int) -> bool:
    """Whether a process listens at the address."""
    try:
        socket.create_connection((host, port), 1.0).close()
    except (OSError, OverflowError, UnicodeError):
        return False
    return True


def fetch(
    committee: Committee, identity: Path, data: bytes, places: list[tuple[str, int]] | None = None, wait: float = 0.0, info: KeyInfo | None = None
) -> Decrypted:
    """One request: see :meth:`Receiver.decrypt`."""
    receiver = Receiver(committee, identity, places, wait=wait)
    try:
        return receiver.decrypt(data, info)
    finally:
        receiver.close()
