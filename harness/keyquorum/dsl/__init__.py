"""The language: MP-SPDZ's, in the subset of docs/pages/dsl.md, as eager Python over the lazy engine.

An operation on vectors returns at once; what has to communicate is queued, and everything that is ready at one depth
goes out in one round when a value is needed. :func:`run_program` runs an ``.mpc`` file on one party.
"""

from .kept import KeptEngine
from .persistence import Persistence, load_shares, save_shares
from .program import ProgramOptions
from .program_io import ProgramIO
from .runner import ProgramResult, run_program

__all__ = ["KeptEngine", "Persistence", "ProgramIO", "ProgramOptions", "ProgramResult", "load_shares", "run_program", "save_shares"]
