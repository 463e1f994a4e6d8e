"""Partitions that are held back: left alone where the fetcher can, and paused otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from partitioner_service.kafka.fetching import FetchControl

SETS = st.sets(st.integers(0, 4))


class Pauses:
    """Of a consumer only what it was told to pause and to resume."""

    def __init__(self) -> None:
        self.paused: set[int] = set()

    def pause(self, places: Iterable[TopicPartition]) -> None:
        now = {place.partition for place in places}
        assert now
        assert not now & self.paused
        self.paused |= now

    def resume(self, places: Iterable[TopicPartition]) -> None:
        now = {place.partition for place in places}
        assert now
        assert now <= self.paused
        self.paused -= now


class Leaving:
    """Of a fetcher only what it leaves alone. can: whether it can."""

    def __init__(self, *, can: bool) -> None:
        self.left: frozenset[int] = frozenset()
        self._can = can

    def leave(self, partitions: Collection[int]) -> frozenset[int]:
        self.left = frozenset(partitions) if self._can else frozenset()
        return frozenset() if self._can else frozenset(partitions)


@pytest.mark.parametrize("can", [True, False])
@given(steps=st.lists(st.tuples(SETS, SETS), max_size=6), absent=SETS)
def test_exactly_those_that_are_held_back_are_left_alone_or_paused(
    can: bool, steps: list[tuple[set[int], set[int]]], absent: set[int]
) -> None:
    """The consumer is told of no partition that it does not have, and of none twice."""
    consumer, fetcher = Pauses(), Leaving(can=can)
    fetching = FetchControl(consumer, fetcher, "in", lambda partitions: {})  # type: ignore[arg-type]
    fetching.absent = frozenset(absent)
    for hasty, stuck in steps:
        fetching.hold(hasty, stuck=stuck)
        assert fetching.paused == hasty | stuck
        assert (fetcher.left | consumer.paused) - absent == (hasty | stuck) - absent
        assert consumer.paused >= stuck - absent, "what is stuck would fail again and again"
        assert consumer.paused <= (stuck if can else hasty | stuck), "a pause throws away what was fetched"
    fetching.resume_all()
    assert (fetching.paused, fetcher.left, consumer.paused) == (set(), frozenset(), set())


def test_a_partition_that_is_left_alone_is_asked_for_its_end_once_a_second() -> None:
    now, questions = [0.0], list[set[int]]()

    def ask(partitions: Collection[int]) -> dict[int, int]:
        questions.append(set(partitions))
        return {}

    fetching = FetchControl(Pauses(), Leaving(can=True), "in", ask, clock=lambda: now[-1])  # type: ignore[arg-type]
    fetching.hold({1})
    now.append(0.5)
    fetching.hold({1})
    assert not questions
    now.append(1.0)
    fetching.hold({1})
    assert questions == [{1}]
