"""Every decoder of every topic takes any bytes (rule "any bytes"): one table, one list, and mutations of what
is valid.

A new decoder is one line in `DECODERS`: how to call it, what is valid, and what it may raise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow import elasticity, plans, telemetry
from evenflow.aggregates import AggregatePlan
from evenflow.elasticity.groups import GroupPlanner
from evenflow.errors import EvenflowError, IncompatibleStateError, ProtocolError
from evenflow.partitioners import create, exchange, restore
from evenflow.partitioners.dalton.messages import GlobalTable, SyncMessage
from evenflow.partitioners.evenflow.shared_loads import Loads, table_bytes, table_loads
from evenflow.partitioners.evenflow.shared_loads import from_bytes as loads_from_bytes
from evenflow.partitioners.snapshots import pack, unpack
from evenflow.plans import parse_plan
from evenflow.progress import PartitionState
from evenflow.settings import Query, Settings
from evenflow.settings.beginning import _VERSION as BEGINNING_VERSION
from evenflow.settings.beginning import as_recorded, parse_beginning
from evenflow.telemetry import PartitionerRecord
from evenflow.text.strict_json import NotStrict, read_object
from evenflow.twostep import json_rows, never_null, readable, readable_schema
from evenflow.wire import avro_rows, decode_blob, decode_frame
from evenflow.wire.markers import HEADER, EndOfStream
from evenflow.wire.result_frames import decode_results, encode_results
from evenflow.wire.sync import SyncRecord, decode_sync, encode_sync
from partitioner_service.begin.run_note import parse_run_note
from partitioner_service.kafka.side_records import parse_epoch
from partitioner_service.reading.parse import Parser
from spark_consumers.checkpoints.epoch import Holder
from spark_consumers.checkpoints.result_files import Owner
from spark_consumers.sinks import SINKS
from spark_consumers.sinks.avro import with_json
from spark_consumers.sinks.base import end_of
from tests.examples import examples
from tests.hostile import BYTES, with_a_wrong_number
from tests.unit.partitioner_service.kafka.test_unfetchable import Message
from tests.unit.partitioner_service.reading.registered_records import (
    Both,
    Kept,
    descriptor,
    make,
    record_of,
    text_of,
)
from tests.unit.topics.test_bombs import built, signed
from tests.unit.wire.examples import a_blob, a_frame
from tests.unit.wire.test_sync import sealed
from tests.unit.workbench.test_result_rows import records as result_records
from topics.batches.bombs import bomb_in
from topics.batches.raw_batches import DamagedBatchError, batches_of
from topics.query.audit import AuditEntry
from topics.query.skip_orders import SkipAnswer, SkipOrder, open_orders
from workbench.assist.activity import part_of
from workbench.assist.key_lookup import read_answer
from workbench.assist.sample_check.guess import starting_file
from workbench.assist.sample_check.report import check_sample
from workbench.assist.sample_check.sample import Stretch, TopicRecords
from workbench.assist.status.reports import report_line
from workbench.result_rows import typed_rows
from workbench.verify.input.markers import marker_of
from workbench.verify.input.messages import rejected_row

ROWS_OF = Query(
    key="@key",
    aggregates={"n": "count", "price": "max(p)", "day": "max(d)", "all": "collect(s, 5)"},
    types={"p": "decimal(2)", "d": "date", "s": "string"},
)
AVRO = avro_rows.AvroForm(readable_schema(ROWS_OF), never_null(ROWS_OF), "q.results")
A_ROW = {
    "window_start": 0,
    "window_end": 60_000,
    "key": b"k",
    "n": 2,
    "price": None,
    "day": None,
    "all": ["a"],
}


@dataclass(frozen=True)
class Decoder:
    """`read` one byte string; `valid` is one that it takes; `refusal` is all that it may raise.

    numbers: names of the JSON fields that hold a number.
    """

    read: Callable[[bytes], Any]
    valid: bytes
    refusal: type[Exception]
    numbers: tuple[str, ...] = ()


def _parser(query: dict[str, Any] | None = None, **words: Any) -> Callable[[bytes], Any]:
    fields = {
        "name": "q",
        "key": "k",
        "time": "t",
        "aggregates": {"s": "sum(v)"},
        "types": {"v": "int64"},
    }
    parser = Parser(Settings(query=fields | (query or {}), input=words))
    return lambda data: parser.parse([data])


def _registered(form: str) -> Callable[[bytes], Any]:
    """Both readers of a record of k, t and v."""
    schema = json.dumps(record_of(("k", "string"), ("t", "long"), ("v", "long")))
    if form == "protobuf":
        schema = text_of(descriptor(("k", "string"), ("t", "int64"), ("v", "int64")))
    both = Both(make(form, aggregates={"s": "sum(v)"}, types={"v": "int64"}), Kept(form, schema))
    return lambda data: both.agree([data])


def _look(**words: Any) -> Callable[[bytes], Any]:
    """All that is said and refused of a sample: one record, and the same among others."""
    made = Settings(query={"name": "q", "key": "k", "time": "t", "aggregates": {"s": "sum(v)"}}, input=words)

    def look(data: bytes) -> None:
        for values in ([data], [b'{"k":"a","t":1,"v":2}', data, None, b"a,1,2"]):
            many = len(values)
            stretch = Stretch(0, many, values=values, keys=[None] * many, timestamps=[1] * many)
            stretch.offsets = list(range(many))
            result = check_sample(made, TopicRecords("t", (stretch,)), now=1_800_000_000_000)
            said = [result.summary(), result.toml(), *(one.what + one.do for one in result.findings)]
            said.append(json.dumps(result.as_json(), ensure_ascii=False))
            "".join(said).encode()
            starting_file(Settings(), TopicRecords("t", (stretch,)), now=1_800_000_000_000).encode()

    return look


def _said(data: bytes) -> None:
    part = part_of(data, at=1, fingerprint=FINGERPRINT)
    if part is not None:
        "".join((part.name, report_line(part.telemetry), part.telemetry.model_dump_json())).encode()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


STATE = PartitionState(
    fingerprint="f" * 16,
    topic_id="t",
    routed_id="r",
    rejected_id="j",
    offset=3,
    first_time=1,
    max_time=9,
    steady_from=2,
    idle_mark=4,
    run=(5, 6),
    ended_producers=("p",),
    announced=2,
    read=3,
    routed=2,
    rejected=1,
    session=7,
    frames=8,
    max_jumps=((1, 60_000), (2, None)),
    disorders=((1, 60_000), (2, 90_000)),
    floor=3,
).encode()
MARKER = EndOfStream(producer="p", tuples=3, producers=2).headers()[0][1]
PLAN = json.dumps({"v": 1, "epoch": 3, "p": 2, "r": 4, "effective_from": 60_000}).encode()
SYNC = SyncMessage(
    total=10,
    late=0,
    keys=np.array([1, 2], np.uint64),
    frequencies=np.array([3, 4]),
    row_keys=np.array([1], np.uint64),
    values=np.zeros((1, 4)),
)
TABLE = GlobalTable(total=9, dsync_ms=5, keys=np.array([1], np.uint64), values=np.zeros((1, 4)))
SYNC_RECORD = encode_sync(SyncRecord("me", 7, 0, 5, exchange.Message(0, 1, b"body")))
FINGERPRINT = "0" * 16
TELEMETRY = PartitionerRecord(
    query="q", fingerprint=FINGERPRINT, time=1, instance="0", started=1, owned=2, inputs=4, epoch=3,
    workers=2, tuples=1,
    rejected=1, read=2, filtered=0, period_ms=1_000, rate=2.5, lag=7, loads=[1, 2],
).encode()  # fmt: skip
HEARTBEAT = telemetry.HeartbeatRecord(
    query="q", fingerprint="0" * 16, time=5, stage="fused", batch_interval_ms=5_000, finished=0
).encode()
DECISION = telemetry.DecisionRecord(
    query="q", fingerprint="0" * 16, time=5, policy="fixed", step=1, p=2, r=1, wanted_p=3, wanted_r=1
).encode()
LOG_PLAN = plans.Plan(epoch=3, p=2, r=4, effective_from=60_000, group=2).encode("0" * 16)
PLANNER = GroupPlanner(slide_ms=1_000)
PLANNER.learn(plans.Plan(epoch=3, p=2, r=4, group=2))
PLANNER.step(batch=5, target=(4, 4), in_force=(2, 4), reason="zone 3", reached=5_000, batch_ms=1_000)
POLICY = elasticity.create("prompt-plus", bounds=elasticity.Bounds(p_max=8, r_max=8))
SEEN = [
    elasticity.Observation(step=step, interval_ms=5_000, p=2, r=2, load=2.0, rate=9.0, keys=3.0)
    for step in range(1, 9)
]
for one in SEEN[:2]:
    POLICY.decide(one)
RESULT = next(
    encode_results(
        [pa.table({"window_start": [0], "window_end": [4_000], "key": [b"a"]})], fingerprint="f", bucket=0
    )
)
RESULT_SCHEMA = pa.schema([("window_start", pa.int64()), ("window_end", pa.int64()), ("key", pa.binary())])
BEGINNING = json.dumps(
    {
        "v": BEGINNING_VERSION,
        "identity": {"a": 1},
        "input_id": "t",
        "begin": [0, 5],
        "began_at": 1,
        "any_columns": ["v"],
    }
).encode()
AUDIT = AuditEntry(action="skip", what="offset 5", who="me", because="why").encode()
ORDER = SkipOrder(partition=0, offset=5, through=7, because="why", who="me", at=1).encode()
ROW = b'{"k":"a","t":1,"v":2}'


def _resumed_policy(data: bytes) -> None:
    """State that is taken leaves a policy that can decide."""
    policy = elasticity.restore(data, like=POLICY)
    for one in SEEN:
        policy.decide(one)


def _resumed_planner(data: bytes) -> None:
    planner = GroupPlanner(slide_ms=1_000)
    planner.resume(data)
    planner.step(batch=6, target=None, in_force=(2, 4), reached=5_000, batch_ms=1_000)


def _orders(data: bytes) -> None:
    open_orders([Message(0, named=key, held=data) for key in (b"skip/0/5", b"skip/0/5/answer", data)])


def _rejected(data: bytes) -> None:
    class Rejected(Message):
        def headers(self) -> Any:
            names = ("reason", "detail", "source", "mark", "omitted-bytes", "through")
            return [(f"evenflow-{name}", b"skipped" if name == "reason" else data) for name in names]

    rejected_row(Rejected(0, held=data), "in")


def _raw(data: bytes) -> None:
    for batch in batches_of(data):
        bomb_in(batch, 100_000)
        for _ in islice(batch.records(100_000), 1_000):
            pass


def _raw_signed(data: bytes) -> None:
    """The data as the records of a batch, compressed in each way, whose checksum is right."""
    for codec in range(6):
        front = bytearray(built(0, [b"x"])[:61])
        front[8:12] = (49 + len(data)).to_bytes(4, "big")
        with suppress(DamagedBatchError):
            _raw(signed(front + data, codec=codec))


DECODERS: dict[str, Decoder] = {
    "raw batches": Decoder(_raw, built(1, [b"x", b"y"]), DamagedBatchError),
    "records of a raw batch": Decoder(_raw_signed, built(0, [b"x", b"y"])[61:], DamagedBatchError),
    "committed metadata": Decoder(
        lambda data: PartitionState.decode(_text(data), offset=3),
        STATE.encode(),
        IncompatibleStateError,
        (
            "v",
            "first",
            "max",
            "steady",
            "idle",
            "of",
            "read",
            "routed",
            "rejected",
            "session",
            "frames",
            "jumps_from",
            "jumps",
        ),
    ),
    "marker": Decoder(
        lambda data: EndOfStream.from_headers([("x", b""), (HEADER, data)]),
        MARKER,
        ProtocolError,
        ("tuples", "producers"),
    ),
    "plan": Decoder(parse_plan, PLAN, ValueError, ("v", "epoch", "p", "r")),
    "plan of the log": Decoder(
        lambda data: plans.parse_plan(data, fingerprint="0" * 16),
        LOG_PLAN,
        ValueError,
        ("epoch", "p", "r", "effective_from"),
    ),
    "heartbeat": Decoder(telemetry.parse, HEARTBEAT, ValueError, ("time", "batch_interval_ms")),
    "decision": Decoder(telemetry.parse, DECISION, ValueError, ("step", "p", "r", "wanted_p", "wanted_r")),
    "state of a policy": Decoder(_resumed_policy, POLICY.snapshot(), IncompatibleStateError),
    "state of a planner": Decoder(_resumed_planner, PLANNER.snapshot(), IncompatibleStateError),
    "epoch of a snapshot": Decoder(parse_epoch, b"12", ValueError),
    "snapshot": Decoder(restore, create("d-choices", workers=4).snapshot(), IncompatibleStateError),
    "sync message": Decoder(SyncMessage.from_bytes, SYNC.to_bytes(), IncompatibleStateError),
    "global table": Decoder(GlobalTable.from_bytes, TABLE.to_bytes(), IncompatibleStateError),
    "body of a message of loads": Decoder(loads_from_bytes, bytes(16), IncompatibleStateError),
    "body of a table of loads": Decoder(
        table_loads, table_bytes(Loads(np.array([5, 7]), np.array([1, 0]))), IncompatibleStateError
    ),
    "sync record": Decoder(lambda data: decode_sync(data, identity="me"), SYNC_RECORD, EvenflowError),
    "header of a sync record": Decoder(
        lambda data: decode_sync(sealed(data), identity="me"),
        SYNC_RECORD[4 : 4 + int.from_bytes(SYNC_RECORD[:4], "little")],
        EvenflowError,
        ("v", "session", "source", "round"),
    ),
    "frame": Decoder(lambda data: decode_frame(data, fingerprint="f"), a_frame(), EvenflowError),
    "blob": Decoder(lambda data: decode_blob(data, fingerprint="f"), a_blob(), EvenflowError),
    "strict JSON": Decoder(lambda data: read_object(data, most_bytes=10_000), b'{"a":[1]}', NotStrict),
    "tuple, json": Decoder(_parser(), ROW, NotImplementedError),
    "tuples of a list, json": Decoder(
        _parser({"explode": "l", "aggregates": {"s": "sum(l.v)"}, "types": {"l.v": "int64"}}),
        b'{"k":"a","t":1,"l":[{"v":2},{"v":3}, null]}',
        NotImplementedError,
    ),
    "tuples of words, csv": Decoder(
        _parser(
            {"explode": "words(k)", "aggregates": {"n": "count"}, "types": {}},
            format="csv",
            columns=["k", "t"],
        ),
        b"a b,1",
        NotImplementedError,
    ),
    "tuple, csv": Decoder(_parser(format="csv", columns=["k", "t", "v"]), b"a,1,2", NotImplementedError),
    "tuple, avro": Decoder(_registered("avro"), b"\0\0\0\0\1\2a\2\4", NotImplementedError),
    "tuple, protobuf": Decoder(
        _registered("protobuf"), b"\0\0\0\0\1\0\x0a\1a\x10\1\x18\2", NotImplementedError
    ),
    "look, json": Decoder(_look(), ROW, NotImplementedError),
    "look, csv": Decoder(_look(format="csv", columns=["k", "t", "v"]), b"a,1,2", NotImplementedError),
    "telemetry": Decoder(_said, TELEMETRY, NotImplementedError),
    "answer about a key": Decoder(
        read_answer,
        b'{"query":"q","instance":"0","rule":"r","home":1,"share":0.5,"holders":[{"worker":2}]}',
        ValueError,
        ("home",),
    ),
    "result": Decoder(end_of, b'{"window_end":4000}', NotImplementedError),
    "result frame": Decoder(end_of, RESULT, NotImplementedError),
    "rows of a result frame": Decoder(
        lambda data: decode_results(data, schema=RESULT_SCHEMA, fingerprint="f"), RESULT, EvenflowError
    ),
    "how the query began, for a Spark job of one's own": Decoder(
        partial(as_recorded, Settings(query={"name": "q"})), BEGINNING, IncompatibleStateError, ("v",)
    ),
    "how the query began": Decoder(
        lambda data: parse_beginning(data, where="here"), BEGINNING, IncompatibleStateError, ("v", "began_at")
    ),
    "entry of the audit log": Decoder(AuditEntry.decode, AUDIT, NotStrict, ("v",)),
    "order to skip": Decoder(
        SkipOrder.decode, ORDER, NotStrict, ("v", "partition", "offset", "through", "at")
    ),
    "answer to an order": Decoder(SkipAnswer.decode, SkipAnswer(True, "done").encode(), NotStrict, ("v",)),
    "orders of the topic": Decoder(_orders, ORDER, NotImplementedError),
    "note of a run": Decoder(
        parse_run_note, b'{"v":1,"runs":2,"at":{"0":5},"look":{"1":7}}', NotStrict, ("v", "runs")
    ),
    "holder of a stage": Decoder(Holder.read, Holder(epoch=3, who="me").encode(), NotImplementedError),
    "owner of a folder": Decoder(
        lambda data: Owner.read(data, "here"),
        Owner(query="q", fingerprint="f", run="r").text().encode(),
        IncompatibleStateError,
    ),
    "row of results": Decoder(
        lambda data: typed_rows(result_records([data]), ROWS_OF),
        json_rows(pa.Table.from_pylist([A_ROW], AggregatePlan.of(ROWS_OF).result_schema))[0].as_py().encode(),
        ProtocolError,
        ("window_start", "window_end", "n"),
    ),
    "Avro row of results": Decoder(
        lambda data: typed_rows(with_json(result_records([data]), AVRO, avro_rows.header(7)), ROWS_OF),
        avro_rows.header(7)
        + avro_rows.encode_rows(
            readable(pa.Table.from_pylist([A_ROW], AggregatePlan.of(ROWS_OF).result_schema), AVRO.schema),
            AVRO,
        )[0].as_py(),
        ProtocolError,
    ),
    "Avro row of results, its end": Decoder(
        SINKS["avro"].end_of, avro_rows.header(7) + b"\x00\xc0\xa9\x07", NotImplementedError
    ),
    "rejected record, for verify": Decoder(_rejected, b"in:0:4", NotImplementedError),
    "marker, for verify": Decoder(
        lambda data: marker_of([("x", b""), (HEADER, data)]), MARKER, NotImplementedError
    ),
}
READERS: dict[str, tuple[str, ...] | str] = {
    "controller/collect.py": ("telemetry", "heartbeat", "decision"),
    "evenflow/aggregates/own/plain.py": "tests/unit/aggregates/test_own.py",
    "evenflow/elasticity/checking.py": "tests/unit/test_testing.py",
    "evenflow/elasticity/groups.py": ("state of a planner",),
    "evenflow/elasticity/policy.py": ("state of a policy",),
    "evenflow/text/json_text.py": "tests/unit/test_json_text.py",
    "evenflow/wire/markers.py": ("marker",),
    "evenflow/partitioners/checking.py": "tests/unit/test_testing.py",
    "evenflow/partitioners/partly/network.py": "tests/unit/partitioners/partly/test_network.py",
    "evenflow/partitioners/plain.py": "tests/unit/partitioners/test_outside.py",
    "evenflow/partitioners/snapshots.py": ("snapshot", "sync message", "global table"),
    "evenflow/plans.py": ("plan", "plan of the log"),
    "evenflow/progress.py": ("committed metadata",),
    "evenflow/scale/measurements.py": "tests/unit/scale/test_runs.py",
    "evenflow/scale/runs.py": "tests/unit/scale/test_runs.py",
    "evenflow/settings/beginning.py": (
        "how the query began",
        "how the query began, for a Spark job of one's own",
    ),
    "evenflow/settings/loading.py": "tests/unit/settings/test_any_file.py",
    "evenflow/settings/token_file.py": "tests/unit/settings/test_token_file.py",
    "evenflow/settings/typed_key.py": "tests/unit/settings/test_typed_key.py",
    "evenflow/sources/formats/json_lines.py": "tests/unit/sources",
    "evenflow/sources/tables.py": "tests/unit/sources",
    "evenflow/text/strict_json.py": ("strict JSON",),
    "evenflow/sweep/store.py": "tests/unit/sweep/test_store.py",
    "evenflow/telemetry.py": ("telemetry", "heartbeat", "decision"),
    "evenflow/training/curve.py": "tests/unit/training/test_curve.py",
    "evenflow/training/learner.py": "tests/unit/commands/test_train.py",
    "evenflow/training/task_prices.py": "tests/unit/training/test_task_prices.py",
    "evenflow/twostep/reducing/state.py": "tests/unit/twostep",
    "evenflow/twostep/reducing/top.py": "tests/unit/twostep",
    "evenflow/wire/envelope.py": ("frame", "blob"),
    "evenflow/wire/sync.py": ("sync record", "header of a sync record"),
    "evenflow/wire/result_frames.py": ("result frame", "rows of a result frame"),
    "partitioner_service/begin/run_note.py": ("note of a run",),
    "partitioner_service/reading/registered/avro_schema.py": "tests/unit/topics/test_registry_answers.py",
    "spark_consumers/checkpoints/results_note.py": "tests/unit/spark_consumers/sinks/test_sinks.py",
    "spark_consumers/checkpoints/notes.py": "tests/unit/spark_consumers/checkpoints/test_notes.py",
    "spark_consumers/checkpoints/epoch.py": ("holder of a stage",),
    "spark_consumers/jars/fetch.py": "tests/unit/spark_consumers",
    "spark_consumers/layout.py": "tests/unit/spark_consumers",
    "spark_consumers/reports/listener.py": "tests/unit/spark_consumers",
    "spark_consumers/checkpoints/relocation.py": "tests/unit/spark_consumers",
    "spark_consumers/checkpoints/result_files.py": ("owner of a folder",),
    "spark_consumers/sinks/base.py": ("result",),
    "topics/query/audit.py": ("entry of the audit log",),
    "topics/schemas/results.py": "tests/unit/topics/test_results_registry.py",
    "topics/query/skip_orders.py": ("order to skip", "answer to an order", "orders of the topic"),
    "workbench/assist/key_lookup.py": ("answer about a key",),
    "workbench/elastic/course.py": "tests/unit/workbench/elastic",
    "workbench/assist/sample_check/shape.py": ("look, json",),
    "workbench/supply/materials.py": "tests/unit/test_supply_chain.py",
    "workbench/result_rows.py": ("row of results",),
    "workbench/registered/avro_schema.py": ("tuple, avro",),
    "workbench/verify/input/markers.py": ("marker, for verify",),
    "workbench/verify/input/strict_reader.py": ("tuple, json",),
}
"""Each file that reads JSON: the decoders above that it has, or the tests of a file that nobody else
writes to.
"""
_JSON = re.compile(r"\bread_object\(|\bjson\.loads\(|\bmodel_validate_json\(|\bvalidate_json\(")
_ROOMS = (
    "evenflow", "topics", "partitioner_service", "spark_consumers", "controller", "monitoring", "workbench",
    "producers",
)  # fmt: skip


def test_the_end_of_the_window_is_found_in_rows_and_frames_of_results() -> None:
    rows, avro = SINKS["kafka"].end_of, SINKS["avro"].end_of
    assert rows(DECODERS["result"].valid) == 4000
    assert avro(DECODERS["Avro row of results"].valid) == 60_000
    assert avro(DECODERS["Avro row of results, its end"].valid) == 60_000
    assert avro(DECODERS["Avro row of results"].valid[:6]) is None
    assert rows(DECODERS["Avro row of results"].valid) is None
    assert avro(DECODERS["result"].valid) is None


def test_every_file_that_reads_json_is_registered_here() -> None:
    root = Path(__file__).parents[2]
    files = (path for room in _ROOMS for path in (root / room).rglob("*.py"))
    reading = {str(path.relative_to(root)) for path in files if _JSON.search(path.read_text())}
    assert reading == set(READERS), "add the file to READERS, and its decoders to DECODERS"
    for known in READERS.values():
        if isinstance(known, str):
            assert (root / known).exists(), known
        else:
            assert set(known) <= set(DECODERS)


each = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


def taken(decoder: Decoder, data: bytes) -> bool:
    """Whether the decoder read it; False when it refused in the one way that it may."""
    refused: Exception | None = None
    try:
        decoder.read(data)
    except decoder.refusal as error:
        refused = error
    assert len(str(refused)) < 3_000, "a message repeats what it was given"
    return refused is None


@each
def test_what_is_valid_is_read(decoder: Decoder) -> None:
    assert taken(decoder, decoder.valid)


@pytest.mark.family
@each
@pytest.mark.parametrize("number", range(len(BYTES)))
def test_no_hostile_bytes_raise_anything_but_a_refusal(decoder: Decoder, number: int) -> None:
    taken(decoder, BYTES[number])


@pytest.mark.parametrize("decoder", [d for d in DECODERS.values() if d.numbers])
def test_nothing_is_taken_for_a_number_that_is_none(decoder: Decoder) -> None:
    """1.5, true or 1e23 tuples are refused, and so is a number that is missing or there twice."""
    for name in decoder.numbers:
        for data in with_a_wrong_number(decoder.valid, name):
            assert not taken(decoder, data), data[:300]


@each
@given(data=st.binary(max_size=300))
@examples(60)
@example(data=b"\xff" * 300)
def test_any_bytes_are_read_or_refused(decoder: Decoder, data: bytes) -> None:
    taken(decoder, data)


@pytest.mark.family
@each
@given(draw=st.data())
@examples(80)
def test_a_valid_encoding_that_was_cut_flipped_or_mixed_is_read_or_refused(
    decoder: Decoder, draw: st.DataObject
) -> None:
    data = bytearray(decoder.valid)
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, max(0, len(data) - 1)))
        what = draw.draw(st.sampled_from(["flip", "cut", "insert", "repeat"]))
        if what == "flip" and data:
            data[at] ^= draw.draw(st.integers(1, 255))
        elif what == "cut":
            del data[at : at + draw.draw(st.integers(1, 20))]
        elif what == "insert":
            data[at:at] = draw.draw(st.binary(min_size=1, max_size=8))
        else:
            data[at:at] = data[at : at + 30]
    taken(decoder, bytes(data))


@pytest.mark.parametrize("value", [None, "text", b""])
def test_a_marker_header_of_any_type_is_refused(value: Any) -> None:
    with pytest.raises(ProtocolError, match="end-of-stream marker"):
        EndOfStream.from_headers([(HEADER, value)])


@pytest.mark.parametrize("value", [None, b""])
def test_a_plan_without_value_is_refused(value: bytes | None) -> None:
    with pytest.raises(ValueError, match="no plan"):
        parse_plan(value)


@pytest.mark.parametrize(
    "changed",
    [
        {"fields": {}},
        {"fields": {"total": 1e400, "late": 0}},
        {"fields": {"total": True, "late": 0}},
        {"fields": {"total": 1, "late": False}},
        {"fields": {"total": 1 << 41, "late": 0}},
        {"keys": np.array([2, 1], np.uint64)},
        {"frequencies": np.array([3, -4])},
        {"row_keys": np.array([1, 1], np.uint64), "values": np.zeros((2, 4))},
        {"values": np.full((1, 4), np.nan)},
        {"loads": np.array([-1])},
        {"keys": np.array([1.0])},
        {"keys": np.array([1], np.uint64)},
        {"values": np.zeros(1)},
        {"values": np.zeros((3, 4))},
        {"surplus": np.zeros(1)},
    ],
)
def test_a_sync_message_whose_fields_are_of_other_types_is_refused_though_its_digest_is_right(
    changed: dict[str, Any],
) -> None:
    header, arrays = unpack(SYNC.to_bytes())
    header = {name: value for name, value in {**header, **changed}.items() if name in header}
    del header["shapes"]
    arrays |= {name: value for name, value in changed.items() if name not in header}
    with pytest.raises(IncompatibleStateError, match="no SyncMessage"):
        SyncMessage.from_bytes(pack(header, arrays))
