"""Several queries on one input: views of one query, read and routed once, and queries of their own on one
topic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings, load_settings
from evenflow.settings.views import queries, view
from tests.pipeline.end_to_end import (
    INVERTIBLE,
    Pipeline,
    Stream,
    assert_equal,
    assert_exact,
    batches_done,
    make_settings,
)
from tests.pipeline.spark_stream import results
from topics.admin import topic_names
from topics.query.input_topic import admitted
from workbench.lifetime.remains import find
from workbench.verify.shell import verify
from workbench.verify.views import verify_all

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]

VIEWS = {
    "coarse": {
        "aggregates": {"n": "count", "hi": "max(f)", "total": "sum(i)"},
        "window": "12s",
        "slide": "4s",
    },
    "latest": {"aggregates": {"latest": "last(g)"}},
    "by-number": {"key": "i", "aggregates": {"n": "count", "hi": "max(f)"}, "window": "6s"},
}
EMITTED = {
    "moved": {"aggregates": {"n": "count", "hi": "max(i)"}, "emit": "changes"},
    "counted": {"aggregates": {"n": "count"}, "emit": "changes"},
    "first": {"aggregates": {"n": "count"}, "emit": "top(3, n)"},
}


def with_views(kafka: Any, name: str, folder: Path, *, emitted: bool = False, **spark: Any) -> Settings:
    """The query's own aggregates need none of what the frames carry for the views but column i."""
    query = {"aggregates": INVERTIBLE, "views": VIEWS | (EMITTED if emitted else {})}
    return make_settings(kafka, name, folder, query=query, spark={"buckets": 2} | spark)


def assert_all_exact(stream: Stream) -> None:
    settings = stream.settings
    assert_exact(stream)
    coarse = view(settings, "coarse")
    assert_equal(results(coarse)[0], stream.expected_of(coarse.query))
    reports = verify_all(settings)
    assert (reports.exact, reports.ended) == (True, True), reports.text()
    views = len(settings.query.views)
    assert [report.rows > 0 for report in reports.by_query.values()] == [True] * (1 + views)
    assert reports.text().endswith(f"0 differences in the query and {views} views")


@pytest.mark.more
def test_views_are_exact_and_read_and_routed_once(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = with_views(kafka_settings, query_name, tmp_path)
    stream = Stream(settings)
    stream.write(3_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
        made = {name for name in topic_names(settings.kafka) if name.startswith(f"{query_name}.")}
        assert not {name for name in made if name.endswith(".routed")} - {settings.topic("routed")}
        assert {one.topic("results") for one in queries(settings)} <= made
    assert_all_exact(stream)
    # A reset leaves the input, and the log of what people did.
    left = {settings.topic("input"), settings.topic("audit")}
    assert made - left <= {topic.name for topic in find(settings, results=True).topics}


@pytest.mark.long
def test_views_are_exact_in_the_split_wiring_when_spark_is_killed(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    """With every kind of emission: changes of totals and of a tree, and the first rows of all buckets."""
    settings = with_views(kafka_settings, query_name, tmp_path, emitted=True, wiring="split")
    stream = Stream(settings)
    stream.write(3_000)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.start("aggregate", "--until-ended")
        # What is there may be one micro-batch, and the one to continue from is to stand on another one's
        # state.
        pipeline.wait_until(lambda: batches_done(view(settings, "coarse"), "reduce") > 0)
        stream.write(1_500)
        pipeline.wait_until(lambda: batches_done(view(settings, "coarse"), "reduce") > 1)
        pipeline.kill("aggregate")
        stream.write(1_500)
        stream.end()
        pipeline.start("aggregate", "--until-ended", name="again")
        pipeline.finish()
    assert_all_exact(stream)


@pytest.mark.long
def test_a_view_that_finds_its_columns_in_the_frames_joins_a_query_that_has_run(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    alone = make_settings(kafka_settings, query_name, tmp_path, spark={"buckets": 2})
    stream = Stream(alone)
    stream.write(2_000)
    stream.end()
    with Pipeline(alone, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    joined = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={"views": {"coarse": VIEWS["coarse"]}},
        spark={"buckets": 2},
    )
    with Pipeline(joined, tmp_path) as pipeline:
        pipeline.start("aggregate", "--until-ended")
        pipeline.finish()
    coarse = view(joined, "coarse")
    assert_equal(results(coarse)[0], stream.expected_of(coarse.query))
    assert verify_all(joined).exact
    other = make_settings(kafka_settings, query_name, tmp_path, query={"views": {"latest": VIEWS["latest"]}})
    for refuse in (admitted, verify):
        with pytest.raises(IncompatibleStateError, match=r"carried_for_views: none -> .*@time"):
            refuse(other)


@pytest.mark.long
def test_two_queries_of_other_keys_and_windows_read_one_topic_at_the_same_time(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    other = load_settings(
        query={
            "name": f"{query_name}-other", "key": "i", "time": "t", "window": "9s", "slide": "3s",
            "types": {"i": "int64"}, "aggregates": {"n": "count", "hi": "max(f)"},
        },
        input={"topic": settings.topic("input")},
        kafka=settings.kafka.model_dump(exclude_unset=True),
        partitioner={"workers": 2},
        spark=settings.spark.model_dump(exclude_unset=True),
    ).with_input_partitions(settings.input_partitions)  # fmt: skip
    folders = [tmp_path / one.query.name for one in (settings, other)]
    for folder in folders:
        folder.mkdir()
    stream = Stream(settings)
    stream.write(3_000)
    stream.end()
    with Pipeline(settings, folders[0]) as one, Pipeline(other, folders[1]) as two:
        for pipeline in (one, two):
            pipeline.start("partition", "--until-ended")
            pipeline.start("aggregate", "--until-ended")
        one.finish()
        two.finish()
    assert_exact(stream)
    reports = verify_all(other)
    assert (reports.exact, reports.ended) == (True, True), reports.text()
