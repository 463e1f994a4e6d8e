"""The input topic: the format of the user's records, and where reading begins."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from evenflow.settings.durations import Duration
from evenflow.settings.sections.section import Section

_WORDS = ("earliest", "latest")
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
DEFAULT_PARTITIONS = 4
"""Partitions of an input topic that evenflow makes, unless `partitions` gives another number."""


def parse_start(value: Any) -> str:
    """`earliest`, `latest`, or a time, in the one form `2026-11-20T10:00:00.000Z`.

    A time without a zone is UTC. TOML's own dates and times are accepted too. Raises ValueError for anything
    else, and for a time before 1970.
    """
    if value in _WORDS:
        return str(value)
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):  # a datetime is a date to Python
            value = datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime):
            raise ValueError
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        start = aware.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{value!r} is no place to start; write 'earliest', 'latest' or a time like"
            " '2026-11-20T10:00:00Z'"
        ) from None
    if start < _FIRST:
        raise ValueError(f"{value} is before 1970, where no record timestamp is; write 'earliest'")
    return start.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def start_time(start: str) -> int | None:
    """The start as milliseconds since 1970. None if it is `earliest` or `latest`."""
    if start in _WORDS:
        return None
    return round(datetime.fromisoformat(start).timestamp() * 1000)


def parse_delimiter(text: str) -> str:
    """The text, unchanged. Raises ValueError unless it is one character that readers of csv accept
    as a delimiter.
    """
    if len(text) != 1 or not text.isascii() or text in '"\r\n\0':
        raise ValueError(f"{text!r} is not one character of ASCII other than a quote, a line break and NUL")
    return text


class RegistrySettings(Section):
    """The schema registry of Avro and Protobuf records.
    Its address and credentials are no part of a query's identity.
    """

    url: str = Field(
        pattern=r"^https?://[^\s/@]+(/\S*)?$",
        description=(
            "http://host:port or https://host:port of a registry that speaks Confluent's HTTP interface. The"
            " URL holds no user: set `username` instead."
        ),
    )
    username: str | None = Field(
        default=None, description="User for HTTP basic authentication. None: no user."
    )
    password: SecretStr | None = Field(default=None, description="Password of that user. None: no user.")
    ssl_ca: Path | None = Field(
        default=None, description="PEM file of the authority that signed the registry. None: the system's."
    )
    timeout: Duration = Field(
        default=2_000,
        ge=1,
        description=(
            "How long one answer may take, until its last byte. The partitioner repeats the request until an"
            " answer comes."
        ),
    )

    @model_validator(mode="after")
    def _user_and_password(self) -> RegistrySettings:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together")
        return self


REGISTERED = ("avro", "protobuf")
"""Formats whose records refer to a schema in a registry."""


class InputSettings(Section):
    """The input topic. No service makes it. `evenflow replay`, `demo` and `topics create` do."""

    topic: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "Input topic. It must exist (`evenflow topics create` makes one). None: '<query name>.input'."
        ),
    )
    start: Annotated[str, BeforeValidator(parse_start)] = Field(
        default="earliest",
        description=(
            "Where a new query starts to read: 'earliest', 'latest', or a time in ISO 8601 (no zone means"
            " UTC). With a time, it starts at the first record whose record timestamp is not before it. Fixed"
            " for the life of a query."
        ),
    )
    format: Literal["json", "csv", "text", "avro", "protobuf"] = Field(
        default="json",
        description=(
            "json: a record is one object. csv: a record is one line (`columns` names the fields). text: the"
            " whole record is the column 'value'. avro, protobuf: Confluent's wire format, with a schema of"
            " `registry`. See docs/formats.md."
        ),
    )
    columns: list[str] = Field(
        default_factory=list, description="Names of the columns of csv records, in order."
    )
    delimiter: Annotated[str, AfterValidator(parse_delimiter)] = Field(
        default=",",
        description="Field delimiter of csv records: one character of ASCII, no quote, line break or NUL.",
    )
    partitions: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description=(
            "Partitions of the input topic. None: as many as the topic has, also once some are added. If "
            f"evenflow makes the topic, it gets this many partitions, and {DEFAULT_PARTITIONS} if none."
        ),
    )
    producers: int = Field(
        default=1, ge=1, le=16, description="Producers that must all end before a partition counts as ended."
    )
    reject_limit: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description=(
            "A service that begins a query stops if more than this share of its first 10,000 records would be"
            " rejected. Then nothing is made or committed, and the query's name stays free. Fewer than 100"
            " records are not judged. 1: a query begins whatever its records hold."
        ),
    )
    rejected_retention: Duration | None = Field(
        default=None,
        ge=3_600_000,
        description=(
            "How long `<query>.rejected` keeps a record, by the broker's clock. It counts where evenflow"
            " makes the topic: a topic that is there keeps its own settings. `verify` compares what is still"
            " there, and `rename` and `partition --from-routed` need all of it. None: for ever."
        ),
    )
    registry: RegistrySettings | None = Field(
        default=None,
        description="The schema registry. None: there is no registry, and avro and protobuf are refused.",
    )

    @property
    def registered(self) -> bool:
        """Whether the records refer to a schema in a registry."""
        return self.format in REGISTERED

    @model_validator(mode="after")
    def _registry_is_for_avro_and_protobuf(self) -> InputSettings:
        if self.registered and self.registry is None:
            raise ValueError(
                f"format = '{self.format}' needs [input.registry] with the url of the schema registry"
            )
        if not self.registered and self.registry is not None:
            raise ValueError(f"registry belongs to avro and protobuf, but the format is '{self.format}'")
        return self

    @model_validator(mode="after")
    def _columns_are_for_csv(self) -> InputSettings:
        if self.format != "csv":
            named = [name for name in ("columns", "delimiter") if name in self.model_fields_set]
            if named:
                raise ValueError(
                    f"{' and '.join(named)} belong to format = 'csv', but the format is '{self.format}'"
                )
            return self
        if not self.columns:
            raise ValueError("format = 'csv' needs columns, the names of the fields in order")
        twice = sorted({name for name in self.columns if self.columns.count(name) > 1})
        if twice:
            raise ValueError(f"columns names {', '.join(twice)} more than once")
        return self
