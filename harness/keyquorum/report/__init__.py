"""``keyquorum report``: tables of results become plots and one page. ``data`` reads and condenses, ``plots`` and ``published``
draw, ``page`` writes HTML. Needs pandas and matplotlib: the extra ``report``."""
