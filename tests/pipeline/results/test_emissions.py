"""`emit = "changes"` and `"top(K, COLUMN)"` through real Kafka and Spark into every kind of results, and
verified.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.end_to_end import INVERTIBLE, Pipeline, Stream, make_settings
from workbench.verify.report import Report
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.long, pytest.mark.timeout(280)]


def verified(kafka: Any, name: str, folder: Path, sink: str, **query: Any) -> Report:
    """What verify says of a stream that has gone through the services."""
    results = {"sink": sink} | ({"path": str(folder / "results")} if sink == "parquet" else {})
    wiring = query.pop("wiring", "fused")
    settings = make_settings(
        kafka, name, folder, query=query, results=results, spark={"buckets": 2, "wiring": wiring}
    )
    stream = Stream(settings)
    stream.write(3_000)
    stream.end()
    with Pipeline(settings, folder) as pipeline:
        if wiring == "split":
            pipeline.start("partition", "--until-ended")
            pipeline.start("combine", "--until-ended")
            pipeline.start("reduce", "--until-ended")
            pipeline.finish()
        else:
            pipeline.run_to_the_end()
    report = verify(settings)
    assert report.first == (), report.text()
    assert report.exact
    assert report.ended
    return report


def test_changes_come_out_as_json_rows(kafka_settings: Any, query_name: str, tmp_path: Path) -> None:
    report = verified(kafka_settings, query_name, tmp_path, "kafka", emit="changes")
    assert report.rows > 500


def test_the_first_rows_of_all_buckets_come_out_as_json_rows(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    report = verified(kafka_settings, query_name, tmp_path, "kafka", emit="top(5, n)", aggregates=INVERTIBLE)
    assert 5 * (report.windows - 4) <= report.rows <= 5 * report.windows
    assert report.windows > 30


@pytest.mark.parametrize(
    ("sink", "emit"),
    [
        ("parquet", "changes"),
        ("parquet", "top(7, i_sum)"),
        ("frames", "changes"),
        ("frames", "top(7, i_mean, ascending)"),
    ],
)
def test_they_come_out_in_typed_columns(
    kafka_settings: Any, query_name: str, tmp_path: Path, sink: str, emit: str
) -> None:
    report = verified(kafka_settings, query_name, tmp_path, sink, emit=emit, aggregates=INVERTIBLE)
    assert report.rows > 200


def test_buckets_that_close_a_window_in_different_micro_batches_are_waited_for(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    report = verified(kafka_settings, query_name, tmp_path, "kafka", emit="top(3, f_sum)", wiring="split")
    assert report.rows > 90
