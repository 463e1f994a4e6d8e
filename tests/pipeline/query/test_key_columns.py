"""A key of several columns through the whole pipeline: a column for each part."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evenflow.settings import KafkaSettings
from tests.pipeline.end_to_end import Pipeline, Stream, make_settings
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280), pytest.mark.long]


def test_each_part_of_a_key_is_a_column_of_results(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "slide": "5s",
            "key": ["band", "odd"],
            "columns": {"band": "coalesce(i, 0) % 3", "odd": "coalesce(i, 0) % 2 = 1"},
            "types": {"i": "int64"},
            "where": "f < 1e5",
            "aggregates": {"rows": "count"},
        },
        results={"sink": "parquet", "path": str(tmp_path / "results")},
    )
    stream = Stream(settings)
    stream.write(1_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.exact, report.text()
    assert report.rows
    rows = pq.read_table(tmp_path / "results").to_pylist()
    assert {tuple(row) for row in rows} == {("window_start", "window_end", "band", "odd", "rows")}
    assert {(type(row["band"]), type(row["odd"])) for row in rows} == {(int, bool)}
