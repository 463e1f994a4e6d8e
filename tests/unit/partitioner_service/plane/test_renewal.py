"""Partitions that commit nothing of their own accord are committed again every hour."""

from __future__ import annotations

from partitioner_service.plane.renewal import Renewal
from tests.unit.reporting.clock import Clock


def test_a_partition_is_due_an_hour_after_it_was_committed_or_assigned() -> None:
    clock = Clock()
    renewal = Renewal(clock=clock)
    assert renewal.due({0, 1}) == set()
    clock.now += 3_599
    renewal.committed({1})
    assert renewal.due({0, 1, 2}) == set()
    clock.now += 1
    assert renewal.due({0, 1, 2}) == {0}
    renewal.committed({0})
    assert renewal.due({0, 1, 2}) == set()
    clock.now += 3_599
    assert renewal.due({0, 1, 2}) == {1, 2}


def test_a_partition_that_was_given_up_is_forgotten() -> None:
    clock = Clock()
    renewal = Renewal(clock=clock)
    renewal.due({0, 1})
    clock.now += 3_600
    assert renewal.due({1}) == {1}
    assert renewal.due({0, 1}) == {1}
