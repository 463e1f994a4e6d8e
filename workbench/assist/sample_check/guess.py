"""A first evenflow.toml for an unknown topic.
Key, event time and values are guessed by what the columns hold.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from evenflow.settings import Settings
from evenflow.settings.durations import parse_duration
from workbench.assist.findings import Changes
from workbench.assist.sample_check.judges.columns import keyless
from workbench.assist.sample_check.judges.records import in_wire_format, likely_csv
from workbench.assist.sample_check.order import late_tuples
from workbench.assist.sample_check.propose import applied, as_toml, merged
from workbench.assist.sample_check.report import check_sample
from workbench.assist.sample_check.sample import TopicRecords
from workbench.assist.sample_check.shape import NUMBERS, Column, RecordShape, can_be_named, shape_of, unit_of

_NEARLY = 0.99
"""Share of the records that must hold a fitting value in a column that is guessed."""
_HALF = 0.5
"""Share of the records that must hold a value in a key column whose values repeat. The others get no key."""
_TIME_NAME = re.compile(r"time|date|stamp|^ts$|^at$|_at$|^when$", re.IGNORECASE)
_KEY_NAME = re.compile(r"key|user|customer|account|device|sensor|client|session|word|id$", re.IGNORECASE)


def starting_file(settings: Settings, sample: TopicRecords, *, now: int) -> str:
    """The lines of a settings file that reads this topic. A comment marks each guess. now: ms since 1970."""
    comments: dict[tuple[str, str], str] = {}
    changes = _guessed(settings, sample, comments)
    begun = applied(settings, changes)
    comments["query", "key"] += _without_key(begun, sample)
    whole = merged((), changes)
    look = check_sample(begun, sample, now=now)
    for section, fields in look.proposal.items():
        whole[section] = whole.get(section, {}) | dict(fields)
    delay = parse_duration(look.proposal.get("query", {}).get("out_of_orderness", "0ms"))
    lost = late_tuples(begun.query.model_copy(update={"out_of_orderness": delay}), look.facts.times)
    loss = f"{lost:,} tuples" if lost else "none"
    comments["query", "out_of_orderness"] = f"loses {loss} of the sample; results come that much later"
    whole["kafka"] = {"bootstrap_servers": settings.kafka.bootstrap_servers}
    return as_toml(begun, whole, comments)


def _guessed(settings: Settings, sample: TopicRecords, comments: dict[tuple[str, str], str]) -> Changes:
    """The guessed settings. What is to be said behind their lines is added to `comments`."""
    values = sample.values
    keyed = all(key is not None for stretch in sample.stretches for key in stretch.keys)
    records = {"topic": sample.topic} | _format(settings, values, comments)
    shape = shape_of(settings.input.model_copy(update=records), values)
    nameable = {name: column for name, column in shape.columns.items() if can_be_named(name)}
    shape = replace(shape, columns=nameable)  # the settings cannot name the others
    time = guess_time(shape)
    key = guess_key(shape, time, keyed=keyed)
    query: dict[str, Any] = {"name": _query_name(sample.topic), "key": key, "time": time or "@timestamp"}
    comments["query", "key"] = _why_key(shape, key)
    comments["query", "time"] = (
        "a guess by its values" if time else "no column holds times: the record timestamp"
    )
    if time:
        query["time_unit"] = unit_of(shape.column(time).examples)
    query["window"] = "1m"
    comments["query", "window"] = "as you need it"
    query["aggregates"] = {"tuples": "count"} | _sums(shape, {key, time})
    alive = not all(stretch.ended for stretch in sample.stretches if stretch.values)
    idle = {"idle_timeout": "30s"} if alive else {}
    comments["partitioner", "idle_timeout"] = (
        "a partition without records holds the others back no longer than this;"
        " only one with records: see max_skew"
    )
    return {"query": query, "input": records} | ({"partitioner": idle} if idle else {})


def guess_time(shape: RecordShape) -> str | None:
    """The column that most likely holds event times, or None. Its values are times, and if possible its
    name says so.
    """
    timed = [
        column.name
        for column in shape.columns.values()
        if column.filled >= _NEARLY * shape.rows and unit_of(column.examples) in ("s", "ms", "us", "iso")
    ]
    return max(timed, key=lambda name: bool(_TIME_NAME.search(name)), default=None)


def guess_key(shape: RecordShape, time: str | None, *, keyed: bool) -> str:
    """The column that is most likely the key: text or whole numbers that repeat.
    `@key` if no column is likely.

    A column that repeats may be null in up to half of the records. time: the column of event times, which is
    no key. keyed: whether all records have a record key.
    """
    able = [
        column
        for column in shape.columns.values()
        if column.name != time
        and column.filled >= (_HALF if _comes_again(column) else _NEARLY) * shape.rows
        and column.count(("text", "whole number")) >= _NEARLY * column.filled
        and unit_of(column.examples) is None
    ]
    if not able:
        # A column that the user can replace is of more use than `@key`, which not all records have.
        return "@key" if keyed else next(iter(shape.columns), "@key")
    return max(able, key=_like_a_key).name


def _like_a_key(column: Column) -> tuple[bool, bool, bool, int]:
    """How likely the column is a key, to compare: by repetition first, then name, type and number of
    values.
    """
    named_so = bool(_KEY_NAME.search(column.name))
    return _comes_again(column), named_so, column.mostly == "text", column.distinct


def _comes_again(column: Column) -> bool:
    """Whether the column has several values, and most of them more than once."""
    return 1 < column.distinct <= column.filled / 2


def _without_key(begun: Settings, sample: TopicRecords) -> str:
    """The end of the comment on the key: how many records have none, and how to keep these.
    Empty if all have one.
    """
    name = begun.query.key_name
    if name == "@key":
        return ""
    shape = shape_of(begun.input, sample.values)
    column = shape.column(name)
    missing = shape.rows - column.filled
    form = "int64" if column.mostly == "whole number" else "string"
    return f"; {missing:,} of {shape.rows:,} have none: {keyless(begun.query, name, form)}" if missing else ""


def _why_key(shape: RecordShape, key: str) -> str:
    if key == "@key":
        return "the raw record key: no column looks like one"
    column = shape.column(key)
    return f"a guess: {column.distinct:,} different values in {column.filled:,} records"


def _format(
    settings: Settings, values: list[bytes | None], comments: dict[tuple[str, str], str]
) -> dict[str, Any]:
    if shape_of(settings.input, values).rows or settings.input.format != "json":
        return {"format": settings.input.format}
    delimiter, fields = likely_csv(values)
    if in_wire_format(values):
        comments["input", "format"] = (
            "they look like Confluent's wire format: write avro or protobuf, and [input.registry]"
        )
        return {"format": "text"}
    if fields < 2:
        comments["input", "format"] = "no JSON objects, and no csv: whole lines of text"
        return {"format": "text"}
    comments["input", "columns"] = "name them"
    return {"format": "csv", "delimiter": delimiter, "columns": [f"c{number}" for number in range(fields)]}


def _sums(shape: RecordShape, used_columns: set[str | None]) -> dict[str, str]:
    """The aggregate that sums the first column of decimals, or else of whole numbers. Empty if there is
    none.
    """
    able = [
        column
        for column in shape.columns.values()
        if column.name not in used_columns and column.mostly in NUMBERS
    ]
    best = max(able, key=lambda column: column.mostly == "decimal", default=None)
    return {} if best is None else {f"{best.name}_sum": f"sum({best.name})"}


def _query_name(topic: str) -> str:
    return re.sub(r"[^a-z0-9._-]", "-", topic.lower()).lstrip("._-")[:60] or "query"
