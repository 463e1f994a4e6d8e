"""The pipeline under the users that `evenflow topics strimzi` prints, on a broker that refuses all else. They
log in by certificates, and for the whole matrix also by passwords (SCRAM).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from evenflow.errors import EvenflowError
from evenflow.settings import KafkaSettings, Settings
from tests.patience import wait_for
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, make_settings
from tests.unit.workbench.strimzi.matrix import IDS, MATRIX, groups
from topics import clients
from topics.admin import describe, ensure_topics, pipeline_topics
from topics.batches.raw_batches import RawReader
from topics.reader import read_range
from workbench.local.broker import EmbeddedBroker
from workbench.local.broker_properties import Certificates
from workbench.strimzi.manifests import manifests, user_of
from workbench.strimzi.rights import PARTS

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280), pytest.mark.more]
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactionalId": ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefix": ResourcePatternType.PREFIXED}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}
_STRICT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The broker's own listener for its controller has no names.
    "super.users": "User:CN=admin;User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "false",
    # trustme's names have an organisation, Strimzi's have not.
    "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/CN=$1/",
}
_WITH_SCRAM = {
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.client.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}
_PASSWORD = "a password of theirs"
_NOT_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


class Names:
    """An authority, and the files that Strimzi's Secrets hold: ca.crt, user.crt, user.key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(folder / "ca.crt")

    def of(self, name: str) -> Certificates:
        folder = self._folder / name
        folder.mkdir()
        identity = self._authority.issue_cert("127.0.0.1", common_name=name)
        made = Certificates(self._folder / "ca.crt", folder / "user.crt", folder / "user.key")
        key = load_pem_private_key(identity.private_key_pem.bytes(), password=None)
        made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        identity.cert_chain_pems[0].write_to_path(made.certificate)
        return made


@pytest.fixture
def names(tmp_path: Path) -> Names:
    return Names(tmp_path)


@pytest.fixture
def broker(names: Names) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tls=names.of("admin"), properties=_STRICT) as one:
        yield one


@pytest.fixture
def settings(broker: EmbeddedBroker, query_name: str, tmp_path: Path) -> Settings:
    return _prepared(broker.settings(), query_name, tmp_path, principal="User:CN={}")


def _prepared(kafka: KafkaSettings, query_name: str, tmp_path: Path, *, principal: str) -> Settings:
    """All topics are there, as an operator makes them, and each user has its ACLs. principal: what the broker
    calls the user of this name.
    """
    admin = make_settings(
        kafka,
        query_name,
        tmp_path,
        spark={"wiring": "split", "buckets": 4},
        partitioner={"instances": 2, "speeds": "measured"},
    ).with_input_partitions(4)
    ensure_topics(admin.kafka, pipeline_topics(admin).values())
    users = [one for one in manifests(admin, cluster="kafka") if one["kind"] == "KafkaUser"]
    bindings = [binding for user in users for binding in _bindings(user, principal)]
    for future in clients.admin(admin.kafka).create_acls(bindings).values():
        future.result()
    return admin


def _bindings(user: dict[str, Any], principal: str) -> Iterator[AclBinding]:
    """What Strimzi's user operator makes of a KafkaUser."""
    for acl in user["spec"]["authorization"]["acls"]:
        at = acl["resource"]
        for operation in acl["operations"]:
            yield AclBinding(
                _KINDS[at["type"]],
                at["name"],
                _PATTERNS[at["patternType"]],
                principal.format(user["metadata"]["name"]),
                acl["host"],
                _OPERATIONS[operation],
                AclPermissionType.ALLOW,
            )


def as_part(settings: Settings, names: Names, part: str) -> Settings:
    files = names.of(user_of(settings, part))
    fields = {"ssl_certificate": files.certificate, "ssl_key": files.key}
    return settings.model_copy(update={"kafka": settings.kafka.model_copy(update=fields)})


def test_the_pipeline_runs_under_its_users(settings: Settings, names: Names, tmp_path: Path) -> None:
    stream = Stream(settings)
    stream.write(2_000)
    stream.end()
    parts = {part: as_part(settings, names, part) for part in PARTS}
    with Pipeline(settings, tmp_path) as pipeline:

        def start(part: str, *words: str) -> None:
            folder = tmp_path / f"run-{part}"
            folder.mkdir()
            one = Pipeline(parts[part], folder)
            pipeline.running[part] = one.start(*words)

        start("controller", "control")
        start("partitioner", "partition", "--until-ended")
        start("combiner", "combine", "--until-ended")
        start("reducer", "reduce", "--until-ended")
        pipeline.finish("partitioner", "combiner", "reducer")
        pipeline.stop("controller")
        start("tools", "verify")
        pipeline.finish("tools")
    assert_exact(stream)
    assert describe(settings.kafka, [settings.topic("sync")])[settings.topic("sync")].records
    for log in tmp_path.glob("run-*/*.log"):
        assert "AUTHORIZATION" not in log.read_text(), log.read_text()
        assert "Not authorized" not in log.read_text(), log.read_text()
        assert not [line for line in _lines_of_keys(parts.values()) if line in log.read_text()], log


def _lines_of_keys(parts: Iterable[Settings]) -> list[str]:
    """The first line of each part's own key: the second one of its PEM file."""
    files = [one.kafka.ssl_key for one in parts]
    return [file.read_text().splitlines()[1] for file in files if file is not None]


def test_what_a_part_must_not_do_is_refused(settings: Settings, names: Names) -> None:
    kafka = {part: as_part(settings, names, part).kafka for part in PARTS}
    topic = settings.topic
    for part, role in (
        ("partitioner", "results"),
        ("combiner", "results"),
        ("reducer", "plan"),
        ("controller", "routed"),
        # What a part must find again is its own. In `snapshots` stand orders to skip, too.
        ("controller", "snapshots"),
        ("reducer", "snapshots"),
        ("combiner", "reducer"),
        ("reducer", "combiner"),
        ("partitioner", "controller"),
    ):
        assert not _written(kafka[part], topic(role)), f"{part} wrote {role}"
    # Who verifies may write nowhere, so the broker gives it no producer id (the matrix below). A replay may
    # write the input.
    assert _written(kafka["replay"], topic("input"))
    with RawReader(kafka["partitioner"], topic("input")) as reader:
        fetched = [reader.fetch(partition, 0) for partition in range(4)]
        assert sum(len(one.batches) for one in fetched if one is not None) == 1, "it may look for bombs"
    for part, role in (("combiner", "results"), ("reducer", "routed"), ("controller", "results")):
        assert _written(settings.kafka, topic(role)), "an empty topic is not asked for records"
        with pytest.raises(EvenflowError, match="AUTHORIZATION"):
            list(read_range(kafka[part], topic(role)))


@pytest.mark.family
@pytest.mark.parametrize("part", PARTS)
def test_the_broker_grants_each_part_what_the_matrix_grants_and_nothing_else(
    settings: Settings, names: Names, part: str
) -> None:
    assert _granted(settings, as_part(settings, names, part).kafka) == _due(settings, part)


@pytest.mark.family
@pytest.mark.parametrize("part", PARTS)
def test_the_broker_lets_only_the_owner_use_a_transactional_id(
    settings: Settings, names: Names, part: str
) -> None:
    assert _usable_ids(settings, as_part(settings, names, part).kafka) == _own_ids(part)


@pytest.mark.family
@pytest.mark.parametrize("part", PARTS)
def test_the_broker_grants_each_part_its_rights_in_consumer_groups_and_no_other(
    settings: Settings, names: Names, part: str
) -> None:
    assert _granted_in_groups(settings, as_part(settings, names, part).kafka) == _due_in_groups(
        settings, part
    )


def test_users_that_log_in_by_a_password_have_the_same_rights_and_no_other(
    query_name: str, tmp_path: Path
) -> None:
    with EmbeddedBroker(sasl={"admin": "of the admin"}, properties=_WITH_SCRAM) as broker:
        settings = _prepared(broker.settings(), query_name, tmp_path, principal="User:{}")
        users = {part: user_of(settings, part) for part in PARTS}
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
        made = [UserScramCredentialUpsertion(user, info, _PASSWORD.encode()) for user in users.values()]
        for future in clients.admin(broker.settings()).alter_user_scram_credentials(made).values():
            future.result()
        for part, user in users.items():
            login = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": user, "sasl_password": _PASSWORD}
            kafka = broker.settings(**login)
            assert _granted(settings, kafka) == _due(settings, part), part
            assert _usable_ids(settings, kafka) == _own_ids(part), part
            assert _granted_in_groups(settings, kafka) == _due_in_groups(settings, part), part


def _granted(settings: Settings, kafka: KafkaSettings) -> dict[str, set[str]]:
    """What the broker grants this user, by the role of the topic."""
    topics = {settings.topic(role): role for role in pipeline_topics(settings)}
    described = clients.admin(kafka).describe_topics(
        TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=20
    )
    letters = {AclOperation.READ: "R", AclOperation.WRITE: "W"}
    return {
        topics[name]: {letters.get(one, one.name) for one in future.result().authorized_operations}
        for name, future in described.items()
    }


def _due(settings: Settings, part: str) -> dict[str, set[str]]:
    """What the matrix grants."""
    looking = {"DESCRIBE", "DESCRIBE_CONFIGS"}
    return {role: {*MATRIX[role].get(part, ""), *looking} for role in pipeline_topics(settings)}


def _granted_in_groups(settings: Settings, kafka: KafkaSettings) -> dict[str, set[str]]:
    """What the broker grants this user in each group, whether or not the group is there.

    Raises KafkaException if it does not answer for another reason than a right that is lacking.
    """
    granted: dict[str, set[str]] = {}
    for name in groups(settings.query.name):
        # The broker that has just started does not coordinate groups yet.
        wait_for(lambda name=name: granted.update(_granted_in_group(kafka, name)) or name in granted)
    return granted


def _granted_in_group(kafka: KafkaSettings, group: str) -> dict[str, set[str]]:
    """The group -> its operations; empty while nobody coordinates it."""
    letters = {AclOperation.READ: "R", AclOperation.DESCRIBE: "D"}
    (described,) = (
        clients.admin(kafka)
        .describe_consumer_groups([group], include_authorized_operations=True, request_timeout=20)
        .values()
    )
    try:
        operations = described.result().authorized_operations
    except KafkaException as error:
        code = error.args[0].code()
        if code in _NOT_YET:
            return {}
        if code != KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise
        operations = []
    return {group: {letters.get(one, one.name) for one in operations}}


def _due_in_groups(settings: Settings, part: str) -> dict[str, set[str]]:
    """What the table grants: who may read as a group may describe it."""
    letters = {"R": {"R", "D"}, "D": {"D"}, "": set[str]()}
    return {name: letters[parts.get(part, "")] for name, parts in groups(settings.query.name).items()}


def _usable_ids(settings: Settings, kafka: KafkaSettings) -> set[str]:
    """The transactional ids that this user may use.

    Raises KafkaException if one fails for another reason than a right that is lacking.
    """
    usable = set()
    for name in IDS:
        client = clients.producer(kafka, transactional_id=f"{settings.query.name}.{name}")
        try:
            client.init_transactions(20)
        except KafkaException as error:
            if "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" not in str(error):
                raise
        else:
            usable.add(name)
    return usable


def _own_ids(part: str) -> set[str]:
    return {name for name, owner in IDS.items() if owner == part}


def _written(kafka: KafkaSettings, topic: str) -> bool:
    """Whether the broker took a record, from a producer that is asked to be no more than one."""
    errors: list[Any] = []
    client = clients.producer(kafka)
    try:
        client.produce(topic, value=b"x", on_delivery=lambda error, _: errors.append(error))
        clients.flush(client, kafka, timeout=10)
    except (EvenflowError, KafkaException):
        return False
    return [error is None for error in errors] == [True]  # a KafkaError cannot be compared with None
