"""What a record can grow into is bounded: any record through parse, route, combine, reduce and each sink."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AGGREGATES
from evenflow.limits import MAX_RECORD_BYTES, frame_row, json_row, partial_row
from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.limits.stages import Sizes, settings_of, through_all
from tests.unit.partitioner_service.reading.registered_records import (
    URL,
    Kept,
    avro,
    descriptor,
    message_of,
    prefix,
    record_of,
    text_of,
)

K, V, S, R = 64, 128, 400, 400
BOUNDS = {"max_key_bytes": K, "max_value_bytes": V, "max_state_bytes": S, "max_result_bytes": R}
FRAME_BYTES, FIXED = 1_000, 30_000
"""The size near which frames and blobs are cut here, and what headers, columns of fixed width and Arrow
may add.
"""
NASTY = st.sampled_from(["", "a", "\x01", "\u2028", "é", "\U0001f600", '"', "\\"])
TEXTS = st.builds(lambda text, times: text * times, NASTY, st.sampled_from([0, 1, 7, 30, 64, 65, 129, 500]))
JSON = st.recursive(
    TEXTS | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=4), max_leaves=10
)


def forms() -> list[str]:
    """Every form of every aggregate over texts and over numbers."""
    result = []
    for aggregate in AGGREGATES.values():
        for form in aggregate.forms:
            columns = [c for c, type_ in (("s", "string"), ("f", "float64")) if type_ in aggregate.over]
            result += [form.replace("(column", f"({column}") for column in columns] if "(" in form else [form]
    return result


def query_of(form: str, **query: Any) -> dict[str, Any]:
    types = {"s": "string"} if "(s" in form else {}
    return {"aggregates": {"out": form}, "types": types, **query}


def is_within(settings: Settings, sizes: Sizes) -> None:
    query = settings.query
    bounds = {"key": query.max_key_bytes, "result": query.max_result_bytes}
    assert sizes.frame <= max(settings.partitioner.frame_bytes, frame_row(key=K, value=V)) + FIXED
    assert sizes.blob <= max(settings.partitioner.frame_bytes, partial_row(state=S, **bounds)) + FIXED
    assert sizes.results["kafka"] <= json_row(**bounds) + 1_000
    assert sizes.results["avro"] <= json_row(**bounds) + 1_000
    # A result frame holds many rows (PART_BYTES), so only a single one is bound by the limit of a row.
    if sizes.rows == 1:
        assert sizes.results["frames"] <= bounds["key"] + bounds["result"] + FIXED


@pytest.mark.family
@pytest.mark.parametrize("form", forms())
@examples(10)
@given(data=st.data())
def test_whatever_a_record_holds_each_stage_takes_it_and_stays_within_its_limit(
    form: str, data: st.DataObject
) -> None:
    settings = settings_of(query_of(form, **BOUNDS), partitioner={"frame_bytes": FRAME_BYTES})
    fields = st.fixed_dictionaries(
        {
            "k": TEXTS,
            "time": st.integers(0, 2_000),
            "s": TEXTS | st.none(),
            "f": st.floats(allow_nan=False, width=32),
        },
        optional={"more": JSON},
    )
    records = data.draw(st.lists(fields, min_size=1, max_size=30))
    sizes = through_all(settings, [[json.dumps(record, ensure_ascii=False).encode() for record in records]])
    is_within(settings, sizes)
    assert set(sizes.reasons) <= {"too-large", "unreadable", "late"}


@pytest.mark.parametrize("format", ["csv", "text"])
@examples(30)
@given(data=st.data())
def test_so_does_any_record_of_csv_and_text(format: str, data: st.DataObject) -> None:
    if format == "csv":
        query = query_of("collect(s, 5)", key=["k", "s"], time="@timestamp", **BOUNDS)
        settings = settings_of(
            query, input={"format": "csv", "columns": ["k", "s"]}, partitioner={"frame_bytes": 1_000}
        )
        line = st.builds(lambda k, s: f"{k},{s}".encode(), TEXTS, TEXTS)
    else:
        query = query_of("max(value)", key="value", time="@timestamp", **BOUNDS) | {
            "types": {"value": "string"}
        }
        settings = settings_of(query, input={"format": "text"}, partitioner={"frame_bytes": 1_000})
        line = TEXTS.map(str.encode)
    records = data.draw(st.lists(line, min_size=1, max_size=30))
    is_within(settings, through_all(settings, [records]))


REGISTERED = record_of(
    ("k", "string"),
    ("time", "long"),
    ("s", ["null", "string"]),
    ("more", {"type": "array", "items": {"type": "map", "values": "string"}}),
)
FILE = descriptor(("k", "string"), ("time", "int64"), ("s", "string"), ("more", "bytes"))
MESSAGE = message_of(FILE)


@pytest.mark.family
@pytest.mark.parametrize("form", ["count_distinct(s, exact)", "collect(s, 5)", "max(s)", "top_k(s, 3)"])
@pytest.mark.parametrize("format", ["avro", "protobuf"])
@examples(10)
@given(data=st.data())
def test_so_does_any_record_of_avro_and_protobuf(format: str, form: str, data: st.DataObject) -> None:
    query = query_of(form, **BOUNDS)
    source = {"format": format, "registry": URL}
    settings = settings_of(query, input=source, partitioner={"frame_bytes": FRAME_BYTES})
    times = st.integers(0, 2_000)
    if format == "avro":
        kept = Kept("avro", json.dumps(REGISTERED))
        more = st.lists(st.dictionaries(TEXTS, TEXTS, max_size=2), max_size=3)
        rows = st.fixed_dictionaries({"k": TEXTS, "time": times, "s": TEXTS | st.none(), "more": more})
        written = rows.map(lambda row: avro(REGISTERED, row))
    else:
        kept = Kept("protobuf", text_of(FILE))
        rows = st.fixed_dictionaries({"k": TEXTS, "time": times, "s": TEXTS, "more": st.binary(max_size=300)})
        written = rows.map(lambda row: prefix(1) + b"\0" + MESSAGE(**row).SerializeToString())
    # A record that is cut, or of a schema that nobody has, is amplified no more than a whole one.
    broken = st.builds(lambda record, most: record[:most], written, st.integers(0, 40)) | TEXTS.map(
        str.encode
    )
    records = data.draw(st.lists(written | broken, min_size=1, max_size=30))
    sizes = through_all(settings, [records], registry=kept)
    is_within(settings, sizes)
    assert set(sizes.reasons) <= {"too-large", "unreadable", "late"}
    whole = through_all(settings, [[data.draw(written)]], registry=kept)
    assert set(whole.reasons) <= {"too-large"}, "a whole record is read"


ESCAPED = "\x01"
EXTREMES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "the longest key that is taken": ({"aggregates": {"n": "count"}}, [{"k": ESCAPED * 65_536}]),
    "a key of 4 MB": ({"aggregates": {"n": "count"}}, [{"k": ESCAPED * 4_000_000}]),
    "several columns": (
        {"key": ["k", "s"], "aggregates": {"n": "count"}},
        [{"k": ESCAPED * 4_000_000, "s": ESCAPED * 4_000_000}, {"k": ESCAPED * 5_000, "s": ESCAPED * 5_000}],
    ),
    "a text of 4 MB": (query_of("max(s)"), [{"k": "a", "s": ESCAPED * 4_000_000}]),
    "four texts of 1 MB": (
        {"aggregates": {"a": "min(s)", "b": "max(s)", "c": "first(s)", "d": "last(s)"},
        "types": {"s": "string"}},
        [{"k": ESCAPED * 65_536, "s": ESCAPED * 1_000_000}],
    ),
    "a list that just fits": (query_of("collect(s, 10000)"), [{"k": "a", "s": ESCAPED * 999_976}] * 4),
    "a list that does not": (query_of("collect(s, 10000)"), [{"k": "a", "s": ESCAPED * 999_977}] * 4),
    "a set": (
        query_of("count_distinct(s, exact)"),
        [{"k": "a", "s": f"{number:02}" + "b" * 900_000} for number in range(20)],
    ),
    "counters": (
        query_of("top_k(s, 10, 100000)"),
        [{"k": "a", "s": f"{number:02}" + ESCAPED * 900_000} for number in range(20)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREMES)
def test_the_largest_that_the_usual_settings_allow_fits_into_a_record_of_every_topic(name: str) -> None:
    query, records = EXTREMES[name]
    values = [json.dumps({"time": 1, **record}, ensure_ascii=False).encode() for record in records]
    sizes = through_all(settings_of(query), [values])
    assert max(sizes.frame, sizes.blob, *sizes.results.values()) <= MAX_RECORD_BYTES
    expected = {"a key of 4 MB": 1, "several columns": 1, "a text of 4 MB": 1}.get(name, 0)
    assert sizes.reasons["too-large"] == expected
    assert sizes.unfit == (name in ("a list that does not", "a set"))


MEASURED = """
import json, sys
from tests.unit.limits.stages import settings_of, through_all
from tests.peak_memory import peak
from tests.unit.limits.test_amplification import GREEDY
warm, query, record = GREEDY[sys.argv[1]]
settings = settings_of(query)
through_all(settings, [[json.dumps({"time": 1, **warm}).encode()]])
before = peak()
value = json.dumps({"time": 1, **record}, ensure_ascii=False).encode()
through_all(settings, [[value]])
print(len(value), 1024 * (peak() - before))
"""
GREEDY: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a long key": ({"k": "a"}, {"aggregates": {"n": "count"}}, {"k": ESCAPED * 4_000_000}),
    "many elements beside a long text": (
        {"k": "a", "note": "n", "items": [{"s": "b"}]},
        {"explode": "items", "key": "note", "aggregates": {"n": "count"}, "where": "note <> 'test'"},
        {"note": "n" * 60_000, "items": [{"s": "b"}] * 100_000},
    ),
    "deep nesting": ({"k": "a"}, {"aggregates": {"n": "count"}}, {"k": "a",
    "more": json.loads("[" * 900 + "]" * 900)}),
    "a derived text": (
        {"k": "a", "s": "b"},
        {"columns": {"long": "s || s || s"}, "aggregates": {"n": "max(long)"}, "types": {"s": "string"}},
        {"k": "a", "s": "b" * 4_000_000},
    ),
}  # fmt: skip
MOST_TIMES, MOST_MORE = 40, 100_000_000
"""A record takes at most so many times its bytes, and so much more, in all stages together."""


@pytest.mark.parametrize("name", GREEDY)
def test_memory_is_bounded_by_a_factor_of_the_record(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", MEASURED, name], capture_output=True, text=True, check=True)
    size, grown = map(int, done.stdout.split())
    assert grown <= MOST_TIMES * size + MOST_MORE
