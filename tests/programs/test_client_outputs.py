"""client_outputs: messages under pads, and the combinations by which a client recognises its pads."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.model.errors import ProgramError

from tests.protocols import EMULATE_RING, MAC_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, VERIFIED_RING, Backend

from .running import run

SIZE, CHECKS, SHIFT = 7, 2, 48


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, VERIFIED_RING, MAC_RING], ids=str)
def test_what_is_opened_and_costs(backend: Backend) -> None:
    """Modulo 2^64, as the client adds it up; a pad hides the message from above ``shift`` on."""
    rng = np.random.default_rng(3)
    messages = rng.integers(0, 1 << (64 - SHIFT), SIZE, np.uint64)
    pads, masks, factors = (rng.integers(0, 1 << 64, (rows, SIZE), np.uint64) for rows in (1, CHECKS, CHECKS))
    stored = np.concatenate([messages << np.uint64(SHIFT), np.zeros(1, np.uint64), pads.ravel(), masks.ravel()])
    at = {"size": SIZE, "checks": CHECKS, "shift": SHIFT, "messages_at": 0, "pads_at": SIZE + 1, "masks_at": 2 * SIZE + 1}
    out = run("client_outputs", at, backend, shares=stored.view(np.int64), public=factors.view(np.int64).ravel())
    opened = np.asarray(out.public).view(np.uint64).reshape(1 + CHECKS, SIZE)
    assert np.array_equal(opened[0], messages + pads[0] << np.uint64(SHIFT))
    assert np.array_equal(opened[1:], masks + factors * pads)


def test_a_shift_beyond_the_ring_is_refused() -> None:
    at = {"size": SIZE, "checks": 1, "shift": 64, "messages_at": 0, "pads_at": SIZE, "masks_at": 2 * SIZE}
    with pytest.raises(ProgramError, match="argument shift must be an integer >= 0 and <= 63"):
        run("client_outputs", at, EMULATE_RING, shares=np.zeros(3 * SIZE, np.int64), public=np.zeros(SIZE, np.int64))
