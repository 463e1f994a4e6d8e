"""The partitioner service on a real broker: exactly once, whatever happens to it."""

from __future__ import annotations

import json
import random
import signal
import socket
import sys
import textwrap
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from evenflow.errors import DataLossError, IncompatibleStateError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.windows import END_MARK
from partitioner_service.plane import DataPlane
from partitioner_service.plans import publish
from partitioner_service.sink import CommitAborted, Sink
from partitioner_service.source import all_states, data_plane_group
from partitioner_service.watchdog import Watchdog
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    records,
    rejections,
    write,
    write_end,
)
from topics import admin, clients
from workbench.broker import EmbeddedBroker
from workbench.processes import ChildProcess

pytestmark = pytest.mark.pipeline


def some_rows(
    n: int, *, partitions: int = 4, seed: int = 1, keys: int = 50
) -> list[tuple[int, dict[str, Any]]]:
    """n rows in event time order over all partitions, one a millisecond, skewed keys."""
    rng = random.Random(seed)
    return [
        (rng.randrange(partitions), {"k": f"key{int(rng.paretovariate(0.6)) % keys}", "t": i, "v": i % 7})
        for i in range(n)
    ]


def run(settings: Settings) -> DataPlane:
    """One instance until its input has ended."""
    plane = DataPlane(settings, until_ended=True)
    plane.run()
    return plane


def wait_until(condition: Any, *, timeout: float = 60.0) -> None:
    """Poll for something another process or thread is about to do."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.05)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_thread(plane: DataPlane) -> tuple[threading.Thread, list[BaseException]]:
    """The plane in a thread; what it raises is kept."""
    errors: list[BaseException] = []

    def body() -> None:
        try:
            plane.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread, errors


def total(states: dict[int, PartitionState]) -> tuple[int, int, int]:
    return tuple(sum(getattr(s, name) for s in states.values()) for name in ("read", "routed", "rejected"))  # type: ignore


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


def test_late_and_unreadable_records_go_to_rejected_unchanged_with_reason_and_position(
    kafka_settings, query_name
):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    client = clients.producer(settings.kafka)
    topic = settings.topic("input")
    client.produce(topic, value=b'{"k":"a","t":5000,"v":1}')
    client.produce(
        topic,
        value=b'{"k":"a","t":3999}',
        key=b"raw",
        timestamp=1234567,
        headers=[("mine", b"x"), ("n", None)],
    )
    client.produce(topic, value=b"\xff not json")
    client.produce(topic, value=None, key=b"tombstone")
    client.produce(topic, value=b'{"k":"a","t":4000}')
    clients.flush(client, settings.kafka)
    write_end(settings, Counter({0: 5}))
    write(settings, [(0, {"k": "after", "t": 9000})], end=False)
    write(settings, [], end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == 6 or errors)
    plane.stop()
    thread.join(30)
    assert not errors
    found = rejections(settings)
    assert [(reason, source) for reason, source, _ in found] == [
        ("late", f"{topic}:0:1"),
        ("unreadable", f"{topic}:0:2"),
        ("unreadable", f"{topic}:0:3"),
        ("late", f"{topic}:0:4"),
        ("after-end", f"{topic}:0:6"),
    ]
    late = found[0][2]
    assert (late.key(), late.value(), late.timestamp()[1]) == (b"raw", b'{"k":"a","t":3999}', 1234567)
    assert late.headers()[:2] == [("mine", b"x"), ("n", None)]
    assert dict(late.headers())["evenflow-mark"] == b"5000"
    assert (found[2][2].key(), found[2][2].value()) == (b"tombstone", None)
    assert total(all_states(settings)) == (6, 1, 5)


def test_empty_and_large_keys_are_routed_and_frames_stay_small(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, partitioner={"workers": 1, "frame_bytes": 100_000})
    create_topics(settings)
    rows = [(0, {"k": "x" * 1_000_000, "t": 1, "v": 1}), (1, {"k": "", "t": 1, "v": 2})]
    rows += [(i % 4, {"k": "y" * 1_000 + str(i), "t": i, "v": 1}) for i in range(1_000)]
    write(settings, rows)
    run(settings)
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, rows)
    assert every_lane_ended(settings, routed)
    assert routed.frames > 10
    assert routed.largest < 1_100_000


def test_a_rejected_record_that_does_not_fit_travels_as_its_position_and_reason(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    specs = admin.pipeline_topics(settings)
    wide = admin.TopicSpec(specs["input"].name, 1, {**specs["input"].config, "max.message.bytes": "16000000"})
    admin.ensure_topics(settings.kafka, [wide, *(spec for role, spec in specs.items() if role != "input")])
    write(settings, [(0, random.Random(1).randbytes(9_000_000)), (0, b"bad")])
    run(settings)
    large, fits = rejections(settings)
    assert large[2].value() is None
    assert dict(large[2].headers())["evenflow-omitted-bytes"] == b"9000000"
    assert large[1].endswith(":0:0")
    assert fits[2].value() == b"bad"


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
    run(settings)
    assert len(calls) > 5
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, rows)
    assert rejections(settings) == []
    assert total(all_states(settings)) == (3_000, 3_000, 0)


KILLED = textwrap.dedent(
    """
    import json, os, signal, sys
    from evenflow.settings import load_settings
    from partitioner_service.plane import DataPlane
    from partitioner_service.sink import Sink

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


def parts_of(settings: Settings) -> str:
    return json.dumps(
        settings.model_dump(mode="json", exclude_unset=True)
        | {
            "query": {
                **settings.query.model_dump(mode="json"),
                "aggregates": {n: str(a) for n, a in settings.query.aggregates.items()},
            }
        }
    )


@pytest.mark.parametrize("when", ["inside", "between"])
def test_a_partitioner_killed_in_mid_stream_is_continued_exactly(kafka_settings, query_name, when, tmp_path):
    options = {"block_tuples": 300, "commit_interval": 1, "transaction_timeout": 10_000}
    settings = make_settings(kafka_settings, query_name, partitioner=options)
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
    Sink(settings, rejected_limit=1_000_000, watchdog=Watchdog())
    write(settings, some_rows(100), end=False)
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(errors[0], ServiceError)
    assert "instance" in str(errors[0])


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
    write(settings, [(0, {"k": "a", "t": 2_000_000, "v": 1})], end=False)
    wait_until(lambda: all_states(settings)[1].read == 1_000 or errors)
    plane.stop()
    thread.join(60)
    assert not errors


def test_a_tuple_from_the_far_future_is_rejected_when_max_jump_is_on(kafka_settings, query_name):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 1},
        query={"max_jump": "60s", "jump_confirmations": 2},
    )
    create_topics(settings)
    times = [1_000, 1_100, 10**12, 1_200, 1_300]
    write(settings, [(0, {"k": "a", "t": t, "v": 1}) for t in times])
    run(settings)
    assert [reason for reason, _, _ in rejections(settings)] == ["jump", "jump"]
    assert read_routed(settings).counts == Counter({(1, b"a"): 3})


def began(kafka_settings: Any, query_name: str, **parts: Any) -> Settings:
    """A query that has read and ended a small input."""
    settings = make_settings(kafka_settings, query_name, **parts)
    create_topics(settings)
    write(settings, some_rows(200, partitions=settings.input.partitions))
    run(settings)
    return settings


def test_a_changed_query_on_old_topics_is_refused_with_an_explanation(kafka_settings, query_name):
    began(kafka_settings, query_name)
    changed = make_settings(kafka_settings, query_name, query={"window": "8s"})
    with pytest.raises(IncompatibleStateError, match="give the changed query a new name"):
        run(changed)


def test_an_input_topic_that_was_recreated_is_refused(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    admin.delete_topics(settings.kafka, [settings.topic("input")])
    create_topics(settings)
    write(settings, some_rows(300))
    with pytest.raises((DataLossError, IncompatibleStateError), match=r"created again|committed offset"):
        run(settings)


def test_a_routed_topic_that_was_recreated_is_refused(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    service = clients.admin(settings.kafka)
    for future in service.delete_topics([settings.topic("routed")]).values():
        future.result(30)
    wait_until(
        lambda: settings.topic("routed") not in admin.describe(settings.kafka, [settings.topic("routed")])
    )
    with pytest.raises(DataLossError, match="routed was deleted and created again"):
        run(settings)


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


def test_records_deleted_before_they_were_read_are_noticed_and_refused(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    write(settings, some_rows(200, partitions=1), end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    service = clients.admin(settings.kafka)
    wait_until(lambda: total(all_states(settings))[0] == 200 or errors)
    plane.stop()
    thread.join(60)
    write(settings, some_rows(200, partitions=1), end=False)
    partition = TopicPartition(settings.topic("input"), 0, 300)
    for future in service.delete_records([partition]).values():
        future.result(30)
    with pytest.raises(DataLossError, match="Rebuild after data loss"):
        run(settings)


def test_committed_offsets_that_vanished_are_never_taken_for_a_fresh_start(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    service = clients.admin(settings.kafka)
    for future in service.delete_consumer_groups([data_plane_group(settings)]).values():
        future.result(30)
    with pytest.raises(IncompatibleStateError, match="no committed offsets"):
        run(settings)


def test_offsets_of_which_a_part_vanished_are_refused_with_the_partitions_that_lack_them(
    kafka_settings, query_name
):
    whole = began(kafka_settings, query_name)
    kept = all_states(whole)
    service = clients.admin(whole.kafka)
    for future in service.delete_consumer_groups([data_plane_group(whole)]).values():
        future.result(30)
    by_hand = clients.consumer(whole.kafka, group=data_plane_group(whole))
    topic = whole.topic("input")
    some = [TopicPartition(topic, p, kept[p].offset, kept[p].encode()) for p in (0, 3)]
    by_hand.commit(offsets=some, asynchronous=False)
    by_hand.close()
    with pytest.raises(IncompatibleStateError, match=r"no committed offsets of input partitions \[1, 2\]"):
        run(whole)


def test_a_block_of_nothing_but_bad_records_is_rejected_one_by_one_in_good_time(kafka_settings, query_name):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 1},
        partitioner={"block_tuples": 50_000, "linger": 2_000, "transaction_timeout": 10_000},
    )
    create_topics(settings)
    bad = [b"{", b'{"k":1', b"\xff", b"[]", b'{"t":5}']
    write(settings, [(0, bad[n % len(bad)]) for n in range(50_000)], end=False)
    write(settings, [(0, {"k": "a", "t": 7, "v": 1})], end=False)
    write_end(settings, Counter({0: 50_001}))
    run(settings)
    assert total(all_states(settings)) == (50_001, 1, 50_000)
    found = rejections(settings)
    assert [message.value() for _, _, message in found] == [bad[n % len(bad)] for n in range(50_000)]
    assert {reason for reason, _, _ in found} == {"unreadable"}


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


def test_an_offset_that_another_program_committed_is_refused(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    stranger = clients.consumer(settings.kafka, group=data_plane_group(settings))
    stranger.commit(offsets=[TopicPartition(settings.topic("input"), 0, 5)], asynchronous=False)
    stranger.close()
    with pytest.raises(IncompatibleStateError, match="no evenflow state"):
        run(settings)


def test_learned_state_is_saved_and_continued(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    assert len(records(settings, "snapshots")) >= 1
    again = DataPlane(settings, until_ended=True)
    again.run()
    assert again._router.partitioner.observe().tuples == 200
    assert len(records(settings, "snapshots")) == 1, "nothing new was learned, nothing was saved"


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
    loads = first._router.partitioner.observe().loads
    second = DataPlane(settings)
    thread, more = start_thread(second)
    wait_until(lambda: second.status().get("state") == "running" or more)
    second.stop()
    thread.join(60)
    assert not errors
    assert not more
    assert second._router.epoch == 1
    assert second._router.partitioner.observe().loads.tolist() == loads.tolist()
    assert len(loads) == 5


def test_the_service_stops_on_sigterm_serves_its_status_and_follows_plans(
    kafka_settings, query_name, tmp_path
):
    unused_tcp_port = free_port()
    settings = make_settings(
        kafka_settings,
        query_name,
        partitioner={"web_port": unused_tcp_port, "workers": 3, "commit_interval": 50},
    )
    create_topics(settings)
    code = "import json,sys; from evenflow.settings import load_settings as l; from partitioner_service.app import serve"
    code += "; serve(l(**json.loads(sys.argv[1])))"
    child = ChildProcess([sys.executable, "-c", code, parts_of(settings)], log=tmp_path / "service.log")
    try:
        write(settings, some_rows(1_000), end=False)
        status: dict[str, Any] = {}

        def page(name: str) -> dict[str, Any]:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{unused_tcp_port}/{name}/", timeout=5
                ) as answer:
                    return json.loads(answer.read())
            except OSError:
                assert child.alive, child.tail()
                return {}

        def routed_all() -> bool:
            status.update(page("status"))
            return status.get("tuples") == 1_000

        wait_until(routed_all)
        assert sum(status["loads"]) == 1_000
        assert sorted(status["assignment"]) == ["0", "1", "2", "3"]
        wait_until(lambda: page("status")["tuples_per_second"] > 0)
        assert page("healthy") == {"healthy": True, "state": "running"}
        publish(settings, workers=1)
        rows = [(p, {"k": row["k"], "t": row["t"] + 2_000, "v": 1}) for p, row in some_rows(1_000)]

        def plan_followed() -> bool:
            write(settings, rows[:100], end=False)
            return page("status").get("plan_epoch") == 1

        wait_until(plan_followed)
        assert page("status")["workers"] == 1
    finally:
        code_ = child.terminate(30)
    assert code_ == 0, Path(tmp_path / "service.log").read_text()[-2000:]
    states = all_states(settings)
    read, routed, rejected = total(states)
    assert read == routed + rejected >= 1_000
    assert sum(read_routed(settings).counts.values()) == routed
    assert all(state.mark(settings.query) < END_MARK for state in states.values())


def test_sigterm_at_any_moment_of_the_start_ends_the_process_with_0(kafka_settings, query_name, tmp_path):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    code = "import json,logging,sys; logging.basicConfig(level=logging.INFO)"
    code += "; from evenflow.settings import load_settings as l; from partitioner_service.app import serve"
    code += "; serve(l(**json.loads(sys.argv[1])))"
    for moment in ("DataPlaneService]: Starting", "assigned input partitions", "status page"):
        child = ChildProcess(
            [sys.executable, "-c", code, parts_of(settings)], log=tmp_path / f"{len(moment)}.log"
        )
        try:
            wait_until(lambda child=child, moment=moment: moment in child.output() or not child.alive)
        finally:
            assert child.terminate(25) == 0, child.tail()


@pytest.mark.more
def test_sigterm_while_the_broker_is_gone_ends_the_process_within_its_grace(query_name, tmp_path):
    with EmbeddedBroker(data_dir=tmp_path / "broker") as broker:
        settings = make_settings(broker.settings(), query_name, partitioner={"commit_interval": 5_000})
        create_topics(settings)
        write(settings, some_rows(500), end=False)
        code = "import json,logging,sys; logging.basicConfig(level=logging.INFO)"
        code += (
            "; from evenflow.settings import load_settings as l; from partitioner_service.app import serve"
        )
        code += "; serve(l(**json.loads(sys.argv[1])))"
        child = ChildProcess([sys.executable, "-c", code, parts_of(settings)], log=tmp_path / "service.log")
        try:
            topic = settings.topic("routed")
            wait_until(lambda: admin.describe(settings.kafka, [topic])[topic].records or not child.alive)
            broker.kill()
            child.signal(signal.SIGTERM)
            assert child.wait(40) != -signal.SIGKILL, child.tail()
        finally:
            child.kill()
        broker.restart()
        write_end(settings, Counter(p for p, _ in some_rows(500)))
        run(settings)
        routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, some_rows(500))
