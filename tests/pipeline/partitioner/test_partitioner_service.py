"""The partitioner service on a real broker: exactly once, whatever happens to it."""

from __future__ import annotations

import signal
import sys
import textwrap
from collections import Counter
from typing import Any

import pytest

from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.sink import CommitAborted, Sink
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plane.loop import Loop
from partitioner_service.plans_by_hand import publish
from tests.pipeline.planes import (
    began,
    parts_of,
    run,
    some_rows,
    soon_missed,
    start_thread,
    total,
    wait_until,
)
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    records,
    rejections,
    write,
)
from workbench.local.processes import ChildProcess

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]


@pytest.mark.parametrize("partitioner", ["hashing", "shuffle", "pkg", "evenflow"])
def test_every_tuple_is_routed_once_and_every_lane_ends(kafka_settings, query_name, partitioner):
    settings = make_settings(kafka_settings, query_name, partitioner={"name": partitioner})
    create_topics(settings)
    rows = some_rows(5_000)
    write(settings, rows)
    run(settings)
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, rows)
    assert every_lane_ended(settings, routed)
    assert total(all_states(settings)) == (5_000, 5_000, 0)


def test_the_first_block_is_routed_while_no_transaction_is_open(kafka_settings, query_name, monkeypatch):
    """Kernels are compiled for it, which may take longer than a transaction may last."""
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    write(settings, some_rows(500))
    real, open_for = Loop._work_through, []

    def work_through(self: Loop, slices: Any) -> None:
        open_for.append(self.parts.sink.open_for)
        real(self, slices)

    monkeypatch.setattr(Loop, "_work_through", work_through)
    run(settings)
    assert open_for[0] is None


def test_empty_and_large_keys_are_routed_and_frames_stay_small(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, partitioner={"workers": 1, "frame_bytes": 100_000})
    create_topics(settings)
    rows = [(0, {"k": "x" * 65_536, "t": 1, "v": 1}), (1, {"k": "", "t": 1, "v": 2})]
    rows += [(i % 4, {"k": "y" * 1_000 + str(i), "t": i, "v": 1}) for i in range(1_000)]
    write(settings, rows)
    run(settings)
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, rows)
    assert every_lane_ended(settings, routed)
    assert routed.frames > 10
    assert routed.largest < 200_000


def test_an_input_of_nothing_but_end_markers_ends_every_lane(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    write(settings, [])
    run(settings)
    routed = read_routed(settings)
    assert routed.counts == Counter()
    assert every_lane_ended(settings, routed)


def test_an_aborted_transaction_is_read_again_with_the_state_before_it(
    kafka_settings, query_name, monkeypatch
):
    settings = make_settings(
        kafka_settings, query_name, partitioner={"block_tuples": 300, "commit_interval": 1}
    )
    create_topics(settings)
    publish(settings, workers=1, effective_from=1_000)
    rows = some_rows(3_000)
    write(settings, rows)
    real, calls = Sink.commit, []

    def commit(self: Sink, states: Any, metadata: Any) -> None:
        calls.append(1)
        if len(calls) in (2, 5):
            self.abort()
            raise CommitAborted("injected")
        real(self, states, metadata)

    monkeypatch.setattr(Sink, "commit", commit)
    plane = run(settings)
    assert len(calls) > 5
    assert plane.status()["plan_epoch"] == 1
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, rows)
    assert rejections(settings) == []
    assert total(all_states(settings)) == (3_000, 3_000, 0)


KILLED = textwrap.dedent(
    """
    import json, os, signal, sys
    from evenflow.settings import load_settings
    from partitioner_service.plane.data_plane import DataPlane
    from partitioner_service.kafka.sink import Sink

    parts, when, nth = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    real, calls = Sink.commit, []

    def commit(self, states, metadata):
        calls.append(1)
        if len(calls) == nth and when == "inside":
            self._producer.flush(5)
            os.kill(os.getpid(), signal.SIGKILL)
        real(self, states, metadata)
        if len(calls) == nth and when == "between":
            os.kill(os.getpid(), signal.SIGKILL)

    Sink.commit = commit
    DataPlane(load_settings(**parts), until_ended=True).run()
    """
)


@pytest.mark.parametrize("when", ["inside", "between"])
def test_a_partitioner_killed_in_mid_stream_is_continued_exactly(kafka_settings, query_name, when, tmp_path):
    options = {"block_tuples": 300, "commit_interval": 1, "transaction_timeout": 10_000}
    settings = make_settings(soon_missed(kafka_settings), query_name, partitioner=options)
    create_topics(settings)
    rows = some_rows(4_000)
    write(settings, rows)
    child = ChildProcess(
        [sys.executable, "-c", KILLED, parts_of(settings), when, "4"], log=tmp_path / "killed.log"
    )
    assert child.wait(60) == -signal.SIGKILL, child.tail()
    assert 0 < total(all_states(settings))[0] < 4_000
    run(settings)
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, rows)
    assert every_lane_ended(settings, routed)
    assert total(all_states(settings)) == (4_000, 4_000, 0)


def kept_in_snapshots(settings):
    """Records of the topic, without the notes of runs."""
    return [one for one in records(settings, "snapshots") if not (one.key() or b"").startswith(b"run/")]


def test_learned_state_is_saved_and_continued(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    saved = len(kept_in_snapshots(settings))
    assert saved == 2, "what the query is, and what was learned"
    again = DataPlane(settings, until_ended=True)
    again.run()
    assert sum(again.status()["loads"]) == 200
    assert len(kept_in_snapshots(settings)) == saved, "nothing new was learned, nothing was saved"


def test_a_restart_under_a_plan_goes_on_with_what_was_learned_for_the_plan_s_workers(
    kafka_settings, query_name
):
    settings = make_settings(
        kafka_settings, query_name, partitioner={"name": "pkg", "workers": 2, "routed_partitions": 5}
    )
    create_topics(settings)
    publish(settings, workers=5)
    rows = some_rows(500)
    write(settings, rows, end=False)
    first = DataPlane(settings)
    thread, errors = start_thread(first)
    wait_until(lambda: first.status().get("tuples") == 500 or errors)
    first.stop()
    thread.join(60)
    loads = first.status()["loads"]
    second = DataPlane(settings)
    thread, more = start_thread(second)
    wait_until(lambda: second.status().get("state") == "running" or more)
    second.stop()
    thread.join(60)
    assert not errors
    assert not more
    assert second.status()["plan_epoch"] == 1
    assert second.status()["loads"] == loads
    assert len(loads) == 5
