"""The settings of 004's figures: one cell each."""

from __future__ import annotations

from itertools import product

from papers.cells.run_plan import Cell, RunPlan, Stream
from papers.data import DATASETS
from papers.drawn_streams import TPCH_Q1, TPCH_Q3

NAME = "cardinality"
SYMBOLS = {
    "hashing": "FLD-1",
    "shuffle": "SH-w",
    "pkg": "PK-2",
    "pk5": "PK-5",
    "cm": "CM-2",
    "cm:cardinality=hll": "CM-2-H",
    "lm": "LM-2",
    "lm:cardinality=hll": "LM-2-H",
    "am": "AM-2",
    "am:cardinality=hll": "AM-2-H",
    "am:d=5": "AM-5",
    "cam": "cAM-2",
    "cam:d=5": "cAM-5",
}
"""Our partitioners and their symbols in the paper's table 2."""
WORKERS = (8, 32)
Q1_TUPLES = 1_000_000
# Longer than any drawn stream, whose times are row numbers.
_WHOLE_MS = 1 << 40
DRAWN_WHAT = {TPCH_Q1: "TPC-H query 1, drawn", TPCH_Q3: "TPC-H query 3 at scale 10, drawn"}
"""The streams of the paper's figures 5 to 7, in words. One window holds such a stream whole."""
DATA = (*DRAWN_WHAT, *DATASETS)
MEMORY_KEYS = 8_100_000
MEMORY_WORKERS = (8, 16, 32)
MEMORY_RULES = ("cm", "am", "lm", "cm:cardinality=hll", "am:cardinality=hll", "lm:cardinality=hll")


def stream_title(data: str) -> str:
    """A stream in words."""
    return DRAWN_WHAT.get(data) or DATASETS[data].title


def window_ms(data: str) -> int:
    """The window of a stream, in ms."""
    return _WHOLE_MS if data in DRAWN_WHAT else DATASETS[data].window_ms


def data_cell(plan: RunPlan, data: str, n: int, rule: str) -> Cell:
    """The cell of a rule on a stream, measured window by window."""
    most = {"words": 500_000, TPCH_Q1: Q1_TUPLES}.get(data, 0)
    return Cell(NAME, "data", Stream(data, plan.pick(most, 10_000)), n, rule)


def memory_cell(plan: RunPlan, rule: str, n: int) -> Cell:
    """Table 4: memory of a rule, with `n` workers."""
    keys = plan.pick(MEMORY_KEYS, 20_000)
    return Cell(NAME, "memory", Stream("uniform", keys, keys), n, rule)


def cells(plan: RunPlan) -> list[Cell]:
    """Every stream, and the memory of table 4."""
    data = [data_cell(plan, *at) for at in product(DATA, WORKERS, SYMBOLS)]
    return data + [memory_cell(plan, rule, n) for rule, n in product(MEMORY_RULES, MEMORY_WORKERS)]
