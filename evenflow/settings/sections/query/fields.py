"""What is set of a query."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from evenflow.grammar.aggregate_spec import Aggregates, AggregateSpec
from evenflow.grammar.column_types import MOST_SCALE, PLAIN_TYPES, ColumnType, decimal_scale
from evenflow.grammar.emission import Emission
from evenflow.grammar.explosion import Explosion
from evenflow.grammar.inputs import TimeUnit
from evenflow.limits import KEY_BYTES, RESULT_BYTES, STATE_BYTES, VALUE_BYTES
from evenflow.settings.durations import Duration
from evenflow.settings.sections.query.lookup import Lookup
from evenflow.settings.sections.query.summaries import Summary
from evenflow.settings.views import View
from evenflow.text.spelling import did_you_mean

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,80}")
_MOST_KEY_COLUMNS = 8


class QueryFields(BaseModel):
    """The settings of a query, each checked by itself."""

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
    time_unit: TimeUnit = Field(
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
    _origin: Self | None = PrivateAttr(default=None)
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

    @model_validator(mode="before")
    @classmethod
    def _slide_defaults_to_window(cls, data: Any) -> Any:
        # Before validation, so the default of `window` is not filled in yet and is repeated here.
        if isinstance(data, dict) and data.get("slide") is None:
            return {**data, "slide": data.get("window", 60_000)}
        return data
