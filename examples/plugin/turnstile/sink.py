"""A sink of one's own: a folder of Parquet files for each micro-batch. docs/your-own-sinks.md explains it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from evenflow.settings import Settings
from evenflow.twostep import readable_schema
from spark_consumers.sinks import RowsSink

if TYPE_CHECKING:  # `verify` and the controller load the sink where there is no Spark
    from pyspark.sql import DataFrame


class Folders(RowsSink):
    """A folder for each micro-batch, which a repetition replaces. `verify` can read it."""

    name = "turnstile.sink:SINK"
    needs = ("path",)
    repeats = False

    def write(self, rows: DataFrame, batch: int, settings: Settings) -> None:
        rows.write.mode("overwrite").parquet(f"{settings.results.path}/{batch:010d}")

    def position(self, settings: Settings) -> Any:
        folder = Path(str(settings.results.path))
        return frozenset(str(file.relative_to(folder)) for file in folder.glob("*/part-*.parquet"))

    def read_back(self, settings: Settings, *, after: Any = None, until: Any = None) -> pa.Table:
        names = self.position(settings) if until is None else until
        folder, schema = Path(str(settings.results.path)), readable_schema(settings.query)
        files = [folder / name for name in sorted(names.difference(after or ()))]
        return ds.dataset(files).to_table().cast(schema) if files else schema.empty_table()


SINK = Folders()
