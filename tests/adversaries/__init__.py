"""Corrupted parties in plans and programs: a matrix of deviations, and a runner that judges what honest parties get."""
