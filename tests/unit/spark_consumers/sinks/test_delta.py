"""Results in a Delta table: each micro-batch once, whoever commits it, and read by whatever reads Delta."""

from __future__ import annotations

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.delta_place import delta_place
from evenflow.twostep import readable, readable_schema
from spark_consumers.sinks import SINKS, sink_of
from spark_consumers.sinks.base import Start
from spark_consumers.sinks.checking import sample_rows, settings_for
from spark_consumers.sinks.delta import commit, delta_schema
from tests.unit.spark_consumers.admitting import found, refuses_to_lose_or_mix_results, texts

SINK = SINKS["delta"]


def begun(folder: Path, run: str = "ours") -> Settings:
    """Settings of a query whose table is there, without rows. run: word of the checkpoint."""
    settings = settings_for(SINK, path=str(folder / "table"))
    nowhere: Any = None  # making the table asks no Spark
    SINK.writer(settings, Start(spark=nowhere, run=run, epoch=1))
    return settings


def batch_rows(settings: Settings, number: int) -> pa.Table:
    rows = sample_rows(AggregatePlan.of(settings.query), 1000 * number)
    return readable(rows, readable_schema(settings.query)).cast(delta_schema(settings))


def write(settings: Settings, *batches: int, run: str = "ours") -> None:
    for number in batches:
        commit(delta_place(settings), run, batch_rows(settings, number), number)


def test_a_micro_batch_that_is_repeated_changes_nothing(tmp_path: Path) -> None:
    settings = begun(tmp_path)
    write(settings, 0, 1, 1, 3, 3, 1, 0)
    table = SINK.read_back(settings).read_all()
    schema = readable_schema(settings.query)
    assert table.schema == schema
    expected = pa.concat_tables([batch_rows(settings, number).cast(schema) for number in (0, 1, 3)])
    assert texts(table) == texts(expected)
    assert DeltaTable(str(settings.results.path)).version() == 3, (
        "a commit for each micro-batch, behind the table's own"
    )


def test_of_drivers_that_commit_the_same_micro_batches_at_the_same_time_one_does_it(tmp_path: Path) -> None:
    settings = begun(tmp_path)
    for number in range(6):
        rows = batch_rows(settings, number)
        with ThreadPoolExecutor(4) as drivers:
            work = partial(commit, delta_place(settings), "ours", rows, number)
            for done in [drivers.submit(work) for _ in range(4)]:
                done.result()
    assert SINK.read_back(settings).read_all().num_rows == 36
    assert DeltaTable(str(settings.results.path)).version() == 6


def test_a_table_that_is_compacted_meanwhile_keeps_each_row_once(tmp_path: Path) -> None:
    settings = begun(tmp_path)
    write(settings, 0, 1)
    seen = SINK.position(settings)
    table = DeltaTable(str(settings.results.path))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    write(settings, 1, 2)
    assert SINK.read_back(settings).read_all().num_rows == 18
    assert SINK.read_back(settings, after=SINK.position(settings)).read_all().num_rows == 0
    with pytest.raises(DataLossError, match=r"a file of the Delta table .* is gone"):
        SINK.read_back(settings, until=seen).read_all()


def test_rows_between_two_positions_are_those_that_were_committed_between_them(tmp_path: Path) -> None:
    settings = begun(tmp_path)
    write(settings, 0)
    first = SINK.position(settings)
    write(settings, 1)
    second = SINK.position(settings)
    write(settings, 2)
    between = SINK.read_back(settings, after=first, until=second).read_all()
    assert texts(between) == texts(batch_rows(settings, 1).cast(readable_schema(settings.query)))
    assert SINK.read_back(settings, until=first).read_all().num_rows == 6


def test_duckdb_pandas_and_arrow_read_the_table(tmp_path: Path) -> None:
    settings = begun(tmp_path)
    write(settings, 0, 1)
    table = DeltaTable(str(settings.results.path))
    rows = table.to_pyarrow_dataset()
    with duckdb.connect() as db:
        db.register("rows", rows)
        counted = db.sql("SELECT count(*), count(DISTINCT (window_start, key)), sum(n) FROM rows").fetchall()
    frame = table.to_pandas()
    assert counted == [(12, 12, frame["n"].sum())]
    assert str(frame["window_start"].dtype) == "datetime64[us, UTC]"
    assert table.metadata().name == "q"


def test_a_start_is_refused_where_it_would_lose_or_mix_results(tmp_path: Path) -> None:
    settings = settings_for(SINK, path=str(tmp_path / "table"))
    refuses_to_lose_or_mix_results(
        SINK,
        settings,
        lambda: write(begun(tmp_path), 0, 1),
        gone="begun micro-batches up to 3: what they wrote is gone",
        missing="there is no Delta table",
    )


def test_a_table_of_others_is_not_written_and_not_read(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "table", pa.table({"x": [1]}))
    settings = settings_for(SINK, path=str(tmp_path / "table"))
    for call in (partial(SINK.admit, settings, found()), partial(SINK.read_back, settings)):
        with pytest.raises(IncompatibleStateError, match="is not known to be this query's results"):
            call()


def test_a_table_that_is_removed_or_replaced_is_a_loss_and_ends_the_application_in_words(
    tmp_path: Path,
) -> None:
    settings = begun(tmp_path)
    write(settings, 0)
    assert SINK.loss(settings) is None
    shutil.rmtree(tmp_path / "table")
    said = SINK.loss(settings) or ""
    assert said.startswith(
        f"there is no Delta table in {tmp_path}/table, so the results that were in it are gone: "
    )
    with pytest.raises(DataLossError, match="was removed while it was used: it is not there any more"):
        write(settings, 1)
    begun(tmp_path, run="theirs")
    with pytest.raises(DataLossError, match="another Delta table is in its place"):
        write(settings, 1)
    assert SINK.read_back(settings).read_all().num_rows == 0


def test_a_folder_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("a file")
    with pytest.raises(ConfigError, match=r"results\.path .* cannot be written"):
        begun(tmp_path)


def test_a_column_that_delta_cannot_have_is_refused() -> None:
    query = {"name": "q", "key": "k", "aggregates": {"n=1": "count"}}
    settings = Settings(query=query, results={"sink": "delta", "path": "p"}, input={"partitions": 1})
    with pytest.raises(ConfigError, match="a Delta table cannot have the column 'n=1'"):
        sink_of(settings)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ConfigError, match="needs the library deltalake") as caught:
        sink_of(settings_for(SINK))
    assert caught.value.hint == "pip install 'evenflow[delta]'"


@pytest.mark.parametrize(
    ("conf", "options"),
    [
        ({}, {}),
        (
            {"endpoint": "http://127.0.0.1:9000", "endpoint.region": "us-east-1"},
            {
                "aws_endpoint_url": "http://127.0.0.1:9000",
                "aws_allow_http": "true",
                "aws_region": "us-east-1",
            },
        ),
        ({"endpoint": "store.example"}, {"aws_endpoint_url": "https://store.example"}),
        (
            {"endpoint": "store.example", "connection.ssl.enabled": "false"},
            {"aws_endpoint_url": "http://store.example", "aws_allow_http": "true"},
        ),
    ],
)
def test_a_table_in_an_object_store_is_reached_as_sparks_configuration_says_and_put_on_a_condition(
    conf: dict[str, str], options: dict[str, str]
) -> None:
    spark = {"conf": {f"spark.hadoop.fs.s3a.{name}": value for name, value in conf.items()}}
    settings = Settings(results={"sink": "delta", "path": "s3a://bucket/table/"}, spark=spark)
    assert delta_place(settings) == ("s3a://bucket/table", {"aws_conditional_put": "etag", **options})


@pytest.mark.parametrize("path", ["gs://bucket/table", "hdfs://name/table", "abfss://a@b/table"])
def test_a_table_in_a_store_that_was_not_tried_is_refused(path: str) -> None:
    settings = Settings(results={"sink": "delta", "path": path})
    with pytest.raises(ConfigError, match="writes to folders and to s3a:// alone"):
        SINK.check(settings)
