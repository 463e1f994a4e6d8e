"""Which broker the clients of this process reach: the one of the run that is under way."""

from __future__ import annotations

from tests.faults.model.broker import Broker

_BROKER: list[Broker] = []


def connect(broker: Broker) -> None:
    """Let all clients reach this broker from now on."""
    _BROKER[:] = [broker]


def broker() -> Broker:
    """The broker of the run that is under way."""
    return _BROKER[0]
