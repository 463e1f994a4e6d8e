"""A machine that is too busy to start a Python process within the 10 s that Spark waits for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline import spark_stream
from tests.pipeline.spark_stream import start

pytestmark = [pytest.mark.pipeline, pytest.mark.more]

_SLOW = """#!/bin/sh
case "$*" in
*transform_with_state_driver_worker*)
    if [ ! -e {once} ]; then
        touch {once}
        exit 0  # Spark waits 10 s for a connection, whatever became of the process
    fi ;;
esac
exec {python} "$@"
"""


def test_a_query_whose_python_process_did_not_start_in_time_starts_again_and_its_results_are_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    once, python = tmp_path / "once", tmp_path / "python"
    python.write_text(_SLOW.format(once=once, python=sys.executable))
    python.chmod(0o755)
    settings = spark_stream.make_settings(
        kafka_settings, query_name, tmp_path, spark={"executor_python": str(python)}
    )
    stream = spark_stream.Stream(settings)
    stream.write(12)
    stream.end()
    log = tmp_path / "aggregate.log"
    process = start(settings, log, "aggregate", "--until-ended")
    try:
        assert process.wait(120) == 0, log.read_text()
    finally:
        process.kill()
    assert once.exists(), "the first process did not connect"
    assert "The query starts again (start 2 of 12)" in log.read_text()
    assert spark_stream.results(settings)[0] == stream.expected()
