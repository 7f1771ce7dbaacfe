"""Inputs, outputs and share files of a program."""
