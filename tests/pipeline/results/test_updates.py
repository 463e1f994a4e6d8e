"""`late = "update"` through real Kafka and Spark: windows come out early, and late tuples update them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import Settings
from tests.pipeline.end_to_end import Pipeline, Stream, assert_equal, committed, exported, make_settings
from topics import reader
from workbench.result_rows import ResultRows, export
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]


def rows(settings: Settings) -> list[dict[str, Any]]:
    """Every row of the results topic."""
    result = reader.read_range(settings.kafka, settings.topic("results"))
    return [json.loads(message.value()) for batch in result for message in batch]


@pytest.mark.more
@pytest.mark.parametrize("wiring", ["fused", pytest.param("split", marks=pytest.mark.long)])
def test_late_tuples_update_windows_that_are_out(
    kafka_settings: Any, query_name: str, tmp_path: Path, wiring: str
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"out_of_orderness": 0, "allowed_lateness": "12s", "late": "update"},
        spark={"buckets": 2, "wiring": wiring},
    )
    stream = Stream(settings)
    shown = ResultRows(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        for stage in ("aggregate",) if wiring == "fused" else ("combine", "reduce"):
            pipeline.start(stage, "--until-ended")
        for part in range(3):
            stream.write(700)
            written, before = len(stream.records), part and len(rows(settings))
            pipeline.wait_until(lambda written=written: committed(settings) >= written)
            pipeline.wait_until(lambda before=before: len(rows(settings)) > before)
        running = verify(settings)
        assert running.first == (), running.text()
        assert not running.ended
        stream.end()
        pipeline.finish()
    assert max(row["revision"] for row in rows(settings)) > 0, "no window was updated"
    report = verify(settings)
    assert report.exact, report.text()
    assert report.rows > 500
    file = tmp_path / "all.parquet"
    assert export(settings, file) == report.rows
    assert_equal(exported(settings, file), stream.expected())
    followed = [row for table in shown.new() for row in table.to_pylist()]
    assert len(followed) == len({(row["window_start"], row["key"], row["revision"]) for row in followed})
    assert len(followed) > report.rows, "who follows sees each revision"
