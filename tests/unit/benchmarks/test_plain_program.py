"""The plain program beside evenflow counts the rows that a direct aggregation has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.pipeline.rivals import plain_program


def test_the_plain_program_has_a_row_for_each_key_of_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(3)
    times = np.sort(drawn.integers(1_000_000, 1_200_000, 2_000))
    keys = drawn.integers(0, 20, 2_000)
    records = [
        (row % 3, json.dumps({"key": f"k{key}", "amount": 1, "time": int(at)}).encode())
        for row, (key, at) in enumerate(zip(keys, times, strict=True))
    ]

    def batches(bootstrap: str, topic: str) -> Iterator[list[tuple[int, bytes]]]:
        for start in range(0, len(records), 300):
            yield records[start : start + 300]

    monkeypatch.setattr(plain_program, "batches", batches)
    # Each tuple lies in the windows that end with its second or up to 59 seconds later.
    seconds = (times // 1_000).tolist()
    expected = {(at + later, key) for at, key in zip(seconds, keys, strict=True) for later in range(60)}
    assert plain_program.run("nowhere", "nothing") == len(expected)
