"""Workers that share a routed partition: which partition each has, and which rows of a frame are whose."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.wire import decode_frame
from partitioner_service.block import Slice
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.routing.router import Router
from partitioner_service.routing.sharing import Sharing
from tests.examples import examples


def settings_of(workers: int, partitions: int, **partitioner: object) -> Settings:
    return load_settings(
        query={"key": "k", "time": "t", "window": "4s", "slide": "1s", "aggregates": {"s": "sum(v)"}},
        input={"partitions": 1},
        partitioner={
            "name": "shuffle",
            "workers": workers,
            "routed_partitions": min(partitions, workers),
            **partitioner,
        },
    )


@given(st.integers(1, 1_024), st.integers(1, 1_024), st.integers(1, 17))
@example(1_024, 1_023, 17)
def test_every_cell_has_a_rank_of_its_own_among_those_of_its_partition(
    workers: int, partitions: int, stretches: int
) -> None:
    sharing = Sharing(workers, min(workers, partitions))
    ranks = sharing.ranks(stretches).astype(int)
    assert len(set(ranks.tolist())) == workers * stretches, "16 bits are enough"
    worker, stretch = np.divmod(np.arange(workers * stretches), stretches)
    share, place = np.divmod(ranks, sharing.places)
    assert (share // stretches == worker % sharing.partitions).all()
    assert (share % stretches == stretch).all()
    assert (place == worker // sharing.partitions).all()


@given(
    times=st.lists(st.integers(0, 3_000), min_size=1, max_size=60),
    workers=st.integers(1, 9),
    partitions=st.integers(1, 9),
    frame_bytes=st.sampled_from([1_000, 1_000_000]),
)
@examples(150)
def test_each_worker_gets_its_tuples_in_order_whatever_partition_it_shares_and_however_frames_are_cut(
    times: list[int], workers: int, partitions: int, frame_bytes: int
) -> None:
    settings = settings_of(workers, partitions, frame_bytes=frame_bytes)
    router = Router(settings, create("shuffle", workers=workers))
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    rows = [{"k": "a", "t": 5_000 + time, "v": number} for number, time in enumerate(sorted(times))]
    values: list[bytes | None] = [json.dumps(row).encode() for row in rows]
    routed = router.route([Slice(0, 0, len(values) - 1, values)], {0: state})
    expected: defaultdict[int, list[float]] = defaultdict(list)
    for worker, row in zip(routed.sent.workers.tolist(), rows, strict=True):
        expected[worker].append(float(row["v"]))
    result: defaultdict[int, list[float]] = defaultdict(list)
    for partition, data in routed.frames:
        frame = decode_frame(data, fingerprint=settings.fingerprint)
        assert frame.header.shared_by == settings.workers_per_partition
        mine = frame.workers(partition)
        assert all(worker % settings.routed_partitions == partition for worker in mine)
        starts = np.cumsum([0, *mine.values()]).tolist()
        for worker, (begin, end) in zip(mine, pairwise(starts), strict=True):
            result[worker] += frame.batch["v:v"].to_pylist()[begin:end]
    assert result == expected
    assert routed.sent.counts.tolist() == [len(expected[worker]) for worker in range(workers)]


def test_frames_that_tell_go_to_each_partition_once_and_have_empty_segments() -> None:
    settings = settings_of(7, 3)
    router = Router(settings, create("shuffle", workers=7))
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    frames = router.begin_stint({0: state}, {}, inputs=1)
    decoded = [decode_frame(data, fingerprint=settings.fingerprint) for _, data in frames]
    assert [partition for partition, _ in frames] == [0, 1, 2]
    assert [frame.segments.tolist() for frame in decoded if frame.segments is not None] == [[0, 0, 0]] * 3
    assert [frame.workers(0) for frame in decoded] == [{}, {}, {}]


def test_a_start_says_how_many_workers_share_how_many_partitions(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    LogLines(settings_of(1_000, 1_000)).begins()
    assert "share" not in caplog.text
    LogLines(load_settings(partitioner={"workers": 1_000}, input={"partitions": 1})).begins()
    assert "1,000 workers share 63 routed partitions, up to 16 each" in caplog.text
    LogLines(settings_of(24, 12)).begins()
    assert "twice the work" not in caplog.text
    LogLines(settings_of(13, 12)).begins()
    assert "1 of 12 routed partitions have two workers" in caplog.text
