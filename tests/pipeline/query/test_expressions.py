"""A filter and derived columns through the whole pipeline: exact by verify, and counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.settings import KafkaSettings
from tests.pipeline.end_to_end import Pipeline, Stream, make_settings
from tests.pipeline.spark_stream import results
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]


@pytest.mark.long
def test_filtered_and_derived_columns_are_aggregated_exactly_by_a_key_of_two(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "slide": "5s",
            "key": ["band", "odd"],
            "where": "i > 0 AND (f IS NULL OR f < 1e5)",
            "columns": {
                "twice": "i * 2",
                "third": "g / 3",
                "band": "CASE WHEN third > 0 THEN 1 ELSE 0 END",
                "odd": "coalesce(i, 0) % 2 = 1",
            },
            "aggregates": {"rows": "count", "sum": "sum(twice)", "least": "min(third)", "above": "sum(band)"},
            "types": {"i": "int64"},
        },
    )
    stream = Stream(settings)
    stream.write(3_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.differences == 0, report.first
    assert report.read == report.routed + report.rejected + report.filtered
    wanted = [
        record.row
        for record in stream.records
        if record.row is not None
        and (record.row.get("i") or 0) > 0
        and (record.row.get("f") is None or record.row["f"] < 1e5)
    ]
    late = report.rejected
    assert len(wanted) - late <= report.routed <= len(wanted)
    assert report.filtered > 1_000
    result, _ = results(settings)
    assert {key for _, key in result} == {b"[0,false]", b"[0,true]", b"[1,false]", b"[1,true]"}
    assert sum(row["rows"] for row in result.values()) == report.routed
