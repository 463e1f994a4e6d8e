"""An admin client with confluent-kafka's interface."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from tests.faults.model import network
from tests.faults.model.errors import kafka_error, timed_out
from tests.faults.model.listing import listed
from tests.faults.model.log import Log

_LATEST, _EARLIEST = -1, -2
_LEADER = SimpleNamespace(id=1)


class Answer:
    """A future that is done."""

    def __init__(self, result: Any = None, error: KafkaException | None = None) -> None:
        self._result, self._error = result, error

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def exception(self, timeout: float | None = None) -> KafkaException | None:
        return self._error


class AdminClient:
    """Asks the broker of the run that is under way, whenever the client was made."""

    def __init__(self, config: dict[str, Any]) -> None:
        pass

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        broker = network.broker()
        return broker.world.call("list_topics", lambda: listed(broker), lost=timed_out)

    def poll(self, timeout: float = 0) -> int:
        return 0

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Answer]:
        return _asked("describe", topics.topic_names, _described)

    def create_topics(self, topics: Any, **_: Any) -> dict[str, Answer]:
        by_name = {topic.topic: topic for topic in topics}

        def made(name: str) -> Answer:
            new = by_name[name]
            if network.broker().create(name, new.num_partitions, new.config):
                return Answer()
            return Answer(error=kafka_error(KafkaError.TOPIC_ALREADY_EXISTS))

        return _asked("create", list(by_name), made)

    def list_offsets(
        self, specs: Any, *, isolation_level: Any = IsolationLevel.READ_UNCOMMITTED, **_: Any
    ) -> dict[Any, Answer]:
        committed = isolation_level == IsolationLevel.READ_COMMITTED
        return _asked("list_offsets", list(specs), lambda part: _offset(part, specs[part]._value, committed))

    def describe_configs(self, resources: Any, **_: Any) -> dict[Any, Answer]:
        def config(resource: Any) -> Answer:
            topic = network.broker().topics.get(resource.name)
            if topic is None:
                return Answer(error=kafka_error(KafkaError.UNKNOWN_TOPIC_OR_PART))
            return Answer({n: SimpleNamespace(name=n, value=v) for n, v in topic.config.items()})

        return _asked("describe_configs", list(resources), config)

    def describe_consumer_groups(self, groups: list[str], **_: Any) -> dict[str, Answer]:
        def described(name: str) -> Answer:
            members = [
                SimpleNamespace(client_id=member.name, host="/h", assignment=None)
                for member in network.broker().groups.of(name).members.values()
            ]
            return Answer(SimpleNamespace(members=members, group_id=name))

        return _asked("describe_groups", groups, described)


def _asked(what: str, names: list[Any], answer: Callable[[Any], Answer]) -> dict[Any, Answer]:
    """One request about all of these. If its answer is lost, each of them timed out."""
    try:
        return network.broker().world.call(
            what, lambda: {name: answer(name) for name in names}, lost=timed_out
        )
    except KafkaException as error:
        return {name: Answer(error=error) for name in names}


def _described(name: str) -> Answer:
    topic = network.broker().topics.get(name)
    if topic is None:
        return Answer(error=kafka_error(KafkaError.UNKNOWN_TOPIC_OR_PART))
    parts = [
        SimpleNamespace(id=log.number, leader=_LEADER, replicas=[_LEADER], isr=[_LEADER])
        for log in topic.logs
    ]
    rights = [AclOperation.WRITE, AclOperation.READ]
    return Answer(
        SimpleNamespace(name=name, topic_id=topic.topic_id, partitions=parts, authorized_operations=rights)
    )


def _offset(part: Any, spec: int, committed: bool) -> Answer:
    log = network.broker().log(part.topic, part.partition)
    if log is None:
        return Answer(error=kafka_error(KafkaError.UNKNOWN_TOPIC_OR_PART))
    if spec == _EARLIEST:
        return Answer(SimpleNamespace(offset=log.begin))
    if spec == _LATEST:
        return Answer(SimpleNamespace(offset=log.stable_end if committed else log.end))
    return Answer(SimpleNamespace(offset=_since(log, spec)))


def _since(log: Log, stamp: int) -> int:
    """Offset of the first record with this timestamp or a later one, -1 if there is none."""
    result = (e.offset for e in log.entries[log.begin :] if not e.marker and e.stamp >= stamp)
    return next(result, -1)
