"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from workbench.broker_properties import HOST

CONTROLLER_JOB = "evenflow-controller"


_FIRST = 10_240
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DRAW = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """So many different ones. Somebody else may take one before it is used.

    The system gives none of them to a socket that asks for any: a client that still looks for a broker that has gone must
    not find Spark waiting there for a Python worker of its own.
    """
    above = _first_ephemeral()
    with ExitStack() as sockets:
        ports: list[int] = []
        while len(ports) < count:
            one = sockets.enter_context(socket.socket())
            try:
                one.bind((HOST, _DRAW.randrange(_FIRST, above) if above > _FIRST else 0))
            except OSError:
                continue
            ports.append(int(one.getsockname()[1]))
        return ports


def _first_ephemeral() -> int:
    """The first port that the system gives out by itself. 0 where it does not say."""
    try:
        return int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


@dataclass(frozen=True)
class WebPorts:
    """Where the parts of a pipeline on this machine serve their pages. 0 is any."""

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
