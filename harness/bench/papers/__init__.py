"""Measures all that stands on the page of published figures: ``make papers``, ``make papers-full``. :mod:`.steps` has the commands, :mod:`.state` says which of them
have been measured, and :mod:`.__main__` runs the others."""
