"""How an instance reads the orders to go past a batch that cannot be fetched. Without Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.errors import ServiceError
from evenflow.settings import load_settings
from partitioner_service.kafka.unfetchable import Unfetchable
from partitioner_service.plane.skips import SkipOrders
from topics.query.skip_orders import SkipOrder

ORDER = SkipOrder(partition=0, offset=5, through=7, because="why", who="me", at=1)
STUCK = {0: Unfetchable(0, 5, "it does not decompress")}


class Written:
    """The record of an order."""

    def __init__(self, order: SkipOrder) -> None:
        self._order = order

    def key(self) -> bytes:
        return self._order.key

    def value(self) -> bytes:
        return self._order.encode()


class Followers:
    """Makes followers of a topic that holds one order. failing: how many of them fail in their first read."""

    def __init__(self, failing: int) -> None:
        self.failing = failing
        self.opened = self.closed = 0

    def __call__(self, *_: Any) -> Followers:
        self.opened += 1
        return self

    def all_so_far(self) -> list[Written]:
        if self.opened <= self.failing:
            raise ServiceError("the broker is away")
        return [Written(ORDER)]

    def new(self) -> list[Written]:
        return []

    def close(self) -> None:
        self.closed += 1


def test_an_order_is_obeyed_although_the_first_read_of_the_orders_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followers, now = Followers(failing=1), [0.0]
    monkeypatch.setattr("partitioner_service.plane.skips.Follower", followers)
    skips = SkipOrders(load_settings(query={"name": "q"}), None, clock=lambda: now[0])  # type: ignore[arg-type]
    assert skips.due(STUCK) == []
    assert followers.closed == 1
    now[0] = 2.0
    assert skips.due(STUCK) == [ORDER]
    now[0] = 4.0
    assert skips.due(STUCK) == [ORDER], "it is open until it is answered"
    assert followers.opened == 2
