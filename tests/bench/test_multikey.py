"""Multi-key BGV, the baseline: results are right, noise is within its bounds, and one party's ciphertexts are SEAL's."""

from __future__ import annotations

import math
import os
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from bench.multikey import relinearisation, rgsw, scheme
from bench.multikey.gadgets import GADGETS, Gadget
from bench.multikey.relinearisation import EvaluationKey, evaluation_key
from bench.multikey.ring import Ints, Ring, Words, centred_binomial
from bench.multikey.scheme import Ciphertext, Layout, Party, Product, Reference
from bench.multikey.sets import QUICK
from keyquorum import _engine
from keyquorum.fhe import _arith, seal
from keyquorum.fhe.seal_format import Ciphertext as SealCiphertext
from keyquorum.fhe.seal_format import read_ciphertext, read_plaintext, write_ciphertext, write_secret_key
from keyquorum.model.errors import ParameterError

T, N = 65537, 1024
PARAMETERS = QUICK
RNG = np.random.default_rng()


class Keys:
    """Keys of five parties under one gadget."""

    def __init__(self, gadget: Gadget, parties: int = 5) -> None:
        self.gadget = gadget
        self.reference = Reference(gadget, b"a public seed of the tests")
        self.parties = [Party(i, self.reference) for i in range(parties)]
        self.publics = {p.index: p.public for p in self.parties}
        self.secrets = {p.index: p.secret for p in self.parties}

    @property
    def evaluation(self) -> dict[int, EvaluationKey]:
        return {p.index: evaluation_key(p) for p in self.parties}

    def encrypt(self, index: int, values: Ints, layout: Layout = "compact") -> Ciphertext:
        return scheme.encrypt(self.reference, self.publics[index], scheme.encode(values, T), layout)

    def values(self, of: Ciphertext | Product) -> Ints:
        return scheme.decode(scheme.decrypt(self.gadget, of, self.secrets), T)


@cache
def keys(gadget: str = "rns") -> Keys:
    return Keys(GADGETS[gadget](PARAMETERS))


def sums(made: Keys, k: int, layout: Layout = "compact") -> tuple[Ciphertext, Ints]:
    """The sum of a ciphertext of each of k parties, and its values."""
    values = RNG.integers(0, T, (k, N))
    total = made.encrypt(0, values[0], layout)
    for i in range(1, k):
        total = scheme.add(made.gadget, total, made.encrypt(i, values[i], layout))
    return total, values.sum(axis=0) % T


def schoolbook(a: Ints, b: Ints) -> list[int]:
    """The product modulo X^N + 1, over the integers."""
    product = np.convolve(a.astype(object), b.astype(object))
    product = np.concatenate([product, [0] * (2 * len(a) - len(product))])
    return [int(low - high) for low, high in zip(product[: len(a)], product[len(a) :], strict=True)]


@pytest.mark.parametrize("q", [1125899906842817, 1152921504606845473])
def test_sums_of_products_are_those_of_single_products(q: int) -> None:
    n, rng = 16, np.random.default_rng(1)
    a, narrow, wide = (rng.integers(0, q, size, dtype=np.uint64) for size in (3 * n, 3 * n, 6 * n))

    def wanted(factors: Words, row: Words, width: int) -> list[int]:
        columns = row.reshape(3, width, n).astype(object) * factors.reshape(3, 1, n).astype(object)
        return [int(x) for x in columns.sum(axis=0).reshape(-1) % q]

    transform = _engine.Ntt(q, n)
    for factors, found in (
        (a, _engine.sums_of_products(a, [narrow, wide], n, q)),
        (transform.forward(a), transform.sums_of_products(a, [narrow, wide])),
    ):
        assert [list(map(int, sums)) for sums in found] == [wanted(factors, narrow, 1), wanted(factors, wide, 2)]
    assert [len(sums) for sums in _engine.sums_of_products(a, [a[:0]], n, q)] == [0]
    too_large = narrow.copy()
    too_large[-1] = q
    for factors, row, degree, text in (
        (a, too_large, n, "not below the modulus"),
        (too_large, narrow, n, "not below the modulus"),
        (a, narrow[1:], n, "multiple"),
        (a[1:], narrow, n, "multiple"),
        (a[:0], narrow, n, "multiple"),
        (a, narrow, 0, "multiple"),
    ):
        with pytest.raises(_engine.UsageError, match=text):
            _engine.sums_of_products(factors, [row], degree, q)


@pytest.mark.parametrize("name", GADGETS)
def test_digits_and_weights_give_the_polynomial(name: str) -> None:
    for level in (3, 1):
        gadget = GADGETS[name](PARAMETERS, level)
        x = gadget.ring.uniform()
        digits = gadget.decompose(x)
        assert len(digits) == gadget.digits and int(digits.max()) < 1 << gadget.digit_bits
        ones = gadget.key_ring.ntt(gadget.key_ring.zeros(gadget.digits))
        for i, q in enumerate(gadget.key_ring.primes):
            ones[i] += np.array([int(w) % q for w in gadget.weights()[i]], dtype=np.uint64)[:, None]  # constants in NTT form
        [found] = gadget.inner(digits, ones)
        assert np.array_equal(found[: len(x)], gadget.ring.scale(x, gadget.special))


def test_bits_are_those_of_the_coefficients() -> None:
    gadget = GADGETS["bits"](PARAMETERS)
    x = gadget.ring.uniform(2)
    digits = gadget.decompose(x)
    assert digits.shape == (135, 2, N)
    for place in range(2):
        wanted = [v % gadget.ring.modulus for v in scheme.integers(gadget, np.ascontiguousarray(x[:, place]))]
        assert wanted == [sum(int(bit) << j for j, bit in enumerate(column)) for column in digits[:, place].T]


@pytest.mark.parametrize("layout", ["compact", "pairs"])
@pytest.mark.parametrize("k", range(1, 6))
def test_sums_and_products(k: int, layout: Layout) -> None:
    made = keys()
    a, x = sums(made, k, layout)
    b, y = sums(made, max(k - 1, 1), layout)  # of fewer parties: extended to the union
    assert a.parts.shape[1] == (k + 1 if layout == "compact" else 2 * k)
    assert np.array_equal(made.values(a), x)
    product = scheme.multiply(made.gadget, a, b)
    assert product.parts.shape[1:3] == (a.parts.shape[1],) * 2
    assert np.array_equal(made.values(product), x * y % T)
    squared = scheme.square(made.gadget, a)
    assert np.array_equal(made.values(squared), x * x % T) and not squared.parts[:, 1, 0].any()


@pytest.mark.parametrize("layout", ["compact", "pairs"])
def test_extension_keeps_the_phase(layout: Layout) -> None:
    made = keys()
    a, _ = sums(made, 2, layout)
    wide = scheme.extend(a, [0, 1, 3, 4])
    assert wide.parties == (0, 1, 3, 4)
    assert np.array_equal(scheme.phase(made.gadget, a, made.secrets), scheme.phase(made.gadget, wide, made.secrets))
    with pytest.raises(ParameterError, match="is of party 0 too"):
        scheme.extend(a, [1, 2])


@pytest.mark.parametrize("layout", ["compact", "pairs"])
def test_a_total_is_the_sum_of_extensions(layout: Layout) -> None:
    """Of single parties and of several, in any order; levels and layouts are compared."""
    made = keys()
    both, x = sums(made, 2, layout)
    y, z = RNG.integers(0, T, (2, N))
    others = [made.encrypt(3, y, layout), made.encrypt(1, z, layout)]
    found = scheme.total(made.gadget, [others[0], both, others[1]])
    chain = scheme.add(made.gadget, scheme.add(made.gadget, others[0], both), others[1])
    assert found.parties == chain.parties == (0, 1, 3) and np.array_equal(found.parts, chain.parts)
    assert np.array_equal(made.values(found), (x + y + z) % T)
    with pytest.raises(ParameterError, match="switch one of them"):
        scheme.total(made.gadget, [others[0], scheme.switch(made.gadget, both)])


@pytest.mark.parametrize("k", range(1, 6))
def test_modulus_switching_keeps_the_message(k: int) -> None:
    made = keys()
    a, x = sums(made, k)
    for level in (2, 1):
        assert np.array_equal(made.values(scheme.switch(made.gadget, a, level)), x)
    with pytest.raises(ParameterError, match="cannot be switched"):
        scheme.switch(made.gadget, scheme.switch(made.gadget, a), 2)


def test_messages_are_polynomials() -> None:
    made, ring = keys(), Ring(N, (T,))
    a, b = RNG.integers(0, T, (2, N))
    product = scheme.encode(scheme.decode(a, T) * scheme.decode(b, T) % T, T)
    assert [v % T for v in schoolbook(a, b)] == [int(v) % T for v in product]
    c = scheme.multiply(made.gadget, *(scheme.encrypt(made.reference, made.publics[i], m) for i, m in ((0, a), (1, b))))
    assert np.array_equal(scheme.decrypt(made.gadget, c, made.secrets), product)
    assert ring.modulus == T


def test_errors_are_centred_binomial() -> None:
    """Each line fails by chance in less than one of a million runs."""
    size, bits = 1 << 18, 2 * 21
    found = centred_binomial(size)
    assert np.abs(found).max() <= 21 and abs(found.mean()) < 5 * (bits / 4 / size) ** 0.5
    assert abs(found.var() / (bits / 4) - 1) < 5 * (2 / size) ** 0.5
    share = np.bincount(found + 21, minlength=43)[16:27] / size
    wanted = np.array([math.comb(bits, k) / 2**bits for k in range(16, 27)])
    assert (np.abs(share - wanted) < 5.5 * (wanted / size) ** 0.5).all()


def test_messages_are_read_exactly_also_at_half_the_modulus() -> None:
    ring = keys().gadget.ring
    numbers = [0, 1, ring.modulus - 1, *(ring.modulus // 2 + d for d in range(-2, 3)), *(int(x) for x in RNG.integers(0, 1 << 62, N - 8))]
    words = np.array([[x % q for x in numbers] for q in ring.primes], dtype=np.uint64)
    for some in (words, np.where(np.arange(N) < 8, words[:, -1:], words)):
        wanted = [int(x) % T for x in _arith.crt_centred(np.ascontiguousarray(some), ring.primes)]
        assert scheme.residues_modulo(ring, np.ascontiguousarray(some), T).tolist() == wanted


class Seal:
    """Stock SEAL with the secret of one party."""

    def __init__(self, party: Party) -> None:
        self.library, self.context = seal.require_seal(), seal.context(PARAMETERS)
        ring = party.gadget.key_ring
        coefficients = scheme.integers(party.gadget, party.secret[:3]).astype(np.int64)
        assert np.array_equal(ring.small(coefficients), party.secret)
        self.secret = self.context.from_secret_str(write_secret_key(PARAMETERS, coefficients))
        self.evaluator = self.library.Evaluator(self.context)

    def load(self, ciphertext: Ciphertext):  # type: ignore[no-untyped-def]
        data = SealCiphertext(ciphertext.level, np.ascontiguousarray(ciphertext.parts.swapaxes(0, 1)), True, 1.0, 1)
        return self.context.from_cipher_str(write_ciphertext(PARAMETERS, data))

    def words(self, ciphertext, polynomials: int, level: int) -> Words:  # type: ignore[no-untyped-def]
        size = polynomials * level * N
        words = np.frombuffer(ciphertext.to_string(), dtype=np.uint8)[-8 * size :].copy().view(np.uint64)
        return words.reshape(polynomials, level, N).swapaxes(0, 1)

    def values(self, ciphertext) -> Ints:  # type: ignore[no-untyped-def]
        plain = self.library.Decryptor(self.context, self.secret).decrypt(ciphertext)
        return np.asarray(seal.decode(PARAMETERS, plain.to_bytes())).astype(np.int64) % T


def test_one_partys_ciphertexts_are_seals() -> None:
    made = keys()
    stock, gadget = Seal(made.parties[0]), made.gadget
    x, y = RNG.integers(0, T, (2, N))
    plain = [seal.encode(PARAMETERS, v) for v in (x, y)]
    messages = [read_plaintext(PARAMETERS, p.to_bytes()).data for p in plain]
    mine = [scheme.encrypt(made.reference, made.publics[0], np.asarray(m, dtype=np.int64)) for m in messages]
    loaded = [stock.load(c) for c in mine]
    assert np.array_equal(stock.values(loaded[0]), x), "ours decrypts in SEAL"
    assert np.array_equal(stock.words(stock.evaluator.add(*loaded), 2, 3), scheme.add(gadget, *mine).parts)
    product, switched = stock.evaluator.multiply(*loaded), stock.evaluator.mod_switch_to_next(loaded[0])
    T_ = scheme.multiply(gadget, *mine).parts
    three = np.stack([T_[:, 0, 0], gadget.ring.add(T_[:, 0, 1], T_[:, 1, 0]), T_[:, 1, 1]], axis=1)
    assert np.array_equal(stock.words(product, 3, 3), three)
    assert np.array_equal(stock.words(switched, 2, 2), scheme.switch(gadget, mine[0], 2).parts)
    assert np.array_equal(stock.values(product), x * y % T)

    generator = stock.library.KeyGenerator(stock.context, stock.secret)
    theirs = stock.library.Encryptor(stock.context, generator.create_public_key()).encrypt(plain[1])
    read = read_ciphertext(PARAMETERS, theirs.to_string())
    back = Ciphertext((0,), np.ascontiguousarray(read.data.swapaxes(0, 1)))
    assert read.is_ntt and np.array_equal(scheme.decrypt(gadget, back, made.secrets) % T, np.asarray(messages[1], dtype=np.int64)), "and SEAL's here"


@pytest.mark.parametrize(("name", "most"), [("rns", 5), ("bits", 2)])
def test_relinearisation(name: str, most: int) -> None:
    made = keys(name)
    gadget, evaluation = made.gadget, {p.index: evaluation_key(p) for p in made.parties[:most]}
    for k in sorted({1, 2, most}):
        a, x = sums(made, k)
        product = scheme.multiply(gadget, a, a)
        found = relinearisation.relinearise(gadget, product, made.publics, evaluation)
        assert found.parts.shape[1] == k + 1 and np.array_equal(made.values(found), x * x % T)
        added = scheme.integers(gadget, gadget.ring.sub(*(scheme.phase(gadget, c, made.secrets) for c in (found, product))))
        assert max(map(abs, added)) <= relinearisation.noise_bound(gadget, k)
        assert not any(added % T)
    low = scheme.switch(gadget, a, 2)  # keys serve lower levels
    lower = relinearisation.relinearise(gadget, scheme.square(gadget, low), made.publics, evaluation)
    assert lower.level == 2 and np.array_equal(made.values(lower), x * x % T)


def test_relinearisation_refuses() -> None:
    made = keys()
    evaluation = {0: evaluation_key(made.parties[0])}
    product = scheme.multiply(made.gadget, *(made.encrypt(i, RNG.integers(0, T, N)) for i in (0, 1)))
    with pytest.raises(ParameterError, match="evaluation key of party 1 are needed"):
        relinearisation.relinearise(made.gadget, product, made.publics, evaluation)
    pairs = made.encrypt(0, RNG.integers(0, T, N), "pairs")
    with pytest.raises(ParameterError, match="products of pairs are not relinearised"):
        relinearisation.relinearise(made.gadget, scheme.square(made.gadget, pairs), made.publics, evaluation)


def test_the_randomness_of_an_evaluation_key_is_its_owners_and_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    made, drawn, ternary = keys(), list[Words](), Ring.ternary
    monkeypatch.setattr(Ring, "ternary", lambda self, *shape: drawn.append(ternary(self, *shape)) or drawn[-1])  # type: ignore[func-returns-value]
    party, ring = made.parties[2], made.gadget.key_ring
    key = evaluation_key(party)
    assert len(drawn) == 1 and not drawn[0].any(), "r is wiped"
    owner, other = (
        _arith.crt_centred(ring.intt(ring.add(key.d0, ring.mul(key.d1, p.secret[:, None, :])))[:, 0], ring.primes) for p in (party, made.parties[1])
    )
    # With the owner's secret P/q_0 r and small noise remain, which are 0 modulo P but for the noise; with another secret nothing is small.
    special = made.gadget.special
    residue = [abs((int(v) + special // 2) % special - special // 2) for v in owner]
    assert max(residue) <= 21 * T and max(abs((int(v) + special // 2) % special - special // 2) for v in other) > special // 4


def chi_squared(values: Words, q: int, bins: int = 256) -> float:
    """Of values in [0, q) against the uniform distribution. Above 380 for 256 bins with probability 10^-6."""
    counts = np.bincount((values.astype(np.float64) / q * bins).astype(np.int64), minlength=bins)
    expected = values.size / bins
    return float(((counts - expected) ** 2).sum() / expected)


def test_without_one_secret_the_phase_is_uniform() -> None:
    made, k, count = keys(), 4, 1 << (20 if os.environ.get("KEYQUORUM_LONG") else 16)
    ring, found = made.gadget.ring, list[Words]()
    message = np.zeros(N, dtype=np.int64)
    for _ in range(count // N):
        a = scheme.encrypt(made.reference, made.publics[0], message)
        for i in range(1, k):
            a = scheme.add(made.gadget, a, scheme.encrypt(made.reference, made.publics[i], message))
        three = {**made.secrets, 3: np.zeros_like(made.secrets[3])}  # all but the secret of party 3
        found.append(ring.intt(scheme.phase(made.gadget, a, three)))
    for i, q in enumerate(ring.primes):
        assert chi_squared(np.stack(found)[:, i].ravel(), q) < 380
    key = evaluation_key(made.parties[0])
    for rows in (key.d0, key.d1, key.d2):
        coefficients = made.gadget.key_ring.intt(rows)
        assert all(chi_squared(c.ravel(), q) < 380 for c, q in zip(coefficients, made.gadget.key_ring.primes, strict=True))


@pytest.mark.parametrize("name", GADGETS)
def test_rows_of_rgsw_products(name: str, tmp_path: Path) -> None:
    made = keys(name)
    gadget, ring, secret = made.gadget, made.gadget.key_ring, made.parties[0].secret
    x, y = ring.ternary(), ring.ternary()
    first = list(islice(rgsw.encrypt_rows(gadget, secret, x), gadget.digits + 1))
    product, data = gadget.ring.mul(x[:3], y[:3]), {0: secret}
    with rgsw.StoredRows.write(tmp_path / "rows", gadget, rgsw.encrypt_rows(gadget, secret, y)) as rows:
        assert rows.row(3).shape == (len(ring.primes), 2, N)
        for number in (0, gadget.digits - 1, gadget.digits):
            found = rgsw.row_product(gadget, first[number], rows)
            assert np.array_equal(found, rgsw.row_product(gadget, first[number], rows, threads=2))
            weights = gadget.weights()[:3, number % gadget.digits]
            wanted = np.stack([_engine.mulmod_scalar(p, int(w) * pow(gadget.special, -1, q) % q, q) for p, w, q in zip(product, weights, PARAMETERS.moduli(3), strict=True)])  # fmt: skip
            if number >= gadget.digits:
                wanted = gadget.ring.mul(wanted, secret[:3])
            error = scheme.integers(gadget, gadget.ring.sub(scheme.phase(gadget, Ciphertext((0,), found), data), wanted))
            # Row r of X has the noise t e, which y multiplies; digits below 2^digit_bits multiply the noise of Y.
            bound = 6 * T * N * 2 * gadget.digits * 2.0**gadget.digit_bits * relinearisation.ERROR_DEVIATION / gadget.special + 3 * (T + 1) * N
            assert not any(error % T) and max(map(abs, error)) < bound + 21 * T * N
