"""What the sinks of typed rows have in common: they take the columns that a Parquet file of results has."""

from __future__ import annotations

import pyarrow as pa

from evenflow.settings import Settings
from spark_consumers.sinks import parquet
from spark_consumers.sinks.base import ResultSink, Shape


class TypedSink(ResultSink):
    """Takes rows as the sink `parquet` does. `result_files.with_times` makes its bounds timestamps."""

    def schema(self, settings: Settings) -> pa.Schema:
        return parquet.SINK.schema(settings)

    def shaper(self, settings: Settings) -> Shape:
        return parquet.SINK.shaper(settings)
