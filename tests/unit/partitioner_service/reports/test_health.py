"""The health page tells which half stands still, and only after a minute of it."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.telemetry import Standstill
from partitioner_service.reports.health import Health, broker_gone, standing_still

RUNNING: dict[str, Any] = {"state": "running", "seconds_since_progress": 0.1}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_both_halves_in_progress_are_healthy() -> None:
    assert Health(Clock()).healthy(RUNNING, control_joined=True) == {"healthy": True, "state": "running"}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (RUNNING | {"seconds_since_progress": 61.0}, "data plane has made no progress for 61 s"),
        (RUNNING | {"state": "stopped"}, "data plane has stopped"),
    ],
)
def test_a_data_plane_that_stands_still_or_has_stopped_is_not_healthy(
    status: dict[str, Any], reason: str
) -> None:
    result = Health(Clock()).healthy(status, control_joined=True)
    assert result["healthy"] is False
    assert reason in result["reason"]


def test_a_control_plane_that_never_joins_or_drops_out_is_not_healthy_after_a_minute() -> None:
    clock = Clock()
    health = Health(clock)
    clock.now += 59
    assert health.healthy(RUNNING, control_joined=False)["healthy"] is True
    clock.now += 2
    assert "control plane" in health.healthy(RUNNING, control_joined=False)["reason"]
    assert health.healthy(RUNNING, control_joined=True)["healthy"] is True
    clock.now += 500
    assert health.healthy(RUNNING, control_joined=False)["healthy"] is True, "the minute begins now"
    clock.now += 61
    assert health.healthy(RUNNING, control_joined=False)["healthy"] is False


def test_what_stands_still_for_a_minute_is_not_healthy_but_alive() -> None:
    """A restart would not help, so a liveness probe must not see it."""
    health = Health(Clock())
    waiting = {"what": "waits for a first tuple", "seconds": 59.0, "reason": "partition 3 had no tuple yet"}
    status = RUNNING | {"standing_still": [waiting]}
    assert health.healthy(status, control_joined=True)["healthy"] is True
    waiting["seconds"] = 60.0
    result = health.healthy(status, control_joined=True)
    assert (result["healthy"], result["reason"]) == (False, "partition 3 had no tuple yet")
    assert health.alive(status, control_joined=True) == {"alive": True, "state": "running"}
    stuck = status | {"seconds_since_progress": 61.0}
    assert "no progress" in health.alive(stuck, control_joined=True)["reason"]


def test_a_data_plane_without_progress_is_unhealthy_after_12_s_and_dead_after_a_minute() -> None:
    for seconds, healthy, alive in ((11.9, True, True), (12.0, False, True), (60.0, False, False)):
        status, health = RUNNING | {"seconds_since_progress": seconds}, Health(Clock())
        assert health.healthy(status, control_joined=True)["healthy"] is healthy
        assert health.alive(status, control_joined=True)["alive"] is alive


def test_a_broker_that_is_gone_is_unhealthy_after_7_s_though_the_data_plane_goes_round() -> None:
    for seconds, reason in ((6.9, None), (8.0, "Kafka at b:9092 has not answered for 8 s")):
        status, health = RUNNING | {"standing_still": broker_gone("b:9092", seconds)}, Health(Clock())
        assert health.healthy(status, control_joined=True).get("reason") == reason
        assert health.alive(status, control_joined=True)["alive"] is True, "no restart brings a broker back"


def test_telemetry_says_what_the_page_says() -> None:
    waits = {"what": "waits for newer tuples", "seconds": 60.0, "reason": "partition 3 had nothing new"}
    young = {"what": "nothing read", "seconds": 59.0, "reason": "nothing is read"}
    stuck = {"what": "unfetchable", "seconds": 1.0, "reason": "offset 3 cannot be fetched", "at_once": True}
    status = RUNNING | {"standing_still": [young, waits, stuck]}
    assert standing_still(status) == [Standstill(what="waits for newer tuples", why=waits["reason"])]
    assert Health(Clock()).healthy(status, control_joined=True)["reason"] == waits["reason"]
