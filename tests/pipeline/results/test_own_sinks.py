"""A sink of one's own with real Spark: the one that docs/your-own-sinks.md shows, and one that `verify`
can read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings
from evenflow.spark import results
from evenflow.twostep import readable_schema
from spark_consumers.application import run
from spark_consumers.session import make_session
from spark_consumers.sinks import SINKS, RowsSink, check_sink, sink_of
from spark_consumers.sinks.base import Position
from spark_consumers.sinks.checking import check_writing, settings_for
from tests.pipeline.spark_stream import Stream, make_settings, with_spark
from workbench.result_rows import ResultRows

pytestmark = [pytest.mark.pipeline, pytest.mark.more]

PAGE = (Path(__file__).parents[3] / "docs/your-own-sinks.md").read_text(encoding="utf-8")


class Batches(RowsSink):
    """A folder for each micro-batch, which a repetition replaces. Its rows can be read back."""

    name = "tests.pipeline.results.test_own_sinks:SINK"
    needs = ("path",)
    repeats = False

    def write(self, rows: DataFrame, batch: int, settings: Settings) -> None:
        rows.write.mode("overwrite").parquet(f"{settings.results.path}/{batch:010d}")

    def position(self, settings: Settings) -> Position:
        folder = Path(str(settings.results.path))
        return frozenset(str(file.relative_to(folder)) for file in folder.glob("*/part-*.parquet"))

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.Table:
        names = self.position(settings) if until is None else until
        assert isinstance(names, frozenset)
        folder, schema = Path(str(settings.results.path)), readable_schema(settings.query)
        files = [folder / name for name in sorted(names.difference(after or ()))]
        return ds.dataset(files).to_table().cast(schema) if files else schema.empty_table()

    def spark_rows(
        self, spark: SparkSession, settings: Settings, *, stream: bool, options: Mapping[str, str]
    ) -> DataFrame:
        assert not stream
        return spark.read.options(**options).parquet(f"{settings.results.path}/*")


class Appending(Batches):
    """Claims that a repetition changes nothing, but appends."""

    def write(self, rows: DataFrame, batch: int, settings: Settings) -> None:
        rows.write.mode("append").parquet(f"{settings.results.path}/{batch:010d}")


class Known(Appending):
    name = "tests.pipeline.results.test_own_sinks:KNOWN"
    repeats = True


class Forgetful(Batches):
    """Loses a row."""

    def write(self, rows: DataFrame, batch: int, settings: Settings) -> None:
        super().write(rows.where("n IS NOT NULL"), batch, settings)


SINK, KNOWN = Batches(), Known()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("own")
    settings = Settings(query={"name": "own", "key": "k"}, spark={"checkpoint": str(folder)})
    session = make_session(settings)
    yield session
    session.stop()


def shown() -> RowsSink:
    """The sink that the page shows."""
    code = next(
        block for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S) if "SINK =" in block
    )
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return namespace["SINK"]


def test_sinks_that_write_files_keep_the_contract_with_real_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    check_sink(shown())
    for number, sink in enumerate((shown(), SINK, KNOWN, SINKS["parquet"], SINKS["delta"])):
        check_writing(sink, spark, settings_for(sink, path=str(tmp_path / str(number))))
    rows = spark.read.json(str(tmp_path / "0/*"), schema="window_start TIMESTAMP, n BIGINT")
    assert rows.selectExpr("count(*)", "min(unix_millis(window_start))").first() == (18, 0)
    written = [settings_for(sink, path=str(tmp_path / str(n))) for n, sink in enumerate((SINK, KNOWN), 1)]
    once, twice = (SINK.spark_rows(spark, its, stream=False, options={}).count() for its in written)
    assert (once, twice) == (18, 24), "a repeated micro-batch replaces its rows, or appends them"
    for its in written:
        frame = results(spark, its)
        assert frame.columns == readable_schema(its.query).names
        assert frame.count() == 18


@pytest.mark.parametrize(
    ("sink", "law"), [(Appending, "repeats is False, but"), (Forgetful, "gives the rows that were written")]
)
def test_a_sink_that_repeats_or_loses_rows_is_told(
    spark: SparkSession, tmp_path: Path, sink: type[RowsSink], law: str
) -> None:
    with pytest.raises(AssertionError, match=law):
        check_writing(sink(), spark, settings_for(sink(), path=str(tmp_path / "rows")))


def test_a_pipeline_writes_to_a_sink_of_ones_own_and_does_not_begin_there_anew_without_its_checkpoint(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    results = {"sink": "tests.pipeline.results.test_own_sinks:SINK", "path": str(tmp_path / "rows")}
    settings = make_settings(kafka_settings, query_name, tmp_path, results=results)
    assert sink_of(settings) is SINK
    stream = Stream(settings)
    stream.write(6)
    stream.end()
    run(settings, until_ended=True)
    rows = [row for table in ResultRows(settings).new() for row in table.to_pylist()]
    assert len(rows) == len(stream.expected())
    written = sorted((row["window_start"].timestamp() * 1000, row["key"]) for row in rows)
    assert written == sorted(stream.expected())
    with pytest.raises(
        IncompatibleStateError, match=r"has begun to write its results to .*its checkpoint is not there"
    ):
        run(with_spark(settings, {"checkpoint": str(tmp_path / "other")}), until_ended=True)
    lost = settings.results.model_copy(update={"sink": "tests.pipeline.results.test_own_sinks:NONE"})
    with pytest.raises(
        ConfigError, match=r"is not there: module tests\.pipeline\.results\.test_own_sinks has no NONE"
    ):
        run(settings.model_copy(update={"results": lost}))
