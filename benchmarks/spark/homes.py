"""The stages of forwarding in Spark at its cheapest: homes that finish every window, and buckets behind them.

Spark's Python workers load this module, so it imports nothing that they have not loaded anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from evenflow.twostep import reduce_windows
from evenflow.twostep.reducing.state_blobs import table_bytes, table_of
from spark_consumers.labels import bucket_labels
from spark_consumers.reducer import LeadBucket, MapOfBytes, ReduceBucket
from spark_consumers.tasks import OnTally

_HEARD = "heard"


class Home(LeadBucket):
    """The reducer's core for the keys of a home. It sends the rows of each window that it finishes to a
    bucket.
    """

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        layout, label = self._layout, bucket_labels(self._layout.buckets)[bucket]
        sent = [
            table_bytes(table)
            for table in reduce_windows(layout.plan, layout, state, blobs, on_tally=on_tally)
        ]
        # The empty blob says that the home has worked: a bucket hears from its home in every micro-batch.
        sent.append(b"")
        labels = pa.array([label] * len(sent), pa.int32())
        yield pa.table({"label": labels, "blob": pa.array(sent, pa.binary())})


class BucketOfHome(ReduceBucket):
    """Returns the rows that its home has finished, as the sink takes them. Its state is how often the home
    was heard.
    """

    def _tables(
        self, bucket: int, blobs: list[bytes], state: MapOfBytes, on_tally: OnTally | None
    ) -> Iterator[pa.Table]:
        state.put(_HEARD, b"%d" % (int(state.get(_HEARD) or 0) + 1))
        yield from self._shape((table_of(blob) for blob in blobs if blob), bucket)
