"""`/metrics/` over HTTP, for a part that has no web server of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server

from evenflow.errors import ConfigError
from monitoring.instruments.sheet import Instruments

_LOG = logging.getLogger("evenflow.metrics")


@contextmanager
def exposed(instruments: Instruments, host: str, port: int, *, setting: str) -> Iterator[int]:
    """Serve them from a thread of its own, at the port that is given out (0: a free one).

    setting: whose value `port` is. Raises ConfigError where nothing can listen there.
    """
    try:
        server, thread = start_http_server(port, addr=host, registry=instruments.registry)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be served at {host}:{port}: {error}",
            hint=f"another process has that port: set {setting} to a free one, or to 0",
        ) from None
    try:
        _LOG.info("metrics: http://%s:%d/metrics/", host, server.server_port)
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
