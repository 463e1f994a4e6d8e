"""Files, data sets and seeded generators as streams of typed columns, record keys and event times.

Admission rule: only what reads a source. What sends tuples anywhere is in `producers`. `datasets.open_source`
opens the source that a user's text names. `formats` has one file for each format.
"""
