"""A window of ten million keys, through the cores of combiner and reducer."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cores.growth import SEED, Pipeline

KEYS = 20_000_000
"""Keys that may be drawn. Somewhat more than half of them are."""
BATCHES, TUPLES = 150, 100_000


@pytest.mark.long
def test_ten_million_keys_of_a_window_each_come_out_once_and_a_late_micro_batch_moves_little_state() -> None:
    pipeline, random = Pipeline(panes=1), np.random.default_rng(SEED)
    expected = np.zeros(KEYS, np.int32)
    moved = []
    for _ in range(BATCHES):
        before = pipeline.moved
        ((_, _, rows),) = pipeline.batches(1, tuples=TUPLES, keys=KEYS, close=0)
        moved.append(pipeline.moved - before)
        np.add.at(expected, random.integers(0, KEYS, TUPLES), 1)
        assert rows == 0
    assert np.count_nonzero(expected) > 10_000_000
    assert max(moved[-10:]) < 3 * max(moved[:10]), "a micro-batch moves all that the window holds"
    blobs, _ = pipeline.combine(pipeline.frames(tuples=TUPLES, keys=KEYS))
    np.add.at(expected, random.integers(0, KEYS, TUPLES), 1)
    result = np.zeros(KEYS, np.int32)
    rows = 0
    for table in pipeline.results(blobs)[0]:
        keys = np.array(table["key"].to_pylist(), "S8").astype(np.int64)
        result[keys] = table["n"].to_numpy()
        rows += table.num_rows
    assert rows == np.count_nonzero(expected)
    assert np.array_equal(result, expected)
