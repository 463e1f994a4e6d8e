"""001, chapters 3.3 to 3.6: micro-batches that are scheduled a group at a time, and plans that change in
mid-group.

Figures 3.6 and 3.7b are played in virtual time, with the policy `prompt-plus` and the planner of the
controller. Figure 3.7a rests on what `evenflow bench spark-batches-a-trigger` has measured.

    loads      how much data each batch has
    queue      the queue of batches, and how it is scheduled
    grid       the settings: which cells there are
    measuring  a cell
    claims     what the thesis says, and how it is judged
    page       tables and the chart
"""

from papers.group_ahead.claims import CLAIMS
from papers.group_ahead.grid import NAME, cells
from papers.group_ahead.measuring import measurable, measure
from papers.group_ahead.page import TITLE, pictures, text

__all__ = ["CLAIMS", "NAME", "TITLE", "cells", "measurable", "measure", "pictures", "text"]
