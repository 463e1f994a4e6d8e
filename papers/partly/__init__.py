"""001, chapter 4: PartLy's data blocks, what they spare the reduce tasks, its training, and its time to plan.

24 data blocks, as in the paper, and 24 reduce tasks, whose number the paper does not give. A batch of a
stream has 100,000 tuples. Batches that the shipped policy was trained on stand apart: they are figures, and
no claim is judged by them. Times of tasks are counts with the kept costs. Curves of trainings and times to
plan are kept figures of docs/partly.

    grid       the settings: which cells there are
    measuring  a cell, with every seed
    claims     what the paper says, and how it is judged
    page       tables and charts
"""

from papers.partly.claims import CLAIMS
from papers.partly.grid import NAME, cells
from papers.partly.measuring import measurable, measure
from papers.partly.page import TITLE, pictures, text

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measurable", "measure", "pictures", "text"]
