"""Time-based data blocks: equal spans of the batch interval, by a clock that never runs backwards."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.partitioners import create
from evenflow.partitioners.prompt.time_based import span_borders
from tests.examples import examples
from tests.unit.partitioners.streams import with_gaps, zipf

few = examples(60)
LEAST, MOST = -(2**63), 2**63 - 1
instants = st.one_of(
    st.integers(-1000, 1000), st.integers(LEAST, MOST), st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST])
)


def data_blocks(times: list[int], workers: int, **options: object) -> list[int]:
    column = np.array(times, np.int64)
    return (
        create("time-based", workers=workers, **options)
        .assign_batch(np.zeros(len(times), np.uint64), column)
        .tolist()
    )


def naive(times: list[int], workers: int, interval: int | None) -> list[int]:
    """By the definition, in whole numbers of any size."""
    start = times[0]
    if interval is None:
        interval = max(times) - start + 1
    else:
        start = max(max(times) // interval * interval, LEAST)
    out, now = [], times[0]
    for time in times:
        now = max(now, time)
        out.append(min(workers - 1, max(0, (now - start) * workers // interval)))
    return out


@few
@given(
    st.lists(instants, min_size=1, max_size=50),
    st.integers(1, 20),
    st.one_of(st.none(), st.integers(1, 3000), st.integers(1, 2**62)),
)
def test_blocks_equal_the_definition_for_any_times(
    times: list[int], workers: int, interval: int | None
) -> None:
    assert data_blocks(times, workers, interval_ms=interval) == naive(times, workers, interval)


@few
@given(st.integers(1, 2**64), st.integers(1, 50))
def test_spans_are_equally_long_within_one_ms(interval: int, spans: int) -> None:
    edges = [0, *span_borders(interval, spans).tolist(), interval]
    lengths = [b - a for a, b in pairwise(edges)]
    assert sum(lengths) == interval
    assert max(lengths) - min(lengths) <= 1


def test_a_steady_stream_gives_level_blocks() -> None:
    keys, times = zipf(1200)
    out = create("time-based", workers=12).assign_batch(keys, times)
    assert np.bincount(out).tolist() == [100] * 12
    assert (np.diff(out) >= 0).all()


def test_a_pause_leaves_blocks_empty() -> None:
    keys, times = with_gaps(1000)
    assert set(create("time-based", workers=10).assign_batch(keys, times).tolist()) == {0, 9}


def test_an_older_tuple_counts_in_the_span_of_the_one_before_it() -> None:
    assert data_blocks([0, 60, 10, 99], 4) == [0, 2, 2, 3]


def test_with_a_set_interval_the_batch_stands_on_the_grid() -> None:
    assert data_blocks([1000, 1249, 1250, 1400], 4, interval_ms=1000) == [0, 0, 1, 1]
    assert data_blocks([990, 1000, 1900], 4, interval_ms=1000) == [0, 0, 3]
    assert data_blocks([-1000, -1, -500], 4, interval_ms=1000) == [0, 3, 3]


def test_an_interval_without_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="'interval_ms' of time-based: input should be greater"):
        create("time-based", workers=2, interval_ms=0)
