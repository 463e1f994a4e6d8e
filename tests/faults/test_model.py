"""The model of the broker is held against a real one: both get the same calls, and must give the same
answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from evenflow.settings import KafkaSettings
from tests.faults.checks.history import History
from tests.faults.model import network
from tests.faults.model.admin import AdminClient as ModelAdmin
from tests.faults.model.broker import Broker
from tests.faults.model.consumer import Consumer as ModelConsumer
from tests.faults.model.producer import Producer as ModelProducer
from tests.faults.processes.world import World

_TOPIC = "t"
_STEPS = 25
_TIMEOUT = 10.0


def kinds(real: bool, servers: str, sleep: Callable[[float], object]) -> Any:
    """The clients of one side, and how it waits."""
    own = (Producer, Consumer, AdminClient) if real else (ModelProducer, ModelConsumer, ModelAdmin)
    base = {"bootstrap.servers": servers}
    return SimpleNamespace(
        producer=lambda **c: own[0](base | {name.replace("_", "."): value for name, value in c.items()}),
        consumer=lambda **c: own[1](base | {name.replace("_", "."): value for name, value in c.items()}),
        admin=own[2](base),
        sleep=sleep,
    )


def play(side: Any, prefix: str, seed: int) -> list[str]:
    """Make calls that the seed draws. Returns what each call answered, without what differs by chance."""
    draw, said = Random(seed), []
    topic, group = f"{prefix}-{_TOPIC}", f"{prefix}-g"
    for future in side.admin.create_topics([NewTopic(topic, 2, 1)]).values():
        future.result()
    outsider = side.consumer(group_id=group, isolation_level="read_committed")
    producers: list[Any] = []
    count = 0
    for _ in range(_STEPS):
        what = draw.choice(
            ("new", "begin", "begin", "produce", "produce", "offsets", "commit", "commit", "abort")
        )
        if what == "new" or not producers:
            mine = side.producer(
                transactional_id=f"{prefix}-{draw.randrange(2)}", transaction_timeout_ms=30_000
            )
            said.append(f"new {_answer(lambda mine=mine: mine.init_transactions(_TIMEOUT))}")
            producers.append(mine)
            side.sleep(0.2)
            continue
        number = draw.randrange(len(producers))
        mine = producers[number]
        count += 1
        if what == "begin":
            answer = _answer(mine.begin_transaction)
        elif what == "produce":
            answer = _answer(partial(_written, mine, topic, draw.randrange(2), f"v{count}"))
        elif what == "offsets":
            offsets = [TopicPartition(topic, draw.randrange(2), count, f"m{count}")]
            outside = outsider.consumer_group_metadata()
            answer = _answer(partial(mine.send_offsets_to_transaction, offsets, outside, _TIMEOUT))
        else:
            answer = _answer(partial(getattr(mine, f"{what}_transaction"), _TIMEOUT))
            side.sleep(0.2)
        said.append(f"{what} {number}: {answer}")
    # A last producer of each id ends what is still open, so that all can be read.
    for identity in range(2):
        side.producer(transactional_id=f"{prefix}-{identity}").init_transactions(_TIMEOUT)
    side.sleep(0.5)
    return said + _left(side, topic, group)


def _left(side: Any, topic: str, group: str) -> list[str]:
    """What can be read in the end: ends of logs, committed records, where each log was read to, offsets."""
    said = []
    parts = [TopicPartition(topic, number, 0) for number in range(2)]
    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        result = side.admin.list_offsets(dict.fromkeys(parts, OffsetSpec.latest()), isolation_level=level)
        ends = sorted((p.partition, f.result().offset) for p, f in result.items())
        said.append(f"ends {ends}")
    reader = side.consumer(
        group_id=f"{group}-r",
        isolation_level="read_committed",
        enable_partition_eof=True,
        auto_offset_reset="error",
    )
    reader.assign(parts)
    read: dict[int, list[str]] = {0: [], 1: []}
    ended: dict[int, int] = {}
    for _ in range(100):
        for message in reader.consume(100, timeout=0.2):
            error = message.error()
            if error is None:
                read[message.partition()].append(f"{message.offset()}={message.value().decode()}")
            elif error.code() == KafkaError._PARTITION_EOF:
                ended[message.partition()] = message.offset()
        if len(ended) == 2:
            break
    said += [f"[{number}] read {read[number]} to {ended.get(number)}" for number in range(2)]
    said.append(f"watermarks {[reader.get_watermark_offsets(part, timeout=_TIMEOUT) for part in parts]}")
    reader.assign([TopicPartition(topic, 0, 10_000)])
    codes = [m.error().code() for _ in range(20) for m in reader.consume(1, timeout=0.5) if m.error()][:1]
    said.append(f"beyond the end {codes}")
    reader.close()
    asked = side.consumer(group_id=group, isolation_level="read_committed")
    for part in asked.committed([TopicPartition(topic, number) for number in range(2)], timeout=_TIMEOUT):
        said.append(f"committed [{part.partition}] {part.offset} {part.metadata or None}")
    asked.close()
    return said


def _written(producer: Any, topic: str, partition: int, value: str) -> None:
    producer.produce(topic, value, partition=partition)
    producer.flush(_TIMEOUT)


def _answer(call: Callable[[], object]) -> str:
    try:
        call()
    except KafkaException as error:
        result = error.args[0]
        flags = [name for name in ("fatal", "retriable", "txn_requires_abort") if getattr(result, name)()]
        return " ".join([result.name(), *flags])
    return "ok"


def in_model(seed: int) -> list[str]:
    world = World(seed, [], History())
    network.connect(Broker(world))
    said: list[list[str]] = []
    process = world.spawn("t", lambda: said.append(play(kinds(False, "model", world.sleep), "x", seed)))
    assert world.run(until=lambda: process.done, limit=1e9)
    if process.error is not None:
        raise process.error
    return said[0]


def compare(kafka: KafkaSettings, seed: int) -> None:
    prefix = f"model-{uuid4().hex[:8]}"
    real = play(kinds(True, kafka.bootstrap_servers, time.sleep), prefix, seed)
    assert in_model(seed) == real


@pytest.mark.pipeline
def test_the_model_answers_as_a_real_broker_does(kafka_settings: KafkaSettings) -> None:
    compare(kafka_settings, 0)


@pytest.mark.pipeline
@pytest.mark.more
@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))]
)
def test_the_model_answers_as_a_real_broker_does_to_more_calls(
    kafka_settings: KafkaSettings, seed: int
) -> None:
    compare(kafka_settings, seed)
