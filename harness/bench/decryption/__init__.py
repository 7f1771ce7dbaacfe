"""Threshold decryption: offline and online phase, latency, failures, and the tables of Ajax."""
