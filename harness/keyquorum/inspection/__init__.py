"""``keyquorum inspect``: describes a file or folder without its secrets, and checks that it is whole. :data:`KINDS` has every kind that the project
writes."""

from keyquorum.model.inspected import Kind, Report

from .registry import KINDS, describe, examine

__all__ = ["KINDS", "Kind", "Report", "describe", "examine"]
