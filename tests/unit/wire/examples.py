"""Small frames and blobs for the tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.wire import (
    LANE,
    MARKS,
    OFFSETS,
    SEQUENCE,
    TOTAL,
    BlobHeader,
    FrameHeader,
    Segment,
    encode_blob,
    encode_frame,
    records_of,
)


def frame_rows() -> pa.RecordBatch:
    """Five tuples of a frame with one value column."""
    return pa.record_batch(
        {
            "pane": pa.array([1, 1, 2, 2, 3]),
            "key": pa.array([b"a", b"bb", b"", b"\xff", b"a"], pa.binary()),
            "v:x": pa.array([1.5, None, -2.0, 0.0, 8.0]),
        }
    )


def frame_header(**fields: object) -> FrameHeader:
    """Of query f, 4 input and 3 routed partitions."""
    known: dict[str, object] = {"fingerprint": "f", "epoch": 2, "input_partitions": 4, "routed_partitions": 3}
    known |= {"session": 2**63 - 2, "totals": records_of([(5, 3), (2**63 - 2, 9)], TOTAL)}
    known |= {"offsets": records_of([(0, 5, 9), (3, 0, 0)], OFFSETS)}
    known |= {"marks": records_of([(0, 1000, 10), (3, -5, 1)], MARKS)}
    return FrameHeader(**(known | fields))  # type: ignore[arg-type]


def a_frame() -> bytes:
    """A whole frame."""
    return encode_frame(frame_rows(), frame_header(), sequence=2**40)


def a_shared_frame() -> bytes:
    """A frame of a routed partition that three workers share."""
    return encode_frame(frame_rows(), frame_header(shared_by=3), sequence=2**40, segments=np.array([2, 0, 3]))


def blob_rows() -> pa.RecordBatch:
    """Four partials."""
    return pa.record_batch(
        {
            "pane": pa.array([1, 2, 2, 3]),
            "key": pa.array([b"a", b"bb", b"", b"\xff"], pa.large_binary()),
            "rows": pa.array([1, 2, 3, 4]),
        }
    )


def blob_header(**fields: object) -> BlobHeader:
    """Of query f and topic t, bucket 1 of 2, 4 input and 3 routed partitions."""
    known: dict[str, object] = {"fingerprint": "f", "topic_id": "t", "bucket": 1, "buckets": 2}
    known |= {"input_partitions": 4, "routed_partitions": 3}
    known |= {"segments": (Segment(0, 3, 7, 3, 0, 3, 0), Segment(2, 0, 1, 9, 4, 1, 1))}
    known |= {"marks": np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), "lanes": records_of([(1, 0, 2, 3)], LANE)}
    known |= {"sequences": records_of([(0, 2**63 - 2, 4, 6, 0), (2, 5, -1, -1, 7)], SEQUENCE)}
    return BlobHeader(**(known | fields))  # type: ignore[arg-type]


def a_blob() -> bytes:
    """A whole blob."""
    return encode_blob(blob_rows(), blob_header())
