"""The shell of verify: committed offsets are asked for as the partitioner does, results are waited for a
while.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenflow.errors import DataLossError, IncompatibleStateError, ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.settings.beginning import Beginning
from partitioner_service.kafka.committed_state import data_plane_group
from tests.unit.workbench.verify.pipeline_model import Topics
from tests.unit.workbench.verify.windows.test_reach import live
from topics import clients
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA, Report, shell


class Group:
    """A consumer that answers these in turn; an error code is raised, the last answer is repeated."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.name = ""
        self.closed = False

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return list(answer)

    def close(self) -> None:
        self.closed = True


def asked(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    group: Group,
    begun: Beginning | None = None,
    ends: tuple[int, ...] = (7,),
) -> list[Any]:
    """`read_committed` with this group in place of the broker's. ends: where the input ends, each time it
    is looked at.
    """

    def consumer(kafka: Any, *, group: str, **rest: Any) -> Group:
        made.name = group
        return made

    made = group
    topic = settings.topic("input")
    looks = iter([*ends, ends[-1]])
    monkeypatch.setattr(clients, "consumer", consumer)
    monkeypatch.setattr(
        shell,
        "describe",
        lambda kafka, names: {
            topic: SimpleNamespace(name=topic, begin={0: 0}, end={0: next(looks)}, topic_id="id")
        },
    )
    try:
        return shell.read_committed(settings, begun)
    finally:
        assert group.closed
        assert group.name == data_plane_group(settings)


def answer(settings: Settings) -> list[TopicPartition]:
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="id", offset=7)
    return [TopicPartition(settings.topic("input"), 0, 7, state.encode())]


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_an_answer_that_waiting_heals_is_waited_for(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    (state,) = asked(monkeypatch, settings, Group(code, answer(settings)))
    assert state.offset == 7


def test_a_broker_that_never_answers_and_one_that_refuses_are_clear_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1}, kafka={"request_timeout": 1})
    for code in (KafkaError.UNSTABLE_OFFSET_COMMIT, KafkaError.GROUP_AUTHORIZATION_FAILED):
        with pytest.raises(ServiceError, match=r"committed offsets of q\.partitioner"):
            asked(monkeypatch, settings, Group(code))


def test_an_offset_that_is_gone_is_a_loss_if_the_query_has_begun_and_else_nothing_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    nothing = [TopicPartition(settings.topic("input"), 0, -1001)]
    with pytest.raises(IncompatibleStateError, match="has committed nothing"):
        asked(monkeypatch, settings, Group(nothing))
    begun = Beginning(identity={}, input_id="id", begin={0: 3}, began_at=0)
    with pytest.raises(DataLossError, match=r"has begun, at offset 3 of q.input\[0\], but"):
        asked(monkeypatch, settings, Group(nothing), begun)


def test_an_input_that_ends_before_what_was_read_of_it_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    with pytest.raises(
        DataLossError, match=r"q.input\[0\] ends at offset 6, but the partitioner has read it up to 7"
    ):
        asked(monkeypatch, settings, Group(answer(settings)), ends=(6,))


def test_an_input_that_grew_between_two_looks_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    (state,) = asked(monkeypatch, settings, Group(answer(settings)), ends=(6, 7))
    assert state.offset == 7


def test_a_committed_state_that_begins_elsewhere_than_the_query_did_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    begun = Beginning(identity={}, input_id="id", begin={0: 0}, began_at=0)
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="id", begin=7, offset=7)
    moved = [TopicPartition(settings.topic("input"), 0, 7, state.encode())]
    (committed,) = asked(monkeypatch, settings, Group(moved), begun)
    assert (committed.begin, committed.began_again) == (0, 7)
    report = Topics(settings, committed=[committed]).check()
    assert [(one.kind, one.column, one.expected, one.got) for one in report.first] == [
        ("state", "begin", 0, 7)
    ]


class Live:
    """A query whose results come while verify waits: `answers` are what each look at them finds, the last
    for ever.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Topics) -> None:
        self.now = 0.0
        self.looks = 0
        self.repeats = True
        self._answers = answers
        first = answers[0]
        self.settings = first.settings
        monkeypatch.setattr(shell, "admitted", lambda settings, **more: settings)
        monkeypatch.setattr(shell, "read_beginning", lambda settings: None)
        monkeypatch.setattr(shell, "read_committed", lambda settings, begun: first.committed)
        monkeypatch.setattr(
            shell, "_described", lambda settings, role: SimpleNamespace(begin={}, end={0: 99})
        )
        monkeypatch.setattr(shell, "_inputs", lambda *rest: _batches(first.inputs, INPUT_SCHEMA))
        monkeypatch.setattr(shell, "_rejected", lambda *rest: _batches(first.rejected, REJECTED_SCHEMA))
        monkeypatch.setattr(shell, "sink_of", lambda settings: self)

    def check_reading(self, settings: Settings) -> None:
        pass

    def read_back(self, settings: Settings) -> pa.Table:
        answer = self._answers[min(self.looks, len(self._answers) - 1)]
        self.looks += 1
        return answer.typed_results()

    def begins(self, settings: Settings) -> dict[int, int]:
        return {}

    def verify(self, **options: Any) -> Report:
        return shell.verify(self.settings, clock=lambda: self.now, sleep=self._sleep, **options)

    def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def _batches(rows: list[dict[str, Any]], schema: pa.Schema) -> list[pa.RecordBatch]:
    return list(pa.Table.from_pylist(rows, schema).to_batches())


def _reaching(end: int) -> Topics:
    topics = live()
    topics.rows = [row for row in topics.rows if row["window_end"] <= end]
    return topics


def test_results_that_are_on_their_way_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    query = Live(monkeypatch, _reaching(100), _reaching(200), live())
    seen: list[int] = []
    report = query.verify(waiting=lambda known: seen.append(known.pending_windows))
    assert (report.exact, report.pending_windows, query.now) == (True, 0, 3.0)
    assert seen == [29, 19]
    assert report.unread == 59


def test_a_half_written_micro_batch_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    half = live()
    half.rows.pop(70)
    assert half.check().kinds == {"missing": 1}
    assert Live(monkeypatch, half, live()).verify().exact
    assert Live(monkeypatch, half).verify().kinds == {"missing": 1}


def test_a_dead_reducer_is_waited_for_until_the_bound_and_then_it_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = Live(monkeypatch, _reaching(100))
    report = query.verify(due_within=60)
    assert (report.kinds, query.now, report.reach.seconds) == ({"behind": 1}, 60, 60)
    query = Live(monkeypatch, _reaching(100))
    assert query.verify(due_within=0).kinds == {"behind": 1}
    assert (query.now, query.looks) == (0, 1)


def test_what_a_killed_verify_left_goes_when_the_next_one_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    left = tmp_path / "evenflow" / "verify-left"
    left.mkdir(parents=True)
    (left / "verify.duckdb").write_bytes(b"keys and values")
    (left / "lock").touch()
    os.utime(left / "lock", (0, 0))
    assert Live(monkeypatch, live()).verify().exact
    assert list((tmp_path / "evenflow").iterdir()) == []


def test_what_goes_wrong_while_kafka_is_read_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    query = Live(monkeypatch, live())

    def broken(*rest: Any) -> Iterator[pa.RecordBatch]:
        yield from _batches([], REJECTED_SCHEMA)
        raise ServiceError("the broker is gone")

    monkeypatch.setattr(shell, "_rejected", broken)
    with pytest.raises(ServiceError, match="the broker is gone"):
        query.verify()


def test_rejected_records_are_handed_on_one_batch_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    query = Live(monkeypatch, live())
    asked: list[int] = []

    def slowly(*rest: Any) -> Iterator[pa.RecordBatch]:
        for i in range(3):
            asked.append(i)
            yield from _batches([], REJECTED_SCHEMA)

    real = shell.Recomputation

    def watched(settings: Settings, inputs: Any, rejected: Any, *rest: Any, **more: Any) -> Any:
        assert isinstance(rejected, pa.RecordBatchReader)
        assert asked == []
        return real(settings, inputs, rejected, *rest, **more)

    monkeypatch.setattr(shell, "_rejected", slowly)
    monkeypatch.setattr(shell, "Recomputation", watched)
    assert query.verify().exact
    assert asked == [0, 1, 2]
