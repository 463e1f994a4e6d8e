"""Moves of keys against a second writing with sets, and what follows from their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.metrics import aggregation_cost, distinct_keys, key_moves
from tests.examples import examples

tuples = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2)), max_size=60)
"""Worker, key, and slides since the tuple before."""


@examples(60)
@given(tuples, st.integers(1, 4))
def test_key_moves_are_as_a_plain_second_writing_counts_them(
    stream: list[tuple[int, int, int]], width: int
) -> None:
    slides = np.cumsum([pause for *_, pause in stream], dtype=np.int64).tolist()
    rows = [(worker, key, slide) for (worker, key, _), slide in zip(stream, slides, strict=True)]
    expected = {}
    for now in sorted(set(slides)):
        before = {(w, k) for w, k, s in rows if now - width < s < now}
        here = {(w, k) for w, k, s in rows if s == now}
        known = {k for _, k in before}
        expected[now] = len(here - before) - len({k for _, k in here} - known)
    workers, keys = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    at, result = key_moves(workers, keys, np.array(slides, np.int64), 4, panes_per_window=width)
    assert dict(zip(at.tolist(), result.tolist(), strict=True)) == expected
    _, whole = key_moves(workers, keys, np.zeros(len(rows), np.int64), 4, panes_per_window=1)
    assert whole.sum() == aggregation_cost(workers, keys) - distinct_keys(keys)


def test_columns_of_other_lengths_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="1 workers, 2 keys and 2 slides"):
        key_moves(one, two, two, 4, panes_per_window=1)
