"""A file is sent so that the query reads from its records what the file says."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import load_settings
from evenflow.sources.datasets import open_source
from evenflow.sources.source import SourceOptions
from partitioner_service.reading.parse import Parser
from producers.records import values_of
from producers.replay import check_source
from workbench.demo.options import DemoOptions, prepare

NESTED = (
    '{"user":{"id":"a","x":1},"at":1000,"tags":["p","q"]}\n{"user":{"id":"b","x":2},"at":2000,"tags":["r"]}\n'
)
ROWS = """u,part,price,ok,day,at
007,01,1234567890123456.78,true,2026-01-31,1000
010,02,0.01,false,2026-02-01,2000
"""


def read(
    tmp_path: Path, content: str, *, record_key: str | None = None, **query: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Keys and values that the query finds in the records of this file; none of them is rejected."""
    path = tmp_path / ("rows.jsonl" if content.startswith("{") else "rows.csv")
    path.write_text(content)
    settings = load_settings(query={"name": "q", "time": "at"} | query)
    source = open_source(str(path), SourceOptions.for_settings(settings, key=record_key))
    check_source(settings, source)
    (batch,) = source.batches()
    values = [bytes(value) for value in values_of(batch, settings.input, key=source.key).to_pylist()]
    parsed = Parser(settings).parse(values, keys=batch.keys.to_pylist(), timestamps=batch.times.tolist())
    assert not parsed.bad.counted()
    return parsed.keys.to_pylist(), parsed.values.to_pydict()


def test_money_in_a_table_arrives_to_the_last_digit(tmp_path: Path) -> None:
    _, values = read(tmp_path, ROWS, key="u", types={"price": "decimal(2)"}, aggregates={"s": "sum(price)"})
    assert values["price"] == [Decimal("1234567890123456.78"), Decimal("0.01")]


def test_more_digits_than_declared_are_refused_with_the_row(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Row #2.*\n.*query\.types"):
        read(tmp_path, ROWS, key="u", types={"price": "decimal(1)"}, aggregates={"s": "sum(price)"})


def test_truth_values_and_days_of_a_table_may_be_a_key(tmp_path: Path) -> None:
    keys, _ = read(tmp_path, ROWS, key=["ok", "day"], types={"ok": "bool", "day": "date"})
    assert keys == [b'[true,"2026-01-31"]', b'[false,"2026-02-01"]']


def test_every_part_of_a_key_and_what_a_condition_compares_with_text_keeps_its_zeros(tmp_path: Path) -> None:
    assert read(tmp_path, ROWS, key=["u", "part"])[0] == [b'["007","01"]', b'["010","02"]']
    assert read(tmp_path, ROWS, key="u", where="part = '01'")[0] == [b"007"]


def test_fields_within_others_are_sent_with_the_line(tmp_path: Path) -> None:
    keys, values = read(tmp_path, NESTED, key="user.id", aggregates={"s": "sum(user.x)"}, where="user.x > 0")
    assert (keys, values["user.x"]) == ([b"a", b"b"], [1.0, 2.0])


def test_a_list_that_is_taken_apart_needs_another_record_key(tmp_path: Path) -> None:
    query = {"key": "tags", "explode": "tags"}
    with pytest.raises(ConfigError, match="which column is the record key"):
        read(tmp_path, NESTED, **query)
    assert read(tmp_path, NESTED, record_key="user.id", **query)[0] == [b"p", b"q", b"r"]


@pytest.mark.parametrize("key", ["user.nobody", "tags.id", "users.id"])
def test_a_field_that_is_not_there_is_said(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=f"has no (field|column) '{key}'"):
        read(tmp_path, NESTED, key=key)


def test_a_built_in_query_runs_over_a_file_of_the_users_own(tmp_path: Path) -> None:
    words = tmp_path / "words.csv"
    words.write_text("word,time\nmine,1000\nyours,2000\n")
    settings, source = prepare(DemoOptions(query="wordcount", input=str(words)), tmp_path)
    assert (settings.query.name, source.rows, source.column_names) == ("demo-wordcount", 2, ["word", "time"])
    with pytest.raises(ConfigError, match="has no column"):
        prepare(DemoOptions(query="gcm-q1", input=str(words)), tmp_path)
    with pytest.raises(ConfigError, match="--key describes a file, but the query 'wordcount' has its key"):
        prepare(DemoOptions(query="wordcount", input=str(words), key="word"), tmp_path)
    with pytest.raises(ConfigError, match="no built-in query"):
        prepare(DemoOptions(query="nonsense", input=str(words)), tmp_path)
