"""A partitioner whose clients log in by a token (OAUTHBEARER) that ends, and is renewed, while it runs.

Spark is left out: the broker takes unsigned tokens alone without keys of its own, and Java clients signed
ones.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path

import pytest

from tests.pipeline.end_to_end import Pipeline, Stream, committed, make_settings
from workbench.local.broker import EmbeddedBroker

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(400), pytest.mark.more]
LIFE = 20
"""Seconds from the making of a token to its end. The broker closes connections whose token has ended."""
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
BY_TOKEN = {
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    "super.users": "User:admin;User:parts",
    "listener.name.client.oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="admin";',
    "listener.name.client.oauthbearer.sasl.server.callback.handler.class": (
        f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    ),
    "listener.name.client.oauthbearer.connections.max.reauth.ms": "3600000",
}
"""A broker that takes unsigned tokens (Kafka has that for tests), and ends a connection with its token."""


def token(user: str, life: float) -> str:
    now = time.time()
    parts = ({"alg": "none"}, {"sub": user, "iat": int(now) - 1, "exp": now + life})
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        + "."
    )


class Renewal(threading.Thread):
    """Writes a new token into the file, by a rename, when a quarter of the last one's life is over."""

    def __init__(self, file: Path) -> None:
        super().__init__(daemon=True)
        self._file, self._end = file, threading.Event()
        self.tokens: list[str] = []
        self.write()

    def write(self) -> None:
        self.tokens.append(token("parts", LIFE))
        half = self._file.with_suffix(".half")
        half.write_text(self.tokens[-1])
        half.rename(self._file)

    def run(self) -> None:
        while not self._end.wait(LIFE / 4):
            self.write()

    def end(self) -> None:
        self._end.set()
        self.join()


def test_the_clients_of_a_partitioner_go_on_with_the_next_token_when_the_first_ones_have_ended(
    query_name: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    renewal = Renewal(file)
    renewal.start()
    with EmbeddedBroker(sasl={"admin": "a"}, properties=BY_TOKEN) as broker:
        kafka = broker.settings().model_validate(
            {
                "bootstrap_servers": broker.bootstrap_servers,
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_token_file": str(file),
            }
        )
        settings = make_settings(kafka, query_name, tmp_path)
        stream = Stream(settings)
        stream.write(2_000)
        began = time.monotonic()
        with Pipeline(settings, tmp_path) as pipeline:
            pipeline.start("partition", "--until-ended")
            pipeline.wait_until(lambda: committed(settings) == 2_000, timeout=180)
            pipeline.wait_until(lambda: time.monotonic() > began + 2 * LIFE)
            stream.write(2_000)
            stream.end()
            pipeline.finish()
        assert committed(settings) == 4_000
        renewal.end()
    log = (tmp_path / "partition.log").read_text()
    assert not [each for each in renewal.tokens if each in log]
