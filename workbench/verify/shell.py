"""The thin shell: read committed state, input, rejected records and results from Kafka, then check.

The committed state is read first, because it says what is due. The results are read last. Once their end is
known, the committed state is read again, so that no result counts as written too early. While the input runs,
results may still be on their way, and a micro-batch may be half written. So the results are read again, until
all that was due at the beginning is there or the bound has passed.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import DataLossError, IncompatibleStateError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning
from evenflow.settings.views import TopicRole
from partitioner_service.begin.claim import GONE
from partitioner_service.kafka.committed_state import StopRequested, committed_offsets, data_plane_group
from spark_consumers.sinks import ResultSink, sink_of
from topics import clients, reader
from topics.admin import describe
from topics.query.input_topic import admitted
from topics.query.record import read_beginning
from topics.state import TopicState
from workbench.duckdb_streams import PulledStream, unwrapped_errors
from workbench.left_folders import working_folder
from workbench.verify.core import DUE_WITHIN, Recomputation
from workbench.verify.input.messages import input_row, rejected_row
from workbench.verify.inputs import (
    INPUT_SCHEMA,
    REJECTED_SCHEMA,
    Clocks,
    CommittedInput,
    LogBegins,
    gone_below,
)
from workbench.verify.rejected.skips import SkippedOffsets
from workbench.verify.report import Report

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_LEADS = (0.0, 0.2, 0.4)
"""The `lead` of each try (`_beginnings`). There is another try if records were deleted while they were read.
"""


def verify(
    settings: Settings,
    *,
    limit: int = 20,
    due_within: float = DUE_WITHIN,
    progress: Callable[[int], None] | None = None,
    waiting: Callable[[Report], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    """Recompute and compare everything the partitioner has committed.

    limit: how many differences of each kind to keep. due_within: for how many seconds a due window may be
    missing while the input runs. verify waits that long for results. progress: called with the number of
    records read so far. waiting: called before each pause with what is known by then. clock, sleep: seconds.
    Raises ServiceError (broker, topics), IncompatibleStateError (another query's state, with what changed),
    ConfigError (no such input topic, or a sink that does not read back), DataLossError (records were deleted
    while they were read, again and again, or the committed offsets are gone).
    """
    sink = sink_of(settings)
    sink.check_reading(settings)
    settings = admitted(settings)
    compared = partial(
        _compared, settings, sink, limit, due_within, progress, waiting, clock=clock, sleep=sleep
    )
    for lead in _LEADS[:-1]:
        try:
            return compared(lead=lead)
        except reader.DeletedRecordsError as error:
            log.info("%s meanwhile; verify begins anew, further from what is deleted next", error.message)
    return compared(lead=_LEADS[-1])


def _compared(
    settings: Settings,
    sink: ResultSink,
    limit: int,
    due_within: float,
    progress: Callable[[int], None] | None,
    waiting: Callable[[Report], None] | None,
    *,
    lead: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Report:
    """One try. lead: as of `_beginnings`. The rest is that of `verify`."""
    began, pause = clock(), _FIRST_PAUSE
    skipped = SkippedOffsets()
    # Read before the offsets, so that a query that begins in between does not look like a loss.
    begun = read_beginning(settings.origin)
    committed = read_committed(settings, begun)
    with (
        working_folder(_cache(), "verify-") as scratch,
        _recomputed(
            settings, committed, begun, limit, scratch, lead=lead, skipped=skipped, progress=progress
        ) as due,
    ):
        while True:
            # The end of the results is fixed here, and the marks are read below. The other way round, a
            # window that was closed and written in between would look as if it had been written too early.
            written = _results(sink, settings)
            waited = clock() - began
            with unwrapped_errors(written):
                report = due.compare(
                    written if isinstance(written, pa.Table) else written.reader,
                    begins=lambda: sink.begins(settings),
                    now=min(state.mark for state in read_committed(settings, begun)),
                    seconds=waited,
                    bound=due_within,
                    repeats=sink.repeats,
                )
            if report.settled or waited >= due_within:
                return replace(report, unread=_unread(settings, committed), skipped=skipped.below(committed))
            if waiting is not None:
                waiting(report)
            sleep(min(pause, due_within - waited))
            pause = min(2 * pause, _LONGEST_PAUSE)


def read_committed(settings: Settings, begun: Beginning | None) -> list[CommittedInput]:
    """Committed state of every input partition. Waits while a transaction is pending.

    begun: how the query began, as it was read before. Raises DataLossError if an offset is gone although it
    has begun, or if the input's log ends before it.
    """
    topic, state = settings.topic("input"), _described(settings, "input")
    states = []
    # Nothing was read of partitions that were added to the topic, and that the query has not taken in yet.
    read = [TopicPartition(topic, p) for p in sorted(state.begin) if begun is None or p in begun.begin]
    for entry in _committed_offsets(settings, read):
        if entry.offset < 0:
            if begun is not None:
                raise DataLossError(
                    f"query {settings.origin.query.name} has begun, at offset"
                    f" {begun.begin.get(entry.partition)} of {topic}[{entry.partition}],"
                    " but its committed offset is gone",
                    hint=GONE,
                )
            raise IncompatibleStateError(
                f"the partitioner has committed nothing for {topic}[{entry.partition}]",
                hint="verify checks what the partitioner has read: has it been started for this query?",
            )
        decoded = PartitionState.decode(entry.metadata, offset=entry.offset)
        if decoded.fingerprint != settings.origin.fingerprint:
            raise IncompatibleStateError(
                f"{topic}[{entry.partition}] was read for query {decoded.fingerprint}, but the settings"
                f" describe query {settings.origin.fingerprint}",
                hint="verify with the settings that the pipeline ran with",
            )
        if decoded.topic_id != state.topic_id:
            raise IncompatibleStateError(
                f"{topic} was deleted and created again since the partitioner read it",
                hint="give the query a new name, or remove what it left with `evenflow reset`",
            )
        # Where the query began is written once. A later beginning would hide what lies before it.
        begin = None if begun is None else begun.begin.get(entry.partition)
        states.append(CommittedInput.of(entry.partition, decoded, settings.query, begin=begin))
    _refuse_truncated(settings, state, states)
    return states


def _refuse_truncated(settings: Settings, before: TopicState, committed: list[CommittedInput]) -> None:
    """Raise DataLossError if the log of an input partition ends before what was read of it.
    before: as it was earlier.
    """
    if all(state.offset <= before.end[state.partition] for state in committed):
        return
    now = _described(settings, "input")  # the log may have grown since then
    for state in committed:
        end = now.end[state.partition]
        if state.offset > end:
            raise DataLossError(
                f"{now.name}[{state.partition}] ends at offset {end}, but the partitioner has read it up to"
                f" {state.offset}: its last records are gone",
                hint="the topic was truncated: see 'Rebuild after data loss' in docs/operations/data-loss.md",
            )


def _committed_offsets(settings: Settings, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """The group's committed offsets.
    The broker is asked again while a pending transaction holds the answer back.
    """
    group = data_plane_group(settings)
    asker = clients.consumer(settings.kafka, group=group)
    deadline = time.monotonic() + clients.seconds(settings.kafka)
    try:
        return committed_offsets(asker, partitions, lambda: time.monotonic() >= deadline)
    except StopRequested as error:
        raise ServiceError(
            f"reading the committed offsets of {group}: {error}", hint="is the broker up?"
        ) from None
    except KafkaException as error:
        raise clients.service_error(
            error, settings.kafka, f"reading the committed offsets of {group}"
        ) from None
    finally:
        asker.close()


def _recomputed(
    settings: Settings,
    committed: list[CommittedInput],
    begun: Beginning | None,
    limit: int,
    scratch: Path,
    *,
    lead: float,
    skipped: SkippedOffsets,
    progress: Callable[[int], None] | None,
) -> Recomputation:
    left = _beginnings(_described(settings, "input").begin, committed, lead)
    # Records before the place where the query began are no part of the query.
    begin = {state.partition: max(left.get(state.partition, 0), state.begin) for state in committed}
    log_starts = LogBegins(
        inputs=gone_below(left, committed), rejected=_described(settings, "rejected").begin
    )
    # All rejected records are read before the first input record, so these are known by then.
    inputs = PulledStream(_inputs(settings, committed, begin, skipped, progress), INPUT_SCHEMA)
    rejected = PulledStream(_rejected(settings, log_starts, skipped), REJECTED_SCHEMA)
    with unwrapped_errors(inputs, rejected):
        return Recomputation(
            settings,
            inputs.reader,
            rejected.reader,
            committed,
            log_starts=log_starts,
            clocks=Clocks(begun=None if begun is None else begun.began_at, now=int(time.time() * 1000)),
            limit=limit,
            scratch=scratch,
        )


def _beginnings(left: Mapping[int, int], committed: list[CommittedInput], lead: float) -> dict[int, int]:
    """Where reading begins, by partition of the input.

    left: the first offsets that there are. lead: the share of what was read and is left that counts as gone
    where something is gone. Retention deletes it next, perhaps while it is read.
    """
    states = {state.partition: state for state in committed}
    return {
        partition: (
            first + int(lead * max(0, states[partition].offset - first))
            if partition in states and first > states[partition].begin
            else first
        )
        for partition, first in left.items()
    }


def _inputs(
    settings: Settings,
    committed: list[CommittedInput],
    begin: Mapping[int, int],
    skipped: SkippedOffsets,
    progress: Callable[[int], None] | None,
) -> Iterator[pa.RecordBatch]:
    ends = {state.partition: state.offset for state in committed}
    read = 0
    for starts, stops in skipped.around(begin, ends):
        records = reader.read_range(settings.kafka, settings.topic("input"), begin=starts, end=stops)
        for batch in reader.record_batches(records, INPUT_SCHEMA, input_row):
            read += batch.num_rows
            if progress is not None:
                progress(read)
            yield batch
    yield from skipped.rows(begin, ends)


def _rejected(settings: Settings, log_starts: LogBegins, skipped: SkippedOffsets) -> Iterator[pa.RecordBatch]:
    topic = settings.topic("input")
    records = reader.read_range(settings.kafka, settings.topic("rejected"), begin=log_starts.rejected)
    for batch in reader.record_batches(records, REJECTED_SCHEMA, lambda record: rejected_row(record, topic)):
        skipped.note(batch)
        yield batch


def _results(sink: ResultSink, settings: Settings) -> PulledStream | pa.Table:
    rows = sink.read_back(settings)
    return PulledStream(rows, rows.schema) if isinstance(rows, pa.RecordBatchReader) else rows


def _unread(settings: Settings, committed: list[CommittedInput]) -> int:
    """Number of input offsets at or after the committed ones.
    Transaction markers take offsets too, and count.
    """
    end = _described(settings, "input").end
    return sum(max(0, end.get(state.partition, 0) - state.offset) for state in committed)


def _described(settings: Settings, role: TopicRole) -> TopicState:
    topic = settings.topic(role)
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        raise ServiceError(f"topic {topic} does not exist", hint="see `evenflow doctor`")
    return state


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "evenflow"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
