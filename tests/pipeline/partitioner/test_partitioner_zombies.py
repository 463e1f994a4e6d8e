"""A partitioner that is stopped in mid-transaction, loses its partitions to another, and goes on as if
nothing had been.
"""

from __future__ import annotations

import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.sections.kafka import KafkaExtras
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import parts_of, some_rows, start_thread, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    rejections,
    write,
    write_end,
)
from topics import admin
from workbench.local.processes import ChildProcess

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.more,
    pytest.mark.family,
    pytest.mark.usefixtures("either_reading"),
]

PLANE = """
import json, logging, signal, sys
from evenflow.settings import load_settings
from partitioner_service.plane.data_plane import DataPlane
logging.basicConfig(level=logging.INFO)
plane = DataPlane(load_settings(**json.loads(sys.argv[1])))
signal.signal(signal.SIGTERM, lambda *_: plane.stop())
plane.run()
"""
# Which it meets first, its own commit or the news that its partitions are gone, is a matter of moments.
AFTERWARDS = "the transaction (failed for good|could not be aborted)|were lost, not revoked"
SHORT_SESSIONS = KafkaExtras(librdkafka={"session.timeout.ms": 3_000, "heartbeat.interval.ms": 300})


def instance(kafka: KafkaSettings, query: str, name: str, **partitioner: Any) -> Settings:
    return make_settings(
        kafka.model_copy(update={"extras": SHORT_SESSIONS}),
        query,
        partitioner={"instance": name, **partitioner},
    )


@pytest.mark.parametrize(
    ("options", "aborted"),
    [
        # On a busy machine the stop may hit the commit itself. Then the heir waits until the broker aborts
        # it.
        ({"commit_interval": "5s", "transaction_timeout": "20s"}, False),
        ({"commit_interval": "2s", "transaction_timeout": "4s"}, True),
    ],
    ids=["the transaction outlives the membership", "the broker aborts the transaction"],
)
def test_an_instance_stopped_in_mid_transaction_whose_partitions_another_took_over_loses_and_doubles_nothing(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, options: dict[str, Any], aborted: bool
) -> None:
    zombie = instance(kafka_settings, query_name, "zombie", **options)
    heir = instance(kafka_settings, query_name, "heir")
    create_topics(heir)
    rows = some_rows(600)
    write(heir, [*rows[:300], (0, b"bad")], end=False)
    child = ChildProcess([sys.executable, "-c", PLANE, parts_of(zombie)], log=tmp_path / "zombie.log")
    try:
        wait_until(lambda: _written(heir) or not child.alive)
        child.signal(signal.SIGSTOP)
        assert total(all_states(heir)) == (0, 0, 0), "it was stopped too late: the transaction is committed"
        plane = DataPlane(heir)
        thread, errors = start_thread(plane)
        wait_until(lambda: total(all_states(heir)) == (301, 300, 1) or errors)
        if aborted:
            assert read_routed(heir).counts == expected_counts(
                heir, rows[:300]
            )  # once the broker has aborted
        child.signal(signal.SIGCONT)
        wait_until(lambda: re.search(AFTERWARDS, child.output()))
        write(heir, rows[300:], end=False)
        write_end(heir, Counter(p for p, _ in rows))
        wait_until(lambda: all(s.ended for s in all_states(heir).values()) or errors)
        plane.stop()
        thread.join(60)
        assert not errors
    finally:
        child.signal(signal.SIGCONT)
        child.terminate(30)
    routed = read_routed(heir)
    assert routed.counts == expected_counts(heir, rows)
    assert every_lane_ended(heir, routed)
    assert total(all_states(heir)) == (601, 600, 1)
    assert [reason for reason, _, _ in rejections(heir)] == ["unreadable"]


def _written(settings: Settings) -> bool:
    """Whether there is anything in the routed topic, committed or not."""
    topic = settings.topic("routed")
    return admin.describe(settings.kafka, [topic])[topic].records > 0
