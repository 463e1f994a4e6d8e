"""Several partitioner instances on a real broker: they share the input, rebalance, and fence their
doubles.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from evenflow.errors import ServiceError
from partitioner_service.begin import claim
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.sink import Sink
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.routing.session import Session
from tests.pipeline.planes import some_rows, start_thread, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    write,
    write_end,
)

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]


def test_a_claimant_that_stalls_between_its_reading_and_its_commit_overwrites_no_live_offset(
    kafka_settings, query_name, monkeypatch
):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    rows = some_rows(400)
    write(settings, rows[:200], end=False)
    has_read, go_on, stalled = threading.Event(), threading.Event(), []
    read = claim.all_states

    def read_and_stall(*words, **more):
        result = read(*words, **more)
        if threading.current_thread().name == "stalled":
            stalled.append(result)
            if len(stalled) == 2:  # the reading that its commit rests on
                has_read.set()
                assert go_on.wait(60)
        return result

    monkeypatch.setattr(claim, "all_states", read_and_stall)
    late = threading.Thread(target=claim.claim, args=(settings, Watchdog()), name="stalled", daemon=True)
    late.start()
    assert has_read.wait(60)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == 200 or errors)
    go_on.set()
    late.join(60)
    assert not late.is_alive()
    assert [len(result) for result in stalled] == [0, 0, 4], "its commit was refused, and it looked again"
    assert total(all_states(settings)) == (200, 200, 0), "live offsets were overwritten"
    write(settings, rows[200:], end=False)
    write_end(settings, Counter(p for p, _ in rows))
    wait_until(lambda: all(s.ended for s in all_states(settings).values()) or errors)
    plane.stop()
    thread.join(60)
    assert not errors
    assert read_routed(settings).counts == expected_counts(settings, rows)


def test_instances_that_begin_a_query_together_all_begin_it_once(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    errors: list[BaseException] = []

    def begin() -> None:
        try:
            claim.claim(settings, Watchdog())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert sorted(all_states(settings)) == [0, 1, 2, 3]


def test_two_instances_share_the_input_and_rebalance_in_mid_stream_exactly(
    kafka_settings, query_name, caplog
):
    options = {"block_tuples": 200, "commit_interval": 1_000, "snapshot_interval": 100}
    first = make_settings(kafka_settings, query_name, partitioner=options | {"instance": "a"})
    second = make_settings(kafka_settings, query_name, partitioner=options | {"instance": "b"})
    create_topics(first)
    rows = some_rows(6_000)
    write(first, rows[:2_000], end=False)
    a, b = DataPlane(first), DataPlane(second)
    thread_a, errors_a = start_thread(a)
    wait_until(lambda: a.status().get("tuples", 0) > 0 or errors_a)
    write(first, rows[2_000:4_000], end=False)
    thread_b, errors_b = start_thread(b)
    wait_until(lambda: len(b.status().get("assignment", ())) == 2 or errors_a or errors_b)
    write(first, rows[4_000:5_000], end=False)
    a.stop()
    thread_a.join(60)
    wait_until(lambda: len(b.status().get("assignment", ())) == 4 or errors_b)
    write(first, rows[5_000:], end=False)
    write_end(first, Counter(p for p, _ in rows))
    wait_until(lambda: all(s.ended for s in all_states(first).values()) or errors_b)
    b.stop()
    thread_b.join(60)
    assert not errors_a
    assert not errors_b
    routed = read_routed(first)
    assert routed.counts == expected_counts(first, rows)
    assert every_lane_ended(first, routed)
    assert total(all_states(first)) == (6_000, 6_000, 0)
    assert "there are others: set partitioner.instances" in caplog.text


def test_more_instances_than_partitions_leave_some_without_work_and_lose_nothing(kafka_settings, query_name):
    instances = [
        make_settings(kafka_settings, query_name, input={"partitions": 1}, partitioner={"instance": name})
        for name in ("a", "b")
    ]
    create_topics(instances[0])
    planes = [DataPlane(settings) for settings in instances]
    threads = [start_thread(plane) for plane in planes]
    rows = some_rows(1_000, partitions=1)
    write(instances[0], rows)
    wait_until(
        lambda: [s.ended for s in all_states(instances[0]).values()] == [True] or any(e for _, e in threads)
    )
    for plane, (thread, _) in zip(planes, threads, strict=True):
        plane.stop()
        thread.join(60)
    assert [errors for _, errors in threads] == [[], []]
    assert read_routed(instances[0]).counts == expected_counts(instances[0], rows)


def test_a_second_process_with_the_same_identity_fences_the_first(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    write(settings, some_rows(100), end=False)
    wait_until(lambda: plane.status().get("tuples", 0) > 0 or errors)
    Sink(settings, session=Session(1), rejected_limit=1_000_000, watchdog=Watchdog())
    write(settings, some_rows(100), end=False)
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(errors[0], ServiceError)
    assert "instance" in str(errors[0])
