"""What the pages of a controller answer while no broker does."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from controller import service
from evenflow.settings import Settings, load_settings
from tests.pages import page
from tests.unit.reporting.clock import Clock
from topics.state import TopicState
from topics.watch import TopicWatch
from workbench.local.ports import free_ports


def test_a_broker_that_is_gone_makes_a_controller_unhealthy_and_not_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = free_ports(1)
    settings = load_settings(
        query={"name": "q"}, kafka={"bootstrap_servers": "kafka:9092"}, control={"web_port": port}
    )
    clock, stop, said = Clock(), threading.Event(), {}

    class Started(service.Controller):
        """A controller that had its topics when it started. Its broker is gone since."""

        def __init__(self, settings: Settings, **words: Any) -> None:
            plan = TopicState(name="q.plan", topic_id="i", partitions=1, begin={}, end={}, config={})
            silence: dict[str, Future[Any]] = {"q.plan": Future()}
            self._watch = TopicWatch(settings.kafka, [plan], clock=clock, ask=lambda names: silence)
            self._settings = settings
            self._turns = iter([0, 3, 3, 20])

        def turn(self, timeout: float) -> None:
            passed = next(self._turns, None)
            if passed is None:
                stop.set()
                return
            clock.now += passed
            self._watch.check()
            said[clock.now] = {path: page(port, path) for path in ("/healthy/", "/alive/")}

        def ignored(self) -> dict[str, int]:
            return {}

        def keep(self) -> None:
            """Nothing was learned."""

        tell_end = close = keep

    monkeypatch.setattr(service, "Controller", Started)
    service.control(settings, stop=stop, clock=clock)
    starting, *answering, gone = said.values()
    assert starting["/healthy/"] == (503, {"healthy": False, "reason": "it has not begun to control yet"})
    assert [one["/healthy/"] for one in answering] == [(200, {"healthy": True})] * 2
    code, answer = gone["/healthy/"]
    assert code == 503
    assert answer["reason"].startswith("Kafka at kafka:9092 has not answered for 2")
    assert gone["/alive/"][0] == 200, "no restart brings a broker back"
