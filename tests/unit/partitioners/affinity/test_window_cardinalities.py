"""The registers of a window are those of the keys of its slides, however slides and gaps fall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.numeric.arrays import LAST_TIME, UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.affinity.window_cardinalities import (
    WindowCardinalities,
    advance,
    estimates,
    restored,
    touch,
    window_cardinalities,
)
from evenflow.sketches.hyperloglog import HyperLogLog, sketch_hash
from tests.examples import examples


@kernel
def _touch(window: WindowCardinalities, time: int, worker: int, key: np.uint64) -> None:
    advance(window, time)
    touch(window, worker, sketch_hash(key))


def expected(rows: list[tuple[int, int, int]], window_ms: int, slide_ms: int, worker: int) -> HyperLogLog:
    slides = np.maximum.accumulate(np.array([time for _, _, time in rows]) // slide_ms)
    keys: UInt64s = np.array(
        [
            key
            for (key, w, _), slide in zip(rows, slides, strict=True)
            if w == worker and slide > slides[-1] - window_ms // slide_ms
        ],
        np.uint64,
    )
    sketch = HyperLogLog(4)
    sketch.add(keys)
    return sketch


@examples(80)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**64 - 1),
            st.integers(0, 2),
            st.integers(-1500, 2500) | st.integers(LAST_TIME - 2500, LAST_TIME),
        ),
        min_size=1,
        max_size=80,
    ),
    st.sampled_from([(1000, 100), (200, 100), (300, 100), (100, 100), (7, 1)]),
    st.booleans(),
)
def test_the_window_is_the_sketch_of_its_keys(
    rows: list[tuple[int, int, int]], size: tuple[int, int], monotone: bool
) -> None:
    if monotone:
        rows = [(key, worker, at * 37) for at, (key, worker, _) in enumerate(rows)]
    window_ms, slide_ms = size
    window = window_cardinalities(3, 4, window_ms=window_ms, slide_ms=slide_ms)
    for row, (key, worker, time) in enumerate(rows):
        _touch(window, time, worker, np.uint64(key))
        if row % 7 == 0:
            estimates(window)
        if row % 11 == 0:
            window = restored({name: array.copy() for name, array in window.state.items()})
        for w in range(3):
            sketch = expected(rows[: row + 1], window_ms, slide_ms, w)
            assert np.array_equal(window.whole.values[w], sketch.values)
            assert estimates(window)[w] == sketch.estimate()


@pytest.mark.parametrize("slides", [1, 2, 10, 60])
def test_distinct_keys_of_a_moving_window_are_estimated_within_the_bound(slides: int) -> None:
    window = window_cardinalities(1, 12, window_ms=slides * 100, slide_ms=100)
    rng = np.random.default_rng(slides)
    for slide in range(150):
        for key in rng.integers(0, 2**64, 200, np.uint64):
            _touch(window, slide * 100, 0, key)
        held = min(slide + 1, slides) * 200
        assert abs(estimates(window)[0] / held - 1) < 4 * 1.04 / 64
