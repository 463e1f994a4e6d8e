"""The two ways of the scenario `spark-forwarding`: one shuffle or two, and the same results."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.spark.forwarding import WAYS
from benchmarks.spark.triggers import worked_off
from evenflow.settings import KafkaSettings
from spark_consumers.session import end_session, make_session
from tests.pipeline.spark_stream import Stream, make_settings, results

pytestmark = [pytest.mark.pipeline, pytest.mark.more]


@pytest.mark.parametrize(("way", "shuffles"), [("today", 1), ("homes", 2)])
def test_homes_and_a_second_shuffle_give_exactly_the_direct_results_as_today_does(
    way: str,
    shuffles: int,
    kafka_settings: KafkaSettings,
    query_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, spark={"buckets": 3})
    stream = Stream(settings)
    stream.write(25)
    stream.end()
    session = make_session(settings)
    try:
        WAYS[way](session, settings, "any").explain()
        with CpuMeter() as meter:
            turn = worked_off(session, settings, str(tmp_path), meter, frame_of=WAYS[way])
    finally:
        end_session(session)
    assert capsys.readouterr().out.count("Exchange hashpartitioning") == shuffles
    assert turn.triggers > 1, "a state must last from one micro-batch to the next"
    rows, records = results(settings)
    assert rows == stream.expected()
    assert turn.rows == records == len(rows)
