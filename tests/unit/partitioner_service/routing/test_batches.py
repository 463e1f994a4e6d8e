"""Micro-batches in the data plane: what a batch holds, when it is cut, and that nothing depends on how it
was read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.keys import hash_keys
from evenflow.plans import Plan
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.wire import decode_frame
from evenflow.wire.frame import Frame
from evenflow.wire.markers import EndOfStream
from partitioner_service.block import Slice
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.routing.batches import Batches, CutClock, batching, gate
from partitioner_service.routing.gate import Straight
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.router import Router

Row = tuple[str, int]
"""Key and event time (ms)."""
MICRO_BATCH = ["prompt", "partly", "time-based", "dalton-batch"]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def settings_of(partitions: int = 1, **partitioner: Any) -> Settings:
    return load_settings(
        query={"key": "k", "time": "t", "window": "2s", "slide": "1s", "allowed_lateness": "100s"}
        | {"max_ahead_of_clock": "off"},
        input={"partitions": partitions},
        partitioner={"name": "prompt", "workers": 4, **partitioner},
    )


class Plane:
    """A gate with its router. released: the blocks that came out, in order."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.clock = settings, Clock()
        self.router = Router(settings, new_partitioner(settings))
        self.gate = gate(settings, self.router, clock=self.clock)
        first = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
        self.states = dict.fromkeys(range(settings.input_partitions), first)
        self.released: list[RoutedBlock] = []
        self.frames: list[Frame] = []
        self.workers: list[int] = []

    def read(self, *rows: Row | bytes, partition: int = 0) -> None:
        """Take these rows as one slice."""
        first = self.states[partition].offset
        values = [
            row if isinstance(row, bytes) else json.dumps({"k": row[0], "t": row[1]}).encode() for row in rows
        ]
        records = [record(first + number, value) for number, value in enumerate(values)]
        piece = Slice(partition, first, first + len(rows) - 1, values, records=records)
        self.keep(self.gate.take([piece], self))

    def move(self, states: Mapping[int, PartitionState]) -> None:
        self.states |= states

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.keep(self.gate.due(self.states))

    def keep(self, released: Iterable[RoutedBlock]) -> None:
        for routed in released:
            self.released.append(routed)
            for worker, data in routed.frames:
                self.frames.append(decode_frame(data, fingerprint=self.settings.fingerprint))
                self.workers.append(worker)
            self.gate.written()

    def batches(self) -> dict[int, dict[Row, list[int]]]:
        """By batch: the workers of each (key, pane), in the order of the frames."""
        result: dict[int, dict[Row, list[int]]] = defaultdict(lambda: defaultdict(list))
        for worker, frame in zip(self.workers, self.frames, strict=True):
            rows = zip(frame.batch.column(1).to_pylist(), frame.batch.column(0).to_pylist(), strict=True)
            for key, pane in rows:
                assert frame.header.batch is not None
                result[frame.header.batch][key.decode(), pane].append(worker)
        return {number: dict(rows) for number, rows in result.items()}


def record(offset: int, value: bytes) -> Any:
    return SimpleNamespace(offset=lambda: offset, value=lambda: value, key=lambda: None)


def second(number: int, keys: str = "aaabbc") -> list[Row]:
    """Tuples of these keys within a second of event time."""
    return [(key, 1000 * number + 10 * at) for at, key in enumerate(keys)]


@pytest.mark.parametrize("name", MICRO_BATCH)
def test_a_batch_of_event_time_is_planned_as_the_tuples_of_its_interval(name: str) -> None:
    plane = Plane(settings_of(name=name))
    rows = [row for number in range(4) for row in second(number, "aaaaaaabbcdefg")]
    plane.read(*rows)
    assert [routed.tuples for routed in plane.released] == [14, 14, 14]
    alone = new_partitioner(plane.settings)
    for number in range(3):
        keys, times = zip(*second(number, "aaaaaaabbcdefg"), strict=True)
        workers = alone.assign_batch(hash_keys(list(keys)), np.array(times, np.int64)).tolist()
        expected = defaultdict(list)
        for key, worker in sorted(zip(keys, workers, strict=True), key=lambda pair: pair[1]):
            expected[key, number].append(worker)
        assert plane.batches()[number] == expected
    assert plane.gate.holds


@given(st.lists(st.tuples(st.sampled_from("aabcde"), st.integers(0, 900)), max_size=60), st.data())
def test_how_the_input_was_cut_into_blocks_changes_no_frame(rows: list[Row], data: st.DataObject) -> None:
    # Event times that mostly grow, and are out of order by up to 900 ms.
    rows = [(key, 150 * number + time) for number, (key, time) in enumerate(rows)]
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=5).map(sorted))
    whole, cut = Plane(settings_of()), Plane(settings_of())
    if rows:
        whole.read(*rows)
    for low, high in pairwise([0, *cuts, len(rows)]):
        if low < high:
            cut.read(*rows[low:high])
    assert [frame.header.batch for frame in whole.frames] == [frame.header.batch for frame in cut.frames]
    assert [frame.batch.to_pylist() for frame in whole.frames] == [
        frame.batch.to_pylist() for frame in cut.frames
    ]
    assert whole.workers == cut.workers
    assert whole.states == cut.states
    assert whole.gate.released(whole.states) == cut.gate.released(cut.states)
    for plane in (whole, cut):
        plane.keep(plane.gate.empty(plane.states, why="end"))
    assert sum(routed.tuples for routed in whole.released) == len(rows)
    assert whole.batches() == cut.batches()
    assert whole.gate.released(whole.states) == whole.states


def test_the_pieces_of_later_intervals_wait_for_the_slowest_partition() -> None:
    plane = Plane(settings_of(partitions=2))
    plane.read(*second(0), *second(1), *second(2), partition=0)
    assert not plane.released
    plane.read(*second(0), partition=1)
    assert not plane.released
    plane.read(*second(1, "zz"), partition=1)
    assert [routed.tuples for routed in plane.released] == [12]
    assert {state.offset for state in plane.gate.released(plane.states).values()} == {6}
    plane.read(*second(3, "z"), partition=1)
    assert [routed.tuples for routed in plane.released] == [12, 8]
    plane.read(*second(4, "z"), partition=0)
    assert [routed.tuples for routed in plane.released] == [12, 8, 6]


def test_nobody_waits_for_partitions_that_sleep_or_have_ended() -> None:
    plane = Plane(settings_of(partitions=3))
    plane.read(*second(0), *second(1), partition=0)
    assert not plane.released
    plane.states[1] = replace(plane.states[1], asleep=True, idle_mark=0)
    plane.states[2] = plane.states[2].with_marker(EndOfStream(producer="t", tuples=0))
    assert plane.states[2].ended
    plane.pass_time(0)
    assert [routed.tuples for routed in plane.released] == [6]


def test_a_header_names_the_keys_that_its_batch_has_at_several_workers() -> None:
    plane = Plane(settings_of())
    plane.read(*second(0, "a" * 60 + "bcdefgh"), *second(1, "abcdefgh"), *second(2))
    first, other = plane.batches()[0], plane.batches()[1]
    assert len(set(first["a", 0])) == 4
    tables = {frame.header.batch: frame.header.split for frame in plane.frames if frame.batch.num_rows}
    assert tables[0] is not None
    assert tables[0].tolist() == hash_keys(["a"]).tolist()
    assert tables[1] is not None
    assert tables[1].tolist() == []
    assert all(len(set(workers)) == 1 for workers in other.values())


def test_a_plan_changes_the_number_of_data_blocks_where_a_batch_begins() -> None:
    plane = Plane(settings_of(workers=2, routed_partitions=4))
    plane.router.plans.learn(Plan(epoch=1, p=4, r=1, effective_from=2000), reached=0)
    for number in range(5):
        plane.read(*second(number, "abcdefgh"))
    workers = [
        {worker for result in batch.values() for worker in result} for batch in plane.batches().values()
    ]
    assert workers == [{0, 1}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2, 3}]
    assert [frame.header.epoch for frame in plane.frames if frame.batch.num_rows] == [0] * 4 + [1] * 8


@pytest.mark.parametrize("name", [*MICRO_BATCH, "hashing", "shuffle", "pkg", "cam", "evenflow"])
@pytest.mark.parametrize("rows", [second(0, "a" * 50), [], second(0, "b"), second(0, "abcdefghij" * 3)])
def test_a_batch_of_processing_time_holds_what_came_up_to_its_cut(name: str, rows: list[Row]) -> None:
    plane = Plane(settings_of(name=name, batch_interval=2000, batch_clock="processing", batch_release="off"))
    if rows:
        plane.read(*rows)
    plane.pass_time(1.9)
    assert not plane.released
    assert plane.gate.reading(50_000, 5.0) == (50_000, pytest.approx(0.1))
    plane.pass_time(0.2)
    assert sum(routed.tuples for routed in plane.released) == len(rows)
    assert plane.gate.released(plane.states) == plane.states
    plane.pass_time(10.0)
    assert len(plane.released) == bool(rows)


def test_an_interval_may_be_longer_than_a_transaction_because_nothing_is_written_before_its_end() -> None:
    plane = Plane(settings_of(batch_interval=60_000, batch_clock="processing"))
    assert plane.settings.partitioner.transaction_timeout < 60_000
    for number in range(50):
        plane.read(*second(number))
        plane.pass_time(1.0)
    assert not plane.released
    plane.pass_time(10.5)
    assert [routed.tuples for routed in plane.released] == [300]


def test_rejected_records_come_with_the_batch_in_which_they_stand() -> None:
    plane = Plane(settings_of())
    plane.read(*second(0, "ab"), b"{", *second(0, "c"), b"[]", *second(1, "ab"), b"null", *second(2, "a"))
    shown = [
        [(piece.slice.records[at].value(), group.reason) for at in group.positions.tolist()]
        for routed in plane.released
        for piece in routed.pieces
        for group in piece.rejections
    ]
    assert shown == [[(b"{", "unreadable"), (b"[]", "unreadable")], [(b"null", "unreadable")]]
    assert [(routed.read, routed.tuples) for routed in plane.released] == [(5, 3), (3, 2)]


def test_records_without_a_tuple_in_time_do_not_wait_for_a_batch() -> None:
    plane = Plane(settings_of())
    plane.read(b"{", b"[]")
    assert [(routed.read, routed.tuples) for routed in plane.released] == [(2, 0)]
    assert not plane.gate.holds


def test_a_batch_that_takes_too_much_memory_is_cut_and_counted() -> None:
    plane = Plane(settings_of(batch_bytes=1_000_000))
    most = 0
    for at in range(300):
        plane.read(*((f"{'k' * 1_000}{at}-{number}", at) for number in range(20)))
        state = plane.gate.state()
        assert state is not None
        most = max(most, state.held_bytes)
    assert state.cut_short == {"memory": len(plane.released)}
    assert len(plane.released) >= 5
    assert most <= 1_000_000


def test_a_partition_that_runs_ahead_by_more_than_memory_holds_is_routed_before_its_time() -> None:
    plane = Plane(settings_of(partitions=2, batch_bytes=1_000_000))
    plane.read(*second(0, "ab"), partition=1)
    for number in range(100):
        plane.read(*((f"{'k' * 1_000}{at}", 1000 * number) for at in range(50)), partition=0)
    state = plane.gate.state()
    assert state is not None
    assert state.held_bytes <= 1_000_000
    plane.keep(plane.gate.empty(plane.states, why="end"))
    assert sum(routed.tuples for routed in plane.released) == 5_002
    offsets = [
        row for routed in plane.released for piece in routed.pieces for row in [piece.offsets] if row[0] == 0
    ]
    assert [first for _, first, _ in offsets[1:]] == [last + 1 for _, _, last in offsets[:-1]]


def test_a_dropped_batch_is_read_again_and_counts_once() -> None:
    plane, plain = Plane(settings_of()), Plane(settings_of())
    plane.read(*second(0), *second(1), *second(2, "aaa"))
    committed = plane.gate.released(plane.states)
    plane.gate.drop()
    plane.states = dict(committed)
    assert not plane.gate.holds
    plane.read(*second(2, "aaa"), *second(3))
    plain.read(*second(0), *second(1), *second(2, "aaa"), *second(3))
    assert plane.batches() == plain.batches()


def test_what_was_committed_signed_stays_signed_whether_it_is_held_or_not() -> None:
    plane = Plane(settings_of(partitions=2))
    plane.read(*second(0), *second(1), partition=0)
    plane.read(*second(0), *second(1, "a"), partition=1)
    signed = plane.router.session.signed(plane.gate.released(plane.states))
    plane.move(plane.gate.committed(signed))
    assert plane.gate.released(plane.states) == signed
    # The working states stand behind what is held.
    assert [state.offset for state in plane.states.values()] == [12, 7]


# ---- the clock that cuts batches


def test_a_batch_is_cut_as_long_before_the_beat_as_the_slowest_of_the_last_ones_took() -> None:
    clock = Clock()
    beat = CutClock(10.0, release_early=True, clock=clock)
    for took, release in [(0.2, 0.2), (0.1, 0.2), (0.5, 0.5), (99.0, 5.0)]:
        beat.took(took)
        assert beat.release == pytest.approx(release)
    for _ in range(8):
        beat.took(0.05)
    assert beat.release == pytest.approx(0.05)
    assert beat.due_in == pytest.approx(9.95)
    late = CutClock(10.0, release_early=False, clock=clock)
    late.took(3.0)
    assert late.release == 0


def test_beats_that_were_missed_are_left_out_and_the_others_stay_where_they_are() -> None:
    clock = Clock()
    beat = CutClock(2.0, release_early=False, clock=clock)
    assert beat.beat == 1_002.0
    clock.now = 1_002.5
    assert beat.cut() == 1_002.0
    assert beat.beat == 1_004.0
    clock.now = 1_013.0
    assert beat.cut() == 1_004.0
    assert beat.beat == 1_014.0
    clock.now = 1_013.9
    assert beat.cut() == 1_014.0
    assert beat.beat == 1_016.0
    clock.now = 1_016.0
    beat.cut()
    assert beat.beat == 1_018.0


def test_times_of_arrival_lie_within_the_interval() -> None:
    clock = Clock()
    beat = CutClock(2.0, release_early=True, clock=clock)
    assert beat.arrival() == 0
    clock.now += 1.5
    assert beat.arrival() == 1_500
    clock.now += 60
    assert beat.arrival() == 1_999


def test_a_read_takes_no_more_records_than_there_is_time_for_before_the_cut() -> None:
    plane = Plane(settings_of(batch_interval=2000, batch_clock="processing"))
    assert plane.gate.reading(50_000, 0.05) == (50_000, 0.05)
    plane.clock.now += 0.6
    plane.read(*second(0, "a" * 60))  # 10 ms a record
    assert plane.gate.reading(50_000, 0.05) == (1_000, 0.05)
    for _ in range(8):
        plane.gate.reading(50_000, 0.05)
        plane.clock.now += 0.01
        plane.read(*second(0, "a" * 1_000))  # 10 us a record
    most, wait = plane.gate.reading(200_000, 0.05)
    assert (most, wait) == (pytest.approx(132_000, abs=5), 0.05)
    plane.clock.now += 1.31
    assert plane.gate.reading(50_000, 0.05) == (1_000, pytest.approx(0.01))


def test_lateness_is_told_as_a_share_of_the_interval() -> None:
    plane = Plane(settings_of(batch_interval=2000, batch_clock="processing"))
    plane.read(*second(0))
    plane.clock.now += 2.0
    for routed in plane.gate.due(plane.states):
        assert routed.tuples == 6
        plane.clock.now += 0.5  # planning and framing
        plane.gate.written()
    state = plane.gate.state()
    assert state is not None
    assert state.last is not None
    assert (state.last.took_ms, state.last.late) == (pytest.approx(500), pytest.approx(0.25))
    assert state.release_ms == pytest.approx(500)
    assert (state.count, state.last.tuples, state.last.keys, state.held) == (1, 6, 3, 0)


# ---- settings


def test_partitioners_that_decide_tuple_by_tuple_have_batches_only_if_asked_to() -> None:
    assert batching(settings_of(name="hashing")) is None
    assert isinstance(Plane(settings_of(name="hashing")).gate, Straight)
    assert isinstance(Plane(settings_of(name="hashing", batch_interval=500)).gate, Batches)
    how = batching(settings_of(name="prompt"))
    assert how is not None
    assert (how.interval, how.clock) == (1_000, "event")


def test_a_batch_of_event_time_must_divide_the_slide() -> None:
    with pytest.raises(ConfigError, match=r"batch_interval \(300 ms\) must divide the slide \(1000 ms\)"):
        settings_of(batch_interval=300)
    settings_of(batch_interval=300, batch_clock="processing")


def test_a_batch_of_processing_time_needs_a_length() -> None:
    with pytest.raises(ConfigError, match="batch_clock = 'processing' needs batch_interval"):
        settings_of(batch_clock="processing")


def test_tuples_in_batches_follow_the_plan_one_by_one_where_the_partitioner_decides_so() -> None:
    plane = Plane(settings_of(name="shuffle", workers=2, routed_partitions=4, batch_interval=1000))
    plane.router.plans.learn(Plan(epoch=1, p=4, r=1, effective_from=2000), reached=0)
    plane.read(*second(0, "abcdefgh"), *second(2, "abcdefgh"), *second(3))
    assert [frame.header.epoch for frame in plane.frames if frame.batch.num_rows] == [0] * 2 + [1] * 4


def test_what_the_fallback_of_partly_plans_is_counted_and_other_partitioners_have_none() -> None:
    said = {}
    for name in ("partly", "prompt"):
        plane = Plane(settings_of(name=name, workers=4))
        plane.read(*(row for number in range(4) for row in second(number, "abcd")))
        state = plane.gate.state()
        assert state is not None
        said[name] = state.by_fallback, plane.router.plans.partitioner.by_fallback
    assert said["prompt"] == (None, None)
    assert said["partly"][0] == said["partly"][1]
    assert said["partly"][0] in range(4)


@pytest.mark.parametrize("step", [86_400.0, -86_400.0])
def test_a_step_of_the_wall_clock_moves_no_beat(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    walls = iter(1_700_000_000.0 + step * number for number in range(10**6))
    monkeypatch.setattr("time.time", lambda: next(walls))
    plane = Plane(settings_of(batch_clock="processing", batch_interval=1_000))
    for number in range(3):
        plane.read(*second(number))
        plane.pass_time(0.4)
        assert len(plane.released) == number
        plane.pass_time(0.6)
        assert len(plane.released) == number + 1


@pytest.mark.parametrize(
    "content", [None, b"", b"PK\x03\x04 no policy at all"], ids=["missing", "empty", "foreign"]
)
def test_a_policy_that_cannot_be_read_is_refused_before_anything_is_read(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "policy.evenflow"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match="policy"):
        new_partitioner(settings_of(name="partly", options={"policy": str(file)}))
