"""Records that are too large: the partitioner and verify agree on which they are."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.workbench.verify.judging import judged
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA, RESULTS_SCHEMA, CommittedInput, Report, check

BOUNDS = {"max_key_bytes": 16, "max_value_bytes": 24}
TYPES = {"v": "string", "w": "string"}
LISTS = {"explode": "items", "key": "items.k"}
QUERIES: dict[str, dict[str, Any]] = {
    "one column": {"aggregates": {"n": "count"}},
    "raw key": {"key": "@key", "aggregates": {"n": "count"}},
    "several columns": {"key": ["key", "v"], "aggregates": {"n": "count"}},
    "several columns and a condition": {"key": ["key", "v"], "aggregates": {"n": "count"},
    "where": "w <> 'x'"},
    "raw key and a condition": {"key": "@key", "aggregates": {"n": "count"}, "where": "w <> 'x'"},
    "values": {"aggregates": {"a": "max(v)", "b": "min(w)"}, "types": TYPES},
    "a derived key": {"key": "twice", "columns": {"twice": "key || v"}, "aggregates": {"n": "count"}},
    "a derived value": {
        "columns": {"twice": "upper(v) || w"},
        "aggregates": {"a": "max(twice)"},
        "where": "v <> 'x'",
        "types": TYPES,
    },
    "values and a condition": {"aggregates": {"a": "max(v)"}, "where": "w <> 'x'", "types": TYPES},
    "elements": {**LISTS, "aggregates": {"a": "max(items.v)"}, "types": {"items.v": "string"}},
    "elements and an outer value": {**LISTS, "aggregates": {"a": "max(v)"}, "types": {"v": "string"}},
    "elements under a raw key": {"explode": "items", "key": "@key", "aggregates": {"n": "count"}},
    "elements and a condition": {
        **LISTS,
        "aggregates": {"n": "count"},
        "where": "v <> 'x' AND items.v <> w",
        "types": {"items.v": "string", "w": "string"},
    },
}  # fmt: skip
TEXTS = st.sampled_from(
    ["", "x", "é" * 8, "é" * 9, "a" * 16, "a" * 17, "\x01\x02\x03", "ΐ" * 5, '"' * 9, "b" * 25]
)
ELEMENTS = st.lists(
    st.fixed_dictionaries({"k": TEXTS, "v": TEXTS}) | st.sampled_from([{"k": 5}, {}, {"k": "a", "v": None}]),
    max_size=4,
)
VALUES = st.fixed_dictionaries(
    {
        "key": TEXTS | st.none(),
        "time": st.sampled_from([1, 2, "x"]) | st.just(3),
        "v": TEXTS | st.none(),
        "w": TEXTS,
        "items": ELEMENTS,
    }
)


def settings_of(name: str, **query: Any) -> Settings:
    return Settings(
        query={"window": "1h", **BOUNDS, **QUERIES[name], **query}, input={"partitions": 1, "format": "json"}
    )


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
@examples(10)
@given(data=st.data())
def test_the_partitioner_and_verify_reject_the_same_records_as_too_large(
    name: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(VALUES, min_size=1, max_size=8))
    raw = TEXTS.map(str.encode) | st.none()
    keys = data.draw(st.lists(raw, min_size=len(values), max_size=len(values)))
    report, _ = judged(settings_of(name), values, keys)
    assert report.first == ()


@pytest.mark.parametrize(
    ("name", "value", "key", "reason"),
    [
        ("one column", {"key": "a" * 16}, b"", ""),
        ("one column", {"key": "a" * 17}, b"", "too-large"),
        ("one column", {"key": "a" * 17, "time": "x"}, b"", "unreadable"),
        ("raw key", {}, b"a" * 17, "too-large"),
        ("several columns", {"key": "\x01", "v": ""}, b"", ""),
        ("several columns", {"key": "\x01\x01", "v": ""}, b"", "too-large"),
        ("values", {"key": "a", "v": "b" * 20, "w": "c" * 5}, b"", "too-large"),
        ("values and a condition", {"key": "a", "v": "b" * 24, "w": "x"}, b"", ""),
        ("values and a condition", {"key": "a", "v": "b" * 25, "w": "x"}, b"", "too-large"),
        ("values and a condition", {"key": "a" * 17, "v": "b", "w": "x"}, b"", "too-large"),
        ("a derived key", {"key": "a" * 9, "v": "b" * 8}, b"", "too-large"),
        ("elements", {"items": [{"k": "a", "v": "b"}, {"k": "a" * 17, "v": "b"}]}, b"", "too-large"),
        ("elements", {"items": [{"k": "a" * 17, "v": "b"}, {"k": 5, "v": "b"}]}, b"", "unreadable"),
        ("elements and an outer value", {"v": "b" * 25, "items": [{"k": "a"}]}, b"", "too-large"),
        ("elements and an outer value", {"v": "b" * 25, "items": []}, b"", ""),
    ],
)
def test_what_is_one_byte_too_large_is_rejected_with_a_reason_of_its_own(
    name: str, value: dict[str, Any], key: bytes, reason: str
) -> None:
    report, reasons = judged(settings_of(name), [{"time": 1, **value}], [key])
    assert (reasons, report.first) == ([reason], ())


def test_a_rejection_as_too_large_that_is_none_is_found_and_so_is_one_that_is_missing() -> None:
    value = [{"time": 1, "key": "a" * 20}]
    settings, wide = settings_of("one column"), settings_of("one column", max_key_bytes=20)
    for mine, theirs, kind in ((settings, wide, "too-large"), (wide, settings, "rejected")):
        report = _judged_by(mine, theirs, value)
        assert kind in report.kinds


def _judged_by(verifier: Settings, partitioner: Settings, values: list[dict[str, Any]]) -> Report:
    """What verify says under one settings of what was routed under others."""
    _, reasons = judged(partitioner, values, [b""])
    row = {
        "partition": 0,
        "offset": 0,
        "key": b"",
        "value": json.dumps(values[0], ensure_ascii=False).encode(),
    }
    rejected = [{**row, "reason": reasons[0], "at_partition": 0, "at_offset": 0}] if reasons[0] else []
    count = len(rejected)
    committed = CommittedInput(
        partition=0, offset=1, max_time=None if count else 1, mark=-(2**62), idle_mark=None, ended=False,
        read=1,
        routed=1 - count, rejected=count,
    )  # fmt: skip
    return check(
        verifier,
        pa.Table.from_pylist([{**row, "timestamp": 7}], schema=INPUT_SCHEMA),
        pa.Table.from_pylist(rejected, schema=REJECTED_SCHEMA),
        RESULTS_SCHEMA.empty_table(),
        [committed],
    )


def test_a_record_whose_elements_repeat_too_much_is_too_large_for_both() -> None:
    settings = settings_of("elements and an outer value", max_value_bytes=8_000_000)
    fits = {"time": 1, "v": "v" * 2_000, "items": [{"k": "a"}] * 16_777}
    beyond = {"time": 1, "v": "v" * 2_000, "items": [{"k": "a"}] * 16_778}
    report, reasons = judged(settings, [fits, beyond], [b"", b""])
    assert (reasons, report.first) == (["", "too-large"], ())
