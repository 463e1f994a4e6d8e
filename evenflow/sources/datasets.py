"""The registry of source formats, and how a source is opened from a user's text.

A new format is one file in `evenflow/sources/formats` and one line in `FORMATS`. The format of a file is what
the user says (`SourceOptions.format`, or 'csv:data.txt'). Otherwise the file's name tells it, and otherwise
its first lines do. Another name is asked of `evenflow.plugins`: the entry point of a package, or
`module:Thing`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from evenflow.errors import ConfigError
from evenflow.plugins import SOURCES, Entry, mistakes_told, summary_of
from evenflow.sources.files import head_lines, is_parquet, unwrapped_name
from evenflow.sources.formats import (
    cluster_tasks,
    csv_files,
    flights,
    generated,
    json_lines,
    made_words,
    parquet_files,
    retail,
    taxi,
    tpch,
    words,
)
from evenflow.sources.source import Source, SourceFormat, SourceOptions
from evenflow.sources.tables import are_objects, delimiter_of, is_table
from evenflow.text.options import name_and_rest

FORMATS: tuple[SourceFormat, ...] = (
    csv_files.FORMAT,
    json_lines.FORMAT,
    words.FORMAT,
    parquet_files.FORMAT,
    made_words.FORMAT,
    taxi.FORMAT,
    cluster_tasks.FORMAT,
    tpch.FORMAT,
    retail.FORMAT,
    flights.FORMAT,
    *generated.FORMATS,
)
BY_NAME = {item.name: item for item in FORMATS}
DATA_SETS = {
    item.name: item for item in (taxi.DATA_SET, cluster_tasks.DATA_SET, retail.DATA_SET, flights.DATA_SET)
}
"""Data sets whose files a user downloads, or installs with a package."""
_OF_A_SOURCE = ("name", "column_names", "time", "time_unit", "rows", "key", "batches")
FILES = [item for item in FORMATS if item.look is not None]


@dataclass(frozen=True, kw_only=True)
class SourceReading:
    """How a source will be read. At most the beginning of the file has been read so far."""

    format: SourceFormat
    """The registered format that opens the source."""
    rest: str
    """Path of the file, or the text behind 'name:'."""
    options: SourceOptions
    """The user's options, with what was seen in the file."""
    remark: str | None
    """How the file is read, in a sentence for the user. None if nothing had to be found out."""

    def open(self) -> Source:
        """The source. The ConfigError of a file says what is wrong with it, in which row, and what to do."""
        if self.format.name in BY_NAME:
            return self.format.open(self.rest, self.options)
        with mistakes_told(f"the source {self.format.name} cannot be opened"):
            source = self.format.open(self.rest, self.options)
        missing = [name for name in _OF_A_SOURCE if not hasattr(source, name)]
        if missing:
            raise ConfigError(
                f"{self.format.name} made no source: it has no {', '.join(missing)}",
                hint="make one with evenflow.sources.source.bounded (docs/your-own.md)",
            )
        return source


def catalogue() -> list[Entry[SourceFormat]]:
    """All sources by name, and behind evenflow's those that installed packages offer."""
    return SOURCES.entries(BY_NAME, _format_outside, lambda item: item.summary)


def open_source(text: str, options: SourceOptions | None = None) -> Source:
    """A source
    from a file path, a name, 'name:rest' ("flights", "zipf:z=1.4", "csv:data.txt") or 'module:Thing:rest'.

    ConfigError says what is wrong with the file, in which row, and what to do.
    """
    return reading_of(text, options).open()


def reading_of(text: str, options: SourceOptions | None = None) -> SourceReading:
    """How `open_source` would read a source. ConfigError for options that the format does not have."""
    options = options or SourceOptions()
    # Not `written.name_and_rest`: what stands behind the colon may be a path, and so may the whole text. A
    # path keeps its blanks.
    name, _, rest = text.partition(":")
    # The bare name of a format of files, as in "csv", names no file of that format. It may be a file called
    # "csv".
    prefixed = name in BY_NAME and not (rest == "" and BY_NAME[name].suffixes)
    if prefixed:
        item, path, why = BY_NAME[name], rest, f"{name!r} says so"
    elif (outside := _outside(text)) is not None:
        item, path = outside
        prefixed, why = True, f"{item.name!r} says so"
    else:
        item, why = _format_of(Path(text), options)
        path = text
    _refuse_contradictions(text, item, options, why)
    if item.look is None:
        return SourceReading(format=item, rest=path, options=options, remark=None)
    file_options, how = item.look(path, options)
    otherwise = "" if options.format or prefixed else "; --format says otherwise"
    return SourceReading(
        format=item, rest=path, options=file_options, remark=f"{path}: read as {how}{otherwise}"
    )


def _outside(text: str) -> tuple[SourceFormat, str] | None:
    """(the format, what stands behind its name) of a source that is not evenflow's.
    None: the text names no such thing.

    A file of this name goes before a module.
    """
    name, _, rest = text.partition(":")
    if SOURCES.package(name) is None:
        name, rest = name_and_rest(text)
        if not SOURCES.knows(name) or Path(text).exists():
            return None
    return _format_outside(name), rest


def _format_outside(name: str) -> SourceFormat:
    """The format that a package or module has under this name.
    ConfigError if it is not there, or is no source.
    """
    plugin = SOURCES.load(name)
    if isinstance(plugin, SourceFormat):
        return replace(plugin, name=name)
    if not callable(plugin):
        raise ConfigError(
            f"{name} is no source: it is of class {type(plugin).__name__}",
            hint=(
                "name a function of (rest, options) that gives a Source, or a SourceFormat (docs/your-own.md)"
            ),
        )
    return SourceFormat(name, summary_of(plugin), plugin)


def _format_of(path: Path, options: SourceOptions) -> tuple[SourceFormat, str]:
    """(the format of the file, why it is this format)."""
    if not path.exists():
        raise ConfigError(
            f"there is no file {path}, and no source of that name",
            hint=(
                f"name a file, or one of: {SOURCES.listed(BY_NAME)} (as in zipf:z=1.4,keys=1000); one of your"
                " own is written as module:Thing"
            ),
        )
    by_name = _format_by_name(path)
    if is_parquet(path):
        _refuse_other_words(path, by_name, options)
        return parquet_files.FORMAT, "its bytes say so"
    if options.format is not None:
        return BY_NAME[options.format], f"--format {options.format} says so"
    if path.is_dir() and by_name is not parquet_files.FORMAT:
        return words.FORMAT, "it is a folder"
    # A .txt file may be running text or a table, so its content decides.
    if by_name is not None and not path.name.lower().endswith(".txt"):
        return by_name, "its name says so"
    return _format_by_content(path, options, by_name)


def _refuse_other_words(path: Path, by_name: SourceFormat | None, options: SourceOptions) -> None:
    """Raise ConfigError if a Parquet file goes by the ending or the format of another kind of file."""
    if options.format not in (None, parquet_files.FORMAT.name):
        raise ConfigError(
            f"{path} holds Parquet, not {options.format}", hint=f"drop --format {options.format}"
        )
    if options.format is None and by_name not in (None, parquet_files.FORMAT):
        raise ConfigError(
            f"{path} holds Parquet, although its name says {by_name.name}",
            hint="rename it to end with .parquet, or say --format parquet",
        )


def _format_by_name(path: Path) -> SourceFormat | None:
    for name in (path.name.lower(), unwrapped_name(path)):
        for item in FILES:
            if name.endswith(item.suffixes):
                return item
    return None


def _format_by_content(
    path: Path, options: SourceOptions, by_name: SourceFormat | None
) -> tuple[SourceFormat, str]:
    """(format, why) of a file whose name does not tell whether it is a table.
    by_name: the format of its ending.
    """
    if options.delimiter is not None or not options.header:
        return csv_files.FORMAT, "--delimiter and --no-header say so"
    lines = head_lines(path, options.encoding)
    if are_objects(lines):
        return json_lines.FORMAT, "its first lines are objects"
    if options.columns_named or (options.key is not None and is_table(lines)):
        return csv_files.FORMAT, "columns of it are named"
    if is_table(lines):
        raise ConfigError(
            f"{path} looks like a table with delimiter {delimiter_of(lines)!r}, but no column of it is named",
            hint=(
                "name the key with --key (and give --no-header if the"
                " first row is data), or say --format words"
            ),
        )
    if by_name is not None:
        return by_name, "its name says so"
    endings = sorted(suffix for item in FILES for suffix in item.suffixes)
    raise ConfigError(
        f"neither name nor content of {path} tell its format",
        hint=(
            f"say --format csv, json, words or parquet; known endings are {' '.join(endings)} (and .gz, .zip)"
        ),
    )


def _refuse_contradictions(text: str, item: SourceFormat, options: SourceOptions, why: str) -> None:
    if options.format not in (None, item.name):
        raise ConfigError(
            f"--format {options.format} contradicts {text!r}: {why}", hint="drop one of the two"
        )
    options_in_use = {
        "--delimiter": options.delimiter is not None,
        "--no-header": not options.header,
        "--encoding": options.encoding.lower() not in ("utf-8", "utf8"),
    }
    idle = [word for word, in_use in options_in_use.items() if in_use and word not in item.takes]
    if idle:
        takers = " or ".join(source_format.name for source_format in FILES if idle[0] in source_format.takes)
        raise ConfigError(
            f"{text} is read as {item.name} ({why}), which takes no {' and no '.join(idle)}",
            hint=f"drop {' and '.join(idle)}" + (f", or say --format {takers}" if item.look else ""),
        )
