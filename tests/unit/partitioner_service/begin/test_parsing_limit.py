"""A look at some records parses no more than it may."""

from __future__ import annotations

import pytest

from evenflow.settings import Settings
from partitioner_service.begin import parsing_limit
from partitioner_service.begin.parsing_limit import ParsingLimit
from partitioner_service.reading.parse import ParsedBlock, Parser

BLOCK: ParsedBlock = Parser(Settings(query={"key": "k", "time": "t"}, input={"partitions": 1})).parse(
    [b'{"k": "a", "t": 1}'] * 10
)


@pytest.mark.parametrize(("limit", "value"), [("_MOST_BYTES", 2 * BLOCK.keys.nbytes), ("_MOST_TUPLES", 20)])
def test_it_is_reached_behind_so_many_bytes_or_tuples(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(parsing_limit, limit, value)
    bounded = ParsingLimit(clock=lambda: 0.0)
    for reached in (False, False, True):
        bounded.add(BLOCK)
        assert bounded.reached == reached


def test_it_is_reached_after_twenty_seconds() -> None:
    moments = iter([100.0, 120.0, 120.1])
    bounded = ParsingLimit(clock=lambda: next(moments))
    assert not bounded.reached
    assert bounded.reached
