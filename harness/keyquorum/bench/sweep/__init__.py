"""Sweeps: ``keyquorum bench SUITE``.

``cases`` defines a measurement, ``programs`` and ``suites`` list the measurements, ``measure`` runs one, ``runner`` runs all of a
suite and writes the table (``rows``).
"""

from .cases import Axes, Case, CaseError
from .runner import Settings, run_suite
from .suites import SUITES, cases_of

__all__ = ["SUITES", "Axes", "Case", "CaseError", "Settings", "cases_of", "run_suite"]
