"""A secret in each setting that may hold one stands in no text that settings make."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.settings.describe import describe_settings

CANARY = "canary-7f3a"
PLACES: Mapping[str, Any] = {
    "kafka.sasl_password": CANARY,
    "kafka.ssl_key_password": CANARY,
    "kafka.extras.librdkafka": {"sasl.password": CANARY},
    "kafka.extras.java": {"sasl.jaas.config": CANARY},
    "kafka.extras.faust": {"broker_client_id": CANARY},
    "input.registry.password": CANARY,
    "results.registry.password": CANARY,
    "spark.conf": {"spark.hadoop.fs.s3a.secret.key": CANARY},
}
"""Every setting that may hold a secret -> a value with one. A file of secrets is named by its path."""
NO_SECRETS = {
    *("web.token_file", "web.tls_key", "kafka.ssl_key", "kafka.sasl_token_file"),
    *(
        "query.key",
        "query.views.NAME.key",
        "query.max_key_bytes",
        "query.lookup.key",
        "query.lookup.file_key",
    ),
}
"""Settings whose names look as if they held one: paths of files, and keys of tuples."""
OTHERS: Mapping[str, Any] = {
    "kafka": {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "me"},
    "input": {"partitions": 4, "format": "avro", "registry": {"url": "http://r:1", "username": "me"}},
    "results": {"sink": "avro", "registry": {"url": "http://r:2", "username": "me"}},
    "query": {"name": "q"},
}


def tables(**changes: Any) -> dict[str, Any]:
    """Settings with a canary in every place. changes: other values of places, by their names with __ for
    dots.
    """
    made: dict[str, Any] = json.loads(json.dumps(OTHERS))
    for place, value in (
        PLACES | {name.replace("__", "."): value for name, value in changes.items()}
    ).items():
        *path, last = place.split(".")
        table = made
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return made


def texts(settings: Settings) -> Iterator[str]:
    yield repr(settings)
    yield str(settings)
    yield json.dumps(settings.identity())
    for name in type(settings).model_fields:
        yield repr(getattr(settings, name))
        yield f"{getattr(settings, name)}"


def test_a_canary_in_every_place_stands_in_no_text_and_no_identity() -> None:
    settings = load_settings(**tables())
    assert settings.spark.conf["spark.hadoop.fs.s3a.secret.key"] == CANARY
    assert settings.kafka.sasl_password == SecretStr(CANARY)
    for text in texts(settings):
        assert CANARY not in text
        assert "hide" not in text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wrong", [[CANARY], 1.5, {CANARY: [CANARY]}])
def test_no_error_of_settings_repeats_a_value(place: str, wrong: Any) -> None:
    made = tables(**{place.replace(".", "__"): wrong})
    with pytest.raises((ConfigError, ValidationError)) as refused:
        load_settings(**made)
    # A wrong name is repeated, as the user needs it: a secret is no name.
    assert CANARY not in re.sub(rf"\.{CANARY}", "", str(refused.value))


@pytest.mark.parametrize(
    "section",
    [
        {"results": {"sink": "postgres", "path": f"postgresql://me:{CANARY}@h/db/rows"}},
        {"results": {"sink": "postgres", "path": f"postgresql://me@tenant:{CANARY}@h/db/rows"}},
        {"results": {"sink": "postgres", "path": f" \tpostgresql://me:{CANARY}@h/db/rows"}},
        {"results": {"sink": "delta", "path": f"s3a://me:{CANARY}@bucket/rows"}},
        {"spark": {"checkpoint": f"S3A://me:{CANARY}@bucket/x"}},
    ],
)
def test_a_place_with_a_password_in_it_is_refused_and_not_repeated(section: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError, match="it holds a password") as refused:
        load_settings(query={"name": "q"}, input={"partitions": 4}, **section)
    assert CANARY not in f"{refused.value}{refused.value.hint}"


@pytest.mark.parametrize(
    "place",
    ["abfss://box@account.dfs.example/x", "postgresql://me@tenant@h:5432/db/rows", "/a:b@c", "s3a://b/k:v@w"],
)
def test_a_place_without_a_password_is_taken(place: str) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 4}, spark={"checkpoint": place})
    assert settings.spark.checkpoint == place


def test_no_error_in_another_place_repeats_a_value(tmp_path: Path) -> None:
    made = tables() | {"partitioner": {"workers": CANARY}}
    for attempt in (lambda: load_settings(**made), lambda: Settings(**made)):
        with pytest.raises((ConfigError, ValidationError)) as refused:
            attempt()
        assert CANARY not in str(refused.value)
    (tmp_path / "evenflow.toml").write_text(f'[kafka]\nsasl_password = "{CANARY}')
    with pytest.raises(ConfigError) as broken:
        load_settings(tmp_path / "evenflow.toml")
    assert CANARY not in str(broken.value)


def test_every_setting_that_looks_like_a_secret_or_takes_any_words_has_a_canary() -> None:
    raw = {"kafka.extras.librdkafka", "kafka.extras.java", "kafka.extras.faust", "spark.conf"}
    suspects = {
        one.name
        for one in describe_settings()
        if "secret text" in one.kind
        or re.search(r"(passw|secret|token|key)(_|\b)", one.name.rpartition(".")[2])
        or one.name in raw
    }
    assert suspects - NO_SECRETS - set(PLACES) == set()
