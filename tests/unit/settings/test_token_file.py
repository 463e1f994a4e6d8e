"""The token with which clients log in: read anew for each log-in, named when it cannot be, never quoted."""

from __future__ import annotations

import base64
import json
import socket
import threading
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings, load_settings
from evenflow.settings.kafka import aiokafka_config, java_config, librdkafka_config
from evenflow.settings.token_file import TokenFile, token_endpoint
from spark_consumers.cluster.machines import refuse_unshared

NOW = 1_800_000_000
FAR = 4_000_000_000


def token(**claims: object) -> str:
    parts = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "none"}, claims)
    )
    return ".".join(part.rstrip("=") for part in parts) + ".sig"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "token"
    place.write_text(token(sub="ann", exp=FAR) + "\n")
    return place


def settings(file: Path, **more: object) -> KafkaSettings:
    fields = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_token_file": file}
    return KafkaSettings.model_validate(fields | more)


def test_a_new_token_in_the_file_counts_at_the_next_log_in(file: Path) -> None:
    tokens = TokenFile(file, clock=lambda: NOW)
    assert tokens("") == (token(sub="ann", exp=FAR), FAR)
    file.write_text(token(sub="ann", exp=NOW + 1.5))
    assert tokens("") == (token(sub="ann", exp=NOW + 1.5), NOW + 1.5)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("canary", "holds no JSON Web Token"),
        ("", "holds no JSON Web Token"),
        ("a.b", "holds no JSON Web Token"),
        ("a.canary!.c", "holds no JSON Web Token"),
        (f"{token(sub='ann', exp=FAR)} more", "holds no JSON Web Token"),
        (token(sub="canary"), "holds no JSON Web Token"),
        (token(exp="soon"), "holds no JSON Web Token"),
        (token(exp=True), "holds no JSON Web Token"),
        (token(exp=1e300), "holds no JSON Web Token"),
        (token(exp=FAR, more="x" * 70_000), "holds no JSON Web Token"),
        (token(sub="canary", exp=NOW), "ended at 2027-01-15 08:00:00 UTC"),
    ],
)
def test_a_file_without_a_token_that_counts_is_named_and_not_quoted(
    file: Path, content: str, why: str
) -> None:
    file.write_text(content)
    with pytest.raises(ConfigError, match=why) as refused:
        TokenFile(file, clock=lambda: NOW).read()
    assert str(file) in str(refused.value)
    assert not content or content not in str(refused.value)


def test_a_token_file_that_is_not_there_is_named_with_its_setting(tmp_path: Path) -> None:
    for config in (librdkafka_config, java_config):
        with pytest.raises(ConfigError, match=r"kafka\.sasl_token_file: .* cannot be read: No such file"):
            config(settings(tmp_path / "none"))


def test_each_client_asks_for_the_token_when_it_logs_in(file: Path) -> None:
    kafka = settings(file)
    config = librdkafka_config(kafka)
    assert config["sasl.mechanism"] == "OAUTHBEARER"
    assert config["oauth_cb"] == aiokafka_config(kafka)["tokens"] == TokenFile(file)
    java = java_config(kafka)
    assert java["sasl.mechanism"] == "OAUTHBEARER"
    endpoint = token_endpoint(file)
    assert java["sasl.oauthbearer.token.endpoint.url"] == endpoint.url
    assert f'clientSecret="{endpoint.secret}"' in java["sasl.jaas.config"]
    assert endpoint.secret not in repr(endpoint)
    assert token(sub="ann", exp=FAR) not in f"{config} {java} {kafka!r}"


def test_the_endpoint_hands_the_token_of_now_to_who_has_the_secret_alone(file: Path) -> None:
    endpoint = token_endpoint(file)
    assert token_endpoint(file) is endpoint

    def asked(secret: str) -> dict[str, object]:
        request = urllib.request.Request(endpoint.url, data=b"grant_type=client_credentials")
        word = base64.b64encode(f"{endpoint.client}:{secret}".encode()).decode()
        request.add_header("Authorization", f"Basic {word}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            result: dict[str, object] = json.load(answer)
            return result

    file.write_text(token(sub="bob", exp=FAR))
    assert asked(endpoint.secret)["access_token"] == token(sub="bob", exp=FAR)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        asked("wrong")
    for content in ("", token(sub="ann", exp=FAR).removesuffix("sig")):
        file.write_text(content)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            asked(endpoint.secret)


def test_idle_connections_to_the_endpoint_are_bounded_and_keep_nobody_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user of the machine may open connections, and each has a thread of the driver."""
    monkeypatch.setattr("evenflow.settings.token_file._PATIENCE_SECONDS", 60)
    endpoint = token_endpoint(file)
    port = urllib.parse.urlsplit(endpoint.url).port
    assert port is not None
    before = threading.active_count()
    with ExitStack() as idle:
        mine = [
            idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)) for _ in range(300)
        ]
        request = urllib.request.Request(endpoint.url, data=b"grant_type=client_credentials")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=20)
        assert mine[0].recv(1) == b"", "the oldest was closed"
        assert threading.active_count() - before <= 64 + 2


def test_a_token_goes_with_no_password_and_no_other_mechanism(file: Path) -> None:
    with pytest.raises(ValueError, match="lacks sasl_token_file"):
        settings(file, sasl_token_file=None)
    with pytest.raises(ValueError, match="sasl_username has no meaning with sasl_mechanism OAUTHBEARER"):
        settings(file, sasl_username="ann")
    with pytest.raises(ValueError, match="sasl_token_file has no meaning with sasl_mechanism PLAIN"):
        settings(file, sasl_mechanism="PLAIN", sasl_username="ann", sasl_password="x")


def test_executors_elsewhere_need_a_token_endpoint_of_the_user(file: Path) -> None:
    kafka = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_token_file": str(file),
    }
    spark = {"master": "spark://far:7077", "driver_host": "10.0.0.1", "checkpoint": "/shared/checkpoint"}
    with pytest.raises(ConfigError, match=r"cannot get the token of kafka\.sasl_token_file"):
        refuse_unshared(load_settings(kafka=kafka, spark=spark))
    own = {"sasl.oauthbearer.token.endpoint.url": "https://login.example/token"}
    with_own = load_settings(kafka=kafka | {"extras": {"java": own}}, spark=spark)
    refuse_unshared(with_own)
    config = java_config(with_own.kafka)
    assert config["sasl.oauthbearer.token.endpoint.url"] == own["sasl.oauthbearer.token.endpoint.url"]
    assert "clientSecret" not in config["sasl.jaas.config"]
