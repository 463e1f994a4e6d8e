"""The page `/key/`: any key in its address, everything escaped, a limit of time, and answers that are
true.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ServiceError
from evenflow.keys import hash_keys
from evenflow.partitioners import create
from evenflow.partitioners.preview import preview
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import HotKey
from partitioner_service.plane.questions import Questions
from partitioner_service.reports.hot_keys import HotKeys
from partitioner_service.reports.key_answer import key_answer
from partitioner_service.routing.planned_partitioner import PlannedPartitioner
from partitioner_service.web.key_page import HEADERS, Page, Question, answered, as_html, as_json, question_of
from tests.examples import examples

RAW = load_settings(query={"name": "q", "key": "@key"}, input={"partitions": 1})
TEXT = load_settings(query={"name": "q", "key": "k"}, input={"partitions": 1})


def asked(question: Question, ask: Callable[[bytes], Future[dict[str, Any]]], patience: float = 5.0) -> Page:
    return asyncio.run(answered(RAW, question, ask, patience=patience))


def answer_of(key: bytes, name: str = "evenflow", of: Settings = RAW, tuples: int = 4_000) -> dict[str, Any]:
    plans = PlannedPartitioner(of, create(name, workers=4))
    keys = pa.array([key if row % 10 < 6 else b"%d" % row for row in range(tuples)], pa.binary())
    hashes, times, hottest = hash_keys(keys), np.arange(tuples, dtype=np.int64), HotKeys()
    hottest.note(keys, hashes, plans.partitioner.assign(hashes, times))
    return key_answer(of, plans, key, reached=tuples - 1 if tuples else None, hot_key_of=hottest.hot_key)


# ---- the key in the address


@given(st.binary(max_size=50))
def test_any_bytes_can_be_asked_for_in_the_path_and_as_a_parameter(key: bytes) -> None:
    written = quote_from_bytes(key, safe="")
    if key:
        assert question_of(f"/key/{written}/", "").typed == key
        assert question_of(f"/key/{written}", "").typed == key
    assert question_of(f"/key/?key={written}", "").typed == key
    assert question_of("/key/?" + urlencode({"key": key, "format": "json"}), "") == Question(key, True)


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("/key/", None),
        ("/key/?format=json", None),
        ("/key/?key=", b""),
        ("/key/a/b/", b"a/b"),
        ("/key/a%2Fb%2F/", b"a/b/"),
        ("/key/a%ZZ/", b"a%ZZ"),
        ("/key/?key=a+b%2Bc", b"a b+c"),
        ("/key/%FF%00/?x=1", b"\xff\0"),
    ],
)
def test_how_a_key_is_written_in_an_address(path: str, typed: bytes | None) -> None:
    assert question_of(path, "").typed == typed


def test_json_is_for_those_who_ask_for_it() -> None:
    assert question_of("/key/a/", "application/json").wants_json
    assert question_of("/key/a/?format=json", "*/*").wants_json
    assert not question_of("/key/a/", "text/html,*/*").wants_json


# ---- the answer


def test_an_answer_says_rule_home_holders_share_and_where_the_next_tuples_go() -> None:
    answer = answer_of(b"hot")
    assert answer["rule"].startswith("split: worker")
    assert answer["home"] in answer["next_workers"]
    assert len(answer["holders"]) > 1
    assert answer["share"] == pytest.approx(0.6, abs=0.1)
    assert answer["recent"]["share"] == pytest.approx(0.6, abs=0.1)
    assert sum(answer["next_tuples"].values()) == 100
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_a_key_that_never_came_has_an_answer_too_also_before_the_first_tuple() -> None:
    answer = key_answer(
        RAW,
        PlannedPartitioner(RAW, create("evenflow", workers=4)),
        b"x",
        reached=None,
        hot_key_of=lambda _: None,
    )
    assert (answer["recent"], answer["next_tuples"]) == (None, None)
    assert "no tuple" in answer["next_tuples_note"]
    assert "no tuple yet" in as_html(RAW, Page(200, answer=answer))


def test_a_large_state_is_not_copied_and_that_is_said() -> None:
    p = create("evenflow", workers=4, cells=1 << 22)
    assert preview(p, 5, 0) is None
    answer = key_answer(RAW, PlannedPartitioner(RAW, p), b"x", reached=0, hot_key_of=lambda _: None)
    assert answer["next_tuples"] is None
    assert "8,000,000" in answer["next_tuples_note"]


@pytest.mark.parametrize("name", ["hashing", "dalton", "evenflow"])
def test_the_next_tuples_are_those_that_would_come_and_nothing_changes(name: str) -> None:
    p = create(name, workers=4)
    keys = np.full(3_000, 5, np.uint64)
    p.assign(keys, np.arange(3_000))
    before = p.snapshot()
    told = preview(p, 5, 2_999)
    assert p.snapshot() == before
    result, counts = np.unique(p.assign(keys[:100], np.full(100, 2_999)), return_counts=True)
    assert told == dict(zip(result.tolist(), counts.tolist(), strict=True))
    assert list(told.values()) == sorted(told.values(), reverse=True)


# ---- the page


@given(
    st.binary(min_size=1, max_size=60)
    | st.sampled_from([b"<script>alert(1)</script>", b"\"'><img src=x>", b"{0}{x}"])
)
@examples(25)
def test_the_page_takes_nothing_of_a_key_as_html(key: bytes) -> None:
    plain = as_html(RAW, Page(200, answer=answer_of(b"plain", "hashing", tuples=50)))
    page = as_html(RAW, Page(200, answer=answer_of(key, "hashing", tuples=50)))
    assert page.count("<") == plain.count("<")
    assert page.count('"') == plain.count('"')
    refused = as_html(TEXT, Page(400, trouble=(key.decode("latin-1"), "<b>")))
    assert refused.count("<script") == 0
    assert "&lt;b&gt;" in refused
    assert "http" not in page, "no external resources"


@pytest.mark.parametrize("name", ["hashing", "shuffle", "dalton", "evenflow", "am", "cg", "d-choices"])
def test_every_answer_can_be_shown_to_people(name: str) -> None:
    page = as_html(RAW, Page(200, answer=answer_of(b"hot", name)))
    for shown in ("rule", "home", "next tuple", "share", "event time"):
        assert shown in page


def test_nothing_of_an_answer_is_taken_as_html() -> None:
    answer = answer_of(b"hot") | {
        "rule": "<b>",
        "partitioner": "<i>",
        "next_tuples": None,
        "next_tuples_note": "<u>",
    }
    page = as_html(RAW, Page(200, answer=answer))
    assert not {"<b>", "<i>", "<u>"} & {page[at : at + 3] for at in range(len(page))}


def test_the_style_of_the_page_is_the_only_thing_that_the_headers_let_through() -> None:
    page = as_html(RAW, Page(200))
    assert page.count("<style>") == 1
    assert "style=" not in page
    assert "script" not in page
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]


def test_settings_are_escaped_and_the_form_shows_what_a_key_looks_like() -> None:
    several = load_settings(
        query={"name": "q", "key": ["<a>", "b"], "types": {"b": "int64"}}, input={"partitions": 1}
    )
    page = as_html(several, Page(200))
    assert "&lt;a&gt;, b" in page
    assert "[&quot;DE&quot;,5]" in page


# ---- asking


def test_without_a_key_the_page_is_a_form() -> None:
    def never(key: bytes) -> Future[dict[str, Any]]:
        raise AssertionError

    page = asked(Question(None, False), never)
    assert page == Page(200)
    assert "no key was asked for" in as_json(page)["error"]


def test_a_data_plane_that_does_not_come_round_is_said_with_503_and_the_question_is_withdrawn() -> None:
    questions = Questions(most=1)
    page = asked(Question(b"a", True), questions.ask, patience=0.01)
    assert page.status == 503
    assert "has not come round within 0.01 s" in as_json(page)["error"]
    worked_out: list[bytes] = []

    def late(key: bytes) -> dict[str, Any]:
        worked_out.append(key)
        return {}

    questions.answer_one(late)
    assert not worked_out, "nobody waits for it any more"
    assert questions.ask(b"b"), "the withdrawn question has given up its place"


def test_too_many_questions_are_said_with_503() -> None:
    questions = Questions(most=1)
    questions.ask(b"a")
    page = asked(Question(b"b", True), questions.ask)
    assert page.status == 503
    assert "wait" in as_json(page)["error"]


def test_what_is_no_key_is_said_with_400_and_nobody_is_asked() -> None:
    def never(key: bytes) -> Future[dict[str, Any]]:
        raise AssertionError

    page = asyncio.run(answered(TEXT, Question(b"\xff", True), never))
    assert page.status == 400
    assert "UTF-8" in as_json(page)["error"]
    assert "as it stands in results" in as_json(page)["hint"]


def test_a_question_that_fails_is_said_with_500_and_no_more_than_the_kind_of_its_error() -> None:
    def fails(key: bytes) -> Future[dict[str, Any]]:
        answer: Future[dict[str, Any]] = Future()
        answer.set_exception(KeyError("secret"))
        return answer

    page = asked(Question(b"a", True), fails)
    assert page.status == 500
    assert "KeyError" in as_json(page)["error"]
    assert "secret" not in json.dumps(as_json(page))


def test_a_service_error_of_the_data_plane_is_said_with_its_hint() -> None:
    def refused(key: bytes) -> Future[dict[str, Any]]:
        raise ServiceError("no", hint="later")

    assert as_json(asked(Question(b"a", True), refused)) == {"error": "no", "hint": "later"}


def test_the_sample_knows_a_hot_key_by_its_hash() -> None:
    keys, hottest = pa.array([b"a"] * 50 + [b"b"] * 50, pa.binary()), HotKeys()
    hashes = hash_keys(keys)
    hottest.note(keys, hashes, np.arange(100, dtype=np.int32) % 2)
    seen = hottest.hot_key(int(hashes[0]))
    assert isinstance(seen, HotKey)
    assert (seen.key, seen.share, seen.holders) == ("a", 0.5, 2)
    assert hottest.hot_key(1) is None
