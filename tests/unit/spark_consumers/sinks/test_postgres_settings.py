"""What the sink of Postgres refuses before it asks a server: addresses, passwords, columns, and a library
that lacks.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from evenflow.settings.views import view
from spark_consumers.sinks import SINKS
from spark_consumers.sinks.checking import settings_for
from spark_consumers.sinks.postgres import columns, table_of

SINK = SINKS["postgres"]


def settings_of(path: str = "postgresql://h/db/rows", **query: Any) -> Settings:
    fields: dict[str, Any] = {"name": "q", "key": "k", "aggregates": {"n": "count"}, **query}
    return Settings(query=fields, results={"sink": "postgres", "path": path}, input={"partitions": 1})


def test_an_address_names_a_table_and_may_leave_out_what_postgres_knows_by_itself() -> None:
    whole = table_of(settings_of("postgresql://me@h.example:5433/db/s%20x/rows"))
    assert (whole.host, whole.port, whole.user) == ("h.example", 5433, "me")
    assert (whole.database, whole.schema, whole.name) == ("db", "s x", "rows")
    assert str(whole) == "postgresql://h.example:5433/db/s x/rows"
    short = table_of(settings_of("postgresql:///db/rows"))
    assert (short.host, short.port, short.user, short.schema) == ("", None, None, None)


def test_a_view_has_a_table_of_its_own() -> None:
    settings = settings_for(SINK, path="postgresql://h/db/rows")
    assert table_of(view(settings, "v")).name == "rows.v"
    assert SINK.place(view(settings, "v")) != SINK.place(settings)


@pytest.mark.parametrize(
    "path",
    [
        "rows",
        "postgres://h/db/rows",
        "postgresql://h/rows",
        "postgresql://h/db/",
        "postgresql://h:x/db/rows",
        "postgresql://h/a/b/c/d",
        "postgresql://h/db/rows#x",
    ],
)
def test_an_address_of_another_form_is_refused_with_the_form(path: str) -> None:
    with pytest.raises(ConfigError, match="is no address of a table") as caught:
        table_of(settings_of(path))
    assert "postgresql://user@host:5432/database/table" in str(caught.value.hint)


@pytest.mark.parametrize(
    "path", ["postgresql://h/db/rows?password=s3cret", "postgresql:/\n/me:s3cret@h/db/rows"]
)
def test_a_password_that_the_settings_do_not_see_is_refused_and_not_repeated(path: str) -> None:
    with pytest.raises(ConfigError, match=r"results\.path holds a password or options") as caught:
        table_of(settings_of(path))
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
    assert "PGPASSFILE" in str(caught.value.hint)


def test_names_that_postgres_would_cut_off_and_the_table_of_notes_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most 63 bytes"):
        table_of(settings_of(f"postgresql://h/db/{'x' * 64}"))
    with pytest.raises(ConfigError, match="the table evenflow_results, in which evenflow notes"):
        table_of(settings_of("postgresql://h/db/evenflow_results"))
    with pytest.raises(ConfigError, match="at most 63 bytes"):
        columns(settings_of(aggregates={"é" * 32: "count"}))


@pytest.mark.parametrize("name", ["xmin", "_micro_batch"])
def test_a_column_that_the_table_has_of_itself_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot have a column '{name}'"):
        columns(settings_of(aggregates={name: "count"}))


def test_columns_have_the_types_of_postgres_and_lists_of_structs_are_refused() -> None:
    types = columns(
        settings_of(
            key=["shop", "day"],
            types={"day": "date", "i": "int64", "price": "decimal(2)"},
            aggregates={"n": "count", "price": "max(price)", "all": "collect(i, 3)"},
            emit="changes",
        )
    )
    expected = {
        "window_start": "timestamp with time zone",
        "window_end": "timestamp with time zone",
        "shop": "text",
        "day": "date",
        "revision": "bigint",
        "gone": "boolean",
        "n": "bigint",
        "price": "numeric(18,2)",
        "all": "bigint[]",
        "_tuples_of_all": "bigint",
        "_micro_batch": "bigint",
    }
    assert types == expected
    with pytest.raises(ConfigError, match=r"no type for the column 'top', which is list"):
        columns(settings_of(types={"i": "int64"}, aggregates={"top": "top_k(i, 3)"}))


def test_windows_that_leave_the_years_of_the_library_are_refused() -> None:
    SINK.check(settings_of(window=f"{98 * 365}d"))
    with pytest.raises(ConfigError, match="at most 99 years"):
        SINK.check(settings_of(window=f"{100 * 365}d"))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match="needs the library psycopg") as caught:
        SINK.check(settings_of())
    assert caught.value.hint == "pip install 'evenflow[postgres]'"
