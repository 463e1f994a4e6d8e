"""Blocks that would be too large for Arrow's columns are cut, and nothing of them is lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Settings
from partitioner_service.kafka.block_sizes import Widths, cut

SIZES = st.tuples(st.integers(0, 40), st.integers(0, 40))


@given(st.lists(SIZES, min_size=1), st.booleans(), st.integers(1, 200))
def test_a_block_is_cut_into_the_fewest_stretches_that_are_small_enough(
    records: list[tuple[int, int]], with_keys: bool, most: int
) -> None:
    values, keys = np.array(records, np.int64).T
    sizes = values + with_keys * keys
    stretches = list(cut(values, keys if with_keys else None, most_bytes=most))
    assert [row for first, stop in stretches for row in range(first, stop)] == list(range(len(records)))
    assert all(sizes[first:stop].sum() <= most or stop == first + 1 for first, stop in stretches)
    for (first, _), (following, _) in pairwise(stretches):
        assert sizes[first : following + 1].sum() > most


def test_an_expression_that_grows_a_text_beyond_all_numbers_makes_each_record_a_block() -> None:
    text = "note"
    for _ in range(7):
        text = f"replace({text}, 'a', '{'a' * 1_000}')"
    query = {
        "key": "k",
        "types": {"note": "string"},
        "columns": {"long": text},
        "aggregates": {"n": "max(long)"},
    }
    settings = Settings.model_validate(
        {"kafka": {"bootstrap_servers": "x:1"}, "query": query, "input": {"partitions": 1}}
    )
    widths = Widths.of(settings)
    sizes = np.full(3, 20_000_000, np.int64)
    assert (widths.bytes_of(sizes) > 0).all()
    assert list(cut(np.full(3, 100, np.int64), widths=widths)) == [(0, 1), (1, 2), (2, 3)]
