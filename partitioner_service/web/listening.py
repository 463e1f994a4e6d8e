"""The address of an instance's pages, taken before the instance does anything that others notice."""

from __future__ import annotations

import errno
import socket

from evenflow.errors import ConfigError
from evenflow.settings import Settings


def listening(settings: Settings) -> socket.socket:
    """A socket that listens where the pages of this instance are to be. The caller closes it.

    Requests wait in the socket until the pages are served. Raises ConfigError if nothing can listen there,
    for example because another instance does.
    """
    options, extras = settings.partitioner, settings.kafka.extras.faust
    host = str(extras.get("web_bind", options.web_host))
    port = int(extras.get("web_port", options.web_port))
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"partitioner.web_port is {port}, but another process listens at {host}:{port}",
                hint=(
                    f"if that is instance {options.instance} itself, there is nothing to do. A further"
                    " instance needs a port of its own: set"
                    " partitioner.web_port to a free one, or to 0 for any"
                ),
            ) from None
        raise ConfigError(
            f"partitioner.web_host {host!r} cannot be listened on, port {port}: {error}",
            hint=(
                "set partitioner.web_host to an address of this machine, and"
                " partitioner.web_port to a free port or 0"
            ),
        ) from None
