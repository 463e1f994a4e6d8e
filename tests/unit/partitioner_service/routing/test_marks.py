"""What every worker is told: the marks of all partitions of an instance, once a pane of the slowest one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.windows import END_MARK, NO_MARK, panes_closed_by
from evenflow.wire import decode_frame
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.routing.router import Router
from tests.examples import examples

WORKERS = 5


def make_settings(partitions: int = 3, **partitioner: object) -> Settings:
    return load_settings(
        query={"key": "k", "time": "t", "window": "4s", "slide": "1s"},
        input={"partitions": partitions},
        partitioner={"workers": WORKERS, **partitioner},
    )


class Instance:
    """A router with the states of its partitions, and what each worker was told and got."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.router = Router(settings, create("shuffle", workers=WORKERS))
        self.states = {
            p: PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
            for p in range(settings.input_partitions)
        }
        self.told: list[list[tuple[int, int, int]]] = [[] for _ in range(WORKERS)]
        self.tuples = 0

    def read(self, times: dict[int, list[int]], *, end: bool = False) -> int:
        """Route these event times (ms) by partition; how many frames tell."""
        slices = []
        for partition, stamps in times.items():
            first = self.states[partition].offset
            values: list[bytes | None] = [json.dumps({"k": str(t % 7), "t": t}).encode() for t in stamps]
            markers = {len(values): EndOfStream(producer="p", tuples=0)} if end else {}
            values += [None] * len(markers)
            slices.append(Slice(partition, first, first + len(values) - 1, values, markers=markers))
        routed = self.router.route(slices, self.states)
        self.states.update(routed.states)
        return self.hear(routed.frames)

    def hear(self, frames: list[tuple[int, bytes]]) -> int:
        tells = 0
        for worker, data in frames:
            frame = decode_frame(data, fingerprint=self.settings.fingerprint)
            self.tuples += frame.batch.num_rows
            tells += bool(len(frame.header.marks))
            self.told[worker] += frame.header.marks.tolist()
        return tells


def test_workers_are_told_once_the_slowest_partition_has_passed_a_pane() -> None:
    instance = Instance(make_settings())
    assert instance.read({0: [5_500], 1: [2_500]}) == 0, "partition 2 has had nothing yet"
    assert instance.read({2: [1_500]}) == WORKERS
    assert instance.told == [[(0, 5_500, 1), (1, 2_500, 1), (2, 1_500, 1)]] * WORKERS
    assert instance.read({0: [7_000], 1: [3_900]}) == 0, "the slowest is where it was"
    assert instance.read({2: [1_999]}) == 0, "no pane has ended"
    assert instance.read({2: [2_000]}) == WORKERS
    assert [told[-3:] for told in instance.told] == [[(0, 7_000, 2), (1, 3_900, 2), (2, 2_000, 3)]] * WORKERS


def test_a_block_is_told_of_in_few_frames_however_many_partitions_move() -> None:
    instance = Instance(make_settings(partitions=100))
    tells = [instance.read({p: [1_000 * n] for p in range(100)}) for n in range(1, 6)]
    assert tells == [WORKERS] * 5


def test_the_end_of_all_partitions_is_told_and_of_one_alone_it_waits_for_the_others() -> None:
    instance = Instance(make_settings(partitions=2))
    instance.read({0: [1_000], 1: [1_000]})
    assert instance.read({0: []}, end=True) == 0
    assert instance.read({1: []}, end=True) == WORKERS
    assert [told[-2:] for told in instance.told] == [[(0, END_MARK, 2), (1, END_MARK, 2)]] * WORKERS


def test_what_was_told_is_told_again_after_an_abort_or_a_rebalance() -> None:
    instance = Instance(make_settings(partitions=1))
    instance.read({0: [5_000]})
    assert instance.router.punctuate(instance.states) == []
    instance.router.forget_what_was_told()
    assert instance.hear(instance.router.punctuate(instance.states)) == WORKERS
    assert instance.router.punctuate(instance.states) == []
    assert instance.router.punctuate({}) == []


@examples(60)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 2), st.lists(st.integers(0, 20_000), max_size=8), min_size=1),
        max_size=12,
    )
)
def test_all_workers_know_up_to_the_pane_that_the_slowest_partition_has_closed(
    blocks: list[dict[int, list[int]]],
) -> None:
    instance = Instance(make_settings(frame_bytes=1_000))
    slide = instance.settings.query.slide_ms
    for block in blocks:
        instance.read({p: times for p, times in block.items() if times} or {0: [0]})
        true = [state.mark(instance.settings.query) for state in instance.states.values()]
        for told in instance.told:
            known = np.full(3, NO_MARK)
            for partition, mark, _ in told:
                assert mark >= known[partition], "a mark fell"
                known[partition] = mark
            assert panes_closed_by(known.min(), slide) == panes_closed_by(min(true), slide)
            assert (known <= true).all()
    assert instance.tuples == sum(state.routed for state in instance.states.values())


@pytest.mark.parametrize("sizes", [[3, 0, 2], [5], [0, 0, 4]])
def test_a_bad_record_is_rejected_where_it_stands_whatever_block_it_was_parsed_in(sizes: list[int]) -> None:
    instance = Instance(make_settings())
    slices = []
    for partition, size in enumerate(sizes):
        values: list[bytes | None] = [b'{"k":"a","t":%d}' % n for n in range(size)]
        values.insert(size // 2, b"{broken")
        slices.append(Slice(partition, 0, size, values))
    routed = instance.router.route(slices, instance.states)
    assert [(r.partition, r.positions.tolist(), r.reason) for r in routed.rejections] == [
        (partition, [size // 2], "unreadable") for partition, size in enumerate(sizes)
    ]
    assert {p: (s.read, s.routed, s.rejected) for p, s in routed.states.items()} == {
        partition: (size + 1, size, 1) for partition, size in enumerate(sizes)
    }
