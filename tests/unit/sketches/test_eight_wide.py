"""Eight elements at once say what a loop over them says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.sketches.eight_wide import WIDTH, equal, lowest_bit, place_of_least

words = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)), min_size=WIDTH, max_size=WIDTH)
counts = st.lists(
    st.one_of(st.integers(-2, 2), st.integers(-(2**31), 2**31 - 1)), min_size=WIDTH, max_size=WIDTH
)


@kernel
def bits_of(array: UInt64s, first: np.uint64, wanted: np.uint64, out: np.ndarray) -> None:
    out[0] = equal(array, first, wanted)
    out[1] = lowest_bit(out[0]) if out[0] != 0 else -1


@kernel
def least(array: np.ndarray, first: np.uint64) -> np.int64:
    return place_of_least(array, first)


@given(words, words, st.integers(0, WIDTH), st.data())
def test_the_places_of_a_value_are_all_those_that_equal_it(
    left: list[int], right: list[int], first: int, data: st.DataObject
) -> None:
    array = left + right
    wanted = data.draw(st.sampled_from(array) | st.integers(0, 2**64 - 1))
    out = np.zeros(2, np.int64)
    bits_of(np.array(array, np.uint64), np.uint64(first), np.uint64(wanted), out)
    places = [way for way in range(WIDTH) if array[first + way] == wanted]
    assert out.tolist() == [sum(1 << way for way in places), places[0] if places else -1]


@given(counts, counts, st.integers(0, WIDTH))
def test_the_least_is_the_first_of_the_least(left: list[int], right: list[int], first: int) -> None:
    array = left + right
    for dtype in (np.int32, np.int64):
        seen = array[first : first + WIDTH]
        assert least(np.array(array, dtype), np.uint64(first)) == seen.index(min(seen))
