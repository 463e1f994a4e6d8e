"""What is wrong, and since when?"""

from __future__ import annotations

from typing import Any

from monitoring.grafana.panels import FIRING, INSTANCES, QUERY, Row, board, lines, quantile

_UP = 'up{job=~"evenflow.*"}'


def build() -> Any:
    """The dashboard."""
    return board(
        "faults",
        "evenflow: faults",
        "What is wrong, and since when?",
        _alerts_and_parts(),
        _input(),
        _repeated_and_lost_work(),
    )


def _alerts_and_parts() -> Row:
    return (
        "Alerts and parts",
        [
            lines(
                "Alerts",
                "That fire, by name.",
                "short",
                (
                    f"count by (alertname) ({FIRING}) or on() vector(0)",
                    "{{alertname}}",
                ),
                steady=True,
            ),
            lines(
                "Targets",
                "Processes that answer Prometheus, and those that do not.",
                "short",
                (f"sum by (job) ({_UP})", "{{job}}"),
                (f"count by (job) ({_UP}) - sum by (job) ({_UP})", "{{job}}: no answer"),
                steady=True,
            ),
            lines(
                "Uptime",
                "Of the youngest process of each part: it falls where one was started again.",
                "s",
                ('time() - max by (job) (process_start_time_seconds{job=~"evenflow.*"})', "{{job}}"),
            ),
            lines(
                "Progress of partitioners",
                "How long ago the data plane last did something; the ten"
                " instances where that is longest ago.",
                "s",
                (
                    f"topk(10, max by (instance) (evenflow_since_progress_seconds{INSTANCES}))",
                    "{{instance}}",
                ),
            ),
        ],
    )


def _input() -> Row:
    return (
        "Input",
        [
            lines(
                "Rejected records",
                "Per second, by reason.",
                "short",
                (f"query:evenflow_tuples_rejected:rate1m{QUERY} or on() vector(0)", "{{reason}}"),
                stacked=True,
            ),
            lines(
                "Watermark behind the clock",
                "The ten input partitions that are furthest behind. Only where event times are live.",
                "s",
                (
                    f"topk(10, query_partition:evenflow_watermark_lag:seconds{QUERY})",
                    "partition {{partition}}",
                ),
            ),
            lines(
                "Idle input partitions",
                "Which no window waits for.",
                "short",
                (f"sum(max by (partition) (evenflow_input_idle{QUERY}))", "idle"),
                (f"sum(evenflow_input_partitions_owned{QUERY})", "owned"),
                steady=True,
            ),
            lines(
                "Rebalances",
                "Assignments of input partitions, per minute; the ten instances with most.",
                "short",
                (
                    f"topk(10, 60 * sum by (instance) (rate(evenflow_rebalances_total{INSTANCES}[5m])))",
                    "{{instance}}",
                ),
            ),
        ],
    )


def _repeated_and_lost_work() -> Row:
    return (
        "Repeated and lost work",
        [
            lines(
                "Repeated partial rows",
                "They came again and changed nothing.",
                "short",
                (f"sum(rate(evenflow_duplicates_dropped_total{QUERY}[1m]))", "per second"),
            ),
            lines(
                "Values that do not fit",
                "Result values that are null for that, in all.",
                "short",
                (f"sum(evenflow_unfit_values_total{QUERY})", "null"),
            ),
            lines(
                "Age of learned state",
                "Since an instance last saved it; the ten instances where that is longest ago.",
                "s",
                (
                    (
                        "topk(10, time() - max by (instance)"
                        f" (evenflow_snapshot_timestamp_seconds{INSTANCES}))"
                    ),
                    "{{instance}}",
                ),
            ),
            lines(
                "Blocks and commits, 99 %",
                "Time of a block and of a commit.",
                "s",
                (quantile("0.99", "evenflow_block_seconds"), "block"),
                (quantile("0.99", "evenflow_commit_seconds"), "commit"),
            ),
            lines(
                "Records that count for nothing",
                "In the topics of plans and telemetry: hostile, old, or of another query.",
                "short",
                (f"sum(evenflow_plans_ignored_total{QUERY})", "plans, by partitioners"),
                (
                    f"sum by (kind) (evenflow_telemetry_ignored_total{QUERY}) or on() vector(0)",
                    "controller: {{kind}}",
                ),
            ),
        ],
    )
