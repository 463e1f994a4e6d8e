"""A grid of simulations as one tidy table, and what the table says over the seeds.

Admission rule: the grid, its run in processes, the table on disk, and statistics and pictures of the table.
What is simulated is in `evenflow.simulation`. `ranges` reads lists and ranges, `grid` has the cells, `run`
runs them, `store` keeps finished cells on disk, `table` is the form of a row, `comparing` has intervals over
seeds, and `pictures` draws.
"""

from evenflow.sweep.comparing import compared, summarised
from evenflow.sweep.grid import Cell, Grid
from evenflow.sweep.run import run
from evenflow.sweep.store import Store
from evenflow.sweep.table import read_table

__all__ = ["Cell", "Grid", "Store", "compared", "read_table", "run", "summarised"]
