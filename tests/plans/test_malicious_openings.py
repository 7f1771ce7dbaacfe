"""What committees that verify products open when they decrypt BFV (docs/pages/model.md): the values named there and nothing else. These values have no relation to messages and noise.

The ciphertext has noise of every size up to the border of decryption. With masks that are zero, or one mask for all coefficients, the same tests fail.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.backends.embedded import Embedded
from keyquorum.parties import run_in_process
from keyquorum.schemes.seal.variant import SealVariant, seal_variant
from keyquorum.sharing.field_variant import FieldVariant
from keyquorum.sharing.numbers.rounding import JointBits
from scipy import stats

from tests.adversaries.plans import borders, encrypted, key_info

from .distributions import bits_of, smallest_p
from .test_malicious_decryption import ROUNDING, key_shares, planned

FALSE_ALARM = 1e-7
"""Of each of the statistics of a run."""
DEGREE = 2048
"""Coefficients, under the primes of `bfv-4096`: a bit that is open agrees with itself in all of them, which chance does with 2^-2048."""
OPENED = {
    "mal-rep-field": {"round_mask_odd_bits": 2, "round_ltz_circuit_odd_ring_online": 2},
    "mal-shamir": {"round_field_mask": 1, "round_field_open": 1},
}
"""Programs that open something to a party that does not receive, and how many vectors."""


def uniform_bytes(words: np.ndarray, length: int) -> float:
    """The smallest p-value of three bytes, times three."""
    bytes_ = [(words >> np.uint64(shift) & np.uint64(255)).astype(np.int64) for shift in (0, length // 2, length - 8)]
    return 3 * min(float(stats.chisquare(np.bincount(each, minlength=256)).pvalue) for each in bytes_)


def zero(items: Any) -> None:
    for section in items:
        section[:] = 0


def repeated(items: Any) -> None:
    for section in items:
        section[:] = section[:, :, :1]


@pytest.mark.parametrize("masked", [True, False], ids=["random-bits", "zeros"])
def test_what_decryption_without_a_pool_opens_is_uniform(masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two bits of the carry, with replicated shares: the same of them."""
    parameters = replace(api.load_parameters("bfv-4096"), ring_degree=DEGREE, security="none")
    t, n = parameters.plain_modulus, parameters.ring_degree
    secret, message, phase = borders(parameters, seed=7)
    plan = planned(parameters, receiver=1)
    plan = replace(plan, secret=tuple(secret.tolist()), ciphertext=encrypted(parameters, secret, phase), wanted=tuple(message.tolist()))
    seen: list[tuple[str, np.ndarray]] = []
    run, append = Embedded.run, JointBits.append_sums

    def watched(self: Embedded, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        output = run(self, protocol, domain, call, **options)
        if self.session.party == 0 and output.words.size:
            seen.append((call.program, output.words.astype(np.uint64)))
        return output

    def changed(self: JointBits, shares: Any) -> Any:
        before, place = shares.length, append(self, shares)
        if not masked:
            shares.file.words[:, before:] = 0
        return place

    monkeypatch.setattr(Embedded, "run", watched)
    monkeypatch.setattr(JointBits, "append_sums", changed)
    results = run_in_process(plan.committee, lambda context: plan.decrypted(context, key_info(plan), [key_shares(plan, context)]))
    assert not masked or tuple(results[1]) == plan.wanted
    ((program, words),) = seen
    assert program == "round_carry_odd_ring"
    known = [*bits_of(message.astype(np.uint64) % np.uint64(t), t.bit_length()), *bits_of(np.array(phase, dtype=np.uint64), 64)]
    known = [column for column in known if 0 < column.mean() < 1]
    p = smallest_p([bit for row in words.reshape(2, n) for bit in bits_of(row, 1)], known)
    assert (p > FALSE_ALARM) == masked


@pytest.mark.parametrize("change", [None, zero, repeated], ids=["masks", "no-masks", "one-mask"])
@pytest.mark.parametrize("protocol", list(OPENED))
def test_what_decryption_opens_is_uniform(protocol: str, change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At party 0, which does not receive: the openings of the table, and each bit of them is balanced and agrees with each bit of message and phase half the time."""
    parameters = replace(api.load_parameters("bfv-4096"), ring_degree=DEGREE, security="none")
    q, t, n = parameters.coeff_modulus[0], parameters.plain_modulus, parameters.ring_degree
    secret, message, phase = borders(parameters, seed=7)
    plan = planned(parameters, protocol, receiver=1, pooled=True)
    plan = replace(
        plan, committee=replace(plan.committee, folder=tmp_path), secret=tuple(secret.tolist()),
        ciphertext=encrypted(parameters, secret, phase), wanted=tuple(message.tolist()),
    )  # fmt: skip
    seen: list[tuple[str, np.ndarray]] = []
    run, variant = Embedded.run, SealVariant if protocol == "mal-rep-field" else FieldVariant
    make = variant.make

    def watched(self: Embedded, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        output = run(self, protocol, domain, call, **options)
        if self.session.party == 0 and output.words.size:
            seen.append((call.program, output.words.astype(np.uint64)))
        return output

    def changed(self: Any, group: Any, size: int) -> Any:
        items = make(self, group, size)
        if change is not None:
            change(items)
        return items

    monkeypatch.setattr(Embedded, "run", watched)
    monkeypatch.setattr(variant, "make", changed)
    results = run_in_process(plan.committee, lambda context: plan.decrypted(context, key_info(plan), [key_shares(plan, context)]))
    assert change is not None or tuple(results[1]) == plan.wanted
    assert {name for name, _ in seen} == set(OPENED[protocol])
    of = {name: np.concatenate([words for program, words in seen if program == name]) for name in OPENED[protocol]}
    noise = np.array([(t * x + (q - 1) // 2) % q for x in phase], dtype=object)  # e + (q - 1)/2, for t w = q m + e
    known = [
        *bits_of(message.astype(np.uint64) % np.uint64(t), t.bit_length()),
        *bits_of(np.array(phase, dtype=np.uint64) % np.uint64(q), q.bit_length()),
    ]
    known += [*bits_of(noise.astype(np.uint64), 16), *bits_of((noise * (1 << 16) // q).astype(np.uint64), 16)]
    known = [column for column in known if 0 < column.mean() < 1]
    if protocol == "mal-rep-field":
        carries, opened = of["round_mask_odd_bits"].reshape(2, -1)[:, :n], of["round_ltz_circuit_odd_ring_online"].reshape(2, n)
        length = seal_variant(plan.committee, ROUNDING, parameters).length
        assert smallest_p([column for row in carries for column in bits_of(row, 1)], known) > FALSE_ALARM
        p = min(smallest_p([*bits_of(opened[0], length), *bits_of(opened[1], 1)], known), uniform_bytes(opened[0], length))
    else:
        below, opened = of["round_field_mask"], of["round_field_open"] % np.uint64(q)
        share = q / (1 << q.bit_length())
        assert abs(below.mean() - share) < 6 * np.sqrt(share * (1 - share) / below.size)
        scaled = (opened.astype(object) * (1 << 16) // q).astype(np.uint64)
        bits = [*bits_of(opened, 16), *bits_of(scaled, 16)]
        p = min(smallest_p(bits, known), uniform_bytes(opened, 20), uniform_bytes(scaled, 16))
    assert (p > FALSE_ALARM) == (change is None)
