"""The language: MP-SPDZ's, in the subset of docs/pages/dsl.md, as eager Python over the lazy engine.

An operation on vectors returns at once. Operations that communicate are queued. When a value is needed, all operations that are ready at one depth
are done in one round. :func:`run_program` runs an ``.mpc`` file on one party.
"""

from .control.program import ProgramOptions
from .control.runner import ProgramResult, run_program
from .files.origin import Origin
from .files.program_io import ProgramIO
from .files.share_files import load_shares, save_shares
from .files.share_vector import ShareVector, wiped_on_failure
from .recording.kept import KeptEngine

__all__ = [
    "KeptEngine",
    "Origin",
    "ProgramIO",
    "ProgramOptions",
    "ProgramResult",
    "ShareVector",
    "load_shares",
    "run_program",
    "save_shares",
    "wiped_on_failure",
]
