"""Wire formats: frames (partitioner -> combiner), blobs (combiner -> reducer) and result frames.

Admission rule: encoding and decoding only. Query and AggregatePlan say what the columns mean. Every decoder
takes any bytes. It raises ProtocolError for bytes that it cannot read, and IncompatibleStateError for a
record of another query.

`envelope` holds what frames and blobs have in common. `frame`, `blob` and `result_frames` (the results of one
bucket and window) are one file each. `cut` keeps records small. `claims` tells how large a record claims to
be.
"""

from evenflow.wire.blob import LANE, SEQUENCE, BlobHeader, Piece, Segment, decode_blob, encode_blob
from evenflow.wire.cut import cut, weights
from evenflow.wire.envelope import LATEST_CAME, MOST_PARTITIONS, records_of
from evenflow.wire.frame import (
    MARKS,
    MOST_SPLIT,
    OFFSETS,
    TOTAL,
    FrameHeader,
    FramePacker,
    decode_frame,
    encode_frame,
)

__all__ = [
    "LANE",
    "LATEST_CAME",
    "MARKS",
    "MOST_PARTITIONS",
    "MOST_SPLIT",
    "OFFSETS",
    "SEQUENCE",
    "TOTAL",
    "BlobHeader",
    "FrameHeader",
    "FramePacker",
    "Piece",
    "Segment",
    "cut",
    "decode_blob",
    "decode_frame",
    "encode_blob",
    "encode_frame",
    "records_of",
    "weights",
]
