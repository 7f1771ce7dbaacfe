"""Backends: run a program, or the programs of a plan, on the embedded engine."""
