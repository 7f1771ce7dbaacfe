"""The table behind the page of published figures, ``results/papers.csv``: a row for each figure of a paper and each of our measurements that stands
beside it. ``figures`` reads what is published, ``recorded`` what is measured, ``rules`` says which belongs to which (files of
``params/published``), ``table`` makes the rows, ``claims`` judges sentences of the papers by them, and ``overview`` shows them. All but
the figures is data: a paper, a table or a measurement more is a file or an entry more."""
