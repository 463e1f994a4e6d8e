"""Today's services go on from what each release has left, restored from a copy to another place."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import Stage
from spark_consumers.checkpoints.epoch import newest_holder
from spark_consumers.checkpoints.results_note import begun_at, is_noted
from spark_consumers.sinks import sink_of
from tests.patience import PATIENCE
from tests.pipeline.end_to_end import (
    Pipeline,
    as_toml,
    assert_exact,
    committed,
    exported,
)
from tests.pipeline.upgrade.kept import BEFORE, FOR_EVER, QUERIES, RELEASES, HalfWritten
from tests.unit.spark_consumers.admitting import found
from topics.reader import read_range
from workbench.local.broker import EmbeddedBroker
from workbench.result_rows import export
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(600)]

ARCHIVES = sorted(RELEASES.glob("*.tar.xz"))
each = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "fused" else pytest.mark.more) for name in QUERIES],
)
AFTER = 1_200
"""Tuples that are written after the upgrade."""


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda file: file.name.removesuffix(".tar.xz"))
def restored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a release's state, with its broker running. Its address is written into the settings."""
    folder = tmp_path_factory.mktemp("restored")
    with tarfile.open(request.param) as archive:
        # Python 3.11 has filters from 3.11.4 on, and Debian 12 has 3.11.2.
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)
        archive.extractall(folder)
    with EmbeddedBroker(data_dir=folder / "broker", properties=FOR_EVER) as broker:
        for file in folder.glob("*.toml"):
            here = load_settings(
                file,
                kafka={"bootstrap_servers": broker.bootstrap_servers},
                spark={"checkpoint": str(folder / "checkpoint")},
            )
            file.write_text(as_toml(here), encoding="utf-8")
        yield folder


def test_there_is_the_state_of_a_release() -> None:
    assert ARCHIVES


@pytest.mark.more
@each
def test_where_a_release_began_is_known_without_its_checkpoint(restored: Path, name: str) -> None:
    settings = load_settings(restored / f"{name}.toml")
    stages: tuple[Stage, ...] = ("fused",) if settings.spark.wiring == "fused" else ("combine", "reduce")
    for stage in stages:
        holder = newest_holder(settings, stage)
        assert holder is not None
        assert holder.epoch >= 1
    place = sink_of(settings).place(settings)
    begun = begun_at(settings, place)
    assert begun is not None
    assert begun.endswith(f"/checkpoint/{name}/{stages[-1]}")
    # Records of other queries may lie in a topic that the user names, so there only the note can refuse.
    shared = settings.model_copy(update={"results": settings.results.model_copy(update={"topic": "shared"})})
    facts = {"written": lambda topic: 1, "planned": None}
    sink_of(shared).admit(shared, found(**facts))
    with pytest.raises(IncompatibleStateError, match="already holds results of query"):
        sink_of(shared).admit(shared, found(**facts, begun=begun))
    folder = restored / "elsewhere" / name
    folder.mkdir(parents=True)
    lost = load_settings(restored / f"{name}.toml", spark={"checkpoint": str(folder / "checkpoint")})
    with Pipeline(lost, folder) as pipeline:
        refused = pipeline.start("aggregate")
        assert refused.wait(60.0 * PATIENCE) == 2
        said = " ".join(refused.output().split())
        pipeline.running.clear()
    assert f"its checkpoint is not there (it was {begun})" in said


@each
def test_a_query_that_a_release_began_goes_on_and_every_result_is_exact(restored: Path, name: str) -> None:
    settings = load_settings(restored / f"{name}.toml")
    stream = HalfWritten(settings)
    stream.recall(BEFORE)
    kept = [m for batch in read_range(settings.kafka, settings.topic("input")) for m in batch]
    assert sorted((m.partition(), m.offset(), m.key()) for m in kept) == sorted(
        (record.partition, record.position, record.key) for record in stream.records
    ), "the first half is another one today"
    assert committed(settings) == BEFORE
    stream.write(AFTER)
    stream.end()
    folder = restored / "services" / name
    folder.mkdir(parents=True)
    with Pipeline(settings, folder) as pipeline:
        services = pipeline.start_instances("--until-ended")
        pipeline.start("aggregate", "--until-ended")
        pipeline.finish()
    _assert_that_it_went_on(folder, settings, services)
    assert is_noted(settings, sink_of(settings).place(settings)), "the note stands where it is written today"
    if settings.query.late == "update":  # brute force knows one rule of lateness; verify knows the other
        report = verify(settings)
        assert (report.exact, report.ended, report.read) == (True, True, BEFORE + AFTER), report.text()
    elif settings.results.sink == "kafka":
        assert_exact(stream)
    else:
        export(settings, folder / "results.parquet")
        assert_exact(stream, exported(settings, folder / "results.parquet"))


def _assert_that_it_went_on(folder: Path, settings: Settings, services: tuple[str, ...]) -> None:
    """Nobody began anew: neither reading, nor what the partitioner had learned, nor micro-batches."""
    logs = {file.stem: file.read_text() for file in folder.glob("*.log")}
    assert sum("goes on after" in logs[service] for service in services) > 0
    if settings.partitioner.name != "pkg":
        assert all("continuing with the learned state of an earlier run" in logs[name] for name in services)
    assert "goes on after micro-batch" in logs["aggregate"]
    assert "from the beginning" not in logs["aggregate"]
