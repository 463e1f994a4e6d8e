"""Where does a key go? Two real instances on a real broker are asked: the page `/key/`, and
`evenflow key`.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.settings import Settings
from evenflow.wire import decode_frame
from partitioner_service.kafka.committed_state import all_states
from tests.pipeline.planes import start_instance, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, records, write
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

pytestmark = pytest.mark.pipeline

# Names that end in the numbers of two sources.
FIRST, SECOND = "a0", "b1"
# A word that is in no metric's name.
HOT, ODD = "busiest", 'a/b?c=d&e#%2F é"<i>'


@contextmanager
def an_instance(settings: Settings, name: str, port: int, log: Path) -> Iterator[ChildProcess]:
    own = settings.partitioner.model_copy(update={"instance": name, "web_port": port})
    child = start_instance(settings.model_copy(update={"partitioner": own}), log / f"{name}.log")
    try:
        yield child
    finally:
        if child.alive:
            assert child.terminate(30) == 0, child.tail()


def asked(port: int, path: str, accept: str = "application/json") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def has_partitions(port: int) -> bool:
    """Whether the instance on this port has come up and was given input partitions."""
    try:
        status, said = asked(port, "/status/")
    except OSError:
        return False
    return status == 200 and bool(json.loads(said).get("assignment"))


def without_recent(said: str) -> dict[str, Any]:
    """An answer but for what the telemetry's period decides, which may end between two questions."""
    return {name: value for name, value in json.loads(said).items() if name != "recent"}


def workers_of(settings: Settings, key: str) -> set[int]:
    """The workers to which tuples of the key have gone, by the routed topic."""
    result = set()
    for message in records(settings, "routed"):
        frame = decode_frame(message.value(), fingerprint=settings.fingerprint)
        if key.encode() in frame.batch["key"].to_pylist():
            result.add(message.partition())
    return result


def named(answer: dict[str, Any]) -> set[int]:
    """The workers that an answer names: the key's home, and those that hold it."""
    holders = {holder["worker"] for holder in answer["holders"]}
    return holders if answer["home"] is None else holders | {answer["home"]}


@pytest.mark.parametrize(
    "partitioner", ["hashing", "evenflow", pytest.param("dalton-cooperative", marks=pytest.mark.more)]
)
def test_every_instance_says_where_a_key_goes_and_the_command_asks_them_all(
    kafka_settings, query_name, tmp_path, partitioner
):
    settings = make_settings(kafka_settings, query_name, partitioner={"name": partitioner, "instances": 2})
    create_topics(settings)
    # Half of the tuples of each partition have one key, which is split unless keys are hashed.
    rows = [
        (at // 4 % 4, {"k": (HOT, ODD, HOT, f"k{at}")[at % 4], "t": 3 * at, "v": 1}) for at in range(1_200)
    ]
    ports = dict(zip((FIRST, SECOND), free_ports(2), strict=True))
    file = tmp_path / "query.toml"
    kafka = kafka_settings.model_dump(exclude_unset=True)
    file.write_text(
        f'[query]\nname = "{query_name}"\nkey = "k"\ntime = "t"\nwindow = "4s"\nslide = "1s"\n'
        'types = { v = "int64" }\naggregates = { n = "count", s = "sum(v)" }\n'
        "[input]\npartitions = 4\n[partitioner]\nworkers = 3\ninstances = 2\n"
        f'name = "{partitioner}"\n'
        "[kafka]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in kafka.items())
    )

    def command(*words: str) -> Any:
        return CliRunner().invoke(app, ["--config", str(file), "key", *words])

    with ExitStack() as stack:
        running = {
            name: stack.enter_context(an_instance(settings, name, port, tmp_path))
            for name, port in ports.items()
        }
        # Each instance routes tuples of its own: one that comes late has none to speak of.
        wait_until(lambda: all(map(has_partitions, ports.values())))
        write(settings, rows, end=False)
        wait_until(
            lambda: total(all_states(settings))[1] == 1_200 or not all(c.alive for c in running.values())
        )
        answers: dict[tuple[str, str], dict[str, Any]] = {}

        def both_ways_agree(name: str, key: str) -> bool:
            """What the instance says of the key is the same in the path and as a parameter.
            Between the two it may hear a last table. While its data plane compiles, it asks for patience.
            """
            status, said = asked(ports[name], f"/key/{quote(key, safe='')}/")
            also, again = asked(ports[name], f"/key/?format=json&key={quote(key, safe='')}", "*/*")
            assert {status, also} <= {200, 503}, (said, again)
            if 503 in (status, also):
                return False
            answers[name, key] = json.loads(said)
            return without_recent(again) == without_recent(said)

        for name in ports:
            for key in (HOT, ODD, "never came"):
                wait_until(partial(both_ways_agree, name, key))
                told = answers[name, key]
                assert (told["instance"], told["query"]) == (name, query_name)
                assert sum(told["next_tuples"].values()) == 100
        for key in (HOT, ODD):
            of_both = [answers[name, key] for name in ports]
            happened = workers_of(settings, key)
            # Where a table left the key out, its earlier workers are forgotten.
            if partitioner != "dalton-cooperative":
                assert happened <= set().union(*map(named, of_both)), "what is said is what happened"
            if partitioner == "hashing":
                (home,) = happened
                assert all(answer["next_tuples"] == {str(home): 100} for answer in of_both)
        if partitioner != "hashing":
            assert len(workers_of(settings, HOT)) > 1
        if partitioner == "dalton-cooperative":
            rows_of_values = [answers[name, HOT]["values"] for name in ports]
            # A table that came late may have left the key out, which then has no values.
            assert all(values is None or len(values) == 3 for values in rows_of_values)
        status, page = asked(ports[FIRST], f"/key/{quote(ODD, safe='')}/", "text/html")
        assert status == 200
        assert "&lt;i&gt;" in page
        assert "<i>" not in page
        assert asked(ports[FIRST], "/key/%FF/")[0] == 400
        assert "<form" in asked(ports[FIRST], "/key/", "text/html")[1]
        assert 'href="/key/"' in asked(ports[FIRST], "/", "text/html")[1]
        assert HOT not in asked(ports[FIRST], "/metrics/")[1], "no metric has a key"

        said_by: list[str] = []

        def both_are_known() -> bool:
            said_by.append(command(ODD, "--json").output)
            return said_by[-1].count('"trouble": ""') == 2

        wait_until(both_are_known, timeout=30)
        shown = command(ODD)
        assert shown.exit_code == 0, shown.output
        # A long rule goes on in lines that begin with blanks.
        shown_rows = [line.split()[:2] for line in shown.output.splitlines() if line.startswith(tuple(ports))]
        assert shown_rows == [[name, str(answers[name, ODD]["home"])] for name in ports]
        running[SECOND].kill()
        gone = command(ODD)
        assert gone.exit_code == 1
        assert "no answer" in gone.output
    logs = "".join((tmp_path / f"{name}.log").read_text() for name in ports)
    assert ODD not in logs
    assert "never came" not in logs, "a key that was asked for is not logged"
