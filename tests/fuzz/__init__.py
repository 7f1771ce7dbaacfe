"""Fuzzing of what KeyQuorum reads from files and peers, in plain Python: ``python -m tests.fuzz``, or ``make fuzz``."""
