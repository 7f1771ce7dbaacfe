"""Threshold FHE from generic MPC."""
