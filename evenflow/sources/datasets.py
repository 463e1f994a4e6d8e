"""The registry of source formats, and opening a source by what a user writes.

A new format is one file in `evenflow/sources/formats` and its line in `FORMATS`.
"""

from __future__ import annotations

from pathlib import Path

from evenflow.errors import ConfigError
from evenflow.sources.files import unwrapped_name
from evenflow.sources.formats import csv_files, flights, generated, json_lines, words
from evenflow.sources.source import Source, SourceFormat, SourceOptions

FORMATS: tuple[SourceFormat, ...] = (
    csv_files.FORMAT,
    json_lines.FORMAT,
    words.FORMAT,
    flights.FORMAT,
    *generated.FORMATS,
)
BY_NAME = {item.name: item for item in FORMATS}


def open_source(text: str, options: SourceOptions | None = None) -> Source:
    """A source from a file path, a name, or 'name:rest' ("flights", "zipf:z=1.4", "csv:data.txt").

    ConfigError says what is wrong with the file, in which row, and what to do.
    """
    options = options or SourceOptions()
    name, _, rest = text.partition(":")
    if name in BY_NAME and not (rest == "" and BY_NAME[name].suffixes):
        return BY_NAME[name].open(rest, options)
    return _format_of(Path(text)).open(text, options)


def _format_of(path: Path) -> SourceFormat:
    if not path.exists():
        raise ConfigError(
            f"there is no file {path}, and no source of that name",
            hint=f"name a file, or one of: {', '.join(BY_NAME)} (as in zipf:z=1.4,keys=1000)",
        )
    if path.is_dir():
        return words.FORMAT
    for name in (path.name.lower(), unwrapped_name(path)):
        for item in FORMATS:
            if name.endswith(item.suffixes or ("\0",)):
                return item
    suffixes = sorted(suffix for item in FORMATS for suffix in item.suffixes)
    raise ConfigError(
        f"the format of {path} is not told by its name",
        hint=f"known endings: {' '.join(suffixes)} (and .gz, .zip); "
        f"or write csv:{path}, json:{path}, words:{path}",
    )
