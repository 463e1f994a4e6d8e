"""Prints Prometheus's rules as the Prometheus Operator's resource: `python -m monitoring.operator_rules`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_RULES = Path(__file__).parent / "prometheus"


def prometheus_rule() -> dict[str, Any]:
    """All groups of `monitoring/prometheus/*.rules.yml` as one PrometheusRule."""
    groups = [
        group
        for file in sorted(_RULES.glob("*.rules.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
    ]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "evenflow"},
        "spec": {"groups": groups},
    }


def printed() -> str:
    """The text that k8s/overlays/production/rules.yaml must hold."""
    made_by = "# Made by `python -m monitoring.operator_rules`.\n"
    return made_by + str(yaml.safe_dump(prometheus_rule(), sort_keys=False, width=120))


if __name__ == "__main__":
    print(printed(), end="")
