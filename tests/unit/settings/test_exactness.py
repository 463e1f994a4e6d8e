"""What exact results rest on cannot be set by hand, in any client's words, and evenflow's own values are
the safe ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.settings.sections.exactness import EXACTNESS
from spark_consumers.session import session_conf
from spark_consumers.sinks.topic import topic_options
from topics import clients

EVERY = [(client, name) for client, names in EXACTNESS.items() for name in names]
NAMED_BY_THE_RULE = {
    "librdkafka": {
        "acks", "request.required.acks", "enable.idempotence", "max.in.flight", "isolation.level",
        "check.crcs",
        "auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "group.id", "transactional.id",
    },
    "java": {
        "acks", "enable.idempotence", "max.in.flight.requests.per.connection", "retries", "isolation.level",
        "check.crcs", "auto.offset.reset", "enable.auto.commit", "group.id", "transactional.id",
    },
    "faust": {"broker_check_crcs", "consumer_auto_offset_reset", "processing_guarantee", "producer_acks"},
}  # fmt: skip


@pytest.mark.parametrize(("client", "name"), EVERY, ids=map("-".join, EVERY))
def test_an_extra_that_exactness_rests_on_is_refused_by_its_name_with_the_reason(
    client: Any, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "evenflow.json"
    file.write_text(json.dumps({"kafka": {"extras": {client: {name: 0}}}}))
    with pytest.raises(ConfigError) as caught:
        load_settings(file)
    assert f"kafka.extras.{client}.{name} ({EXACTNESS[client][name]})" in caught.value.message


@pytest.mark.parametrize("client", EXACTNESS)
def test_nothing_that_the_rule_names_is_left_out(client: Any) -> None:
    assert NAMED_BY_THE_RULE[client] <= set(EXACTNESS[client])


@pytest.mark.parametrize("name", EXACTNESS["java"])
def test_a_kafka_option_that_exactness_rests_on_is_refused_in_the_configuration_of_spark_too(
    name: str,
) -> None:
    with pytest.raises(ConfigError, match=rf"kafka\.{name} is refused"):
        session_conf(Settings(spark={"conf": {f"spark.kafka.{name}": "false"}}))


def test_tasks_are_not_to_be_cut_anew_and_what_only_says_so_may_stay() -> None:
    name = "spark.sql.adaptive.streaming.stateless.enabled"
    with pytest.raises(ConfigError, match=r"adaptive\.streaming\.stateless is refused"):
        session_conf(Settings(spark={"conf": {name: "true"}}))
    assert session_conf(Settings(spark={"conf": {name: "false"}}))[name] == "false"


def test_clients_of_librdkafka_check_sums_read_what_is_committed_and_wait_for_all_replicas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict[str, dict[str, Any]] = {}

    def connected(kafka: Any, kind: Any, config: dict[str, Any]) -> None:
        made[kind.__name__] = config

    monkeypatch.setattr(clients, "_connected", connected)
    clients.producer(KafkaSettings())
    clients.consumer(KafkaSettings(), group="g")
    assert made["Producer"].items() >= {"acks": "all", "enable_idempotence": True}.items()
    assert made["Consumer"].items() >= {"check_crcs": True, "isolation_level": "read_committed"}.items()


def test_spark_writes_to_all_replicas_and_its_retries_repeat_nothing() -> None:
    options = topic_options(Settings(), "results")
    assert options.items() >= {"kafka.acks": "all", "kafka.enable.idempotence": "true"}.items()


class _Reader:
    """Spark's reader as far as `records` uses it; remembers its options."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    readStream = property(lambda self: self)  # noqa: N815

    def format(self, name: str) -> _Reader:
        return self

    def options(self, **more: str) -> _Reader:
        self.given |= more
        return self

    def load(self) -> _Reader:
        return self

    def select(self, *columns: str) -> _Reader:
        return self


def test_spark_reads_what_is_committed_checks_sums_and_never_goes_past_a_gap() -> None:
    from spark_consumers.sources import records

    reader = _Reader()
    records(reader, Settings(), "t")  # type: ignore[arg-type]
    safe = {"kafka.isolation.level": "read_committed", "kafka.check.crcs": "true", "failOnDataLoss": "true"}
    assert reader.given.items() >= safe.items()
