"""Schemas that the registry withholds, ids that nobody has registered, and many of them in one block."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from partitioner_service.plane.schema_wait import SchemaWait
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import Schemas, SchemasToCome, Withheld
from tests.schema_registry import RegistryInMemory, schema_registry
from tests.unit.partitioner_service.reading.registered_records import Kept, avro, record_of
from topics.schemas.registry import RegisteredSchema, RegistryAway, SchemaRefused

TWO = record_of(("k", "string"), ("t", "long"))
OTHER = record_of(("k", "string"), ("t", "long"), name="Other")


@pytest.fixture
def registry() -> Iterator[RegistryInMemory]:
    with schema_registry() as kept:
        kept.register(json.dumps(TWO), subject="orders-value")
        yield kept


def settings_of(registry: RegistryInMemory) -> Settings:
    address = {"url": registry.url, "username": "u", "password": "hush-hush", "timeout": "2s"}
    return load_settings(
        query={"name": "q", "key": "k", "time": "t", "window": "1s", "aggregates": {"n": "count"}},
        input={"format": "avro", "topic": "orders", "registry": address},
    )


def record(number: int) -> bytes:
    return avro(TWO, {"k": "a", "t": 1}, number)


def test_a_forbidden_id_makes_its_own_records_unreadable_with_the_registrys_words(
    registry: RegistryInMemory,
) -> None:
    registry.forbidden = {7}
    parser = Parser(settings_of(registry))
    assert len(parser.parse([record(1)]).rows) == 1
    parsed = parser.parse([record(1), record(7), record(8), record(1)])
    assert parsed.rows.tolist() == [0, 3]
    assert dict(parsed.bad) == {
        1: "the registry refuses schema 7: HTTP 403: User is denied operation Read on Schema: 7",
        2: "the registry has no schema of id 8",
    }
    assert set(parsed.bad.counted()) == {
        "the registry refuses schema ...",
        "the registry has no schema of id ...",
    }


def test_a_forbidden_id_beside_a_permitted_one_in_the_first_block_ends_nothing(
    registry: RegistryInMemory,
) -> None:
    registry.forbidden = {7}
    assert Parser(settings_of(registry)).parse([record(7), record(1)]).rows.tolist() == [1]


def test_a_forbidden_id_alone_in_the_first_block_ends_nothing_if_the_registry_hands_out_another_schema(
    registry: RegistryInMemory,
) -> None:
    registry.forbidden = {7}
    assert dict(Parser(settings_of(registry)).parse([record(7)]).bad)
    registry.subjects["other"] = registry.subjects.pop("orders-value")
    assert dict(Parser(settings_of(registry)).parse([record(7)]).bad)


@pytest.mark.parametrize("status", [401, 403, 404, 400, 302])
def test_a_registry_that_refuses_everything_from_the_start_is_a_clear_error(
    registry: RegistryInMemory, status: int
) -> None:
    registry.status = status
    with pytest.raises(ConfigError, match=f"refuses .*HTTP {status}"):
        Parser(settings_of(registry)).parse([record(1), record(7)])


def test_a_password_that_is_refused_later_makes_the_instance_wait_and_loses_nothing(
    registry: RegistryInMemory,
) -> None:
    parser = Parser(settings_of(registry))
    parser.parse([record(1)])
    number = registry.register(json.dumps(OTHER), subject="other")
    registry.status = 401
    with pytest.raises(RegistryAway, match=r"handed out before.*HTTP 401"):
        parser.parse([record(number)])
    registry.status = 200
    assert len(parser.parse([record(number)]).rows) == 1


def test_what_the_registry_says_is_passed_on_short_printable_and_without_the_password(
    registry: RegistryInMemory,
) -> None:
    said = "user u:hush-hush is\n\x1b[31mdenied" + "x" * 5_000
    registry.raw[7] = 403, json.dumps({"error_code": 40301, "message": said}).encode()
    parsed = Parser(settings_of(registry)).parse([record(1), record(7)])
    reason = parsed.bad[1]
    assert "hush" not in reason
    assert reason.isprintable()
    assert len(reason) < 500


def test_an_answer_that_is_no_schema_makes_the_records_of_its_id_unreadable(
    registry: RegistryInMemory,
) -> None:
    registry.raw[7] = 200, b"<html>"
    registry.raw[8] = 404, json.dumps({"error_code": None, "message": None}).encode()
    registry.raw[9] = 200, json.dumps({"schema": 5, "schemaType": ["AVRO"]}).encode()
    parsed = Parser(settings_of(registry)).parse([record(number) for number in (1, 7, 8, 9)])
    assert parsed.rows.tolist() == [0]
    assert (
        parsed.bad[1]
        == parsed.bad[3].replace("9", "7")
        == "the registry refuses schema 7: the answer is no schema"
    )


def test_a_server_error_for_one_id_is_an_outage_and_nothing_is_judged(registry: RegistryInMemory) -> None:
    registry.raw[7] = 500, b"{}"
    parser = Parser(settings_of(registry))
    with pytest.raises(RegistryAway):
        parser.parse([record(1), record(7)])
    del registry.raw[7]
    assert parser.parse([record(1), record(7)]).rows.tolist() == [0]


class Refusing(Kept):
    """Refuses some ids."""

    def __init__(self, form: str, *texts: str, forbidden: set[int]) -> None:
        super().__init__(form, *texts)
        self.forbidden = forbidden

    def schema(self, number: int) -> RegisteredSchema | None:
        if number in self.forbidden:
            self.asked.append(number)
            raise SchemaRefused("refused", why="HTTP 403", hint="")
        return super().schema(number)


def test_a_withheld_id_is_asked_for_again_after_a_minute() -> None:
    now = [0.0]
    kept = Refusing("avro", json.dumps(TWO), json.dumps(OTHER), forbidden={2})
    schemas = Schemas(kept, clock=lambda: now[0])
    for _ in range(3):
        assert schemas.of([1, 2])[2] == Withheld("HTTP 403")
    assert kept.asked.count(2) == 2, "asked once, and once more when the other id had come"
    kept.forbidden.clear()
    now[0] = 61.0
    assert isinstance(schemas.of([2])[2], RegisteredSchema)


def test_an_id_is_not_withheld_by_a_registry_that_shuts_everybody_out_behind_the_first_answer() -> None:
    class Closing(Refusing):
        def schema(self, number: int) -> RegisteredSchema | None:
            try:
                return super().schema(number)
            finally:
                self.forbidden = {1, 2}

    kept = Closing("avro", json.dumps(TWO), json.dumps(OTHER), forbidden=set())
    schemas = Schemas(kept, at_once=1)
    with pytest.raises(RegistryAway, match="refuses schemas that it handed out before"):
        schemas.of([1, 2])
    assert kept.asked.count(2) == 2, "once more, because the first answer had come"


def test_an_id_that_is_permitted_while_others_are_asked_for_is_read() -> None:
    class Recovering(Refusing):
        def schema(self, number: int) -> RegisteredSchema | None:
            try:
                return super().schema(number)
            finally:
                self.forbidden = set()

    kept = Recovering("avro", json.dumps(TWO), json.dumps(OTHER), forbidden=set())
    schemas = Schemas(kept)
    schemas.of([1])
    kept.forbidden = {1, 2}
    assert isinstance(schemas.of([2])[2], RegisteredSchema)


def test_ids_that_are_new_are_asked_for_several_at_once() -> None:
    together = threading.Barrier(8, timeout=10)

    class Slow(Kept):
        def schema(self, number: int) -> RegisteredSchema | None:
            together.wait()  # passes only if eight ask at the same time
            return super().schema(number)

    kept = Slow("avro", json.dumps(TWO))
    result = Schemas(kept, at_once=8).of(range(1, 9))
    assert [number for number, schema in result.items() if schema is not None] == [1]


def test_a_block_of_made_up_ids_takes_bounded_time_and_judges_only_what_the_registry_answered() -> None:
    now = [0.0]

    class Slow(Kept):
        def schema(self, number: int) -> RegisteredSchema | None:
            now[0] += 0.01
            return super().schema(number)

    kept = Slow("avro", json.dumps(TWO))
    schemas = Schemas(kept, at_once=1, ask_for=2.0, clock=lambda: now[0])
    for _ in range(4):
        began = now[0]
        with pytest.raises(SchemasToCome) as raised:
            schemas.of(range(1, 1_001))
        assert now[0] - began <= 2.02
        assert SchemaWait().next(raised.value) == 0.0, "the registry answers, so there is nothing to wait for"
    result = schemas.of(range(1, 1_001))
    assert len(kept.asked) == 1_000, "each was asked for once"
    assert [number for number, schema in result.items() if schema is not None] == [1]


def test_more_schemas_than_are_remembered_may_stand_in_one_block() -> None:
    kept = Kept("avro", *[json.dumps(TWO)] * 10_050)
    schemas = Schemas(kept, at_once=1)
    assert all(schemas.of(range(1, 10_051)).values())
    schemas.of([1])
    assert len(schemas._known) <= 10_001
