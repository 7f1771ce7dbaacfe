"""MP-SPDZ: the same programs on a checkout of MP-SPDZ, in working folders of our own.

Nothing of MP-SPDZ is part of this package: it starts the checkout's own compiler and party executables.
:func:`run_program` runs one program with all parties on this host; :mod:`.party` runs one party of it, for plans.
"""

from .checkout import PROTOCOLS, Checkout
from .files import run_program_files
from .run import Given, MpSpdzRun, Players, Way, run_program

__all__ = ["PROTOCOLS", "Checkout", "Given", "MpSpdzRun", "Players", "Way", "run_program", "run_program_files"]
