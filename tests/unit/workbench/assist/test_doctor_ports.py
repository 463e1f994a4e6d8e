"""Ports that the settings name: free, served by the query itself, or somebody else's."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from evenflow.settings import Settings
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served
from workbench.assist.doctor.ports import check_ports
from workbench.assist.findings import Finding
from workbench.local.ports import HOST, free_ports


def found(**tables: Any) -> list[Finding]:
    return list(check_ports(Settings(query={"name": "q"}, **tables)))


def test_ports_that_are_not_set_are_not_looked_at() -> None:
    assert found() == []


def test_a_free_port_is_fine() -> None:
    (port,) = free_ports(1)
    (finding,) = found(spark={"web_port": port})
    assert (finding.name, finding.status, finding.what) == ("spark.web_port", "ok", f"{HOST}:{port} is free")


@pytest.mark.parametrize("part", ["partitioner", "spark", "control"])
def test_a_port_that_another_process_has_names_the_setting(part: str) -> None:
    with socket.create_server((HOST, 0)) as other:
        (finding,) = found(**{part: {"web_port": other.getsockname()[1]}})
    assert (finding.name, finding.status) == (f"{part}.web_port", "problem")
    assert "already in use" in finding.what
    assert f"set {part}.web_port to a free port, or to 0" in finding.do


def test_a_part_of_the_query_itself_may_have_its_port() -> None:
    settings = Settings(query={"name": "q"})
    with served(SparkInstruments(settings), HOST, 0, setting="spark.web_port") as port:
        (own,) = check_ports(Settings(query={"name": "q"}, spark={"web_port": port}))
        (strangers,) = check_ports(Settings(query={"name": "r"}, spark={"web_port": port}))
    assert (own.status, own.what) == ("ok", f"{HOST}:{port} is served by this query")
    assert strangers.status == "problem"


def test_two_parts_cannot_have_one_port() -> None:
    (port,) = free_ports(1)
    first, second = found(partitioner={"web_port": port}, control={"web_port": port})
    assert first.status == "ok"
    assert (second.status, second.what) == (
        "problem",
        f"{HOST}:{port} is partitioner.web_port, too: the later part cannot start",
    )


def test_an_address_that_is_not_this_machine_s_is_a_problem() -> None:
    (finding,) = found(control={"web_host": "192.0.2.1", "web_port": 9_999})
    assert finding.status == "problem"
    assert "control.web_host names the address" in finding.do
