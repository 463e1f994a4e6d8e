"""Settings as a file for another process."""

from __future__ import annotations

from pathlib import Path

from evenflow.settings import load_settings, save_settings


def test_saved_settings_are_read_back_equal_with_their_secrets_and_only_by_their_owner(
    tmp_path: Path,
) -> None:
    kafka = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "me",
        "sasl_password": "hush",
    }
    query = {"name": "q", "window": "10s", "slide": "1s", "aggregates": {"n": "count", "m": "mean(v)"}}
    registry = {"url": "http://127.0.0.1:1", "username": "me", "password": "quiet"}
    records = {"partitions": 4, "format": "avro", "registry": registry}
    own = {"url": "https://127.0.0.1:2", "username": "writer", "password": "silent"}
    results = {"sink": "avro", "registry": own}
    settings = load_settings(query=query, kafka=kafka, input=records, results=results)
    file = tmp_path / "settings.json"
    save_settings(settings, file)
    again = load_settings(file)
    assert again.model_dump() == settings.model_dump()
    assert again.kafka.sasl_password.get_secret_value() == "hush"
    assert again.input.registry.password.get_secret_value() == "quiet"
    assert again.results.registry.password.get_secret_value() == "silent"
    assert again.fingerprint == settings.fingerprint
    assert file.stat().st_mode & 0o077 == 0
