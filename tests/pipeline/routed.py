"""What the tests of the partitioner service know of its output, read from the real topics.

`read_routed` also checks what the reducer rests on: in every lane (input partition, routed partition)
marks never fall, and no tuple comes for a pane that the lane's earlier marks closed. The frames of each
session are numbered without gaps, and none is missing that somebody else was told of.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Message

from evenflow.settings import Settings, load_settings
from evenflow.twostep.sequences import RangeSequences, Sessions
from evenflow.windows import END_MARK, NO_MARK, panes_closed_by
from evenflow.wire import decode_frame
from evenflow.wire.markers import EndOfStream
from topics import admin, clients, reader

Tuple_ = tuple[bytes | str, int, float | None]


@dataclass
class Routed:
    """counts: (pane, key) -> tuples; sums: (pane, key) -> sum of the first value; holders: (pane, key) ->
    routed partitions; lanes: last mark; per_worker: tuples."""

    counts: Counter[tuple[int, bytes]] = field(default_factory=Counter)
    sums: Counter[tuple[int, bytes]] = field(default_factory=Counter)
    holders: defaultdict[tuple[int, bytes], set[int]] = field(default_factory=lambda: defaultdict(set))
    lanes: dict[tuple[int, int], int] = field(default_factory=dict)
    per_worker: Counter[int] = field(default_factory=Counter)
    frames: int = 0
    largest: int = 0


def make_settings(kafka: Any, name: str, **parts: Any) -> Settings:
    """Settings of a small query named like the test: keys k, times t (ms), values v."""
    query = {"name": name, "key": "k", "time": "t", "window": "4s", "slide": "1s", "types": {"v": "int64"}}
    query |= {"aggregates": {"n": "count", "s": "sum(v)"}} | parts.pop("query", {})
    parts["input"] = {"partitions": 4} | parts.get("input", {})
    partitioner = {"workers": 3, "commit_interval": 100, "linger": 20} | parts.pop("partitioner", {})
    return load_settings(
        query=query, kafka=kafka.model_dump(exclude_unset=True), partitioner=partitioner, **parts
    )


def create_topics(settings: Settings) -> None:
    """All topics of the query."""
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())


def write(
    settings: Settings,
    tuples: Iterable[tuple[int, dict[str, Any] | bytes]],
    *,
    end: bool = True,
    producer: str = "t",
) -> None:
    """(input partition, row or raw record) in this order, then an end marker in every partition."""
    client = clients.producer(settings.kafka)
    counts: Counter[int] = Counter()
    for partition, row in tuples:
        value = row if isinstance(row, bytes) else json.dumps(row).encode()
        client.produce(settings.topic("input"), value=value, partition=partition)
        counts[partition] += 1
        client.poll(0)
    clients.flush(client, settings.kafka)
    if end:
        write_end(settings, counts, producer=producer)


def write_end(settings: Settings, counts: Counter[int], *, producer: str = "t", producers: int = 1) -> None:
    """The end-of-stream marker of this producer in every partition."""
    client = clients.producer(settings.kafka)
    for partition in range(settings.input_partitions):
        marker = EndOfStream(producer=producer, tuples=counts[partition], producers=producers)
        client.produce(settings.topic("input"), partition=partition, headers=marker.headers())
    clients.flush(client, settings.kafka)


def read_routed(settings: Settings) -> Routed:
    """Everything visible in the routed topic."""
    routed = Routed()
    ranges = {number: RangeSequences(number) for number in range(settings.routed_partitions)}
    for message in records(settings, "routed"):
        frame = decode_frame(message.value(), fingerprint=settings.fingerprint)
        batch, routed_at = frame.batch, message.partition()
        ranges[routed_at].add(frame, message.offset())
        routed.frames += 1
        routed.largest = max(routed.largest, len(message.value()))
        routed.per_worker.update(frame.workers(routed_at))
        owners = [worker for worker, rows in frame.workers(routed_at).items() for _ in range(rows)]
        closed = min(routed.lanes.get((p, routed_at), NO_MARK) for p in range(settings.input_partitions))
        values = batch.column(2).to_pylist() if batch.num_columns > 2 else [0] * batch.num_rows
        for pane, key, value, worker in zip(
            batch.column(0).to_pylist(), batch.column(1).to_pylist(), values, owners, strict=True
        ):
            assert pane >= panes_closed_by(closed, settings.query.slide_ms), "a tuple for a closed pane"
            routed.counts[pane, key] += 1
            routed.sums[pane, key] += value or 0
            routed.holders[pane, key].add(worker)
        for partition, mark, _ in frame.header.marks.tolist():
            lane = (partition, routed_at)
            assert mark >= routed.lanes.get(lane, NO_MARK), "a mark fell"
            routed.lanes[lane] = mark
    sessions = Sessions(None, routed=len(ranges), most=1_000, partial=False)
    for number, result in ranges.items():
        if len(result.rows()):
            sessions.add(result.rows().tolist(), f"routed partition {number}")
    sessions.settled()
    return routed


def holders_of_the_hottest(routed: Routed, panes: int) -> list[int]:
    """Of each window of so many panes: the number of workers that hold its most frequent key."""
    windows: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
    holders: defaultdict[tuple[int, bytes], set[int]] = defaultdict(set)
    for (pane, key), tuples in routed.counts.items():
        for last in range(pane, pane + panes):
            windows[last][key] += tuples
            holders[last, key] |= routed.holders[pane, key]
    return [len(holders[last, counts.most_common(1)[0][0]]) for last, counts in sorted(windows.items())]


def records(settings: Settings, role: str) -> list[Message]:
    """Every visible record of a topic of the query."""
    return [m for block in reader.read_range(settings.kafka, settings.topic(role)) for m in block]


def rejections(settings: Settings) -> list[tuple[str, str, Message]]:
    """(reason, source, record) of every rejected record, by source position."""
    result = []
    for message in records(settings, "rejected"):
        headers = dict(message.headers())
        result.append((headers["evenflow-reason"].decode(), headers["evenflow-source"].decode(), message))
    return sorted(result, key=lambda entry: [int(x) if x.isdigit() else x for x in entry[1].split(":")])


def expected_counts(
    settings: Settings, tuples: Iterable[tuple[int, dict[str, Any]]]
) -> Counter[tuple[int, bytes]]:
    """(pane, key) -> tuples of rows that are all in time."""
    slide = settings.query.slide_ms
    return Counter((row["t"] // slide, row["k"].encode()) for _, row in tuples)


def every_lane_ended(settings: Settings, routed: Routed) -> bool:
    """Whether every (input, routed) pair of partitions has seen the end."""
    lanes = settings.input_partitions * settings.routed_partitions
    return len(routed.lanes) == lanes and set(routed.lanes.values()) == {END_MARK}
