"""Exact counts of a tumbling window, whatever filled the table before."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import NEVER
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.dalton.tumbling_counts import Counts, Entries, TumblingCounts, is_full, slot_of
from tests.examples import examples

windows = st.lists(st.lists(st.integers(0, 60) | st.integers(0, 2**64 - 1), max_size=150), max_size=6)


@kernel
def _count_all(keys: np.ndarray, counts: Counts, window: int, first: int) -> int:
    for row in range(first, keys.shape[0]):
        if is_full(counts):
            return row
        cell = counts.cells[slot_of(counts, keys[row], window)]
        cell["count"] += 1
        cell["last"] = row
    return keys.shape[0]


@examples(50)
@given(windows)
def test_every_window_counts_its_own_keys_only(streams: list[list[int]]) -> None:
    table = TumblingCounts()
    for window, stream in enumerate(streams, start=1):
        table.begin()
        keys, row = np.array(stream, np.uint64), 0
        while (row := _count_all(keys, table.table, window, row)) < len(keys):
            assert table.full
            table.grow(window)
        exact = Counter(stream)
        result, counts, last = table.entries(window)
        assert result.tolist() == sorted(exact)
        assert counts.tolist() == [exact[key] for key in sorted(exact)]
        assert last.tolist() == [len(stream) - 1 - stream[::-1].index(key) for key in sorted(exact)]
        assert table.table.fill[0] == len(exact)
        for least in (1, 2, 5):
            assert table.frequent(window, least).tolist() == sorted(k for k in exact if exact[k] >= least)
        again = TumblingCounts()
        again.load(window, Entries(result, counts, last))
        assert all(
            a.tolist() == b.tolist()
            for a, b in zip(again.entries(window), (result, counts, last), strict=True)
        )
        again.forget_slides()
        assert (again.entries(window)[2] == NEVER).all()
        assert again.entries(window)[1].tolist() == counts.tolist()


def test_the_table_takes_four_slots_a_key_at_most() -> None:
    table = TumblingCounts()
    keys, row = np.arange(10_000, dtype=np.uint64), 0
    while (row := _count_all(keys, table.table, 1, row)) < len(keys):
        table.grow(1)
    assert 20_000 <= len(table.table.cells) <= 40_000
    assert table.nbytes <= 40_000 * 32 + 8


def test_what_a_past_peak_took_is_given_back() -> None:
    table = TumblingCounts()
    table.load(1, Entries(np.arange(10_000, dtype=np.uint64), *np.ones((2, 10_000), np.int64)))
    for _ in range(20):
        table.begin()
    assert len(table.table.cells) == 64
