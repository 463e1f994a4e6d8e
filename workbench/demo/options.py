"""What a demo runs: a built-in query or any file, as settings and a source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenflow import queries
from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.sources.datasets import open_source
from evenflow.sources.event_time import TimeUnit
from evenflow.sources.source import Source, SourceOptions

DEFAULT_WINDOW, DEFAULT_SLIDE = "60s", "10s"
_EVENT_RATE = 1_000.0


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What `evenflow demo` was asked for; None means: as the query (or the demo) itself has it."""

    query: str = "flights"
    input: str | None = None
    key: str | None = None
    time: str | None = None
    time_unit: TimeUnit | None = None
    value: str | None = None
    delimiter: str | None = None
    header: bool = True
    partitioner: str = "evenflow"
    partitioner_options: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 8
    instances: int = 1
    window: str | None = None
    slide: str | None = None
    wiring: str = "fused"
    limit: int | None = None


def prepare(options: DemoOptions, kafka: KafkaSettings, folder: Path) -> tuple[Settings, Source]:
    """Settings and source of this demo; ConfigError when the file or a column does not fit."""
    fields, source = _from_query(options) if options.input is None else _from_file(options)
    if options.window is not None:
        fields |= {"window": options.window, "slide": options.slide or options.window}
    elif options.slide is not None:
        fields |= {"slide": options.slide}
    settings = load_settings(
        _no_file(folder),
        query=fields,
        kafka=kafka.model_dump(exclude_unset=True),
        partitioner={
            "name": options.partitioner,
            "options": dict(options.partitioner_options),
            "workers": options.workers,
            "instances": options.instances,
        },
        spark={"wiring": options.wiring, "checkpoint": str(folder / "checkpoint")},
    )
    return settings, source


def _from_query(options: DemoOptions) -> tuple[dict[str, Any], Source]:
    query = queries.named(options.query)
    fields = {"name": f"demo-{query.name}", **query.fields}
    settings = load_settings(query=fields)
    source = open_source(query.source, SourceOptions.for_settings(settings, columns=query.columns))
    return fields, source


def _from_file(options: DemoOptions) -> tuple[dict[str, Any], Source]:
    assert options.input is not None
    timeless = options.time is None
    source = open_source(
        options.input,
        SourceOptions(
            key=options.key,
            time=options.time,
            time_unit=options.time_unit,
            delimiter=options.delimiter,
            header=options.header,
            event_rate=_EVENT_RATE if timeless else None,
        ),
    )
    types = {f.name: f.type for f in next(iter(source.batches(1))).columns.schema} if source.rows else {}
    in_records = source.time is not None and source.time in source.column_names
    fields: dict[str, Any] = {
        "name": "demo-"
        + (re.sub(r"[^a-z0-9._-]+", "-", Path(source.name).name.lower()).strip("-.")[:40] or "file"),
        "key": source.key if source.key in source.column_names else "@key",
        "time": source.time if in_records else "@timestamp",
        "window": DEFAULT_WINDOW,
        "slide": DEFAULT_SLIDE,
        "aggregates": {"tuples": "count"},
        "types": {},
    }
    if in_records:
        fields["time_unit"] = source.time_unit
    if fields["key"] != "@key" and types and pa.types.is_integer(types[source.key]):
        fields["types"][source.key] = "int64"
    if options.value is not None:
        if options.value not in source.column_names:
            raise ConfigError(
                f"{options.input} has no column {options.value!r}",
                hint=f"it has: {', '.join(source.column_names)}",
            )
        fields["aggregates"] |= {
            f"{how}_{options.value}": f"{how}({options.value})" for how in ("sum", "mean", "max")
        }
        if types and pa.types.is_integer(types[options.value]):
            fields["types"][options.value] = "int64"
    return fields, source


def _no_file(folder: Path) -> Path:
    """Settings of a demo never come from a user's evenflow.toml."""
    empty = folder / "empty.json"
    empty.write_text("{}")
    return empty
