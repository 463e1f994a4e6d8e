"""Every aggregate there is, through real Kafka and Spark into the two kinds of typed results, as `verify` recomputes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.aggregates import every_form
from tests.pipeline.end_to_end import Pipeline, Stream, make_settings
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(280)]


@pytest.mark.parametrize("sink", ["frames", pytest.param("parquet", marks=pytest.mark.long)])
def test_every_aggregate_is_right_in_every_kind_of_results(
    kafka_settings: Any, query_name: str, tmp_path: Path, sink: str
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"aggregates": every_form("i", "g") | {"bounded": "top_k(i, 2, 3)", "few": "collect(g, 2)"}},
        spark={"buckets": 2},
        results={"sink": sink} | ({"path": str(tmp_path / "results")} if sink == "parquet" else {}),
    )
    stream = Stream(settings)
    stream.write(3_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.first == ()
    assert report.exact
    assert report.rows > 500
