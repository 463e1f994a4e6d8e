"""Input partitions of unequal progress on a real broker: idle ones sleep, hasty ones are paused."""

from __future__ import annotations

from collections import Counter

import pytest

from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.closing import Closing
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import start_thread, wait_until
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    rejections,
    write,
    write_end,
)
from topics.offsets import log_ends

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]


def test_an_idle_partition_stops_holding_back_the_others_and_what_comes_behind_is_rejected(
    kafka_settings, query_name
):
    settings = make_settings(
        kafka_settings, query_name, input={"partitions": 2}, partitioner={"idle_timeout": 300}
    )
    create_topics(settings)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    sent = 0

    def asleep() -> bool:
        nonlocal sent
        write(settings, [(0, {"k": "a", "t": 10_500, "v": 1})], end=False)  # the other one stays awake
        sent += 1
        return bool(errors) or all_states(settings)[1].asleep

    wait_until(lambda: all_states(settings) or errors)
    wait_until(asleep)
    assert all_states(settings)[1].idle_mark == 10_500
    write(settings, [(1, {"k": "b", "t": 9_999, "v": 1}), (1, {"k": "b", "t": 10_000, "v": 1})], end=False)
    wait_until(lambda: [s.read for _, s in sorted(all_states(settings).items())] == [sent, 2] or errors)
    plane.stop()
    thread.join(60)
    assert not errors
    assert [(reason, source[-3:]) for reason, source, _ in rejections(settings)] == [("idle", "1:0")]
    assert read_routed(settings).counts == Counter({(10, b"a"): sent, (10, b"b"): 1})


def test_a_partition_far_ahead_of_the_slowest_is_paused_until_it_catches_up(kafka_settings, query_name):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 2},
        partitioner={"max_skew": "10s", "block_tuples": 10},
    )
    create_topics(settings)
    write(settings, [(0, {"k": "a", "t": 0, "v": 1})], end=False)
    write(settings, [(1, {"k": "a", "t": t, "v": 1}) for t in range(0, 1_000_000, 1_000)], end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: plane.status().get("assignment", {}).get("1", {}).get("paused") or errors)
    reached = all_states(settings)[1].read
    assert reached < 500
    write(settings, [(1, {"k": "a", "t": 1_000_000, "v": 1})] * 1_000, end=False)

    def seen() -> int:
        shown = plane.status()["assignment"]["1"]
        return shown["read"] + shown["lag"]

    wait_until(lambda: seen() == 2_000 or errors)  # what piles up behind a pause is lag
    write(settings, [(0, {"k": "a", "t": 2_000_000, "v": 1})], end=False)
    wait_until(lambda: all_states(settings)[1].read == 2_000 or errors)
    plane.stop()
    thread.join(60)
    assert not errors


def test_a_partition_without_any_tuple_holds_the_others_within_max_skew_of_the_first(
    kafka_settings, query_name
):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 2},
        partitioner={"max_skew": "10s", "block_tuples": 10},
    )
    create_topics(settings)
    rows = [(1, {"k": "a", "t": t, "v": 1}) for t in range(0, 500_000, 1_000)]
    write(settings, rows, end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: plane.status().get("assignment", {}).get("1", {}).get("paused") or errors)
    assert all_states(settings)[1].read < 100
    write_end(settings, Counter({1: 500}))
    wait_until(lambda: all(s.ended for s in all_states(settings).values()) or errors)
    plane.stop()
    thread.join(60)
    assert not errors
    assert read_routed(settings).counts == expected_counts(settings, rows)


def test_a_partition_paused_for_its_haste_changes_owner_and_nothing_is_lost(kafka_settings, query_name):
    options = {"max_skew": "10s", "block_tuples": 10}
    first, second = (
        make_settings(
            kafka_settings, query_name, input={"partitions": 2}, partitioner=options | {"instance": name}
        )
        for name in ("a", "b")
    )
    create_topics(first)
    rows = [(0, {"k": "a", "t": 0, "v": 1})]
    rows += [(p, {"k": "a", "t": t, "v": 1}) for t in range(0, 300_000, 1_000) for p in (1,)]
    write(first, rows, end=False)
    a, b = DataPlane(first), DataPlane(second)
    thread_a, errors_a = start_thread(a)
    wait_until(lambda: a.status().get("assignment", {}).get("1", {}).get("paused") or errors_a)
    thread_b, errors_b = start_thread(b)  # range: partition 1 goes to the new one
    wait_until(lambda: set(b.status().get("assignment", ())) == {"1"} or errors_a or errors_b)
    wait_until(lambda: b.status()["assignment"]["1"]["paused"] or errors_b)
    assert all_states(first)[1].read < 300
    a.stop()
    thread_a.join(60)
    wait_until(lambda: len(b.status().get("assignment", ())) == 2 or errors_b)
    last = (0, {"k": "a", "t": 600_000, "v": 1})
    write(first, [last], end=False)
    write_end(first, Counter({0: 2, 1: 300}))
    wait_until(lambda: all(s.ended for s in all_states(first).values()) or errors_b)
    b.stop()
    thread_b.join(60)
    assert not errors_a
    assert not errors_b
    routed = read_routed(first)
    assert routed.counts == expected_counts(first, [*rows, last])
    assert every_lane_ended(first, routed)


def test_after_a_pause_of_the_process_a_partition_whose_log_has_grown_meanwhile_is_not_put_to_sleep(
    kafka_settings, query_name
):
    """The clock jumps while nothing is read, as it does for a process that was stopped and continued."""
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 2},
        partitioner={"idle_timeout": "30s", "max_skew": "1h"},
    )
    create_topics(settings)
    write(settings, [(0, {"k": "a", "t": 9_000, "v": 1}), (1, {"k": "b", "t": 1_000, "v": 1})], end=False)
    now = [0.0]
    plane = DataPlane(settings, clock=lambda: now[0])
    with Closing() as closing:
        loop = plane._opened(closing)
        closing.when_over(loop.abandon)
        source = loop.parts.source

        def steps_until(condition):
            def step() -> bool:
                loop.step()
                now[0] += 0.01
                return condition()

            wait_until(step)

        steps_until(lambda: source.states and all(p in source.ends._ends for p in (0, 1)))
        write(settings, [(0, {"k": "a", "t": 20_000, "v": 1})], end=False)
        steps_until(lambda: source.states[0].max_time == 20_000 and 0 in source.ends._ends)
        now[0] += 20
        write(settings, [(0, {"k": "a", "t": 21_000, "v": 1})], end=False)
        steps_until(lambda: source.states[0].max_time == 21_000)
        write(settings, [(1, {"k": "b", "t": 2_000, "v": 1})], end=False)
        now[0] += 11  # partition 1 was seen at its end 31 s ago
        loop._put_to_sleep()
        assert not source.states[1].asleep
        steps_until(lambda: source.states[1].max_time == 2_000 and 1 in source.ends._ends)
        assert source.states[1].rejected == 0
        now[0] += 20
        write(settings, [(0, {"k": "a", "t": 22_000, "v": 1})], end=False)
        steps_until(lambda: source.states[0].max_time == 22_000)
        now[0] += 11
        loop._put_to_sleep()
        assert source.states[1].asleep, "its log has not grown for the whole timeout"
        assert source.states[1].idle_mark == 22_000


def test_partitions_that_no_broker_answers_for_are_absent_from_the_ends_of_logs(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 2})
    create_topics(settings)
    write(settings, [(1, b"x")], end=False)
    assert log_ends(settings.kafka, settings.topic("input"), [0, 1, 7], timeout=5) == {0: 0, 1: 1}
    assert log_ends(settings.kafka, "no-such-topic", [0], timeout=5) == {}
