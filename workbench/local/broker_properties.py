"""What the embedded broker is told in `server.properties`: its node, logins and TLS, as names and values.

`broker` adds the caller's own properties and writes the file. For TLS there is a second file, with the
identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evenflow.settings.kafka import jaas_quoted

HOST = "127.0.0.1"
MESSAGE_BYTES = 33_554_432
_NEVER = 2**63 - 1


@dataclass(frozen=True)
class Certificates:
    """PEM files of a broker and its clients.

    The certificate must be for 127.0.0.1, because clients check that.
    """

    authority: Path
    """The certificate authority that broker and clients trust."""
    certificate: Path
    """The one certificate that both use."""
    key: Path
    """Private key of the certificate, in PKCS#8."""


def broker_properties(log_dir: Path, port: int, controller_port: int) -> dict[str, str]:
    """One node that is broker and controller: small enough for one machine, and quick enough for tests.

    log_dir: folder of the broker's log. Where Kafka's defaults are for a cluster (replicas, partitions of its
    own topics, threads, buffers), smaller values stand here.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{port}",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.max.timeout.ms": "900000",
        # How often the broker looks for transactions of dead producers. The default adds up to 10 s to their
        # timeout.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # Tests start and kill members of groups all the time, and should not wait for them.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
        "group.consumer.min.session.timeout.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "200",
        "message.max.bytes": str(MESSAGE_BYTES),
        "replica.fetch.max.bytes": str(MESSAGE_BYTES),
        "replica.fetch.response.max.bytes": str(2 * MESSAGE_BYTES),
        "socket.request.max.bytes": str(4 * MESSAGE_BYTES),
        # A replay writes event times of any age as timestamps.
        "log.message.timestamp.after.max.ms": str(_NEVER),
        "log.message.timestamp.before.max.ms": str(_NEVER),
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "log.cleaner.dedupe.buffer.size": "16777216",
        "initial.broker.registration.timeout.ms": "30000",
        "controlled.shutdown.enable": "true",
        "telemetry.max.bytes": "1048576",
    }


def login_properties(users: Mapping[str, str], super_user: str) -> dict[str, str]:
    """Logins on both listeners, so that no process of this machine gets in without a name.

    users: name -> password. super_user: one of them, who needs no ACL.
    """
    known = " ".join(f"user_{name}={jaas_quoted(password)}" for name, password in users.items())
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f"username={jaas_quoted(super_user)} password={jaas_quoted(users[super_user])} {known};"
    )
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": jaas,
        "listener.name.controller.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{super_user}",
        "allow.everyone.if.no.acl.found": "false",
    }


def tls_properties(tls: Certificates, folder: Path) -> dict[str, str]:
    """TLS for the client listener. Writes key and certificate into one file in `folder`, as Kafka wants
    them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    identity = folder / "identity.pem"
    identity.touch(0o600)  # before the key is written, so that nobody else can read it
    identity.write_bytes(tls.key.read_bytes() + b"\n" + tls.certificate.read_bytes())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tls.authority),
        "ssl.client.auth": "required",
    }


def escaped(value: str) -> str:
    """The value as a Java properties file needs it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
