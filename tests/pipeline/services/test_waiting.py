"""A service that starts too early waits for its broker and its input topic, and says so."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import KafkaSettings, Settings, load_settings
from topics.admin import ensure_topics, input_topic
from topics.query.waiting import wait_for_input, wait_while

pytestmark = pytest.mark.pipeline


class Clock:
    """Sleeping moves it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def settings_of(kafka: KafkaSettings, query_name: str, wait: int, *, timeout: int = 1_000) -> Settings:
    """wait, timeout: ms."""
    later = kafka.model_copy(update={"startup_wait": wait, "request_timeout": timeout})
    return load_settings(query={"name": query_name}).model_copy(update={"kafka": later})


def test_without_a_wait_nobody_is_asked() -> None:
    clock = Clock()
    nowhere = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    wait_for_input(settings_of(nowhere, "q", 0), clock=clock, sleep=clock.sleep)
    assert clock.pauses == []


def test_a_broker_that_is_not_there_is_asked_again_later_and_later_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    nowhere = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    with caplog.at_level(logging.INFO, "evenflow.start"):
        wait_for_input(settings_of(nowhere, "q", 20_000), clock=clock, sleep=clock.sleep)
    assert clock.pauses == [1, 2, 4, 8, 5]
    ours = [record for record in caplog.records if "not ready to start" in record.getMessage()]
    assert [record.levelno for record in ours] == [logging.WARNING] + 4 * [logging.INFO]
    assert "127.0.0.1:1" in ours[0].getMessage()


def test_one_trouble_is_warned_of_once_whatever_the_client_counts_in_its_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    counts = ("(after 0ms in state CONNECT)", "(after 1ms in state CONNECT, 2 identical error(s) suppressed)")
    said = iter(
        [f"refused {count}" for count in counts]
        + ["refused (after 12ms in state CONNECT)"]
        + 2 * ["no such topic"]
    )
    settings = settings_of(KafkaSettings(bootstrap_servers="127.0.0.1:1"), "q", 20_000)
    with caplog.at_level(logging.INFO, "evenflow.start"):
        wait_while(lambda: ServiceError(next(said)), settings, clock=clock, sleep=clock.sleep)
    levels = [record.levelno for record in caplog.records if "not ready to start" in record.getMessage()]
    assert levels == [logging.WARNING, logging.INFO, logging.INFO, logging.WARNING, logging.INFO]


def test_a_certificate_that_cannot_be_read_is_named_and_not_waited_for(tmp_path: Path) -> None:
    clock = Clock()
    kafka = KafkaSettings(security_protocol="SSL", ssl_ca=tmp_path / "none.pem")
    with pytest.raises(ConfigError, match=r"kafka\.ssl_ca: .*none\.pem cannot be read: No such file"):
        wait_for_input(settings_of(kafka, "q", 20_000), clock=clock, sleep=clock.sleep)
    assert clock.pauses == []


def test_an_input_topic_that_is_made_meanwhile_ends_the_wait(
    kafka_settings: KafkaSettings, query_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    settings = settings_of(kafka_settings, query_name, 600_000, timeout=20_000)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.pauses) == 3:
            ensure_topics(kafka_settings, [input_topic(settings)])

    with caplog.at_level(logging.INFO, "evenflow.start"):
        wait_for_input(settings, clock=clock, sleep=sleep)
    assert clock.pauses == [1, 2, 4]
    assert f"there is no topic {query_name}.input" in caplog.text
    assert "is ready: going on" in caplog.text
