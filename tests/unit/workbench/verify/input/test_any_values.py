"""Values of any kind beside filters, derived columns and elements: the partitioner and verify judge
records alike.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.workbench.verify.judging import judged

COUNTED = {"aggregates": {"d": "count_distinct(user.id)"}}
QUERIES: dict[str, dict[str, Any]] = {
    "alone": COUNTED,
    "a filter": {"where": "w > 1", **COUNTED},
    "a filter by null": {"where": "(user.id) IS NOT NULL OR w IN (2)", **COUNTED},
    "counted twice": {"aggregates": {"d": "count_distinct(user.id)", "n": "count(user.id)"}},
    "a derived key": {"key": "k", "columns": {"k": "upper(key)"}, **COUNTED},
    "two keys": {"key": ["key", "w"], "types": {"w": "int64"}, **COUNTED},
    "repeated in elements": {"explode": "items", "where": "items.w > 1", **COUNTED},
    "in elements": {"explode": "items", "aggregates": {"d": "count_distinct(items.v)"}},
    "in filtered elements": {
        "explode": "items",
        "where": "items.w > 1",
        "aggregates": {"d": "count_distinct(items.v)"},
    },
    "a view": {"aggregates": {"n": "count"}, "views": {"v": COUNTED}},
}
VALUES = st.sampled_from(["a", "é" * 20, 1, 1.0, -0.0, 10**30, 1.5e-7, True, False, None, {}, [1], "x" * 40])
WHOLE = st.sampled_from([0, 2, None])
RECORDS = st.fixed_dictionaries(
    {"key": st.just("k"), "time": st.just(1)},
    optional={
        "w": WHOLE,
        "user": st.fixed_dictionaries({}, optional={"id": VALUES}),
        "items": st.lists(st.fixed_dictionaries({}, optional={"v": VALUES, "w": WHOLE}), max_size=3),
    },
)


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
@examples(40)
@given(records=st.lists(RECORDS, min_size=1, max_size=8))
def test_verify_finds_no_record_that_the_partitioner_judges_otherwise(
    name: str, records: list[dict[str, Any]]
) -> None:
    query = {"window": "1h", "max_value_bytes": 32, **QUERIES[name]}
    settings = Settings(query=query, input={"partitions": 1})
    report, reasons = judged(settings, records, [b"k"] * len(records))
    assert report.first == ()
    assert report.rejected == sum(reason != "" for reason in reasons)


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
def test_verify_of_the_column_as_a_number_would_find_a_difference(name: str) -> None:
    """So the columns with which a query began have to be known."""
    record = {"key": "k", "time": 1, "w": 2, "user": {"id": "a"}, "items": [{"v": "a", "w": 3}]}
    now = Settings(query={"window": "1h", **QUERIES[name]}, input={"partitions": 1})
    before = now.with_any_columns(())
    assert judged(now, [record], [b"k"])[1] == [""]
    assert judged(before, [record], [b"k"])[1] == ["unreadable"]
    for routed_by, verified_by in ((now, before), (before, now)):
        assert judged(routed_by, [record], [b"k"], verified_by=verified_by)[0].differences
