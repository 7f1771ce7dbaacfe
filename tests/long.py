"""Which tests run."""

import os

LONG = os.environ.get("KEYQUORUM_LONG", "") == "1"
"""Whether tests of minutes run as well, and others with all their samples, committees or positions."""
