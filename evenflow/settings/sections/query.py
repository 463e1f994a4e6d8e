"""A query: its key, event time, windows, aggregates, filter and views."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from evenflow.errors import ConfigError
from evenflow.expressions.columns import Columns, one_type, resolved
from evenflow.grammar import paths
from evenflow.grammar.aggregate_spec import Aggregates, AggregateSpec
from evenflow.grammar.column_types import ANY_VALUE, MOST_SCALE, PLAIN_TYPES, ColumnType, decimal_scale
from evenflow.grammar.emission import Emission
from evenflow.grammar.explosion import Explosion
from evenflow.limits import (
    JSON_GROWTH,
    KEY_BYTES,
    RESULT_BYTES,
    ROW_BYTES,
    STATE_BYTES,
    VALUE_BYTES,
    frame_row,
    json_row,
    partial_row,
)
from evenflow.settings.durations import Duration, format_duration
from evenflow.settings.sections.lookup import Lookup
from evenflow.settings.sections.summaries import KEY, OF_THE_QUERY_ITSELF, Summary, exact
from evenflow.settings.views import View, check_name
from evenflow.text.spelling import did_you_mean

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}")
_TIME_TYPES: dict[str, ColumnType] = {"s": "float64", "ms": "int64", "us": "int64", "iso": "string"}
"""The type of a time column, by its unit."""
_TEXTS = {"string", ANY_VALUE}
"""The types whose values are texts in frames."""
_DISTINCT = "count_distinct"
"""The aggregate that takes columns of any value."""
_COUNTING = {_DISTINCT, "count"}
"""The aggregates to which it makes no difference what a value is, beside the former."""
_KEY_TYPES = ("string", "int64", "bool", "date")
_MOST_KEY_COLUMNS = 8
_MOST_UPDATED = 10_000
_MOST_GROWTH, _MOST_ADDED = 20, 10_000
"""How much longer than a text that it reads a derived text may be if records are taken apart."""


class Query(BaseModel):
    """What is computed.

    A query with any changed field is another query and refuses old state. Its name, its `max_jump` and an
    `out_of_orderness` that grows are no such fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        default="evenflow",
        description=(
            "Prefix of every topic that evenflow makes for this query. Lower case letters, digits, . _ -"
        ),
    )
    key: str | tuple[str, ...] = Field(
        default="key",
        description=(
            "Column that holds the key, or '@key' for the raw record key (any bytes). Several columns can"
            ' make one key, as in ["country", "product"]. Results then have a column for each. With'
            " format 'text' the only column is 'value'."
        ),
    )
    time: str = Field(
        default="time",
        description="Column that holds the event time, or '@timestamp' for the record timestamp.",
    )
    time_unit: Literal["s", "ms", "us", "iso"] = Field(
        default="ms",
        description=(
            "Unit of the time column: seconds (a fraction is rounded to the nearest ms), whole milliseconds"
            " or whole microseconds (rounded down to ms) since 1970 UTC, or ISO 8601 text (no zone means"
            " UTC). Ignored for '@timestamp'."
        ),
    )
    window: Duration = Field(
        default=60_000, description="Window length (event time). A multiple of the slide."
    )
    slide: Duration | None = Field(
        default=None,
        validate_default=True,
        description="Slide (event time). None: equal to the window (tumbling).",
    )
    out_of_orderness: Duration = Field(
        default=0,
        description=(
            "How far behind the largest event time of its input partition a tuple may come and still be in"
            " time. A query that has begun may go on with a larger value"
            " (docs/operations/changing-settings.md)."
        ),
    )
    allowed_lateness: Duration = Field(
        default=0,
        description=(
            "How long (event time) a window stays open after the watermark has passed its end. Delays every"
            " result, unless `late` is 'update'."
        ),
    )
    late: Literal["reject", "update"] = Field(
        default="reject",
        description=(
            "When a window comes out that stays open for allowed_lateness. 'reject': once, when it closes."
            " 'update': when the watermark passes its end, and its rows that a later tuple changes come out"
            " again with a higher `revision` until it closes (docs/results.md)."
            " What comes later is rejected either way."
        ),
    )
    max_jump: Duration | None = Field(
        default=None,
        description=(
            "A tuple that is further than this ahead of its input partition's progress is rejected (reason"
            " 'jump'), unless `jump_confirmations` consecutive tuples agree. None: off. A query that has"
            " begun may go on with another value (docs/operations/changing-settings.md)."
        ),
    )
    jump_confirmations: int = Field(
        default=3,
        ge=2,
        le=16,
        description="How many consecutive tuples within max_jump of each other confirm a jump.",
    )
    max_key_bytes: int = Field(
        default=KEY_BYTES,
        ge=16,
        le=1_000_000,
        description=(
            "A record whose key has more bytes is rejected (reason 'too-large'). The key counts as it is"
            " grouped by: text in UTF-8, several columns as their JSON array. Records that"
            " `where` would drop are no exception."
        ),
    )
    max_value_bytes: int = Field(
        default=VALUE_BYTES,
        ge=16,
        le=8_000_000,
        description=(
            "A record is rejected (reason 'too-large') if the texts that aggregates read of one tuple have"
            " more bytes, together and in UTF-8. Records that `where` would drop are no exception."
        ),
    )
    max_state_bytes: int = Field(
        default=STATE_BYTES,
        ge=100,
        description=(
            "What the sets and counters of one key in one window may take (count_distinct and quantile with"
            " exact, top_k, bins of quantile). They share it evenly. An entry counts 24 bytes and its text. A"
            " value whose set is larger is null, and is counted as unfit."
        ),
    )
    max_result_bytes: int = Field(
        default=RESULT_BYTES,
        ge=100,
        description=(
            "What the texts and lists of one result row may take. Result columns of texts and lists share it"
            " evenly. An entry of a list counts 24 bytes and its text. A larger value is null,"
            " and is counted as unfit."
        ),
    )
    max_ahead_of_clock: Duration | None = Field(
        default=3_600_000,
        description=(
            "A tuple that is further than this ahead of the clock is rejected (reason 'ahead'), whatever the"
            " tuples around it say. The clock is the broker's where the topic has"
            " `message.timestamp.type=LogAppendTime`, otherwise that of the partitioner. Times of the past"
            " never are ahead. 'off' is for generated or planned data with times of the future."
        ),
    )
    emit_from: int | None = Field(
        default=None,
        description=(
            "Event time (ms). Only windows that start at or after it are emitted. The rebuild after data loss"
            " uses it (docs/operations/data-loss.md). None: all windows."
        ),
    )
    emit: str = Field(
        default="all",
        description=(
            "Which rows of a window are emitted. 'all': every row. 'changes': the rows that differ from the"
            " window one slide before, and retractions. 'top(K, COLUMN)' or 'top(K, COLUMN, ascending)': the"
            " K rows with the largest (smallest) values of a result column,"
            " K at most 10,000 (docs/results.md)."
        ),
    )
    aggregates: Aggregates = Field(
        default_factory=lambda: {"count": AggregateSpec(function="count")},
        description=(
            "Result column = 'count', 'sum(c)', 'quantile(c, 0.99)', 'top_k(c, 10)', ... docs/aggregates.md"
            " lists all aggregates. 'module:Class(c)' is one of your own (docs/your-own-aggregates.md)."
        ),
    )
    types: dict[str, ColumnType] = Field(
        default_factory=dict,
        description=(
            "Type of a column: 'int64', 'float64', 'string', 'bool', 'date' or 'decimal(S)' with S digits"
            " behind the point. Default: float64 for aggregated columns, string for the key, any value for a"
            " column that count_distinct alone reads (docs/aggregates.md)."
        ),
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description=(
            "Derived columns: name = SQL expression over columns of the record and other derived columns, as"
            ' in revenue = "price * quantity" (docs/expressions.md).'
        ),
    )
    where: str | None = Field(
        default=None,
        description=(
            "SQL condition, as in \"country = 'DE' and amount > 10\". Only tuples for which it is true are "
            "aggregated (docs/expressions.md). None: all tuples."
        ),
    )
    explode: str | None = Field(
        default=None,
        description=(
            "Column of which each element becomes a tuple: 'items' for a list in JSON (a field of its objects"
            " is `items.price`), \"split(tags, ';')\" or 'words(value)' for a text. The column's name then"
            " stands for one element (docs/expressions.md). None: a record is one tuple."
        ),
    )
    lookup: Lookup | None = Field(
        default=None,
        description=(
            "A static table: each tuple gets columns of the row with its"
            " key (docs/lookup.md). None: no table."
        ),
    )
    views: dict[str, View] = Field(
        default_factory=dict,
        description=(
            "Further aggregates and windows of the same tuples, which are read and routed once"
            " (docs/views.md). [query.views.NAME] is emitted as a query '<query name>.NAME' would be."
        ),
    )
    summaries: dict[str, Summary] = Field(
        default_factory=dict,
        description=(
            "Second aggregations, of the rows of closed windows of the query and its views"
            " (docs/summaries.md). [query.summaries.NAME] is emitted as a query '<query name>.NAME' would be."
        ),
    )
    _origin: Query | None = PrivateAttr(default=None)
    _summary: Summary | None = PrivateAttr(default=None)
    _own_key: str | None = PrivateAttr(default=None)
    _begun_any_columns: tuple[str, ...] | None = PrivateAttr(default=None)
    _first_limits: dict[str, int | None] = PrivateAttr(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _name_is_a_topic_prefix(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(
                f"query name {value!r} must be lower case letters, digits, '.', '_' or '-' (at most 81)"
            )
        return value

    @field_validator("key", mode="before")
    @classmethod
    def _key_is_one_or_several_columns(cls, value: Any) -> str | tuple[str, ...]:
        if isinstance(value, str):
            return value
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"{value!r} is no key; write a column's name, '@key', or a list of names")
        if not 1 <= len(value) <= _MOST_KEY_COLUMNS:
            raise ValueError(f"a key has 1 to {_MOST_KEY_COLUMNS} columns, not {len(value)}")
        wrong = next((name for name in value if not name or name.startswith("@")), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} cannot be a part of a key: only columns of the record's value can")
        if len(set(value)) < len(value):
            raise ValueError(f"key = {list(value)} names a column twice")
        return tuple(value) if len(value) > 1 else value[0]

    @field_validator("types", mode="before")
    @classmethod
    def _types_are_column_types(cls, value: Any) -> Any:
        for column, kind in value.items() if isinstance(value, dict) else ():
            if kind not in PLAIN_TYPES and not (isinstance(kind, str) and decimal_scale(kind) is not None):
                raise ValueError(
                    f"column {column!r} cannot be {kind!r}: types are {', '.join(PLAIN_TYPES)} and"
                    " 'decimal(S)' with S of 1 to"
                    f" {MOST_SCALE}{did_you_mean(kind, (*PLAIN_TYPES, 'decimal(2)'))}"
                )
        return value

    @field_validator("explode")
    @classmethod
    def _explode_is_a_way(cls, value: str | None) -> str | None:
        return None if value is None else str(Explosion.parse(value))

    @field_validator("max_ahead_of_clock", mode="before")
    @classmethod
    def _off_is_no_bound(cls, value: Any) -> Any:
        return None if value == "off" else value

    @field_validator("emit")
    @classmethod
    def _emit_is_a_mode(cls, value: str) -> str:
        return str(Emission.parse(value))

    @model_validator(mode="after")
    def _rows_have_room_for_what_the_mode_adds(self) -> Query:
        self.emission.check_names(self.aggregates)
        return self

    @model_validator(mode="after")
    def _updates_have_time_and_all_rows(self) -> Query:
        if self.late == "reject":
            return self
        if not self.allowed_lateness:
            raise ValueError(
                "late = 'update' updates windows for as long as allowed_lateness says, which is 0: set"
                " allowed_lateness, or leave late out"
            )
        if self.allowed_lateness > _MOST_UPDATED * self.slide_ms:
            raise ValueError(
                f"late = 'update' keeps up to {_MOST_UPDATED:,} windows ready for updates, but"
                f" allowed_lateness has {self.allowed_lateness // self.slide_ms:,} slides:"
                " make it smaller, or the slide longer"
            )
        emits = {"emit": self.emit, **{f"views.{name}.emit": view.emit for name, view in self.views.items()}}
        other = next((name for name, emit in emits.items() if emit != "all"), None)
        if other is not None:
            raise ValueError(
                f"late = 'update' does not go with {other} = '{emits[other]}': only"
                " emit = 'all' can give a row out again"
            )
        return self

    @model_validator(mode="after")
    def _rows_fit_into_records(self) -> Query:
        key, result = self.max_key_bytes, self.max_result_bytes
        rows = {
            "a tuple in a routed frame": (frame_row(key=key, value=self.max_value_bytes), "max_value_bytes"),
            "a row of partials": (
                partial_row(key=key, state=self.max_state_bytes, result=result),
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
        return self

    @model_validator(mode="after")
    def _columns_are_columns(self) -> Query:
        for field, name, special in (("key", self.key, "@key"), ("time", self.time, "@timestamp")):
            if isinstance(name, str) and (not name or (name.startswith("@") and name != special)):
                raise ValueError(f"{field} = {name!r} is no column; write a column's name or '{special}'")
        wrong = [column for column in self._aggregated if column.startswith("@")]
        if wrong:
            raise ValueError(f"{wrong[0]!r} cannot be aggregated: only columns of the record's value can")
        paths.check(
            name
            for name in (*self.key_columns, self.time, *self._carried, *self.lookup_key)
            if not name.startswith("@")
        )
        self._check_lookup()
        try:
            columns = self.resolved
        except ConfigError as error:
            raise ValueError(str(error)) from None  # pydantic reports only a ValueError as a wrong setting
        self._check_types(columns)
        self._check_derived(columns)
        self._check_exploded(columns)
        return self

    def _check_lookup(self) -> None:
        looked_up = self.looked_up
        explosion = self.explosion
        if explosion is not None and looked_up:
            if len({explosion.within(name) is None for name in self.lookup_key}) > 1:
                raise ValueError(
                    f"lookup.key = {list(self.lookup_key)} has columns of the"
                    " record and of its elements: take one kind"
                )
            wrong = next((name for name in looked_up if explosion.within(name) is not None), None)
            if wrong is not None:
                raise ValueError(
                    f"lookup.columns has {wrong!r}, which explode = {self.explode!r} takes apart"
                )
        for name in looked_up:
            for setting, names in (("columns", self.columns), ("types", self.types), ("time", (self.time,))):
                if name in names:
                    raise ValueError(
                        f"{setting} has {name!r}, but that is a column of the lookup file: a column has one"
                        " source, and lookup.columns says its type. Give the other column another name"
                    )
        derived = next((name for name in self.lookup_key if name in self.columns), None)
        if derived is not None:
            raise ValueError(
                f"lookup.key names {derived!r}, a derived column; only a"
                " column of the record can be looked up"
            )

    def _check_types(self, columns: Columns) -> None:
        typed = {
            *self.key_columns,
            *self._carried,
            *self.lookup_key,
            *(set(columns.read) - {self.time} if self._expressions else ()),
        } - set(self.looked_up)
        unread = sorted(set(self.types) - (typed - set(self.columns)))
        if unread:
            known = sorted(typed - set(self.columns))
            raise ValueError(
                f"types names {', '.join(unread)}, but of typed columns the query reads {', '.join(known)}"
                f"{did_you_mean(unread[0], known)}"
            )
        for name in self.key_columns:
            if columns.type_of(name) not in _KEY_TYPES:
                raise ValueError(
                    f"key column {name!r} cannot be {columns.type_of(name)}: keys are text, whole numbers,"
                    " dates, true or false, or raw bytes"
                )
        for name in self.lookup_key:
            if columns.type_of(name) not in _KEY_TYPES:
                raise ValueError(
                    f"lookup.key {name!r} cannot be {columns.type_of(name)}: what is looked up is text, whole"
                    " numbers, dates, true or false"
                )

    def _check_derived(self, columns: Columns) -> None:
        if self.time in self.columns:
            raise ValueError(
                f"time = {self.time!r} is a derived column; the event time is a column of the record"
            )
        used = {*self.key_columns, *self._carried}.union(
            *(derived.columns for derived in columns.derived.values())
        )
        used |= set(columns.where.columns) if columns.where is not None else set()
        idle = sorted(set(self.columns) - used)
        if idle:
            misspelt = {name: did_you_mean(idle[0], [name]) for name in sorted(used - set(self.columns))}
            meant = next((f"; or was it meant by {name!r}?" for name, near in misspelt.items() if near), "")
            raise ValueError(
                f"columns defines {', '.join(idle)}, which nothing uses: aggregate it, or leave it out{meant}"
            )
        for name, derived in columns.derived.items():
            if derived.kind.scale > MOST_SCALE:
                raise ValueError(
                    f"columns.{name} has {derived.kind.scale} digits behind the point, more than"
                    f" {MOST_SCALE}: CAST one of its numbers AS DOUBLE"
                )
        names = [*columns.read, *columns.looked_up, *columns.derived]
        for name in names if self._expressions or self.lookup else ():
            twin = next((other for other in names if other != name and other.lower() == name.lower()), None)
            if twin is not None:
                raise ValueError(
                    f"columns {name!r} and {twin!r} are one to SQL, which does not tell A from a"
                )

    def _check_exploded(self, columns: Columns) -> None:
        explosion = self.explosion
        if explosion is None:
            return
        if explosion.column in self.columns:
            raise ValueError(
                f"explode = {self.explode!r} names a derived column: name a column of the record"
            )
        if not self.time.startswith("@") and explosion.within(self.time) is not None:
            raise ValueError(
                f"time = {self.time!r} lies in what explode = {self.explode!r} takes apart; the tuples of a"
                " record have one event time: name another column of the record, or '@timestamp'"
            )
        elements = {name: type_ for name, type_ in columns.read.items() if explosion.within(name) is not None}
        if explosion.way != "list" and set(elements.values()) - _TEXTS:
            raise ValueError(
                f"explode = {self.explode!r} makes texts of column {explosion.column!r}, but the query needs "
                f"{elements[explosion.column]}: aggregate it as text, or write lists in JSON"
            )
        self._check_growth(columns)
        if explosion.column in elements and len(elements) > 1:
            inner = next(name for name in elements if name != explosion.column)
            raise ValueError(
                f"an element of {explosion.column!r} cannot be a value and"
                f" also the object that holds {inner!r}"
            )

    def _check_growth(self, columns: Columns) -> None:
        """Refuse derived texts that could be so much longer than a record that no column holds all
        of its elements.
        """
        if not columns.derived:
            return
        from evenflow.expressions.growth import growths

        # A key of several columns is escaped as JSON on top.
        for name, growth in growths(columns).items():
            times = JSON_GROWTH if len(self.key_columns) > 1 and name in self.key_columns else 1
            if growth.factor * times > _MOST_GROWTH or growth.added * times > _MOST_ADDED:
                most = f"{_MOST_GROWTH // times} times and {_MOST_ADDED // times} bytes"
                raise ValueError(
                    f"columns.{name} could make a text {growth.factor} times as long as what it reads, and "
                    f"{growth.added} bytes longer. With explode, {most} are the most"
                )

    @model_validator(mode="after")
    def _aggregates_can_be_computed(self) -> Query:
        self._with_views()._check_aggregates()
        return self

    def _check_aggregates(self) -> None:
        # Imported here, because aggregates are declared with Arrow types. Without them settings load in a
        # third of the time.
        from evenflow.aggregates import AggregatePlan

        try:
            AggregatePlan.of(self)
        except ConfigError as error:
            raise ValueError(
                error.message if error.hint is None else f"{error.message}; {error.hint}"
            ) from None

    @model_validator(mode="before")
    @classmethod
    def _slide_defaults_to_window(cls, data: Any) -> Any:
        # Before validation, so the default of `window` is not filled in yet and is repeated here.
        if isinstance(data, dict) and data.get("slide") is None:
            return {**data, "slide": data.get("window", 60_000)}
        return data

    @model_validator(mode="after")
    def _window_is_a_multiple_of_the_slide(self) -> Query:
        self._check_window()
        return self

    def _check_window(self) -> None:
        if self.window <= 0 or self.slide_ms <= 0:
            raise ValueError("window and slide must be longer than 0")
        if self.window % self.slide_ms:
            raise ValueError(
                f"window ({format_duration(self.window)}) must be a multiple of the slide"
                f" ({format_duration(self.slide_ms)})"
            )
        if self.window // self.slide_ms > 100_000:
            raise ValueError("a window of more than 100,000 slides is refused: choose a longer slide")

    @model_validator(mode="after")
    def _views_are_queries(self) -> Query:
        for name in self.views:
            check_name(name)
            view = self._with_views(name).view(name)
            try:
                if view.slide_ms % self.slide_ms:
                    raise ValueError(
                        f"slide ({format_duration(view.slide_ms)}) must be a multiple of the query's slide "
                        f"({format_duration(self.slide_ms)}), in which tuples are routed"
                    )
                # `view` makes a copy, which pydantic does not validate.
                view._check_window()
                view._check_aggregates()
                view._check_own_key()
            except ValueError as error:
                raise ValueError(f"views.{name}: {error}") from None
        return self

    @model_validator(mode="after")
    def _summaries_are_queries(self) -> Query:
        if self.summaries and OF_THE_QUERY_ITSELF in self.views:
            raise ValueError(
                f"a summary means the query itself by {OF_THE_QUERY_ITSELF!r}:"
                " give the view of that name another one"
            )
        for name, summary in self.summaries.items():
            check_name(name, "summary")
            if name in self.views:
                raise ValueError(f"{name!r} cannot name a summary: a view has that name")
            if self.late == "update":
                raise ValueError(
                    f"summaries.{name}: late = 'update' does not go with summaries, whose parts must be"
                    " closed: leave late out"
                )
            for part, column in summary.of.items():
                if part != OF_THE_QUERY_ITSELF and part not in self.views:
                    meant = did_you_mean(part, (OF_THE_QUERY_ITSELF, *self.views))
                    raise ValueError(
                        f"summaries.{name}: of names {part!r}, which is neither 'query' nor a view{meant}"
                    )
                if column != KEY and column not in self.part(part).aggregates:
                    columns = (KEY, *self.part(part).aggregates)
                    raise ValueError(
                        f"summaries.{name}: {part} has no result column"
                        f" {column!r}{did_you_mean(column, columns)}; its columns: {', '.join(columns)}"
                    )
            try:
                self.view(name)._check_summary()
            except ConfigError as error:
                raise ValueError(f"summaries.{name}: {error}") from None
            except ValueError as error:
                raise ValueError(f"summaries.{name}: {error}") from None
        return self

    def _check_summary(self) -> None:
        """Raise ValueError if this summary cannot be computed from the rows of its parts."""
        from evenflow.aggregates.plan import AggregatePlan, outputs_of

        summary = self._summary
        assert summary is not None
        self.emission.check_names(self.aggregates)
        slides = {part.slide_ms for part, _ in self.parts}
        if len(slides) > 1:
            raise ValueError(
                f"its parts slide by {', '.join(map(format_duration, sorted(slides)))};"
                " parts of a summary have one slide"
            )
        kinds = set()
        for part, column in self.parts:
            outputs = {output.label: output for output in outputs_of(part)}
            columns = [spec.column for spec in self.aggregates.values()]
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
            kinds.add(self._kind_in(part, column))
        if len(kinds) > 1:
            raise ValueError(f"its parts are grouped by values of several types ({', '.join(sorted(kinds))})")
        kind = kinds.pop()
        if kind not in _KEY_TYPES:
            raise ValueError(
                f"its rows are grouped by {kind}: take text, whole numbers, dates, or true or false"
            )
        for label, spec in self.aggregates.items():
            if spec.column is None and spec.expression is None:
                raise ValueError(
                    f"{label} = '{spec}' names no column: write count(column) to"
                    " count the rows that have a value there"
                )
            owners = [part.name for part, _ in self.parts if spec.column in part.aggregates]
            if spec.column is not None and len(owners) != 1:
                raise ValueError(
                    f"{label} = '{spec}' reads {spec.column!r}, which is a result column of "
                    f"{' and of '.join(owners) or 'none of its parts'}; it must be one of exactly one part"
                )
        plan = AggregatePlan.of(self)
        if any(partial.timed for partial in plan.partials):
            raise ValueError(
                "rows of one window have no order in time: first, last and collect cannot be taken of them"
            )
        if plan.having is not None:
            outputs = {output.label: output for output in plan.outputs}
            rounded = [
                output.label
                for output in plan.having.reads
                if not exact(output.label, self.aggregates, outputs)
            ]
            if rounded:
                raise ValueError(f"having reads {rounded[0]!r}, which is not exact")
        self._check_rows(kind, "the rows are grouped by")

    def _kind_in(self, part: Query, column: str) -> str:
        """The type of the column by which a summary groups the rows of this part."""
        from evenflow.aggregates.plan import outputs_of
        from evenflow.aggregates.result_expressions import column_type

        if column == KEY:
            return next(iter(part.group_types.values()), "raw bytes")
        output = next(output for output in outputs_of(part) if output.label == column)
        result = output.aggregate.result_type(output.call)
        return column_type(result) or str(result)

    def _check_own_key(self) -> None:
        """Raise ValueError if the column that this view groups by can be no key, or is the query's key."""
        name = self.own_key
        if name is None:
            return
        if not name or name.startswith("@"):
            raise ValueError(f"key = {name!r} is no column that frames carry: write a column's name")
        if (name,) == self.key_columns:
            raise ValueError(f"key = {name!r} is the key of the query already: leave it out")
        kind = self.value_columns[name]
        if kind not in _KEY_TYPES:
            raise ValueError(
                f"key = {name!r} cannot be {kind}: a view groups by text, whole numbers,"
                " dates, or true or false"
            )
        self._check_rows(kind, f"key = {name!r} is")

    def _check_rows(self, kind: str, what_is: str) -> None:
        """Raise ValueError if a row is too large whose key is a value of this type,
        which is bounded as a value only.
        """
        from evenflow.aggregates import AggregatePlan

        key = self.max_value_bytes if kind == "string" else self.max_key_bytes
        result = self.max_result_bytes if AggregatePlan.of(self).grows else 0
        rows = {
            "a row of partials": partial_row(key=key, state=self.max_state_bytes, result=result),
            "a result in JSON": json_row(key=key, result=result),
        }
        for row, size in rows.items():
            if size > ROW_BYTES:
                raise ValueError(
                    f"{what_is} a text of up to query.max_value_bytes = {self.max_value_bytes:,} bytes, so"
                    f" {row} could have {size:,} bytes, more than the {ROW_BYTES:,} that a record has room"
                    " for: lower query.max_value_bytes or query.max_result_bytes"
                )

    def _with_views(self, *names: str) -> Query:
        """The query with only these of its views."""
        return self.model_copy(update={"views": {name: self.views[name] for name in names}})

    def view(self, name: str) -> Query:
        """This view or summary as a query with the name `<query>.<name>`, whose `origin` is this query.

        KeyError if there is no such view or summary.
        """
        if name in self.summaries:
            return self._as_summary(name)
        view = self.views[name]
        changed = {
            "name": f"{self.name}.{name}",
            "aggregates": view.aggregates,
            "window": self.window if view.window is None else view.window,
            "slide": self.slide_ms if view.slide is None else view.slide,
            "emit": view.emit,
            "views": {},
            "summaries": {},
        }
        query = self.model_copy(update=changed)
        query._origin = self
        query._own_key = view.key
        return query

    def _as_summary(self, name: str) -> Query:
        summary = self.summaries[name]
        parts = [self.part(part) for part in summary.of]
        changed = {
            "name": f"{self.name}.{name}",
            "aggregates": summary.aggregates,
            "window": max(part.window for part in parts),
            "slide": parts[0].slide_ms,
            "emit": summary.emit,
            "views": {},
            "summaries": {},
        }
        query = self.model_copy(update=changed)
        query._origin = self
        query._summary = summary
        return query

    def part(self, name: str) -> Query:
        """A part of a summary: 'query' or a view of this query, with all rows of all windows.
        KeyError for another name.
        """
        whole = self.origin
        part = whole if name == OF_THE_QUERY_ITSELF else whole.view(name)
        return part.model_copy(update={"emit": "all", "emit_from": None})

    @property
    def summary(self) -> Summary | None:
        """What makes this query a summary. None for a query and for a view."""
        return self._summary

    @property
    def parts(self) -> list[tuple[Query, str]]:
        """The parts of this summary, each with the column by which its rows are grouped. Empty if it is
        none.
        """
        return (
            [] if self._summary is None else [(self.part(name), by) for name, by in self._summary.of.items()]
        )

    @property
    def having(self) -> str | None:
        """The condition for rows to come out. None: all do."""
        return None if self._summary is None else self._summary.having

    @property
    def own_key(self) -> str | None:
        """The column that this view groups by.
        None for a query, and for a view that groups by its query's key.

        `key` and `key_columns` stay those of the query: by these the tuples are read, judged and routed.
        """
        return self._own_key

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that results are grouped by: `own_key`, or else `key_columns`. Empty for '@key'."""
        if self._summary is not None:
            return (next((by for by in self._summary.of.values() if by != KEY), KEY),)
        return self.key_columns if self._own_key is None else (self._own_key,)

    @property
    def group_types(self) -> dict[str, str]:
        """The `group_columns`, each with its type."""
        if self._summary is not None:
            return {self.group_columns[0]: self._kind_in(*self.parts[0])}
        return {name: self.column_type(name) for name in self.group_columns}

    @property
    def origin(self) -> Query:
        """The query that routes the tuples. For a view, the query that it is a view of. Otherwise this
        query.
        """
        return self if self._origin is None else self._origin

    @property
    def view_name(self) -> str | None:
        """The name of this view in its `origin`. None for a query that is no view."""
        return None if self._origin is None else self.name.removeprefix(f"{self._origin.name}.")

    @property
    def slides_per_pane(self) -> int:
        """How many panes of the routed frames make one pane of this query: 1 unless a view's slide is longer.

        The panes of the routed frames are the slides of `origin`. A summary aggregates no frames, but rows of
        its panes.
        """
        if self._summary is not None:
            return 1
        return self.slide_ms // self.origin.slide_ms

    @property
    def routed_for(self) -> list[AggregateSpec]:
        """All aggregates for which the routed frames must hold the columns:
        those of the query and of its views.

        Of a summary its own, which are over rows and not over frames.
        """
        if self._summary is not None:
            return list(self.aggregates.values())
        tables = [self.origin.aggregates, *(view.aggregates for view in self.origin.views.values())]
        return [spec for aggregates in tables for spec in aggregates.values()]

    @property
    def slide_ms(self) -> int:
        """The slide in milliseconds. A pane is one slide."""
        assert self.slide is not None
        return self.slide

    @property
    def panes_per_window(self) -> int:
        """Number of panes in a window (window / slide)."""
        return self.window // self.slide_ms

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that the key is made of. Empty for '@key'."""
        if isinstance(self.key, str):
            return () if self.key == "@key" else (self.key,)
        return self.key

    @property
    def key_kind(self) -> Literal["raw", "int64", "string"]:
        """What a key is as one column of results: the bytes of '@key', a whole number, or text.

        A key of several columns is text.
        """
        types = list(self.group_types.values())
        if not types:
            return "raw"
        return "int64" if types == ["int64"] else "string"

    @property
    def result_keys(self) -> tuple[str, ...]:
        """Names of the columns that hold the key in results:
        those of its parts if it has several, otherwise `key`.
        """
        return self.group_columns if len(self.group_columns) > 1 else ("key",)

    @property
    def key_name(self) -> str:
        """The name of the key in results for people."""
        return ", ".join(self.group_columns) or "@key"

    @property
    def emission(self) -> Emission:
        """The parsed settings `emit` and `late`: which rows of a window are emitted,
        and whether they may be again.
        """
        updates = self.allowed_lateness if self.late == "update" else 0
        return replace(Emission.parse(self.emit), updates=updates)

    @property
    def result_delay(self) -> int:
        """How far (ms) every input partition must be past the end of a window before the window comes out."""
        return self.out_of_orderness + self.allowed_lateness - self.emission.updates

    @property
    def explosion(self) -> Explosion | None:
        """The parsed setting `explode`: how a record becomes several tuples. None if a record is one
        tuple.
        """
        return None if self.explode is None else Explosion.parse(self.explode)

    @property
    def record_columns(self) -> dict[str, str]:
        """Columns of the record's value, each with the type that it is read as.

        These are the columns of `read_as`, except that the column that `explode` takes apart stands in it as
        a whole, as a `list` or a `string`, in place of the columns of its elements.
        """
        explosion = self.explosion
        if explosion is None:
            return dict(self.read_as)
        outer = {name: type_ for name, type_ in self.read_as.items() if explosion.within(name) is None}
        return outer | {explosion.column: "list" if explosion.way == "list" else "string"}

    @property
    def element_columns(self) -> dict[str, str]:
        """Columns of one element of the column that `explode` takes apart,
        each with the type that it is read as.
        """
        explosion = self.explosion
        if explosion is None:
            return {}
        return {name: type_ for name, type_ in self.read_as.items() if explosion.within(name) is not None}

    @property
    def repeated_texts(self) -> list[str]:
        """Columns of text or any value that stand in each element of a record that `explode` takes apart.

        These are the columns of the record, read or derived, that the key, an aggregate or an expression over
        elements needs. The raw record key is not among them.
        """
        if self.explode is None:
            return []
        elements, columns = self.element_columns, self.resolved
        needed = [*self.key_columns, *self._carried]
        outer = set(columns.read) - set(elements) | set(() if columns.each else columns.looked_up)
        if self._expressions:
            from evenflow.expressions.explosion import record_and_element_columns

            once, each = record_and_element_columns(columns, elements)
            outer |= set(once.derived)
            needed += [name for derived in each.derived.values() for name in derived.columns]
            needed += [] if each.where is None else each.where.columns
        return [name for name in dict.fromkeys(needed) if name in outer and columns.type_of(name) in _TEXTS]

    def column_type(self, column: str) -> ColumnType:
        """The type of a column.

        A derived column has the type of its expression. Any other column has its declared type. Without a
        declaration, a key column of the query or of a view is string, one of `any_columns` has any value, and
        any other aggregated column is float64.
        """
        if column in self.columns:
            return self.resolved.type_of(column)
        if column in self.any_columns:
            return ANY_VALUE
        text = column in (*self.key_columns, *self.lookup_key, *self._view_keys)
        return self._declared.get(column, "string" if text else "float64")

    @property
    def looked_up(self) -> dict[str, ColumnType]:
        """Columns of the lookup file that a tuple gets, each with its type. Empty without a lookup."""
        return {} if self.lookup is None else self.lookup.columns

    @property
    def computed_columns(self) -> frozenset[str]:
        """Names of the columns that are no columns of the record:
        those that are derived or come from the lookup file.
        """
        return frozenset({*self.columns, *self.looked_up})

    @property
    def lookup_key(self) -> tuple[str, ...]:
        """Columns of the record that are looked up. Empty without a lookup."""
        return () if self.lookup is None else self.lookup.key

    @property
    def lookup_of_elements(self) -> bool:
        """Whether each element of a record that `explode` takes apart is looked up by itself,
        and not the record.
        """
        explosion = self.explosion
        return explosion is not None and any(explosion.within(name) is not None for name in self.lookup_key)

    @property
    def _declared(self) -> dict[str, ColumnType]:
        """The declared types of columns of the record and of the lookup file."""
        return {**self.types, **self.looked_up}

    def with_lookup_sha256(self, digest: str) -> Query:
        """This query with this content (SHA-256 in hex) of the lookup file. It has a lookup."""
        assert self.lookup is not None
        changed = self.model_copy(update={"lookup": self.lookup.model_copy(update={"sha256": digest})})
        changed._origin = None if self._origin is None else self._origin.with_lookup_sha256(digest)
        return changed

    @property
    def any_columns(self) -> frozenset[str]:
        """Columns whose values count_distinct takes as they are, of any kind (`ANY_VALUE`).

        These are the undeclared columns of the record that count_distinct reads, and beside it at most
        `count` and the question of expressions whether they are null. A query that has begun has
        those with which it began. Of these, a view that was added may need one as a number:
        `changed_any_columns`.
        """
        columns = self._only_counted
        if columns and self._expressions:
            read = self.resolved.read
            columns = frozenset(name for name in columns if read[name] == ANY_VALUE)
        return columns

    @property
    def changed_any_columns(self) -> list[str]:
        """Columns with which the query began as columns of any value,
        and which it now needs as something else.
        """
        return sorted(set(self._begun_any_columns or ()) & set(self._aggregated) - self.any_columns)

    @property
    def begun_any_columns(self) -> tuple[str, ...] | None:
        """The `any_columns` with which the query began. None: by the rule of queries that begin now."""
        return self._begun_any_columns

    def with_any_columns(self, columns: tuple[str, ...] | None) -> Query:
        """This query as one that began with these `any_columns`. This is no setting."""
        changed = self.model_copy()
        changed._begun_any_columns = columns
        changed._origin = None if self._origin is None else self._origin.with_any_columns(columns)
        return changed

    @property
    def _only_counted(self) -> frozenset[str]:
        """`any_columns`, and those like them that expressions read."""
        counted = {spec.column for spec in self.routed_for if spec.function == _DISTINCT}
        others = {spec.column for spec in self.routed_for if spec.function not in _COUNTING}
        known = {*self.key_columns, self.time, *self._declared, *self.columns, *self.lookup_key}
        known |= self._view_keys
        columns = {name for name in counted - others - known if name is not None}
        return frozenset(columns if self._begun_any_columns is None else columns & {*self._begun_any_columns})

    @property
    def _counted_keys(self) -> frozenset[str]:
        """Columns of the key whose values are counted, and of which nothing else is computed. Undeclared
        ones stay text.
        """
        others = {spec.column for spec in self.routed_for if spec.function not in _COUNTING}
        return frozenset({*self.key_columns}.intersection(self._aggregated).difference(others - {None}))

    @property
    def _aggregated(self) -> list[str]:
        return sorted({spec.column for spec in self.routed_for if spec.column is not None})

    @property
    def _view_keys(self) -> frozenset[str]:
        """Columns that views group by in place of the query's key."""
        return frozenset(view.key for view in self.origin.views.values() if view.key is not None)

    @property
    def _carried(self) -> list[str]:
        """Columns that frames carry beside the key: those of aggregates, and those that views group by."""
        return sorted({*self._aggregated, *self._view_keys})

    @property
    def _expressions(self) -> bool:
        return bool(self.columns) or self.where is not None

    @property
    def value_columns(self) -> dict[str, ColumnType]:
        """Columns that the aggregates of the query and of all its views read, and those that views group by.

        Name -> type, sorted by name. Of a summary these are the result columns of its parts that its
        aggregates read.
        """
        if self._summary is not None:
            read = sorted({spec.column for spec in self.aggregates.values() if spec.column is not None})
            owners = {
                name: next((part for part, _ in self.parts if name in part.aggregates), None) for name in read
            }
            return {name: self._kind_in(part, name) for name, part in owners.items() if part is not None}
        derived = self.resolved.derived if self.columns else {}
        types = self._declared
        undeclared = dict.fromkeys(self.any_columns, ANY_VALUE)
        texts = {*self.lookup_key, *self._view_keys, *self._counted_keys}
        return {
            column: (
                derived[column].type
                if column in derived
                else types.get(column, undeclared.get(column, "string" if column in texts else "float64"))
            )
            for column in self._carried
        }

    @property
    def read_as(self) -> dict[str, ColumnType]:
        """Columns that are read from the record's value, key first, each with the type that it is read as.

        '@key' and '@timestamp' are not among them. ValueError if one column is needed as two types that no
        value has both.
        """
        return dict(self.resolved.read)

    @property
    def resolved(self) -> Columns:
        """The columns that are read and derived, and the condition.

        ValueError or ConfigError if they contradict each other (`columns.resolved`).
        """
        uses: dict[str, dict[str, str]] = {}
        counted, types, view_keys = self._only_counted, self._declared, self._view_keys
        texts = view_keys | self._counted_keys
        for column, use, kind in (
            *((name, "the key", types.get(name, "string")) for name in self.key_columns),
            *((name, "the lookup", types.get(name, "string")) for name in self.lookup_key),
            *((name, "the key of a view", types.get(name, "string")) for name in sorted(view_keys)),
            (self.time, "the event time", _TIME_TYPES[self.time_unit]),
            *(
                (
                    (column, "values to count", ANY_VALUE)
                    if column in counted
                    else (column, "a number", types.get(column, "string" if column in texts else "float64"))
                )
                for column in self._aggregated
            ),
        ):
            if not column.startswith("@"):
                uses.setdefault(column, {})[use] = kind
        if not self._expressions:
            columns = Columns({column: one_type(column, needed) for column, needed in uses.items()})
        else:
            columns = resolved(self.columns, self.where, uses, types)
        return columns.looked_up_in(self.looked_up, each=self.lookup_of_elements)

    @property
    def first_max_jump(self) -> int | None:
        """The `max_jump` (ms) with which the query began. None: off.

        Every input partition has it until its state names another one (`PartitionState.max_jumps`).
        """
        return self._first_limits.get("max_jump", self.max_jump)

    @property
    def first_out_of_orderness(self) -> int:
        """The `out_of_orderness` (ms) with which the query began.

        Every input partition has it until its state names a larger one (`PartitionState.disorders`).
        """
        first = self._first_limits.get("out_of_orderness")
        return self.out_of_orderness if first is None else first

    def with_first_limits(self, limits: Mapping[str, int | None]) -> Query:
        """This query as one that began with these limits: `max_jump`, `out_of_orderness` or both,
        in ms (None: off).
        """
        changed = self.model_copy()
        changed._first_limits = {**self._first_limits, **limits}
        changed._origin = None if self._origin is None else self._origin.with_first_limits(limits)
        return changed

    def canonical(self) -> dict[str, Any]:
        """Everything that determines results, as plain JSON. The name does not.

        `max_jump` and `out_of_orderness` are those of the beginning.

        Of the views, it holds only what frames carry for views alone. Adding a view that finds its columns in
        the frames does not make another query.
        """
        fields = self.model_dump(mode="json", exclude={"name", "views", "summaries"})
        fields["aggregates"] = {name: str(spec) for name, spec in self.aggregates.items()}
        first = self.first_max_jump
        fields["max_jump"] = None if first is None else format_duration(first)
        fields["out_of_orderness"] = format_duration(self.first_out_of_orderness)
        # Left out at their defaults: what a query does not set is no part of its fingerprint.
        for name in ("columns", "where"):
            if not fields[name]:
                del fields[name]
        if self.explode is None:
            del fields["explode"]
        if self.lookup is None:
            del fields["lookup"]
        else:
            fields["lookup"] = self.lookup.identity()
        for name, default in (("emit", "all"), ("late", "reject")):
            if fields[name] == default:
                del fields[name]
        if self.views:
            carried = self._carried_for_views()
            fields |= {"carried_for_views": carried} if carried else {}
        return fields

    def _carried_for_views(self) -> dict[str, str]:
        """Columns that the frames carry only because a view needs them, with their types.
        "@time": the event time.

        A column of any value stands here as float64, like other undeclared columns. The record of how the
        query began names it.
        """
        from evenflow.aggregates import AggregatePlan

        alone = self._with_views()
        before = alone.value_columns
        timed = AggregatePlan.of(self).timed and not AggregatePlan.of(alone).timed
        values = {
            name: "float64" if kind == ANY_VALUE else kind
            for name, kind in self.value_columns.items()
            # A view that groups by a column may make a text of what was a number.
            if name not in before or (name in self._view_keys and before[name] != kind)
        }
        return values | ({"@time": "int64"} if timed else {})
