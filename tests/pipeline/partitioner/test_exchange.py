"""Instances as processes on a real broker that tell each other what they know, and what becomes of it when
one is killed.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import Settings
from partitioner_service.exchange.decoder import LARGEST
from partitioner_service.kafka.committed_state import all_states
from tests.hostile import BYTES
from tests.pipeline import end_to_end
from tests.pipeline.panels import EXCHANGE, asked, has_data, queries, series
from tests.pipeline.planes import start_instance, telemetry, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    expected_counts,
    make_settings,
    read_routed,
    records,
    write,
    write_end,
)
from topics import admin, clients
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess
from workbench.local.prometheus import Prometheus

pytestmark = pytest.mark.pipeline


class Instances:
    """Two instances as processes, and a stream that goes on as long as somebody waits for something."""

    def __init__(self, kafka: Any, query: str, folder: Path, **partitioner: Any) -> None:
        how = {"instances": 2, "commit_interval": 100, "routed_partitions": 4, **partitioner}
        ports = free_ports(2)
        self.settings: list[Settings] = [
            make_settings(
                kafka, query, partitioner=how | {"instance": str(number), "web_port": ports[number]}
            )
            for number in range(2)
        ]
        self.folder = folder
        self.running: dict[int, ChildProcess] = {}
        self.rows: list[tuple[int, dict[str, Any]]] = []
        create_topics(self.settings[0])

    def start(self, number: int) -> None:
        """A new process of this instance."""
        self.running[number] = start_instance(self.settings[number], self.folder / f"{number}.log")

    def kill(self, number: int) -> None:
        """SIGKILL."""
        assert self.running.pop(number).kill() == -9

    def status(self, number: int) -> dict[str, Any]:
        """The status page. Empty if there is none yet."""
        child = self.running[number]
        try:
            port = self.settings[number].partitioner.web_port
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/status/", timeout=5) as answer:
                return dict(json.loads(answer.read()))
        except OSError:
            assert child.alive, child.tail()
            return {}

    def told(self, number: int) -> dict[str, Any]:
        """What it shows of the exchange."""
        return dict(self.status(number).get("exchange") or {"round": None, "members": [], "ignored": {}})

    def feed(self, rows: int = 100) -> None:
        """Half a slide more of event time in all partitions, with one hot key. A slide has 200 rows."""
        begin = len(self.rows)
        new = [
            (i % 4, {"k": "hot" if i % 3 else f"key{i % 50}", "t": 5 * i, "v": i % 7})
            for i in range(begin, begin + rows)
        ]
        self.rows += new
        write(self.settings[0], new, end=False)

    def feed_until(self, condition: Any, *, timeout: float = 90.0) -> None:
        """Go on with the stream until this is so."""

        def reached() -> bool:
            self.feed()
            return bool(condition())

        wait_until(reached, timeout=timeout)

    def finish(self) -> None:
        """End the stream. Every tuple is in the routed topic exactly once."""
        write_end(self.settings[0], Counter(p for p, _ in self.rows))
        wait_until(lambda: all(state.ended for state in all_states(self.settings[0]).values()), timeout=90)
        for child in self.running.values():
            assert child.terminate(30) == 0, child.output()[-3_000:]
        assert total(all_states(self.settings[0])) == (len(self.rows), len(self.rows), 0)
        assert read_routed(self.settings[0]).counts == expected_counts(self.settings[0], self.rows)

    def stop(self) -> None:
        """Leave no process behind."""
        for child in self.running.values():
            child.kill()


@pytest.fixture
def instances(request: pytest.FixtureRequest, kafka_settings: Any, query_name: str, tmp_path: Path) -> Any:
    made = Instances(kafka_settings, query_name, tmp_path, **request.param)
    yield made
    made.stop()


BOTH = pytest.mark.parametrize(
    "instances",
    [{"name": "evenflow"}, {"name": "dalton-cooperative"}],
    indirect=True,
    ids=lambda how: how["name"],
)


@pytest.mark.parametrize("instances", [{"name": "evenflow"}], indirect=True)
def test_two_instances_hear_tables_that_one_of_them_makes(instances: Instances) -> None:
    for number in range(2):
        instances.start(number)
    instances.feed_until(lambda: all(instances.told(number)["members"] == [0, 1] for number in range(2)))
    assert sorted(instances.told(number)["elected"] for number in range(2)) == [False, True]
    # Rates are those of the last minute, and the newest message of the other may be to come.
    instances.feed_until(
        lambda: all(instances.told(number)[name] for number in range(2) for name in ("rate_in", "rate_out"))
    )
    instances.finish()


@pytest.mark.more
@pytest.mark.parametrize(
    "instances", [{"name": "dalton-cooperative", "options": {"dsync_ms": 250}}], indirect=True
)
def test_two_cooperating_daltons_hear_more_tables_than_slides_go_by(instances: Instances) -> None:
    for number in range(2):
        instances.start(number)
    instances.feed_until(lambda: all(instances.told(number)["members"] == [0, 1] for number in range(2)))

    def heard() -> list[int]:
        return [instances.told(number)["heard"] for number in range(2)]

    known = [heard()]

    def more_tables_than_slides() -> bool:
        """Of the last two slides, which were fed in quarters. A round that was late makes the next ones
        longer, so the first quarters may pass without any.
        """
        instances.feed(50)
        deadline = time.monotonic() + 2
        while heard() == known[-1] and time.monotonic() < deadline:
            threading.Event().wait(0.05)
        known.append(heard())
        before = known[max(len(known) - 9, 0)]
        return all(now - then > 2 for now, then in zip(known[-1], before, strict=True))

    wait_until(more_tables_than_slides, timeout=90)
    instances.finish()


@pytest.mark.long
@BOTH
def test_both_hear_tables_and_a_killed_one_is_followed_by_the_other(instances: Instances) -> None:
    for number in range(2):
        instances.start(number)
    instances.feed_until(
        lambda: all(
            instances.told(number)["members"] == [0, 1] and instances.told(number)["heard"] > 1
            for number in range(2)
        )
    )
    elected = [number for number in range(2) if instances.told(number)["elected"]]
    assert len(elected) == 1
    assert elected == [number for number in range(2) if "0" in instances.status(number)["assignment"]]
    (first,) = elected
    other = 1 - first
    before = instances.told(other)["round"]
    instances.kill(first)
    instances.feed_until(
        lambda: (
            instances.told(other)["elected"]
            and instances.told(other)["round"] > before + 1
            and instances.told(other)["members"] == [other]
        )
    )
    client = clients.producer(instances.settings[0].kafka)
    for value in (
        None,
        *BYTES,
        b"\0" * (LARGEST + 1),
        *(m.value() for m in records(instances.settings[0], "sync")),
    ):
        client.produce(instances.settings[0].topic("sync"), value=value)
    clients.flush(client, instances.settings[0].kafka)
    instances.start(first)
    known = instances.told(other)["round"]
    instances.feed_until(lambda: (instances.told(first)["round"] or 0) > known)
    shown = instances.told(first)
    assert shown["heard"] <= shown["round"] - known + 1, (
        "it began with the newest table, and with the rounds of the other from the end of the topic on"
    )
    instances.feed_until(lambda: all(instances.told(number)["members"] == [0, 1] for number in range(2)))
    ignored = instances.told(other)["ignored"]
    assert ignored["corrupt"] > len(BYTES) // 2
    assert ignored["oversized"] == 1
    instances.finish()


@pytest.mark.long
@pytest.mark.parametrize("instances", [{"name": "evenflow"}], indirect=True)
def test_a_sync_topic_that_is_deleted_while_they_run_costs_the_exchange_and_nothing_else(
    instances: Instances,
) -> None:
    for number in range(2):
        instances.start(number)
    instances.feed_until(lambda: all(instances.told(number)["members"] == [0, 1] for number in range(2)))
    admin.delete_topics(instances.settings[0].kafka, [instances.settings[0].topic("sync")])
    instances.feed_until(lambda: all(instances.told(number)["unanswered"] > 5 for number in range(2)))
    for child in instances.running.values():
        # On a busy machine tables may be missing for a moment before, too. Each silence is said once, and so
        # is its end.
        output = child.output()
        assert output.count("no table has come") == output.count("tables come again") + 1
    instances.finish()


@pytest.mark.long
@pytest.mark.parametrize("instances", [{"name": "evenflow"}], indirect=True)
def test_every_panel_and_metric_of_the_exchange_has_data_under_a_real_prometheus(
    instances: Instances, tmp_path: Path
) -> None:
    query = instances.settings[0].query.name
    asking = {name: expression for name, expression in queries() if EXCHANGE in expression}
    assert len(asking) > 5
    ports = [settings.partitioner.web_port for settings in instances.settings]
    with Prometheus(tmp_path / "prometheus", {"evenflow-partitioner": ports}, every=1.0) as prometheus:
        for number in range(2):
            instances.start(number)
        instances.feed_until(lambda: all(instances.told(number)["members"] == [0, 1] for number in range(2)))
        client = clients.producer(instances.settings[0].kafka)
        client.produce(instances.settings[0].topic("sync"), value=b"no record")
        clients.flush(client, instances.settings[0].kafka)
        result: dict[str, int | str] = {}

        def all_have_data() -> bool:
            result.update({name: asked(prometheus, expression, query) for name, expression in asking.items()})
            return all(map(has_data, result.values()))

        instances.feed_until(all_have_data)
        assert {name for name in series() if name.startswith(EXCHANGE)} <= prometheus.metadata()
    instances.finish()


EACH_HALF = "each half is killed"
"""With two and four instances, one half has the instance that makes the tables."""
ONE = "one is killed"
"""The first instance, whether it makes the tables or not."""


def _long(name: str, instances: int, forwarding: str = "off") -> Any:
    return pytest.param(name, instances, EACH_HALF, forwarding, marks=pytest.mark.long)


@pytest.mark.more
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "instances", "kills", "forwarding"),
    [
        _long("evenflow", 1),
        ("evenflow", 2, EACH_HALF, "on"),
        _long("evenflow", 2),
        ("evenflow", 4, ONE, "off"),
        *(_long("evenflow", instances, "on") for instances in (1, 4)),
        _long("evenflow", 4),
        *(_long("dalton-cooperative", instances, way) for instances in (1, 2) for way in ("off", "on")),
        ("dalton-cooperative", 4, EACH_HALF, "off"),
        _long("dalton-cooperative", 4, "on"),
    ],
)
def test_results_are_exact_while_instances_tell_each_other_are_killed_and_come_back(
    name: str,
    instances: int,
    kills: str,
    forwarding: str,
    kafka_settings: Any,
    query_name: str,
    tmp_path: Path,
) -> None:
    how = {"name": name, "instances": instances, "workers": 4, "forwarding": forwarding}
    settings = end_to_end.make_settings(kafka_settings, query_name, tmp_path, partitioner=how)
    stream = end_to_end.Stream(settings)
    half = (instances + 1) // 2
    with end_to_end.Pipeline(settings, tmp_path) as pipeline:

        def route_with(*some: str) -> None:
            """Go on with the stream until these instances have a table of all of them. One alone hears
            nothing.
            """
            routed, said = total(all_states(settings))[0], len(telemetry(settings))

            def reached() -> bool:
                stream.write(100)
                if instances == 1:
                    return total(all_states(settings))[0] > routed
                # On a busy machine a table may be of fewer, so not all need to have the newest one of all at
                # once.
                since = telemetry(settings)[said:]
                return {
                    one.instance for one in since if one.exchange and one.exchange.members == len(some)
                } >= {*some}

            pipeline.wait_until(reached)

        pipeline.start("aggregate", "--until-ended")
        numbers = pipeline.start_instances()
        victims_by_turn = (numbers[:half], numbers[half:]) if kills == EACH_HALF else (numbers[:1],)
        route_with(*numbers)
        for victims in filter(None, victims_by_turn):
            survivors = [number for number in numbers if number not in victims]
            for victim in victims:
                pipeline.kill(victim)
            if survivors:
                route_with(*survivors)
            pipeline.start_instances(names=victims)
            route_with(*numbers)
        stream.end()
        pipeline.wait_until(lambda: end_to_end.has_ended(settings))
        for number in numbers:
            pipeline.stop(number)
        pipeline.finish()
    end_to_end.assert_exact(stream)
