"""Every aggregate there is, through real Kafka and Spark into the two kinds of typed results, as `verify`
recomputes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.aggregates import AGGREGATES, every_form
from evenflow.settings import Settings
from tests.pipeline.end_to_end import Pipeline, Stream, make_settings
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(280)]


@pytest.mark.long
@pytest.mark.parametrize("sink", ["frames", "parquet"])
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
    _verified(settings, tmp_path)


_COLUMNS = {
    "text": ("string", "CASE WHEN i % 3 = 0 THEN 'Zürich' WHEN i % 3 = 1 THEN 'b' ELSE '' END"),
    "flag": ("bool", "i > 0"),
    "day": ("date", "CASE WHEN i > 0 THEN DATE '2026-01-31' WHEN i < -1000 THEN DATE '1969-12-31' END"),
    "f": ("decimal(S)", None),
}
"""Columns of the types that are no plain numbers: name -> type, and what they are derived by."""


@pytest.mark.parametrize(
    "sink",
    [
        "kafka",
        pytest.param("frames", marks=pytest.mark.long),
        pytest.param("parquet", marks=pytest.mark.long),
    ],
)
def test_every_aggregate_of_texts_truths_days_and_money_is_right_in_every_kind_of_results(
    kafka_settings: Any, query_name: str, tmp_path: Path, sink: str
) -> None:
    aggregates = {
        f"{column}_{number}": form.replace("(column", f"({column}")
        for column, (kind, _) in _COLUMNS.items()
        for number, form in enumerate(
            form for aggregate in AGGREGATES.values() if kind in aggregate.over for form in aggregate.forms
        )
    }
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "aggregates": aggregates,
            "columns": {name: text for name, (_, text) in _COLUMNS.items() if text is not None},
            "types": {"f": "decimal(3)", "i": "int64"},
        },
        spark={"buckets": 2},
        results={"sink": sink} | ({"path": str(tmp_path / "results")} if sink == "parquet" else {}),
    )
    assert len(aggregates) > 40
    _verified(settings, tmp_path)


def _verified(settings: Settings, folder: Path) -> None:
    stream = Stream(settings)
    stream.write(3_000)
    stream.end()
    with Pipeline(settings, folder) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.first == ()
    assert report.exact
    assert report.rows > 500
