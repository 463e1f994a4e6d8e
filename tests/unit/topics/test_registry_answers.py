"""Whatever a registry answers, for any ids: records are read, rejected with a reason, or wait. Nothing
else happens.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, EvenflowError
from evenflow.settings import Settings, load_settings
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import Schemas
from tests.examples import examples
from tests.hostile import BYTES
from tests.unit.partitioner_service.reading.registered_records import avro, record_of
from topics.schemas.registry import Registry, RegistryAway

Answer = tuple[int, bytes]

SCHEMA = record_of(("k", "string"), ("t", "long"))
GOOD: Answer = (200, json.dumps({"schema": json.dumps(SCHEMA)}).encode())
ABSENT: Answer = (404, b'{"error_code":40403,"message":"Schema not found"}')
STATUSES = [
    200,
    201,
    204,
    301,
    302,
    400,
    401,
    403,
    404,
    405,
    408,
    409,
    418,
    422,
    425,
    429,
    500,
    502,
    503,
    504,
    599,
]
WORDS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20), st.just("AVRO")
)
TREES = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "schema": WORDS
        | TREES
        | st.sampled_from([json.dumps(SCHEMA), "{}", "[]", '"string"', '{"type":"record"}']),
        "schemaType": WORDS | st.sampled_from(["AVRO", "PROTOBUF", "JSON", "avro"]),
        "references": TREES
        | st.lists(st.fixed_dictionaries({"name": WORDS, "subject": WORDS, "version": WORDS}), max_size=3),
        "error_code": WORDS | st.sampled_from([40403, 40301, 40401, 42201, 50001]),
        "message": WORDS | TREES,
        "id": WORDS,
        "guid": WORDS,
        "metadata": TREES,
        "ruleSet": TREES,
    },
)
BODIES = st.one_of(
    st.sampled_from([GOOD[1], ABSENT[1], *(data for data in BYTES if len(data) < 10_000)]),
    st.binary(max_size=60),
    FIELDS.map(lambda fields: json.dumps(fields).encode()),
    TREES.map(lambda tree: json.dumps(tree).encode()),
)
ANSWERS = st.one_of(st.just(GOOD), st.just(ABSENT), st.tuples(st.sampled_from(STATUSES), BODIES))


def settings_of() -> Settings:
    return load_settings(
        query={"name": "q", "key": "k", "time": "t", "window": "1s", "aggregates": {"n": "count"}},
        input={
            "format": "avro",
            "topic": "in",
            "registry": {"url": "http://registry.invalid", "timeout": "1s"},
        },
    )


SETTINGS = settings_of()
REGISTRY = Registry(SETTINGS.input)
"""Made once: a client reads the certificates of this machine."""


class Answering:
    """A parser whose registry's HTTP is a table: id -> status and body. Any other path is answered by
    `others`.
    """

    def __init__(self, answers: dict[int, Answer], others: Answer = ABSENT) -> None:
        self.answers, self.others, self.now = answers, others, 0.0
        REGISTRY._client._rest_client.session = httpx.Client(
            transport=httpx.MockTransport(self._answer), verify=False
        )
        schemas = Schemas(REGISTRY, hands_out_any=REGISTRY.hands_out_any, at_once=1, clock=lambda: self.now)
        self.parser = Parser(SETTINGS, schemas=schemas)

    def _answer(self, request: Any) -> Any:
        _, _, last = request.url.path.rpartition("/")
        by_id = request.url.path.startswith("/schemas/ids/")
        status, body = self.answers.get(int(last), ABSENT) if by_id else self.others
        return httpx.Response(status, content=body)

    def parse(self, ids: list[int]) -> Any:
        return self.parser.parse([avro(SCHEMA, {"k": "a", "t": 1}, number) for number in ids])


def outcome(answering: Answering, ids: list[int]) -> str:
    """What happened, in a word. Checks what must hold whatever it is."""
    result: EvenflowError | None = None
    try:
        parsed = answering.parse(ids)
    except (RegistryAway, ConfigError) as error:
        result = error
    if result is not None:
        assert len(str(result)) < 3_000
        assert result.hint or isinstance(result, RegistryAway)
        return "away" if isinstance(result, RegistryAway) else "refused"
    assert sorted([*parsed.rows.tolist(), *parsed.bad]) == list(range(len(ids)))
    assert all(reason and len(reason) < 1_000 for reason in parsed.bad.values())
    return "parsed"


@given(
    answers=st.dictionaries(st.integers(0, 2**32 - 1), ANSWERS, max_size=5),
    others=ANSWERS,
    more=st.integers(0, 2**32 - 1),
)
@examples(300)
@example(answers={7: (403, b"{}")}, others=ABSENT, more=8)
@example(answers={7: (404, b'{"error_code":null,"message":null}')}, others=GOOD, more=8)
@example(answers={7: (404, b'{"error_code":"40403"}')}, others=(200, b"[]"), more=8)
@example(answers={7: (200, b'{"schema":5,"schemaType":["AVRO"]}')}, others=(200, b'["s", 5, null]'), more=8)
@example(
    answers={7: (200, b'{"schema":"{}","references":[{"name":"a","subject":"b","version":1}]}')},
    others=(200, b"7"),
    more=8,
)
@example(answers={7: (200, b'{"schema":"{}","references":[5]}')}, others=GOOD, more=7)
@example(answers={7: (500, b"")}, others=GOOD, more=7)
@example(answers={7: (204, b"")}, others=GOOD, more=7)
def test_any_answers_end_in_words(answers: dict[int, Answer], others: Answer, more: int) -> None:
    outcome(Answering(answers, others), [*answers, more])


@given(answers=st.dictionaries(st.integers(2, 2**32 - 1), ANSWERS, max_size=5))
@examples(200)
@example(answers={7: (401, b"")})
@example(answers={7: (302, b"<html>")})
def test_once_a_schema_was_read_no_answer_for_other_ids_ends_an_instance(answers: dict[int, Answer]) -> None:
    answering = Answering({1: GOOD, **answers})
    assert outcome(answering, [1]) == "parsed"
    assert outcome(answering, [1, *answers]) in ("parsed", "away")
    answering.answers = dict.fromkeys([1, *answers], GOOD)
    answering.now += 61.0
    assert outcome(answering, [1, *answers]) == "parsed"


@pytest.mark.parametrize(
    "raised",
    [
        httpx.ReadTimeout,
        httpx.ConnectError,
        httpx.RemoteProtocolError,
        httpx.DecodingError,
        httpx.TooManyRedirects,
    ],
)
def test_whatever_the_connection_does_is_an_outage(raised: Callable[[str], Exception]) -> None:
    answering = Answering({1: GOOD})

    def fail(request: Any) -> Any:
        raise raised("as the test has it")

    REGISTRY._client._rest_client.session = httpx.Client(transport=httpx.MockTransport(fail), verify=False)
    assert outcome(answering, [1]) == "away"
