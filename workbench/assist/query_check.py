"""What a query will do, before it runs: what it reads, its windows, its state, its results,
and what `verify` compares.

`_sections` puts it in words, from the settings alone or with what a sample of the input topic adds
(`of_sample`). Both are functions of plain values. `check_query` asks the broker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import Aggregate, Call
from evenflow.errors import DataLossError, ServiceError
from evenflow.grammar.column_types import ANY_VALUE
from evenflow.numeric.arrays import Int64s
from evenflow.reporting.words import printable, share
from evenflow.settings import Query, Settings
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query.lookup import Lookup
from evenflow.settings.views import queries
from evenflow.twostep import readable_schema
from evenflow.windows import pane_of
from partitioner_service.kafka.learned_state import check_partitioner
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import schemas_of
from spark_consumers.sinks import sink_of
from topics.admin import describe
from topics.query.input_topic import by_its_rule
from topics.query.record import refuse_taken_key_columns
from topics.state import TopicState
from workbench.assist.findings import Finding
from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.sample import TopicRecords, sampled_records
from workbench.assist.sample_check.shape import Column
from workbench.assist.sample_check.words import counted, shown_span
from workbench.verify.windows.oracles import FUNCTIONS

_MANY_ROWS = 5
"""Rows for each tuple above which it is said how to write fewer."""


@dataclass(frozen=True, kw_only=True)
class StateSizes:
    """What the sampled tuples would keep in state."""

    tuples: int
    """Tuples of the sample that the query keeps."""
    panes: int
    """How many panes have a tuple."""
    pairs: int
    """How many pairs (pane, key) have a tuple."""
    pane_keys: tuple[int, int]
    """Keys of a pane: median and most."""
    window_keys: int
    """Keys of the fullest window."""
    window_tuples: int
    """Tuples of the fullest window."""
    entry_bytes: float
    """Mean size of a key in a pane."""
    state_bytes: int
    """Upper bound of the state of the fullest window, in all buckets together."""
    whole: bool
    """Whether the sample is all that the topic holds."""
    views: Mapping[str, StateSizes] = field(default_factory=dict)
    """Name of a view -> the same for the view."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """The answer."""

    sections: Mapping[str, tuple[tuple[str, str], ...]]
    """Heading -> lines, each a pair (name, words)."""
    findings: tuple[Finding, ...] = ()
    """What the look has found, and what verify could not recompute."""
    state_sizes: StateSizes | None = None
    """What the sample would keep in state. None if it has no tuple."""
    look: SampleReport | None = field(default=None)
    """The look at the sample. None if there was no sample."""

    @property
    def problems(self) -> bool:
        """Whether a finding says that the query cannot work as it is."""
        return any(finding.status == "problem" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The answer as plain JSON."""
        return {
            "sections": {name: dict(lines) for name, lines in self.sections.items()},
            "findings": [vars(finding) for finding in self.findings if finding.status != "ok"],
            "kept": None if self.state_sizes is None else asdict(self.state_sizes),
            "sample": None if self.look is None else self.look.as_json(),
        }


def check_query(settings: Settings, *, most: int) -> Check:
    """Ask the broker for at most `most` of the records of the input topic, and say what becomes of them.

    Raises ConfigError, as `evenflow partition` does, for a partitioner that cannot be used, and for key
    columns whose names results cannot have.
    """
    check_partitioner(settings)
    topic = settings.topic("input")
    settings = by_its_rule(settings)
    refuse_taken_key_columns(settings)
    try:
        state = describe(settings.kafka, [topic]).get(topic)
        if state is None:
            why = f"topic {topic} does not exist: nothing is known of its records"
            return _unknown(settings, why, "create and fill it, or name another in input.topic")
        sample = sampled_records(settings.kafka, state, most=most)
    except (ServiceError, DataLossError) as error:
        return _unknown(settings, error.message, error.hint or "")
    return of_sample(settings, state, sample, now=int(time.time() * 1000))


def of_sample(settings: Settings, state: TopicState, sample: TopicRecords, *, now: int) -> Check:
    """Say what becomes of these records. now: ms since 1970."""
    look = check_sample(settings, sample, now=now)
    state_sizes = kept_of(settings, sample, whole=sample.records >= state.records)
    return Check(
        sections=_sections(settings, look, state_sizes),
        findings=(*look.findings, *_uncompared(settings)),
        state_sizes=state_sizes,
        look=look,
    )


def _unknown(settings: Settings, why: str, do: str) -> Check:
    findings = (Finding("input topic", "problem", why, do), *_uncompared(settings))
    return Check(sections=_sections(settings, None, None), findings=findings)


def _uncompared(settings: Settings) -> Iterator[Finding]:
    """A finding for each aggregate of one's own that `verify` cannot recompute."""
    for query_settings in queries(settings):
        for label, aggregate, _ in AggregatePlan.of(query_settings.query).outputs:
            if aggregate.name in FUNCTIONS or aggregate.oracle is not None:
                continue
            spec = query_settings.query.aggregates[label]
            message = f"{label} = {spec} has no oracle, so `evenflow verify` refuses this query"
            yield Finding("verify", "warning", message, "give its class an `oracle(values)`")


def kept_of(settings: Settings, sample: TopicRecords, *, whole: bool) -> StateSizes | None:
    """What the tuples of the sample would keep in state. None if the sample has no tuple.
    Late tuples count too.

    Of summaries nothing is said: they keep what their parts keep, and the rows of windows that wait.
    """
    each = [query_settings for query_settings in queries(settings) if query_settings.query.summary is None]
    own_sizes, *views = (_state_sizes(query_settings, sample, whole=whole) for query_settings in each)
    if own_sizes is None:
        return None
    named = zip(each[1:], views, strict=True)
    return replace(
        own_sizes, views={str(view.query.view_name): sizes for view, sizes in named if sizes is not None}
    )


def _state_sizes(settings: Settings, sample: TopicRecords, *, whole: bool) -> StateSizes | None:
    """What the tuples would keep for the query, or for one of its views."""
    query = settings.query
    plan, parser = AggregatePlan.of(query), Parser(settings, schemas=schemas_of(settings, ask_for=math.inf))
    parts = []
    # Frames have the panes of the query that routes. A view with a longer slide joins several of them.
    slide = query.slide_ms // plan.slides_per_pane
    for stretch in sample.stretches:
        parsed = parser.parse(stretch.values, keys=stretch.keys, timestamps=stretch.timestamps)
        of_tuples = parsed.tuple_times
        times = [pa.array(of_tuples)] if plan.timed else []
        columns = [pa.array(pane_of(of_tuples, slide)), parsed.keys, *times, *parsed.values.columns]
        parts.append(pa.Table.from_arrays(columns, schema=plan.frame_schema))
    rows = pa.concat_tables(parts).combine_chunks()
    if not rows.num_rows:
        return None
    partials = plan.combine(rows)
    panes = partials["pane"].to_numpy()
    numbers, keys = np.unique(panes, return_counts=True)
    first, entries = _fullest(numbers, keys, plan.panes_per_window)
    of_window = _between(partials, first, first + plan.panes_per_window)
    merged = plan.merge([of_window.drop_columns(["pane"])])
    # With totals the state is the panes and one total for each key. Without, merged stretches at most double
    # the panes.
    state_bytes = of_window.nbytes + merged.nbytes if plan.invertible else 2 * of_window.nbytes
    return StateSizes(
        tuples=rows.num_rows,
        panes=len(numbers),
        pairs=partials.num_rows,
        pane_keys=(int(np.median(keys)), int(keys.max())),
        window_keys=merged.num_rows,
        window_tuples=_between(
            rows, first * plan.slides_per_pane, (first + plan.panes_per_window) * plan.slides_per_pane
        ).num_rows,
        entry_bytes=of_window.nbytes / entries,
        state_bytes=state_bytes if plan.panes_per_window > 1 else of_window.nbytes,
        whole=whole,
    )


def _fullest(numbers: Int64s, keys: Int64s, span: int) -> tuple[int, int]:
    """First pane of the window with the most pairs (pane, key), and how many pairs these are.

    numbers: panes that have a tuple, ascending. keys: number of keys of each. span: panes of a window.
    """
    # A difference of two running sums is the number of pairs of the panes in between.
    sums = np.concatenate([[0], np.cumsum(keys)])
    ends = np.searchsorted(numbers, numbers + span)
    entries = sums[ends] - sums[:-1]
    best = int(np.argmax(entries))
    return int(numbers[best]), int(entries[best])


def _between(table: pa.Table, first: int, stop: int) -> pa.Table:
    panes = table["pane"].to_numpy()
    return table.filter(pa.array((panes >= first) & (panes < stop)))


def _sections(
    settings: Settings, look: SampleReport | None, state_sizes: StateSizes | None
) -> dict[str, tuple[tuple[str, str], ...]]:
    sections = {
        "columns": tuple(_columns(settings, look)),
        **({"lookup": tuple(_lookup(settings.query.lookup, look))} if settings.query.lookup else {}),
        "tuples": tuple(_tuples(settings, look)),
        "windows": tuple(_windows(settings.query)),
        "state": tuple(_state(settings, state_sizes)),
        "results": tuple(_results(settings, state_sizes)),
        "verify compares": tuple(_compared(settings.query)),
    }
    for query_settings in queries(settings)[1:]:
        view_sizes = (
            None if state_sizes is None else state_sizes.views.get(str(query_settings.query.view_name))
        )
        groups = (
            _windows(query_settings.query),
            _state(query_settings, view_sizes),
            _results(query_settings, view_sizes),
            _compared(query_settings.query),
        )
        kind = "view" if query_settings.query.summary is None else "summary"
        sections[f"{kind} {query_settings.query.view_name}"] = tuple(
            line for lines in groups for line in lines
        )
    return sections


def _columns(settings: Settings, look: SampleReport | None) -> Iterator[tuple[str, str]]:
    query = settings.query
    derived = query.resolved.derived
    roles: dict[str, list[str]] = {}
    for name in query.key_columns:
        roles.setdefault(name, []).append("key")
    roles.setdefault(query.time, []).append("event time")
    for query_settings in queries(settings):
        of_view = f"{query_settings.query.view_name}: " if query_settings.query.view_name else ""
        if query_settings.query.own_key is not None:
            roles.setdefault(query_settings.query.own_key, []).append(f"{of_view}key")
        for label, spec in query_settings.query.aggregates.items():
            if spec.column is not None:
                roles.setdefault(spec.column, []).append(f"{of_view}{label} = {spec}")
    for name, expression in derived.items():
        for column in expression.columns:
            roles.setdefault(column, []).append(f"derives {name}")
    for column in query.resolved.where.columns if query.resolved.where is not None else ():
        roles.setdefault(column, []).append("where")
    for name in query.lookup_key:
        roles.setdefault(name, []).append("looked up")
    cost = settings.cost
    for column in () if cost is None else cost.read:
        roles.setdefault(column, []).append("cost")
    if query.key == "@key":
        yield "@key", "the record key, any bytes: key"
    if query.time == "@timestamp":
        yield "@timestamp", "the record timestamp: event time"
    for name, type_ in query.read_as.items():
        type_text = query.time_unit if roles.get(name) == ["event time"] else type_
        type_text = "any value" if type_text == ANY_VALUE else type_text
        kinds_text = "" if look is None else f"; found: {_kinds_text(look.facts.shape.column(name))}"
        yield printable(name), f"read as {type_text}: {', '.join(roles.get(name, ['read']))}{kinds_text}"
    for name, type_ in () if cost is None else (*cost.of_record.items(), *cost.of_element.items()):
        kinds_text = "" if look is None else f"; found: {_kinds_text(look.facts.shape.column(name))}"
        yield printable(name), f"read as {type_}: cost{kinds_text}"
    for name, type_ in query.looked_up.items():
        yield printable(name), f"{type_} of the lookup file: {', '.join(roles.get(name, ['not used']))}"
    for name, expression in derived.items():
        yield printable(name), f"{expression.type} = {query.columns[name]}: {', '.join(roles.get(name, []))}"


def _lookup(lookup: Lookup, look: SampleReport | None) -> Iterator[tuple[str, str]]:
    yield "file", printable(str(lookup.file))
    yield (
        "joined by",
        ", ".join(
            column if column == other else f"{column} = {other} of the file"
            for column, other in zip(lookup.key, lookup.key_of_file, strict=True)
        ),
    )
    lookup_facts = None if look is None else look.facts.lookup
    if look is not None and lookup_facts is not None:
        yield "rows", f"{lookup_facts.rows:,}, {_size(lookup_facts.bytes)} in memory"
        lookups = look.facts.readable + look.facts.unmatched_and_rejected(look.settings.query)
        yield "without a row", f"{counted(lookup_facts.unmatched, lookups)} records"
    fate = (
        "the record is rejected (unmatched)" if lookup.missing == "reject" else "columns of the file are null"
    )
    yield "then", fate


def _kinds_text(column: Column) -> str:
    if not column.present:
        return "in no record"
    kinds = sorted(column.kinds.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{kind} in {count:,}" for kind, count in kinds)


def _tuples(settings: Settings, look: SampleReport | None) -> Iterator[tuple[str, str]]:
    if settings.query.explode is not None:
        yield "explode", settings.query.explode
    if settings.query.where is not None:
        yield "where", settings.query.where
    if look is None or not look.facts.records:
        yield "sample", "no record has been seen"
        return
    facts = look.facts
    yield "sample", f"{facts.records:,} of the records of {facts.topic}"
    unmatched = facts.unmatched_and_rejected(settings.query)
    unmatched_text = f", {unmatched:,} unmatched" if settings.query.lookup else ""
    yield (
        "rejected",
        f"{facts.rejected - unmatched:,} unreadable{unmatched_text}, {look.late:,} late or jumps",
    )
    if settings.query.explode is not None:
        yield "tuples", f"{facts.tuples:,} of {facts.readable - facts.filtered:,} records"
    if settings.query.where is not None or settings.query.explode is not None:
        yield "filtered", counted(facts.filtered, facts.readable)
    if facts.hottest is not None and facts.tuples:
        yield (
            "keys",
            f"{facts.keys:,}, the hottest has {share(facts.hottest[1], facts.tuples)} of the tuples",
        )
    if facts.span is not None:
        yield "event times", shown_span(*facts.span)


def _windows(query: Query) -> Iterator[tuple[str, str]]:
    panes = query.panes_per_window
    length = format_duration(query.window)
    if panes == 1:
        yield "window", f"{length}, tumbling: a tuple is in one window"
    else:
        yield (
            "window",
            f"{length} sliding by {format_duration(query.slide_ms)}: a tuple is in {panes:,} windows",
        )
    yield "panes", f"{panes:,} a window, each of {format_duration(query.slide_ms)}"
    behind = _beyond_its_end(query.out_of_orderness + query.allowed_lateness)
    empty = "is not emitted"
    if query.emission.mode == "changes":
        empty = "has but retractions of the one before"
    if query.emission.updates:
        yield (
            "emitted",
            (
                f"when every input partition has passed {_beyond_its_end(query.result_delay)}, and then the"
                f" rows that a later tuple changes, until every partition has passed {behind}; a window"
                f" without a tuple {empty}"
            ),
        )
    else:
        yield (
            "emitted",
            f"once, when every input partition has passed {behind}; a window without a tuple {empty}",
        )
    if query.emission.mode == "changes":
        yield "emit", "the rows that differ from the window one slide before, and retractions"
    elif query.emission.mode == "top":
        yield "emit", f"of each window {query.emission}"
    if query.emit_from is not None:
        yield (
            "emit_from",
            f"only windows that start at {shown_span(query.emit_from, query.emit_from)} or later",
        )


def _beyond_its_end(wait: int) -> str:
    return f"{format_duration(wait)} beyond its end" if wait else "its end"


def _state(settings: Settings, sizes: StateSizes | None) -> Iterator[tuple[str, str]]:
    plan = AggregatePlan.of(settings.query)
    each = ", ".join(f"{partial.name}: {partial.type}" for partial in plan.partials)
    yield "of a key in a pane", each
    if plan.panes_per_window == 1:
        yield "kept", "the open windows, a partial of each key"
    elif plan.invertible:
        yield (
            "kept",
            "the panes of a window and totals of each key: what leaves the window is taken off the totals",
        )
    else:
        merged = (aggregate.name for _, aggregate, call in plan.outputs if not _invertible(aggregate, call))
        which = ", ".join(dict.fromkeys(merged))
        yield (
            "kept",
            f"merged stretches of panes, as {which} cannot be taken back: at most twice the panes of a window"
            + (", and a pane of keys alone for emit = 'changes'" if settings.query.emit == "changes" else ""),
        )
    if sizes is None:
        return
    scope = "of all records" if sizes.whole else "of the sample"
    yield "keys of a pane", f"{sizes.pane_keys[0]:,} (median), {sizes.pane_keys[1]:,} (most), {scope}"
    yield "fullest window", f"{sizes.window_keys:,} keys of {sizes.window_tuples:,} tuples, {scope}"
    buckets = settings.bucket_count
    yield (
        "size",
        (
            f"about {_size(sizes.state_bytes)} for that window in {buckets} buckets,"
            f" {sizes.entry_bytes:.0f} bytes an entry"
        ),
    )


def _invertible(aggregate: Aggregate, call: Call) -> bool:
    return all(partial.invertible for partial in aggregate.partials(call))


def _results(settings: Settings, sizes: StateSizes | None) -> Iterator[tuple[str, str]]:
    yield "columns", ", ".join(f"{column.name}: {column.type}" for column in readable_schema(settings.query))
    if sizes is not None:
        yield "rows", _rows(settings.query, sizes.window_keys)
        if settings.query.panes_per_window > 1 and settings.query.emission.mode == "all":
            yield "rows for each tuple", _rows_of_a_tuple(settings.query, sizes)
    yield "written to", sink_of(settings).place(settings)


def _rows(query: Query, keys: int) -> str:
    if query.emission.mode == "top":
        return f"{min(keys, query.emission.rows):,} for the fullest window: the first of its {keys:,} keys"
    if query.emission.mode == "changes":
        return f"at most {keys:,} for the fullest window, and retractions: one for each key that changed"
    return f"{keys:,} for the fullest window: one a key"


def _rows_of_a_tuple(query: Query, sizes: StateSizes) -> str:
    """How many rows the sample would make. A key with a tuple in a pane has a row in each window of the
    pane.
    """
    most = sizes.pairs * query.panes_per_window
    text = (
        f"at most {most / sizes.tuples:,.1f}: {sizes.tuples:,} tuples in"
        f" {sizes.pairs:,} pairs of pane and key, and a "
    )
    text += f"pane is in {query.panes_per_window:,} windows"
    if most > _MANY_ROWS * sizes.tuples:
        text += ". A longer slide, or emit = 'changes', writes fewer"
    return text


def _compared(query: Query) -> Iterator[tuple[str, str]]:
    for label, aggregate, call in AggregatePlan.of(query).outputs:
        yield label, f"{query.aggregates[label]}: {aggregate.bound_of(call)}"
    if query.emission.mode == "changes":
        yield "what comes out", "which rows changed or are gone, window by window, and their revisions"
    elif query.emission.mode == "top":
        yield "what comes out", f"which rows are the first {query.emission.rows:,}, and their ranks"
    elif query.emission.updates:
        yield "what comes out", "of each window and key the row of the highest revision"


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
