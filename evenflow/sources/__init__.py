"""Files, data sets and seeded generators as streams of typed columns, record keys and event times.

Admission rule: what reads a source. What sends it anywhere is `producers`. `datasets.open_source` opens a source
by what a user writes. `formats` has one file per format.
"""
