"""The bound of disorder: a tuple too far behind is refused, with its block, and nothing has been counted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.errors import ConfigError, DisorderError
from evenflow.partitioners import create, restore
from tests.unit.partitioners.cases import each
from tests.unit.partitioners.streams import zipf


@each
def test_a_tuple_beyond_the_allowed_disorder_is_refused_before_its_block_counts(
    name: str, options: dict
) -> None:
    keys, times = zipf(600)
    p = create(name, workers=4, max_disorder_ms=20, **options)
    free = create(name, workers=4, **options)
    times[350] -= 20  # as far back as is allowed
    assert (
        p.assign_batch(keys[:400], times[:400]).tolist()
        == free.assign_batch(keys[:400], times[:400]).tolist()
    )
    before = p.snapshot()
    late = times.copy()
    late[450] = late[449] - 21
    for q in (p, restore(before)):
        with pytest.raises(DisorderError) as caught:
            q.assign_batch(keys[400:], late[400:])
        assert caught.value.message == (
            "tuple 450 of the stream (row 50 of its block) has time 428 ms, 21 ms before the greatest "
            "time so far, 449 ms: more than the allowed 20 ms"
        )
        assert caught.value.hint is not None
        assert "max_disorder_ms" in caught.value.hint
        assert q.snapshot() == before
        assert (
            q.assign_batch(keys[400:], times[400:]).tolist()
            == restore(before).assign_batch(keys[400:], times[400:]).tolist()
        )


@given(
    data=st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    bound=st.integers(0, 50),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    rescaled=st.booleans(),
)
@settings(deadline=None)
def test_the_bound_of_disorder_does_not_depend_on_block_cuts_snapshots_or_rescales(
    data: list[int], bound: int, cuts: list[int], rescaled: bool
) -> None:
    times = np.arange(len(data), dtype=np.int64) + np.array(data)
    greatest = np.maximum.accumulate(times)
    late = np.flatnonzero(greatest - times > bound)
    p = create("hashing", workers=3, max_disorder_ms=bound)
    result = None
    for a, b in pairwise([0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]):
        p = restore(p.snapshot())
        if rescaled:
            p.rescale(p.workers + 1)
        try:
            p.assign(times[a:b].astype(np.uint64), times[a:b])
        except DisorderError as error:
            result = error.message
            assert p.observe().tuples == a
            break
    if len(late):
        row = int(late[0])
        gap = greatest[row] - times[row]
        assert result is not None
        assert result.startswith(f"tuple {row} of the stream")
        assert f"time {times[row]} ms, {gap} ms before the greatest time so far, {greatest[row]} ms" in result
    else:
        assert result is None


def test_disorder_is_measured_exactly_between_the_ends_of_time() -> None:
    ends = np.array([2**63 - 1, -(2**63)], np.int64)
    keys = np.zeros(2, np.uint64)
    with pytest.raises(DisorderError, match=f"{2**64 - 1} ms before"):
        create("hashing", workers=2, max_disorder_ms=2**63 - 1).assign(keys, ends)
    assert len(create("hashing", workers=2, max_disorder_ms=0).assign(keys, ends[::-1])) == 2
    assert len(create("hashing", workers=2).assign(keys, ends)) == 2


@pytest.mark.parametrize("bound", [-1, 1.5, True, "20", 2**63])
def test_an_impossible_bound_of_disorder_is_refused(bound: object) -> None:
    with pytest.raises(ConfigError, match="max_disorder_ms must be"):
        create("hashing", workers=4, max_disorder_ms=bound)  # type: ignore[arg-type]
