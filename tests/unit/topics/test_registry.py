"""The registry's client over HTTP: what is a schema, what is none, what may heal, and what stops a
service.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import InputSettings
from partitioner_service.plane.schema_wait import SchemaWait
from tests.schema_registry import RegistryInMemory, schema_registry
from topics.schemas.registry import Registry, RegistryAway
from workbench.assist.doctor.topics import check_registry


@pytest.fixture
def kept() -> Iterator[RegistryInMemory]:
    with schema_registry() as registry:
        yield registry


def client(kept: RegistryInMemory, path: str = "") -> Registry:
    return Registry(settings(kept.url + path))


def settings(url: str, form: str = "avro") -> InputSettings:
    return InputSettings.model_validate({"format": form, "registry": {"url": url, "timeout": "1s"}})


def test_a_schema_comes_with_those_that_it_refers_to(kept: RegistryInMemory) -> None:
    kept.register('{"type":"enum","name":"E","symbols":["A"]}', subject="e")
    reference = {"name": "E", "subject": "e", "version": 1}
    text = '{"type":"record","name":"R","fields":[{"name":"x","type":"E"}]}'
    number = kept.register(text, subject="r", references=[reference])
    result = client(kept).schema(number)
    assert result is not None
    assert result.form == "avro"
    assert result.texts == ('{"type":"enum","name":"E","symbols":["A"]}', text)
    assert result.names == ("E", "")


def referring(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "subject": name, "version": 1} for name in names]


@pytest.fixture
def paths(kept: RegistryInMemory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the registry is asked for. It has no subject whose name begins with gone."""
    asked: list[str] = []
    answer = kept.answer

    def noted(method: str, path: str, body: object) -> tuple[int, object]:
        asked.append(path)
        gone = "/gone" in path
        return (404, {"error_code": 40401, "message": "none"}) if gone else answer(method, path, body)

    monkeypatch.setattr(kept, "answer", noted)
    return asked


@pytest.mark.usefixtures("paths")
def test_each_schema_comes_behind_those_that_it_refers_to_itself(kept: RegistryInMemory) -> None:
    kept.register('"d"', subject="d", references=referring("a"))  # back to the beginning
    kept.register('"c"', subject="c", references=referring("d"))
    kept.register('"b"', subject="b", references=referring("gone", "d"))
    kept.register('"a"', subject="a", references=referring("b", "c"))
    result = client(kept).schema(kept.register('"r"', subject="r", references=referring("a", "c")))
    assert result is not None
    assert result.names == ("d", "b", "c", "a", "")
    assert result.texts == ('"d"', '"b"', '"c"', '"a"', '"r"')


def test_the_registry_is_asked_a_bounded_number_of_times_for_what_a_schema_refers_to(
    kept: RegistryInMemory, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.schemas.registry._MOST_REFERENCES", 20)
    for number in range(64):  # a binary tree, of which each node refers to schemas that are not there, too
        gone = [f"gone{number}-{other}" for other in range(18)]
        references = referring(*gone, str(2 * number + 1), str(2 * number + 2))
        kept.register(f'"{number}"', subject=str(number), references=references)
    assert client(kept).schema(1) is not None
    assert len(paths) == 1 + 20


def test_only_the_registrys_own_word_makes_a_schema_unknown(kept: RegistryInMemory) -> None:
    assert client(kept).schema(99) is None
    with pytest.raises(ConfigError, match="url that of a schema registry"):
        client(kept, "/elsewhere").schema(1)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_outage_may_heal(kept: RegistryInMemory, status: int) -> None:
    registry = client(kept)
    kept.status = status
    with pytest.raises(RegistryAway, match=f"HTTP {status}"):
        registry.schema(1)
    kept.status = 200
    assert registry.schema(1) is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_user_who_is_refused_is_a_clear_error(kept: RegistryInMemory, status: int) -> None:
    kept.status = status
    with pytest.raises(ConfigError, match=r"refuses us.*\n.*username and password"):
        client(kept).schema(1)


def test_a_registry_that_nobody_runs_is_away(kept: RegistryInMemory) -> None:
    with pytest.raises(RegistryAway, match="does not answer"):
        Registry(settings("http://127.0.0.1:1")).schema(1)


def test_the_doctor_asks_the_registry(kept: RegistryInMemory) -> None:
    from evenflow.settings import load_settings

    def found(url: str) -> list[tuple[str, str]]:
        made = load_settings(query={"name": "q"}, input={"format": "avro", "registry": {"url": url}})
        return [(one.status, one.what) for one in check_registry(made)]

    assert found(kept.url) == [("ok", f"answers at {kept.url}, 0 subjects")]
    assert found("http://127.0.0.1:1")[0][0] == "problem"
    assert list(check_registry(load_settings(query={"name": "q"}))) == []
    of_results = {"sink": "avro", "registry": {"url": kept.url}}
    (one,) = check_registry(load_settings(query={"name": "q"}, results=of_results))
    assert (one.name, one.status) == ("schema registry of results", "ok")


def test_waiting_is_longer_each_time_and_shows_until_it_is_over() -> None:
    now = [0.0]
    wait = SchemaWait(clock=lambda: now[0])
    assert wait.standing_still() == []
    assert [wait.next(RegistryAway("away")) for _ in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    now[0] = 70.0
    assert wait.standing_still() == [{"what": "registry", "seconds": 70.0, "reason": "away"}]
    wait.over()
    assert wait.standing_still() == []
    assert wait.next(RegistryAway("away")) == 0.1
