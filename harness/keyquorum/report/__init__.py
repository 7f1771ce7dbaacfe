"""``keyquorum report``: plots and a page from tables of results. ``data`` reads and summarises, ``plots`` and ``published``
draw, ``page`` writes HTML. Needs pandas and matplotlib: the extra ``report``."""
