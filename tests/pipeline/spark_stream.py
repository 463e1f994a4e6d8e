"""A small stream for the Spark tests: frames written as the partitioner writes them, and what must come out.

Values are dyadic, so that sums are equal in every order and equality can be demanded to the last bit.
"""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.telemetry import BatchRecord, Telemetry, parse
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire import MARKS, OFFSETS, FrameHeader, encode_frame, records_of
from spark_consumers.application import run
from spark_consumers.checkpoints.runs import newest_local_run
from spark_consumers.sinks import sink_of
from topics import admin, clients, reader

SLOW = {"combine_wait": 20_000}
"""Microseconds for each tuple: a micro-batch takes so long that a driver is sure to be stopped within it."""
Row = tuple[int, bytes, int | None, float | None]
Result = dict[tuple[int, bytes], dict[str, Any]]
KEYS = [b"", b"a", b"b", "Zürich".encode(), b'q"uo\\te', b"\xff\x00\x01", b"line\nfeed", b"d", b"e"]
ALL = {"n": "count", "total": "sum(f)", "avg": "mean(i)", "lo": "min(i)", "hi": "max(f)"}
INTEGERS = {"n": "count", "total": "sum(i)", "avg": "mean(i)"}


def make_settings(kafka: KafkaSettings, name: str, folder: Path, **parts: Any) -> Settings:
    """A query of 4 s windows sliding by 1 s over 2 input and 3 routed partitions; keys are any bytes."""
    query: dict[str, Any] = {
        "name": name,
        "key": "@key",
        "window": "4s",
        "slide": "1s",
        "types": {"i": "int64"},
    }
    query["aggregates"] = ALL
    spark = {"checkpoint": str(folder / "checkpoint"), "batch_interval": 100, "max_frames_per_batch": 30}
    settings = load_settings(
        query=query | parts.pop("query", {}),
        input={"partitions": 2} | parts.pop("input", {}),
        kafka=kafka.model_dump(exclude_unset=True),
        partitioner={"workers": 3} | parts.pop("partitioner", {}),
        spark=spark | parts.pop("spark", {}),
        **parts,
    )
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
    return settings


class Stream:
    """Writes frames, one transaction per block, and remembers every row."""

    def __init__(self, settings: Settings, *, seed: int = 1, keys: Sequence[bytes] = KEYS) -> None:
        self.settings = settings
        self.plan = AggregatePlan.of(settings.query)
        self.rows: list[Row] = []
        self._random = random.Random(seed)
        self._keys = keys
        self._pane = 1_000_000
        self._offset = 0  # one block is one input offset, and one frame for each worker
        self._session = seed + 1
        self._producer = clients.producer(settings.kafka, transactional_id=f"{settings.query.name}-{seed}")
        self._producer.init_transactions()

    def write(self, blocks: int, *, rows: int = 40, gap: int = 0) -> None:
        """Blocks of rows a little out of order, each in a transaction of its own; event time moves on a
        pane each.
        """
        for _ in range(blocks):
            draw = self._random
            block = [
                (self._pane + draw.randint(0, 2), draw.choice(self._keys), draw.choice([None,
                draw.randint(-99, 99)]),
                 draw.choice([None, draw.randint(-999, 999) / 8]))
                for _ in range(rows)
            ]  # fmt: skip
            self._send(block, self._pane * self.settings.query.slide_ms)
            self._pane += 1
        self._pane += gap

    def write_rows(self, rows: list[Row]) -> None:
        """These rows, relative to the present pane."""
        moved = [(self._pane + pane, key, i, f) for pane, key, i, f in rows]
        self._send(moved, self._pane * self.settings.query.slide_ms)

    def lose_a_block(self, routed: int) -> None:
        """A block of one row a worker, as it looks once the broker has lost what one routed partition got."""
        self._send([(self._pane, b"x" * n, 1, None) for n in range(6)], NO_MARK, lost=routed)

    def end(self) -> None:
        """The end of every input partition, to every routed partition."""
        self._send([], END_MARK)

    def _send(self, rows: list[Row], mark: int, *, lost: int | None = None) -> None:
        inputs, routed = self.settings.input_partitions, self.settings.routed_partitions
        self._producer.begin_transaction()
        for number in range(routed):
            mine = [row for at, row in enumerate(rows) if (at + len(row[1])) % routed == number]
            columns = {"pane": [r[0] for r in mine], "key": [r[1] for r in mine]}
            columns |= {"i": [r[2] for r in mine], "f": [r[3] for r in mine]}
            schema = self.plan.frame_schema
            batch = pa.record_batch(
                [pa.array(columns[f.name.removeprefix("v:")], f.type) for f in schema], schema=schema
            )
            header = FrameHeader(
                fingerprint=self.settings.fingerprint,
                epoch=0,
                input_partitions=inputs,
                routed_partitions=routed,
                offsets=records_of([(n, self._offset, self._offset) for n in range(inputs)], OFFSETS),
                marks=records_of([(n, mark, self._offset + 1) for n in range(inputs)], MARKS),
                session=self._session,
            )
            frame = encode_frame(batch, header, sequence=self._offset)
            if number != lost:
                self._producer.produce(self.settings.topic("routed"), frame, partition=number)
        self._producer.commit_transaction()
        self._offset += 1
        self.rows += rows

    def expected(self) -> Result:
        """Every window from plain dicts."""
        slide, window = self.settings.query.slide_ms, self.settings.query.window
        members: dict[tuple[int, bytes], list[Row]] = defaultdict(list)
        for row in self.rows:
            for last in range(row[0], row[0] + window // slide):
                members[(last + 1) * slide - window, row[1]].append(row)
        results: Result = {}
        for at, rows in members.items():
            results[at] = {}
            for label, function, call in self.plan.outputs:
                values = [row[2] if call.column == "i" else row[3] for row in rows]
                present = [value for value in values if value is not None]
                how: dict[str, Callable[[Any], Any]] = {
                    "sum": sum, "min": min, "max": max, "mean": lambda v: float(sum(v)) / len(v)
                }  # fmt: skip
                value = how[function.name](present) if function.name != "count" and present else None
                if isinstance(value, int) and not -(2**63) <= value < 2**63:
                    value = None
                results[at][label] = len(rows) if function.name == "count" else value
        return results


def results(settings: Settings) -> tuple[Result, int]:
    """Rows of the results topic by (window start, key), and how many records hold them; repeated ones are
    equal.
    """
    result: Result = {}
    records = 0
    for batch in reader.read_range(settings.kafka, settings.topic("results")):
        for message in batch:
            records += 1
            at, row = result_row(settings, message.value())
            assert (message.key() or b"") == at[1]
            assert result.setdefault(at, row) == row, "a repeated row differs"
    return result, records


def telemetry(settings: Settings) -> list[Telemetry]:
    """Every record of it; each is one that we read."""
    blocks = reader.read_range(settings.kafka, settings.topic("telemetry"))
    return [parse(message.value()) for block in blocks for message in block]


def told(settings: Settings) -> list[BatchRecord]:
    """The records of finished micro-batches."""
    return [record for record in telemetry(settings) if isinstance(record, BatchRecord)]


def result_row(settings: Settings, text: bytes) -> tuple[tuple[int, bytes], dict[str, Any]]:
    """(window start, key) of a JSON row, and its aggregates."""
    row = json.loads(text)
    if len(settings.query.result_keys) > 1:
        parts = [row.pop(name) for name in settings.query.result_keys]
        key = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
    else:
        key = as_bytes(row.pop("key")) if "key" in row else base64.b64decode(row.pop("key_base64"))
    at = (row.pop("window_start"), key)
    assert row.pop("window_end") - at[0] == settings.query.window
    return at, row


def as_bytes(key: int | str | bytes) -> bytes:
    """A typed key as the partitioner writes it."""
    return key if isinstance(key, bytes) else str(key).encode()


def consumed(settings: Settings, stage: str, role: str) -> bool:
    """Whether the stage has committed everything that its topic holds now."""
    state = admin.describe(settings.kafka, [settings.topic(role)])[settings.topic(role)]
    return sum(committed(settings, stage).values()) >= sum(state.end.values())


def committed(settings: Settings, stage: str) -> dict[str, int]:
    """Next offset of each partition of the stage's topic by its last commit."""
    folder = run_folder(settings, stage)
    batches = [int(file.name) for file in (folder / "commits").glob("[0-9]*")]
    if not batches:
        return {}
    offsets = json.loads((folder / "offsets" / str(max(batches))).read_text().splitlines()[2])
    return offsets[settings.topic("partials" if stage == "reduce" else "routed")]


def run_folder(settings: Settings, stage: str) -> Path:
    """Folder of the newest run of the stage, whose checkpoint is on this machine."""
    return newest_local_run(Path(settings.spark.checkpoint) / settings.query.name / stage)


def with_spark(settings: Settings, spark: dict[str, Any]) -> Settings:
    """The same settings but for these of Spark."""
    return settings.model_copy(update={"spark": settings.spark.model_copy(update=spark)})


def run_until(
    settings: Settings, done: Callable[[], bool], stages: tuple[str, ...] = ("combine", "reduce")
) -> None:
    """Run in this process until `done` says so, then stop gracefully."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def watch() -> None:
        try:
            while not stop.wait(0.2):
                if done():
                    stop.set()
        except BaseException as error:
            failed.append(error)
            stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run(settings, stages, stop_event=stop)
    finally:
        stop.set()
        watcher.join()
    if failed:
        raise failed[0]


def start(settings: Settings, log: Path, *words: str) -> Popen[bytes]:
    """The command line in a process group of its own, with these settings in its environment."""
    environment = dict(os.environ)
    for section in ("query", "input", "kafka", "partitioner", "spark", "control", "results"):
        fields = getattr(settings, section).model_dump(mode="json", exclude_unset=True)
        if section == "query":
            fields["aggregates"] = {name: str(spec) for name, spec in settings.query.aggregates.items()}
        environment[f"EVENFLOW_{section.upper()}"] = json.dumps(fields)
    code = "import sys; from cli.main import run; sys.argv[0] = 'evenflow'; run()"
    with log.open("ab") as out:
        return Popen(
            [sys.executable, "-c", code, *words],
            env=environment, stdout=out, stderr=out, start_new_session=True, cwd=log.parent,
        )  # fmt: skip


@contextmanager
def driver(settings: Settings, log: Path, *words: str) -> Iterator[Popen[bytes]]:
    """The command line in processes of its own, which are all gone at the end."""
    process = start(settings, log, *words)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def written_rows(settings: Settings) -> Counter[tuple[Any, ...]]:
    """Each row of the results by (window start, key, number of tuples), and how often it is there."""
    if settings.results.sink == "kafka":
        return Counter((*at, row["n"]) for at, row in results(settings)[0].items())
    table = sink_of(settings).read_back(settings).read_all()
    millis = table["window_start"].cast("timestamp[ms]").cast("int64") if "timestamp" in str(
        table["window_start"].type
    ) else table["window_start"]  # fmt: skip
    return Counter(zip(millis.to_pylist(), table["key"].to_pylist(), table["n"].to_pylist(), strict=True))


def expected_rows(stream: Stream) -> set[tuple[Any, ...]]:
    """(window start, key, number of tuples) of every row of a direct aggregation."""
    return {(*at, row["n"]) for at, row in stream.expected().items()}
