"""The router's frames with forwarding: what is finished at home and what is reduced is together each window once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as thoroughness
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.markers import EndOfStream
from evenflow.partitioners import create
from evenflow.progress import delay
from evenflow.twostep import Layout, reduce
from evenflow.twostep.home import Homes, Worker, forward_task
from evenflow.wire import decode_frame
from evenflow.wire.frame import Frame
from partitioner_service.route import Routed, Router, Slice
from tests.unit.partitioner_service.test_plan_boundaries import (
    BLOCKS,
    PLANS,
    ROUTED,
    WORKERS,
    Instance,
    make_settings,
)
from tests.unit.twostep.pipe import Dict

BUCKETS = 2


class Forwarding(Instance):
    """An instance that announces. Its keys are few, so that workers share them."""

    def __init__(self, rule: str, **options: Any) -> None:
        super().__init__(make_settings(**options), rule=rule)
        self.router = Router(self.settings, create(rule, workers=WORKERS), forwarding=True)
        for worker, data in self.router.begin_stint(self.states, {}, inputs=self.settings.input_partitions):
            self.topic[worker].append(data)

    def route(self, times: dict[int, list[int]], *, end: bool = False) -> Routed:
        """What these event times (ms) by partition become, with few keys."""
        slices = []
        for partition, stamps in times.items():
            first = self.states[partition].offset
            values: list[bytes | None] = [b'{"k":"%s","t":%d}' % (key_at(time), time) for time in stamps]
            markers = {len(values): EndOfStream(producer="p", tuples=0)} if end else {}
            values += [None] * len(markers)
            slices.append(Slice(partition, first, first + len(values) - 1, values, markers=markers))
        return self.router.route(slices, self.states)

    def windows(self, batches: int) -> tuple[Counter[tuple[int, bytes]], Counter[tuple[int, bytes]]]:
        """Tuples by (first pane, key) of the windows that homes have finished, and of those that reducers have emitted."""
        settings = self.settings
        plan = AggregatePlan.of(settings.query)
        layout = Layout(
            fingerprint=settings.fingerprint,
            topic_id="t",
            input_partitions=settings.input_partitions,
            routed_partitions=ROUTED,
            buckets=BUCKETS,
            max_bytes=1_000_000,
        )
        homes = Homes(seed=settings.partitioner.seed, delay=delay(settings.query))
        blobs: list[list[bytes]] = [[] for _ in range(BUCKETS)]
        finished: Counter[tuple[int, bytes]] = Counter()
        for routed, topic in enumerate(self.topic):
            state, frames = Dict(), list(enumerate(topic))
            for number in range(batches):
                some = frames[number * len(frames) // batches : (number + 1) * len(frames) // batches]
                made = forward_task(Worker(plan=plan, layout=layout, homes=homes, routed=routed), state, some)
                for table in made.results:
                    finished += _counted(table.to_pylist(), finished)
                for part in made.blobs:
                    blobs[part.bucket].append(part.data)
        reduced: Counter[tuple[int, bytes]] = Counter()
        for data in blobs:
            reduced += _counted(reduce(plan, layout, Dict(), data).to_pylist(), reduced)
        return finished, reduced


def key_at(time: int) -> bytes:
    """The key of the tuples of this time."""
    return b"k%d" % (time % 3)


def _counted(rows: list[dict[str, Any]], known: Counter[tuple[int, bytes]]) -> Counter[tuple[int, bytes]]:
    (label,) = {*rows[0]} - {"window_start", "window_end", "key"} if rows else {"n"}
    found = Counter({(row["window_start"] // 1_000, row["key"]): row[label] for row in rows})
    assert len(found) == len(rows)
    assert not found.keys() & known.keys()
    return found


@pytest.mark.parametrize("rule", ["hashing", "shuffle", "d-choices"])
@given(blocks=BLOCKS, plans=PLANS, batches=st.integers(1, 4))
@thoroughness(max_examples=40, deadline=None)
def test_each_window_comes_once_however_the_stream_is_cut_and_whenever_a_plan_is_learned(
    rule: str,
    blocks: list[dict[int, list[int]]],
    plans: list[tuple[int, int, int | None]],
    batches: int,
) -> None:
    """plans: before which block each is learned, p, and from when on."""
    instance = Forwarding(rule)
    tuples: list[tuple[int, bytes]] = []
    for number, block in enumerate(blocks):
        for epoch, (when, p, begins) in enumerate(plans, start=1):
            if when == number:
                instance.learn(epoch, p, begins)
        tuples += [(time, key_at(time)) for times in block.values() for time in times]
        instance.read(block)
    instance.read({0: [], 1: []}, end=True)
    finished, reduced = instance.windows(batches)
    assert not finished.keys() & reduced.keys()
    assert finished + reduced == Counter(
        (window, key) for time, key in tuples for window in range(time // 1_000 - 3, time // 1_000 + 1)
    )
    if rule == "hashing" and not plans:
        assert not reduced


def test_whoever_hears_of_a_block_hears_the_plan_at_its_end() -> None:
    """Also a worker whose last tuples of the block are of an older plan."""
    instance = Forwarding("hashing", partitions=1)
    instance.learn(1, 1, 5_000)
    instance.read({0: [4_800, 4_801, 4_802, 5_000]})
    for topic in instance.topic:
        frames = [decode_frame(data, fingerprint=instance.settings.fingerprint) for data in topic]
        told = [frame.header.epoch for frame in frames if len(frame.header.told)]
        assert told == [0, 1]
    assert {frame.header.epoch for frame in tuples_of(instance, worker=1)} == {0}


def tuples_of(instance: Forwarding, *, worker: int) -> list[Frame]:
    frames = [
        decode_frame(data, fingerprint=instance.settings.fingerprint) for data in instance.topic[worker]
    ]
    return [frame for frame in frames if frame.batch.num_rows and not frame.header.announces]
