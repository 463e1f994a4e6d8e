from pathlib import Path

import pytest

from evenflow.settings import Settings, load_settings
from topics.state import TopicSpec, TopicState
from workbench.assist.doctor.checks import (
    check_cache,
    check_connector,
    check_disk,
    check_java,
    check_memory,
    check_packages,
    check_python,
    java_major,
    pins_of,
)
from workbench.assist.doctor.topics import (
    check_input,
    check_offsets,
    check_policy,
    check_topics,
    no_input,
    used_topics,
)


def state(partitions: int = 4, **config: str) -> TopicState:
    offsets = dict.fromkeys(range(partitions), 0)
    return TopicState(
        "t", "id", partitions, offsets, offsets, {k.replace("_", "."): v for k, v in config.items()}
    )


@pytest.mark.parametrize(
    ("report", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "17-ea" 2021', 17),
        ("no such thing", None),
    ],
)
def test_the_java_version_is_read_in_every_form(report: str, major: int | None) -> None:
    assert java_major(report) == major


def test_only_java_17_is_right() -> None:
    assert check_java('version "17.0.1"').status == "ok"
    for report in (None, 'version "1.8.0"', 'version "21.0.1"', "gibberish"):
        finding = check_java(report)
        assert finding.status == "problem"
        assert "JAVA_HOME" in finding.do


def test_an_old_python_is_a_problem() -> None:
    assert check_python((3, 10, 9)).status == "problem"
    assert check_python((3, 11, 0)).status == "ok"


def test_pins_are_the_exact_requirements_only() -> None:
    wanted = ['pyspark==4.0.0; extra == "spark"', "numpy>=2.0", 'faust-streaming==0.15.3; extra == "x"']
    assert pins_of(wanted) == {"pyspark": "4.0.0", "faust-streaming": "0.15.3"}


def test_another_version_than_the_pinned_one_is_a_problem() -> None:
    installed = {"a": "1", "b": "3"}
    result = {f.name: f for f in check_packages({"a": "1", "b": "2", "c": "4"}, installed.get)}
    assert result["a"].status == "ok"
    assert result["b"].what == "b 3 instead of 2"
    assert result["c"].what == "c is missing"
    assert "pip install c==4" in result["c"].do


def test_a_connector_of_another_spark_is_a_problem() -> None:
    conf = {"spark.jars.packages": "x:y:1,org.apache.spark:spark-sql-kafka-0-10_2.13:3.5.1"}
    assert check_connector(conf, "4.0.0").status == "problem"
    assert check_connector({}, "4.0.0").status == "ok"


def test_a_cache_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert check_cache(file / "below").status == "problem"
    assert check_cache(tmp_path / "new" / "deep").status == "ok"


def test_little_memory_and_a_full_disk_are_warnings() -> None:
    assert check_memory(2**30).status == check_memory(None).status == "warning"
    assert check_memory(2**34).status == "ok"
    assert check_disk(2**20, Path("/tmp")).status == "warning"
    assert check_disk(2**40, Path("/tmp")).status == "ok"


WEEK = 7 * 24 * 3_600_000
OWN, STRANGERS = Settings(), Settings(input={"topic": "t"})


@pytest.mark.parametrize(
    ("settings", "oldest", "status", "words"),
    [
        (OWN, None, "problem", "a replay of older data is deleted within minutes"),
        (STRANGERS, None, "ok", "keeps records for 7d counted from their own timestamp"),
        (STRANGERS, 1, "ok", "what is not read by then is gone"),
        (STRANGERS, -WEEK, "problem", "the broker deletes such within minutes"),
    ],
)
def test_a_retention_is_a_problem_where_it_deletes_what_is_to_be_read(
    settings: Settings, oldest: int | None, status: str, words: str
) -> None:
    kept = state(retention_ms=str(WEEK), message_timestamp_type="CreateTime")
    finding = check_input(settings, kept, oldest=oldest, now=1)
    assert finding.status == status
    assert words in finding.what
    assert ("retention.ms=-1" in finding.do) == (status == "problem")


def test_a_retention_counted_from_the_append_deletes_no_replay() -> None:
    appended = state(retention_ms=str(WEEK), message_timestamp_type="LogAppendTime")
    for harmless in (appended, state(retention_ms="-1"), state(retention_ms="5", cleanup_policy="compact")):
        assert check_input(OWN, harmless, oldest=None, now=0).status == "ok"


def test_rejected_records_are_to_be_kept() -> None:
    spec = TopicSpec("t", 4, {})
    (finding,) = check_topics({"rejected": spec}, {"t": state(retention_ms=str(WEEK))})
    assert finding.status == "problem"


def test_topics_are_missing_too_few_or_too_small() -> None:
    spec = TopicSpec("t", 4, {"max.message.bytes": "1000"})
    for states, status, words in (
        ({}, "ok", "the service that needs it makes it"),
        ({"t": state(3)}, "problem", "has 3 partitions, the settings need 4"),
        ({"t": state(max_message_bytes="999")}, "problem", "allows records of 999 bytes"),
        ({"t": state(max_message_bytes="1000", retention_ms="-1")}, "ok", "4 partitions"),
    ):
        (finding,) = check_topics({"routed": spec}, states)
        assert finding.status == status
        assert words in finding.what


def test_an_input_topic_that_is_missing_names_the_likely_one() -> None:
    orders = Settings(query={"name": "q"}, input={"topic": "order"})
    finding = no_input(orders, ["bills", "orders"])
    assert (finding.status, finding.what) == ("problem", "there is no topic order, which the query reads")
    assert "did you mean orders?" in finding.do
    assert no_input(Settings(), ["bills"]).status == "warning"


@pytest.mark.parametrize(
    ("control", "said"),
    [
        (None, []),
        ({"policy": "ds2"}, [("ok", "'ds2' decides about workers and reducers")]),
        ({"policy": "ds3"}, [("problem", "unknown policy 'ds3'; did you mean 'ds2'?")]),
        ({"options": {"tarjet": 1}}, [("problem", "unknown option 'tarjet' of ds2; did you mean 'target'?")]),
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_used_is_a_problem(control: dict | None, said: list) -> None:
    settings = Settings(query={"name": "q"}, **({} if control is None else {"control": control}))
    assert [(finding.status, finding.what) for finding in check_policy(settings)] == said


def test_topics_that_the_settings_do_not_use_are_not_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text('[spark]\nwiring = "fused"\n[results]\nsink = "parquet"\npath = "out"\n')
    assert not {"partials", "results"} & set(used_topics(load_settings(file)))
    file.write_text('[spark]\nwiring = "split"\n')
    assert {"partials", "results"} <= set(used_topics(load_settings(file)))


def test_a_short_life_of_committed_offsets_is_a_warning_and_an_unknown_one_is_none() -> None:
    (short,) = check_offsets({"offsets.retention.minutes": "60"})
    assert (short.status, "stopped for 1 h" in short.what) == ("warning", True)
    (enough,) = check_offsets({"offsets.retention.minutes": "10080"})
    assert enough.status == "ok"
    assert list(check_offsets({})) == []
