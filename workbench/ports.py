"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import dataclass

from workbench.broker_properties import HOST

CONTROLLER_JOB = "evenflow-controller"


def free_ports(count: int) -> list[int]:
    """So many different ones; somebody else may take one before it is used."""
    with ExitStack() as sockets:
        ports = []
        for _ in range(count):
            one = sockets.enter_context(socket.socket())
            one.bind((HOST, 0))
            ports.append(int(one.getsockname()[1]))
        return ports


@dataclass(frozen=True)
class WebPorts:
    """Where the parts of a pipeline on this machine serve their pages; 0 is any."""

    partitioner: int = 0
    spark: int = 0
    control: int = 0

    @classmethod
    def free(cls) -> WebPorts:
        """Known before the parts start."""
        return cls(*free_ports(3))

    @property
    def settings(self) -> dict[str, dict[str, int]]:
        """By table of the settings."""
        return {
            "partitioner": {"web_port": self.partitioner},
            "spark": {"web_port": self.spark},
            "control": {"web_port": self.control},
        }

    @property
    def targets(self) -> dict[str, int]:
        """By job of the scrape configuration."""
        return {
            "evenflow-partitioner": self.partitioner,
            "evenflow-spark": self.spark,
            CONTROLLER_JOB: self.control,
        }


def live_page(port: int) -> str:
    """The address of a part's live page."""
    return f"http://{HOST}:{port}/live/"
