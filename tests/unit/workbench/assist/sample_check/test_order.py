"""What is proposed for disorder loses nothing, by the very rule of the partitioner."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.progress import PartitionState, Verdict, judge
from evenflow.settings import Query
from evenflow.settings.durations import parse_duration
from tests.unit.workbench.assist.sample_check.samples import look, order, sample
from workbench.assist.sample_check.order import late_tuples, needed_out_of_orderness, rounded_up

TIMES = st.lists(st.integers(-(10**6), 10**6), max_size=60).map(lambda times: np.array(times, np.int64))


def late(query: Query, times: np.ndarray) -> int:
    """As the partitioner judges a partition from its beginning."""
    state = PartitionState(fingerprint="q", topic_id="t", offset=0)
    return int((judge(query, state, times).verdicts == Verdict.LATE).sum())


@given(
    partitions=st.lists(TIMES, min_size=1, max_size=4),
    slide=st.sampled_from([1, 10, 1_000, 60_000]),
    lateness=st.integers(0, 5_000),
)
def test_the_proposed_out_of_orderness_loses_nothing_and_is_not_twice_too_long(
    partitions: list[np.ndarray], slide: int, lateness: int
) -> None:
    query = Query(window=slide, slide=slide, allowed_lateness=lateness)
    needed = needed_out_of_orderness(query, partitions)
    enough = query.model_copy(update={"out_of_orderness": needed})
    assert sum(late(enough, times) for times in partitions) == late_tuples(enough, partitions) == 0
    assert needed == rounded_up(needed)
    if needed:
        shorter = query.model_copy(update={"out_of_orderness": int(needed / 2.51)})
        assert late_tuples(shorter, partitions) > 0 or needed == 1


@given(shifts=st.lists(st.integers(0, 20_000), min_size=5, max_size=60))
def test_a_look_proposes_what_loses_nothing(shifts: list[int]) -> None:
    rows = [order(number) for number in range(len(shifts))]
    for row, shift in zip(rows, shifts, strict=True):
        row["at"] -= shift
    records = sample(rows)
    result = look(records)
    proposed = result.proposal.get("query", {}).get("out_of_orderness", "0ms")
    assert (result.late > 0) == (parse_duration(proposed) > 0)
    assert look(records, query={"out_of_orderness": proposed}).late == 0


@given(st.integers(0, 10**9))
def test_a_round_duration_is_never_shorter(milliseconds: int) -> None:
    assert milliseconds <= rounded_up(milliseconds) <= max(3 * milliseconds, 1, milliseconds + 86_400_000)
