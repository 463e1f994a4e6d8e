"""The source formats, one in each file.
Each file exports `FORMAT` or `FORMATS`, which `evenflow.sources.datasets` lists.

A format reads its file into one Arrow table. It leaves keys, event times, order and the choice of columns to
`evenflow.sources.source.bounded`.
"""
