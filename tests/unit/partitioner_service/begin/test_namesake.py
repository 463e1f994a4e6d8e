"""When a process of the same name counts as alive, and a port that is taken."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import PartitionerRecord
from partitioner_service.begin.namesake import next_report
from partitioner_service.web.listening import listening


def settings(**partitioner: Any) -> Settings:
    return load_settings(query={"name": "q"}, input={"partitions": 2}, partitioner=partitioner)


def report(instance: str) -> bytes:
    return PartitionerRecord(
        query="q",
        fingerprint="0" * 16,
        time=1,
        instance=instance,
        started=1,
        owned=1,
        inputs=2,
        epoch=0,
        workers=8,
        tuples=0,
        rejected=0,
        read=0,
        filtered=0,
        period_ms=0,
    ).encode()


class Message:
    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value


class Topic:
    """A telemetry topic and the time (s): each look takes a second, and hands over what is next."""

    def __init__(self, *seconds: list[bytes]) -> None:
        self.now = 0.0
        self._seconds = list(seconds)

    def new(self, timeout: float) -> list[Any]:
        self.now += 1.0
        return [Message(value) for value in (self._seconds.pop(0) if self._seconds else [])]

    def look(self, *, member: bool = True) -> PartitionerRecord | None:
        return next_report(settings(instance="a"), self, 3.0, lambda: member, clock=lambda: self.now)


def test_a_member_that_reports_is_alive() -> None:
    topic = Topic([], [b"no telemetry", report("b")], [report("a")])
    record = topic.look()
    assert record is not None
    assert record.instance == "a"


def test_a_member_that_is_silent_for_some_reports_is_dead_whatever_others_report() -> None:
    topic = Topic([report("b")], [], [], [report("a")])
    assert topic.look() is None
    assert topic.now == 3.0


def test_the_wait_is_over_as_soon_as_the_group_forgets_the_member() -> None:
    topic = Topic()
    assert topic.look(member=False) is None
    assert topic.now == 1.0


def test_a_port_that_another_process_has_is_refused_by_the_name_of_its_setting() -> None:
    with closing(listening(settings())) as first:
        port = first.getsockname()[1]
        with pytest.raises(
            ConfigError, match=f"partitioner.web_port is {port}, but another process"
        ) as error:
            listening(settings(web_port=port))
    assert "a port of its own" in (error.value.hint or "")


def test_an_address_of_another_machine_is_refused_by_the_name_of_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"partitioner.web_host '192.0.2.1' cannot be listened on"):
        listening(settings(web_host="192.0.2.1"))


def test_a_request_waits_until_the_pages_are_served() -> None:
    with (
        closing(listening(settings())) as web,
        socket.create_connection(web.getsockname(), timeout=5) as asks,
    ):
        asks.sendall(b"GET")
        accepted, _ = web.accept()
        with accepted:
            assert accepted.recv(3) == b"GET"
