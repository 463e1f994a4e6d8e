"""Reducer stage: blobs -> results, one group of rows per bucket, its state in Spark's state store.

The state of a bucket is one map of named byte strings: a few large values, not one value per key. A task
returns Arrow-backed columns, so no result row ever becomes a Python object.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from evenflow.errors import DataLossError
from evenflow.twostep import (
    BucketState,
    Tally,
    merge_leaders,
    merge_parts,
    reduce_leaders,
    reduce_part,
    reduce_windows,
)
from evenflow.twostep.reducing.state_blobs import DAMAGED
from spark_consumers.combiner import by_part
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout
from spark_consumers.sinks.base import Shape
from spark_consumers.tasks import OnTally, Stopwatch

STATE_PIECE_BYTES = 1 << 20
"""Most bytes of a value that go to Spark's state server in one request, see `MapOfBytes`."""
_COUNT = struct.Struct("<I")
_CHECKSUM = struct.Struct("<I")


def reduced(
    blobs: DataFrame, layout: Layout, *, schema: str, shape: Shape, on_tally: OnTally | None
) -> DataFrame:
    """Rows of `schema` from a stream of (label, blob).

    shape: turns result tables into tables of `schema`. on_tally: is handed the tally of what each bucket has
    emitted, None if nobody listens. With `emit = "top"` the buckets send their leaders to one task of the
    same micro-batch, which merges the leaders. A summary's buckets send partials to one task in the same way.
    """
    if layout.parts:
        partials = _stateful(blobs, PartBuckets(layout, on_tally), "label int, blob binary")
        return _stateful(partials, MergeParts(layout, shape, on_tally), schema)
    if layout.plan.emission.mode != "top":
        return _stateful(blobs, ReduceBucket(layout, shape, on_tally), schema)
    leaders = _stateful(blobs, LeadBucket(layout, on_tally), "label int, blob binary")
    return _stateful(leaders, MergeLeaders(layout, shape, on_tally), schema)


def _stateful(rows: DataFrame, processor: StatefulProcessor, schema: str) -> DataFrame:
    return rows.groupBy("label").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=schema, outputMode="Append", timeMode="None"
    )


class _Processor(StatefulProcessor):
    """Handler of one group of rows. It holds the query, the listener, and a map of named byte strings.

    A group is a bucket, known to Spark by its label.
    """

    def __init__(self, layout: Layout, on_tally: OnTally | None) -> None:
        self._layout = layout
        self._on_tally = on_tally
        self._state: Any = None  # Spark's MapState, set by `init` in the Python worker

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the bucket's only state variable."""
        self._state = handle.getMapState("bucket", "name string", "value binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Collect the whole input of the group, then work on it."""
        watch = Stopwatch()
        # The rows of a group come in no promised order, and
        # panes may close only after all of them are merged.
        blobs = [blob for frame in rows for blob in frame["blob"]]
        bucket = bucket_labels(self._layout.buckets).index(int(key[0]))
        for table in self._tables(bucket, blobs, MapOfBytes(self._state), watch.telling(self._on_tally)):
            yield arrow_frame(table)

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is held between micro-batches."""


class ReduceBucket(_Processor):
    """The reducer's core for one bucket in one micro-batch. It returns results as the sink takes them."""

    def __init__(self, layout: Layout, shape: Shape, on_tally: OnTally | None) -> None:
        super().__init__(layout, on_tally)
        self._shape = shape

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        yield from self._shape(
            reduce_windows(self._layout.plan, self._layout, state, blobs, on_tally=on_tally), bucket
        )


class LeadBucket(_Processor):
    """The reducer's core for `emit = "top"`: the bucket sends its leaders to the task that merges them."""

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        # All buckets send to one label, so that Spark brings all leaders to one task.
        label = bucket_labels(self._layout.buckets)[0]
        for blob in reduce_leaders(self._layout.plan, self._layout, state, blobs, on_tally=on_tally):
            yield pa.table({"label": pa.array([label], pa.int32()), "blob": pa.array([blob], pa.binary())})


class MergeLeaders(ReduceBucket):
    """Merges the leaders that all buckets send, in one task. The rows count as rows of bucket 0."""

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        yield from self._shape(
            merge_leaders(self._layout.plan, self._layout, state, blobs, on_tally=on_tally), bucket
        )


class PartBuckets(_Processor):
    """The reducer's core for one bucket of every part of a summary: each sends partials of its rows to the
    task that merges.

    Each part has a state of its own within that of the bucket.
    """

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        layout, tallies = self._layout, [Tally()]
        label = bucket_labels(layout.buckets)[0]
        mine = by_part(blobs, len(layout.parts))
        for number, part in enumerate(layout.parts):
            # The stand of a bucket is told by bucket, and each part has one: to telemetry these are buckets
            # of their own.
            offset = number * layout.buckets

            def note(tally: Tally, offset: int = offset) -> None:
                stands_by_bucket = {bucket + offset: stand for bucket, stand in tally.bucket_stands.items()}
                tallies.append(replace(tally, bucket_stands=stands_by_bucket, closed={}))

            part_state = PrefixedState(state, f"{number}/")
            for blob in reduce_part(layout.summary, number, part, part_state, mine[number], on_tally=note):
                yield pa.table(
                    {"label": pa.array([label], pa.int32()), "blob": pa.array([blob], pa.binary())}
                )
        if on_tally is not None and len(tallies) > 1:
            on_tally(sum(tallies[1:], tallies[0]))  # once, because it counts as one task


class MergeParts(ReduceBucket):
    """Merges what all buckets of all parts of a summary send, in one task.
    The rows count as rows of bucket 0.
    """

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        yield from self._shape(
            merge_parts(self._layout.summary, self._layout, state, blobs, on_tally=on_tally), bucket
        )


class PrefixedState:
    """BucketState over the names of another one that begin with `prefix`."""

    def __init__(self, state: BucketState, prefix: str) -> None:
        self._state = state
        self._prefix = prefix

    def get(self, name: str) -> bytes | None:
        """The bytes of this name, or None."""
        return self._state.get(self._prefix + name)

    def put(self, name: str, value: bytes) -> None:
        """Set the bytes of this name."""
        self._state.put(self._prefix + name, value)

    def delete(self, name: str) -> None:
        """Remove this name."""
        self._state.delete(self._prefix + name)


class MapOfBytes:
    """BucketState over Spark's MapState, in pieces of at most `STATE_PIECE_BYTES` bytes.

    A request costs half a millisecond, however few bytes it carries, and is held in memory several times. So
    pieces are large, and values have no bound. Spark's state server takes requests of any size since 4.0.2
    (SPARK-53870). Piece 0 begins with the number of pieces, so values in pieces of any other size are read,
    too.

    Before each piece stands the CRC-32 of its name and its bytes. Every method raises DataLossError for a
    piece that does not have its checksum, and `get` also for one that is missing.

    Nobody else may write the map meanwhile.
    """

    def __init__(self, state: Any) -> None:
        self._map = state
        self._counts: dict[str, int] = {}
        """Pieces of each name that was looked at, 0 for a name that is not there."""

    def get(self, name: str) -> bytes | None:
        """The bytes of this name, or None."""
        first = self._piece(name, 0)
        count = self._counts[name] = 0 if first is None else _pieces(first)
        if first is None:
            return None
        whole = [memoryview(first)[_COUNT.size :]]
        for number in range(1, count):
            piece = self._piece(name, number)
            if piece is None:
                raise _damaged(f"{_piece_name(name, number)!r} is missing")
            whole.append(piece)
        return b"".join(whole)

    def put(self, name: str, value: bytes) -> None:
        """Set the bytes of this name."""
        before = self._count(name)
        whole = memoryview(value)
        # Rounded up. An empty value has one piece, too, as piece 0 says that the name exists.
        count = self._counts[name] = max(1, -(-len(whole) // STATE_PIECE_BYTES))
        for number in range(count):
            piece = whole[number * STATE_PIECE_BYTES : (number + 1) * STATE_PIECE_BYTES]
            own = _piece_name(name, number)
            head = [_COUNT.pack(count)] if number == 0 else []
            self._map.updateValue((own,), (_sealed(own, *head, piece),))
        # Remove the pieces of a longer value that was here before.
        for number in range(count, before):
            self._map.removeKey((_piece_name(name, number),))

    def delete(self, name: str) -> None:
        """Remove this name."""
        for number in range(self._count(name)):
            self._map.removeKey((_piece_name(name, number),))
        self._counts[name] = 0

    def _count(self, name: str) -> int:
        if name not in self._counts:
            first = self._piece(name, 0)
            self._counts[name] = 0 if first is None else _pieces(first)
        return self._counts[name]

    def _piece(self, name: str, number: int) -> memoryview | None:
        own = _piece_name(name, number)
        row = self._map.getValue((own,))
        return None if row is None else _opened(own, row[0])


def _sealed(name: str, *parts: bytes | memoryview) -> bytes:
    """A piece, which these parts make up, behind its checksum."""
    return b"".join([_checksum(name, *parts), *parts])


def _opened(name: str, sealed: bytes) -> memoryview:
    """The piece that `_sealed` made these bytes of. Raises DataLossError if they are others."""
    whole = memoryview(sealed)
    piece = whole[_CHECKSUM.size :]
    if _checksum(name, piece) != whole[: _CHECKSUM.size]:
        raise _damaged(f"the bytes of {name!r} do not have their checksum")
    return piece


def _checksum(name: str, *parts: bytes | memoryview) -> bytes:
    checksum = zlib.crc32(name.encode())
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return _CHECKSUM.pack(checksum)


def _damaged(damage: str) -> DataLossError:
    return DataLossError(f"the reducer's state is damaged: {damage}", hint=DAMAGED)


def _pieces(first: memoryview) -> int:
    return int(_COUNT.unpack_from(first)[0])


def _piece_name(name: str, number: int) -> str:
    return f"{name}#{number}"


def arrow_frame(table: pa.Table) -> pd.DataFrame:
    """A pandas frame whose columns are the table's Arrow arrays, not copies.

    Lists become Python lists instead: Spark 4.0 takes lists apart itself and fails on pandas' own null.
    """
    return table.to_pandas(types_mapper=lambda kind: None if pa.types.is_list(kind) else pd.ArrowDtype(kind))
