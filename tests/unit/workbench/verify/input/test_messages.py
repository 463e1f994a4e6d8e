"""Kafka records of any bytes become rows: markers as strictly as the partitioner reads them, nothing
crashes.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workbench.verify.pipeline_model import end, record, run
from tests.unit.workbench.verify.rejected.test_idle import SETTINGS
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA
from workbench.verify.input.markers import marker_of
from workbench.verify.input.messages import input_row, rejected_row

HEADER = "evenflow-end-of-stream"
MARKER = {"producer": "p", "tuples": 3, "producers": 1}


class Message:
    """A Kafka record."""

    def __init__(self, headers: Any = None, key: bytes | None = None, value: bytes | None = None) -> None:
        self._headers, self._key, self._value = headers, key, value

    def headers(self) -> Any:
        return self._headers

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, 7

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 9


def encoded(**changes: Any) -> bytes:
    return json.dumps(MARKER | changes).encode()


DAMAGED = [
    None, b"", b"{", b"[]", b"7", b"null", b"\xff", b"{}", b'"' * 900,
    encoded(tuples=1.5), encoded(tuples=1.0), encoded(tuples=1e23), encoded(tuples=10**23),
    encoded(tuples=True),
    encoded(tuples=-1), encoded(tuples="3"), encoded(tuples=None), encoded(tuples=2**62 + 1),
    encoded(tuples=[[1]]),
    encoded(tuples=float("nan")), encoded(tuples=float("inf")), encoded(producers=0), encoded(producers=17),
    encoded(producers=1.0), encoded(producers=True), encoded(producer=""), encoded(producer="p" * 25),
    encoded(producer="p q"), encoded(producer="п"), encoded(producer=7), encoded(producer="p\n"),
    encoded(more=1),
    b'{"producer":"p","tuples":3}', b'{"producer":"p","tuples":3,"tuples":4,"producers":1}',
    encoded() + b" x", b"\xef\xbb\xbf" + encoded(), encoded().decode().encode("utf-16"),
    encoded() + b" " * 1000,
    b'{"producer":"p","producers":1,"tuples":' + b"[" * 400 + b"]" * 400 + b"}",
    b'{"producer":"p","producers":1,"tuples":' + b"[" * 100_000,
    b'{"producer":"p","producers":1,"tuples":' + b"9" * 5000 + b"}",
    b'{"producer":"\\ud800","producers":1,"tuples":3}',
]  # fmt: skip


@pytest.mark.parametrize("value", DAMAGED)
def test_a_damaged_marker_marks_nothing(value: bytes | None) -> None:
    assert marker_of([(HEADER, value)]) is None
    row = input_row(Message([(HEADER, value)]))
    assert (
        pa.Table.from_pylist([dict(zip(INPUT_SCHEMA.names, row, strict=True))], INPUT_SCHEMA)["marker"][
            0
        ].as_py()
        is None
    )


@pytest.mark.parametrize("tuples", [0, 3, 2**62])
def test_a_marker_is_read_from_its_header_of_a_record_without_key_and_value(tuples: int) -> None:
    headers = [("other", b"x"), (HEADER, encoded(tuples=tuples))]
    assert input_row(Message(headers)) == (2, 9, 7, None, None, MARKER | {"tuples": tuples}, None, None)
    assert input_row(Message(headers, value=b"")) == (2, 9, 7, None, b"", None, None, None)
    assert input_row(Message(headers, key=b"")) == (2, 9, 7, b"", None, None, None, None)
    assert marker_of([(HEADER, b"{"), (HEADER, encoded())]) is None


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_header_of_any_bytes_is_too_much(value: bytes) -> None:
    marker_of([(HEADER, value)])
    for name in ("source", "mark", "clock", "reason", "detail"):
        rejected_row(Message([(f"evenflow-{name}", value)]), "t")


def test_a_rejected_record_is_read_by_its_last_headers() -> None:
    first = [("evenflow-source", b"other:0:1"), ("evenflow-reason", b"late"), ("evenflow-mark", b"5")]
    ours = [("evenflow-source", b"a:b:3:12"), ("evenflow-reason", b"idle"), ("evenflow-mark", b"-8")]
    row = rejected_row(Message([*first, *ours], key=b"k", value=b"v"), "a:b")
    assert row == (3, 12, "idle", None, -8, None, b"k", b"v", False, 2, 9, None)


@pytest.mark.parametrize(
    "source", [b"", b"t:1", b"u:0:1", b"t:-1:0", b"t:0:-1", b"t:0:1e3", b"t:0: 1", b"t:99999999999:1",
    b"t:0:9" + b"9" * 30]
)  # fmt: skip
def test_a_record_in_the_rejected_topic_that_names_no_input_record_has_no_position(source: bytes) -> None:
    row = rejected_row(Message([("evenflow-source", source), ("evenflow-mark", b"9" * 40)]), "t")
    assert row[:2] == (None, None)
    assert row[4] is None


def test_a_foreign_record_in_the_rejected_topic_is_a_difference_and_no_end_of_everything() -> None:
    topics = run(SETTINGS, [[record("a", 5), end(1)], [end(0)]])
    foreign = rejected_row(Message([], value=b"\xff"), "t")
    topics.rejected.append(dict(zip(REJECTED_SCHEMA.names, foreign, strict=True)))
    report = topics.check()
    assert report.kinds == {"malformed": 1}
    assert (report.first[0].partition, report.first[0].offset) == (2, 9)
