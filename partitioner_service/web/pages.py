"""The pages of an instance: `/`, `/live/`, `/key/`, `/status/`, `/healthy/`, `/alive/`.

`/metrics/` is made by Faust's sensors.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import faust
from faust.exceptions import ConsumerNotStarted
from faust.web import Request, View

from evenflow.reporting.words import by_reason
from evenflow.settings import Settings
from monitoring.live.feed import Feed
from monitoring.live.page import HEADERS, PAGE, PATH, STATE, state
from monitoring.web.headers import headers_of
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.reports.health import Health
from partitioner_service.web.key_page import HEADERS as KEY_HEADERS
from partitioner_service.web.key_page import PATH as KEYS
from partitioner_service.web.key_page import answered, as_html, as_json, question_of


def add_pages(app: faust.App, settings: Settings, plane: DataPlane, health: Health, feed: Feed) -> None:
    """Serve them from this app. feed: what the live page shows."""

    def joined() -> bool:
        try:
            return bool(app.consumer.assignment())
        except ConsumerNotStarted:
            return False

    @app.page("/")
    class Front(View):
        """For a person: what this instance is, and where its other pages are."""

        async def get(self, request: Request) -> Any:
            healthy = health.healthy(plane.status(), control_joined=joined())
            return self.html(front_page(settings, plane.status(), healthy), headers=FRONT_HEADERS)

    @app.page(PATH)
    class Live(View):
        """The pipeline at one glance, for pipelines without a controller that shows it."""

        async def get(self, request: Request) -> Any:
            return self.html(PAGE, headers=HEADERS)

    @app.page(STATE)
    class LiveState(View):
        """The data that the live page asks for every second, as JSON."""

        async def get(self, request: Request) -> Any:
            return self.text(state(feed.glance()), content_type="application/json", headers=HEADERS)

    @app.page(f"{KEYS}{{rest:.*}}")
    class Keys(View):
        """Where one key goes, and why. The only page that a key is asked of."""

        async def get(self, request: Request, rest: str) -> Any:
            # Faust's type leaves out what aiohttp's request has: the path as it came, which no router has
            # unquoted.
            raw: str = request.raw_path  # type: ignore[attr-defined]
            question = question_of(raw, request.headers.get("Accept", ""))
            page = await answered(settings, question, plane.ask)
            if question.wants_json:
                return self.json(as_json(page), status=page.status, headers=KEY_HEADERS)
            return self.html(as_html(settings, page), status=page.status, headers=KEY_HEADERS)

    @app.page("/status/")
    class Status(View):
        """Assignment, watermarks, rates and loads of this instance as JSON."""

        async def get(self, request: Request) -> Any:
            return self.json(plane.status())

    @app.page("/healthy/")
    class Healthy(View):
        """200 while both halves make progress and all that should move does.

        After a minute without: 503 and the reason.
        """

        async def get(self, request: Request) -> Any:
            shown = health.healthy(plane.status(), control_joined=joined())
            return self.json(shown, status=200 if shown["healthy"] else 503)

    @app.page("/alive/")
    class Alive(View):
        """For a liveness probe: 503 and the reason, but only if a restart may heal it."""

        async def get(self, request: Request) -> Any:
            shown = health.alive(plane.status(), control_joined=joined())
            return self.json(shown, status=200 if shown["alive"] else 503)


_STYLE = "body{font:16px system-ui;margin:2em;max-width:46em}td{padding:.1em 1.5em .1em 0}"
FRONT_HEADERS = headers_of(f"<style>{_STYLE}</style>")
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>evenflow {query}</title>
<style>{style}</style></head>
<body><h1>evenflow: query {query}</h1>
<p>Partitioner instance {instance}, which routes {input} to {routed}.</p>
<table>{rows}</table>
<p><a href="/live/">live</a> (the whole pipeline), <a href="/key/">key</a> (where does a key go, and why?),
<a href="/status/">status</a> (JSON),
<a href="/healthy/">healthy</a> (does all that should move?),
<a href="/alive/">alive</a> (for liveness probes), <a href="/metrics/">metrics</a> (for Prometheus)</p></body></html>
"""


def front_page(settings: Settings, status: Mapping[str, Any], healthy: Mapping[str, Any]) -> str:
    """The page at `/` as HTML."""
    own = status.get("assignment", {})  # the status has few fields before the instance is running
    figures = {
        "state": status["state"],
        "healthy": "yes" if healthy["healthy"] else f"no: {healthy['reason']}",
        "input partitions owned": (
            f"{len(own)} of {status.get('input_partitions', settings.input_partitions)}"
        ),
        "tuples routed": f"{status.get('tuples', 0):,} ({status.get('tuples_per_second', 0):,.0f}/s)",
        "records filtered": f"{status.get('filtered', 0):,} of {status.get('read', 0):,} read",
        "records rejected": by_reason(status.get("rejected_by_reason", {})) or "none",
        "lag": f"{sum(shown['lag'] or 0 for shown in own.values()):,} records",
    }
    words = {
        "query": settings.query.name,
        "instance": settings.partitioner.instance,
        "input": settings.topic("input"),
        "routed": settings.topic("routed"),
    }
    rows = "".join(f"<tr><td>{name}</td><td>{html.escape(text)}</td></tr>" for name, text in figures.items())
    return _PAGE.format(rows=rows, style=_STYLE, **{name: html.escape(word) for name, word in words.items()})
