"""The archives of classes are made by a real broker and a real driver, and a second time there is nothing
to do.
"""

from pathlib import Path

import pytest

from spark_consumers.jars import archive
from spark_consumers.jars.fetch import cache_dir, spark_kafka_jars
from workbench.local.archive import make_archive, make_broker_archive
from workbench.local.broker import EmbeddedBroker, broker_archive_path
from workbench.local.broker_jars import kafka_broker_jars

pytestmark = [pytest.mark.pipeline, pytest.mark.more]


@pytest.mark.long
def test_the_archive_is_there_once_it_was_made_and_drivers_use_it(tmp_path, monkeypatch):
    for wanted in (kafka_broker_jars, spark_kafka_jars):
        wanted()
    jars = cache_dir() / "jars"
    (tmp_path / "evenflow").mkdir()
    (tmp_path / "evenflow" / "jars").symlink_to(jars)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert archive.using_archive() == ""
    brokers = make_broker_archive()
    assert brokers == broker_archive_path(kafka_broker_jars())
    assert brokers.stat().st_size > 20_000_000
    assert make_broker_archive() == brokers
    with EmbeddedBroker() as broker:
        command = Path(f"/proc/{broker.pid}/cmdline").read_text().split("\0")
        assert f"-XX:SharedArchiveFile={brokers}" in command
    made = make_archive()
    assert made == archive.archive_path()
    assert made.stat().st_size > 50_000_000
    assert str(made) in archive.using_archive()
    written = made.stat().st_mtime_ns
    assert make_archive() == made
    assert made.stat().st_mtime_ns == written
