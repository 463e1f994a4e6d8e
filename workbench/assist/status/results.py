"""The newest window among the results, without reading all of them, whatever the sink."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evenflow.settings import Settings
from evenflow.settings.places import local_folder
from spark_consumers.checkpoints.result_files import visible
from spark_consumers.sinks import sink_of
from spark_consumers.sinks.base import SaysNewestEnd
from topics.reader import read_newest

_NEWEST = 10
"""How many of the newest offsets of each partition of the results topic are read."""
_FILES = 10

Written = tuple[int, int | None]
"""(end of a window in ms, when it was written in ms of processing time: None where nothing says it)."""


def can_look(settings: Settings) -> bool:
    """Whether the results lie where `newest_written` looks: in a topic, in a local folder, or where the
    sink says it.
    """
    sink, folder = sink_of(settings), settings.results.folder
    in_folder = folder is not None and local_folder(folder) is not None
    return "results" in sink.topics or in_folder or isinstance(sink, SaysNewestEnd)


def newest_written(settings: Settings) -> Written | None:
    """The newest written window. None if none is written, or if the results lie elsewhere (`can_look`).

    The windows of a bucket are written in order, so the newest records or files hold the newest window.
    Raises ServiceError if a sink that is asked does not answer.
    """
    sink = sink_of(settings)
    if isinstance(sink, SaysNewestEnd):
        end = sink.newest_end(settings)
        return None if end is None else (end, None)
    if "results" in sink.topics:
        newest = read_newest(settings.kafka, settings.topic("results"), _NEWEST)
        entries = [(sink.end_of(message.value()), int(message.timestamp()[1])) for message in newest]
    else:
        place = settings.results.folder
        folder = None if place is None else local_folder(place)
        entries = [] if folder is None else [_of_file(file) for file in _newest_files(folder)]
    return max(((end, at) for end, at in entries if end is not None), default=None)


def _newest_files(folder: Path) -> list[Path]:
    """The newest few of the Parquet files that readers see."""
    if not folder.is_dir():
        return []
    files = [folder / name for name in visible(os.listdir(folder))]
    return sorted(files, key=lambda file: (file.stat().st_mtime, file))[-_FILES:]


def _of_file(file: Path) -> tuple[int | None, int]:
    """(end of the file's newest window, when the file was written), both ms,
    by the statistics in the file's footer.

    (None, 0) for a file that is no Parquet, is of others, or has no statistics.
    """
    try:
        parquet_file = pq.ParquetFile(file)
        column = parquet_file.schema_arrow.get_field_index("window_end")
        groups = [
            parquet_file.metadata.row_group(number) for number in range(parquet_file.metadata.num_row_groups)
        ]
        ends = [group.column(column).statistics.max for group in groups]
        return max(map(_ms, ends)), round(file.stat().st_mtime * 1000)
    except (OSError, AttributeError, TypeError, IndexError, ValueError, OverflowError, pa.ArrowException):
        return None, 0


def _ms(value: int | datetime) -> int:
    if isinstance(value, int):
        return value
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
