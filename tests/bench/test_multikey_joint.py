"""Multi-key ciphertexts decrypted by a committee of their parties: exact up to both borders of the noise."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from bench.multikey import joint, scheme
from bench.multikey.ring import Ints
from bench.multikey.scheme import Ciphertext
from keyquorum import api
from keyquorum.model.errors import ParameterError
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.sharing.rounding import rounding_length
from keyquorum.sharing.shares import Shares

from .test_multikey import PARAMETERS, RNG, N, T, keys, sums

Q0 = PARAMETERS.coeff_modulus[0]
LONG = bool(os.environ.get("KEYQUORUM_LONG"))


def at_the_borders(k: int) -> tuple[Ciphertext, Ints]:
    """A ciphertext at the last prime whose phases are the largest and smallest numbers that there are, and close to them; and the message."""
    made = keys()
    ring = made.gadget.ring.at(1)
    reach = RNG.integers(0, 1 << RNG.integers(0, 40, N))
    reach[: N // 2] = 0
    phase = np.where(RNG.integers(0, 2, N), (Q0 - 1) // 2 - reach, reach - (Q0 - 1) // 2)
    parts = ring.uniform(k + 1)
    parts[:, 0] = 0
    rest = scheme.phase(made.gadget, Ciphertext(tuple(range(k)), parts), made.secrets)
    parts[:, 0] = ring.sub(ring.small(phase), rest)
    message = phase % T
    return Ciphertext(tuple(range(k)), parts), np.where(message > T // 2, message - T, message)


@pytest.mark.parametrize("k", range(2, 6) if LONG else (2, 3))
def test_exact_at_both_borders(k: int) -> None:
    made, count = keys(), 25 if LONG else 1  # 10^5 coefficients in all
    for _ in range(count):
        ciphertext, message = at_the_borders(k)
        assert np.array_equal(scheme.decrypt(made.gadget, ciphertext, made.secrets), message)

        def job(context: PartyContext, of: Ciphertext = ciphertext) -> Ints | None:
            return joint.decrypt_exactly(context, made.gadget, made.secrets[context.party], of, receiver=1)

        found = run_in_process(api.in_process_committee(k, "semi"), job)
        assert np.array_equal(found[1], message) and all(found[i] is None for i in range(k) if i != 1)


def test_products_and_preprocessing() -> None:
    made = keys()
    a, x = sums(made, 2)
    c, message = scheme.switch(made.gadget, a, 2), scheme.encode(x, T)

    def job(context: PartyContext) -> tuple[Ints | None, Ints | None, bool, list[int]]:
        secret, sent = made.secrets[context.party], [context.backend.stats()["bytes_sent"]]
        items = joint.prepare(context, made.gadget)
        sent.append(context.backend.stats()["bytes_sent"])
        exact = joint.decrypt_exactly(context, made.gadget, secret, c, items=items)
        sent.append(context.backend.stats()["bytes_sent"])
        flooded = joint.decrypt_flooded(context, made.gadget, secret, a)
        return exact, flooded, not any(section.any() for section in items), sent

    (exact, flooded, used, sent), (nothing, none, also_used, _) = run_in_process(api.in_process_committee(2, "semi"), job)
    assert nothing is None and none is None and used and also_used, "to the receiver alone, and items are used once"
    assert np.array_equal(exact, message) and np.array_equal(flooded, message)
    assert 0 < sent[2] - sent[1] < (sent[1] - sent[0]) / 10


def test_only_masked_words_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """All phases are zero. What a party other than the receiver sees opened is uniform all the same, and no word comes twice."""
    made, seen, original = keys(), list[tuple[int, Ints]](), Shares.run
    parts = made.gadget.ring.at(1).uniform(3)
    parts[:, 0] = 0
    rest = scheme.phase(made.gadget, Ciphertext((0, 1), parts), made.secrets)
    parts[:, 0] = made.gadget.ring.at(1).sub(np.zeros_like(rest), rest)
    ciphertext = Ciphertext((0, 1), parts)
    assert not scheme.integers(made.gadget, scheme.phase(made.gadget, ciphertext, made.secrets)).any()

    def job(context: PartyContext) -> None:
        items = joint.prepare(context, made.gadget)
        context.session.compare("prepared", b"")
        monkeypatch.setattr(Shares, "run", watched)
        joint.decrypt_exactly(context, made.gadget, made.secrets[context.party], ciphertext, items=items)

    def watched(shares: Shares, *arguments: Any, **more: Any) -> Ints:
        opened = original(shares, *arguments, **more)
        seen.append((shares.runs.context.party, opened.copy()))
        return opened

    run_in_process(api.in_process_committee(2, "semi"), job)
    length = rounding_length(Q0, T, 2)
    of_other = [opened for party, opened in seen if party == 1]
    assert len(of_other) == 2 and not of_other[1].size, "one opening, and nothing at the end"
    words, carry = of_other[0][:N] & ((1 << length) - 1), of_other[0][N:] & 1
    assert len(np.unique(words)) == N and words.max() >> (length - 1) == 1
    bins = np.bincount(words >> (length - 4), minlength=16)
    assert ((bins - N / 16) ** 2).sum() / (N / 16) < 57, "by chance once in a million times (15 degrees of freedom)"
    assert abs(2 * int(carry.sum()) - carry.size) < 5 * carry.size**0.5, "masked bits"


@pytest.mark.parametrize(("protocol", "size", "text"), [
    ("semi", 3, r"is of parties \(0, 1\)"), ("rep-field", 3, "make a committee of semi, not rep-field"), ("mascot", 2, "make a committee of semi, not mascot"),
])  # fmt: skip
def test_refusals(protocol: str, size: int, text: str) -> None:
    made = keys()
    a, _ = sums(made, 2)
    for decrypt in (joint.decrypt_exactly, joint.decrypt_flooded):
        with pytest.raises(ParameterError, match=text):
            run_in_process(api.in_process_committee(size, protocol), lambda c, f=decrypt: f(c, made.gadget, made.secrets[c.party], a))  # type: ignore[misc]


def test_a_party_of_the_ciphertext_is_missing() -> None:
    made = keys()
    a, _ = sums(made, 3)
    with pytest.raises(ParameterError, match=r"is of parties \(0, 1, 2\) \(compact\), the committee of 2: all of its parties decrypt"):
        run_in_process(api.in_process_committee(2, "semi"), lambda c: joint.decrypt_exactly(c, made.gadget, made.secrets[c.party], a))
    with pytest.raises(ParameterError, match="the secret of party 2 is missing"):
        scheme.decrypt(made.gadget, a, {i: made.secrets[i] for i in (0, 1)})
    low = scheme.switch(made.gadget, sums(made, 2)[0])
    with pytest.raises(ParameterError, match="flooding needs more than 2 primes"):
        run_in_process(api.in_process_committee(2, "semi"), lambda c: joint.decrypt_flooded(c, made.gadget, made.secrets[c.party], low))


def test_the_flooding_hides_the_noise_and_leaves_room() -> None:
    for parties in (2, 16):
        bits = joint.flooding_bits(keys().gadget.ring, T, parties)
        noise = 2 * (T + 1) * (1 + parties * N)
        assert T << bits >= noise << joint.FLOODING_SECURITY
        assert parties * (T << bits) + noise < PARAMETERS.coeff_modulus[0] * PARAMETERS.coeff_modulus[1] // 2
