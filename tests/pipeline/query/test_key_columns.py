"""A key of several columns through the whole pipeline: a column for each part, unless the query was begun earlier."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from evenflow.settings import KafkaSettings
from partitioner_service.begin.claim import claim
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.watchdog import Watchdog
from tests.pipeline.end_to_end import Pipeline, Stream, make_settings
from topics import reader
from topics.query.record import read_beginning
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280), pytest.mark.long]


@pytest.mark.parametrize("earlier", [False, True], ids=["begins now", "begun earlier"])
def test_a_query_keeps_the_columns_of_the_key_with_which_it_began(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, earlier: bool
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
        results={"sink": "kafka" if earlier else "parquet", "path": str(tmp_path / "results")},
    )
    if earlier:
        claim(prepare(settings).with_one_key_column(), Watchdog())
    stream = Stream(settings)
    stream.write(1_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    begun = read_beginning(settings)
    assert begun is not None
    assert begun.key_columns != earlier
    report = verify(settings)
    assert report.exact, report.text()
    assert report.rows
    if earlier:
        rows = [
            json.loads(record.value())
            for block in reader.read_range(settings.kafka, settings.topic("results"))
            for record in block
        ]
        assert {tuple(row) for row in rows} == {("window_start", "window_end", "key", "rows")}
    else:
        rows = pq.read_table(tmp_path / "results").to_pylist()
        assert {tuple(row) for row in rows} == {("window_start", "window_end", "band", "odd", "rows")}
        assert {(type(row["band"]), type(row["odd"])) for row in rows} == {(int, bool)}
