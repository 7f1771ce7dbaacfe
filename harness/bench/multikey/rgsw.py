"""Products of RGSW encryptions, of which paper 001 makes evaluation keys (Chen, Zhang, Wang: Batched Multi-hop Multi-key FHE from Ring-LWE, TCC 2017).

An RGSW encryption of x has two rows a digit: encryptions of zero plus w_j x on c_0 (row j) or on c_1 (row digits + j). Row r of a product is the inner
product of the digits of row r of X with the rows of Y, and encrypts w_r x y. One element of the evaluation key of two parties is such a row for s_i s_j, so a
key of k parties has k^2 digits of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keyquorum.sharing.randomness import wipe

from .gadgets import Gadget, Rows
from .relinearisation import weighted
from .ring import Words
from .scheme import zeros_of


def encrypt_rows(gadget: Gadget, secret: Words, x: Words) -> Iterator[Words]:
    """The rows of an RGSW encryption of x [primes of keys, N] (NTT form), [primes of keys, 2, N] each, one after another."""
    ring, digits = gadget.key_ring, gadget.digits
    products = weighted(gadget, x)
    for row in range(2 * digits):
        a = ring.uniform(1)
        pair = np.concatenate([zeros_of(ring, gadget.t, a, secret), a], axis=1)
        pair[:, row // digits] = ring.add(pair[:, row // digits], products[:, row % digits])
        yield pair
    wipe(products)


class StoredRows:
    """The rows of an RGSW encryption in a file, modulo one prime after another, [primes, rows, 2, N], of which readers take some at a time: with the bit
    gadget an encryption of ``mk-bgv-16384`` has 605 MiB. A ``with`` block closes the file."""

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.shape, self._file = shape, path.open("rb")

    @staticmethod
    def write(path: Path, gadget: Gadget, rows: Iterator[Words]) -> StoredRows:
        """Writes the rows as they come."""
        degree, primes, count = gadget.ring.degree, len(gadget.key_ring.primes), 2 * gadget.digits
        with path.open("wb") as file:
            for number, row in enumerate(rows):
                for i in range(primes):
                    file.seek(16 * degree * (i * count + number))
                    file.write(row[i].tobytes())
        return StoredRows(path, (primes, count, 2, degree))

    def __enter__(self) -> StoredRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getitem__(self, place: tuple[int, slice]) -> Words:
        prime, chosen = place
        _, count, two, degree = self.shape
        first, stop, _ = chosen.indices(count)
        size = 8 * two * degree
        data = os.pread(self._file.fileno(), (stop - first) * size, (prime * count + first) * size)
        return np.frombuffer(data, dtype=np.uint64).reshape(stop - first, two, degree)

    def row(self, number: int) -> Words:
        """One row, modulo all primes: [primes, 2, N]."""
        return np.stack([self[i, slice(number, number + 1)][0] for i in range(self.shape[0])])


def row_product(gadget: Gadget, row: Words, rows: Rows, threads: int = 1) -> Words:
    """Row r of X ⊡ Y, [data primes, 2, N], of row r of X [primes of keys, 2, N] and the rows of Y: 2 decompositions, and 2 digits steps of 2 products of
    polynomials. It encrypts w_r x y, over P where the gadget has a special prime."""
    digits = gadget.decompose(gadget.finish(row))
    [found] = gadget.inner(np.concatenate([digits[:, 0], digits[:, 1]]), rows, threads=threads)
    return gadget.finish(found)


__all__ = ["StoredRows", "encrypt_rows", "row_product"]
