"""`python -m tests.pipeline.upgrade`: writes what today's code leaves behind, as the state of a release.

It is run once for each release, with the code of that release. What an earlier release has written stays as
it is: nothing can write it again.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

import evenflow
from evenflow.settings import Settings
from partitioner_service.plans_by_hand import publish
from tests.pipeline.end_to_end import Pipeline, Stream, as_toml, batches_done, committed
from tests.pipeline.upgrade.kept import BEFORE, FOR_EVER, QUERIES, RELEASES, SEED, new
from topics import clients
from topics.admin import pipeline_topics
from workbench.local.broker import EmbeddedBroker


def main() -> int:
    """Write the archive of the version that this code has. It must not exist."""
    target = RELEASES / f"{evenflow.__version__}.tar.xz"
    if target.exists():
        print(f"{target} is there already: it stays what that release wrote", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="evenflow-upgrade-") as folder:
        _run(Path(folder))
        _pack(Path(folder), target)
    print(f"{target}: {target.stat().st_size / 1_000:.0f} KB")
    return 0


def _run(folder: Path) -> None:
    with EmbeddedBroker(data_dir=folder / "broker", properties=FOR_EVER) as broker:
        for name in QUERIES:
            settings = new(broker.settings(), name, folder)
            (folder / f"{name}.toml").write_text(as_toml(settings), encoding="utf-8")
            _keep_records(settings)
            _first_half(settings, folder / "services" / name)


def _keep_records(settings: Settings) -> None:
    """No record goes by its age, as an operator sets it before a long stop."""
    for spec in pipeline_topics(settings).values():
        if spec.config.get("cleanup.policy") == "compact":
            continue
        kept = ConfigResource(
            ResourceType.TOPIC,
            spec.name,
            incremental_configs=[
                ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)
            ],
        )
        for done in clients.admin(settings.kafka).incremental_alter_configs([kept]).values():
            done.result()


def _first_half(settings: Settings, folder: Path) -> None:
    """The services read the first half, a plan comes in the midst of it, and all are stopped in order."""
    folder.mkdir(parents=True)
    stream = Stream(settings, seed=SEED)
    stages = ("fused",) if settings.spark.wiring == "fused" else ("combine", "reduce")
    with Pipeline(settings, folder) as pipeline:
        services = pipeline.start_instances()
        pipeline.start("aggregate")
        stream.write(BEFORE // 2)
        pipeline.wait_until(lambda: committed(settings) == BEFORE // 2)
        publish(settings, workers=2, reason="an upgrade")
        stream.write(BEFORE - BEFORE // 2)
        pipeline.wait_until(lambda: committed(settings) == BEFORE)
        reached = {stage: batches_done(settings, stage) for stage in stages}
        pipeline.wait_until(
            lambda: all(batches_done(settings, stage) > before for stage, before in reached.items())
        )
        for name in (*services, "aggregate"):
            pipeline.stop(name)


def _pack(folder: Path, target: Path) -> None:
    """What has to be backed up: the broker's folder but for its log and lock, checkpoints, settings."""
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for name in ("broker/kafka", "checkpoint", *(f"{query}.toml" for query in QUERIES)):
            archive.add(folder / name, arcname=name)


if __name__ == "__main__":
    sys.exit(main())
