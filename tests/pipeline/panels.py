"""The queries of Grafana's panels, asked of a real Prometheus."""

from __future__ import annotations

import json
from collections.abc import Iterator

from evenflow.errors import ServiceError
from monitoring.grafana.__main__ import FOLDER
from monitoring.instruments.catalogue import METRICS
from workbench.local.prometheus import Prometheus

EXCHANGE = "evenflow_exchange_"
"""How the metrics begin that only instances have which tell each other."""

BATCHES = "evenflow_partitioner_"
"""How the metrics begin that only instances have which route in micro-batches."""


def queries() -> Iterator[tuple[str, str]]:
    """Board, panel and letter of each query, and its expression."""
    for file in sorted(FOLDER.glob("*.json")):
        board = json.loads(file.read_text())
        for panel in board["panels"]:
            for target in panel.get("targets", []):
                yield f"{file.stem}/{panel['title']}/{target['refId']}", target["expr"]


def series() -> set[str]:
    """All series of the catalogue."""
    return {one for metric in METRICS.values() for one in metric.series}


def asked(prometheus: Prometheus, expression: str, query: str) -> int | str:
    """How many series the expression gives for this query, or what Prometheus says against it."""
    chosen = expression.replace("$query", query).replace("$instance", ".*").replace("$__rate_interval", "30s")
    try:
        prometheus.query(chosen)
        # Panels show stretches of time: a zone, say, is not known while a plan is being realised.
        return len(prometheus.query(f"last_over_time(({chosen})[1m:1s])"))
    except ServiceError as error:
        return error.message


def has_data(answer: int | str) -> bool:
    """Whether what was `asked` has at least one series."""
    return isinstance(answer, int) and answer > 0
