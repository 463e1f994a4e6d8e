"""The package examples/plugin through real Kafka and Spark, as verify recomputes its results."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings.views import queries
from tests.pipeline.end_to_end import Pipeline, Stream, make_settings
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(280)]
_CLONE = Path(__file__).parents[3]
_PACKAGE = _CLONE / "examples" / "plugin" / "turnstile"


def test_a_partitioner_aggregates_and_a_sink_in_the_working_directory_are_exact_in_every_window(
    kafka_settings: Any, query_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(_PACKAGE.parent))
    own = {
        "spread": "turnstile.aggregates:Spread(g, 500000)",
        "middle": "turnstile.aggregates:GeometricMean(i)",
    }
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "aggregates": own | {"n": "count"},
            "views": {
                "top": {"aggregates": own, "emit": "top(2, middle)"},
                "differences": {"aggregates": {"spread": own["spread"]}, "emit": "changes"},
            },
        },
        spark={"buckets": 2},
        partitioner={"workers": 3, "name": "turnstile.partitioner:Turnstile", "options": {"turns": 2}},
        results={"sink": "turnstile.sink:SINK", "path": str(tmp_path / "rows")},
    )
    # The services run in this folder, and Spark's Python workers below them.
    shutil.copytree(_PACKAGE, tmp_path / "turnstile")
    stream = Stream(settings)
    stream.write(2_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    for one in queries(settings):
        report = verify(one)
        assert report.first == ()
        assert report.exact
        assert report.rows >= 50


@pytest.mark.long
def test_executors_that_run_elsewhere_get_the_module_by_spark_archives(
    kafka_settings: Any, query_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(_PACKAGE.parent))
    archive = tmp_path / "own.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(_PACKAGE, _PACKAGE.name)
    conf = {"spark.archives": f"{archive}#own", "spark.executorEnv.PYTHONPATH": f"own:{_CLONE}"}
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "aggregates": {
                "spread": "turnstile.aggregates:Spread(g)",
                "middle": "turnstile.aggregates:GeometricMean(i)",
            }
        },
        spark={"buckets": 2, "master": "local-cluster[1,2,1024]", "executor_memory": "512m", "conf": conf},
    )
    stream = Stream(settings)
    stream.write(500)
    stream.end()
    folder = tmp_path / "services"
    folder.mkdir()
    # The driver and the partitioner find the module here. The executors have a folder of their own.
    shutil.copytree(_PACKAGE, folder / "turnstile")
    with Pipeline(settings, folder) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.first == ()
    assert report.rows > 50
