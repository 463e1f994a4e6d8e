"""002, "When Two Choices Are not Enough" (ICDE 2016): figures 3-10, the memory formulas, 11-12 on other
data, and 13-14 in virtual time.

As in the paper's Table III there are five independent sources: tuple t goes through source t mod 5. The
figures are I(m) at the end of the stream and its mean over the stream. The formulas use expected frequencies,
f_k = m p_k with m = 1e7.

    grid       the settings: which cells there are
    measuring  a cell, with every seed
    formulas   head, d and memory as the paper computes them
    claims     what the paper says, and how it is judged
    over_time  figure 12, on drawn cashtags
    cluster    figures 13 and 14, in virtual time
    page       tables and charts
"""

from papers.paper_002.claims import CLAIMS
from papers.paper_002.grid import NAME, cells
from papers.paper_002.measuring import measure
from papers.paper_002.page import TITLE, pictures, text

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measure", "pictures", "text"]
