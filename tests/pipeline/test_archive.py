"""The archive of Spark's classes is made by a real driver, and a second time there is nothing to do."""

import pytest

from spark_consumers import archive
from spark_consumers.jars import cache_dir, spark_kafka_jars
from workbench.archive import make_archive
from workbench.broker_jars import kafka_broker_jars

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
    made = make_archive()
    assert made == archive.archive_path()
    assert made.stat().st_size > 50_000_000
    assert str(made) in archive.using_archive()
    written = made.stat().st_mtime_ns
    assert make_archive() == made
    assert made.stat().st_mtime_ns == written
