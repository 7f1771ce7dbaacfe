"""A threshold oblivious pseudorandom function: a committee holds the key, and a receiver alone learns inputs and values.

```python
from keyquorum.toprf import Toprf, toprf_keygen

toprf_keygen("committee", "prf")  # then: keyquorum toprf serve committee PARTY prf --rate 100/h, for each party
with Toprf("committee", "prf", "committee/receiver-web.pem") as toprf:
    value = toprf.evaluate(b"a password")
```
"""

from __future__ import annotations

from .client import Toprf
from .service import (
    EvaluationStatus,
    Filled,
    set_policy,
    toprf_encrypt,
    toprf_encrypt_job,
    toprf_fill,
    toprf_fill_job,
    toprf_keygen,
    toprf_keygen_job,
    toprf_share,
    toprf_status,
    write_circuit,
)

__all__ = [
    "EvaluationStatus", "Filled", "Toprf", "set_policy", "toprf_encrypt",
    "toprf_encrypt_job", "toprf_fill", "toprf_fill_job", "toprf_keygen", "toprf_keygen_job", "toprf_share", "toprf_status", "write_circuit",
]  # fmt: skip
