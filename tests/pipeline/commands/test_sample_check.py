"""A stranger's topic, made and filled by other programs, and what `doctor` and the services say of it
first.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings, load_settings, save_settings
from partitioner_service.kafka.committed_state import all_states
from tests.patience import wait_for
from tests.pipeline.end_to_end import evenflow
from tests.pipeline.partitioner.test_skip import bomb
from tests.pipeline.planes import began, total
from tests.pipeline.routed import make_settings, write
from topics.admin import topic_names
from topics.query.input_topic import with_topic_partitions
from workbench.assist.sample_check import SampleReport, before_start

pytestmark = pytest.mark.pipeline
ORDERS = 2_000


class Stranger:
    """Another team's program: makes the topic with the broker's defaults and writes to it with its own
    client.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, folder: Path) -> None:
        self.kafka = kafka
        self.topic = topic
        self.file = folder / "evenflow.toml"
        self._servers = {"bootstrap.servers": kafka.bootstrap_servers}

    def make(self, partitions: int = 2, **config: str) -> None:
        named = {name.replace("_", "."): value for name, value in config.items()}
        client = AdminClient(self._servers)  # it must outlive its futures
        client.create_topics([NewTopic(self.topic, partitions, 1, config=named)])[self.topic].result(30)

    def write(self, rows: Iterable[Any], *, partitions: int = 2, timestamp: int = 0) -> None:
        client = Producer(self._servers | {"linger.ms": 5})
        for number, row in enumerate(rows):
            value = row if isinstance(row, bytes) else json.dumps(row).encode()
            client.produce(self.topic, value, partition=number % partitions, timestamp=timestamp)
        assert client.flush(30) == 0

    def settings(self, query: str, more: str = "") -> Path:
        self.file.write_text(
            f'[query]\nname = "{self.topic}-q"\n{query}\n[input]\ntopic = "{self.topic}"\n{more}\n'
            f'[kafka]\nbootstrap_servers = "{self.kafka.bootstrap_servers}"\n'
        )
        return self.file


@pytest.fixture
def stranger(kafka_settings: KafkaSettings, query_name: str, tmp_path: Path) -> Stranger:
    return Stranger(kafka_settings, query_name, tmp_path)


def order(number: int, *, disorder: int = 0) -> dict[str, Any]:
    """One order every 10 ms until now, of a few users, one of them hot."""
    at = NOW - (ORDERS - number) * 10 - random.Random(number).randint(0, disorder)
    return {"user": f"u{number % 40 if number % 2 else 0}", "amount": number / 4, "at": at}


NOW = int(time.time() * 1000)
FIT = 'key = "user"\ntime = "at"\nwindow = "1s"\naggregates = { n = "count", total = "sum(amount)" }'


def orders(change: Callable[[dict[str, Any]], dict[str, Any]] = dict, **how: int) -> list[dict[str, Any]]:
    return [change(order(number, **how)) for number in range(ORDERS)]


def doctor(file: Path, *words: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["--config", str(file), "doctor", "--json", *words])
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def said(report: dict[str, Any], *statuses: str) -> str:
    return "\n".join(
        f"{one['name']}: {one['what']} -> {one['do']}"
        for one in report["findings"]
        if one["status"] in (statuses or ("warning", "problem"))
    )


def refused(file: Path, command: str = "partition") -> ConfigError:
    """What a service refuses to begin with."""
    result = CliRunner().invoke(app, ["--config", str(file), command])
    assert isinstance(result.exception, ConfigError), result.output
    return result.exception


def test_a_query_is_explained_before_it_runs_and_nothing_is_made(stranger: Stranger) -> None:
    stranger.make()
    stranger.write(orders())
    file = stranger.settings(FIT + '\nwhere = "amount >= 100"')
    before = {name for name in topic_names(stranger.kafka) if not name.startswith("__")}
    result = CliRunner().invoke(app, ["--config", str(file), "query", "check", "--json"])
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    assert outcome["sections"]["columns"]["amount"] == (
        f"read as float64: total = sum(amount), where; found: decimal in {ORDERS:,}"
    )
    assert outcome["sections"]["tuples"]["filtered"] == f"400 of {ORDERS:,}"
    assert outcome["kept"]["tuples"] == ORDERS - 400
    assert 21 <= outcome["kept"]["window_tuples"] <= 100  # one every 10 ms, over a second
    assert outcome["kept"]["window_keys"] == 21
    assert outcome["kept"]["whole"]
    assert outcome["sections"]["verify compares"]["n"] == "count: exact"
    words = CliRunner().invoke(app, ["--config", str(file), "query", "check"])
    assert "nothing is wrong with it" in words.output
    assert {name for name in topic_names(stranger.kafka) if not name.startswith("__")} == before
    none = stranger.settings(FIT + '\nwhere = "amount < 0"')
    words = CliRunner().invoke(app, ["--config", str(none), "query", "check"])
    assert "query.where keeps none of 2,000 tuples" in words.output
    wrong = stranger.settings(FIT.replace('"user"', '"usr"'))
    words = CliRunner().invoke(app, ["--config", str(wrong), "query", "check"])
    assert words.exit_code == 1
    assert "did you mean 'user'?" in words.output


def test_a_topic_that_fits_is_said_in_one_line_and_has_no_problem(stranger: Stranger) -> None:
    stranger.make()
    stranger.write(orders())
    report = doctor(stranger.settings(FIT))
    assert said(report, "problem") == ""
    assert report["proposal"] == ""
    assert report["sample"] == {
        "topic": stranger.topic,
        "records": ORDERS,
        "unreadable": 0,
        "filtered": 0,
        "late": 0,
        "keys": 40 // 2 + 1,
        "columns": {"user": {"text": ORDERS}, "amount": {"decimal": ORDERS}, "at": {"whole number": ORDERS}},
        "times_ms": [NOW - ORDERS * 10, NOW - 10],
        "partitions": {"0": ORDERS // 2, "1": ORDERS // 2},
    }
    assert (
        f"sample of {stranger.topic}: 2,000 records, 0 would be rejected, 21 keys, the hottest 50 %"
        in said(report, "ok")
    )
    # The broker keeps a stranger's records for a week: that is how they want it.
    assert "keeps records for 7d counted from their own timestamp" in said(report, "ok")


@pytest.mark.parametrize(
    ("query", "words", "mended"),
    [
        (
            FIT.replace('"user"', '"usr"'),
            [
                "none of 2,000 records has a column 'usr'",
                "columns seen: user, amount, at",
                "did you mean 'user'?",
            ],
            {"query": {"key": "user"}},
        ),
        (
            FIT.replace("(amount)", "(amout)"),
            ["none of 2,000 records has a column 'amout' (sum(amout))", "did you mean 'amount'?"],
            {"query": {"aggregates": {"total": "sum(amount)"}}},
        ),
        (
            'key = "amount"\ntime = "at"',
            [
                "column 'amount' holds decimals, e.g. 0.0, in all 2,000 records",
                "a key is text, a whole number, a date or true or false, never a decimal",
            ],
            {},
        ),
        (
            FIT + '\ntime_unit = "s"',
            ["column 'at' read as s gives times at the year", 'set query.time_unit = "ms"'],
            {"query": {"time_unit": "ms"}},
        ),
        (
            FIT.replace('"at"', '"time"'),
            ["none of 2,000 records has a column 'time'", "did you mean 'at'?"],
            {"query": {"time": "at", "time_unit": "ms"}},
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_paste_before_anything_is_made(
    stranger: Stranger, query: str, words: list[str], mended: dict[str, Any]
) -> None:
    stranger.make()
    stranger.write(orders())
    before = {name for name in topic_names(stranger.kafka) if not name.startswith("__")}
    error = refused(stranger.settings(query))
    for word in words:
        assert word in error.message
        assert word in said(doctor(stranger.file), "problem")
    assert "has not begun, so nothing was made or read" in error.message
    assert "--unchecked starts it all the same" in (error.hint or "")
    assert tomllib.loads(doctor(stranger.file)["proposal"]) == mended
    assert {name for name in topic_names(stranger.kafka) if not name.startswith("__")} == before
    assert refused(stranger.file, "aggregate").message == error.message


def test_the_command_prints_what_it_refuses_ends_with_2_and_starts_unchecked(
    stranger: Stranger, tmp_path: Path
) -> None:
    stranger.make(max_message_bytes="4194304")
    stranger.write(orders(lambda row: row | {"at": row["at"] * 1000}))
    file = stranger.settings(FIT)
    with evenflow(file, tmp_path / "partition.log", "partition") as child:
        assert child.wait(60) == 2, child.output()
    assert "gives times at the year 5" in child.output()
    assert 'time_unit = "us"' in child.output()
    assert "Traceback" not in child.output()
    settings = load_settings(file)
    assert all_states(with_topic_partitions(settings)) == {}
    with evenflow(file, tmp_path / "unchecked.log", "partition", "--unchecked") as child:
        wait_for(lambda: total(all_states(with_topic_partitions(settings)))[0] == ORDERS, child.output)
        assert child.terminate(30) == 0, child.output()
    assert "sample of" not in child.output()


def test_text_where_a_number_is_needed_is_said_with_its_share(stranger: Stranger) -> None:
    stranger.make()
    stranger.write(orders(lambda row: row | ({"amount": "free"} if row["amount"] % 50 == 0 else {})))
    report = doctor(stranger.settings(FIT))
    assert (
        "column 'amount' holds text, e.g. 'free', in 10 of 2,000 records; sum(amount) needs a number"
        in said(report)
    )
    assert "10 of 2,000 records would be rejected (0.5 %)" in said(report)
    assert report["sample"]["unreadable"] == 10


def test_tuples_that_would_come_late_are_counted_and_the_proposal_loses_none(stranger: Stranger) -> None:
    stranger.make()
    stranger.write(orders(disorder=3_000))
    report = doctor(stranger.settings(FIT))
    late = report["sample"]["late"]
    assert late > 0
    assert f"{late:,} of 2,000 tuples" in said(report, "warning")
    proposed = tomllib.loads(report["proposal"])
    assert proposed == {"query": {"out_of_orderness": "5s"}}
    mended = doctor(stranger.settings(f'{FIT}\nout_of_orderness = "5s"'))
    assert (mended["sample"]["late"], mended["proposal"]) == (0, "")


def test_a_partition_without_records_and_a_wrong_clock_are_said(stranger: Stranger) -> None:
    stranger.make(partitions=2)
    rows = orders()
    rows[500]["at"] += 400 * 86_400_000
    stranger.write(rows, partitions=1)
    report = doctor(stranger.settings(f'{FIT}\nmax_ahead_of_clock = "off"'))
    assert "partition 1 is empty: no window closes until it has a record" in said(report, "warning")
    assert "1 of 2,000 tuples lie more than 7d ahead of those around them" in said(report, "warning")
    proposed = {"query": {"max_jump": "7d"}, "partitioner": {"idle_timeout": "30s"}}
    assert tomllib.loads(report["proposal"]) == proposed


def test_records_older_than_the_retention_are_a_problem(stranger: Stranger) -> None:
    stranger.make(retention_ms="86400000")
    stranger.write(orders(), timestamp=NOW - 2 * 86_400_000)
    report = doctor(stranger.settings(FIT))
    assert "the sample holds records of 2 d ago: the broker deletes such within minutes" in said(
        report, "problem"
    )


def test_a_topic_that_is_not_there_is_a_problem_and_the_likely_one_is_named(stranger: Stranger) -> None:
    stranger.make()
    file = stranger.settings(FIT)
    report = doctor(file, "--topic", stranger.topic[:-1])
    assert f"there is no topic {stranger.topic[:-1]}" in said(report, "problem")
    assert f"did you mean {stranger.topic}" in said(report, "problem")


def test_an_empty_topic_is_no_problem(stranger: Stranger) -> None:
    stranger.make()
    report = doctor(stranger.settings(FIT))
    assert said(report, "problem") == ""
    assert f"sample of {stranger.topic}: no tuples yet" in said(report, "ok")


def test_from_nothing_a_whole_settings_file_is_proposed_that_fits(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.make()
    stranger.write(orders(disorder=3_000))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENFLOW_KAFKA__BOOTSTRAP_SERVERS", stranger.kafka.bootstrap_servers)
    result = CliRunner().invoke(app, ["doctor", "--topic", stranger.topic, "--json"])
    assert result.exit_code == 0, result.output
    proposal = json.loads(result.stdout)["proposal"]
    assert 'key = "user"  # a guess: 21 different values in 2,000 records' in proposal
    stranger.file.write_text(proposal)
    again = doctor(stranger.file)
    assert (again["proposal"], again["sample"]["late"], again["sample"]["unreadable"]) == ("", 0, 0)
    assert load_settings(stranger.file).query.time == "at"


def test_without_a_topic_to_look_at_the_doctor_says_which_there_are(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.make()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENFLOW_KAFKA__BOOTSTRAP_SERVERS", stranger.kafka.bootstrap_servers)
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    assert "no settings name a topic; topics there are: " in said(json.loads(result.stdout), "warning")


def test_a_look_that_fails_is_a_warning_that_says_where(
    stranger: Stranger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.make()
    stranger.write(orders())
    monkeypatch.setattr(SampleReport, "summary", lambda look: str(1 // 0))
    before_start(load_settings(stranger.settings(FIT)))
    assert "nothing is known of its records: ZeroDivisionError at test_sample_check.py:" in caplog.text


def plenty(seconds: Iterable[int]) -> list[dict[str, Any]]:
    """20,002 orders, one every 5 ms until now, some of them 1.5 s late. seconds: those with their time in
    seconds.
    """
    result = [order(number) | {"at": NOW - (PLENTY - number) * 5} for number in range(PLENTY)]
    for number in range(0, PLENTY, 50):
        result[number]["at"] -= 1_500
    for number in seconds:
        result[number]["at"] //= 1_000
    return result


PLENTY = 20_002


def test_a_few_times_in_seconds_are_named_and_spoil_no_proposal(stranger: Stranger) -> None:
    stranger.make()
    stranger.write(plenty([3, 9_001, 9_002, 20_000]))
    report = doctor(stranger.settings(FIT))
    assert "4 of 19,998 times (under 0.1 %) are in s, not ms, e.g. offset " in said(report, "warning")
    assert tomllib.loads(report["proposal"]) == {"query": {"out_of_orderness": "2s"}}
    assert "it loses 4 tuples of this sample" in said(report, "warning")
    assert ", 4 strays" in said(report, "ok")
    mended = doctor(stranger.settings(f'{FIT}\nout_of_orderness = "2s"'))
    assert mended["proposal"] == ""


def test_a_sample_of_a_long_topic_holds_its_first_its_middle_and_its_newest_records(
    stranger: Stranger,
) -> None:
    stranger.make()
    rows = [row | {"user": "u"} for row in plenty([])]
    for number in (0, PLENTY // 2, PLENTY - 1):
        rows[number]["user"] = f"only-{number}"
    stranger.write(rows)
    report = doctor(stranger.settings(FIT), "--sample", "300")
    assert report["sample"]["partitions"] == {"0": 150, "1": 150}
    assert report["sample"]["keys"] == 4
    assert "without a readable record" not in said(report)
    low, high = report["sample"]["times_ms"]
    assert (low, high) == (min(row["at"] for row in rows[:100]), max(row["at"] for row in rows))


def test_a_wrong_unit_is_refused_though_a_few_times_fit_it(stranger: Stranger) -> None:
    stranger.make()
    stranger.write(plenty(range(0, PLENTY, 100)))
    before = {name for name in topic_names(stranger.kafka) if not name.startswith("__")}
    error = refused(stranger.settings(f'{FIT}\ntime_unit = "s"'))
    assert "column 'at' read as s gives times at the year 5" in error.message
    assert 'time_unit = "ms"' in (error.hint or "")
    assert {name for name in topic_names(stranger.kafka) if not name.startswith("__")} == before


def test_a_service_that_would_reject_most_of_its_first_records_leaves_the_name_free(
    stranger: Stranger, tmp_path: Path
) -> None:
    """The newest records fit, so the look lets them pass. The service begins at the first."""
    stranger.make(max_message_bytes="4194304")
    stranger.write([{"user": "u", "amount": 1, "at": NOW - number * 5_000} for number in range(9_000)])
    stranger.write(orders() * 6)
    file = stranger.settings(FIT)
    settings = load_settings(file)
    before = {name for name in topic_names(stranger.kafka) if not name.startswith("__")}
    with evenflow(file, tmp_path / "refused.log", "partition") as child:
        assert child.wait(90) == 2, child.output()
    assert "of the first 10,000 records of topic" in child.output()
    assert "late" in child.output()
    assert "Traceback" not in child.output()
    assert {name for name in topic_names(stranger.kafka) if not name.startswith("__")} == before
    assert all_states(with_topic_partitions(settings)) == {}
    mended = stranger.settings(FIT.replace('"1s"', '"1m"'), "reject_limit = 1")
    with evenflow(mended, tmp_path / "begun.log", "partition") as child:
        wait_for(
            lambda: total(all_states(with_topic_partitions(load_settings(mended))))[0] == 9_000 + 6 * ORDERS,
            child.output,
        )
        assert child.terminate(30) == 0, child.output()
    again = stranger.settings(FIT.replace('"1s"', '"1m"'))
    with evenflow(again, tmp_path / "again.log", "partition") as child:
        wait_for(lambda: "status page" in child.output(), child.output)
        assert child.terminate(30) == 0, child.output()


def test_a_query_that_has_begun_is_only_warned(
    kafka_settings: KafkaSettings, query_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its records changed: none of the newest has a time."""
    settings = began(kafka_settings, query_name)
    write(settings, [(number % 4, {"k": "a", "v": 1}) for number in range(600)], end=False)
    before_start(settings, most=400)
    assert "records has a column 't' (the event time); columns seen: k, v" in caplog.text
    write(settings, [(0, b'{"k":"a","t":%s,"v":1}' % (b"9" * 310))], end=False)
    before_start(settings, most=400)
    fresh = make_settings(kafka_settings, f"{query_name}-new", input={"topic": settings.topic("input")})
    with pytest.raises(ConfigError, match="has not begun, so nothing was made or read"):
        before_start(fresh, most=400)


_LOOK = """
import sys
from pathlib import Path
from evenflow.settings import load_settings
from tests.peak_memory import peak
from workbench.assist.sample_check import before_start
settings, plain = (load_settings(Path(file)) for file in sys.argv[1:])
before_start(plain)  # what is imported and compiled counts before
before = peak()
before_start(settings)
print((peak() - before) // 1024)
"""


def test_the_look_before_a_start_takes_little_memory_though_a_bomb_is_among_the_newest_records(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    """Else every start would end there, before anything could name the bomb."""
    files = []
    for name in (query_name, f"{query_name}-plain"):
        settings = began(kafka_settings, name)
        write(settings, [(number % 4, {"k": "a", "t": number, "v": 1}) for number in range(600)], end=False)
        files.append(tmp_path / f"{name}.json")
        save_settings(settings, files[-1])
        if name == query_name:
            bomb(settings, count=400, codec="gzip")
    words = [sys.executable, "-c", _LOOK, *map(str, files)]
    child = subprocess.run(words, capture_output=True, text=True, check=True)
    # librdkafka would take the 400 MB, and a share of them again for the records. The look decompresses up to
    # 128 MB, to see that the batch is a bomb.
    assert int(child.stdout) < 200, "MiB"
