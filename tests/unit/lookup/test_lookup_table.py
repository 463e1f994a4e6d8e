"""The rows of a lookup file: what is found, and every file that is refused says why."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.limits import LOOKUP_TEXT_BYTES
from evenflow.lookup_table import LookupTable
from evenflow.settings import Settings
from tests.examples import examples

COLUMNS = {"name": "string", "price": "decimal(2)"}


def settings_of(file: Path, *, types: dict[str, str] | None = None, **lookup: Any) -> Settings:
    fields = {"file": file, "key": "id", "columns": COLUMNS, **lookup}
    query = {"key": "name", "aggregates": {"n": "count"}, "types": types or {}, "lookup": fields}
    return Settings(query=query, input={"partitions": 1, "format": "json"})


def table_of(file: Path, **fields: Any) -> LookupTable:
    return LookupTable(settings_of(file, **fields).query)


def csv_file(folder: Path, text: str | bytes) -> Path:
    file = folder / "rows.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def parquet_file(folder: Path, **columns: Any) -> Path:
    file = folder / "rows.parquet"
    pq.write_table(pa.table(columns), file)
    return file


def test_rows_are_found_by_key_and_a_null_key_has_none(tmp_path: Path) -> None:
    table = table_of(csv_file(tmp_path, '\ufeffid,name,price\na,"x,y",1.50\n"",NA,NA\n'))
    match = table.find([pa.array(["", "a", None, "b", "a"])])
    assert match.missing.tolist() == [False, False, True, True, False]
    assert match.columns["name"].to_pylist() == [
        "NA",
        "x,y",
        None,
        None,
        "x,y",
    ]  # a text of CSV is never null
    assert [value and str(value) for value in match.columns["price"].to_pylist()] == [
        None,
        "1.50",
        None,
        None,
        "1.50",
    ]


@examples(40)
@given(
    keys=st.lists(st.tuples(st.text(max_size=5), st.integers(-(2**63), 2**63 - 1), st.dates()), unique=True),
    asked=st.lists(st.integers(0, 40), max_size=30),
)
def test_a_key_of_several_columns_finds_its_row_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[str, int, datetime.date]], asked: list[int]
) -> None:
    types = {"t": pa.string(), "i": pa.int64(), "d": pa.date32()}
    columns = {
        name: pa.array([key[place] for key in keys], type_)
        for place, (name, type_) in enumerate(types.items())
    }
    file = parquet_file(
        tmp_path_factory.mktemp("keys"), **columns, name=pa.array([str(key) for key in keys], pa.string())
    )
    table = table_of(file, key=["t", "i", "d"], columns={"name": "string"}, types={"i": "int64", "d": "date"})
    others = [*keys, ("\x00other", 0, datetime.date(1, 1, 1))]
    chosen = [others[number % len(others)] for number in asked]
    match = table.find(
        [pa.array([key[place] for key in chosen], type_) for place, type_ in enumerate(types.values())]
    )
    assert match.columns["name"].to_pylist() == [str(key) if key in keys else None for key in chosen]


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("id,name,price\na,x,1\na,y,2\n", {}, "1 rows whose key another row has, such as a"),
        ("id,name,price\na,x,1.005\n", {}, r"cannot be read.*1\.005|cannot be read"),
        ("id,name,price\na,x,one\n", {}, "cannot be read.*one"),
        ("id,name\na,x\n", {}, "has no column 'price'; it has id, name"),
        ("id,nane,price\na,x,1\n", {}, "has no column 'name'.*did you mean 'nane'|did you mean nane"),
        ("id,name,name,price\na,x,y,1\n", {}, "has two columns 'name'"),
        ("", {}, "has no column 'id'"),
        ("id,name,price\na,x\n", {}, "cannot be read"),
        (b"id,name,price\n\xff,x,1\n", {}, "cannot be read"),
        ("id,name,price\na,x,1\n", {"max_bytes": 10}, "has more than 10 bytes"),
        ("id,name,price\nNA,x,1\n", {"types": {"id": "int64"}}, "1 rows without a key: 'id' is null"),
        ("id,name,price\na,x,1\n", {"types": {"id": "int64"}}, "cannot be read.*a"),
        ("id,name,price\na,x,NaN\n", {"columns": {"name": "string", "price": "float64"}}, "not finite"),
        (f"id,name,price\na,{'x' * (LOOKUP_TEXT_BYTES + 1)},1\n", {}, "a text of 1,001 bytes"),
        ("id,name,price\na,x,1\n", {"columns": {"name": "string", "id": "int64"}},
        "is its key|cannot be one"),
    ],
)  # fmt: skip
def test_a_csv_file_that_does_not_fit_is_refused_in_words(
    tmp_path: Path, text: str | bytes, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises((ConfigError, ValueError), match=words):
        table_of(csv_file(tmp_path, text), **fields)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": ["a"], "name": [1], "price": [1]}, "column 'name'.* is int64, not string"),
        ({"id": [1], "name": ["a"], "price": [1]}, "column 'id'.* is int64, not string"),
        ({"id": ["a"], "name": ["a"], "price": [0.5]}, "is double, not decimal"),
        ({"id": ["a"], "name": ["a"], "price": [10**17]}, "cannot be read"),
        ({"id": ["a", None], "name": ["a", "b"], "price": [1, 1]}, "1 rows without a key"),
    ],
)
def test_a_parquet_file_of_other_types_is_refused_in_words(
    tmp_path: Path, columns: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        table_of(parquet_file(tmp_path, **columns))


def test_a_small_parquet_file_that_grows_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    ids = pa.array([str(number) for number in range(20_000)])
    file = parquet_file(tmp_path, id=ids, name=["x" * 500] * 20_000, price=[1] * 20_000)
    bound = 2 * file.stat().st_size
    assert bound < 20_000 * 500
    with pytest.raises(ConfigError, match="in memory"):
        table_of(file, max_bytes=bound)


def test_a_file_that_is_missing_damaged_or_has_another_content_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no lookup file"):
        table_of(tmp_path / "none.csv")
    damaged = tmp_path / "rows.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    with pytest.raises(ConfigError, match="cannot be read"):
        table_of(damaged)
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        table_of(folder)
    file = csv_file(tmp_path, "id,name,price\na,x,1\n")
    with pytest.raises(IncompatibleStateError, match="another content than it had"):
        table_of(file, sha256="0" * 64)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"lookup": {"file": "a.txt"}}, "must end in .csv or .parquet"),
        ({"lookup": {"key": ["a", "a"]}}, "names a column twice"),
        ({"lookup": {"key": ["a", "b"], "file_key": "c"}}, "key has 2 columns, but file_key has 1"),
        ({"lookup": {"key": "@key"}}, "'@key' is no column that a lookup can have"),
        ({"lookup": {"columns": {"id": "string"}}}, "is a column of the record in key"),
        ({"lookup": {"columns": {"name": "text"}}}, "cannot be 'text': types are"),
        ({"lookup": {"columns": {}}}, "at least 1"),
        ({"types": {"name": "string"}}, "types has 'name', but that is a column of the lookup file"),
        ({"columns": {"name": "upper(id)"}}, "columns has 'name', but that is a column of the lookup file"),
        ({"time": "name"}, "time has 'name', but that is a column of the lookup file"),
        ({"columns": {"id": "upper(x)"}, "types": {"x": "string"}},
        "only a column of the record can be looked up"),
        ({"explode": "items", "lookup": {"key": ["id", "items.id"]}},
        "has columns of the record and of its elements"),
        ({"explode": "name", "key": "id"}, "has 'name', which explode = 'name' takes apart"),
        ({"types": {"id": "float64"}}, "lookup.key 'id' cannot be float64"),
    ],
)  # fmt: skip
def test_settings_of_a_lookup_that_contradict_each_other_are_refused(
    query: dict[str, Any], words: str
) -> None:
    lookup = {"file": "rows.csv", "key": "id", "columns": {"name": "string"}} | query.pop("lookup", {})
    with pytest.raises(ValueError, match=words):
        Settings(query={"key": "name", "lookup": lookup, **query})


def test_the_content_of_the_file_is_part_of_the_identity_and_its_place_is_not(tmp_path: Path) -> None:
    text = "id,name,price\na,x,1\n"
    (tmp_path / "other").mkdir()
    here, there = csv_file(tmp_path, text), csv_file(tmp_path / "other", text)
    assert settings_of(here).fingerprint == settings_of(there, max_bytes=1_000).fingerprint
    begun = settings_of(here).identity()
    there.write_text(text + "b,y,2\n")
    (change,) = settings_of(there).changes_since(begun)
    assert change.startswith('query.lookup.sha256: "')
    assert settings_of(here, missing="null").changes_since(begun) == [
        'query.lookup.missing: "reject" -> "null"'
    ]
