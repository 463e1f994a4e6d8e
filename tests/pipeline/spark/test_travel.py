"""Forwarding on two machines: partials stay where they were combined, and results are those of a direct
aggregation.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.spark.machines import machines
from benchmarks.spark.travel import Travel, session_on, worked_off_with_travel
from evenflow.settings import KafkaSettings
from spark_consumers.session import end_session
from tests.pipeline.spark_stream import Stream, make_settings, results

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(400)]

WORKERS = 4


def test_with_forwarding_most_partials_stay_on_the_machine_that_combined_them(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    travels: dict[str, Travel] = {}
    with machines(2, tmp_path / "machines") as master:
        for forwarding in ("off", "on"):
            settings = make_settings(
                kafka_settings,
                f"{query_name}-{forwarding}",
                tmp_path,
                partitioner={"name": "hashing", "workers": WORKERS, "forwarding": forwarding},
                spark={"buckets": WORKERS, "master": master, "executor_memory": "1g"},
            )
            stream = Stream(settings)
            stream.write(400)
            stream.end()
            session = session_on(settings, 2)
            try:
                with CpuMeter() as meter:
                    _, travels[forwarding] = worked_off_with_travel(session, settings, str(tmp_path), meter)
            finally:
                end_session(session)
            assert results(settings)[0] == stream.expected()
    shares = {way: travel.away / sum(travel) for way, travel in travels.items()}
    assert shares["on"] < shares["off"] / 2, shares
