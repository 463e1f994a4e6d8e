"""A query: which key, which event time, which windows, which aggregates."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from evenflow.errors import ConfigError
from evenflow.settings.durations import Duration, format_duration

_DECIMAL = re.compile(r"^decimal\(([1-9]|1[0-2])\)$")
DecimalType = Annotated[str, Field(pattern=_DECIMAL.pattern)]
"""`decimal(S)`: at most 18 digits, S of them (1 to 12) behind the point."""
ColumnType = Literal["int64", "float64", "string", "bool", "date"] | DecimalType
_CALL = re.compile(r"^\s*([a-z_][a-z0-9_]*)\s*(?:\(\s*([^()]*?)\s*\))?\s*$")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}")
_TIME_TYPES: dict[str, ColumnType] = {"s": "float64", "ms": "int64", "us": "int64", "iso": "string"}
"""What a time column holds, by its unit."""
RESERVED_RESULT_NAMES = frozenset({"window_start", "window_end", "key", "key_base64", "revision"})


def decimal_scale(kind: ColumnType) -> int | None:
    """S of `decimal(S)`; None for any other type."""
    match = _DECIMAL.fullmatch(kind)
    return None if match is None else int(match[1])


class AggregateSpec(BaseModel):
    """One aggregate as written in `[query.aggregates]`: `count`, `function(column)` or `function(column, option, ...)`."""

    model_config = ConfigDict(frozen=True)

    function: str
    column: str | None = None
    options: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: Any) -> Any:
        """`"mean(dep_delay)"` -> function mean of column dep_delay; raises ValueError."""
        if not isinstance(text, str):
            return text
        match = _CALL.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not an aggregate; write 'count' or 'function(column)'")
        column, *options = (word.strip() for word in (match[2] or "").split(","))
        if not column and options:
            raise ValueError(f"{text!r} names no column; write 'function(column, option)'")
        return cls(function=match[1], column=column or None, options=tuple(options))

    def __str__(self) -> str:
        return (
            self.function
            if self.column is None
            else f"{self.function}({', '.join((self.column, *self.options))})"
        )


class Query(BaseModel):
    """What is computed. Changing any field but the name makes another query: old state is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(
        default="evenflow",
        description="Prefix of every topic evenflow makes for this query. Lower case letters, digits, . _ -",
    )
    key: str = Field(
        default="key",
        description="Column that holds the key, or '@key' for the raw record key (any bytes). "
        "With format 'text' the only column is 'value'.",
    )
    time: str = Field(
        default="time",
        description="Column that holds the event time, or '@timestamp' for the record timestamp.",
    )
    time_unit: Literal["s", "ms", "us", "iso"] = Field(
        default="ms",
        description="Unit of the time column: seconds (a fraction is rounded to the nearest ms), whole milliseconds or "
        "whole microseconds (rounded down to ms) since 1970 UTC, or ISO 8601 text (no zone means UTC). "
        "Ignored for '@timestamp'.",
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
        description="How far behind its input partition's largest event time a tuple may come and still be "
        "in time.",
    )
    allowed_lateness: Duration = Field(
        default=0,
        description="Kept open for this long (event time) after the watermark passed; delays every result.",
    )
    max_jump: Duration | None = Field(
        default=None,
        description="A tuple further than this ahead of its input partition's progress is rejected "
        "(reason 'jump') unless `jump_confirmations` consecutive tuples agree. None: off.",
    )
    jump_confirmations: int = Field(
        default=3,
        ge=2,
        le=16,
        description="Consecutive tuples within max_jump of each other that confirm a jump.",
    )
    emit_from: int | None = Field(
        default=None,
        description="Event time (ms): only windows that start at or after it are emitted. Used by the "
        "rebuild after data loss (docs/operations.md). None: all windows.",
    )
    aggregates: dict[str, Annotated[AggregateSpec, BeforeValidator(AggregateSpec.parse)]] = Field(
        default_factory=lambda: {"count": AggregateSpec(function="count")},
        description="Result column = 'count', 'sum(c)', 'quantile(c, 0.99)', 'top_k(c, 10)', ...: docs/aggregates.md "
        "has them all.",
    )
    types: dict[str, ColumnType] = Field(
        default_factory=dict,
        description="Type of a column: 'int64', 'float64', 'string', 'bool', 'date' or 'decimal(S)', S digits behind the "
        "point. Default: float64 for aggregated columns, string for the key.",
    )

    @field_validator("name")
    @classmethod
    def _name_is_a_topic_prefix(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(
                f"query name {value!r} must be lower case letters, digits, '.', '_' or '-' (at most 81)"
            )
        return value

    @field_validator("aggregates")
    @classmethod
    def _aggregate_names_are_free(cls, value: dict[str, AggregateSpec]) -> dict[str, AggregateSpec]:
        if not value:
            raise ValueError('a query needs at least one aggregate, e.g. count = "count"')
        taken = RESERVED_RESULT_NAMES & set(value)
        if taken:
            raise ValueError(
                f"{', '.join(sorted(taken))} cannot name an aggregate: every result row has that field"
            )
        return value

    @model_validator(mode="after")
    def _a_key_is_text_or_a_whole_number(self) -> Query:
        if self.types.get(self.key) == "float64":
            raise ValueError(
                f"key column {self.key!r} cannot be float64: keys are text, whole numbers or raw bytes"
            )
        return self

    @model_validator(mode="after")
    def _columns_are_columns(self) -> Query:
        for field, special in (("key", "@key"), ("time", "@timestamp")):
            name = getattr(self, field)
            if not name or (name.startswith("@") and name != special):
                raise ValueError(f"{field} = {name!r} is no column; write a column's name or '{special}'")
        read = {self.key, *self.value_columns}
        unread = sorted(set(self.types) - read)
        if unread:
            raise ValueError(
                f"types names {', '.join(unread)}, but of typed columns the query reads {', '.join(sorted(read))}"
            )
        wrong = [column for column in self.value_columns if column.startswith("@")]
        if wrong:
            raise ValueError(f"{wrong[0]!r} cannot be aggregated: only columns of the record's value can")
        _ = self.read_as
        return self

    @model_validator(mode="after")
    def _aggregates_can_be_computed(self) -> Query:
        # Only here, as aggregates are declared with Arrow types: settings alone load in a third of the time.
        from evenflow.aggregates import AggregatePlan

        try:
            AggregatePlan.of(self)
        except ConfigError as error:
            raise ValueError(
                error.message if error.hint is None else f"{error.message}; {error.hint}"
            ) from None
        return self

    @model_validator(mode="before")
    @classmethod
    def _slide_defaults_to_window(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("slide") is None:
            return {**data, "slide": data.get("window", 60_000)}
        return data

    @model_validator(mode="after")
    def _window_is_a_multiple_of_the_slide(self) -> Query:
        if self.window <= 0 or self.slide_ms <= 0:
            raise ValueError("window and slide must be longer than 0")
        if self.window % self.slide_ms:
            raise ValueError(
                f"window ({format_duration(self.window)}) must be a multiple of the slide ({format_duration(self.slide_ms)})"
            )
        if self.window // self.slide_ms > 100_000:
            raise ValueError("a window of more than 100,000 slides is refused: choose a longer slide")
        return self

    @property
    def slide_ms(self) -> int:
        """The slide in milliseconds; a pane is one slide."""
        assert self.slide is not None
        return self.slide

    @property
    def panes_per_window(self) -> int:
        """Number of panes in a window (window / slide)."""
        return self.window // self.slide_ms

    def column_type(self, column: str) -> ColumnType:
        """Declared type of a column, else string for the key and float64 for aggregated columns."""
        return self.types.get(column, "string" if column == self.key else "float64")

    @property
    def value_columns(self) -> dict[str, ColumnType]:
        """Columns that the aggregates read, in sorted order, with their types."""
        used = sorted({spec.column for spec in self.aggregates.values() if spec.column is not None})
        return {column: self.types.get(column, "float64") for column in used}

    @property
    def read_as(self) -> dict[str, ColumnType]:
        """Columns of the record's value that are read (not '@key', not '@timestamp'), key first, and what each is read as.

        ValueError when one column is needed as two things that no value is both.
        """
        uses: dict[str, dict[str, ColumnType]] = {}
        for column, use, kind in (
            (self.key, "the key", self.column_type(self.key)),
            (self.time, "the event time", _TIME_TYPES[self.time_unit]),
            *((column, "a number", kind) for column, kind in self.value_columns.items()),
        ):
            if not column.startswith("@"):
                uses.setdefault(column, {})[use] = kind
        return {column: _one_type(column, needed) for column, needed in uses.items()}

    def canonical(self) -> dict[str, Any]:
        """Everything that determines results, as plain JSON (not the name)."""
        fields = self.model_dump(mode="json", exclude={"name"})
        fields["aggregates"] = {name: str(spec) for name, spec in self.aggregates.items()}
        return fields


def _one_type(column: str, needed: dict[str, ColumnType]) -> ColumnType:
    kinds = set(needed.values())
    if kinds == {"int64", "float64"} and needed.get("a number") == "float64":
        return "int64"  # a whole number can be aggregated as any other
    if len(kinds) > 1:
        told = " and ".join(f"{use} ({kind})" for use, kind in needed.items())
        raise ValueError(
            f"column {column!r} is needed as {told}, which no value is both: declare its type in types (of the key and of "
            "aggregated columns; time_unit says what the time is), or take another column"
        )
    return kinds.pop()
