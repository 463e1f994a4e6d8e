"""Which reduce bucket each key belongs to."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa

from evenflow.keys import Buckets, hash_keys

ONE_BUCKET = Buckets(1)
"""Where one task has all keys."""
_SCHEMA = pa.schema([("id", pa.int64()), ("bucket", pa.int32())])


def place_keys(db: duckdb.DuckDBPyConnection, buckets: Buckets) -> None:
    """Make `bucketed` (id, bucket) of the keys that are in `keys` now."""
    # A cursor of its own, because `db` reads the stream that is made of these rows.
    source = db.cursor().sql("SELECT id, key FROM keys").to_arrow_reader(100_000)

    def bucketed() -> Iterator[pa.RecordBatch]:
        for batch in source:
            bucket_numbers = pa.array(buckets.of(hash_keys(batch["key"])))
            yield pa.RecordBatch.from_arrays([batch["id"], bucket_numbers], schema=_SCHEMA)

    db.register("source", pa.RecordBatchReader.from_batches(_SCHEMA, bucketed()))
    db.execute("CREATE OR REPLACE TABLE bucketed AS SELECT * FROM source")
    db.unregister("source")
