"""The result rows of a run as a reader sees them, and what differs from the rows that must be there."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark_consumers.checkpoints.result_files import visible
from spark_consumers.sinks import sink_of

if TYPE_CHECKING:
    from tests.faults.run import Cluster

_MOST_SHOWN = 3
Row = tuple[int, int | None, tuple[str, ...] | None]
Rows = dict[tuple[int, int, str], Row]
"""(window start, window end, key) -> (count, sum, texts). Sum and texts are None if the query does not
have them.
"""

GONE: Row = (0, None, None)
"""What `emit = "changes"` says of a key that the window before had, and this one does not."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def results_of(cluster: Cluster, found: list[str]) -> Rows:
    """The rows, with updates those of the highest revision of each window and key."""
    rows: dict[tuple[tuple[int, int, str], int], Row] = {}
    for where, revision, row in _written(cluster):
        before = rows.setdefault((where, revision), row)
        if before != row:
            found.append(f"window {where} has two results, {before} and {row}")
        elif before is not row and cluster.schedule.shape.sink == "parquet":
            found.append(f"window {where} stands in two files")
    return {where: row for (where, _), row in sorted(rows.items(), key=lambda each: each[0])}


def _written(cluster: Cluster) -> list[tuple[tuple[int, int, str], int, Row]]:
    """Every result row that a reader sees, with how often it has come out before."""
    shape = cluster.schedule.shape
    count = "n" if shape.counted and not shape.alone else "_tuples"
    each = {"parquet": _in_files, "frames": _in_frames, "avro": _in_avro, "kafka": _in_topic}[shape.sink](
        cluster
    )
    return [
        (
            (row["window_start"], row["window_end"], text_of(row["key"])),
            row["revision"] if shape.updates else 0,
            GONE
            if row.get("gone")
            else (
                row[count],
                None if shape.alone else row["s"],
                None if row.get("c") is None else tuple(row["c"]),
            ),
        )
        for row in each
    ]


def _in_files(cluster: Cluster) -> list[dict[str, Any]]:
    prefix = "mem://results/"
    held = cluster.storage.files.held
    names = [path.removeprefix(prefix) for path in held if path.startswith(prefix)]
    tables = [held[prefix + name] for name in visible(name for name in names if "/" not in name)]
    return [row for table in tables for row in table.to_pylist()]


def _in_topic(cluster: Cluster) -> list[dict[str, Any]]:
    topic = cluster.broker.topics.get("q.results")
    return [json.loads(e.value or b"") for log in (topic.logs if topic else ()) for e in log.entries]


def _in_frames(cluster: Cluster) -> list[dict[str, Any]]:
    if "q.results" not in cluster.broker.topics:
        return []
    settings = cluster.settings[0].with_input_partitions(cluster.schedule.shape.inputs)
    rows = sink_of(settings).read_back(settings).read_all().to_pylist()
    ms = timedelta(milliseconds=1)
    return [
        row | {name: (row[name] - _EPOCH) // ms for name in ("window_start", "window_end")} for row in rows
    ]


def _in_avro(cluster: Cluster) -> list[dict[str, Any]]:
    if "q.results" not in cluster.broker.topics:
        return []
    settings = cluster.settings[0].with_input_partitions(cluster.schedule.shape.inputs)
    values = sink_of(settings).read_back(settings).read_all()["value"].to_pylist()
    return [json.loads(value) for value in values]


def text_of(held: Any) -> str:
    """A key or a header as a text."""
    return held.decode() if isinstance(held, bytes) else str(held)


def differences(expected: Rows, got: Rows) -> list[str]:
    result = []
    for where in sorted(expected.keys() | got.keys()):
        if expected.get(where) != got.get(where):
            result.append(f"window {where}: expected {expected.get(where)}, got {got.get(where)}")
    more = len(result) - _MOST_SHOWN
    return [*result[:_MOST_SHOWN], *([f"and {more} more windows"] if more > 0 else [])]
