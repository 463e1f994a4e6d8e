"""The demo as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from workbench.local.processes import ChildProcess

pytestmark = pytest.mark.pipeline


def demo(tmp_path: Path, *words: str) -> ChildProcess:
    return ChildProcess(
        [sys.executable, "-m", "cli.main", "demo", *words], log=tmp_path / "demo.log", cwd=tmp_path
    )


def figures_of(tmp_path: Path, query: str, limit: str) -> dict[str, float]:
    child = demo(tmp_path, "--query", query, "--limit", limit, "--json")
    assert child.wait(300) == 0, child.tail(40)
    return json.loads(child.output().splitlines()[-1])


def name_of(process: psutil.Process) -> str:
    """Its name; empty when it has ended meanwhile."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def listening(process: psutil.Process) -> set[int]:
    """Ports that it listens on; none when it has ended meanwhile."""
    try:
        return {c.laddr.port for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    except psutil.NoSuchProcess:
        return set()


@pytest.mark.more
def test_the_demo_of_real_flights_ends_with_0_differences_and_its_figures(tmp_path):
    child = demo(tmp_path, "--limit", "4000", "--json")
    assert child.wait(150) == 0, child.tail(40)
    output = child.output()
    assert "\n0 differences\n" in output
    figures = json.loads(output.splitlines()[-1])
    assert figures["tuples"] == figures["routed"] == 4_000
    assert figures["rejected"] == figures["differences"] == 0
    assert figures["windows"] > 100
    assert figures["latency_p50_ms"] is None
    assert figures["provenance"]["stream"] == "flights"
    for shown in (
        "the busiest windows",
        "tuples per worker (evenflow)",
        "hashing",
        "shuffle",
        "replication factor",
    ):
        assert shown in output
    assert re.search(r"partitioned: 4,000 of 4,000", output)


@pytest.mark.long
def test_a_built_in_query_with_generated_data_ends_with_0_differences(tmp_path):
    figures = figures_of(tmp_path, "wordcount", "500")
    assert (figures["tuples"], figures["rejected"], figures["differences"]) == (500, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize("query", [pytest.param("top-words", marks=pytest.mark.long), "tpch-q1"])
def test_a_built_in_query_with_derived_columns_ends_with_0_differences(tmp_path, query):
    """`make queries` runs all there are."""
    figures = figures_of(tmp_path, query, "1000")
    assert (figures["tuples"], figures["rejected"], figures["differences"]) == (1_000, 0, 0)


@pytest.mark.long
def test_any_file_and_partitioner_can_be_demonstrated(tmp_path):
    file = tmp_path / "orders.txt"
    file.write_text("\n".join(f"c{i % 7} {1_600_000_000 + i} {i % 50}" for i in range(2_000)))
    words = ["--input", str(file), "--delimiter", " ", "--no-header"]
    words += ["--key", "c0", "--time", "c1", "--time-unit", "s", "--value", "c2"]
    words += ["--partitioner", "pkg:d=3", "--workers", "4", "--instances", "2", "--wiring", "split"]
    words += ["--forwarding", "on"]
    child = demo(tmp_path, *words, "--window", "60s", "--slide", "20s", "--json")
    assert child.wait(200) == 0, child.tail(40)
    figures = json.loads(child.output().splitlines()[-1])
    assert (figures["tuples"], figures["differences"]) == (2_000, 0)


@pytest.mark.more
def test_ctrl_c_leaves_no_process_and_no_port_behind(tmp_path):
    child = demo(tmp_path)
    me = psutil.Process(child.pid)
    deadline = time.monotonic() + 60
    family = []
    while "partitioned" not in child.output() or sum("java" in name_of(p) for p in family) < 2:
        assert time.monotonic() < deadline, child.tail()
        threading.Event().wait(0.1)
        family = me.children(recursive=True)  # broker and Spark among them
    ports = {port for p in [me, *family] for port in listening(p)}
    assert ports
    child.signal(signal.SIGINT)
    assert child.wait(60) == 130, child.tail()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    still = {c.laddr.port for c in psutil.net_connections() if c.status == psutil.CONN_LISTEN}
    assert not ports & still


def test_an_unknown_partitioner_is_refused_with_the_known_ones(tmp_path):
    child = demo(tmp_path, "--partitioner", "pgk")
    assert child.wait(60) == 2
    assert "pkg" in child.output()
    assert "d-choices" in child.output()
