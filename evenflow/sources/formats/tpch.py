"""TPC-H's lineitem, made by tpchgen-cli at the first use: `tpch:scale=0.01`, in order of `l_shipdate`.

A ship date is a day. So that windows of minutes have a meaning, rows are numbered in that order by a column of their
own, `streamed`: ms of event time at `rate` rows a second. The file stays below `$XDG_CACHE_HOME/evenflow/tpch`.
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
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, bounded, require_columns

TYPES: dict[str, ColumnType] = {
    "l_orderkey": "int64",
    "l_partkey": "int64",
    "l_quantity": "int64",
    "l_extendedprice": "float64",
    "l_discount": "float64",
    "l_tax": "float64",
    "l_shipdate": "string",
}
BYTES_A_SCALE = 760_000_000
"""Of lineitem as CSV at scale 1 (measured: 7.3 MB at 0.01, in proportion)."""
_KEY, _ORDER, _TIME = "l_partkey", "l_shipdate", "streamed"
_HIGHEST_SCALE = 100_000.0


def open_tpch(rest: str, options: SourceOptions) -> TableSource:
    """lineitem as a bounded source. ConfigError where the generator or the room for it is missing."""
    words = WordOptions(rest, of="tpch")
    scale, rate = words.number("scale", 0.01, above=0), words.number("rate", 10.0, above=0)
    words.done()
    table = _in_order_of_shipment(read_csv(lineitem(scale), _reading(options)))
    times = numbered_times(0, table.num_rows, rate=rate)
    table = table.append_column(_TIME, pa.array(times, pa.int64()))
    key, time = options.key or _KEY, options.time or _TIME
    require_columns("tpch", table.column_names, (key, time, *(options.columns or ())))
    return bounded("tpch", table, options, key=key, time=time)


def lineitem(scale: float) -> Path:
    """The file at this scale factor; made now where it is not there yet."""
    file = _cache() / f"scale-{scale:g}" / "lineitem.csv"
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
    _refuse_too_large(file.parent, scale)
    # Made beside its place and then moved there: a file that is there is whole.
    with tempfile.TemporaryDirectory(dir=file.parent) as beside:
        words = [_generator(), "csv", "-s", f"{scale:g}", "--tables", "lineitem", "--output-dir", beside]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConfigError(f"tpchgen-cli failed: {done.stderr.strip()[-300:] or done.returncode}")
        (Path(beside) / file.name).replace(file)


def _refuse_too_large(folder: Path, scale: float) -> None:
    needed, free = int(scale * BYTES_A_SCALE), shutil.disk_usage(folder).free
    if scale > _HIGHEST_SCALE or needed > free:
        raise ConfigError(
            f"TPC-H at scale {scale:g} needs about {needed / 1e9:,.1f} GB in {folder}, but {free / 1e9:,.1f} GB are free",
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


def _reading(options: SourceOptions) -> SourceOptions:
    """What is read of the file: the columns wanted, and the ship date, whose order rows come in."""
    wanted = options.columns
    if wanted is not None:
        wanted = tuple(dict.fromkeys((*(name for name in wanted if name != _TIME), _ORDER)))
    time = None if options.time == _TIME else options.time
    return replace(
        options,
        key=options.key or _KEY,
        time=time,
        columns=wanted,
        delimiter=",",
        header=True,
        encoding="utf-8",
        types=TYPES | options.types,
    )


def _in_order_of_shipment(table: pa.Table) -> pa.Table:
    # A number parts rows of the same day: Arrow's sort promises no order among equals.
    numbered = table.append_column("", pa.array(range(table.num_rows), pa.int64()))
    return numbered.sort_by([(_ORDER, "ascending"), ("", "ascending")]).drop_columns([""]).combine_chunks()


FORMAT = SourceFormat("tpch", "TPC-H's lineitem, made at the first use (package tpchgen-cli)", open_tpch)
