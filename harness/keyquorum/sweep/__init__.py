"""Sweeps: ``keyquorum bench SUITE``.

``cases`` defines a measurement, ``programs`` and ``suites`` list the measurements, ``measure`` runs one, ``runner`` runs all of a
suite and writes the table (``rows``).
"""

JOBS = {"program": "party", "decrypt": "decryption"}
"""Jobs of sweeps, whose kinds begin with ``sweep:``, and the modules that define them (:mod:`keyquorum.parties.jobs`)."""
