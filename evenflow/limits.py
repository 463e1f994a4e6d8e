"""How many workers there may be, how large records may be, and what the bounds of a query add up to.

All sizes are in bytes before compression. A broker counts compressed bytes, but a producer counts the others.
So a record that has passed a broker may be too large for every producer after it. These are the stages, with
K, V, S and R for `query.max_key_bytes`, `max_value_bytes`, `max_state_bytes` and `max_result_bytes`:

    routed frame    the row of a tuple       K + V          the key, and the texts that aggregates read
    blob            a row of partials        K + S + 2 R    sets and counters share S. Texts and lists share
                                                            R. A list keeps one entry beyond its share, cut to
                                                            that share
    result frame    a row                    K + R
    JSON row        the record key, the row  7 K + 6 R      the key is there twice. \\u0001 takes 6 bytes

A record holds many rows, but is cut before it is large (`partitioner.frame_bytes`, `RESULT_BYTES`,
`PART_BYTES`). Only a single row cannot be cut. So each of these rows must fit into `ROW_BYTES`. Settings that
allow a larger row are refused when they are loaded.
"""

from __future__ import annotations

MOST_WORKERS = 1_024
"""Most workers of a query, and most partitions of its routed topic."""
MAX_RECORD_BYTES = 33_554_432
"""The most that a producer of evenflow sends, and `max.message.bytes` of the topics for frames,
blobs and results.
"""
MARGIN_BYTES = 4_194_304
"""What a record holds besides a row's texts: its header, columns of fixed width, names,
what Arrow and Kafka add.
"""
ROW_BYTES = MAX_RECORD_BYTES - MARGIN_BYTES
"""The most bytes that the keys, texts and lists of one row may take in any record."""
JSON_GROWTH = 6
"""A byte of text takes at most so many in JSON, and a byte of raw key four thirds."""
ENTRY_BYTES = 24
"""What an entry of a list or a set counts besides its text.

An entry takes no more in Arrow (a value of 8 bytes, a count, a time), and no more than 6 times this in JSON.
"""

KEY_BYTES, VALUE_BYTES, STATE_BYTES, RESULT_BYTES = 65_536, 1_000_000, 16_000_000, 4_000_000
"""Defaults of K, V, S and R."""
REPEATED_BYTES = 33_554_432
"""What the texts of a record that stand in each of its elements may take,
all elements together (`query.explode`).
"""
LOOKUP_TEXT_BYTES = 1_000
"""The longest text that a column of a lookup file may have (`query.lookup`).
A block has up to a million tuples.
"""
DERIVED_BYTES = 67_108_864
"""The longest text that a derived column may have."""


def frame_row(*, key: int, value: int) -> int:
    """Bytes of the largest row of a frame."""
    return key + value


def partial_row(*, key: int, state: int, result: int) -> int:
    """Bytes of the largest row of partials."""
    return key + state + 2 * result


def json_row(*, key: int, result: int) -> int:
    """Bytes of the largest result in JSON with its record key. A result frame with the same row is
    smaller.
    """
    return key + JSON_GROWTH * (key + result)
