"""What the sinks of typed rows have in common: they take the columns that a Parquet file of results has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from evenflow.settings import Settings
from evenflow.twostep.readable import TIME
from spark_consumers.sinks import parquet
from spark_consumers.sinks.base import ResultSink, Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TypedSink(ResultSink):
    """Takes rows as the sink `parquet` does. `result_files.with_times` makes its bounds timestamps."""

    def schema(self, settings: Settings) -> pa.Schema:
        return parquet.SINK.schema(settings)

    def shaper(self, settings: Settings) -> Shape:
        return parquet.SINK.shaper(settings)


def collected(rows: DataFrame, schema: pa.Schema) -> pa.Table:
    """The rows of a micro-batch in this process, with the bounds of their windows as timestamps,
    cast to this schema.
    """
    table = rows.toArrow()
    for name in ("window_start", "window_end"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(TIME))
    return table.cast(schema)
