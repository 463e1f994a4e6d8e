"""TPC-H's lineitem, made by tpchgen-cli at the first use: `tpch:scale=0.01`, in order of `l_shipdate`.

A ship date is a day. So that windows of minutes have a meaning, rows are numbered in that order by a column of their
own, `streamed`: ms of event time at `rate` rows a second. A row also has the columns of its order (`o_...`) and its
customer (`c_...`) that a query names. The files stay below `$XDG_CACHE_HOME/evenflow/tpch`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.rank_laws import numbered_times
from evenflow.settings.query import ColumnType
from evenflow.sources.formats.csv_files import read_csv
from evenflow.sources.options import WordOptions
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, bounded

TYPES: dict[str, ColumnType] = {
    "l_orderkey": "int64",
    "l_partkey": "int64",
    "l_linenumber": "int64",
    "l_quantity": "int64",
    "l_extendedprice": "float64",
    "l_discount": "float64",
    "l_tax": "float64",
    "l_shipdate": "string",
    "o_orderkey": "int64",
    "o_custkey": "int64",
    "o_shippriority": "int64",
    "o_orderdate": "string",
    "c_custkey": "int64",
    "c_mktsegment": "string",
}
BYTES_A_SCALE = {"lineitem": 760_000_000, "orders": 175_000_000, "customer": 25_000_000}
"""Of a table as CSV at scale 1 (measured at 0.01, in proportion)."""
_KEY, _TIME = "l_partkey", "streamed"
_IN_ORDER_OF = ("l_shipdate", "l_orderkey", "l_linenumber")
"""No two rows have all three alike."""
_HIGHEST_SCALE = 100_000.0


def open_tpch(rest: str, options: SourceOptions) -> TableSource:
    """lineitem as a bounded source. ConfigError where the generator or the room for it is missing."""
    words = WordOptions(rest, of="tpch")
    scale, rate = words.number("scale", 0.01, above=0), words.number("rate", 10.0, above=0)
    words.done()
    key, time = options.key or _KEY, options.time or _TIME
    table = _rows(scale, replace(options, key=key, time=time))
    times = numbered_times(0, table.num_rows, rate=rate)
    table = table.append_column(_TIME, pa.array(times, pa.int64()))
    return bounded("tpch", table, options, key=key, time=time)


def _rows(scale: float, options: SourceOptions) -> pa.Table:
    """lineitem and what of the other tables is named, in order of shipment."""
    named = [name for name in (options.key, options.time, *(options.columns or ())) if name is not None]
    of_order, of_customer = ([name for name in named if name.startswith(letter)] for letter in ("o_", "c_"))
    own = [name for name in named if name not in (_TIME, *of_order, *of_customer)]
    table = _read(scale, "lineitem", None if options.columns is None else [*own, *_IN_ORDER_OF], options)
    if of_order or of_customer:
        orders = _read(scale, "orders", ["o_orderkey", "o_custkey", *of_order], options)
        table = table.join(orders, "l_orderkey", "o_orderkey", "inner")
    if of_customer:
        customers = _read(scale, "customer", ["c_custkey", *of_customer], options)
        table = table.join(customers, "o_custkey", "c_custkey", "inner")
    return table.sort_by([(name, "ascending") for name in _IN_ORDER_OF]).combine_chunks()


def _read(scale: float, which: str, columns: list[str] | None, options: SourceOptions) -> pa.Table:
    chosen = replace(
        options,
        key=None,
        time=None,
        columns=None if columns is None else tuple(dict.fromkeys(columns)),
        delimiter=",",
        header=True,
        encoding="utf-8",
        types=TYPES | options.types,
    )
    return read_csv(file_of(which, scale), chosen)


def file_of(which: str, scale: float) -> Path:
    """The file of a table at this scale factor. Made now where it is not there yet."""
    file = _cache() / f"scale-{scale:g}" / f"{which}.csv"
    if not file.exists():
        _make(file, scale)
    return file


def _make(file: Path, scale: float) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{file.parent} cannot be made: {error}",
            hint="set XDG_CACHE_HOME to a folder that can be written",
        ) from None
    _refuse_too_large(file, scale)
    # Made beside its place and then moved there: a file that is there is whole.
    with tempfile.TemporaryDirectory(dir=file.parent) as beside:
        words = [_generator(), "csv", "-s", f"{scale:g}", "--tables", file.stem, "--output-dir", beside]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConfigError(f"tpchgen-cli failed: {done.stderr.strip()[-300:] or done.returncode}")
        (Path(beside) / file.name).replace(file)


def _refuse_too_large(file: Path, scale: float) -> None:
    needed, free = scale * BYTES_A_SCALE[file.stem], shutil.disk_usage(file.parent).free
    if scale > _HIGHEST_SCALE or needed > free:
        raise ConfigError(
            f"TPC-H at scale {scale:g} needs about {needed / 1e9:,.1f} GB in {file.parent}, "
            f"but {free / 1e9:,.1f} GB are free",
            hint="choose a smaller scale, or another disk with XDG_CACHE_HOME",
        )


def _generator() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise ConfigError("TPC-H needs the package tpchgen-cli", hint="pip install 'evenflow[tpch]'")
    return found


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evenflow" / "tpch"


FORMAT = SourceFormat("tpch", "TPC-H's lineitem, made at the first use (package tpchgen-cli)", open_tpch)
