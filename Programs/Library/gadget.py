"""Weights of the digits of TFHE's and FHEW's decompositions."""

from arguments import require
from Compiler.types import cint


def gadget(program, base_log, levels, q=0):
    """2^(k - base_log*level) for level = levels down to 1, smallest weight first: public values. k: the bits of the ring, or of the prime q. Raises
    ArgumentError unless they fit."""
    k = q.bit_length() or int(program.options.ring or 0)
    require(k, program.args, "the weights are powers of two modulo 2^k: run it over a ring, or give q")
    require(base_log * levels <= k, program.args, f"base_log * levels is at most {k}")
    return [cint(1) << (k - base_log * level) for level in range(levels, 0, -1)]
