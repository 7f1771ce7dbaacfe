"""Tells what a file or folder is, without its secrets, and whether it is whole: ``keyquorum inspect``. :data:`KINDS` lists all that the project writes."""

from keyquorum.model.inspected import Kind, Report

from .registry import KINDS, describe, examine

__all__ = ["KINDS", "Kind", "Report", "describe", "examine"]
