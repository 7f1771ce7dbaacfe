"""The encrypted CNN: its packing against the network in clear, SEAL's evaluation against both, and the whole application."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.cnn import network, packing
from keyquorum.cnn.counts import counts
from keyquorum.cnn.encrypted import NetworkEvaluator
from keyquorum.cnn.model import FEATURES, Model, ModelError, patches, split
from keyquorum.cnn.noise import estimated
from keyquorum.cnn.run import NOISE_BITS, PARAMETERS, Classification, held_out_digits, load_model
from keyquorum.cnn.weights import EncryptedWeights, encrypt_weights, operands
from keyquorum.fhe import seal
from keyquorum.model.errors import ParameterError
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent.parent


def random_model(rng: np.random.Generator) -> Model:
    """Any weights."""
    shapes = [(5, 25), (5,), (64, FEATURES), (64,), (10, 64), (10,)]
    return Model(*(rng.normal(0, 0.2, shape) for shape in shapes))


class ClearArithmetic:
    """The circuit on clear slots."""

    def products(self, inputs: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> np.ndarray:
        return sum((x * w for x, w in zip(inputs, weights, strict=True)), np.zeros(packing.SLOTS))

    def biased(self, ciphertext: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return ciphertext + bias

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a + b

    def square(self, ciphertext: np.ndarray) -> np.ndarray:
        return ciphertext**2

    def rescaled(self, ciphertext: np.ndarray) -> np.ndarray:
        return ciphertext

    def rotated(self, ciphertext: np.ndarray, step: int) -> np.ndarray:
        return np.roll(ciphertext, -step)


def test_the_convolution_is_a_convolution() -> None:
    """Against the definition, pixel by pixel."""
    rng = np.random.default_rng(1)
    image, kernel = rng.normal(size=(1, 28, 28)), rng.normal(size=(5, 5))
    got = (patches(image)[0] @ kernel.ravel()).reshape(12, 12)
    for i in range(12):
        for j in range(12):
            want = sum(kernel[a, b] * image[0, 2 * i + a, 2 * j + b] for a in range(5) for b in range(5))
            assert got[i, j] == pytest.approx(want)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_packed_arithmetic_is_the_network(count: int) -> None:
    """The slots after each step, computed in clear with the rotations that the encrypted network makes."""
    rng = np.random.default_rng(count)
    model, images = random_model(rng), rng.uniform(0, 1, (count, 28, 28))
    layers = operands(api.load_parameters(PARAMETERS), model).mapped(lambda w: w.values)
    slots = network.logits(ClearArithmetic(), layers, packing.pack_images(images))
    np.testing.assert_allclose(packing.unpack_logits(slots, count), model.logits(images), rtol=1e-9)


COUNT = 7
"""Digits under a key of SEAL's own, which the tests may know."""


@dataclass
class Stock:
    """The slots of the logits under SEAL's own key, with the weights in clear and encrypted, and the encrypted weights."""

    slots: dict[bool, np.ndarray]
    scales: dict[bool, float]
    weights: EncryptedWeights


@pytest.fixture(scope="module")
def stock() -> Stock:
    library, parameters = seal.require_seal(), api.load_parameters(PARAMETERS)
    context = seal.context(parameters)
    generator, galois = library.KeyGenerator(context), library.GaloisKeys()
    generator.create_galois_keys(list(packing.STEPS), galois)
    public, relin = generator.create_public_key().to_string(), generator.create_relin_keys().to_string()
    model, (images, _) = load_model(), held_out_digits(COUNT)
    weights = encrypt_weights(parameters, public, model)
    inputs = [seal.encrypt(parameters, public, v) for v in packing.pack_images(images)]
    decryptor, encoder, made = library.Decryptor(context, generator.secret_key()), library.CKKSEncoder(context), Stock({}, {}, weights)
    for encrypted in (False, True):
        result = NetworkEvaluator(parameters, weights if encrypted else model, relin, galois.to_string()).logits(inputs)
        ciphertext = context.from_cipher_str(result)
        made.slots[encrypted] = np.asarray(encoder.decode_complex(decryptor.decrypt(ciphertext)))
        made.scales[encrypted] = ciphertext.scale()
    return made


@pytest.mark.parametrize("encrypted", [False, True], ids=["clear weights", "encrypted weights"])
def test_seal_computes_the_same_and_the_noise_is_within_the_policy(stock: Stock, encrypted: bool) -> None:
    parameters, model, (images, _) = api.load_parameters(PARAMETERS), load_model(), held_out_digits(COUNT)
    slots = stock.slots[encrypted]
    assert stock.scales[encrypted] == pytest.approx(2.0**50)
    logits = packing.unpack_logits(slots.real, COUNT)
    assert np.abs(logits - model.logits(images)).max() < 1e-8
    expected = estimated(parameters, model, images, encrypted)
    np.testing.assert_allclose(packing.unpack_logits(expected.slots, COUNT), model.logits(images), rtol=1e-9)
    # The noise of all slots, over one key: measured 0.66 and 0.99 of the estimate.
    noise = np.sqrt((np.abs(slots - expected.slots) ** 2).mean()) * 2.0**50 / np.sqrt(parameters.ring_degree)
    assert 0.4 < noise / expected.rms(parameters.ring_degree) < 1.5
    assert expected.rms(parameters.ring_degree) < 2.0**NOISE_BITS
    # All slots, also the unused ones, fit the last prime together with the flooding.
    assert np.abs(slots.real).max() * 2.0**50 < parameters.coeff_modulus[0] / 8


def test_encrypted_weights_give_the_logits_of_clear_ones(stock: Stock) -> None:
    """And each has the level where it is used: 25 + 1, 64 + 1 and 16 + 1 ciphertexts of two parts of 7, 6, 5, 4, 3 and 2 primes."""
    assert np.abs(stock.slots[True] - stock.slots[False]).max() < 1e-4
    primes = 25 * 7 + 6 + 64 * 5 + 4 + 16 * 3 + 2
    size = sum(len(data) for data in stock.weights)
    assert len(list(stock.weights)) == 108 and primes * 2 * 16384 * 8 < size < primes * 2 * 16384 * 8 + 108 * 200


def test_operations_are_counted() -> None:
    """105 products; with encrypted weights one relinearisation a sum: of the convolution, and of each row of the 16 and 4 of diagonals."""
    parameters = api.load_parameters(PARAMETERS)
    clear, hidden = counts(parameters, False), counts(parameters, True)
    assert (clear.plain_products, clear.products, clear.squares, clear.relinearisations) == (25 + 64 + 16, 0, 2, 2)
    assert (hidden.plain_products, hidden.products, hidden.squares, hidden.relinearisations) == (0, 105, 2, 2 + 1 + 16 + 4)
    assert clear.rotations == hidden.rotations == (3 + 15 + 3 + 3) + (3 + 3 + 3 + 1)
    assert hidden.seconds(dict.fromkeys(vars(hidden), 1.0)) == sum(vars(hidden).values())


def test_sets_of_digits() -> None:
    images, labels = np.zeros((5, 28, 28)), np.zeros(5, np.int64)
    assert [len(group) for group in Classification(images, labels, load_model(), digits_per_set=2).groups] == [2, 2, 1]
    with pytest.raises(ParameterError, match="9 digits in a set of ciphertexts: there is room for 1 to 8"):
        Classification(images, labels, load_model(), digits_per_set=9)


def test_sets_without_room_are_refused() -> None:
    model = load_model()
    with pytest.raises(ParameterError, match="the network needs CKKS at N = 16384"):
        NetworkEvaluator(api.load_parameters("ckks-8192"), model, b"", b"")


def test_the_weights_recognise_digits_that_they_were_not_trained_on() -> None:
    images, labels = held_out_digits(1000)
    assert load_model().accuracy(images, labels) >= 0.96


def test_digits_for_training_and_for_tests_are_different_ones() -> None:
    pixels = np.arange(5000 * 784, dtype=float).reshape(5000, 784)
    (train, train_labels), (test, test_labels) = split(pixels, np.arange(5000))
    assert len(train) == 4000 and len(test) == 1000
    assert not set(train_labels) & set(test_labels)
    np.testing.assert_array_equal(test[0].ravel() * 255, pixels[test_labels[0]])
    with pytest.raises(ParameterError, match="1 to 1000"):
        held_out_digits(1001)


def test_weights_are_saved_and_damaged_files_refused(tmp_path: Path) -> None:
    model = random_model(np.random.default_rng(2))
    model.save(tmp_path / "w.npz")
    again = Model.load(tmp_path / "w.npz")
    for name, values in vars(model).items():
        np.testing.assert_allclose(getattr(again, name), values, rtol=1e-3, atol=1e-6)
    (tmp_path / "bad.npz").write_bytes(b"no weights")
    for name in ("bad.npz", "missing.npz"):
        with pytest.raises(ModelError, match=r"make them with Scripts/train_cnn.py"):
            Model.load(tmp_path / name)
    np.savez(tmp_path / "shape.npz", **{**vars(model), "conv": np.zeros((5, 24))})
    with pytest.raises(ModelError, match=r"conv is not of shape \(5, 25\)"):
        Model.load(tmp_path / "shape.npz")


def test_training_follows_the_gradient() -> None:
    """Backpropagation against differences of the loss."""
    script = runpy.run_path(str(ROOT / "Scripts" / "train_cnn.py"))
    rng = np.random.default_rng(3)
    model, images, labels = random_model(rng), rng.uniform(0, 0.3, (4, 28, 28)), np.array([3, 1, 4, 1])

    def loss() -> float:
        logits = model.logits(images)
        top = logits.max(1, keepdims=True)
        return float((np.log(np.exp(logits - top).sum(1)) + top[:, 0] - logits[np.arange(4), labels]).mean())

    slopes = script["gradients"](model, images, labels)
    for name, weights in vars(model).items():
        place = np.unravel_index(np.abs(slopes[name]).argmax(), weights.shape)
        step = 1e-6
        weights[place] += step
        above = loss()
        weights[place] -= 2 * step
        below = loss()
        weights[place] += step
        assert slopes[name][place] == pytest.approx((above - below) / (2 * step), rel=1e-3), name


def test_the_command() -> None:
    """Joint keys, encryption of digits and weights, evaluation and joint decryption, of one ciphertext's digits."""
    done = CliRunner().invoke(app, ["cnn", "--images", "8", "--encrypt-model"])
    assert done.exit_code == 0, done.output
    last = done.output.strip().splitlines()[-1]
    assert last.startswith("cnn: ok accuracy=")
    words = dict(word.split("=") for word in last.split()[2:])
    assert words["accuracy"] == words["plain_accuracy"]
    text = " ".join(done.output.split())
    assert "525 s (2 parties, LAN)" in text and "108 ciphertexts, 146 MB" in text and "classes as in clear: 8 of 8" in text
