"""What the frames of a query tell, once offsets are gone: a lost end is never taken for the whole."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError
from partitioner_service.begin.traces import Ruling, Rulings, Traces, read_routed
from partitioner_service.routing.session import totals
from tests.examples import examples
from tests.unit.partitioner_service.lossy import SETTINGS, WORKERS, Run
from topics.state import TopicState


@dataclass
class Frame:
    """A record of the routed topic."""

    worker: int
    at: int
    data: bytes

    def partition(self) -> int:
        return self.worker

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return self.data


def a_run(seed: int) -> Run:
    run = Run(Random(seed))
    for _ in range(12):
        run.step()
    run.restart()
    for _ in range(3):
        run.work(run.instances[0])
        run.commit(run.instances[0])
    return run


def seen(run: Run, block: int = 7) -> Traces:
    frames = [Frame(w, at, data) for w, log in enumerate(run.log) for at, data in log]
    result = Traces(SETTINGS)
    for first in range(0, len(frames), block):
        result.add(cast(Any, frames[first : first + block]))
    return result


def refuse(found: Traces, whole: int) -> None:
    found.refuse_gone()
    found.refuse_other(whole)


def tuples(run: Run) -> int:
    return sum(state.routed for state in run.committed.values())


@pytest.mark.parametrize("seed", range(10))
def test_frames_that_are_all_there_name_the_sessions_that_the_committed_states_name(seed: int) -> None:
    run = a_run(seed)
    result = seen(run)
    result.refuse_gone()
    result.refuse_other(tuples(run))
    named = [result.session(p) for p in run.committed]
    assert dict(named) == totals(run.committed)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("worker", range(WORKERS))
def test_a_lost_end_of_a_routed_partition_is_refused_wherever_it_begins(seed: int, worker: int) -> None:
    run = a_run(seed)
    log = run.log[worker]
    whole = tuples(run)
    held = seen(run).tuples
    refused = 0
    while log:
        del log[-1]
        result = seen(run)
        if result.tuples == held:
            continue  # only marks are gone, which the next session tells again
        refused += 1
        with pytest.raises(DataLossError, match="are gone"):
            refuse(result, whole)
    assert refused


def test_a_tuple_more_than_was_read_is_refused() -> None:
    run = a_run(1)
    with pytest.raises(DataLossError, match="something was routed twice"):
        seen(run).refuse_other(tuples(run) - 1)


def test_a_routed_topic_whose_first_frames_were_deleted_is_refused() -> None:
    topic = TopicState("routed", "id", 2, {0: 0, 1: 3}, {0: 9, 1: 9}, {})
    with pytest.raises(DataLossError, match=r"first frames of the routed partitions \[1\]"):
        read_routed(SETTINGS, topic)


WHOLE = st.none() | st.integers(-(2**63) + 1, 2**63 - 1)
RULINGS = st.tuples(st.sampled_from(["late", "ahead", "idle"]), WHOLE, WHOLE).map(lambda row: Ruling(*row))


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 30), RULINGS), max_size=20), st.integers(0, 31), st.integers(0, 31))
def test_rulings_are_those_that_were_given_by_offset(
    given_rulings: list[tuple[int, Ruling]], first: int, behind: int
) -> None:
    rulings, expected = Rulings(given_rulings), dict(given_rulings)
    assert [rulings.get(offset) for offset in range(32)] == [expected.get(offset) for offset in range(32)]
    assert list(rulings.between(first, behind)) == [
        (offset, expected[offset]) for offset in range(first, behind) if offset in expected
    ]
    ahead = {o: r.clock for o, r in sorted(expected.items()) if r.reason == "ahead" and r.clock is not None}
    offsets, clocks = rulings.clocks("ahead")
    assert (offsets.tolist(), clocks.tolist()) == (list(ahead), list(ahead.values()))
    assert rulings.behind == max(expected, default=-1) + 1


def test_what_an_order_skipped_is_no_ruling() -> None:
    rulings = Rulings([(3, Ruling("late", 1, None)), (5, Ruling("skipped", None, None, 9))])
    assert rulings.skips == {5: 9}
    assert rulings.behind == 10
    assert list(rulings.between(0, 20)) == [(3, Ruling("late", 1, None))]


def test_a_ruling_takes_few_bytes() -> None:
    many = 300_000
    tracemalloc.start()
    try:
        rulings = Rulings((offset, Ruling("late", 2**40, 2**40)) for offset in range(many))
        taken, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rulings.behind == many
    assert taken < 30 * many
    assert most < 100 * many
