"""Reducer stage: blobs -> results, one group of rows per bucket, its state in Spark's state store.

State is one map of named byte strings per bucket (few fat values, not one per key). What leaves a task
are Arrow-backed columns, so that no result row ever becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from evenflow.twostep import reduce_windows
from spark_consumers.layout import Layout

Shape = Callable[[pa.Table], pa.Table]
"""How a table of results becomes what a sink takes."""


def reduced(blobs: DataFrame, layout: Layout, *, schema: str, shape: Shape) -> DataFrame:
    """Rows of `schema` from a stream of (label, blob)."""
    return blobs.groupBy("label").transformWithStateInPandas(
        statefulProcessor=ReduceBucket(layout, shape),
        outputStructType=schema,
        outputMode="Append",
        timeMode="None",
    )


class ReduceBucket(StatefulProcessor):
    """The reducer's core for one bucket in one micro-batch."""

    def __init__(self, layout: Layout, shape: Shape) -> None:
        self._layout = layout
        self._shape = shape
        self._state: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the bucket's only state variable."""
        self._state = handle.getMapState("bucket", "name string", "value binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Collect the whole input of the bucket, then merge and close panes."""
        blobs = [blob for frame in rows for blob in frame["blob"]]
        layout = self._layout
        state = MapOfBytes(self._state)
        for table in reduce_windows(layout.plan, state, blobs, fingerprint=layout.fingerprint):
            yield arrow_frame(self._shape(table))

    def close(self) -> None:
        """Nothing is held between micro-batches."""


class MapOfBytes:
    """BucketState over Spark's MapState."""

    def __init__(self, state: Any) -> None:
        self._map = state

    def get(self, name: str) -> bytes | None:
        """The bytes of this name, or None."""
        row = self._map.getValue((name,))
        return None if row is None else bytes(row[0])

    def put(self, name: str, value: bytes) -> None:
        """Set the bytes of this name."""
        self._map.updateValue((name,), (value,))

    def delete(self, name: str) -> None:
        """Remove this name."""
        self._map.removeKey((name,))


def arrow_frame(table: pa.Table) -> pd.DataFrame:
    """A pandas frame whose columns are the table's Arrow arrays, not copies of them."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)
