"""Recorded programs, which the engine repeats without Python, and the engine that stays open for them."""
