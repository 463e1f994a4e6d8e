"""Streams that DuckDB pulls: what they raise comes out as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa


class PulledStream:
    """A stream of batches that remembers the exception it ended with."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        self.error: Exception | None = None
        self.reader = pa.RecordBatchReader.from_batches(schema, self._pass_on(batches))

    def _pass_on(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            # DuckDB, which pulls these batches, wraps any exception in its own. `unwrapped_errors` needs
            # this one.
            self.error = error
            raise


@contextmanager
def unwrapped_errors(*streams: PulledStream | pa.Table) -> Iterator[None]:
    """Raise the error of a stream as it was, instead of the DuckDB error that wraps it. Tables raise none."""
    try:
        yield
    except duckdb.Error:
        for stream in streams:
            if isinstance(stream, PulledStream) and stream.error is not None:
                raise stream.error from None
        raise
