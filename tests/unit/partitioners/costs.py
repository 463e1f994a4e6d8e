"""Costs of tuples for tests of rules: none, small ones that repeat, and any that are allowed."""

import numpy as np
from hypothesis import strategies as st

from evenflow.partitioners.costs import MAX_COST

some_costs = st.just([1]) | st.lists(
    st.integers(1, 9) | st.integers(1, 300) | st.integers(1, MAX_COST), min_size=1, max_size=40
)
"""Costs that `drawn` lays over a stream."""


def drawn(costs: list[int], tuples: int) -> np.ndarray:
    """These costs again and again, one for each tuple."""
    return np.resize(np.array(costs, np.int64), tuples)
