"""Byte strings in one buffer are what the list of them is."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from partitioner_service.reading.cells.cells import Block
from partitioner_service.reading.cells.payloads import Payloads, together

STRINGS = st.lists(st.none() | st.binary(max_size=5) | st.just(b"\n"), max_size=12)


@given(STRINGS, st.integers(0, 12), st.integers(0, 12))
def test_a_slice_of_the_buffer_is_that_of_the_list(strings: list[bytes | None], low: int, high: int) -> None:
    held = Payloads.of(strings)
    assert list(held) == strings
    assert list(held[low:high]) == strings[low:high]
    assert list(held[low:high].compact()) == strings[low:high]
    assert held[low:high].sizes.tolist() == [len(one or b"") for one in strings[low:high]]


@given(STRINGS, st.integers(0, 12), st.integers(0, 12))
def test_a_column_of_arrow_holds_the_strings(strings: list[bytes | None], low: int, high: int) -> None:
    column = Payloads.of(strings)[low:high].column()
    column.validate(full=True)
    assert column == pa.array(strings[low:high], pa.binary())


@given(st.lists(STRINGS, min_size=1, max_size=4), st.booleans())
def test_parts_together_are_one_part_after_the_other(parts: list[list[bytes | None]], mixed: bool) -> None:
    held = [Payloads.of(part) for part in parts]
    whole = together([parts[0], *held[1:]] if mixed else held)
    assert list(whole) == [one for part in parts for one in part]


@given(STRINGS, st.lists(st.integers(0, 12), max_size=3))
def test_slices_that_follow_each_other_come_together_without_a_copy(
    strings: list[bytes | None], cuts: list[int]
) -> None:
    held = Payloads.of(strings)
    edges = [0, *sorted(min(cut, len(strings)) for cut in cuts), len(strings)]
    whole = together([held[low:high] for low, high in itertools.pairwise(edges)])
    assert list(whole) == strings
    assert isinstance(whole, Payloads)
    assert np.shares_memory(whole.data, held.data) or not strings


@given(STRINGS, st.integers(0, 12), st.integers(0, 12))
def test_a_block_of_a_slice_is_that_of_the_list(strings: list[bytes | None], low: int, high: int) -> None:
    of_slice, of_list = Block.of(Payloads.of(strings)[low:high]), Block.of(strings[low:high])
    assert of_slice.data.tobytes() == of_list.data.tobytes()
    assert of_slice.begins.tolist() == of_list.begins.tolist()
    assert not of_slice.data.flags.writeable
    if of_list.missing is None:
        assert of_slice.missing is None
    else:
        assert of_slice.missing is not None
        assert of_slice.missing.tolist() == of_list.missing.tolist()
