"""What the end-to-end tests share: a stream with everything in it, the services as processes, and the truth.

The truth is brute force over the records as they were written: plain dicts, one pass per window, nothing of
evenflow. It is compared with what stands in the results and rejected topics; `verify` has to agree as well.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from evenflow.settings import KafkaSettings, Query, Settings, load_settings
from evenflow.wire.markers import EndOfStream
from partitioner_service.kafka.committed_state import committed_states, data_plane_group
from spark_consumers.checkpoints.runs import newest_local_run
from tests.patience import PATIENCE, wait_for
from tests.pipeline.routed import create_topics, rejections
from tests.pipeline.spark_stream import Result, results
from topics import clients
from workbench.local.processes import ChildProcess
from workbench.verify.report import Report
from workbench.verify.shell import verify

BEGIN = 1_700_000_000_000
ALL = {
    "n": "count", "i_sum": "sum(i)", "i_mean": "mean(i)", "i_min": "min(i)", "i_max": "max(i)",
    "f_sum": "sum(f)", "f_mean": "mean(f)", "f_min": "min(f)", "f_max": "max(f)", "g_sum": "sum(g)",
}  # fmt: skip
INVERTIBLE = {"n": "count", "i_sum": "sum(i)", "i_mean": "mean(i)"}
ODD_KEYS = [b"", b"\xff\x00\x01", "Zürich".encode(), b'q"uo\\te', b"line\nfeed", b"null"]
LARGE_KEYS = [b"m" * 65_536, b"m" * 65_535 + b"n"]
"""The longest keys that are taken."""
POISON = [
    b"{", b"", b"\xff\xfe", b"[1,2]", b"null", b'{"i":1}', b'{"t":"soon","i":1}', b'{"t":1.5,"i":1}',
    b'{"t":null}', b'{"t":99999999999999999999}', b'{"t":1700000000000,"i":"one"}',
    b'{"t":1700000000000,"i":12345678901234567890}', b'{"t":1700000000000,"i":[1]}',
]  # fmt: skip


def make_settings(kafka: Any, name: str, folder: Path, **parts: Any) -> Settings:
    """5 s windows sliding by 1 s over the raw record key; int column i, float columns f and g."""
    query = {
        "name": name, "key": "@key", "time": "t", "window": "5s", "slide": "1s", "types": {"i": "int64"},
        "out_of_orderness": "400ms", "allowed_lateness": "300ms", "aggregates": ALL,
    }  # fmt: skip
    parts["input"] = {"partitions": 4} | parts.get("input", {})
    partitioner = {"workers": 3, "block_tuples": 300, "commit_interval": 200}
    spark = {"checkpoint": str(folder / "checkpoint"), "batch_interval": 200, "max_frames_per_batch": 60}
    fields = kafka.model_dump(exclude_unset=True)
    if kafka.sasl_password is not None:
        fields["sasl_password"] = kafka.sasl_password.get_secret_value()
    settings = load_settings(
        query=query | parts.pop("query", {}),
        partitioner=partitioner | parts.pop("partitioner", {}),
        spark=spark | parts.pop("spark", {}),
        kafka=fields,
        input={"partitions": 4} | parts.pop("input", {}),
        **parts,
    )
    create_topics(settings)
    return settings


@dataclass(frozen=True)
class Record:
    """A record as written; `row` is what must be read from it, None if it is poison."""

    partition: int
    position: int
    key: bytes | None
    row: dict[str, Any] | None


class Stream:
    """Writes records of every kind to the input topic and remembers them."""

    def __init__(self, settings: Settings, *, seed: int = 1) -> None:
        self.settings = settings
        self.records: list[Record] = []
        self._random = random.Random(seed)
        self._clock = BEGIN
        self._written = Counter[int]()
        self._topic = settings.topic("input")
        self._client = clients.producer(settings.kafka)

    @property
    def now(self) -> int:
        """Event time up to which the stream is written, ms."""
        return self._clock

    def write(self, tuples: int, *, poison: bool = True, large: bool = False) -> None:
        """So many tuples, 100 a second of event time, a little out of order, some late, some unreadable."""
        draw = self._random
        for number in range(tuples):
            self._clock += 10
            partition = draw.randrange(self.settings.input_partitions)
            skewed = f"key{min(int(draw.paretovariate(0.7)), 40)}".encode()
            key: bytes | None = draw.choice(ODD_KEYS) if draw.random() < 0.1 else skewed
            if large and number in (10, 20, 30):
                key = LARGE_KEYS[number // 10 % 2]
            behind = draw.randint(0, 600) if draw.random() < 0.97 else draw.randint(3_000, 9_000)
            row = {"t": self._clock - behind} | {
                name: draw.choice([None, value, value])
                for name, value in (
                    ("i", draw.randint(-(10**12), 10**12)),
                    ("f", draw.randint(-(2**20), 2**20) / 8),
                    ("g", draw.uniform(-1e6, 1e6)),
                )
                if draw.random() < 0.95
            }
            value: bytes | None = self.encoded(row)
            if poison and draw.random() < 0.02:
                value, row = draw.choice(POISON), None
            elif poison and draw.random() < 0.005:
                key, row = None, None
            elif poison and draw.random() < 0.005:
                value, row = None, None
            self._send(partition, key, value, row)
        clients.flush(self._client, self.settings.kafka)

    def encoded(self, row: dict[str, Any]) -> bytes:
        """The value of the record for this row."""
        return json.dumps(row | {"unused": [1, {"x": "y"}]}).encode()

    def end(self) -> None:
        """The end-of-stream marker of the only producer in every partition."""
        for partition in range(self.settings.input_partitions):
            marker = EndOfStream(producer="t", tuples=self._written[partition])
            self._client.produce(self._topic, partition=partition, headers=marker.headers())
        clients.flush(self._client, self.settings.kafka)

    def _send(self, partition: int, key: bytes | None, value: bytes | None, row: Any) -> None:
        while True:
            try:
                self._client.produce(self._topic, value=value, key=key, partition=partition)
                break
            except BufferError:
                self._client.poll(0.1)
        self._client.poll(0)
        self._remember(partition, key, row)

    def _remember(self, partition: int, key: bytes | None, row: Any) -> None:
        self.records.append(Record(partition, self._written[partition], key, row))
        self._written[partition] += 1

    def judged(self) -> tuple[list[tuple[bytes, dict[str, Any]]], dict[tuple[int, int], str]]:
        """(key, row) of every tuple in time, and the reason of every other by its position."""
        query = self.settings.query
        largest: dict[int, int] = {}
        accepted, refused = [], {}
        for record in self.records:
            if record.row is None or record.key is None:
                refused[record.partition, record.position] = "unreadable"
                continue
            at = record.row["t"]
            mark = largest.get(record.partition, -(10**15)) - query.out_of_orderness - query.allowed_lateness
            if at - at % query.slide_ms + query.slide_ms <= mark:
                refused[record.partition, record.position] = "late"
                continue
            largest[record.partition] = max(at, largest.get(record.partition, at))
            accepted.append((record.key, record.row))
        return accepted, refused

    def expected(self) -> Result:
        """Every window by brute force."""
        return self.expected_of(self.settings.query)

    def expected_of(self, query: Query) -> Result:
        """Those of a view, too: what is late is late by the slide of the query that routes."""
        members: dict[tuple[int, bytes], list[dict[str, Any]]] = defaultdict(list)
        for key, row in self.judged()[0]:
            last = row["t"] - row["t"] % query.slide_ms
            for start in range(last - query.window + query.slide_ms, last + 1, query.slide_ms):
                members[start, key].append(row)
        return {at: _aggregated(query.aggregates, rows) for at, rows in members.items()}


def _aggregated(aggregates: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    how: dict[str, Callable[[list[Any]], Any]] = {
        "sum": lambda v: sum(v) if isinstance(v[0], int) else math.fsum(v),
        "mean": lambda v: (sum(v) if isinstance(v[0], int) else math.fsum(v)) / len(v),
        "min": min,
        "max": max,
    }
    result: dict[str, Any] = {}
    for name, spec in aggregates.items():
        present = [row[spec.column] for row in rows if row.get(spec.column) is not None]
        result[name] = (
            len(rows) if spec.function == "count" else how[spec.function](present) if present else None
        )
    return result


def assert_equal(found: Result, expected: Result) -> None:
    """Equal to the last bit; g, whose values are no binary fractions, within 1e-9 of its magnitudes."""
    assert found.keys() == expected.keys()
    for at, row in expected.items():
        got = dict(found[at])
        if row.get("g_sum") is not None:
            assert got.pop("g_sum") is not None
            assert math.isclose(found[at]["g_sum"], row["g_sum"], rel_tol=1e-9, abs_tol=1e-9 * 1e6 * row["n"])
            row = {name: value for name, value in row.items() if name != "g_sum"}
        assert got == row, (at, got, row)


def rejected_places(settings: Settings) -> dict[tuple[int, ...], str]:
    """The reason of every rejected record by its partition and offset, as of `Stream.judged`."""
    return {tuple(map(int, source.rsplit(":", 2)[1:])): reason for reason, source, _ in rejections(settings)}


def exported(settings: Settings, file: Path) -> Result:
    """Every row of a Parquet file that `export` has written, whatever the sink."""
    return {
        (round(row["window_start"].timestamp() * 1000), row["key"]): {
            name: row[name] for name in settings.query.aggregates
        }
        for row in pq.read_table(file).to_pylist()
    }


def assert_exact(stream: Stream, found: Result | None = None) -> Report:
    """The topics hold exactly the truth, and `verify` says so. `found`: results read otherwise than from
    Kafka.
    """
    settings = stream.settings
    accepted, refused = stream.judged()
    assert_equal(results(settings)[0] if found is None else found, stream.expected())
    assert rejected_places(settings) == refused
    report = verify(settings)
    assert report.exact, report.text()
    assert report.ended
    assert (report.routed, report.rejected) == (len(accepted), len(refused))
    return report


class Pipeline:
    """The services of one query, each `evenflow --config FILE ...` in a process of its own; all end with
    the block.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.file = folder / "evenflow.toml"
        self.file.write_text(as_toml(settings), encoding="utf-8")
        self.running: dict[str, ChildProcess] = {}

    def start(self, *words: str, name: str | None = None) -> ChildProcess:
        """Start a service; `name` (default: the command) is what the other methods call it."""
        name = name or words[0]
        child = evenflow(self.file, self.folder / f"{name}.log", *words)
        self.running[name] = child
        return child

    def start_instances(self, *words: str, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Start these instances of the partitioner (default: as many as the settings say, 0 the first).
        The other methods call each by its own name. Returns the names.
        """
        started = tuple(map(str, range(self.settings.partitioner.instances)) if names is None else names)
        for name in started:
            self.start("partition", "--instance", name, *words, name=name)
        return started

    def kill(self, name: str) -> None:
        """SIGKILL, as the kernel's out-of-memory killer would."""
        assert self.running.pop(name).kill() == -9

    def stop(self, name: str, *, grace: float = 30.0) -> None:
        """SIGTERM; it must end by itself with 0 within the grace period."""
        child = self.running.pop(name)
        assert child.terminate(grace * PATIENCE) == 0, child.output()

    def finish(self, *names: str, timeout: float = 150.0) -> None:
        """Wait until these (default: all) have ended by themselves with 0."""
        deadline = time.monotonic() + timeout * PATIENCE
        for name in names or tuple(self.running):
            child = self.running[name]
            try:
                status = child.wait(max(1.0, deadline - time.monotonic()))
            except Exception as error:
                everything = {other: process.tail(15) for other, process in self.running.items()}
                raise AssertionError(f"{error}\n{everything}") from None
            assert status == 0, f"{name}: {child.output()[-4000:]}"
            del self.running[name]

    def run_to_the_end(self, *partition: str, until: float = 150.0) -> None:
        """Partition and aggregate until the input has ended and every window is emitted."""
        self.start("partition", "--until-ended", *partition)
        self.start("aggregate", "--until-ended")
        self.finish(timeout=until)

    def wait_until(self, condition: Callable[[], Any], *, timeout: float = 90.0) -> None:
        """Poll; none of the services may end meanwhile."""

        def reached() -> bool:
            if condition():
                return True
            for name, child in self.running.items():
                assert child.alive, f"{name} ended: {child.output()[-4000:]}"
            return False

        wait_for(reached, lambda: {n: c.tail(15) for n, c in self.running.items()}, timeout=timeout)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self.running.values():
            child.kill()


def evenflow(file: Path | None, log: Path, *words: str) -> ChildProcess:
    """The command line in a process of its own, in the log's folder."""
    config = () if file is None else ("--config", str(file))
    return ChildProcess(
        [str(Path(sys.executable).parent / "evenflow"), *config, *words],
        log=log,
        name=words[0],
        env=os.environ | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
        cwd=log.parent,
    )


def as_toml(settings: Settings) -> str:
    """The settings file a user would write."""
    sections = settings.model_dump(mode="json", exclude_unset=True)
    sections["query"]["aggregates"] = {name: str(spec) for name, spec in settings.query.aggregates.items()}
    for name, seen in settings.query.views.items():
        written = sections["query"]["views"][name]
        written["aggregates"] = {label: str(spec) for label, spec in seen.aggregates.items()}
    if settings.kafka.sasl_password is not None:
        sections["kafka"]["sasl_password"] = settings.kafka.sasl_password.get_secret_value()
    lines = []
    for section, fields in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{json.dumps(name)} = {_toml(inner)}" for name, inner in value.items()) + " }"
        )
    return json.dumps(value)


@cache
def _client(kind: str, kafka: str, group: str) -> Any:
    settings = KafkaSettings.model_validate_json(kafka)
    if kind == "admin":
        return clients.admin(settings)
    return clients.consumer(settings, group=group, isolation_level="read_uncommitted")


def _kept(kind: str, settings: Settings) -> Any:
    """One client for all the polling."""
    fields = settings.kafka.model_dump(mode="json", exclude_unset=True)
    if settings.kafka.sasl_password is not None:
        fields["sasl_password"] = settings.kafka.sasl_password.get_secret_value()
    return _client(kind, json.dumps(fields), data_plane_group(settings))


_NOT_YET = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
"""What a broker answers about a group while it begins to coordinate it."""


def owners(settings: Settings) -> list[int]:
    """How many input partitions each member of the data plane's group owns, ascending. Empty while a new
    broker has nobody who knows of groups.
    """
    group = data_plane_group(settings)
    try:
        result = _kept("admin", settings).describe_consumer_groups([group])[group].result(timeout=10)
    except KafkaException as error:
        if error.args[0].code() in _NOT_YET:
            return []
        raise
    return sorted(len(member.assignment.topic_partitions) for member in result.members if member.assignment)


def committed(settings: Settings) -> int:
    """Tuples that the partitioner has committed as read."""
    return sum(state.read for state in committed_states(_kept("consumer", settings), settings).values())


def has_ended(settings: Settings) -> bool:
    """Whether the partitioner has committed the end of every input partition."""
    states = committed_states(_kept("consumer", settings), settings)
    return len(states) == settings.input_partitions and all(state.ended for state in states.values())


def transaction_is_open(settings: Settings) -> bool:
    """Whether the routed topic holds frames of a transaction that is neither committed nor aborted."""
    client = _kept("admin", settings)
    name = settings.topic("routed")
    wanted = {TopicPartition(name, p): OffsetSpec.latest() for p in range(settings.routed_partitions)}
    seen = []
    for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        answers = client.list_offsets(wanted, isolation_level=isolation, request_timeout=10)
        seen.append({part.partition: future.result().offset for part, future in answers.items()})
    return any(seen[0][number] < seen[1][number] for number in seen[0])


def batch_is_running(settings: Settings, stage: str) -> bool:
    """Whether Spark is within a micro-batch: its offsets are planned, its end is not committed."""
    folder = newest_local_run(Path(settings.spark.checkpoint) / settings.query.name / stage)
    planned, done = (
        {int(file.name) for file in (folder / name).glob("[0-9]*") if file.name.isdigit()}
        for name in ("offsets", "commits")
    )
    return bool(planned - done)


def batches_done(settings: Settings, stage: str) -> int:
    """Micro-batches that Spark has committed."""
    folder = newest_local_run(Path(settings.spark.checkpoint) / settings.query.name / stage)
    return sum(1 for file in (folder / "commits").glob("[0-9]*"))
