"""Errors of the language. Programs see these classes; outside a run they become ProgramErrors of one line."""

from __future__ import annotations

SUBSET = "outside the supported subset of the language (docs/pages/dsl.md)"


class CompilerError(Exception):
    """A construct that the language refuses."""


class VectorMismatch(CompilerError):
    """Vectors of different sizes in one operation."""


class Crash(CompilerError):
    """The program stopped itself with ``crash`` or ``runtime_error``."""


def refuse_operand(what: str, operand: object) -> CompilerError:
    """The error for an operand that ``what`` cannot take."""
    return CompilerError(f"{what} does not take a value of type {type(operand).__name__}")
