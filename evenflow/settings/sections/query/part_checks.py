"""Whether windows, rows, views and summaries of a query can be computed and kept."""

from __future__ import annotations

from evenflow.errors import ConfigError
from evenflow.limits import ROW_BYTES, frame_row, json_row, partial_row
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query.columns import KEY_TYPES, QueryColumns
from evenflow.settings.sections.query.summaries import KEY, OF_THE_QUERY_ITSELF, exact
from evenflow.settings.views import check_name
from evenflow.text.spelling import did_you_mean

_MOST_UPDATED = 10_000
"""Windows that `late = 'update'` keeps ready for updates."""


def check_updates(query: QueryColumns) -> None:
    if query.late == "reject":
        return
    if not query.allowed_lateness:
        raise ValueError(
            "late = 'update' updates windows for as long as allowed_lateness says, which is 0: set"
            " allowed_lateness, or leave late out"
        )
    if query.allowed_lateness > _MOST_UPDATED * query.slide_ms:
        raise ValueError(
            f"late = 'update' keeps up to {_MOST_UPDATED:,} windows ready for updates, but"
            f" allowed_lateness has {query.allowed_lateness // query.slide_ms:,} slides:"
            " make it smaller, or the slide longer"
        )
    emits = {"emit": query.emit, **{f"views.{name}.emit": view.emit for name, view in query.views.items()}}
    other = next((name for name, emit in emits.items() if emit != "all"), None)
    if other is not None:
        raise ValueError(
            f"late = 'update' does not go with {other} = '{emits[other]}': only"
            " emit = 'all' can give a row out again"
        )


def check_row_sizes(query: QueryColumns) -> None:
    key, result = query.max_key_bytes, query.max_result_bytes
    rows = {
        "a tuple in a routed frame": (frame_row(key=key, value=query.max_value_bytes), "max_value_bytes"),
        "a row of partials": (
            partial_row(key=key, state=query.max_state_bytes, result=result),
            "max_state_bytes or max_result_bytes",
        ),
        "a result in JSON": (json_row(key=key, result=result), "max_result_bytes"),
    }
    for row, (size, names) in rows.items():
        if size > ROW_BYTES:
            raise ValueError(
                f"{row} could have {size:,} bytes, more than the {ROW_BYTES:,} that a record has room"
                f" for: lower {names} or max_key_bytes"
            )


def check_aggregates(query: QueryColumns) -> None:
    # Imported here, because aggregates are declared with Arrow types. Without them settings load in a
    # third of the time.
    from evenflow.aggregates import AggregatePlan

    try:
        AggregatePlan.of(query)
    except ConfigError as error:
        raise ValueError(error.message if error.hint is None else f"{error.message}; {error.hint}") from None


def check_window(query: QueryColumns) -> None:
    if query.window <= 0 or query.slide_ms <= 0:
        raise ValueError("window and slide must be longer than 0")
    if query.window % query.slide_ms:
        raise ValueError(
            f"window ({format_duration(query.window)}) must be a multiple of the slide"
            f" ({format_duration(query.slide_ms)})"
        )
    if query.window // query.slide_ms > 100_000:
        raise ValueError("a window of more than 100,000 slides is refused: choose a longer slide")


def check_views(query: QueryColumns) -> None:
    for name in query.views:
        check_name(name)
        view = query.with_views(name).view(name)
        try:
            if view.slide_ms % query.slide_ms:
                raise ValueError(
                    f"slide ({format_duration(view.slide_ms)}) must be a multiple of the query's slide "
                    f"({format_duration(query.slide_ms)}), in which tuples are routed"
                )
            # `view` makes a copy, which pydantic does not validate.
            check_window(view)
            check_aggregates(view)
            check_own_key(view)
        except ValueError as error:
            raise ValueError(f"views.{name}: {error}") from None


def check_summaries(query: QueryColumns) -> None:
    if query.summaries and OF_THE_QUERY_ITSELF in query.views:
        raise ValueError(
            f"a summary means the query itself by {OF_THE_QUERY_ITSELF!r}:"
            " give the view of that name another one"
        )
    for name, summary in query.summaries.items():
        check_name(name, "summary")
        if name in query.views:
            raise ValueError(f"{name!r} cannot name a summary: a view has that name")
        if query.late == "update":
            raise ValueError(
                f"summaries.{name}: late = 'update' does not go with summaries, whose parts must be"
                " closed: leave late out"
            )
        for part, column in summary.of.items():
            if part != OF_THE_QUERY_ITSELF and part not in query.views:
                meant = did_you_mean(part, (OF_THE_QUERY_ITSELF, *query.views))
                raise ValueError(
                    f"summaries.{name}: of names {part!r}, which is neither 'query' nor a view{meant}"
                )
            if column != KEY and column not in query.part(part).aggregates:
                columns = (KEY, *query.part(part).aggregates)
                raise ValueError(
                    f"summaries.{name}: {part} has no result column"
                    f" {column!r}{did_you_mean(column, columns)}; its columns: {', '.join(columns)}"
                )
        try:
            check_summary(query.view(name))
        except ConfigError as error:
            raise ValueError(f"summaries.{name}: {error}") from None
        except ValueError as error:
            raise ValueError(f"summaries.{name}: {error}") from None


def check_summary(query: QueryColumns) -> None:
    """Raise ValueError if this summary cannot be computed from the rows of its parts."""
    from evenflow.aggregates.plan import AggregatePlan, outputs_of

    summary = query.summary
    assert summary is not None
    query.emission.check_names(query.aggregates)
    slides = {part.slide_ms for part, _ in query.parts}
    if len(slides) > 1:
        raise ValueError(
            f"its parts slide by {', '.join(map(format_duration, sorted(slides)))};"
            " parts of a summary have one slide"
        )
    kinds = set()
    for part, column in query.parts:
        outputs = {output.label: output for output in outputs_of(part)}
        columns = [spec.column for spec in query.aggregates.values()]
        read = {label for label in outputs if label in columns} | ({column} - {KEY})
        rounded = [label for label in sorted(read) if not exact(label, part.aggregates, outputs)]
        if rounded:
            raise ValueError(
                f"{rounded[0]} = '{part.aggregates[rounded[0]]}' of {part.name} is not exact, so a"
                " summary cannot read it: take count, min, max, first, last, a sum that is no double, or"
                " an aggregate with the option exact"
            )
        if column == KEY and len(part.group_types) != 1:
            raise ValueError(
                f"the rows of {part.name} cannot be grouped by their key, which is"
                f" {part.key_name}: take a key of one column"
            )
        kinds.add(query.kind_in(part, column))
    if len(kinds) > 1:
        raise ValueError(f"its parts are grouped by values of several types ({', '.join(sorted(kinds))})")
    kind = kinds.pop()
    if kind not in KEY_TYPES:
        raise ValueError(f"its rows are grouped by {kind}: take text, whole numbers, dates, or true or false")
    for label, spec in query.aggregates.items():
        if spec.column is None and spec.expression is None:
            raise ValueError(
                f"{label} = '{spec}' names no column: write count(column) to"
                " count the rows that have a value there"
            )
        owners = [part.name for part, _ in query.parts if spec.column in part.aggregates]
        if spec.column is not None and len(owners) != 1:
            raise ValueError(
                f"{label} = '{spec}' reads {spec.column!r}, which is a result column of "
                f"{' and of '.join(owners) or 'none of its parts'}; it must be one of exactly one part"
            )
    plan = AggregatePlan.of(query)
    if any(partial.timed for partial in plan.partials):
        raise ValueError(
            "rows of one window have no order in time: first, last and collect cannot be taken of them"
        )
    if plan.having is not None:
        outputs = {output.label: output for output in plan.outputs}
        rounded = [
            output.label for output in plan.having.reads if not exact(output.label, query.aggregates, outputs)
        ]
        if rounded:
            raise ValueError(f"having reads {rounded[0]!r}, which is not exact")
    check_rows_of_key(query, kind, "the rows are grouped by")


def check_own_key(query: QueryColumns) -> None:
    """Raise ValueError if the column that this view groups by can be no key, or is the query's key."""
    name = query.own_key
    if name is None:
        return
    if not name or name.startswith("@"):
        raise ValueError(f"key = {name!r} is no column that frames carry: write a column's name")
    if (name,) == query.key_columns:
        raise ValueError(f"key = {name!r} is the key of the query already: leave it out")
    kind = query.value_columns[name]
    if kind not in KEY_TYPES:
        raise ValueError(
            f"key = {name!r} cannot be {kind}: a view groups by text, whole numbers, dates, or true or false"
        )
    check_rows_of_key(query, kind, f"key = {name!r} is")


def check_rows_of_key(query: QueryColumns, kind: str, what_is: str) -> None:
    """Raise ValueError if a row is too large whose key is a value of this type,
    which is bounded as a value only.
    """
    from evenflow.aggregates import AggregatePlan

    key = query.max_value_bytes if kind == "string" else query.max_key_bytes
    result = query.max_result_bytes if AggregatePlan.of(query).grows else 0
    rows = {
        "a row of partials": partial_row(key=key, state=query.max_state_bytes, result=result),
        "a result in JSON": json_row(key=key, result=result),
    }
    for row, size in rows.items():
        if size > ROW_BYTES:
            raise ValueError(
                f"{what_is} a text of up to query.max_value_bytes = {query.max_value_bytes:,} bytes, so"
                f" {row} could have {size:,} bytes, more than the {ROW_BYTES:,} that a record has room"
                " for: lower query.max_value_bytes or query.max_result_bytes"
            )
