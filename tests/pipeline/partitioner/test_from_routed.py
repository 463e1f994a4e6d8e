"""Committed offsets that are gone: never a beginning, and found again exactly in what the query wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from evenflow.errors import DataLossError, IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.begin import traces
from partitioner_service.begin.prepare import prepare
from partitioner_service.begin.rebuild import continue_from_routed
from partitioner_service.kafka.committed_state import all_states, data_plane_group
from partitioner_service.plane.closing import Closing
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import run, some_rows, start_thread, wait_until
from tests.pipeline.routed import (
    create_topics,
    expected_counts,
    make_settings,
    read_routed,
    rejections,
    write,
)
from topics import admin, clients
from topics.query.record import read_beginning
from topics.reader import read_range
from topics.records import Record
from workbench.verify.shell import read_committed

pytestmark = pytest.mark.pipeline


def read_all(settings: Settings, records: int) -> dict[int, PartitionState]:
    """Run an instance until it has committed so many records. Returns the states."""
    plane = DataPlane(prepare(settings))
    thread, errors = start_thread(plane)
    wait_until(lambda: errors or sum(s.read for s in all_states(settings).values()) == records)
    plane.stop()
    thread.join(60)
    assert not errors
    return all_states(settings)


def interrupted(kafka: Any, name: str, rows: Iterable[tuple[int, Any]], **parts: Any) -> Settings:
    """A query whose instance has read these records and stopped. Its offsets are gone."""
    settings = make_settings(kafka, name, **parts)
    create_topics(settings)
    rows = list(rows)
    write(settings, rows, end=False)
    read_all(settings, len(rows))
    forget(settings)
    return settings


def awake(states: Mapping[int, PartitionState]) -> dict[int, PartitionState]:
    """These states of one session, none asleep, with all frames that the session has written."""
    frames = max(state.frames for state in states.values())
    return {p: replace(state, asleep=False, frames=frames) for p, state in states.items()}


def plain(number: int, partition: int = 0) -> list[tuple[int, Any]]:
    """Records that are all routed, in order of time."""
    return [(partition, {"k": f"key{n % 20}", "t": n * 100, "v": 1}) for n in range(number)]


def delete_before(settings: Settings, topic: str, partition: int, offset: int) -> None:
    """What retention does."""
    deleted = [TopicPartition(topic, partition, offset)]
    for future in clients.admin(settings.kafka).delete_records(deleted).values():
        future.result(30)


def lose_the_last(monkeypatch: pytest.MonkeyPatch, settings: Settings, worker: int, number: int) -> None:
    """From now on the last frames of this routed partition are not there, as after a power cut of a
    broker.
    """

    def short(kafka: Any, topic: str, **bounds: Any) -> Iterator[list[Record]]:
        blocks = list(read_range(kafka, topic, **bounds))
        if topic != settings.topic("routed"):
            return iter(blocks)
        lost = sorted(one.offset() or 0 for block in blocks for one in block if one.partition() == worker)[
            -number:
        ]
        return iter(
            [
                [one for one in block if one.partition() != worker or one.offset() not in lost]
                for block in blocks
            ]
        )

    monkeypatch.setattr(traces, "read_range", short)


def forget(settings: Settings) -> None:
    """What Kafka does when offsets expire."""
    for future in clients.admin(settings.kafka).delete_consumer_groups([data_plane_group(settings)]).values():
        future.result(30)


def test_offsets_that_expired_before_anything_was_routed_are_no_beginning(
    kafka_settings: Any, query_name: str
) -> None:
    """Not even with input.start = "latest", where a beginning would skip what was written meanwhile."""
    settings = make_settings(
        kafka_settings, query_name, query={"where": "v > 10"}, input={"start": "latest", "partitions": 2}
    )
    create_topics(settings)
    write(settings, [(0, {"k": "a", "t": 1, "v": 99})], end=False)
    assert {p: s.begin for p, s in read_all(settings, 0).items()} == {0: 1, 1: 0}
    write(settings, [(0, {"k": "a", "t": n, "v": 1}) for n in range(100)], end=False)
    read_all(settings, 100)
    forget(settings)
    later = [(n % 2, {"k": "a", "t": 1_000 + n, "v": 20}) for n in range(60)]
    write(settings, later)
    with pytest.raises(
        IncompatibleStateError, match=r"has no committed offsets of input partitions \[0, 1\]"
    ):
        run(settings)
    with pytest.raises(DataLossError, match="has begun, at offset 1 of"):
        read_committed(settings, read_beginning(settings))
    result = continue_from_routed(settings)
    assert {p: (s.begin, s.offset, s.read) for p, s in result.items()} == {0: (1, 1, 0), 1: (0, 0, 0)}
    run(settings)
    assert read_routed(settings).counts == expected_counts(settings, later)
    assert sum(s.filtered for s in all_states(settings).values()) == 100


def mixed(first: int, number: int) -> list[tuple[int, Any]]:
    """Records of every kind in four partitions. The last one of each partition is routed."""
    rows: list[tuple[int, Any]] = []
    for n, (p, row) in enumerate(some_rows(number, seed=first)):
        rows.append((p, row | {"t": first + row["t"] * 10, "v": n % 5}))
        if n % 40 == 0:
            rows.append((p, b"not JSON"))
            rows.append((p, row | {"t": 10**15}))
            rows.append((p, row | {"t": first + 10**8 + n}))
            rows.append((p, row | {"t": first - 10**6}))
    return rows + [(p, {"k": "z", "t": first + number * 10, "v": 4}) for p in range(4)]


def test_what_an_interrupted_query_reads_after_from_routed_is_what_it_would_have_read(
    kafka_settings: Any, query_name: str
) -> None:
    parts: dict[str, Any] = {
        "query": {"where": "v > 1", "max_jump": "1h", "jump_confirmations": 3, "out_of_orderness": "1s"},
        "partitioner": {"max_skew": "1d", "block_tuples": 70},
    }
    settings = make_settings(kafka_settings, query_name, **parts)
    create_topics(settings)
    one, two = mixed(0, 1_500), mixed(100_000, 1_500)
    write(settings, one, end=False)
    before = read_all(settings, len(one))
    forget(settings)
    write(settings, two)
    with pytest.raises(IncompatibleStateError, match="--from-routed"):
        run(settings)
    result = continue_from_routed(settings)
    assert result == awake(before)
    with pytest.raises(IncompatibleStateError, match="are all there"):
        continue_from_routed(settings)
    run(settings)
    twin = make_settings(
        kafka_settings, f"{query_name}-twin", **parts, input={"topic": settings.topic("input")}
    )
    run(twin)
    assert read_routed(settings).counts == read_routed(twin).counts
    told = [sorted((reason, source) for reason, source, _ in rejections(one)) for one in (settings, twin)]
    assert told[0] == told[1]
    assert {reason for reason, _ in told[0]} == {"unreadable", "ahead", "jump", "late"}
    for state, other in zip(all_states(settings).values(), all_states(twin).values(), strict=True):
        assert (state.read, state.routed, state.rejected) == (other.read, other.routed, other.rejected)


def test_a_mark_that_an_idle_partition_was_given_is_found_again(kafka_settings: Any, query_name: str) -> None:
    settings = make_settings(
        kafka_settings, query_name, input={"partitions": 2}, partitioner={"idle_timeout": 300}
    )
    create_topics(settings)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)

    def asleep() -> bool:
        write(settings, [(0, {"k": "a", "t": 10_500, "v": 1})], end=False)
        return bool(errors) or all_states(settings)[1].asleep

    wait_until(lambda: all_states(settings) or errors)
    wait_until(asleep)
    write(settings, [(1, {"k": "b", "t": t, "v": 1}) for t in (9_000, 9_999, 10_400)], end=False)
    wait_until(lambda: all_states(settings)[1].read == 3 or errors)
    plane.stop()
    thread.join(60)
    assert not errors
    before = all_states(settings)
    assert before[1].rejected == 2
    assert before[1].idle_mark == 10_500
    forget(settings)
    result, known = continue_from_routed(settings), awake(before)
    # Partition 0 may have slept at its own mark, which changes no verdict, is told to nobody and is not found
    # again.
    own = replace(known[0], idle_mark=None).mark(settings.query)
    assert known[0].idle_mark in (None, own)
    known[0] = replace(known[0], idle_mark=None)
    assert result == known


def test_what_cannot_be_found_again_exactly_is_refused(kafka_settings: Any, query_name: str) -> None:
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    with pytest.raises(IncompatibleStateError, match="has not begun"):
        continue_from_routed(settings)
    interrupted(kafka_settings, query_name, [*plain(100), (0, b"bad")], input={"partitions": 1})
    stranger = clients.producer(settings.kafka)
    source = f"{settings.topic('input')}:0:7"
    headers: list[Any] = [("evenflow-source", source.encode()), ("evenflow-reason", b"late")]
    stranger.produce(settings.topic("rejected"), value=b"x", partition=0, headers=headers)
    clients.flush(stranger, settings.kafka)
    with pytest.raises(DataLossError, match="offset 7 is now accepted, and was late"):
        continue_from_routed(settings)
    delete_before(settings, settings.topic("input"), 0, 50)
    with pytest.raises(DataLossError, match="first records of the query are no longer in the input"):
        continue_from_routed(settings)
    admin.delete_topics(settings.kafka, [settings.topic("input")])
    create_topics(settings)
    with pytest.raises(DataLossError, match="deleted and created again"):
        continue_from_routed(settings)
    assert all_states(settings) == {}


def test_frames_that_retention_has_deleted_are_missed(kafka_settings: Any, query_name: str) -> None:
    settings = interrupted(
        kafka_settings, query_name, plain(500), input={"partitions": 1}, partitioner={"workers": 1}
    )
    delete_before(settings, settings.topic("routed"), 0, 1)
    with pytest.raises(DataLossError, match="first frames of the routed partitions") as refused:
        continue_from_routed(settings)
    assert "evenflow reset" in str(refused.value.hint)
    assert all_states(settings) == {}


def test_tuples_that_went_with_the_end_of_a_routed_partition_are_missed(
    kafka_settings: Any, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = interrupted(kafka_settings, query_name, plain(500), input={"partitions": 1})
    lose_the_last(monkeypatch, settings, 1, 1)
    with pytest.raises(DataLossError, match=r"have 500 tuples that were routed, but the frames of .* hold"):
        continue_from_routed(settings)
    assert all_states(settings) == {}
    monkeypatch.undo()
    assert continue_from_routed(settings)[0].routed == 500


def test_an_end_that_held_no_tuple_is_missed_by_what_the_other_routed_partitions_were_told(
    kafka_settings: Any, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    write(settings, plain(500), end=False)
    first = read_all(settings, 500)[0].session
    plane = DataPlane(prepare(settings))
    thread, errors = start_thread(plane)
    wait_until(lambda: errors or all_states(settings)[0].session != first)
    plane.stop()
    thread.join(60)
    assert not errors
    forget(settings)
    # The second session has written one frame to each worker, which tells what the first one has written.
    lose_the_last(monkeypatch, settings, 1, 1)
    with pytest.raises(DataLossError, match="were told how many frames a session had written"):
        continue_from_routed(settings)
    assert all_states(settings) == {}


def test_the_record_of_the_query_says_where_it_began(kafka_settings: Any, query_name: str) -> None:
    settings = make_settings(kafka_settings, query_name, input={"start": "latest", "partitions": 2})
    create_topics(settings)
    write(settings, [(1, {"k": "a", "t": 1, "v": 1})] * 3, end=False)
    states = read_all(settings, 0)
    begun = read_beginning(settings)
    assert begun is not None
    assert begun.begin == {0: 0, 1: 3}
    assert begun.identity == settings.identity()
    assert begun.input_id == states[0].topic_id
    write(settings, [(p, {"k": "a", "t": 2, "v": 1}) for p in (0, 1)], end=False)
    moved = [
        TopicPartition(
            settings.topic("input"),
            p,
            s.offset + 1,
            replace(s, begin=s.offset + 1, offset=s.offset + 1).encode(),
        )
        for p, s in states.items()
    ]
    by_hand = clients.consumer(settings.kafka, group=data_plane_group(settings))
    by_hand.commit(offsets=moved, asynchronous=False)
    by_hand.close()
    assert [(one.begin, one.began_again) for one in read_committed(settings, begun)] == [(0, 1), (3, 4)]


def test_the_states_of_partitions_that_stand_still_are_committed_again_after_an_hour(
    kafka_settings: Any, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(kafka_settings, query_name, input={"partitions": 2})
    create_topics(settings)
    now = [0.0]
    plane = DataPlane(prepare(settings), clock=lambda: now[0])
    with Closing() as closing:
        loop = plane._opened(closing)
        closing.when_over(loop.abandon)

        def steps_until(condition: Callable[[], bool]) -> None:
            def step() -> bool:
                loop.step()
                now[0] += 0.01
                return condition()

            wait_until(step)

        steps_until(lambda: len(loop.parts.source.states) == 2)
        # The first commit of a session holds every state.
        write(settings, [(0, {"k": "a", "t": 0, "v": 1})], end=False)
        steps_until(lambda: loop.work.commits == 1)
        committed: list[set[int]] = []
        commit = loop.parts.sink.commit

        def noted(states: dict[int, PartitionState], metadata: object) -> None:
            commit(states, metadata)
            committed.append(set(states))

        monkeypatch.setattr(loop.parts.sink, "commit", noted)
        now[0] += 3_500
        write(settings, [(0, {"k": "a", "t": 1, "v": 1})], end=False)
        steps_until(lambda: committed == [{0}])
        now[0] += 150
        steps_until(lambda: committed == [{0}, {1}])
        for _ in range(20):
            loop.step()
        assert len(committed) == 2
