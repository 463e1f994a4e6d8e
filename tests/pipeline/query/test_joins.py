"""The joins of the papers' queries, as they are built in, through the real pipeline: lineitems with a file of
orders (TPC-H Q3), and rows of closed windows with each other (DEBS 2015, query 2).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.settings import KafkaSettings, load_settings, save_settings
from producers.replay import replay
from tests.pipeline.end_to_end import Pipeline, owners
from tests.pipeline.routed import create_topics
from workbench.demo.options import DemoOptions, prepare
from workbench.verify.views import verify_all

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(400)]

DATA = {"tpch-q3": "tpch:scale=0.001", "debs-q2": "taxi:tuples=3000"}
"""The data of each query: 6,005 lineitems of seven years, 3,000 rides within ten minutes."""
TUPLES = {"tpch-q3": 6_005, "debs-q2": 3_000}
QUICK = {("tpch-q3", "evenflow"), ("debs-q2", "d-choices")}
"""One of each query, with two partitioners."""
CASES = [
    pytest.param(query, name, marks=() if (query, name) in QUICK else pytest.mark.long, id=f"{query}-{name}")
    for query in DATA
    for name in ("evenflow", "d-choices", "dalton", "prompt")
]


@pytest.mark.parametrize(("query", "partitioner"), CASES)
def test_a_join_of_the_papers_ends_with_0_differences_with_two_instances_that_share_the_input(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, query: str, partitioner: str
) -> None:
    options = DemoOptions(query=query, input=DATA[query], partitioner=partitioner, instances=2)
    demo, source = prepare(options, tmp_path)
    file = tmp_path / "demo.json"
    save_settings(demo, file)
    kafka = kafka_settings.model_dump(exclude_unset=True)
    settings = load_settings(file, query={"name": query_name}, kafka=kafka)
    save_settings(settings, file)
    create_topics(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.file = file  # a demo switches things off, for which TOML has no word
        pipeline.start("aggregate", "--until-ended", "--unchecked")
        pipeline.start_instances("--until-ended", "--unchecked")
        pipeline.wait_until(lambda: owners(settings) == [2, 2])
        replay(settings, source)
        pipeline.finish(timeout=250)
    reports = verify_all(settings)
    assert (reports.exact, reports.ended) == (True, True), reports.text()
    assert {report.read for report in reports.by_query.values()} == {TUPLES[query]}
    assert all(report.rows for report in reports.by_query.values()), reports.text()
    assert reports.by_query[query_name].rejected == 0
