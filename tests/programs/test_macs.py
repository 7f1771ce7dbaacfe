"""spdz2k and mascot: every program and variant that declares them gives what clear text gives, and three parties round exactly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from bench.parity.cases import PARTIES, cases
from bench.parity.embedded import run_case, together
from bench.parity.outcome import wrong
from bench.parity.reference import reference
from keyquorum import _engine

from tests.long import LONG
from tests.protocols import FIELD, MAC_RING, RING, SEMI_FIELD_3, Backend

from .running import run
from .test_rounding import border_instances, carry_rows, masks, odd, power2
from .test_samplers import clear_knuth, knuth_inputs
from .test_stored_rounding import mask, message, phases

# Many blocks of AES take a minute; a few, with MACs, are in test_aes.py, and so are keys.
ROWS = [
    pytest.param(protocol, row, id=f"{protocol} {case.label}")
    for protocol in ("spdz2k", "mascot")
    for row, case in enumerate(cases(protocol))
    if not case.program.startswith(("aes_blocks", "aes_keys")) or LONG
]
MAC_RING_3, MAC_FIELD_3 = Backend("spdz2k", 3, RING, 2), Backend("mascot", 3, FIELD, 2)


@pytest.mark.parametrize(("protocol", "row"), ROWS)
def test_every_program(protocol: str, row: int) -> None:
    case, parties = cases(protocol)[row], PARTIES[protocol]

    def one(session: _engine.Session) -> dict[str, Any]:
        try:
            return run_case(session, protocol, parties - 1, case, 1)
        except BaseException as error:
            session.abort(f"{type(error).__name__}: {error}")
            raise

    with ThreadPoolExecutor(parties) as pool:
        results = list(pool.map(one, _engine.local_sessions(parties, 60.0)))
    assert not wrong(case, together(case, results), reference(case))


def test_three_parties_round_exactly() -> None:
    """By the circuit, for odd t (the second half without MACs: mascot takes no prime as short as t) and for powers of two."""
    ell, t = 46, 65537
    z, messages = (v[:96] for v in border_instances(t, ell))
    got = odd("round_ltz_circuit", z, ell, t, MAC_RING_3, SEMI_FIELD_3, masks(3, len(z), ell, carry_rows(3) + 1))
    assert np.array_equal(got, messages)
    z, messages = (v[:96] for v in border_instances(2**10, 40))
    assert np.array_equal(power2("round_ltz_circuit", z, 40, 10, MAC_RING_3, masks(3, len(z), 40, 0)), messages)


@pytest.mark.parametrize("ring", [MAC_RING, MAC_RING_3], ids=str)
@pytest.mark.parametrize(("ell", "j", "times"), [(6, 2, 1), (63, 1, 3), (58, 6, 3)])
def test_the_circuit_needs_masks_alone(ring: Backend, ell: int, j: int, times: int) -> None:
    """Exact at both borders, 28 items (bit by bit) or 84 (edaBits), in one round more than with stored bits. Three parties: long masks for one of them alone."""
    if ring is MAC_RING_3 and ell == 58 and not LONG:
        pytest.skip("KEYQUORUM_LONG=1: the same with other lengths")
    z, messages = (np.tile(np.array(v, dtype=object), times) for v in phases(ell, j))
    for to in (0,) if ring is MAC_RING_3 and ell == 63 and not LONG else (0, "share"):
        arguments: dict[str, Any] = {"size": len(z), "l": ell, "j": j, "destination": to}
        out = run("round_ltz_circuit_online", arguments, ring, shares=[*z, *mask(ring, len(z), ell)])
        assert np.array_equal(message(out.shares if to == "share" else out.personal[0], j), messages.astype(np.uint64))
        assert out.rounds == (ell - 1).bit_length() + (4 if to == 0 else 3)


@pytest.mark.parametrize("backend", [MAC_RING_3, MAC_FIELD_3], ids=str)
def test_three_parties_sample(backend: Backend) -> None:
    out = run("sample_cbd", {"size": 600, "method": "bits", "chunk": 1 << 10}, backend)
    assert np.abs(out.shares).max() <= 21 and abs(out.shares.mean()) < 0.7 and abs(out.shares.var() - 10.5) < 3.2
    indices = np.stack([[0, 7, 3], [11, 0, 5], [1, 1, 9]])
    arguments = {"method": "knuth", "N": 12, "weight": 3, "contributors": 3}
    out = run("sample_fixed_weight", arguments, backend, private=knuth_inputs(indices, 12))
    assert np.abs(out.shares).tolist() == clear_knuth(12, 3, indices.sum(0) % (12 - np.arange(3)))
