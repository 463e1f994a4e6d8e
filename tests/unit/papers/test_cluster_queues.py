"""Figures 13 and 14 of 002: queues of messages, tick by tick."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.paper_002.cluster import ticks

WORKERS = 3


def plainly(workers: list[int], sources: int, pending: int, pace: int) -> tuple[list[int], list[int]]:
    """The same, written with queues of messages."""
    sent, ended = [-1] * len(workers), [-1] * len(workers)
    queues: list[deque[int]] = [deque() for _ in range(WORKERS)]
    left = [deque(range(source, len(workers), sources)) for source in range(sources)]
    unfinished = [0] * sources
    tick = 0
    while True:
        turns = [(tick + turn) % sources for turn in range(sources)] * pending
        sending = 0
        for source in turns:
            if sending == pace or unfinished[source] == pending:
                continue
            if not left[source]:
                return sent, ended
            message = left[source].popleft()
            sent[message] = tick
            queues[workers[message]].append(message)
            unfinished[source] += 1
            sending += 1
        tick += 1
        for message in [queue.popleft() for queue in queues if queue]:
            ended[message] = tick
            unfinished[message % sources] -= 1


@given(
    st.lists(st.integers(0, WORKERS - 1), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_it_plays_as_plain_queues_do(workers: list[int], sources: int, pending: int, pace: int) -> None:
    sent, ended = ticks(
        np.array(workers, np.int32), sources=sources, workers_count=WORKERS, pending=pending, pace=pace
    )
    expected = plainly(workers, sources, pending, pace)
    assert (sent.tolist(), ended.tolist()) == expected
    done = ended >= 0
    assert (ended[done] > sent[done]).all()
    for worker in range(WORKERS):
        mine = np.sort(ended[done & (np.array(workers) == worker)])
        assert (np.diff(mine) > 0).all(), "a worker finishes one message a tick"
    assert (ended[done] - sent[done] <= sources * pending).all(), (
        "no queue is longer than what may be pending"
    )


def test_one_worker_for_all_takes_a_tick_for_each_message_and_all_workers_share_evenly() -> None:
    sent, ended = ticks(np.zeros(90, np.int32), sources=3, workers_count=WORKERS, pending=2)
    done = ended >= 0
    assert done.sum() == ended.max()
    assert np.median((ended - sent)[done]) == pytest.approx(6), "six messages are pending"
    sent, ended = ticks(
        (np.arange(90) % WORKERS).astype(np.int32), sources=3, workers_count=WORKERS, pending=2
    )
    assert (ended >= 0).sum() == WORKERS * ended.max()
