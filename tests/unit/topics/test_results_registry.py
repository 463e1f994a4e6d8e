"""The schema of results at a start: registered, found there, or refused in words that say what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings.sections.input import RegistrySettings
from tests.schema_registry import RegistryInMemory, schema_registry
from topics.schemas.registry import RegistryAway
from topics.schemas.results import ResultsRegistry

SUBJECT = "q.results-value"


@pytest.fixture
def kept() -> Iterator[RegistryInMemory]:
    with schema_registry() as registry:
        yield registry


def client(url: str) -> ResultsRegistry:
    return ResultsRegistry(RegistrySettings(url=url, timeout="1s"), "results.registry")


def schema(name: str = "q_results", **fields: Any) -> str:
    said = [{"name": own, "type": kind} for own, kind in fields.items()]
    return json.dumps({"type": "record", "namespace": "evenflow.results", "name": name, "fields": said})


def test_a_schema_is_registered_once_and_then_found(kept: RegistryInMemory) -> None:
    kept.register(schema(other="int"), subject="other")
    registry = client(kept.url)
    assert registry.number(SUBJECT, schema(n="long")) is None
    number = registry.admit(SUBJECT, schema(n="long"), register=True)
    assert number == 2
    kept.read_only = True
    assert registry.admit(SUBJECT, schema(n="long"), register=True) == number
    assert registry.admit(SUBJECT, schema(n="long"), register=False) == number
    assert registry.registered(SUBJECT, schema(n="long")) == number
    assert kept.subjects[SUBJECT] == [number]


def test_a_schema_that_is_not_accepted_beside_an_earlier_one_is_refused_in_words(
    kept: RegistryInMemory,
) -> None:
    kept.register(schema("before", **{f"old{at}": "int" for at in range(3)}), subject=SUBJECT)
    with pytest.raises(IncompatibleStateError) as refused:
        client(kept.url).admit(SUBJECT, schema(n="long", a="int", b="int", c="int"), register=True)
    said = str(refused.value)
    assert f"another schema is registered at {kept.url} under {SUBJECT}" in said
    assert (
        "results have no field old0; results have no field old1; results have no field old2; it has no"
        " field n" in said
    )
    assert "and 3 more" in said
    assert "set results.topic to a topic of its own" in said
    kept.schemas[0]["schema"] = schema("before", n="string")
    with pytest.raises(
        IncompatibleStateError, match='its field n is "string", and that of results is "long"'
    ) as refused:
        client(kept.url).admit(SUBJECT, schema(n="long"), register=False)
    assert (
        "its record is called evenflow.results.before, and that of results evenflow.results.q_results"
        in str(refused.value)
    )
    assert kept.subjects[SUBJECT] == [1]
    kept.level = "NONE"
    assert client(kept.url).admit(SUBJECT, schema(n="long"), register=True) == 2


@pytest.mark.parametrize("text", ['"string"', "{", "[]", '{"type":"record","fields":[{}]}', "[" * 100_000])
def test_an_earlier_schema_that_is_no_record_is_refused_too(kept: RegistryInMemory, text: str) -> None:
    kept.register(text, subject=SUBJECT)
    answer = kept.answer

    def refusing(method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "POST" and path == f"/subjects/{SUBJECT}":
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return (200, {"is_compatible": False}) if "/compatibility/" in path else answer(method, path, body)

    kept.answer = refusing  # type: ignore[method-assign]
    with pytest.raises(IncompatibleStateError, match=r"it is no record|it cannot be read"):
        client(kept.url).admit(SUBJECT, schema(n="long"), register=True)


def test_what_must_be_registered_beforehand_is_not_registered(kept: RegistryInMemory) -> None:
    with pytest.raises(ConfigError, match=r"results.register_schema is false\n.*evenflow results --schema"):
        client(kept.url).admit(SUBJECT, schema(n="long"), register=False)
    with pytest.raises(ConfigError, match=r"not registered.*\n.*a start registers it"):
        client(kept.url).registered(SUBJECT, schema(n="long"))
    assert kept.subjects == {}


def test_who_may_not_register_is_told_what_to_do(kept: RegistryInMemory) -> None:
    kept.read_only = True
    with pytest.raises(
        ConfigError,
        match=(
            r"does not register the schema.*User is denied(.|\n)*give the user of results.registry the"
            r" right(.|\n)*"
            "results.register_schema = false"
        ),
    ):
        client(kept.url).admit(SUBJECT, schema(n="long"), register=True)


def test_a_registry_that_is_away_or_refuses_the_user_is_named_with_its_section(
    kept: RegistryInMemory,
) -> None:
    with pytest.raises(RegistryAway, match=r"127.0.0.1:1 does not answer(.|\n)*results.registry.url"):
        client("http://127.0.0.1:1").admit(SUBJECT, schema(n="long"), register=True)
    kept.status = 401
    with pytest.raises(ConfigError, match=r"refuses us(.|\n)*results.registry.username"):
        client(kept.url).admit(SUBJECT, schema(n="long"), register=True)
