"""What was decided, why, and what does it cost?"""

from __future__ import annotations

from typing import Any

from monitoring.grafana.panels import CHOSEN, QUERY, ZONES, Row, board, lines, number


def build() -> Any:
    """The dashboard."""
    return board(
        "elasticity",
        "evenflow: elasticity",
        "What the controller sees, decides and pays. Vertical lines: a decision with its cause,"
        " and a plan that takes over.",
        _decisions(),
        _cost_and_realisation(),
    )


def _decisions() -> Row:
    return (
        "Decisions",
        [
            lines(
                "W and its zones",
                "Blue: under-used, green: stable, red: overload.",
                "percentunit",
                (f"max by (stage) (evenflow_load_ratio{QUERY})", "{{stage}}"),
                (f"max(evenflow_observed_load_ratio{QUERY})", "decided on"),
                bands=ZONES,
                width=24,
            ),
            lines(
                "Workers (p)",
                "In use, planned, and wanted by the policy.",
                "short",
                (f"max(evenflow_workers{QUERY})", "in use"),
                (f"max(evenflow_planned_workers{QUERY})", "planned"),
                (f"max(evenflow_wanted_workers{QUERY})", "wanted"),
                steady=True,
            ),
            lines(
                "Reduce buckets at once (r)",
                "In use, planned, and wanted by the policy.",
                "short",
                (f"max(evenflow_reducers{QUERY})", "in use"),
                (f"max(evenflow_planned_reducers{QUERY})", "planned"),
                (f"max(evenflow_wanted_reducers{QUERY})", "wanted"),
                steady=True,
            ),
            lines(
                "Zone",
                "1 under-used, 2 stable, 3 overload, as the last decision saw it.",
                "short",
                (f"max(evenflow_zone{QUERY})", "zone"),
                steady=True,
            ),
            lines(
                "Decisions by outcome",
                "Per minute.",
                "short",
                (f"60 * sum by (outcome) (rate(evenflow_decisions_total{QUERY}[5m]))", "{{outcome}}"),
                stacked=True,
            ),
            lines(
                "Decisions by cause",
                "Per minute: what they rest on. docs/metrics.md has the words.",
                "short",
                (f"60 * sum by (cause) (rate(evenflow_decisions_total{QUERY}[5m])) > 0", "{{cause}}"),
                stacked=True,
            ),
        ],
    )


def _cost_and_realisation() -> Row:
    return (
        "Cost and realisation",
        [
            lines(
                "Slots and executors",
                "Tasks that can run at once; executors where there is a cluster manager.",
                "short",
                (f"sum(evenflow_slots{QUERY})", "slots"),
                (f"sum(evenflow_executors{QUERY})", "executors"),
                steady=True,
            ),
            number(
                "core-seconds",
                "Of the last hour: slots that were held.",
                # Each sample of the subquery stands for its 15 s.
                f"15 * sum_over_time(sum(evenflow_slots{QUERY})[1h:15s])",
                "s",
                width=6,
            ),
            number(
                "plan in force",
                "Epoch in the partitioners; 0 for none.",
                'max(evenflow_plan_epoch{part="partitioner",' + CHOSEN + "})",
                "short",
                width=6,
            ),
            lines(
                "Epochs of the parts",
                "They differ while a plan is being realised.",
                "short",
                (f"max by (part) (evenflow_plan_epoch{QUERY})", "{{part}}"),
                steady=True,
            ),
            lines(
                "Silence of the parts",
                "How long ago the controller heard each of them.",
                "s",
                (f"max by (part) (evenflow_part_silence_seconds{QUERY})", "{{part}}"),
            ),
        ],
    )
