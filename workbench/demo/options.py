"""What a demo runs: a built-in query or any file, as settings and a source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenflow import queries
from evenflow.errors import ConfigError
from evenflow.grammar.inputs import FileFormat, TimeUnit
from evenflow.settings import Settings, load_settings
from evenflow.settings.sections.input import DEFAULT_PARTITIONS
from evenflow.sources.datasets import open_source
from evenflow.sources.source import Source, SourceOptions, require_columns
from producers.replay import check_source
from workbench.demo.lookup import write_lookup
from workbench.local.clocked_batches import clocked_batches

DEFAULT_QUERY = "flights"
DEFAULT_WINDOW, DEFAULT_SLIDE = "60s", "10s"
_EVENT_RATE = 1_000.0
_BATCH_MS = 500
"""Interval of micro-batches.
A slide of flights is an hour and has some 40 tuples, which is no batch worth planning.
"""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What `evenflow demo` was asked for.
    None stands for the value that the query (or the demo) has by itself.
    """

    query: str | None = None
    """A built-in query. None: `DEFAULT_QUERY`, or with `input` a query that counts the tuples of each key."""
    input: str | None = None
    """The user's own data. With a query they take the place of the query's data."""
    key: str | None = None
    """Key column of `input`."""
    time: str | None = None
    """Column of `input` with the event time. None: the file has no times, and gets 1,000 tuples a second."""
    time_unit: TimeUnit | None = None
    """Unit of the time column. None means ms."""
    value: str | None = None
    """A column of numbers to sum, average and maximise."""
    format: FileFormat | None = None
    """File format of `input`. None: its name or its content tells it."""
    delimiter: str | None = None
    """Field delimiter of CSV. None: the first rows show it."""
    header: bool = True
    """Whether the first line of a CSV file holds the names of its columns."""
    encoding: str = "utf-8"
    """Character encoding of a CSV file."""
    partitioner: str = "evenflow"
    """A registered name, or `module:Class` for one's own."""
    partitioner_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of that partitioner, by name."""
    workers: int = 8
    """Workers among which tuples are spread."""
    instances: int = 1
    """Partitioner instances that share the input."""
    window: str | None = None
    """Length of the windows, such as "60s"."""
    slide: str | None = None
    """Distance between the starts of two windows, such as "10s".
    None with `window`: as long as the window."""
    wiring: str = "fused"
    """How the Spark stages are joined, "fused" or "split"."""
    forwarding: str = "off"
    """Whether the reduce bucket of a key is that of its home, "on" or "off"."""
    limit: int | None = None
    """At most so many tuples are replayed."""


Opener = Callable[[str, SourceOptions], Source]


def prepare(options: DemoOptions, folder: Path, opener: Opener = open_source) -> tuple[Settings, Source]:
    """Settings (all but the broker's) and source of this demo. The services keep their files in `folder`.

    All of a file is read here, before anything is started. Raises ConfigError if the file or a column does
    not fit.
    """
    empty = _no_file(folder)
    if options.input is None or options.query is not None:
        fields, source = _from_query(options, empty, opener)
    else:
        fields, source = _from_file(options, opener)
    if options.window is not None:
        fields |= {"window": options.window, "slide": options.slide or options.window}
    elif options.slide is not None:
        fields |= {"slide": options.slide}
    # A demo is a replay: its times have nothing to do with the clock.
    fields |= {"max_ahead_of_clock": "off"}
    settings = load_settings(
        empty,
        query=fields,
        input={"partitions": DEFAULT_PARTITIONS},
        partitioner={
            "name": options.partitioner,
            "options": dict(options.partitioner_options),
            "workers": options.workers,
            "instances": options.instances,
            "forwarding": options.forwarding,
            **clocked_batches(options.partitioner, _BATCH_MS),
        },
        spark={"wiring": options.wiring, "checkpoint": str(folder / "checkpoint")},
    )
    return settings, source


def _from_query(options: DemoOptions, empty: Path, opener: Opener) -> tuple[dict[str, Any], Source]:
    query = queries.named(options.query or DEFAULT_QUERY)
    own = options.input is None
    file_words = [word for word, value in _words_of_a_file(options).items() if value]
    refused = file_words if own else [word for word in file_words if word in _OF_COLUMNS]
    if refused:
        raise ConfigError(
            f"{refused[0]} describes a file, but the query {query.name!r} has "
            + ("data of its own" if own else "its key, time and aggregates"),
            hint="name the file with --input" if own else "drop it, or drop --query",
        )
    fields = {"name": f"demo-{query.name}", **query.fields}
    if query.lookup_words is not None:
        lookup = write_lookup(query, options.input or query.source, empty.parent)
        fields["lookup"] = lookup.model_dump(mode="json", exclude_defaults=True)
    settings = load_settings(empty, query=fields)
    read_as = SourceOptions.for_settings(
        settings,
        columns=query.columns,
        format=options.format,
        delimiter=options.delimiter,
        header=options.header,
        encoding=options.encoding,
    )
    source = open_source(query.source, read_as) if options.input is None else opener(options.input, read_as)
    check_source(settings, source)
    return fields, source


_OF_COLUMNS = ("--key", "--time", "--time-unit", "--value")


def _words_of_a_file(options: DemoOptions) -> dict[str, object]:
    return {
        "--key": options.key,
        "--time": options.time,
        "--time-unit": options.time_unit,
        "--value": options.value,
        "--format": options.format,
        "--delimiter": options.delimiter,
        "--no-header": not options.header,
        "--encoding": options.encoding != "utf-8",
    }


def _from_file(options: DemoOptions, opener: Opener) -> tuple[dict[str, Any], Source]:
    assert options.input is not None
    source = opener(
        options.input,
        SourceOptions(
            format=options.format,
            columns_named=any((options.key, options.time, options.value)),
            key=options.key,
            time=options.time,
            time_unit=options.time_unit,
            delimiter=options.delimiter,
            header=options.header,
            encoding=options.encoding,
            event_rate=_EVENT_RATE if options.time is None else None,
        ),
    )
    if source.time is None and options.time_unit is not None:
        raise ConfigError("--time-unit needs --time", hint="name the column that holds the event time")
    # One tuple is enough to learn the columns' types.
    kinds = {f.name: f.type for f in next(iter(source.batches(1))).columns.schema} if source.rows else {}
    fields = _query_over(source)
    if fields["key"] in kinds:
        fields["types"] |= _declared(source, source.key, kinds, _KEY_KINDS)
    if options.value is not None:
        require_columns(source.name, source.column_names, (options.value,))
        fields["aggregates"] |= {
            f"{how}_{options.value}": f"{how}({options.value})" for how in ("sum", "mean", "max")
        }
        fields["types"] |= _declared(source, options.value, kinds, _VALUE_KINDS)
    return fields, source


def _query_over(source: Source) -> dict[str, Any]:
    """Fields of a query that counts the tuples of each key."""
    in_records = source.time is not None and source.time in source.column_names
    name = re.sub(r"[^a-z0-9._-]+", "-", Path(source.name).name.lower()).strip("-.")[:40]
    return {
        "name": f"demo-{name or 'file'}",
        "key": source.key if source.key in source.column_names else "@key",
        "time": source.time if in_records else "@timestamp",
        "window": DEFAULT_WINDOW,
        "slide": DEFAULT_SLIDE,
        "aggregates": {"tuples": "count"},
        "types": {},
        **({"time_unit": source.time_unit} if in_records else {}),
    }


_KEY_KINDS = (
    (pa.types.is_integer, pa.types.is_string),
    "a key is text or a whole number: choose another --key",
)
_VALUE_KINDS = (pa.types.is_integer, pa.types.is_floating), "--value sums numbers: choose a column of numbers"


def _declared(
    source: Source, column: str, kinds: Mapping[str, pa.DataType], fitting: tuple[Sequence[Any], str]
) -> dict[str, str]:
    """column -> int64 if the column holds whole numbers, else nothing.
    Raises ConfigError if its type does not fit.

    kinds: column -> type, empty for a source without tuples. fitting: tests, of which one must hold, and the
    hint if none does.
    """
    if column not in kinds:
        return {}  # without a tuple the type is unknown
    fits, hint = fitting
    if not any(is_fit(kinds[column]) for is_fit in fits):
        raise ConfigError(
            f"{source.name}: the column {column!r} holds values of the type {kinds[column]}", hint=hint
        )
    return {column: "int64"} if pa.types.is_integer(kinds[column]) else {}


def _no_file(folder: Path) -> Path:
    """An empty settings file. To name it keeps the user's own evenflow.toml out of the demo."""
    empty = folder / "empty.json"
    empty.write_text("{}")
    return empty
