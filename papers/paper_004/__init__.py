"""004, "A Holistic View of Stream Partitioning Costs" (PVLDB 10(11), 2017): CM, AM, cAM, LM on real keys.

The paper's data (TPC-H 10 GB, DEBS 2015, Google cluster) is replaced by what is at hand, see `data` and
`drawn`. Windows tumble and every rule forgets at their end, as in the paper's Alg. 1. Figures are means over
the complete windows. The paper measures throughput and latency. Here their causes are measured: tuple
imbalance (eq. 1) and aggregation cost (eq. 2).

    grid       the settings: which cells there are
    measuring  a cell, with every seed
    claims     what the paper says, and how it is judged
    page       tables and charts
"""

from papers.paper_004.claims import CLAIMS
from papers.paper_004.grid import NAME, cells
from papers.paper_004.measuring import measure
from papers.paper_004.page import TITLE, pictures, text

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
