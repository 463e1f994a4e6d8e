"""Offsets that were skipped by order: verify reads around them, counts them, and names them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Settings, load_settings
from tests.unit.partitioner_service.kafka.test_unfetchable import Message
from tests.unit.workbench.verify.pipeline_model import Record, Topics, record, run
from topics.query.skip_orders import MOST_SKIPPED
from workbench.verify import REJECTED_SCHEMA
from workbench.verify.input.messages import rejected_row
from workbench.verify.rejected.skips import SkippedOffsets


def settings() -> Settings:
    return load_settings(
        query={"name": "q", "key": "key", "time": "time", "window": "1s", "aggregates": {"n": "count"}},
        input={"partitions": 1},
    )


def topics() -> Topics:
    """Ten tuples, of which offsets 4 to 6 could not be fetched: one rejected record stands for the three."""
    records = [record("a", at * 300) for at in range(10)]
    for at in (4, 5, 6):
        records[at] = Record(None, None)
    result = run(settings(), [records])
    result.rejected = [
        {
            "partition": 0,
            "offset": 4,
            "through": 6,
            "reason": "skipped",
            "omitted": None,
            "detail": "by me: a bomb",
        }
    ]
    return result


def test_skipped_offsets_are_read_and_rejected_and_no_difference() -> None:
    report = topics().check()
    assert (report.exact, report.read, report.rejected) == (True, 10, 3), report.text()


@pytest.mark.parametrize("through", [5, 7])
def test_an_order_that_says_less_or_more_than_was_skipped_is_a_difference(through: int) -> None:
    result = topics()
    result.rejected[0]["through"] = through
    assert result.check().differences


def test_a_readable_record_that_was_skipped_is_counted_and_named() -> None:
    skips = SkippedOffsets()
    skips.note(pa.RecordBatch.from_pylist(topics().rejected, schema=REJECTED_SCHEMA))
    (one,) = skips.below(topics().committed)
    assert (
        str(one)
        == "offsets 4 to 6 of input partition 0 could not be fetched and are in no result: by me: a bomb"
    )


@pytest.mark.parametrize(
    ("through", "last"), [(b"6", 6), (b"", 4), (b"3", 4), (b"x", 4), (str(4 + MOST_SKIPPED).encode(), 4)]
)
def test_a_header_that_cannot_be_meant_stands_for_one_offset(through: bytes, last: int) -> None:
    class Rejected(Message):
        def headers(self) -> list[tuple[str, bytes]]:  # type: ignore[override]
            return [
                ("evenflow-reason", b"skipped"),
                ("evenflow-source", b"in:0:4"),
                ("evenflow-through", through),
            ]

    assert rejected_row(Rejected(0), "in")[-1] == last  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=8),
    st.integers(0, 30),
    st.integers(30, 60),
)
def test_every_offset_is_read_or_skipped_and_none_twice(
    spans: list[tuple[int, int]], begin: int, end: int
) -> None:
    skips = SkippedOffsets()
    rows = [
        {"partition": 0, "offset": first, "through": first + more, "reason": "skipped"}
        for first, more in spans
    ]
    skips.note(pa.RecordBatch.from_pylist(rows, schema=REJECTED_SCHEMA))
    read = [at for starts, stops in skips.around({0: begin}, {0: end}) for at in range(starts[0], stops[0])]
    skipped = [at for batch in skips.rows({0: begin}, {0: end}) for at in batch["offset"].to_pylist()]
    wanted = {at for first, more in spans for at in range(first, first + more + 1)}
    assert sorted(read + skipped) == list(range(begin, end))
    assert set(skipped) == wanted & set(range(begin, end))
