"""A static table that a query joins its tuples with: `[query.lookup]`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.grammar.column_types import PLAIN_TYPES, ColumnType, decimal_scale
from evenflow.settings.sections.input import parse_delimiter
from evenflow.settings.sections.section import Section
from evenflow.text.spelling import did_you_mean

_MOST_KEY_COLUMNS = 8
_SUFFIXES = (".csv", ".parquet")


class Lookup(Section):
    """A file with a row for each key. A tuple gets the columns of the row whose key it holds."""

    file: Path = Field(
        description=(
            "CSV file with a header (.csv) or Parquet file (.parquet), as each partitioner and `verify` reach"
            " it. It is read once, at the start. Its SHA-256 is fixed for the life of a query,"
            " its place is not (docs/lookup.md)."
        )
    )
    key: tuple[str, ...] = Field(
        description=(
            "Column of the record whose value is looked up, or a list of several. Their types are those of "
            "[query.types]: 'string' (the default), 'int64', 'bool' or 'date'."
        )
    )
    file_key: tuple[str, ...] | None = Field(
        default=None,
        description=(
            "Columns of the file that hold this key, in the same order. No two rows may have the same. None:"
            " they have the names that `key` says."
        ),
    )
    columns: dict[str, ColumnType] = Field(
        min_length=1,
        description=(
            "Columns of the file that a tuple gets, each with its type as in [query.types]. They can stand"
            " wherever a column of the record can: key, where, columns, aggregates, partitioner.cost."
        ),
    )
    missing: Literal["reject", "null"] = Field(
        default="reject",
        description=(
            "What happens to a tuple whose key has no row, or is null. 'reject': the record is rejected"
            " (reason 'unmatched'), whatever `where` says. 'null': the columns of the file are null."
        ),
    )
    delimiter: Annotated[str, AfterValidator(parse_delimiter)] = Field(
        default=",", description="Character between the fields of a CSV file."
    )
    max_bytes: int = Field(
        default=256_000_000,
        ge=1,
        le=16_000_000_000,
        description="A file with more bytes is refused, and so are key and columns that take more in memory.",
    )
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description=(
            "SHA-256 of the file, in small hex digits. A file with another one is refused. None: that of the"
            " file, or where there is no file, such as beside a Spark driver,"
            " that with which the query began."
        ),
    )

    @field_validator("key", "file_key", mode="before")
    @classmethod
    def _one_name_is_a_list_of_one(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("file")
    @classmethod
    def _file_has_a_known_suffix(cls, value: Path) -> Path:
        if value.suffix.lower() not in _SUFFIXES:
            raise ValueError(f"{str(value)!r} must end in {' or '.join(_SUFFIXES)}")
        return value

    @field_validator("columns", mode="before")
    @classmethod
    def _types_are_column_types(cls, value: Any) -> Any:
        for column, kind in value.items() if isinstance(value, dict) else ():
            if kind not in PLAIN_TYPES and not (isinstance(kind, str) and decimal_scale(kind) is not None):
                raise ValueError(
                    f"column {column!r} cannot be {kind!r}: types are {', '.join(PLAIN_TYPES)} and"
                    f" 'decimal(S)'{did_you_mean(str(kind), (*PLAIN_TYPES, 'decimal(2)'))}"
                )
        return value

    @model_validator(mode="after")
    def _names_fit_together(self) -> Lookup:
        for field, names in (("key", self.key), ("file_key", self.key_of_file)):
            if not 1 <= len(names) <= _MOST_KEY_COLUMNS:
                raise ValueError(f"{field} has 1 to {_MOST_KEY_COLUMNS} columns, not {len(names)}")
            if len(set(names)) < len(names):
                raise ValueError(f"{field} = {list(names)} names a column twice")
        if len(self.key) != len(self.key_of_file):
            raise ValueError(f"key has {len(self.key)} columns, but file_key has {len(self.key_of_file)}")
        for name in (*self.key, *self.columns):
            if not name or name.startswith("@"):
                raise ValueError(f"{name!r} is no column that a lookup can have: write a column's name")
        wrong = next((name for name in self.key if name in self.columns), None)
        if wrong is not None:
            raise ValueError(
                f"{wrong!r} is a column of the record in key, and cannot be one of the file in columns too"
            )
        return self

    @property
    def key_of_file(self) -> tuple[str, ...]:
        """Columns of the file that hold the key, in the order of `key`."""
        return self.key if self.file_key is None else self.file_key

    @property
    def parquet(self) -> bool:
        """Whether the file is Parquet. Otherwise it is CSV."""
        return self.file.suffix.lower() == ".parquet"

    def content(self) -> bytes:
        """The file. ConfigError if it cannot be read, or is too large.
        IncompatibleStateError if it has another SHA-256.
        """
        data = self._read()
        digest = hashlib.sha256(data).hexdigest()
        if self.sha256 not in (None, digest):
            raise IncompatibleStateError(
                f"the lookup file {self.file} has another content than it had: its"
                f" SHA-256 is {digest}, not {self.sha256}",
                hint="put the file back, or begin again with a new query name (docs/lookup.md)",
            )
        return data

    def digest(self) -> str | None:
        """SHA-256 of the file in hex, None if there is no file.
        ConfigError if it cannot be read, or is too large.
        """
        return hashlib.sha256(self._read()).hexdigest() if self.file.exists() else None

    def _read(self) -> bytes:
        try:
            # One byte more than allowed tells a file that is too large, also one that grows meanwhile.
            with self.file.open("rb") as file:
                data = file.read(self.max_bytes + 1)
        except FileNotFoundError:
            raise ConfigError(
                f"there is no lookup file {self.file}",
                hint="set query.lookup.file to a file that this process reaches (docs/lookup.md)",
            ) from None
        except OSError as error:
            raise ConfigError(f"the lookup file {self.file} cannot be read: {error.strerror}") from None
        if len(data) > self.max_bytes:
            raise ConfigError(
                f"the lookup file {self.file} has more than {self.max_bytes:,} bytes",
                hint=(
                    "raise query.lookup.max_bytes, which each partitioner then"
                    " needs several times, or leave out rows"
                ),
            )
        return data

    def identity(self) -> dict[str, Any]:
        """What determines results, as plain JSON: all but the place of the file and the bound.

        ConfigError if no SHA-256 is set, and there is no file.
        """
        digest = self.digest() if self.sha256 is None else self.sha256
        if digest is None:
            raise ConfigError(
                f"nothing tells the content of the lookup file {self.file}: it is not here,"
                " and the query has not begun",
                hint="start a partitioner first, which has the file, or set query.lookup.sha256",
            )
        fields = self.model_dump(mode="json", include={"columns", "missing"})
        fields |= {"sha256": digest, "key": list(self.key), "file_key": list(self.key_of_file)}
        return fields if self.delimiter == "," else fields | {"delimiter": self.delimiter}
