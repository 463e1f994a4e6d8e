"""The rhythm that an instance has chosen: it follows the rate, and is said once a change."""

import logging

import pytest

from evenflow.settings import PartitionerSettings
from partitioner_service.plane.rhythm import ChosenRhythm


def test_a_choice_is_said_once_a_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rhythm = ChosenRhythm(PartitionerSettings(), routed=200, batches=False)
    for rate in (0.0, 0.0, 400_000.0, 380_000.0, 420_000.0):
        rhythm.look(routed=200, rate=rate)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("a block waits up to 625 ms for 50,000 tuples, and a transaction is 500 ms long")
    assert first.endswith("until the rate is known")
    assert second.startswith("a block waits up to 125 ms")
    assert second.endswith("400,000 tuples/s")
    assert rhythm.shown() == {
        "block_tuples": 50_000,
        "linger": 125,
        "commit_interval": 500,
        "chosen": ["block_tuples", "linger", "commit_interval"],
    }


def test_a_plan_with_more_partitions_in_use_changes_the_rhythm() -> None:
    rhythm = ChosenRhythm(PartitionerSettings(), routed=8, batches=False)
    assert rhythm.now == (50_000, 50, 500)
    rhythm.look(routed=1_000, rate=100_000.0)
    assert rhythm.now == (200_000, 1_000, 1_000)


def test_where_everything_is_set_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    options = PartitionerSettings(block_tuples=7, linger=20, commit_interval=300)
    rhythm = ChosenRhythm(options, routed=1_000, batches=False)
    rhythm.look(routed=1_000, rate=1e6)
    assert (rhythm.now, rhythm.shown()["chosen"], caplog.records) == ((7, 20, 300), [], [])
