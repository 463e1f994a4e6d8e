"""A replay logs in as any client does, whichever way it hands its records over, and where it cannot, another
way is taken.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings, load_settings
from evenflow.sources.datasets import open_source
from evenflow.sources.source import SourceOptions
from producers.replay import ReplaySummary, replay
from producers.writers import Sending
from tests.pipeline.security.test_tokens import BY_TOKEN, token
from tests.pipeline.services.test_end_to_end import make_certificates
from topics import clients
from topics.admin import describe
from topics.librdkafka.producer import array_producer
from workbench.local.broker import EmbeddedBroker

pytestmark = [pytest.mark.pipeline, pytest.mark.more]
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
WAYS = BY_TOKEN | {
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER,SCRAM-SHA-512",
    "listener.name.client.scram-sha-512.sasl.jaas.config": _SCRAM,
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """Settings of the administrator, with certificates on both sides. The user `scram` has a password of that
    kind.
    """
    tls = make_certificates(tmp_path_factory.mktemp("tls"))
    with EmbeddedBroker(tls=tls, sasl={"admin": 'pass"word'}, properties=WAYS) as broker:
        settings = broker.settings()
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
        change = UserScramCredentialUpsertion("scram", info, b"secret")
        admin = clients.admin(settings)
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(20)
        yield settings


def logging_in(kafka: KafkaSettings, **changed: str | None) -> KafkaSettings:
    words = kafka.model_dump(exclude_unset=True) | {"sasl_username": None, "sasl_password": None} | changed
    return KafkaSettings(**{name: word for name, word in words.items() if word is not None})


def sent(kafka: KafkaSettings, name: str, sending: Sending) -> ReplaySummary:
    settings = load_settings(query={"name": name}, kafka=kafka.model_dump(exclude_unset=True))
    source = open_source("uniform:keys=10,tuples=1000", SourceOptions.for_settings(settings))
    summary = replay(settings, source, sending=sending)
    topic = settings.topic("input")
    assert describe(kafka, [topic])[topic].records == summary.tuples + len(summary.per_partition)
    assert summary.tuples == 1000
    return summary


@pytest.mark.parametrize("sending", ["arrays", "calls"])
def test_with_certificates_and_a_password_records_are_sent_as_was_asked(
    kafka: KafkaSettings, query_name: str, sending: Sending
) -> None:
    assert sent(kafka, query_name, sending).sending == sending


@pytest.mark.parametrize("sending", ["arrays", "calls"])
def test_a_refused_password_is_told_at_once(kafka: KafkaSettings, query_name: str, sending: Sending) -> None:
    wrong = logging_in(kafka, sasl_username="admin", sasl_password="wrong")
    began = time.monotonic()
    with pytest.raises(ServiceError, match="refused by the broker"):
        array_producer(wrong, "any", failed=lambda *some: None)
    assert time.monotonic() - began < wrong.request_timeout / 1000
    with pytest.raises(ServiceError, match="refused by the broker"):
        sent(wrong, query_name, sending)


def test_a_password_of_scram_is_as_good(kafka: KafkaSettings) -> None:
    scram = logging_in(kafka, sasl_mechanism="SCRAM-SHA-512", sasl_username="scram", sasl_password="secret")
    client = array_producer(scram, "any", failed=lambda *some: None)
    client.list_topics(20)
    client.close()


def test_a_token_needs_confluent_kafka_and_the_replay_says_so(
    kafka: KafkaSettings, query_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text(token("admin", 600))
    by_token = logging_in(kafka, sasl_mechanism="OAUTHBEARER", sasl_token_file=str(file))
    caplog.set_level(logging.WARNING)
    assert sent(by_token, query_name, "arrays").sending == "calls"
    (line,) = [record.getMessage() for record in caplog.records if record.name == "producers.writers"]
    assert line.startswith("records are sent by one call each")
