"""Offsets that were skipped by order: verify reads around them, counts them, and names them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Settings, load_settings
from tests.unit.partitioner_service.kafka.test_unfetchable import Message
from tests.unit.workbench.verify.pipeline_model import Record, Topics, record, run
from topics.query.skip_orders import MOST_SKIPPED
from workbench.verify import REJECTED_SCHEMA, LogBegins
from workbench.verify.input.messages import rejected_row
from workbench.verify.rejected.skips import SkippedOffsets


def settings(**partitioner: int) -> Settings:
    return load_settings(
        query={"name": "q", "key": "key", "time": "time", "window": "1s", "aggregates": {"n": "count"}},
        input={"partitions": 1},
        partitioner=partitioner,
    )


def topics(*unreadable: int, **partitioner: int) -> Topics:
    """Ten tuples, of which offsets 4 to 6 could not be fetched: one rejected record stands for the three.

    unreadable: offsets that were rejected, too, and of which retention has deleted the rejected records.
    """
    records = [record("a", at * 300) for at in range(10)]
    for at in (4, 5, 6, *unreadable):
        records[at] = Record(None, None)
    result = run(settings(**partitioner), [records])
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


def long_skip(count: int) -> Topics:
    """Records on both sides of so many offsets, which were skipped as one batch from offset 4 on."""
    result = topics()
    for row in [row for row in result.inputs if row["offset"] in (5, 6)]:
        result.inputs.remove(row)
    for row in result.inputs:
        if row["offset"] == 4:
            row["through"] = 3 + count
        elif row["offset"] > 6:
            row["offset"] += count - 3
    result.rejected[0]["through"] = 3 + count
    (state,) = result.committed
    more = count - 3
    result.recommit(0, offset=state.offset + more, read=state.read + more, rejected=state.rejected + more)
    return result


@pytest.mark.timeout(60)
@pytest.mark.parametrize("count", [3, 1 << 31])
def test_a_skipped_batch_costs_nothing_for_each_of_its_offsets(count: int) -> None:
    report = long_skip(count).check(memory="200MB")
    assert (report.exact, report.read, report.rejected) == (True, 7 + count, count), report.text()


@pytest.mark.timeout(60)
def test_a_long_stretch_is_one_row_of_the_input() -> None:
    skips, count = SkippedOffsets(), 1 << 31
    skips.note(pa.RecordBatch.from_pylist(long_skip(count).rejected, schema=REJECTED_SCHEMA))
    (batch,) = skips.rows({0: 0}, {0: count + 7})
    assert batch.select(["partition", "offset", "through"]).to_pylist() == [
        {"partition": 0, "offset": 4, "through": 3 + count}
    ]
    assert list(skips.around({0: 0}, {0: count + 7})) == [({0: 0}, {0: 4}), ({0: 4 + count}, {0: 7 + count})]


@pytest.mark.parametrize("gone", [0, 4, 5, 6, 7, 8])
def test_what_retention_has_left_of_a_skipped_stretch_is_judged(gone: int) -> None:
    """The rest of the input is there, and what is gone is told by the counters."""
    result = topics()
    result.inputs = [row for row in result.inputs if row["offset"] not in range(max(gone, 4), 7)]
    if gone < 7:
        low = max(gone, 4)
        result.inputs.append({"partition": 0, "offset": low, "through": 6, "timestamp": -1})
    report = result.check(log_starts=result.trim(0, gone))
    assert report.differences == 0, report.text()
    assert (report.read, report.rejected) == (10 - gone, max(0, min(3, 7 - gone)))
    assert [loss.tuples for loss in report.lost] == ([gone] if gone else [])


@pytest.mark.parametrize("block", [1, 2, 3])
def test_of_a_stretch_beside_which_a_rejection_was_lost_the_rest_is_judged(block: int) -> None:
    """What the lost rejection can have stood for counts as lost, and that may end within the stretch."""
    result = topics(1, block_tuples=block)
    result.inputs = [row for row in result.inputs if row["offset"] not in (5, 6)]
    (row,) = [row for row in result.inputs if row["offset"] == 4]
    row["through"] = 6
    report = result.check(log_starts=LogBegins(rejected={0: 1}))
    assert report.differences == 0, report.text()
    assert (report.read, report.rejected) == (6 - block, 3 - block)
    assert [loss.tuples for loss in report.lost] == [4 + block]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"offset": 5, "reason": "unreadable"}, "rejected as unreadable, and skipped by an order too"),
        (
            {"offset": 6, "through": 6, "reason": "skipped"},
            "rejected as skipped, and skipped by an order too",
        ),
        ({"offset": 4, "through": 6, "reason": "skipped"}, "rejected 2 times"),
    ],
)
def test_an_offset_that_is_rejected_beside_an_order_is_a_difference(other: dict[str, Any], why: str) -> None:
    result = topics()
    result.rejected.append({"partition": 0, "omitted": None, **other})
    assert why in result.check().text()


def test_a_skipped_offset_that_is_no_record_is_a_difference() -> None:
    result = topics()
    del result.inputs[5]
    assert "skipped up to 6, but 1 of these are no records" in result.check().text()


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
    skipped = [
        at
        for batch in skips.rows({0: begin}, {0: end})
        for row in batch.to_pylist()
        for at in range(row["offset"], row["through"] + 1)
    ]
    wanted = {at for first, more in spans for at in range(first, first + more + 1)}
    assert sorted(read + skipped) == list(range(begin, end))
    assert set(skipped) == wanted & set(range(begin, end))
