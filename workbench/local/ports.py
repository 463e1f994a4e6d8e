"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from workbench.local.broker_properties import HOST

CONTROLLER_JOB = "evenflow-controller"


_FIRST = 10_240
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DRAW = random.SystemRandom()
"""Not a seeded generator, because two processes must not draw the same ports."""


def free_ports(count: int) -> list[int]:
    """`count` different ports that are free now. Another process may take one before it is used.

    The ports lie below those that the system gives to a socket that asks for any. Otherwise a client that
    still looks for a broker that has ended could find Spark there, waiting for one of its Python workers.
    """
    above = _first_ephemeral()
    # All sockets stay bound until the end, so that no port is found twice.
    with ExitStack() as sockets:
        ports: list[int] = []
        while len(ports) < count:
            probe = sockets.enter_context(socket.socket())
            try:
                probe.bind((HOST, _DRAW.randrange(_FIRST, above) if above > _FIRST else 0))
            except OSError:
                continue
            ports.append(int(probe.getsockname()[1]))
        return ports


def _first_ephemeral() -> int:
    """The first port that the system gives to sockets that ask for any. 0 if the system does not say."""
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


@dataclass(frozen=True)
class WebPorts:
    """Ports at which the parts of a pipeline on this machine serve their pages. 0 means any free port."""

    partitioner: int = 0
    """Port of the partitioner service."""
    spark: int = 0
    """Port of the Spark application."""
    control: int = 0
    """Port of the elasticity controller."""

    @classmethod
    def free(cls) -> WebPorts:
        """Ports that are free now, so that they are known before the parts start."""
        return cls(*free_ports(3))

    @property
    def settings(self) -> dict[str, dict[str, int]]:
        """The ports as settings: section -> field -> port."""
        return {
            "partitioner": {"web_port": self.partitioner},
            "spark": {"web_port": self.spark},
            "control": {"web_port": self.control},
        }

    @property
    def targets(self) -> dict[str, int]:
        """The ports by job of Prometheus's scrape configuration."""
        return {
            "evenflow-partitioner": self.partitioner,
            "evenflow-spark": self.spark,
            CONTROLLER_JOB: self.control,
        }


def live_page(port: int) -> str:
    """The address of a part's live page."""
    return f"http://{HOST}:{port}/live/"
