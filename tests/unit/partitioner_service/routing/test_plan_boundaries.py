"""A plan takes over on its slide boundary, in mid-block where it lies there, and results do not notice."""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError
from evenflow.partitioners import create
from evenflow.plans import Plan, Schedule
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.twostep import Layout, combine_task, reduce
from evenflow.wire import decode_frame
from evenflow.wire.frame import Frame
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.plans_by_hand import publish
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.planned_partitioner import furthest
from partitioner_service.routing.router import Router
from tests.examples import examples
from tests.unit.twostep.pipe import Dict

WORKERS, ROUTED = 2, 6
"""Workers in use at first, and the most there can be. Each has a partition, unless a test says less."""


def make_settings(partitions: int = 2, **partitioner: Any) -> Settings:
    return load_settings(
        query={"key": "k", "time": "t", "window": "4s", "slide": "1s", "allowed_lateness": "60s"},
        input={"partitions": partitions},
        partitioner={"workers": WORKERS, "max_workers": ROUTED, "routed_partitions": ROUTED, **partitioner},
    )


class Instance:
    """A router with its partitions, and the frames of each routed partition."""

    def __init__(self, settings: Settings, *, rule: str = "shuffle", epoch: int = 0) -> None:
        self.settings = settings
        self.router = Router(settings, create(rule, workers=WORKERS), epoch=epoch)
        self.states = {
            p: PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
            for p in range(settings.input_partitions)
        }
        self.topic: list[list[bytes]] = [[] for _ in range(settings.routed_partitions)]
        self.sent = 0

    def learn(self, epoch: int, p: int, begins: int | None = None) -> None:
        plan = (
            Plan(epoch=epoch, p=p, r=1)
            if begins is None
            else Plan(epoch=epoch, p=p, r=1, effective_from=begins)
        )
        self.router.plans.learn(plan, reached=furthest(self.states))

    def route(self, times: dict[int, list[int]], *, end: bool = False) -> RoutedBlock:
        """What these event times (ms) by partition become; each tuple has a key of its own."""
        slices = []
        for partition, stamps in times.items():
            first = self.states[partition].offset
            rows = [{"k": f"{self.sent + n}-{t}", "t": t} for n, t in enumerate(stamps)]
            self.sent += len(rows)
            values: list[bytes | None] = [json.dumps(row).encode() for row in rows]
            markers = {len(values): EndOfStream(producer="p", tuples=0)} if end else {}
            values += [None] * len(markers)
            slices.append(Slice(partition, first, first + len(values) - 1, values, markers=markers))
        return self.router.route(slices, self.states)

    def read(self, times: dict[int, list[int]], *, end: bool = False) -> list[Frame]:
        """Route and commit; the frames with tuples, in the order of their workers."""
        routed = self.route(times, end=end)
        self.states.update(routed.states)
        for worker, data in routed.frames:
            self.topic[worker].append(data)
        frames = [decode_frame(data, fingerprint=self.settings.fingerprint) for _, data in routed.frames]
        return [frame for frame in frames if frame.batch.num_rows]


def times_by_epoch(frames: list[Frame]) -> dict[int, list[int]]:
    result: dict[int, list[int]] = {}
    for frame in frames:
        times = [int(key.split(b"-")[1]) for key in frame.batch.column(1).to_pylist()]
        result[frame.header.epoch] = sorted(result.get(frame.header.epoch, []) + times)
    return result


def test_tuples_from_the_boundary_on_go_by_the_new_plan_and_those_before_by_the_old_one() -> None:
    instance = Instance(make_settings())
    instance.learn(1, ROUTED, 5_000)
    times = list(range(4_000, 6_000, 100))
    frames = instance.read({0: times[::2], 1: times[1::2]})
    assert times_by_epoch(frames) == {0: times[:10], 1: times[10:]}
    assert (instance.router.plans.epoch, instance.router.plans.partitioner.workers) == (1, ROUTED)


def test_the_tuples_of_two_plans_for_one_worker_are_parts_of_one_frame() -> None:
    instance = Instance(make_settings(partitions=1))
    instance.learn(1, 1, 5_000)
    frames = instance.read({0: [4_800, 4_900, 5_000, 5_100]})
    shown = [(f.header.epoch, f.part, f.parts, f.batch.num_rows) for f in frames]
    assert shown == [(0, 0, 2, 1), (1, 1, 2, 2), (0, 0, 1, 1)]
    assert len({frame.header.offsets.tobytes() for frame in frames}) == 1


def test_only_the_last_part_tells_and_a_large_share_is_cut_within_its_plan() -> None:
    instance = Instance(make_settings(partitions=1, frame_bytes=1_000), rule="hashing")
    instance.learn(1, 1, 5_000)
    instance.learn(2, 1, 6_000)
    frames = [f for f in instance.read({0: list(range(4_000, 7_000, 5))}, end=True) if f.parts > 2]
    assert all(frame.header.marks.size == 0 for frame in frames if frame.part + 1 < frame.parts)
    assert frames[-1].part + 1 == frames[-1].parts or len(frames[-1].header.marks)
    mine = [frame for frame in frames if frame.parts == max(f.parts for f in frames)]
    assert [frame.part for frame in mine] == list(range(mine[0].parts))
    assert [f.header.epoch for f in mine] == sorted(f.header.epoch for f in mine)
    assert {f.header.epoch for f in mine} == {0, 1, 2}


def test_an_older_tuple_that_comes_later_goes_by_the_plan_in_force_by_then() -> None:
    instance = Instance(make_settings())
    instance.learn(1, 1, 5_000)
    instance.read({0: [5_200]})
    assert times_by_epoch(instance.read({1: [3_000, 4_999, 5_300]})) == {1: [3_000, 4_999, 5_300]}


def test_a_plan_that_is_read_late_takes_effect_at_the_next_slide() -> None:
    instance = Instance(make_settings())
    instance.read({0: [7_200]})
    instance.learn(1, 1, 5_000)
    assert times_by_epoch(instance.read({0: [7_300, 7_999, 8_000]})) == {0: [7_300, 7_999], 1: [8_000]}


def test_what_an_aborted_transaction_routed_is_routed_again_with_the_plan_that_took_over() -> None:
    instance = Instance(make_settings(partitions=1))
    instance.read({0: [4_000]})
    instance.learn(1, 1, 5_000)
    block = {0: [4_500, 5_500]}
    before = dict(instance.states)
    aborted = instance.route(block)
    assert {p: s.max_time for p, s in aborted.states.items()} == {0: 5_500}
    instance.router.forget_what_was_told()
    instance.router.plans.continue_from(furthest(before))
    assert times_by_epoch(instance.read(block)) == {1: block[0]}
    instance.learn(2, 3, 5_000)
    assert times_by_epoch(instance.read({0: [5_999, 6_000]})) == {1: [5_999], 2: [6_000]}


def test_at_a_start_what_should_be_in_force_at_the_reached_time_applies_at_once() -> None:
    instance = Instance(make_settings(partitions=1))
    plans = [Plan(epoch=n, p=min(n, 4), r=1, effective_from=n * 1_000) for n in (1, 2, 3, 9)]
    instance.router.plans.learn_published(plans)
    instance.states[0] = replace(instance.states[0], first_time=0, max_time=3_400)
    instance.router.plans.continue_from(furthest(instance.states))
    assert times_by_epoch(instance.read({0: [2_900, 3_500]})) == {3: [2_900, 3_500]}
    assert instance.router.plans.upcoming is not None
    assert instance.router.plans.upcoming.begins == 9_000


def test_a_restart_with_learned_state_of_a_later_plan_does_not_go_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance(make_settings(partitions=1), epoch=7)
    instance.router.plans.learn_published([Plan(epoch=n, p=1, r=1) for n in (1, 6)])
    assert "holds no plan of epoch 7, which was in force before: plans count from epoch 8 on" in caplog.text
    assert times_by_epoch(instance.read({0: [100]})) == {7: [100]}
    instance.learn(8, 1)
    assert times_by_epoch(instance.read({0: [2_000]})) == {8: [2_000]}


def test_a_plan_for_the_workers_that_there_are_moves_on_the_epoch_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    instance = Instance(make_settings())
    instance.read({0: [100, 200, 300]})
    loads = instance.router.plans.partitioner.observe().loads.tolist()
    instance.learn(1, WORKERS, 1_000)
    instance.read({0: [1_000]})
    assert sum(instance.router.plans.partitioner.observe().loads) == sum(loads) + 1
    assert "plan epoch 1 takes over from 1970-01-01 00:00:01 UTC on: 2 workers" in caplog.text
    instance.learn(2, 5)
    instance.read({0: [2_000]})
    assert "plan epoch 2 takes over from 1970-01-01 00:00:02 UTC on: 5 workers instead of 2" in caplog.text


@pytest.mark.parametrize("far", [10**21, -(10**21), -(2**62)])
def test_a_plan_by_hand_from_no_event_time_on_is_refused(far: int) -> None:
    with pytest.raises(ConfigError, match="no event time"):
        publish(make_settings(), workers=1, effective_from=far - far % 1_000)


def test_a_reader_that_never_gets_a_tuple_remembers_few_plans() -> None:
    schedule = Schedule(slide_ms=1_000)
    for epoch in range(1, 1_000):
        schedule.learn(Plan(epoch=epoch, p=1, r=1, effective_from=epoch * 1_000), reached=None)
    assert len(schedule.upcoming) == 16
    assert schedule.pass_to(10**9) == Plan(epoch=999, p=1, r=1, effective_from=999_000)


BLOCKS = st.lists(
    st.dictionaries(st.integers(0, 1), st.lists(st.integers(0, 9_000), min_size=1, max_size=12), min_size=1,
    max_size=2),
    min_size=1, max_size=6,
)  # fmt: skip
PLANS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, ROUTED), st.one_of(st.none(), st.integers(0,
    9).map(lambda n: n * 1_000))),
    max_size=6,
)  # fmt: skip


@given(
    blocks=BLOCKS,
    plans=PLANS,
    batches=st.integers(1, 4),
    frame_bytes=st.sampled_from([1_000, 1_000_000]),
    partitions=st.integers(1, ROUTED),
)
@examples(150)
def test_however_the_stream_is_cut_and_whenever_a_plan_is_learned_each_tuple_goes_by_a_plan_of_the_schedule(
    blocks: list[dict[int, list[int]]],
    plans: list[tuple[int, int, int | None]],
    batches: int,
    frame_bytes: int,
    partitions: int,
) -> None:
    """plans: before which block each is learned, p, and from when on. partitions: which the workers share."""
    instance = Instance(make_settings(frame_bytes=frame_bytes, routed_partitions=partitions))
    schedule, p_of, last = Schedule(slide_ms=1_000), {0: WORKERS}, 0
    for number, block in enumerate(blocks):
        for epoch, (when, p, begins) in enumerate(plans, start=1):
            if when == number:
                plan = Plan(epoch=epoch, p=p, r=1, **({} if begins is None else {"effective_from": begins}))
                schedule.learn(plan, reached=furthest(instance.states))
                p_of[epoch] = p
                instance.learn(epoch, p, begins)
        frames = instance.read(block)
        expected: dict[int, list[int]] = {}
        for time in sorted(time for times in block.values() for time in times):
            schedule.pass_to(time)
            expected.setdefault(schedule.current.epoch if schedule.current else 0, []).append(time)
        assert times_by_epoch(frames) == expected
        assert min(expected) >= last
        last = max(expected)
    instance.read({0: [], 1: []}, end=True)
    assert_monotone_and_in_range(instance, p_of)
    assert counted(instance, batches) == Counter(
        window
        for block in blocks for times in block.values() for time in times
        for window in range(time // 1_000 - 3, time // 1_000 + 1)
    )  # fmt: skip


def assert_monotone_and_in_range(instance: Instance, p_of: dict[int, int]) -> None:
    """Of each partition: epochs never fall. Of each worker: it has tuples of no plan that does not reach
    it.
    """
    for partition, topic in enumerate(instance.topic):
        frames = [decode_frame(data, fingerprint=instance.settings.fingerprint) for data in topic]
        assert all(a.header.epoch <= b.header.epoch for a, b in pairwise(frames))
        assert all(max(frame.workers(partition), default=0) < p_of[frame.header.epoch] for frame in frames)


def counted(instance: Instance, batches: int) -> Counter[int]:
    """(start of a window in slides) -> tuples, by combiner and reducer in so many micro-batches, cut
    anywhere.
    """
    settings = instance.settings
    plan, state = AggregatePlan.of(settings.query), Dict()
    layout = Layout(
        fingerprint=settings.fingerprint, topic_id="t", buckets=1, max_bytes=1_000_000,
        input_partitions=settings.input_partitions, routed_partitions=settings.routed_partitions,
        shared_by=settings.workers_per_partition,
    )  # fmt: skip
    outcome: Counter[int] = Counter()
    for number in range(batches):
        stretches = []
        for worker, topic in enumerate(instance.topic):
            cut = slice(len(topic) * number // batches, len(topic) * (number + 1) // batches)
            stretches.append((worker, list(enumerate(topic))[cut]))
        blobs = [blob.data for blob in combine_task(plan, layout, stretches)]
        result: pa.Table = reduce(plan, layout, state, blobs)
        starts = np.array(result["window_start"]) // 1_000
        for start, count in zip(starts.tolist(), result["count"].to_pylist(), strict=True):
            outcome[start] += count
    return outcome
