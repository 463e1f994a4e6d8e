"""Whether the records have the format that `input.format` says, how many are unreadable,
and which keys they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evenflow.reporting.words import partitions, share, shown_bytes
from evenflow.settings import Query, Settings
from workbench.assist.findings import Changes, Finding
from workbench.assist.sample_check.facts import SampleFacts, UnreadableGroup
from workbench.assist.sample_check.shape import shape_of, split_line
from workbench.assist.sample_check.words import counted

_DELIMITERS = ",;\t|"
_SCHEMA_REGISTRY = 0
"""First byte of a record that was written with a schema registry (Avro, Protobuf). The schema's id follows
in 4 bytes.
"""
_SHOWN = 3


def judge_format(settings: Settings, facts: SampleFacts, values: list[bytes | None]) -> Iterator[Finding]:
    """Findings if no record has the format that the settings say,
    or if csv records have another number of fields.
    """
    shape, form = facts.shape, settings.input.format
    if not settings.needed_columns:
        return  # the query reads nothing of the values
    if form == "json" and shape.records and not shape.rows:
        message = f"none of {shape.records:,} records is a JSON object, e.g. {shown_bytes(values[-1])}"
        yield Finding("format", "problem", message, *_other_format(values))
    if form == "csv" and shape.fields:
        yield from _judge_fields(settings, facts, values)


def _judge_fields(settings: Settings, facts: SampleFacts, values: list[bytes | None]) -> Iterator[Finding]:
    shape, field_count = facts.shape, len(settings.input.columns)
    right = shape.fields.get(field_count, 0)
    if right == shape.rows:
        return
    commonest = max(
        (fields for fields in shape.fields if fields != field_count), key=lambda number: shape.fields[number]
    )
    cut = ((value, split_line(value, settings.input.delimiter)) for value in reversed(values))
    example = next((value for value, fields in cut if fields is not None and len(fields) == commonest), None)
    message = (
        f"{counted(shape.rows - right, shape.rows)} records have another number"
        f" of fields than the {field_count} of "
    )
    message += f"input.columns, mostly {commonest}, e.g. {shown_bytes(example)}"
    do = "name every field in input.columns, and set input.delimiter"
    yield Finding(
        "format", "warning" if right else "problem", message, do, _other_delimiter(settings, values)
    )


def judge_readable(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """A finding about how many records would be rejected as unreadable, and why.
    It is a problem if most would be.
    """
    if not facts.unreadable:
        return
    message = f"{counted(facts.rejected, facts.records)} records would be rejected "
    message += f"({share(facts.rejected, facts.records)}): " + "; ".join(
        map(_shown, facts.unreadable[:_SHOWN])
    )
    if len(facts.unreadable) > _SHOWN:
        message += f"; and {len(facts.unreadable) - _SHOWN} more reasons"
    do = f"rejected records go to {settings.topic('rejected')} with their reason, and count in no window"
    most = 2 * facts.rejected > facts.records
    yield Finding("rejected", "problem" if most else "warning", message, do)


def judge_filter(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Findings about how many tuples `query.where` and `query.explode` leave. If none is left, that is
    likely a mistake.
    """
    query = settings.query
    if query.explode is not None and facts.readable:
        yield from _judge_exploded(query, facts)
    if query.where is None or not facts.readable:
        return
    matches = facts.readable - facts.filtered
    noun = "tuples" if query.explode is None else "records"
    message = (
        f"query.where keeps {counted(matches, facts.readable) if matches else f'none of {facts.readable:,}'}"
        f" {noun}"
    )
    if matches:
        yield Finding("filter", "ok", message)
    else:
        do = f"is it meant so? {settings.query.where}; a comparison with null is true for nothing"
        yield Finding("filter", "warning", message, do)


def _judge_exploded(query: Query, facts: SampleFacts) -> Iterator[Finding]:
    message = f"explode = {query.explode!r} makes {facts.tuples:,} tuples of {facts.readable:,} records"
    if facts.filtered:
        message += f"; {counted(facts.filtered, facts.readable)} become none"
    if facts.tuples or query.where is not None:
        yield Finding("explode", "ok", message)
    else:
        yield Finding("explode", "warning", message, "name a column that has elements in query.explode")


def judge_keys(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """A finding about how many keys there are, and how the share of the hottest compares
    with a worker's fair share.
    """
    if facts.hottest is None:
        return
    key, tuples = facts.hottest
    workers = settings.partitioner.workers
    message = (
        f"{facts.keys:,} keys; the hottest, {shown_bytes(key)!r}, has"
        f" {share(tuples, facts.tuples)} of the tuples"
    )
    if tuples * workers > facts.tuples:
        message += f", a worker's fair share is {share(1, workers)}"
        yield Finding("keys", "ok", message, "`evenflow advise` says which partitioner and how many workers")
    else:
        yield Finding("keys", "ok", message)


def judge_partitions(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Findings about partitions that hold back the windows of all others."""
    if settings.partitioner.idle_timeout is not None:
        return
    mend: Changes = {"partitioner": {"idle_timeout": "30s"}}
    do = 'set partitioner.idle_timeout = "30s" (for a replay that will fill and end it: leave it)'
    waiting = [part for part in facts.partitions if not part.ended and not part.times.size]
    empty = [part.partition for part in waiting if not part.length]
    mute = [part.partition for part in waiting if part.records]
    for which, state in ((empty, "empty"), (mute, "without a readable record")):
        if which and facts.readable:
            verb, pronoun = ("are", "each") if len(which) > 1 else ("is", "it")
            message = (
                f"{partitions(which)} {verb} {state}: no window closes"
                f" until {pronoun} has a record, has ended "
            )
            message += "or idle_timeout is set"
            yield Finding("partitions", "warning", message, do, mend)


def _shown(group: UnreadableGroup) -> str:
    return f"{group.count:,} because {group.reason} (e.g. {shown_bytes(group.example)})"


def _other_format(values: list[bytes | None]) -> tuple[str, Changes]:
    filled = [value for value in values if value]
    if in_wire_format(filled):
        return (
            (
                "they look like Confluent's wire format: set input.format to avro or protobuf,"
                " and [input.registry] url"
            ),
            {},
        )
    delimiter, fields = likely_csv(filled)
    if fields > 1:
        columns = [f"c{number}" for number in range(fields)]
        changes = {"input": {"format": "csv", "delimiter": delimiter, "columns": columns}}
        return (
            f"they look like csv of {fields} fields: set input.format and name the fields in input.columns",
            changes,
        )
    return "set input.format to what they are: json, csv, text, avro or protobuf", {}


def in_wire_format(values: Sequence[bytes | None]) -> bool:
    """Whether these values look like records that were written with a schema registry."""
    filled = [value for value in values if value]
    return bool(filled) and all(value[0] == _SCHEMA_REGISTRY and len(value) > 5 for value in filled)


def _other_delimiter(settings: Settings, values: list[bytes | None]) -> Changes:
    delimiter, _ = likely_csv(values)
    other = settings.input.model_copy(update={"delimiter": delimiter})
    fitting = shape_of(other, values).fields.get(len(settings.input.columns), 0)
    return {"input": {"delimiter": delimiter}} if fitting and delimiter != settings.input.delimiter else {}


def likely_csv(values: Sequence[bytes | None]) -> tuple[str, int]:
    """The delimiter that cuts most records into the same number of fields, and that number. It is 1 if
    this is no csv.
    """
    best = (",", 1, 0)
    for delimiter in _DELIMITERS:
        split = (split_line(value, delimiter) for value in values[-1_000:])
        counts = Counter(len(fields) for fields in split if fields is not None)
        fields, records = counts.most_common(1)[0] if counts else (1, 0)
        if fields > 1 and (records, fields) > (best[2], best[1]):
            best = (delimiter, fields, records)
    return best[0], best[1]
