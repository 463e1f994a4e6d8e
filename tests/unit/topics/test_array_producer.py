"""A producer of librdkafka's own: which settings it takes, and what it says while it is polled."""

from __future__ import annotations

import gc
import logging
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.mock_kafka import TOPIC, MockKafka
from tests.patience import wait_for
from topics.librdkafka import hand_over
from topics.librdkafka.loaded import NotProvenError
from topics.librdkafka.producer import ArrayProducer

PATIENCE = 20.0


@pytest.fixture(scope="module")
def kafka() -> MockKafka:
    return MockKafka(1)


def hand_over_two(client: ArrayProducer) -> tuple[int, KafkaError | None]:
    """One record with key and value, and one with neither. Returns how many were taken, and why not all."""
    values, keys = pa.array([b"v", None], pa.large_binary()), pa.array([b"k", None], pa.large_binary())
    return client.hand_over(values, keys, np.zeros(2, np.int32), np.array([5, 6]))


def test_a_plugin_of_librdkafka_is_left_to_confluent_kafka() -> None:
    with pytest.raises(NotProvenError, match=r"plugin\.library\.paths"):
        ArrayProducer({"plugin.library.paths": "none"}, topic=TOPIC, failed=lambda *some: None)


def test_a_setting_that_librdkafka_refuses_is_named() -> None:
    for config in ({"linger.mss": 5}, {"acks": "some"}, {"enable.idempotence": True, "acks": 1}):
        with pytest.raises(KafkaException, match=r"linger\.mss|acks"):
            ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)


def test_without_a_broker_errors_and_lines_of_the_log_come_while_polling(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[KafkaError] = []
    logger = logging.getLogger("tests.writers")
    caplog.set_level(logging.DEBUG, logger.name)
    config = {"bootstrap.servers": "127.0.0.1:9", "error_cb": errors.append, "logger": logger}
    client = ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)
    with pytest.raises(KafkaException, match=r"_TRANSPORT|_TIMED_OUT"):
        client.list_topics(1.0)
    deadline = time.monotonic() + PATIENCE
    while not (errors and caplog.records):
        assert time.monotonic() < deadline
        client.poll(0.05)
    assert {error.name() for error in errors} <= {"_TRANSPORT", "_ALL_BROKERS_DOWN"}
    assert any("127.0.0.1:9" in record.getMessage() for record in caplog.records)
    client.close()


def test_what_the_callback_for_errors_raises_is_raised_by_the_poll() -> None:
    def refuse(error: KafkaError) -> None:
        raise ValueError(error.name())

    config = {"bootstrap.servers": "127.0.0.1:9", "error_cb": refuse, "logger": logging.getLogger("tests")}
    client = ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)
    with pytest.raises(ValueError, match=r"_TRANSPORT|_ALL_BROKERS_DOWN"):
        client.poll(PATIENCE)
    client.close()


def test_a_client_that_nobody_holds_any_more_ends_its_threads(kafka: MockKafka) -> None:
    def threads() -> int:
        with open("/proc/self/status") as status:
            return int(next(line.split()[1] for line in status if line.startswith("Threads:")))

    config = {"bootstrap.servers": kafka.servers}
    # The mock broker starts a thread for the first client, which stays.
    first = ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)
    assert hand_over_two(first) == (2, None)
    assert first.flush(PATIENCE) == 0
    first.close()
    before = threads()
    client = ArrayProducer(config, topic=TOPIC, failed=lambda *some: None)
    assert hand_over_two(client) == (2, None)
    assert client.flush(PATIENCE) == 0
    assert threads() > before
    assert threading.active_count() < threads(), "they are librdkafka's own"
    del client
    gc.collect()
    wait_for(lambda: threads() <= before, timeout=PATIENCE)


def test_a_closed_client_says_so_and_crashes_nothing(kafka: MockKafka) -> None:
    client = ArrayProducer({"bootstrap.servers": kafka.servers}, topic=TOPIC, failed=lambda *some: None)
    client.close()
    for call in (client.purge, client.__len__, lambda: client.poll(0), lambda: client.flush(0)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_columns_that_the_kernel_would_misread_are_refused(kafka: MockKafka) -> None:
    client = ArrayProducer({"bootstrap.servers": kafka.servers}, topic=TOPIC, failed=lambda *some: None)
    two, times = np.zeros(2, np.int32), np.zeros(2, np.int64)
    texts = pa.array([b"a", b"b"], pa.large_binary())
    with pytest.raises(ValueError, match="large_binary, not binary"):
        client.hand_over(texts.cast(pa.binary()), texts, two, times)
    with pytest.raises(ValueError, match="different lengths"):
        client.hand_over(texts[:1], texts, two, times)
    client.close()


def test_a_hand_over_runs_the_compiled_forms_that_an_image_brings(kafka: MockKafka) -> None:
    kernels: list[Any] = [hand_over.hand_over, hand_over.read_failures]
    hand_over.compile_kernels()
    forms = [kernel.signatures for kernel in kernels]
    failed: list[int] = []
    config = {"bootstrap.servers": kafka.servers, "linger.ms": 60_000}
    client = ArrayProducer(config, topic=TOPIC, failed=lambda partition, count, error: failed.append(count))
    assert hand_over_two(client) == (2, None)
    nothing = pa.array([], pa.large_binary())
    numbers: tuple[Any, Any] = (np.zeros(0, np.int32), np.zeros(0, np.int64))
    assert client.hand_over(nothing, nothing, *numbers) == (0, None)
    client.purge()
    assert client.flush(PATIENCE) == 0
    assert sum(failed) == 2
    assert [kernel.signatures for kernel in kernels] == forms
