"""How alike texts are: 1 - edit distance / length of the longer one, both in bytes of UTF-8. 1 for two empty ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.arrays import Float64s, Int64s, UInt8s, viewed
from evenflow.kernels import kernel


@kernel
def _similarities(data: UInt8s, offsets: Int64s, line: Int64s, out: Float64s) -> None:
    for one in range(offsets.shape[0] - 1):
        out[one, one] = 1.0
        begin, size = offsets[one], offsets[one + 1] - offsets[one]
        for other in range(one + 1, offsets.shape[0] - 1):
            start, length = offsets[other], offsets[other + 1] - offsets[other]
            for at in range(length + 1):
                line[at] = at
            for row in range(size):
                diagonal = line[0]
                line[0] = row + 1
                for at in range(length):
                    changed = diagonal + (0 if data[begin + row] == data[start + at] else 1)
                    diagonal = line[at + 1]
                    line[at + 1] = min(changed, diagonal + 1, line[at] + 1)
            longest = max(size, length)
            alike = 1.0 if longest == 0 else 1.0 - line[length] / longest
            out[one, other] = alike
            out[other, one] = alike


def similarities(texts: pa.LargeStringArray) -> Float64s:
    """Of each text with each. Shape (n, n), symmetric, 1 on the diagonal."""
    count = len(texts)
    out = np.empty((count, count), np.float64)
    if count:
        _, places, data = texts.buffers()
        offsets = viewed(places, np.int64, texts.offset, count + 1)
        size = 0 if data is None else data.size
        line = np.empty(int(np.diff(offsets).max()) + 1, np.int64)
        _similarities(viewed(data, np.uint8, 0, size), offsets, line, out)
    return out
