"""Blocks that are not too large: Arrow's columns of text hold less than 2 GiB each."""

from __future__ import annotations

from collections.abc import Iterator
from operator import add

import numpy as np

from topics.records import Record

MOST_BYTES = 1 << 30
"""Limit of a block: half of what a column of text can hold."""
EXPLODED_BYTES = 1 << 22
"""Limit of a block whose records are taken apart. An element has two bytes at least: some two million tuples
at most.
"""


def cut(messages: list[Record], *, with_keys: bool, most_bytes: int = MOST_BYTES) -> Iterator[list[Record]]:
    """These messages in stretches of at most `most_bytes`. A single larger message is a stretch of its own.

    with_keys: whether keys count as well as values.
    """
    if sum(_sizes(messages, with_keys)) <= most_bytes:
        yield messages
        return
    ends = np.cumsum([0, *_sizes(messages, with_keys)])
    first = 0
    while first < len(messages):
        stop = int(np.searchsorted(ends, ends[first] + most_bytes, side="right")) - 1
        stop = max(stop, first + 1)  # one message always goes on, however large
        yield messages[first:stop]
        first = stop


def _sizes(messages: list[Record], with_keys: bool) -> Iterator[int]:
    values = map(len, messages)
    return map(add, values, (len(message.key() or b"") for message in messages)) if with_keys else values
