"""Spark's structured streaming as far as exactness depends on it: its protocol, and the few calls that
evenflow makes.

A micro-batch is planned (`offsets/N`), its tasks run and may be repeated, the new version of the state is
saved, and it is committed (`commits/N`). A start repeats a micro-batch that was planned and not committed,
from the same offsets and the same version of the state. What tasks write is at least once.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa

from evenflow.errors import DataLossError, EvenflowError
from spark_consumers.labels import bucket_labels
from spark_consumers.reducer import MapOfBytes
from tests.faults.model.broker import Broker
from tests.faults.model.files import Files, MemoryFolder
from tests.faults.model.log import Entry

_ROUTED = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])


class Concurrent(EvenflowError):
    """Spark found the file of a micro-batch that another driver has written."""


@dataclass
class Storage:
    """What outlives a driver: files. A version of a bucket's state is a file of its checkpoint.

    piece: how often a micro-batch takes a part of what there is. watched: whether drivers look at the ids of
    their topics. A look is a call, and most runs have no topic that is made again.
    """

    files: Files
    piece: float = 0.3
    watched: bool = False


class Spark:
    """A driver's session. fails: how many of the next tasks fail after they have done their work."""

    def __init__(self, broker: Broker, storage: Storage, name: str) -> None:
        self.broker = broker
        self.storage = storage
        self.files = storage.files
        self.name = name
        self.fails = 0
        self.queries: list[Query] = []
        self.sparkContext = SimpleNamespace(
            setLocalProperty=lambda *_: None, defaultParallelism=2, applicationId=name
        )

    @property
    def readStream(self) -> _Reader:  # noqa: N802
        return _Reader(self)


@dataclass
class _Reader:
    spark: Spark
    named: dict[str, Any] = field(default_factory=dict)

    def format(self, _: str) -> _Reader:
        return self

    def options(self, **options: Any) -> _Reader:
        self.named |= options
        return self

    def option(self, name: str, value: Any) -> _Reader:
        self.named[name] = value
        return self

    def load(self) -> Frame:
        most = int(self.named["maxOffsetsPerTrigger"])
        return Frame(self.spark, self.named["subscribe"], self.named["startingOffsets"], most)


@dataclass(frozen=True)
class Frame:
    """A stream of rows and what is done with them.

    combine: of the combiner's tasks. merge: of the reduce tasks. processor: of the reducer's.
    """

    spark: Spark
    topic: str
    starting: str
    most: int
    combine: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]] | None = None
    merge: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]] | None = None
    processor: Any = None
    more: Any = None

    def select(self, *_: Any) -> Frame:
        return self

    def selectExpr(self, *_: Any) -> Frame:  # noqa: N802
        return self

    def coalesce(self, _: int) -> Frame:
        return self

    def mapInArrow(self, task: Any, _: str) -> Frame:  # noqa: N802
        return replace(self, merge=task) if self.combine else replace(self, combine=task)

    def repartition(self, _: int, column: str) -> Frame:
        assert column == "label", "rows go by their label, as the model of the reduce tasks has it"
        return self

    def groupBy(self, _: str) -> Frame:  # noqa: N802
        return self

    def transformWithStateInPandas(self, *, statefulProcessor: Any, **_: Any) -> Frame:  # noqa: N802, N803
        return (
            replace(self, more=statefulProcessor)
            if self.processor
            else replace(self, processor=statefulProcessor)
        )

    @property
    def writeStream(self) -> _Writer:  # noqa: N802
        return _Writer(self)


@dataclass
class _Writer:
    frame: Frame
    checkpoint: str = ""
    batches: Callable[[Any, int], object] | None = None

    def queryName(self, _: str) -> _Writer:  # noqa: N802
        return self

    def outputMode(self, _: str) -> _Writer:  # noqa: N802
        return self

    def option(self, name: str, value: Any) -> _Writer:
        if name == "checkpointLocation":
            self.checkpoint = value
        return self

    def trigger(self, **_: Any) -> _Writer:
        return self

    def foreachBatch(self, batches: Callable[[Any, int], object]) -> _Writer:  # noqa: N802
        self.batches = batches
        return self

    def start(self) -> Query:
        query = Query(self)
        self.frame.spark.queries.append(query)
        return query


class Query:
    """A running query. `trigger` runs one micro-batch."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer
        self._frame = writer.frame
        self._spark = writer.frame.spark
        self._world = self._spark.broker.world
        self._folder = MemoryFolder(self._spark, writer.checkpoint)
        self.isActive = True
        planned, committed = self._last("offsets"), self._last("commits")
        self._batch = planned if planned > committed else planned + 1
        self._again = planned > committed

    def exception(self) -> None:
        return None

    def trigger(self) -> bool:
        """Run a micro-batch if there is anything to read. Whether there was."""
        begin = self._offsets(self._batch - 1)
        if self._again:
            end = self._offsets(self._batch)
        else:
            end = self._world.call("latest", lambda: self._latest(begin))
            if end == begin:
                return False
            self._create(f"offsets/{self._batch}", self._text(end), "plan batch")
        self._note("batch", f"{self._batch}{' again' if self._again else ''} {begin} to {end}")
        self._spark.broker.note_results()
        self._run(begin, end)
        self._commit()
        self._again = False
        self._batch += 1
        return True

    # ---- planning

    def _last(self, log: str) -> int:
        return max((int(name) for name in self._folder.names(log) if name.isdigit()), default=-1)

    def _offsets(self, batch: int) -> dict[int, int]:
        text = self._folder.read(f"offsets/{batch}")
        if text is not None:
            (offsets,) = json.loads(text.splitlines()[2]).values()
            return {int(number): offset for number, offset in offsets.items()}
        logs = self._logs()
        if self._frame.starting == "earliest":
            return {log.number: log.begin for log in logs}
        (starting,) = json.loads(self._frame.starting).values()
        return {int(number): offset for number, offset in starting.items()}

    def _text(self, offsets: dict[int, int]) -> str:
        topics = {self._frame.topic: {str(number): offset for number, offset in offsets.items()}}
        return f"v1\n{{}}\n{json.dumps(topics)}"

    def _logs(self) -> list[Any]:
        return self._spark.broker.topics[self._frame.topic].logs

    def _latest(self, begin: dict[int, int]) -> dict[int, int]:
        """The end of the next micro-batch: what is committed now, or less of it."""
        draw = self._world.random
        most = self._frame.most if draw.random() >= self._spark.storage.piece else draw.randint(1, 5)
        end = {}
        for log in self._logs():
            if log.stable_end < begin[log.number]:
                raise _lost(log, f"ends at {log.stable_end}, and was read up to {begin[log.number]}")
            end[log.number] = min(log.stable_end, begin[log.number] + most)
        return end

    def _create(self, name: str, text: str, what: str) -> None:
        if not self._spark.files.create(f"{self._folder.location}/{name}", text, what):
            raise Concurrent(
                f"{name}: multiple streaming queries are concurrently using {self._folder.location}"
            )

    def _commit(self) -> None:
        self._create(f"commits/{self._batch}", "v1\n{}", "commit batch")
        self._note("committed", f"batch {self._batch}")

    # ---- running

    def _run(self, begin: dict[int, int], end: dict[int, int]) -> None:
        assert self._writer.batches is not None
        self._writer.batches(Rows(self, begin, end), self._batch)

    def each(
        self, begin: dict[int, int], end: dict[int, int], take: Callable[[int, list[pa.Table]], object]
    ) -> None:
        """Run the tasks of a micro-batch. take: gets the number and the rows of each task of the last
        stage.
        """
        frame = self._frame
        if frame.combine is None:
            blobs = {log.number: [e.value for e in self._read(log, begin, end)] for log in self._logs()}
        else:
            parts = self._combined(begin, end)
            if frame.merge is not None:
                parts = self._merged(frame.merge, parts)
            if frame.processor is None:
                for number, part in enumerate(parts):
                    self._task(lambda number=number, part=part: take(number, [part]))
                return
            blobs = _by_label(parts, len(self._labels()))
        draw = self._world.random
        leaders: list[bytes] = []
        for bucket in sorted(blobs, key=lambda _: draw.random()):
            if blobs[bucket] and frame.more is None:
                mine = partial(take, bucket)
                self._task(lambda bucket=bucket, mine=mine: self._reduce(bucket, blobs[bucket], mine))
            elif blobs[bucket]:
                leaders += self._task(lambda bucket=bucket: self._reduce(bucket, blobs[bucket], _blobs))
        if leaders:
            self._task(lambda: self._reduce(0, leaders, partial(take, 0), operator=1))

    def _labels(self) -> tuple[int, ...]:
        return bucket_labels(self._frame.processor._layout.buckets)

    def _task(self, work: Callable[[], object]) -> Any:
        """Run a task. It may fail after its work is done, and is then run once more."""
        self._world.call("run task", lambda: None)
        if self._spark.fails:
            self._spark.fails -= 1
            work()
            self._note("task", "failed after its work, and is repeated")
            self._world.call("run task", lambda: None)
        return work()

    def _read(self, log: Any, begin: dict[int, int], end: dict[int, int]) -> list[Entry]:
        first, last = begin[log.number], end[log.number]
        if first < last and (first < log.begin or last > log.end):
            raise _lost(log, f"holds {log.begin} to {log.end}, but {first} to {last} are needed")
        return [entry for entry in log.entries[first:last] if entry.visible()]

    def _combined(self, begin: dict[int, int], end: dict[int, int]) -> list[pa.RecordBatch]:
        draw, logs = self._world.random, self._logs()
        tasks = draw.randint(1, len(logs))
        groups: list[list[Any]] = [[] for _ in range(tasks)]
        for log in logs:
            groups[draw.randrange(tasks)].append(log)
        combine = self._frame.combine
        assert combine is not None

        def work(group: list[Any]) -> list[pa.RecordBatch]:
            batches = []
            for log in group:
                entries = self._read(log, begin, end)
                if entries:
                    columns = [
                        pa.array([log.number] * len(entries), pa.int32()),
                        pa.array([entry.offset for entry in entries], pa.int64()),
                        pa.array([entry.value for entry in entries], pa.binary()),
                    ]
                    batches.append(pa.RecordBatch.from_arrays(columns, schema=_ROUTED))
            return [part for part in combine(iter(batches)) if part.num_rows]

        return [part for group in groups if group for part in self._task(lambda group=group: work(group))]

    def _merged(self, merge: Any, parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Run the reduce tasks. Each gets the rows of its label in any order."""
        draw = self._world.random
        rows = [part.slice(at, 1) for part in parts for at in range(part.num_rows)]
        groups: dict[int, list[pa.RecordBatch]] = {}
        for row in draw.sample(rows, len(rows)):
            groups.setdefault(row["label"][0].as_py(), []).append(row)
        return [
            part for group in groups.values() for part in self._task(lambda group=group: list(merge(group)))
        ]

    def _reduce(
        self, bucket: int, blobs: list[bytes], take: Callable[[list[pa.Table]], Any], operator: int = 0
    ) -> Any:
        """Run one group of rows of a stateful operator. take: gets its tables before its state is saved."""
        frame, folder = self._frame, f"state/{operator}/{bucket}"
        state = dict(self._version(folder))
        self._world.random.shuffle(blobs)
        processor = frame.more if operator else frame.processor
        answer = take(list(processor._tables(bucket, blobs, MapOfBytes(_Map(state)), processor._on_tally)))
        held, name = self._spark.files.held, f"{folder}/{self._batch + 1}.delta"
        self._world.call("save state", lambda: held.__setitem__(f"{self._folder.location}/{name}", state))
        return answer

    def _version(self, folder: str) -> dict[Any, Any]:
        """The state with which this micro-batch begins: the newest version in the folder that is not
        younger.
        """
        names = self._folder.names(folder)
        versions = [number for name in names if (number := int(name.partition(".")[0])) <= self._batch]
        return self._folder.read(f"{folder}/{max(versions)}.delta") if versions else {}

    def write(self, name: str, tables: list[pa.Table]) -> None:
        """Write rows to a topic as Spark's tasks do: without a transaction."""
        rows = [row for table in tables for row in _rows(table)]
        topic = self._spark.broker.topics[name]
        half = self._world.random.randint(0, len(rows))
        for some in (rows[:half], rows[half:]):
            if some:
                self._world.call("write rows", lambda some=some: [_append(topic, *row) for row in some])

    def _note(self, what: str, detail: str) -> None:
        self._world.history.note(self._world.now, self._spark.name, what, detail)


class Rows:
    """The rows of a micro-batch as `foreachBatch` gets them. Its tasks run when they are written."""

    def __init__(self, query: Query, begin: dict[int, int], end: dict[int, int]) -> None:
        self._query, self._begin, self._end = query, begin, end
        self._topic = ""
        self._header = b""
        self.buckets: set[int] = set()

    @property
    def write(self) -> Rows:
        return self

    def format(self, _: str) -> Rows:
        return self

    def options(self, **options: Any) -> Rows:
        self._topic = options.get("topic", self._topic)
        return self

    def save(self) -> None:
        """Write the rows to the topic that the options name."""
        self._query.each(
            self._begin,
            self._end,
            lambda _, tables: self._query.write(self._topic, [self._with_header(table) for table in tables]),
        )

    def with_header(self, header: bytes) -> Rows:
        """The rows with this in front of each value."""
        self._header = header
        return self

    def _with_header(self, table: pa.Table) -> pa.Table:
        if not self._header:
            return table
        values = pa.array([self._header + value for value in table["value"].to_pylist()], pa.binary())
        return table.set_column(table.schema.get_field_index("value"), "value", values)

    def parquet(self, path: str) -> None:
        """Write one file for each bucket that has rows, with the names that Spark gives."""
        folder = MemoryFolder(self._query._spark, path)

        def take(bucket: int, tables: list[pa.Table]) -> None:
            if tables:
                self.buckets.add(bucket)
                name = f"part-{bucket:05d}-{UUID(int=0)}-c000.snappy.parquet"
                folder.write(name, pa.concat_tables(tables))

        self._query.each(self._begin, self._end, take)


def _blobs(tables: list[pa.Table]) -> list[bytes]:
    return [blob for table in tables for blob in table["blob"].to_pylist()]


class _Map:
    """Spark's MapState over a dict."""

    def __init__(self, held: dict[Any, Any]) -> None:
        self._held = held

    def getValue(self, key: Any) -> Any:  # noqa: N802
        return self._held.get(key)

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self._held[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802
        self._held.pop(key, None)


def _by_label(parts: list[pa.RecordBatch], buckets: int) -> dict[int, list[bytes]]:
    blobs: dict[int, list[bytes]] = {bucket: [] for bucket in range(buckets)}
    for part in parts:
        for bucket, blob in zip(part["bucket"].to_pylist(), part["blob"].to_pylist(), strict=True):
            blobs[bucket].append(blob)
    return blobs


def _rows(table: Any) -> Iterable[tuple[Any, Any, Any]]:
    """(partition or None, key, value) of what is written to a topic."""
    names = table.schema.names
    if "blob" in names:
        columns = (table["bucket"], table["identity"], table["blob"])
        return zip(*(column.to_pylist() for column in columns), strict=True)
    number = table["partition"].to_pylist() if "partition" in names else [None] * table.num_rows
    return zip(number, table["key"].to_pylist(), table["value"].to_pylist(), strict=True)


def _append(topic: Any, number: int | None, key: bytes, value: Any) -> None:
    if number is None:
        number = zlib.crc32(key) % len(topic.logs)
    topic.logs[number].append(Entry(key, value.encode() if isinstance(value, str) else value, None, 0, None))


def _lost(log: Any, why: str) -> DataLossError:
    """As Spark fails with failOnDataLoss."""
    return DataLossError(f"{log.topic}[{log.number}] {why}")
