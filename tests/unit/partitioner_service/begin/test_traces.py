"""What the frames of a query tell, once offsets are gone: a lost end is never taken for the whole."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, cast

import pytest

from evenflow.errors import DataLossError
from partitioner_service.begin.traces import Traces, read_routed
from partitioner_service.routing.session import totals
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
