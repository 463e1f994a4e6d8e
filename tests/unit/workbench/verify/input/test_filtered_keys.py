"""Filters come before keys: what becomes of records without a key, said by plain Python, the partitioner
and verify.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.workbench.verify.judging import judged

_COUNT = {"aggregates": {"n": "count"}}
_KEPT = {"where": "v > 1", **_COUNT}
_LISTS = {"explode": "items", "types": {"items.v": "int64"}}
QUERIES: dict[str, dict[str, Any]] = {
    "a column": {"key": "key", **_KEPT},
    "a field of an object": {"key": "user.id", **_KEPT},
    "several columns": {"key": ["key", "user.id"], **_KEPT},
    "the record key": {"key": "@key", **_KEPT},
    "a derived key": {"key": "d", "columns": {"d": "upper(key)"}, **_KEPT},
    "a derived and a read column": {"key": ["d", "user.id"], "columns": {"d": "upper(key)"}, **_KEPT},
    "no condition": {"key": "key", **_COUNT},
    "elements": {"key": "items.k", "where": "items.v > 1", **_COUNT, **_LISTS},
    "elements, one key for all": {"key": "key", "where": "items.v > 1 AND v > 1", **_COUNT, **_LISTS},
    "elements, a key of both": {"key": ["key", "items.k"], "where": "items.v > 1", **_COUNT, **_LISTS},
    "elements under the record key": {"key": "@key", "where": "items.v > 1", **_COUNT, **_LISTS},
    "elements without a condition": {"key": ["key", "items.k"], **_COUNT, "explode": "items"},
}  # fmt: skip
TEXTS = st.sampled_from(["a", "b", None])
NUMBERS = st.sampled_from([0, 2, None])
RECORDS = st.fixed_dictionaries(
    {"time": st.just(1)},
    optional={
        "key": TEXTS,
        "v": NUMBERS,
        "user": st.sampled_from([{"id": "u"}, {"id": None}, {}, None, "no object"]),
        "items": st.lists(st.fixed_dictionaries({}, optional={"k": TEXTS, "v": NUMBERS}), max_size=3)
        | st.none(),
    },
)


def settings_of(name: str) -> Settings:
    return Settings(query={"window": "1h", **QUERIES[name]}, input={"partitions": 1, "format": "json"})


def tuples(query: dict[str, Any], record: dict[str, Any], key: bytes | None) -> Iterator[tuple[bool, bool]]:
    """For each tuple of the record, whether the condition keeps it, and whether it has a key."""
    user = record.get("user")
    names = [query["key"]] if isinstance(query["key"], str) else query["key"]
    for element in (record.get("items") or []) if "explode" in query else [{}]:
        values = {
            "@key": key,
            "key": record.get("key"),
            "d": record.get("key"),
            "user.id": user.get("id") if isinstance(user, dict) else None,
            "items.k": element.get("k"),
            "v": record.get("v"),
            "items.v": element.get("v"),
        }
        asked = [name for name in ("v", "items.v") if f" {name} >" in f" {query.get('where', '')}"]
        yield (
            all((values[name] or 0) > 1 for name in asked),
            all(values[name] is not None for name in names),
        )


def expected(name: str, record: dict[str, Any], key: bytes | None) -> str:
    """What becomes of the record: routed, filtered or unreadable."""
    query = QUERIES[name]
    if "user.id" in query["key"] and record.get("user") == "no object":
        return "unreadable"
    result = list(tuples(query, record, key))
    if any(kept and not keyed for kept, keyed in result):
        return "unreadable"
    return "routed" if any(kept for kept, _ in result) else "filtered"


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
@examples(15)
@given(records=st.lists(st.tuples(RECORDS, st.sampled_from([b"k", None])), min_size=1, max_size=8))
@example(records=[({"time": 1, "v": 0, "items": [{"v": 0}]}, None)])
def test_a_record_that_where_drops_is_filtered_whether_it_has_a_key_or_not(
    name: str, records: list[tuple[dict[str, Any], bytes | None]]
) -> None:
    values, keys = [value for value, _ in records], [key for _, key in records]
    report, reasons = judged(settings_of(name), values, keys)
    fates = [expected(name, value, key) for value, key in records]
    assert reasons == ["unreadable" if fate == "unreadable" else "" for fate in fates]
    assert report.first == ()
    counts = Counter(fates)
    assert (report.routed, report.filtered, report.rejected) == (
        counts["routed"],
        counts["filtered"],
        counts["unreadable"],
    )
