"""A first settings file from the records alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

from evenflow.settings import Settings, load_settings
from tests.unit.workbench.assist.sample_check.samples import NOW, order, sample
from workbench.assist.sample_check.guess import starting_file
from workbench.assist.sample_check.report import check_sample
from workbench.assist.sample_check.sample import TopicRecords


def started(records: TopicRecords, folder: Path) -> Settings:
    """The settings that the proposed file holds; the sample fits them."""
    file = folder / "evenflow.toml"
    file.write_text(starting_file(Settings(), records, now=NOW), encoding="utf-8")
    result = load_settings(file)
    assert check_sample(result, records, now=NOW).proposal == {}
    return result


def test_key_time_and_value_are_guessed_by_what_the_columns_hold(tmp_path: Path) -> None:
    rows = [order(number, order_id=f"o{number}", paid=True, country="fr") for number in range(200)]
    result = started(sample(rows, []), tmp_path)
    assert (result.query.name, result.query.key, result.query.time, result.query.time_unit) == (
        "orders",
        "user",
        "at",
        "ms",
    )
    assert {name: str(spec) for name, spec in result.query.aggregates.items()} == {
        "tuples": "count",
        "amount_sum": "sum(amount)",
    }
    assert result.partitioner.idle_timeout == 30_000
    assert result.input.topic == "orders"


def test_iso_times_whole_number_keys_and_disorder_are_provided_for(tmp_path: Path) -> None:
    rows = [{"sensor": n % 5, "when": f"2026-11-20T10:00:{(n * 7) % 60:02}Z"} for n in range(100)]
    result = started(sample(rows), tmp_path)
    assert (result.query.key, result.query.types) == ("sensor", {"sensor": "int64"})
    assert (result.query.time, result.query.time_unit) == ("when", "iso")


def test_csv_gets_columns_to_be_named(tmp_path: Path) -> None:
    rows = [f"u{n % 9}|{NOW + n}|{n}.25".encode() for n in range(100)]
    result = started(sample(rows), tmp_path)
    assert (result.input.format, result.input.delimiter, result.input.columns) == (
        "csv",
        "|",
        ["c0", "c1", "c2"],
    )
    assert (result.query.key, result.query.time) == ("c0", "c1")


def test_lines_of_text_are_keys_by_record_timestamp(tmp_path: Path) -> None:
    result = started(sample([b"alpha", b"beta"] * 20), tmp_path)
    assert (result.input.format, result.query.key, result.query.time) == ("text", "value", "@timestamp")


def test_without_a_column_like_a_key_it_is_the_record_key() -> None:
    records = sample([{"at": NOW + n, "x": n / 3} for n in range(20)], keys=[b"k"] * 20)
    assert tomllib.loads(starting_file(Settings(), records, now=NOW))["query"]["key"] == "@key"


def test_a_key_that_is_null_in_a_fifth_of_the_records_is_guessed_with_the_lines_that_keep_these() -> None:
    rows = [order(n, user=None if n % 5 == 0 else f"u{n % 7}", amount=n % 40) for n in range(200)]
    lines = starting_file(Settings(), sample(rows), now=NOW).splitlines()
    (line,) = (line for line in lines if line.startswith("key ="))
    assert (
        line
        == 'key = "user"  # a guess: 7 different values in 160 records; 40 of 200 have none: such records are'
        " rejected. To keep them under a key of their own: query.columns = { user_or_none ="
        ' "coalesce(user, \'none\')" } and query.key = "user_or_none"'
    )
