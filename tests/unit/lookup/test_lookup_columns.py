"""Where the columns of a lookup file can stand, and what is said of a record without a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.limits import JSON_GROWTH, LOOKUP_TEXT_BYTES
from evenflow.settings import Settings
from partitioner_service.kafka.block_sizes import Widths
from partitioner_service.reading.parse import ParsedBlock, Parser

COLUMNS = {"region": "string", "weight": "int64"}


def settings_of(folder: Path, *, lookup: dict[str, Any] | None = None, **parts: Any) -> Settings:
    file = folder / "rows.csv"
    file.write_text("id,shop,region,weight\na,1,north,3\nb,1,south,NA\n")
    fields = {"file": file, "key": "id", "columns": COLUMNS} | (lookup or {})
    query = {"key": "id", "aggregates": {"n": "count"}, "lookup": fields} | parts.pop("query", {})
    return Settings(query=query, **({"input": {"partitions": 1, "format": "json"}} | parts))


def parsed(settings: Settings, *records: dict[str, Any]) -> ParsedBlock:
    return Parser(settings).parse([json.dumps({"time": 1, **record}).encode() for record in records])


@pytest.mark.parametrize(("cost", "costs"), [("weight", [3.0, None]), ("length(region) * 2", [10.0, 10.0])])
def test_a_tuple_costs_what_the_file_says(tmp_path: Path, cost: str, costs: list[float | None]) -> None:
    result = parsed(settings_of(tmp_path, partitioner={"cost": cost}), {"id": "a"}, {"id": "b"}, {"id": "c"})
    assert result.costs is not None
    assert [None if value != value else value for value in result.costs.tolist()] == costs
    assert result.rows.tolist() == [0, 1]


def test_a_view_aggregates_a_column_of_the_file(tmp_path: Path) -> None:
    views = {"heavy": {"window": "120s", "slide": "60s", "aggregates": {"w": "sum(weight)"}}}
    settings = settings_of(tmp_path, query={"views": views, "window": "60s"})
    result = parsed(settings, {"id": "a"}, {"id": "b"})
    assert result.values.to_pydict() == {"weight": [3, None]}
    known = settings.with_lookup_sha256("0" * 64)
    assert known.query.view("heavy").origin.lookup == known.query.lookup


def test_records_of_csv_are_joined_too(tmp_path: Path) -> None:
    form = {"partitions": 1, "format": "csv", "columns": ["time", "id"]}
    settings = settings_of(tmp_path, query={"key": "region"}, input=form)
    result = Parser(settings).parse([b"1,a", b"2,c", b"3,b", b"4,"])
    assert result.keys.to_pylist() == [b"north", b"south"]
    assert dict(result.bad) == {
        1: "the lookup file has no row for column 'id' (c)",
        3: "the lookup file has no row for column 'id' ()",
    }


def test_the_reason_names_the_key_and_shows_its_value_if_it_is_one_column(tmp_path: Path) -> None:
    one = parsed(settings_of(tmp_path, query={"key": "region"}), {"id": "x"}, {"id": None})
    assert list(one.bad.values()) == [
        "the lookup file has no row for column 'id' (x)",
        "column 'id', which is looked up, is missing or null",
    ]
    assert one.bad.of_reason("unmatched").all()
    several = settings_of(
        tmp_path, lookup={"key": ["id", "shop"]}, query={"key": "region", "types": {"shop": "int64"}}
    )
    two = parsed(
        several, {"id": "a", "shop": 2}, {"id": "a"}, {"id": "a", "shop": 1}, {"id": "a", "shop": "1"}
    )
    assert list(two.bad.values()) == [
        "the lookup file has no row for column 'id' and the others of its key",
        "column 'shop', which is looked up, is missing or null",
        "column 'shop' holds text where a whole number is needed (\"1\")",
    ]
    assert two.bad.of_reason("unmatched").tolist() == [True, True, False]


def test_a_block_is_cut_before_texts_of_the_file_could_overflow_a_column(tmp_path: Path) -> None:
    plain = Widths.of(settings_of(tmp_path)).growth
    assert (plain.factor, plain.added) == (1, LOOKUP_TEXT_BYTES)
    both = settings_of(
        tmp_path, query={"key": ["region", "id"], "columns": {"r": "region || region"}, "where": "r > ''"}
    )
    assert Widths.of(both).growth.added == JSON_GROWTH * LOOKUP_TEXT_BYTES + 96
