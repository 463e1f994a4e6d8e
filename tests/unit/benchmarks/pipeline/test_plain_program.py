"""The plain program beside evenflow has the windows of a direct aggregation."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from benchmarks.pipeline.rivals.plain_program import windows


@pytest.mark.parametrize("by_partition", [False, True])
def test_the_plain_program_has_a_row_for_each_key_of_each_window(by_partition: bool) -> None:
    drawn = np.random.default_rng(3)
    times = np.sort(drawn.integers(1_000_000, 1_200_000, 2_000))
    keys = drawn.integers(0, 20, 2_000)
    records = [
        (row % 3, json.dumps({"key": f"k{key}", "amount": 1, "time": int(at)}).encode())
        for row, (key, at) in enumerate(zip(keys, times, strict=True))
    ]
    if by_partition:  # a client may hand on one partition after the other
        records.sort(key=lambda record: record[0])
    # Each tuple lies in the windows that end with its second or up to 59 seconds later.
    seconds = (times // 1_000).tolist()
    pairs = {(at + later, key) for at, key in zip(seconds, keys, strict=True) for later in range(60)}
    cut = (records[start : start + 300] for start in range(0, len(records), 300))
    assert dict(windows(cut, 3)) == Counter(second for second, _ in pairs)
