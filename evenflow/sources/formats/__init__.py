"""One file per source format. Each exports `FORMAT` (or `FORMATS`), listed in `evenflow.sources.datasets`.

A format reads its file into one Arrow table and leaves keys, event times, order and column choice to
`evenflow.sources.source.bounded`.
"""
