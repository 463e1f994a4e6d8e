"""A second process of the same instance: refused in words, and the first one lives on, unless it is to be
replaced.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from evenflow.settings import Settings
from partitioner_service.kafka.committed_state import all_states
from tests.pipeline.planes import missed_after, some_rows, total, wait_until
from tests.pipeline.routed import create_topics, expected_counts, make_settings, read_routed, write, write_end
from tests.pipeline.spark_stream import driver, start
from workbench.local.ports import free_ports

pytestmark = [pytest.mark.pipeline, pytest.mark.more]


def ended(settings: Settings, log: Path, *words: str) -> tuple[int, str]:
    """Exit status and output of a partitioner that ends by itself."""
    process = start(settings, log, "partition", *words)
    try:
        return process.wait(60), log.read_text()
    finally:
        process.kill()


def test_a_second_process_is_refused_by_port_and_by_name_may_take_over_and_goes_on_after_a_kill(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    one_port = make_settings(kafka_settings, query_name, partitioner={"web_port": port})
    # On a slow machine a process takes more than 10 s to start. The group must still know the killed one by
    # then.
    any_port = make_settings(missed_after(kafka_settings, 25_000), query_name)
    create_topics(one_port)
    rows = some_rows(800)
    logs = {name: tmp_path / f"{name}.log" for name in ("first", "port", "name", "takes", "again")}

    def route(n: int, process: Popen[bytes]) -> None:
        """Write the next rows, and wait until `n` are routed."""
        write(one_port, rows[n - 200 : n], end=False)
        wait_until(lambda: total(all_states(one_port))[1] == n or process.poll() is not None)
        assert process.poll() is None

    with driver(one_port, logs["first"], "partition") as first:
        route(200, first)
        status, output = ended(one_port, logs["port"])
        assert status == 2
        assert "Traceback" not in output
        assert f"partitioner.web_port is {port}, but another process listens at 127.0.0.1:{port}" in output
        status, output = ended(any_port, logs["name"])
        assert status == 2
        assert "Traceback" not in output
        assert f"instance 0 of query {query_name} is at work in another process" in output
        assert f"http://127.0.0.1:{port}/" in output
        assert "--take-over" in output
        route(400, first)
        with driver(any_port, logs["takes"], "partition", "--take-over") as second:
            route(600, second)
            assert first.wait(60) == 2
            output = logs["first"].read_text()
            assert "Traceback" not in output
            assert "instance" in output.splitlines()[-1] + output.splitlines()[-2]
            os.kill(second.pid, signal.SIGKILL)
            second.wait()
        with driver(any_port, logs["again"], "partition", "--until-ended") as third:
            write(one_port, rows[600:], end=False)
            write_end(one_port, Counter(p for p, _ in rows))
            assert third.wait(90) == 0, logs["again"].read_text()
    assert logs["again"].read_text().count("was at work a moment ago") == 1
    assert read_routed(one_port).counts == expected_counts(one_port, rows)


def test_a_restart_after_a_clean_stop_waits_for_nobody(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    write(settings, some_rows(100))
    for turn in ("first", "second"):
        log = tmp_path / f"{turn}.log"
        status, output = ended(settings, log, "--until-ended")
        assert status == 0, output
        assert "was at work a moment ago" not in output
