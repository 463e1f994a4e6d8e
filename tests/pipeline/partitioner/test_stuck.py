"""A partition that is stuck, beside one that is read on: when orders are read, and how it is fetched again.

No batch is damaged here. What librdkafka would report of one is handed to the source, and all else is real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError

from evenflow.settings import KafkaSettings, Settings
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka import unfetchable
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.closing import Closing
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plane.loop import Loop
from tests.pipeline.planes import wait_until
from tests.pipeline.routed import create_topics, make_settings, read_routed, records, write
from topics import clients
from topics.query.skip_orders import ORDERS, SkipOrder
from topics.records import Record

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]

# The loop's clock stands while kernels are compiled, and the broker's does not.
PARTS: dict[str, Any] = {"input": {"partitions": 2}, "partitioner": {"transaction_timeout": "2m"}}


class Report:
    """What names the batch in an error of a consumer."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


class Steps:
    """A loop whose steps the test makes. Its clock moves by `stride` s with each."""

    def __init__(self, loop: Loop, now: list[float]) -> None:
        self.loop, self.stride = loop, 0.01
        self.source, self.sink = loop.parts.source, loop.parts.sink
        self._now = now

    def until(self, condition: Callable[[], bool]) -> None:
        """Make steps until this holds."""

        def step() -> bool:
            self.loop.step()
            self._now[0] += self.stride
            return condition()

        wait_until(step)

    def stick(self, offset: int) -> None:
        """Partition 0 is stuck at this offset from now on."""
        error = KafkaError(KafkaError._BAD_MSG, "as the test has it")
        assert self.source.unfetchable.take(Report(offset), error)  # type: ignore[arg-type]


@contextmanager
def stepping(settings: Settings) -> Iterator[Steps]:
    """A loop that owns both partitions and has read 5 records of partition 0."""
    create_topics(settings)
    write(settings, rows(0, 5), end=False)
    now = [0.0]
    plane = DataPlane(prepare(settings), clock=lambda: now[0])
    with Closing() as closing:
        loop = plane._opened(closing)
        closing.when_over(loop.abandon)
        steps = Steps(loop, now)
        steps.until(lambda: 0 in loop.parts.source.states and loop.parts.source.states[0].offset == 5)
        yield steps


def rows(partition: int, number: int) -> list[tuple[int, dict[str, Any]]]:
    return [(partition, {"k": f"key{n % 3}", "t": 1_000 + n, "v": 1}) for n in range(number)]


def test_orders_are_read_only_while_no_transaction_is_open_and_are_obeyed_beside_a_flowing_partition(
    kafka_settings: KafkaSettings, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(kafka_settings, query_name, **PARTS)
    with stepping(settings) as steps:
        write(settings, rows(0, 3), end=False)
        steps.stick(5)
        looks: list[float | None] = []
        look = steps.loop.parts.skips._look

        def noted() -> list[Record]:
            looks.append(steps.sink.open_for)
            return look()

        monkeypatch.setattr(steps.loop.parts.skips, "_look", noted)
        began_open: set[bool] = set()

        def flowing() -> bool:
            began_open.add(steps.sink.open_for is not None)
            write(settings, rows(1, 1), end=False)
            return len(looks) >= 4

        steps.stride = 0.04
        steps.until(flowing)
        order = SkipOrder(partition=0, offset=5, through=7, because="a test", who="me", at=1)
        producer = clients.producer(settings.kafka)
        producer.produce(settings.topic(ORDERS), key=order.key, value=order.encode())
        clients.flush(producer, settings.kafka)
        steps.until(lambda: steps.source.states[0].offset == 8)
        assert set(looks) == {None}
        assert began_open == {True, False}, "a transaction was open now and then"
        assert all_states(settings)[0].rejected == 3
    assert [dict(one.headers() or ())["evenflow-reason"] for one in records(settings, "rejected")] == [
        b"skipped"
    ]


def test_a_stuck_partition_alone_is_fetched_again_from_where_it_stands(
    kafka_settings: KafkaSettings, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfetchable, "_RETRY", 0.2)
    settings = make_settings(kafka_settings, query_name, **PARTS)
    with stepping(settings) as steps:
        write(settings, rows(0, 5), end=False)
        # As if the batch had been reported in their place: librdkafka stands behind them.
        passed = 0
        while passed < 5:  # ends of logs come between them
            passed += len(steps.source._fetcher.fetch(5 - passed, 30).offsets)
        steps.stick(5)
        rewinds = steps.source.rewinds
        write(settings, [*rows(0, 5), *rows(1, 20)], end=False)
        steps.until(lambda: steps.source.states[0].offset == 15 and steps.source.states[1].offset == 20)
        assert steps.source.rewinds == rewinds, "no other partition is read anew"
        assert steps.source.unfetchable.standing_still(steps.source.states) == []
        steps.loop.commit()
        states = all_states(settings)
        assert {p: (s.read, s.routed) for p, s in states.items()} == {0: (15, 15), 1: (20, 20)}
    assert sum(read_routed(settings).counts.values()) == 35
