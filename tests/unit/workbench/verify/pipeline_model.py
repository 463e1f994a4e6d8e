"""A pipeline in a few lines of plain Python: what every topic would hold for these input records."""

from __future__ import annotations

import base64
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.settings import Query, Settings
from evenflow.twostep import readable_schema
from workbench.verify import (
    INPUT_SCHEMA,
    REJECTED_SCHEMA,
    RESULTS_SCHEMA,
    CommittedInput,
    LogBegins,
    Report,
    check,
)

END, NOTHING = 2**62, -(2**62)


@dataclass(frozen=True)
class Record:
    """One input record; `tuple` is what a correct parser makes of it (key, time, values), None if
    unreadable.
    """

    value: bytes | None
    tuple: tuple[bytes, int, dict[str, Any]] | None
    key: bytes | None = None
    timestamp: int = 0
    marker: dict[str, Any] | None = None


def record(key: str, time: int, **values: Any) -> Record:
    """A JSON record of a readable tuple."""
    body = {"key": key, "time": time, **values}
    return Record(json.dumps(body).encode(), (key.encode(), time, values))


def end(tuples: int, producer: str = "p0", producers: int = 1) -> Record:
    """An end-of-stream marker."""
    return Record(None, None, marker={"producer": producer, "tuples": tuples, "producers": producers})


@dataclass
class Topics:
    """What verify reads; tests change it to make differences."""

    settings: Settings
    inputs: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    committed: list[CommittedInput] = field(default_factory=list)
    record_keys: dict[int, bytes | None] = field(default_factory=dict)
    """Record keys by row where they are not the row's."""
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Partition and offset by row where they are not 0 and the row's index."""

    def check(self, *, typed: bool = False, **options: Any) -> Report:
        """What verify says of it; typed: the results as typed columns, as Parquet has them."""
        return check(
            self.settings,
            pa.Table.from_pylist(self.inputs, schema=INPUT_SCHEMA),
            pa.Table.from_pylist(self.rejected, schema=REJECTED_SCHEMA),
            self.typed_results() if typed else self._json_results(),
            self.committed,
            **options,
        )

    def _json_results(self) -> pa.Table:
        result = []
        for i, row in enumerate(self.rows):
            value = row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode()
            partition, offset = self.places.get(i, (0, i))
            key = self.record_keys[i] if i in self.record_keys else _key_of(row)
            result.append({"partition": partition, "offset": offset, "value": value, "key": key})
        return pa.Table.from_pylist(result, schema=RESULTS_SCHEMA)

    def typed_results(self) -> pa.Table:
        """The rows in typed columns, as Parquet has them."""
        rows = [{**row, "key": row["key"] if "key" in row else _key_of(row)} for row in self.rows]
        return pa.Table.from_pylist(rows, schema=readable_schema(self.settings.query))

    def trim(self, partition: int, below: int) -> LogBegins:
        """The broker deletes the start of an input partition."""
        self.inputs = [r for r in self.inputs if r["partition"] != partition or r["offset"] >= below]
        return LogBegins(inputs={partition: below})

    def recommit(self, partition: int, **changes: Any) -> None:
        """Change the committed state of a partition."""
        self.committed[partition] = replace(self.committed[partition], **changes)


def _key_of(row: Any) -> bytes | None:
    if not isinstance(row, dict):
        return None
    return base64.b64decode(row["key_base64"]) if "key_base64" in row else str(row["key"]).encode()


def run(settings: Settings, partitions: Sequence[Sequence[Record]], idle_mark: int | None = None) -> Topics:
    """The topics after a correct pipeline has read all of it. `idle_mark` holds for partition 0 from its
    start.
    """
    topics = Topics(settings)
    accepted: list[tuple[bytes, int, dict[str, Any]]] = []
    for partition, records in enumerate(partitions):
        accepted += _partition(topics, partition, records, idle_mark if partition == 0 else None)
    topics.rows = windows_of(settings, accepted, min(state.mark for state in topics.committed))
    return topics


def _partition(
    topics: Topics, partition: int, records: Sequence[Record], idle: int | None
) -> list[tuple[bytes, int, dict[str, Any]]]:
    query = topics.settings.query
    delay, slide = query.out_of_orderness + query.allowed_lateness, query.slide_ms
    largest: int | None = None
    run_: list[int] = []
    ended_by: set[str] = set()
    ended = False
    read = 0
    accepted = []
    for offset, one in enumerate(records):
        place = {"partition": partition, "offset": offset}
        topics.inputs.append(
            {**place, "timestamp": one.timestamp, "key": one.key, "value": one.value, "marker": one.marker}
        )
        if one.marker is not None:
            ended_by.add(one.marker["producer"])
            ended = ended or len(ended_by) >= one.marker["producers"]
            continue
        read += 1
        mark = NOTHING if largest is None else largest - delay
        reason = None
        if ended:
            reason = "after-end"
        elif one.tuple is None:
            reason = "unreadable"
        else:
            time = one.tuple[1]
            if query.max_jump is not None and (largest is None or time - largest > query.max_jump):
                run_ = [*run_, time]
                if max(run_) - min(run_) > query.max_jump:
                    run_ = [time]
                if len(run_) < query.jump_confirmations:
                    reason = "jump"
            if reason is None:
                run_ = []
                pane_end = (math.floor(time / slide) + 1) * slide
                if pane_end <= mark:
                    reason = "late"
                elif idle is not None and pane_end <= idle:
                    reason = "idle"
                else:
                    largest = time if largest is None else max(largest, time)
                    accepted.append(one.tuple)
        if reason is not None:
            held = max(mark, NOTHING if idle is None else idle) if reason in ("late", "idle") else None
            topics.rejected.append(
                {
                    **place,
                    "reason": reason,
                    "mark": held,
                    "key": one.key,
                    "value": one.value,
                    "omitted": False,
                }
            )
    own = NOTHING if largest is None else largest - delay
    topics.committed.append(
        CommittedInput(
            partition=partition,
            offset=len(records),
            max_time=largest,
            mark=END if ended else max(own, NOTHING if idle is None else idle),
            idle_mark=idle,
            ended=ended,
            read=read,
            routed=len(accepted),
            rejected=read - len(accepted),
        )
    )
    return accepted


def windows_of(
    settings: Settings, tuples: list[tuple[bytes, int, dict[str, Any]]], mark: int, *, rows: bool = False
) -> list[dict[str, Any]]:
    """rows: whether the tuples of a summary are rows of its parts already."""
    query = settings.query
    if query.summary is not None and not rows:
        return _of_summary(settings, tuples, mark)
    members: dict[tuple[int, bytes], list[dict[str, Any]]] = defaultdict(list)
    times: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for routed, time, values in tuples:
        value = None if query.own_key is None else values[query.own_key]
        if query.own_key is not None and value is None:
            continue  # a tuple without the key of the view is in none of its windows
        key = routed if value is None else str(value).encode()
        first = (math.floor(time / query.slide_ms) + 1) * query.slide_ms
        for window_end in range(first, first + query.window, query.slide_ms):
            start = window_end - query.window
            if window_end <= mark and (query.emit_from is None or start >= query.emit_from):
                members[window_end, key].append(values)
                times[window_end, key].append(time)
    result: list[dict[str, Any]] = []
    counts = AggregatePlan.of(query).tuples_schema.names
    for (window_end, key), inside in members.items():
        row: dict[str, Any] = {"window_start": window_end - query.window, "window_end": window_end}
        try:
            row["key"] = int(key) if query.key_kind == "int64" else key.decode()
        except UnicodeDecodeError:
            row["key_base64"] = base64.b64encode(key).decode()
        for name, spec in query.aggregates.items():
            column = [v.get(spec.column or "") for v in inside]
            plain = spec.function in _PLAIN and not (spec.function == "count" and spec.column)
            plain = plain and query.types.get(spec.column or "") != "string"
            if spec.expression is None:
                row[name] = (
                    _aggregate(spec.function, column)
                    if plain
                    else _by_the_engine(query, name, column, times[window_end, key])
                )
        _express(query, row)
        if "_tuples" in counts:
            row["_tuples"] = len(inside)
        result.append(row)
    return result


def _express(query: Query, row: dict[str, Any]) -> None:
    """Put the expressions over the row's values into the row, in the order of the settings."""
    outputs = {output.label: output for output in AggregatePlan.of(query).outputs}
    made = {}
    for name, spec in query.aggregates.items():
        made[name] = row.pop(name, None)
        if spec.expression is not None:
            text, names = spec.expression, [other for other in query.aggregates if other in spec.expression]
            assert outputs[name].label == name
            values = {other: made.get(other, row.get(other)) for other in names}
            try:
                made[name] = eval(text, {}, values)
            except (TypeError, ZeroDivisionError):  # null, or a value that no double has
                made[name] = None
    row |= made


def _of_summary(
    settings: Settings, tuples: list[tuple[bytes, int, dict[str, Any]]], mark: int
) -> list[dict[str, Any]]:
    """The rows of a summary without `having`: those of its parts are tuples of windows of one slide."""
    query = settings.query
    rows, weights = [], defaultdict(int)
    for part, by in query.parts:
        for row in windows_of(settings.as_view(part, settings.results), tuples, mark):
            key = row["key"] if by == "key" else row[by]
            if key is not None:
                rows.append((str(key).encode(), row["window_end"] - query.slide_ms, {**row, "key": None}))
                weights[row["window_end"], str(key)] += row.get("_tuples", row.get("n"))
    once = query.model_copy(update={"window": query.slide_ms})
    result = []
    for row in windows_of(settings.as_view(once, settings.results), rows, END, rows=True):
        end_, key = row["window_end"], str(row["key"])
        result.append({**row, "window_start": end_ - query.window, "_tuples": weights[end_, key]})
    return result


_PLAIN = ("count", "sum", "mean", "min", "max")


def _by_the_engine(query: Query, name: str, values: list[Any], times: list[int]) -> Any:
    """The engine's own value, of two parts merged: verify is another implementation."""
    spec = query.aggregates[name]
    of_summary = query.summary is not None
    types = {spec.column: query.value_columns[spec.column] if of_summary else query.column_type(spec.column)}
    # Alone, the aggregate has the room that it has beside the others.
    room = next(output.call.room for output in AggregatePlan.of(query).outputs if output.label == name)
    bounds = {"max_state_bytes": room.state, "max_result_bytes": room.result}
    plan = AggregatePlan.of(Query(aggregates={name: spec}, types=types, **bounds))
    columns = {"pane": [0] * len(values), "key": [b""] * len(values), "time": times}
    rows = pa.table(
        {field.name: pa.array(columns.get(field.name, values), field.type) for field in plan.frame_schema}
    )
    half = len(values) // 2
    partials = plan.merge([plan.combine(rows.slice(0, half)), plan.combine(rows.slice(half))])
    return plan.finish(partials)[name][0].as_py()


def _aggregate(function: str, column: list[Any]) -> Any:
    if function == "count":
        return len(column)
    values = [value for value in column if value is not None]
    if not values:
        return None
    value = {"sum": sum, "min": min, "max": max, "mean": lambda v: sum(v) / len(v)}[function](values)
    fits = isinstance(value, float) or -(2**63) <= value < 2**63
    return value if fits else None
