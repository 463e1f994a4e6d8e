"""Whether the parts of a query can serve their pages and metrics where the settings say."""

from __future__ import annotations

import socket
import urllib.error
from collections.abc import Iterator
from http.client import HTTPException

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from workbench.assist.findings import Finding
from workbench.assist.page_client import PageClient

_PATIENCE = 1.0
_EVERYWHERE = {"0.0.0.0", "::"}


def check_ports(settings: Settings) -> Iterator[Finding]:
    """One finding for each port that is set. Port 0 means any free port, so there is nothing to check."""
    addresses: dict[tuple[str, int], str] = {}
    for part in ("partitioner", "spark", "control"):
        served = getattr(settings, part)
        address = (served.web_host, served.web_port)
        if served.web_port:
            others = (name for other, name in addresses.items() if _meet(address, other))
            yield _check(settings, part, address, next(others, None))
            addresses.setdefault(address, f"{part}.web_port")


def _meet(address: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two parts cannot listen at these two addresses at once. A wildcard stands for every address."""
    return address[1] == other[1] and (address[0] == other[0] or bool({address[0], other[0]} & _EVERYWHERE))


def _check(settings: Settings, part: str, address: tuple[str, int], other: str | None) -> Finding:
    setting, place = f"{part}.web_port", f"{address[0]}:{address[1]}"
    do = f"set {setting} to a free port, or to 0"
    if other is not None:
        return Finding(setting, "problem", f"{place} is {other}, too: the later part cannot start", do)
    obstacle = _obstacle(address)
    if obstacle is None:
        return Finding(setting, "ok", f"{place} is free")
    ours = _is_ours(settings, address)
    if ours:
        return Finding(setting, "ok", f"{place} is served by this query")
    do = f"end the process that has it, or {do}; {part}.web_host names the address"
    if ours is None:
        message = f"{place} is in use: its page wants the token, so whether it is this query's is not known"
        do = (
            f"if no part of this query serves it, {do}. The doctor sends the token only to pages that"
            " web.tls_ca proves"
        )
        return Finding(setting, "warning", message, do)
    return Finding(setting, "problem", f"{place} cannot be listened on: {obstacle}", do)


def _obstacle(address: tuple[str, int]) -> str | None:
    """Why nobody can listen at this address. None if it is free."""
    try:
        family, *_, (host, port, *_) = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_ours(settings: Settings, address: tuple[str, int]) -> bool | None:
    """Whether a part of this query answers at this address, which the settings name.

    None if the page there wants a token and has not proved that it may have ours.
    """
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    try:
        pages = PageClient(settings.web)
        with pages.open(f"{host}:{address[1]}", "/metrics/", patience=_PATIENCE) as answer:
            lines = answer.read(1_000_000).decode(errors="replace").splitlines()
    except urllib.error.HTTPError as error:
        return None if error.code == 401 and pages.withheld else False
    except (OSError, ValueError, ConfigError, HTTPException):
        return False
    query = f'query="{settings.query.name}"'
    return any(line.startswith("evenflow_build_info{") and query in line for line in lines)
