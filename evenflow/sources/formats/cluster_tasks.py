"""Task events in the format of Google's cluster-usage trace, version 2: 13 columns without a header,
times in us.

`cluster-tasks:part-00000-of-00500.csv.gz` reads a file of the trace's folder task_events.
`cluster-tasks:tuples=50000,jobs=100,rate=100,seed=1` generates task events. A request that the trace leaves
out is null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.generation.rank_laws import numbered_times
from evenflow.grammar.column_types import ColumnType
from evenflow.settings.word_options import WordOptions
from evenflow.sources.recorded import DataSet, Draw

COLUMNS: dict[str, ColumnType] = {
    "time": "int64",
    "missing_info": "string",
    "job_id": "string",
    "task_index": "int64",
    "machine_id": "string",
    "event_type": "int64",
    "user": "string",
    "scheduling_class": "string",
    "priority": "int64",
    "cpu_request": "float64",
    "memory_request": "float64",
    "disk_request": "float64",
    "different_machine": "string",
}
_TRACE_BEGINS = 600_000_000
"""Time of the first event in microseconds: the trace counts from 10 minutes before it."""
_SUBMIT = 0
"""The event type of a submission."""


def task_events(words: WordOptions) -> pa.Table:
    """Generated submissions of tasks, `rate` per second. A few jobs have most of the tasks."""
    draw = Draw.of(words, tuples=50_000, rate=100.0)
    jobs = words.integer("jobs", 100, least=1)
    job, count = draw.ranks(jobs, 1.0), draw.tuples
    zeros = np.zeros(count, np.int64)
    columns = [
        _TRACE_BEGINS + numbered_times(0, count, rate=draw.rate) * 1000,
        pa.nulls(count, pa.string()),
        draw.texts([str(6_250_000_000 + number) for number in range(jobs)], job),
        np.arange(count),
        pa.nulls(count, pa.string()),
        zeros + _SUBMIT,
        draw.texts([f"user{number}" for number in range(10)], job % 10),
        draw.texts(["0", "1", "2", "3"], job % 4),
        job % 12,
        np.round(draw.random.gamma(2.0, 0.02, count), 4),
        np.round(draw.random.gamma(2.0, 0.015, count), 4),
        np.round(draw.random.gamma(2.0, 0.0002, count), 6),
        draw.texts(["0"], zeros),
    ]
    return pa.table(columns, names=list(COLUMNS))


DATA_SET = DataSet(
    name="cluster-tasks",
    summary="task events in the format of Google's cluster trace: a file, or generated",
    layout="a CSV file of the folder task_events, without a header, 13 columns, times in us",
    licence="CC BY 4.0, as the trace says",
    columns=COLUMNS,
    key="job_id",
    time="time",
    time_unit="us",
    make=task_events,
)
FORMAT = DATA_SET.format()
