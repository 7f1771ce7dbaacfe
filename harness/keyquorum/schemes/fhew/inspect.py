"""Files of FHEW to ``keyquorum inspect``."""

from .key import FHEW_KEYS

KINDS = (FHEW_KEYS.inspected("schemes/fhew/keygen"),)
