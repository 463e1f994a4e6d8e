"""A lookup file: the partitioner and verify agree on what is joined, and on which records have no row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.workbench.verify.input.test_expressions import by_partitioner, by_verify
from tests.unit.workbench.verify.judging import judged

KEYS = ["", "a", "b,", 'c"', "é", "line\nbreak", "null", "NA"]
COLUMNS = {
    "region": "string",
    "weight": "int64",
    "share": "float64",
    "price": "decimal(2)",
    "day": "date",
    "new": "bool",
}
QUERIES: dict[str, dict[str, Any]] = {
    "as key": {"key": "region", "aggregates": {"n": "count"}},
    "as part of the key": {"key": ["region", "id"], "aggregates": {"n": "count"}},
    "as value": {"key": "id", "aggregates": {"w": "sum(weight)", "s": "sum(share)", "p": "max(price)",
    "r": "max(region)"}},
    "as condition": {"key": "id", "aggregates": {"n": "count"}, "where": "weight > 1 OR region IS NULL"},
    "as raw key": {"key": "@key", "aggregates": {"n": "count"}, "where": "new"},
    "as counted": {"key": "id", "aggregates": {"n": "count_distinct(region)", "d": "count_distinct(other)"}},
    "as derived key": {"key": "both", "columns": {"both": "region || id"}, "aggregates": {"n": "count"}},
    "as derived value": {
        "key": "id",
        "columns": {"paid": "price * weight + v"},
        "aggregates": {"paid": "sum(paid)"},
        "where": "day < DATE '2026-01-03'",
        "types": {"v": "int64"},
    },
}  # fmt: skip
APART: dict[str, dict[str, Any]] = {
    "elements": {"explode": "items", "lookup": {"key": "items.id"}, "key": "region",
    "aggregates": {"w": "sum(weight)"}},
    "elements by a key of the record": {
        "explode": "items",
        "lookup": {"key": "items.id"},
        "key": ["id", "region"],
        "where": "weight > 0",
        "aggregates": {"r": "max(region)"},
    },
    "elements of a record with a row": {
        "explode": "items",
        "lookup": {"key": "id"},
        "key": "both",
        "columns": {"both": "region || items.id", "twice": "weight * 2"},
        "where": "twice > 1 OR region IS NULL",
        "aggregates": {"t": "sum(twice)", "r": "max(region)"},
    },
    "elements under a raw key": {
        "explode": "items",
        "lookup": {"key": ["items.id", "items.number"]},
        "key": "@key",
        "columns": {"all": "weight * v"},
        "where": "v > 0",
        "types": {"items.number": "int64", "v": "int64"},
        "aggregates": {"a": "sum(all)"},
    },
}  # fmt: skip
ELEMENTS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"id": st.sampled_from([*KEYS, "absent", None, 5]), "number": st.integers(-1, 3)}
    ),
    max_size=3,
)
VALUES = st.fixed_dictionaries(
    {"time": st.sampled_from([1, 2, 3]) | st.just("x")},
    optional={
        "id": st.sampled_from([*KEYS, "absent", "a" * 20]) | st.none() | st.just(5),
        "number": st.integers(-2, 3) | st.none(),
        "v": st.integers(-(2**62), 2**62) | st.none() | st.just("x"),
        "other": st.sampled_from(["a", 1, True]),
        "items": ELEMENTS | st.none(),
    },
)


def rows_of(keys: list[str]) -> pa.Table:
    """A row for each key, with some nulls."""
    number = pa.array(range(len(keys)))
    columns = {
        "id": pa.array(keys),
        "number": number,
        "region": pa.array([None if i == 2 else f"r{i % 3}" for i in range(len(keys))], pa.string()),
        "weight": pa.array([None if i == 1 else i for i in range(len(keys))], pa.int64()),
        "share": pa.array([i / 3 for i in range(len(keys))]),
        "price": pa.array([f"{i}.25" for i in range(len(keys))]).cast(pa.decimal128(18, 2)),
        "day": pa.array([20454 + i for i in range(len(keys))], pa.int32()).cast(pa.date32()),
        "new": pa.array([i % 2 == 0 for i in range(len(keys))]),
    }
    return pa.table(columns)


def written(folder: Path, suffix: str) -> Path:
    """The rows of all `KEYS` as a file. A text of CSV is never null, so it has an empty one instead."""
    import duckdb

    file = folder / f"rows{suffix}"
    table = rows_of(KEYS)
    if suffix == ".parquet":
        pq.write_table(table, file)
    else:
        with duckdb.connect() as db:
            db.register("source", table)
            db.execute(f"COPY (FROM source) TO '{file}' (HEADER, FORCE_QUOTE (id))")
    return file


def settings_of(file: Path, name: str, *, missing: str, key: str = "id", **query: Any) -> Settings:
    fields = {"max_key_bytes": 16, **(QUERIES | APART)[name], **query}
    types = {"number": "int64"} if key == "number" else {}
    own = fields.pop("lookup", {"key": key})
    names = [own["key"]] if isinstance(own["key"], str) else own["key"]
    of_file = [name.removeprefix("items.") for name in names]
    lookup = {"file": file, "file_key": of_file, "columns": COLUMNS, "missing": missing} | own
    settings = Settings(
        query={"window": "1h", **fields, "types": {**types, **fields.get("types", {})}, "lookup": lookup},
        input={"partitions": 1, "format": "json"},
    )
    digest = settings.query.lookup and settings.query.lookup.digest()
    assert digest is not None
    return settings.with_lookup_sha256(digest)


@pytest.fixture(scope="module", params=[".csv", ".parquet"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lookup") / "region=XX"  # which DuckDB takes for a column, if it is let
    folder.mkdir()
    return written(folder, request.param)


@pytest.mark.family
@pytest.mark.parametrize("name", QUERIES)
@examples(5)
@given(data=st.data())
def test_the_partitioner_and_verify_join_alike_and_reject_the_same_records(
    file: Path, name: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(VALUES, min_size=4, max_size=12))
    missing = data.draw(st.sampled_from(["reject", "null"]))
    settings = settings_of(file, name, missing=missing, key=data.draw(st.sampled_from(["id", "number"])))
    report, _ = judged(settings, values, [b"k"] * len(values))
    assert report.first == ()


@pytest.mark.family
@pytest.mark.parametrize("name", APART)
@examples(10)
@given(data=st.data())
def test_records_that_are_taken_apart_are_joined_alike(file: Path, name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, min_size=4, max_size=12))
    settings = settings_of(file, name, missing=data.draw(st.sampled_from(["reject", "null"])))
    report, _ = judged(settings, values, ([b"k", None] * 6)[: len(values)])
    assert report.first == ()


@pytest.mark.family
@pytest.mark.parametrize("name", [name for name in QUERIES | APART if "raw key" not in name])
@examples(6)
@given(data=st.data())
def test_the_partitioner_and_verify_make_the_same_tuples(file: Path, name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, min_size=4, max_size=12))
    settings = settings_of(file, name, missing=data.draw(st.sampled_from(["reject", "null"])))
    records = [json.dumps(value).encode() for value in values]
    made, wanted = by_partitioner(settings, records), by_verify(settings, records, reason=None)
    assert len(made) == len(wanted)
    for one, other in zip(made, wanted, strict=True):
        # The tuples of a record have no order, and null has none among values.
        assert one is other or (one[0], sorted(one[1], key=repr)) == (other[0], sorted(other[1], key=repr))


@pytest.mark.family
@pytest.mark.parametrize(
    ("name", "missing", "value", "reason"),
    [
        ("as key", "reject", {"id": "a"}, ""),
        ("as key", "reject", {"id": "absent"}, "unmatched"),
        ("as key", "reject", {"id": None}, "unmatched"),
        ("as key", "reject", {"id": "absent", "time": "x"}, "unreadable"),
        ("as key", "null", {"id": "absent"}, "unreadable"),  # the key is null then
        ("as value", "null", {"id": "absent"}, ""),
        ("as value", "reject", {"id": None}, "unreadable"),  # the query's own key is null
        ("as condition", "reject", {"id": "absent"}, "unmatched"),  # whatever the condition says
        ("as condition", "null", {"id": "absent"}, ""),
        ("as key", "reject", {"id": "a" * 17}, "unmatched"),
        ("as derived value", "reject", {"id": "absent", "v": "x"}, "unreadable"),
        ("elements", "reject", {"items": [{"id": "a"}, {"id": "absent"}]}, "unmatched"),
        ("elements", "reject", {"items": [{"id": "absent"}, {"id": 5}]}, "unreadable"),
        ("elements", "reject", {"items": []}, ""),
        ("elements of a record with a row", "reject", {"id": "absent", "items": []}, ""),
        ("elements of a record with a row", "reject", {"id": "absent", "items": [{"id": "a"}]}, "unmatched"),
        ("elements by a key of the record", "null", {"id": "k", "items": [{"id": "absent"}]}, ""),
    ],
)
def test_a_record_without_a_row_is_rejected_with_a_reason_of_its_own(
    file: Path, name: str, missing: str, value: dict[str, Any], reason: str
) -> None:
    report, reasons = judged(settings_of(file, name, missing=missing), [{"time": 1, **value}], [b"k"])
    assert (reasons, report.first) == ([reason], ())


def test_a_rejection_as_unmatched_that_is_none_is_a_difference_and_so_is_one_that_is_missing(
    file: Path,
) -> None:
    reject, null = (settings_of(file, "as value", missing=missing) for missing in ("reject", "null"))
    wrongly, _ = judged(reject, [{"time": 1, "id": "absent"}], [b""], verified_by=null)
    assert [difference.detail for difference in wrongly.first] == ["rejected as unmatched, but it is not"]
    missed, _ = judged(null, [{"time": 1, "id": "absent"}], [b""], verified_by=reject)
    assert ("unmatched", "without a row in the lookup file but not rejected") in [
        (difference.kind, difference.detail) for difference in missed.first
    ]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffid;weight;day;new\r\na; 3;2026-01-01;TRUE\r\nb;NA;;false\r\n",
        'weight;unread;day;id;new\n3;x;null;a;True\n-7;"y;\n";2026-02-28;b;\n\n',
        'id;new;day;weight\n"a";"true";"2026-01-01";"3"\n"b""";NA;NULL;007',
    ],
)
def test_both_read_the_same_of_an_unusual_csv_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text, newline="")
    columns = {"weight": "int64", "day": "date", "new": "bool"}
    aggregates = {"w": "sum(weight)", "d": "max(day)"}
    query = {"key": "new", "where": "weight > -9 AND day IS NOT NULL OR id = 'b'", "aggregates": aggregates}
    lookup = {"file": file, "key": "id", "columns": columns, "delimiter": ";"}
    settings = Settings(
        query={"window": "1h", **query, "types": {"id": "string"}, "lookup": lookup},
        input={"partitions": 1, "format": "json"},
    )
    values = [{"time": 1, "id": name} for name in ("a", "b", 'b"', "", None)]
    report, _ = judged(settings, values, [None] * 5)
    assert report.first == ()


def test_verify_refuses_a_file_that_has_changed(tmp_path: Path) -> None:
    file = written(tmp_path, ".csv")
    settings = settings_of(file, "as value", missing="reject")
    report, _ = judged(settings, [{"time": 1, "id": "a"}], [b""])
    assert report.first == ()
    other = tmp_path / "other"
    other.mkdir()
    changed = settings_of(written(other, ".parquet"), "as value", missing="reject")
    changed.query.lookup.file.write_bytes(b"PAR1")  # type: ignore[union-attr]
    with pytest.raises(IncompatibleStateError, match="another content"):
        judged(settings, [{"time": 1, "id": "a"}], [b""], verified_by=changed)
