"""The alerts that fire in a Prometheus."""

from __future__ import annotations

import json
import urllib.request

from workbench.local.prometheus import Prometheus


def firing(prometheus: Prometheus) -> set[str]:
    """Names of the alerts that fire."""
    with urllib.request.urlopen(f"{prometheus.address}api/v1/alerts", timeout=10) as answer:
        alerts = json.load(answer)["data"]["alerts"]
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
