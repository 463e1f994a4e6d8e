"""Data sets and seeded generators, replayed into the input topic.

Admission rule: what turns a source (file, data set, generator) into records of the user's own format,
decides when each is due, and delivers it. Uses `topics` and `evenflow`; knows no other service.
`producers.datasets.open_source` opens a source, `producers.replay.replay` sends it.
"""
