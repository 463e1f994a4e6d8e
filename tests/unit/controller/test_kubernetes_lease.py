"""Who leads: one candidate at a time, not longer than it can renew, and the next one at once where the
first one leaves.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from controller.kubernetes import RENEW_SECONDS, leading
from evenflow.settings import Settings, load_settings
from tests.unit.reporting.clock import Clock

SETTINGS = load_settings(query={"name": "q"}, control={"lease": "evenflow-controller"})


class Lease:
    """Held by at most one candidate. fails: what asking for it raises; asked: is called at each question."""

    def __init__(self) -> None:
        self.holder: str | None = None
        self.fails: Exception | None = None
        self.asked: Callable[[], object] = lambda: None
        self.renewed = threading.Event()


class Candidate:
    def __init__(self, lease: Lease, name: str) -> None:
        self._lease, self._name = lease, name

    def holds(self) -> bool:
        self._lease.asked()
        if self._lease.fails is not None:
            raise self._lease.fails
        if self._lease.holder is None:
            self._lease.holder = self._name
        self._lease.renewed.set()
        return self._lease.holder == self._name

    def give_up(self) -> None:
        self._lease.holder = None


def lead(
    lease: Lease, clock: Clock, *, stop: threading.Event | None = None, settings: Settings = SETTINGS
) -> object:
    return leading(
        settings,
        stop or threading.Event(),
        election=Candidate(lease, "me"),
        clock=clock,
        pause=0.001,
    )


def test_without_a_lease_in_the_settings_nobody_is_asked() -> None:
    lease = Lease()
    alone = load_settings(query={"name": "q"})
    with lead(lease, Clock(), settings=alone) as leads:
        assert leads()
    assert lease.holder is None


def test_a_controller_leads_once_the_lease_is_free_and_gives_it_up_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "controller")
    lease, clock, asked = Lease(), Clock(), []
    lease.holder = "another"

    def asking() -> None:
        asked.append(1)
        if len(asked) == 3:
            lease.holder = None

    lease.asked = asking
    with lead(lease, clock) as leads:
        assert leads()
        assert lease.holder == "me"
    assert lease.holder is None
    assert caplog.text.count("another controller decides; this one waits") == 1
    assert caplog.text.count("this controller decides") == 1


def test_who_cannot_renew_leads_no_more_before_another_one_could(caplog: pytest.LogCaptureFixture) -> None:
    lease, clock = Lease(), Clock()
    with lead(lease, clock) as leads:
        again, lease.fails = threading.Event(), OSError("no route to the API server")
        lease.asked = again.set
        assert again.wait(10)
        again.clear()
        assert again.wait(10), "the trouble of the time before has been told by now"
        clock.now += RENEW_SECONDS - 1
        assert leads()
        clock.now += 1
        assert not leads()
    assert lease.holder == "me", "it is not ours to give up any more"
    assert caplog.text.count("cannot be asked for: no route to the API server") == 1


def test_a_lease_that_was_renewed_counts_from_then() -> None:
    lease, clock = Lease(), Clock()
    with lead(lease, clock) as leads:
        clock.now += RENEW_SECONDS - 1
        lease.renewed.clear()
        assert lease.renewed.wait(10)
        lease.renewed.clear()
        assert lease.renewed.wait(10), "the one before has been written down by now"
        clock.now += RENEW_SECONDS - 1
        assert leads()


def test_a_lease_that_is_taken_away_is_lost_after_the_time_to_renew() -> None:
    lease, clock = Lease(), Clock()
    with lead(lease, clock) as leads:
        lease.holder = "another"
        lease.renewed.clear()
        assert lease.renewed.wait(10)
        clock.now += RENEW_SECONDS
        assert not leads()
    assert lease.holder == "another"


def test_who_is_stopped_while_it_waits_never_leads() -> None:
    lease, stop = Lease(), threading.Event()
    lease.holder = "another"
    lease.asked = stop.set
    with lead(lease, Clock(), stop=stop) as leads:
        assert not leads()
