"""Forwarding on two machines: partials stay where they were combined, and results are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.spark.machines import machines
from benchmarks.spark.stages import WORKERS
from benchmarks.spark.travel import Travel, session_on, worked_off_with_travel
from benchmarks.spark.triggers import routed_batches, taking
from evenflow.settings import KafkaSettings
from spark_consumers.session import end_session
from tests.pipeline.spark_stream import results

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(400)]

BATCHES = 6
CONF = {
    "spark.locality.wait": "60s",  # the first tasks of a busy machine take long
    # A Java that has had a session in one process would go on to ask for that session's secret.
    "spark.authenticate": "false",
}


def test_with_forwarding_most_partials_stay_on_the_machine_that_combined_them(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    travels: dict[str, Travel] = {}
    rows: dict[str, Any] = {}
    with machines(2, tmp_path / "machines") as master:
        for way in ("off", "on"):
            settings = routed_batches(
                kafka_settings,
                f"{query_name}-{way}",
                "hashing",
                tmp_path,
                batches=BATCHES,
                how={"forwarding": way},
                master=master,
                executor_memory="1g",
                buckets=WORKERS,
                conf=CONF,
            )
            session = session_on(settings, 2)
            try:
                with CpuMeter() as meter:
                    _, travels[way] = worked_off_with_travel(
                        session, taking(settings, 3 / BATCHES), str(tmp_path), meter
                    )
            finally:
                end_session(session)
            rows[way], _ = results(settings)
    assert rows["on"] == rows["off"] != {}
    shares = {way: travel.away / sum(travel) for way, travel in travels.items()}
    assert shares["on"] < shares["off"] / 2, shares
