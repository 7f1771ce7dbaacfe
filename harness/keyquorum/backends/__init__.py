"""Backends: run a program, or the programs of a plan, on the embedded engine or on MP-SPDZ."""

from .base import Backend, ProgramOutput
from .choose import BACKENDS, check_backend, open_backend

__all__ = ["BACKENDS", "Backend", "ProgramOutput", "check_backend", "open_backend"]
