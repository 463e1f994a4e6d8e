"""Similarity of texts: 1 - edit distance / length of the longer text, both in bytes of UTF-8.
1 for two empty texts.

The edit distance is Levenshtein's: insertions, deletions and substitutions cost 1 each.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.numeric.arrays import Float64s, Int64s, UInt8s, viewed
from evenflow.numeric.kernels import kernel


@kernel
def _similarities(data: UInt8s, offsets: Int64s, line: Int64s, out: Float64s) -> None:
    for text in range(offsets.shape[0] - 1):
        out[text, text] = 1.0
        begin, size = offsets[text], offsets[text + 1] - offsets[text]
        for other in range(text + 1, offsets.shape[0] - 1):
            start, length = offsets[other], offsets[other + 1] - offsets[other]
            # Dynamic programming over one line of the table: line[j] is the distance from the first `row`
            # bytes of one text to the first j bytes of the other, and `diagonal` is the value of line[j - 1]
            # a row before.
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
            out[text, other] = alike
            out[other, text] = alike


def similarities(texts: pa.LargeStringArray) -> Float64s:
    """Similarity of each text with each. Shape (n, n), symmetric, 1 on the diagonal."""
    count = len(texts)
    out = np.empty((count, count), np.float64)
    if count:
        _, places, data = texts.buffers()
        offsets = viewed(places, np.int64, texts.offset, count + 1)
        size = 0 if data is None else data.size
        line = np.empty(int(np.diff(offsets).max()) + 1, np.int64)
        _similarities(viewed(data, np.uint8, 0, size), offsets, line, out)
    return out
