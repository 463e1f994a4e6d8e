"""`evenflow key`: all instances in one table. Instances that answer are real pages over real partitioners."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from cli.main import app
from evenflow.keys import hash_keys
from evenflow.partitioners import Partitioner, create
from evenflow.settings import load_settings
from evenflow.simulation.channel import Channel, Exchange
from evenflow.telemetry import PartitionerRecord
from partitioner_service.app import reachable
from partitioner_service.reports.key_answer import key_answer
from partitioner_service.routing.planned_partitioner import PlannedPartitioner
from partitioner_service.web.key_page import answered, as_json, question_of
from workbench.assist.activity import Part
from workbench.assist.key_lookup import instances_of

QUERY: dict[str, Any] = {"name": "q", "key": "k", "time": "t"}


@contextmanager
def serving(answer: Any) -> Iterator[str]:
    """A server of HTTP. `answer`: path -> (status, headers, body)."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def instance(name: str, partitioner: Partitioner, **query: Any) -> Iterator[str]:
    """The page `/key/` of an instance with this partitioner."""
    settings = load_settings(
        query=QUERY | query, input={"partitions": 1}, partitioner={"instance": name, "name": partitioner.name}
    )

    def ask(key: bytes) -> Future[dict[str, Any]]:
        done: Future[dict[str, Any]] = Future()
        done.set_result(
            key_answer(
                settings,
                PlannedPartitioner(settings, partitioner),
                key,
                reached=4_000,
                hot_key_of=lambda _: None,
            )
        )
        return done

    def page(path: str) -> tuple[int, dict[str, str], bytes]:
        made = asyncio.run(answered(settings, question_of(path, ""), ask))
        return made.status, {}, json.dumps(as_json(made)).encode()

    with serving(page) as address:
        yield address


def filled(name: str, *others: str, source: int = 0, sources: int = 2) -> Partitioner:
    """A partitioner after tuples of these other keys, and then of many."""
    p = create(name, workers=4, source=source, sources=sources)
    keys = hash_keys([*others, *[f"{row}" for row in range(400)]])
    p.assign(keys, np.arange(len(keys)))
    return p


def evenflow(tmp_path: Path, *words: str, key: str = 'key = "k"') -> Result:
    file = tmp_path / "q.toml"
    file.write_text(f'[query]\nname = "q"\n{key}\ntime = "t"\n[input]\npartitions = 1\n')
    return CliRunner().invoke(app, ["--config", str(file), *words])


def test_all_instances_stand_in_one_table(tmp_path: Path) -> None:
    with instance("a", filled("hashing")) as first, instance("b", filled("hashing", source=1)) as second:
        done = evenflow(tmp_path, "key", "DE", "--at", second, "--at", first)
    assert done.exit_code == 0, done.output
    heading, one, two = done.output.splitlines()
    assert heading.split() == ["instance", "home", "holders", "share", "rule"]
    home = one.split()[1]
    assert one.split()[:2] == ["a", home]
    assert two.split()[:2] == ["b", home]
    assert "its hash names the worker" in one


def test_an_instance_that_does_not_answer_has_a_row_and_the_status_is_1(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{probe.getsockname()[1]}"
    with instance("a", filled("hashing")) as there:
        done = evenflow(tmp_path, "key", "DE", "--at", there, "--at", gone)
    assert done.exit_code == 1
    assert f"{gone}" in done.output
    assert "no answer" in done.output
    assert "its hash names the worker" in done.output


def test_different_homes_are_pointed_out(tmp_path: Path) -> None:
    one, two = create("am", workers=4, sources=2), create("am", workers=4, source=1, sources=2)
    key = next(
        key
        for key in map(str, range(99))
        if len(set(one.explain(int(hash_keys([key])[0])).workers or ())) == 2
    )
    hashed = hash_keys([key])
    one.assign(hashed, np.array([3_999]))
    # The second one has given the first candidate of the key another key before, so the key goes to the other
    # one.
    home = one.explain(int(hashed[0])).home
    other = next(h for h in hash_keys([f"o{n}" for n in range(99)]) if two.explain(int(h)).workers == (home,))
    two.assign(np.array([other]), np.array([3_999]))
    two.assign(hashed, np.array([3_999]))
    with instance("a", one) as first, instance("b", two) as second:
        done = evenflow(tmp_path, "key", key, "--at", first, "--at", second)
        shown = evenflow(tmp_path, "key", key, "--at", first, "--at", second, "--json")
    assert "different homes" in done.output
    assert done.exit_code == 0
    homes = json.loads(shown.output)["homes"]
    assert sorted(names for [names] in homes.values()) == ["a", "b"]


def test_json_has_whatever_the_instances_said(tmp_path: Path) -> None:
    with instance("a", filled("evenflow", sources=1)) as there:
        done = evenflow(tmp_path, "key", "DE", "--at", there, "--json")
    (reply,) = json.loads(done.output)["instances"]
    assert (reply["instance"], reply["address"], reply["trouble"]) == ("a", there, "")
    assert reply["answer"]["key"] == "DE"
    assert sum(reply["answer"]["next_tuples"].values()) == 100


def test_a_key_of_any_bytes_is_typed_as_base64_or_as_it_is(tmp_path: Path) -> None:
    seen: list[bytes | None] = []

    def page(path: str) -> tuple[int, dict[str, str], bytes]:
        seen.append(question_of(path, "").typed)
        return 200, {}, b'{"query":"q","instance":"a","rule":"r","home":null,"share":null}'

    raw = 'key = "@key"'
    with serving(page) as there:
        for words in (["/wA=", "--base64"], ["a b&c=d#?é%"], [""], ["--", "-5"]):
            done = evenflow(tmp_path, "key", "--at", there, *words, key=raw)
            assert done.exit_code == 0, done.output
    assert seen == [b"\xff\0", "a b&c=d#?é%".encode(), b"", b"-5"]


@pytest.mark.parametrize(("name", "word"), [("evenflow", "split"), ("dalton-cooperative", "hot")])
def test_instances_that_learn_together_say_which_worker_their_rule_takes_and_why(
    tmp_path: Path, name: str, word: str
) -> None:
    options = {"window_ms": 4_000, "slide_ms": 100}
    parts = [create(name, workers=4, source=source, sources=2, **options) for source in range(2)]
    exchange = Exchange(parts, Channel(), patience_ms=100)
    keys, times = hash_keys(["DE" if row % 10 < 6 else f"{row}" for row in range(4_050)]), np.arange(4_050)
    for first in range(0, 4_050, 50):
        exchange.catch_up(first)
        for source, part in enumerate(parts):
            mine = slice(first + source, first + 50, 2)
            part.assign(keys[mine], times[mine])
    with instance("a", parts[0]) as one, instance("b", parts[1]) as two:
        shown, whole = (
            evenflow(tmp_path, "key", "DE", "--at", one, "--at", two, *words) for words in ((), ("--json",))
        )
    assert (shown.exit_code, "different homes" in shown.output) == (0, False), shown.output
    told = json.loads(whole.output)
    assert list(told["homes"].values()) == [["a", "b"]]
    for reply in told["instances"]:
        answer = reply["answer"]
        rule = re.match(rf"{word}: worker (\d) ", answer["rule"])
        assert rule, answer["rule"]
        used = int(rule[1])
        assert re.search(
            rf"^{reply['instance']} +{answer['home']} .*{word}: worker {used} ", shown.output, re.M
        )
        holders = {holder["worker"] for holder in answer["holders"]}
        assert {used, answer["home"]} <= holders
        assert answer["share"] == pytest.approx(0.6, abs=0.1)
        assert sum(answer["next_tuples"].values()) == 100
        # Only a Dalton has a row of values, and takes the worker with the highest one.
        assert answer["values"] is None if name == "evenflow" else used == np.argmax(answer["values"])


@pytest.mark.parametrize(
    ("words", "key", "said"),
    [
        (["x"], 'key = "k"\ntypes = { k = "int64" }', "not a whole number"),
        (['["DE"]'], 'key = ["k", "l"]', 'such as ["DE","DE"]'),
        (["?", "--base64"], 'key = "@key"', "not base64"),
    ],
)
def test_what_is_no_key_is_refused_before_anybody_is_asked(
    tmp_path: Path, words: list[str], key: str, said: str
) -> None:
    done = evenflow(tmp_path, "key", *words, "--at", "127.0.0.1:1", key=key)
    assert done.exception is not None
    assert said in str(done.exception)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, {}, b"{"), "no answer"),
        ((200, {}, b'{"query":"q"}'), "none of evenflow's"),
        ((200, {}, b'{"query":"other","instance":"a","rule":"r","home":null,"share":null}'), "query other"),
        ((503, {}, b'{"error":"it starts \\u001b[31m"}'), r"503: it starts \x1b[31m"),
        ((404, {}, b"<html>"), "404: not an answer of evenflow"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "302"),
    ],
)
def test_whatever_another_server_says_is_a_row(tmp_path: Path, answer: Any, said: str) -> None:
    with serving(lambda path: answer) as there:
        done = evenflow(tmp_path, "key", "DE", "--at", there)
    assert done.exit_code == 1
    assert said in done.output
    assert "\x1b" not in done.output


def record(name: str, owned: int, pages: str | None = "127.0.0.1:1") -> PartitionerRecord:
    return PartitionerRecord(
        query="q", fingerprint="0" * 16, time=0, instance=name, started=0, owned=owned, inputs=4, epoch=0,
        workers=1,
        tuples=0, rejected=0, read=0, filtered=0, period_ms=0, pages=pages,
    )  # fmt: skip


def test_an_instance_that_is_gone_counts_no_more_once_others_have_its_partitions() -> None:
    parts = [
        Part(at=at, telemetry=record(name, owned))
        for name, owned, at in (("old", 2, 1_000), ("new", 4, 90_000))
    ]
    assert [one.instance for one in instances_of(parts, 4, now=lambda: 100)] == ["new"]
    assert [one.instance for one in instances_of(parts, 8, now=lambda: 100)] == ["new", "old"]
    assert [one.instance for one in instances_of(parts, 4, now=lambda: 10)] == ["new", "old"]


@given(
    st.sampled_from(["127.0.0.1", "10.0.0.7", "::1", "some-host.example", "0.0.0.0", "::"]),
    st.integers(1, 65535),
)
def test_where_pages_are_can_be_told_in_telemetry(host: str, port: int) -> None:
    told = record("a", 1, pages=reachable(host, port)).pages
    assert told is not None
    assert told.endswith(f":{port}")
    assert "0.0.0.0" not in told
