"""How added partitions are taken in, step by step: the real loop, source, sink and `AddedPartitions` over a
small Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from evenflow.wire import decode_frame
from partitioner_service.begin.added_partitions import slowest_of
from tests.unit.partitioner_service import small_kafka as kafka
from tests.unit.partitioner_service.growing import GrowingRun
from tests.unit.partitioner_service.lossy import INPUTS, SETTINGS, WORKERS
from tests.unit.partitioner_service.member import Member


@pytest.fixture(autouse=True, scope="module")
def small_kafka() -> Iterator[None]:
    with kafka.reached():
        yield


class SteadyRun(GrowingRun):
    """Every partition has a tuple every half second. Nothing happens but what a test does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.calm = True
        self.kafka.meanwhile = lambda: None

    def _records(self) -> list[tuple[str, int]]:
        return [("abc"[time // 500 % 3], time) for time in range(0, 9_000, 500)]

    def instance(self) -> Member:
        """The only instance. It has begun its stint."""
        (member,) = self.members
        self.turn(member, 2)
        assert self.committed[0].session == member.session.number
        return member

    def turn(self, member: Member, steps: int = 1, *, seconds: float = 0.0) -> None:
        """Steps of this instance's loop, after so many seconds each."""
        for _ in range(steps):
            self.kafka.now += seconds
            member.loop.step()

    def two(self) -> tuple[Member, Member]:
        """One that owns partition 0, and one that owns the others. Both have begun their stints."""
        self.start()
        one, other = self.members
        self.share({one: [0], other: [1, 2]})
        self.turn(one, 2)
        self.turn(other, 2)
        return one, other

    def share(self, shares: dict[Member, list[int]]) -> None:
        for member in shares:
            member.consumer.revoke()
        self.kafka.rebalance({member.consumer: share for member, share in shares.items()})

    def slowest(self) -> int:
        return slowest_of(SETTINGS.query, self.committed)

    def inputs_told(self) -> int:
        """How many input partitions the last frame tells of."""
        _, data = max(frames[-1] for frames in self.log)
        return decode_frame(data, fingerprint=SETTINGS.fingerprint).header.input_partitions


def test_what_is_open_is_committed_before_the_look_because_it_may_have_told_a_later_mark() -> None:
    run = SteadyRun(Random(1))
    member = run.instance()
    while min(state.mark(SETTINGS.query) for state in member.states.values()) < 2_000:
        run.turn(member)
    assert member.sink.open_for is not None
    assert all(state.max_time is None for state in run.committed.values())
    told = min(state.mark(SETTINGS.query) for state in member.states.values())
    run.add()
    run.turn(member)
    assert set(run.taken_at.values()) == {told}
    # Each micro-batch is cut after one frame. So one of them ends right before the frames that take in.
    while any(run.consumed[routed] < len(run.log[routed]) for routed in range(WORKERS)):
        for routed in range(WORKERS):
            whole, run.log[routed] = run.log[routed], run.log[routed][: run.consumed[routed] + 1]
            run.micro_batch(all_of_it=True)
            run.log[routed] = whole
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected


def test_an_instance_without_the_slowest_partition_takes_nothing_in() -> None:
    run = SteadyRun(Random(2))
    one, other = run.two()
    run.turn(other, 9, seconds=2.0)
    run.add()
    assert run.slowest() == 0
    run.turn(other, 5, seconds=2.0)
    assert len(run.committed) == INPUTS
    assert other.source.added
    run.turn(one, seconds=2.0)
    assert len(run.committed) > INPUTS
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected


def test_an_aborted_taking_in_goes_back_whole_and_is_done_again() -> None:
    run = SteadyRun(Random(3))
    member = run.instance()
    run.turn(member, 5, seconds=2.0)
    before, record = dict(run.committed), run.kafka.record

    def refuse_the_record() -> None:
        if member.producer.record is not None:
            member.producer.refuses = True

    run.kafka.meanwhile = refuse_the_record
    run.add()
    new = frozenset(range(INPUTS, len(run.input)))
    committed_before = len(run.log[0])
    run.turn(member, seconds=0.5)
    run.kafka.meanwhile = lambda: None
    assert run.kafka.record == record
    assert run.committed.keys() == before.keys()
    assert member.states == run.committed
    assert (member.source.partition_count, member.source.added) == (INPUTS, new)
    run.turn(member, seconds=0.1)
    member.loop.commit()
    assert len(run.log[0]) > committed_before
    assert run.inputs_told() == INPUTS
    run.turn(member, seconds=2.0)
    assert run.committed.keys() - before.keys() == new
    assert run.kafka.recorded == len(run.committed)
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected


def test_a_growth_that_two_instances_have_seen_is_taken_in_once() -> None:
    run = SteadyRun(Random(4))
    one, other = run.two()
    run.share({one: [0], other: [1, 2]})  # commits what is open
    while run.slowest() != 0:
        run.turn(other, seconds=2.0)
    run.add()
    run.share({one: [0, *range(INPUTS, len(run.input))], other: [1, 2]})
    run.turn(other, 5, seconds=2.0)
    assert other.source.added
    assert run.slowest() == 0
    run.turn(one, 20, seconds=2.0)
    record = run.kafka.record
    assert run.kafka.recorded == len(run.committed) == len(run.input)
    # Now the other one has the slowest partition, and still knows of the growth that it has seen.
    assert run.slowest() in other.states
    assert other.source.added
    run.turn(other, seconds=2.0)
    assert not other.source.added
    assert run.kafka.record == record
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected


def test_an_instance_that_lost_the_slowest_partition_after_its_look_commits_nothing() -> None:
    run = SteadyRun(Random(5))
    one, other = run.two()
    run.turn(other, 9, seconds=2.0)
    run.add()
    growth = len(run.input)

    def another_takes_over() -> None:
        """`one` has looked, and writes what takes in. It is no member any more, and `other` gets all."""
        if one.producer.record is not None:
            run.kafka.meanwhile = lambda: None
            other.consumer.revoke()
            run.kafka.rebalance({other.consumer: [*range(INPUTS)]}, away=[one.consumer])
            run.turn(other, 2, seconds=2.0)
            assert len(run.committed) == growth

    run.kafka.meanwhile = another_takes_over
    run.turn(one, seconds=2.0)
    assert run.kafka.recorded == len(run.committed) == growth
    assert one.source.added
    assert {state.session for p, state in run.committed.items()} == {other.session.number}
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected
