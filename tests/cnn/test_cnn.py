"""The encrypted CNN: its packing against the network in clear, SEAL's evaluation against both, and the whole application."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.cnn import packing
from keyquorum.cnn.encrypted import EncryptedModel
from keyquorum.cnn.model import FEATURES, Model, ModelError, patches, split
from keyquorum.cnn.run import NOISE_BITS, PARAMETERS, held_out_digits, load_model
from keyquorum.fhe import seal
from keyquorum.model.errors import ParameterError
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent.parent


def random_model(rng: np.random.Generator) -> Model:
    """Any weights."""
    shapes = [(5, 25), (5,), (64, FEATURES), (64,), (10, 64), (10,)]
    return Model(*(rng.normal(0, 0.2, shape) for shape in shapes))


def layer(x: np.ndarray, weights: np.ndarray, rows: int, at: int) -> np.ndarray:
    """The computation of the encrypted layer, on clear slots."""
    total = np.zeros_like(x)
    for g, plains in enumerate(packing.diagonals(weights, rows, at)):
        inner = sum(plain * np.roll(x, -b) for b, plain in enumerate(plains))
        total += np.roll(inner, -4 * g)
    return total


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
    weights, bias = packing.convolution(model)
    maps = sum(x * w for x, w in zip(packing.pack_images(images), weights, strict=True)) + bias
    wide = layer(maps**2, model.hidden, packing.HIDDEN_ROWS, packing.FEATURES_AT)
    summed = sum(np.roll(wide, -64 * k) for k in range(16)) + packing.bias(model.hidden_bias, packing.HIDDEN_AT)
    wide = layer(summed**2, model.output, packing.OUTPUT_ROWS, packing.HIDDEN_AT)
    summed = sum(np.roll(wide, -16 * k) for k in range(5)) + packing.bias(model.output_bias, packing.OUTPUT_AT)
    np.testing.assert_allclose(packing.unpack_logits(summed, count), model.logits(images), rtol=1e-9)


def test_seal_computes_the_same_and_the_noise_is_within_the_policy() -> None:
    """Under a key of SEAL's own, which this test may know."""
    count = 7
    library, parameters = seal.require_seal(), api.load_parameters(PARAMETERS)
    context = seal.context(parameters)
    generator, galois = library.KeyGenerator(context), library.GaloisKeys()
    generator.create_galois_keys(list(packing.STEPS), galois)
    public, relin = generator.create_public_key().to_string(), generator.create_relin_keys().to_string()
    model, (images, _) = load_model(), held_out_digits(count)
    network = EncryptedModel(parameters, model, relin, galois.to_string())
    result = network.logits([seal.encrypt(parameters, public, v) for v in packing.pack_images(images)])
    ciphertext = context.from_cipher_str(result)
    assert ciphertext.scale() == pytest.approx(2.0**50)
    plain = library.Decryptor(context, generator.secret_key()).decrypt(ciphertext)
    slots = np.asarray(library.CKKSEncoder(context).decode(plain))
    error = packing.unpack_logits(slots, count) - model.logits(images)
    assert np.abs(error).max() < 1e-8
    # Noise of a slot is about the noise of a coefficient times the root of their number.
    noise = error.std() * 2.0**50 / np.sqrt(parameters.ring_degree)
    assert noise < 2.0 ** (NOISE_BITS - 1)
    # All slots, also the unused ones, fit the last prime together with the flooding.
    assert np.abs(slots).max() * 2.0**50 < parameters.coeff_modulus[0] / 8


def test_sets_without_room_are_refused() -> None:
    model = load_model()
    with pytest.raises(ParameterError, match="the network needs CKKS at N = 16384"):
        EncryptedModel(api.load_parameters("ckks-8192"), model, b"", b"")


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
    """Joint keys, encryption, evaluation and joint decryption, of one ciphertext's digits."""
    done = CliRunner().invoke(app, ["cnn", "--images", "8"])
    assert done.exit_code == 0, done.output
    last = done.output.strip().splitlines()[-1]
    assert last.startswith("cnn: ok accuracy=")
    words = dict(word.split("=") for word in last.split()[2:])
    assert words["accuracy"] == words["plain_accuracy"]
    assert "525 s (2 parties, LAN)" in " ".join(done.output.split())
