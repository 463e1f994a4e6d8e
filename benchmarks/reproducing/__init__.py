"""The papers' figures again, with the partitioners of this repository: `make reproduce` writes docs/reproducing.md.

Admission rule: what the papers measured by counting (imbalance, copies of keys, block sizes). Nothing here takes a
time, so the report is the same on every machine. A section is one paper: it lists the *cells* it needs (one setting
each, over all hash seeds), measures a cell, states the paper's claims with a criterion in code, and draws. Cells are
kept in `docs/reproducing/results.json`. A run computes only those that are missing, and the text is always made
from that file.

    plan      streams, cells and how large everything is
    drawn     streams that stand for data of the papers that is not at hand
    store     the file of results
    compute   the missing cells, grouped by stream, in processes
    claims    what a paper says, how it is judged, and the verdict
    comparing when a figure is lower than another, seed by seed
    paper_*   a section for each paper, and `group_ahead` for 001's chapter 3
    report    the page
"""
