"""Blocks that would be too large for Arrow's columns are cut, and nothing of them is lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Settings
from partitioner_service.blocks import Widths, cut

PART = st.none() | st.integers(0, 40).map(bytes)


def size(message: Message, with_keys: bool) -> int:
    return len(message.value() or b"") + with_keys * len(message.key() or b"")


@given(st.lists(st.tuples(PART, PART)), st.booleans(), st.integers(1, 200))
def test_a_block_is_cut_into_the_fewest_stretches_that_are_small_enough(
    records: list[tuple[bytes | None, bytes | None]], with_keys: bool, most: int
) -> None:
    messages = [Message(topic="t", key=key, value=value) for key, value in records]
    blocks = list(cut(messages, with_keys=with_keys, most_bytes=most))
    assert [id(message) for block in blocks for message in block] == [id(message) for message in messages]
    sizes = [sum(size(message, with_keys) for message in block) for block in blocks]
    assert all(found <= most or len(block) == 1 for found, block in zip(sizes, blocks, strict=True))
    for found, (_, following) in zip(sizes, pairwise(blocks), strict=False):
        assert found + size(following[0], with_keys) > most


def test_an_expression_that_grows_a_text_beyond_all_numbers_makes_each_record_a_block() -> None:
    text = "note"
    for _ in range(7):
        text = f"replace({text}, 'a', '{'a' * 1_000}')"
    query = {
        "key": "k",
        "types": {"note": "string"},
        "columns": {"long": text},
        "aggregates": {"n": "max(long)"},
    }
    settings = Settings.model_validate(
        {"kafka": {"bootstrap_servers": "x:1"}, "query": query, "input": {"partitions": 1}}
    )
    widths = Widths.of(settings)
    sizes = np.full(3, 20_000_000, np.int64)
    assert (widths.bytes_of(sizes) > 0).all()
    messages = [Message(topic="t", value=b"x" * 100) for _ in range(3)]
    assert [len(block) for block in cut(messages, with_keys=False, widths=widths)] == [1, 1, 1]
