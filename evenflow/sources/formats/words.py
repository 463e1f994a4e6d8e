"""Running text as a stream of words: a .txt file (.gz, .zip), or a folder or archive of .txt files.

Each word is one tuple, in lower case, in reading order (files by name). A word is a run of letters that may
have apostrophes between letters: `[^\\W\\d_]+(?:['’][^\\W\\d_]+)*`. So "don't" is one word, and "1st" gives
"st". Text has no event time, so words are numbered at `event_rate` words per second of event time.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.generation.rank_laws import numbered_times
from evenflow.sources.event_time import render_times
from evenflow.sources.files import read_many
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, bounded

WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
ARCHIVES = (".tar.gz", ".tgz")
DEFAULT_EVENT_RATE = 1000.0


def open_words(path: str, options: SourceOptions) -> TableSource:
    """The words as a bounded source with the columns `word` and `time`, or with the names in the options.

    ConfigError if the file cannot be read, is not in the encoding, or holds no word.
    """
    words: list[str] = []
    for name, content in read_many(Path(path), suffix=".txt"):
        try:
            text = content.decode(options.encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise ConfigError(
                f"{name} is not readable text: {error}", hint="give --encoding, e.g. latin-1"
            ) from None
        words += WORD.findall(text.lower())
    if not words:
        raise ConfigError(f"{path} holds no word", hint="name a file with text")
    key, time = options.key or "word", options.time or "time"
    times = numbered_times(0, len(words), rate=options.event_rate or DEFAULT_EVENT_RATE)
    unit = options.time_unit or "ms"
    table = pa.table({key: pa.array(words, pa.string()), time: render_times(times, unit)})
    return bounded(path, table, options, key=key, time=time, time_unit=unit)


def look(path: str, options: SourceOptions) -> tuple[SourceOptions, str]:
    """(the options unchanged, in words what a tuple is)."""
    return options, f"text, one tuple a word in the column {options.key or 'word'}"


FORMAT = SourceFormat(
    "words",
    "text, one tuple per word; also .gz, .zip, .tar.gz or a folder",
    open_words,
    (".txt", *ARCHIVES),
    look=look,
    takes=frozenset({"--encoding"}),
)
