"""Public keys of LWE that committees make: under every protocol and set that they admit, of the shared secret, with noise of the stated distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.backends.embedded import Embedded
from keyquorum.fhe.lwe import LWE_SETS, decrypt_clear, lwe_parameters
from keyquorum.fhe.lwe_public import LwePublicKey, expand_mask, public_noise, residues
from keyquorum.model.errors import ParameterError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.lwe.key import sharing_of
from keyquorum.schemes.lwe.keygen import make_lwe_key, make_lwe_public_key
from scipy import stats

from tests.fhe.test_lwe_public import key_of
from tests.long import LONG

from .quorum import reconstruct

COMMITTEES = [
    ("rep-field", 3), ("shamir", 3), ("shamir", 5), ("semi", 2), ("semi", 3), ("mascot", 2), ("mascot", 3), ("mal-rep-field", 3), ("mal-shamir", 3),
]  # fmt: skip


def _admitted() -> list[tuple[str, int, str]]:
    found = []
    for protocol, parties in COMMITTEES:
        for name, parameters in LWE_SETS.items():
            try:
                sharing_of(api.in_process_committee(parties, protocol), parameters)
            except ParameterError:
                continue
            found.append((protocol, parties, name))
    return found


def test_all_are_here() -> None:
    assert {(p, s) for p, _, s in _admitted()} == {
        *(("rep-field", s) for s in LWE_SETS), *(("semi", s) for s in LWE_SETS), *(("shamir", s) for s, p in LWE_SETS.items() if p.prime),
        *(("mascot", s) for s, p in LWE_SETS.items() if not p.prime), *(("mal-rep-field", s) for s in LWE_SETS),
        *(("mal-shamir", s) for s, p in LWE_SETS.items() if p.prime),
    }  # fmt: skip


def _tried() -> list[tuple[str, int, str]]:
    """lwe64-p256 has dimension, modulus and noise of lwe64-p16: one committee is enough. So is one set for three parties with MACs, but for long tests."""
    cases = [case for case in _admitted() if case[2] != "lwe64-p256" or case[:2] == ("rep-field", 3)]
    return [case for case in cases if LONG or case[:2] != ("mascot", 3) or case[2] == "lwe64-p2"]


@pytest.mark.parametrize(("protocol", "parties", "name"), _tried())
def test_a_joint_public_key_is_of_the_secret(protocol: str, parties: int, name: str) -> None:
    committee, parameters = api.in_process_committee(parties, protocol), lwe_parameters(name)
    noise = public_noise(parameters)

    def job(context: PartyContext) -> Any:
        info, share = make_lwe_key(context, parameters)
        public = make_lwe_public_key(context, info, share)
        words = share.words.copy()
        return public, words[:, :: share.element_words]

    made = run_in_process(committee, job)
    publics: list[LwePublicKey] = [p for p, _ in made]
    assert len({p.to_bytes() for p in publics}) == 1 and publics[0].seed != bytes(64)
    assert all(words.shape[1] == parameters.dimension for _, words in made)  # the noise is not kept
    secret = reconstruct(protocol, committee.threshold, [words for _, words in made], parameters.modulus)
    assert set(secret.tolist()) == {0, 1}
    without = key_of(parameters, secret, np.zeros(parameters.dimension, np.int64), publics[0].seed)
    q = parameters.modulus
    e = np.array([float((d := (int(b) - int(c)) % q) - (q if 2 * d > q else 0)) for b, c in zip(publics[0].body, without.body, strict=True)])
    deviation = np.sqrt((2.0 ** (2 * noise.bound_bits + 1) + 1) / 6)
    assert np.abs(e).max() <= 2**noise.bound_bits and abs(e.std() / deviation - 1) < 0.12  # 4 deviations and more of the estimate
    rng = np.random.default_rng(1)
    messages = rng.integers(0, 1 << parameters.plain_bits, 500)
    assert np.array_equal(decrypt_clear(publics[0].encrypt(messages), secret)[0], messages)


def test_no_two_keys_share_a_mask() -> None:
    committee, parameters = api.in_process_committee(2, "semi"), lwe_parameters("lwe53-p16")

    def job(context: PartyContext) -> Any:
        info, share = make_lwe_key(context, parameters)
        return [make_lwe_public_key(context, info, share) for _ in range(2)]

    first, second = run_in_process(committee, job)[0]
    assert first.seed != second.seed and not np.any(first.body == second.body)
    assert np.array_equal(residues(parameters, np.array([-3])), [parameters.prime - 3])
    assert not np.array_equal(expand_mask(parameters, first.seed), expand_mask(parameters, second.seed))


@pytest.mark.parametrize("place", [0, 1])
def test_a_changed_share_ends_in_an_abort_where_there_are_macs(place: int) -> None:
    """Of the value, or of its MAC, of one coefficient of the secret: no public key, and nothing is opened to the user."""
    committee, parameters = api.in_process_committee(2, "mascot"), lwe_parameters("lwe64-p16")

    def job(context: PartyContext) -> Any:
        info, share = make_lwe_key(context, parameters)
        if context.party == 1:
            share.words[place, 10] += np.uint64(1)
        return make_lwe_public_key(context, info, share)

    with pytest.raises(Exception, match="the MAC check of opened values failed"):
        run_in_process(committee, job)


def test_only_the_body_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs open in the whole key generation: n values, of which the distribution is uniform (Kolmogorov-Smirnov, false alarms 0.1 %)."""
    committee, parameters, opened = api.in_process_committee(3, "rep-field"), lwe_parameters("lwe53-p16"), []
    real = Embedded.run

    def run(self: Embedded, *args: Any, **options: Any) -> Any:
        result = real(self, *args, **options)
        opened.append((args[2].program, result.words.copy()))
        return result

    monkeypatch.setattr(Embedded, "run", run)

    def job(context: PartyContext) -> Any:
        info, share = make_lwe_key(context, parameters)
        return make_lwe_public_key(context, info, share)

    public = run_in_process(committee, job)[0]
    assert {(name, words.size) for name, words in opened} == {("sample_bits", 0), ("sample_tuniform", 0), ("lwe_public_key", 2048)}
    assert stats.kstest(public.body.astype(float) / parameters.modulus, "uniform").pvalue > 0.001
