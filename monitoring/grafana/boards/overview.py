"""Is it keeping up, is it balanced, is it right?"""

from __future__ import annotations

from typing import Any

from monitoring.grafana.panels import (
    CHOSEN,
    FIRING,
    GREEN,
    QUERY,
    RED,
    YELLOW,
    ZONES,
    Row,
    board,
    lines,
    number,
    quantile,
)

_TO_RESULTS = ',stage=~"fused|reduce"'


def build() -> Any:
    """The dashboard."""
    return board(
        "overview",
        "evenflow: overview",
        "Is the pipeline keeping up, is it balanced, is it right?",
        _keeping_up(),
        _balance(),
        _over_time(),
    )


def _keeping_up() -> Row:
    return (
        "Is it keeping up?",
        [
            number(
                "W",
                "Processing time of a micro-batch over the batch interval."
                " Above 0.9 the pipeline falls behind.",
                f"max(evenflow_load_ratio{QUERY})",
                "percentunit",
                *ZONES,
            ),
            number(
                "tuples per second",
                "Tuples that the partitioners gave a worker.",
                f"query:evenflow_tuples_routed:rate1m{QUERY}",
                "short",
            ),
            number(
                "unread records",
                "Lag of all input partitions together.",
                f"query:evenflow_input_lag:records{QUERY}",
                "short",
                (None, GREEN),
                (100_000, YELLOW),
                (1_000_000, RED),
            ),
            number(
                "latency, 99 %",
                "From the input topic to the end of the micro-batch that took the tuple in,"
                " of the last five minutes.",
                f"max(query_stage:evenflow_end_to_end_latency_seconds:p99_5m{QUERY})",
                "s",
                (None, GREEN),
                (10, YELLOW),
                (30, RED),
            ),
            number(
                "delay of windows, 99 %",
                "From when a window was due to its results. Only where event times are live.",
                f"query:evenflow_window_close_delay_seconds:p99_5m{QUERY}",
                "s",
                (None, GREEN),
                (10, YELLOW),
                (30, RED),
            ),
            number(
                "alerts",
                "Alerts that fire now.",
                f"count({FIRING}) or 0 * count(evenflow_build_info{QUERY})",
                "short",
                (None, GREEN),
                (1, RED),
            ),
        ],
    )


def _balance() -> Row:
    return (
        "Is it balanced, and is it right?",
        [
            number(
                "imbalance",
                "(max load - mean load) / tuples over the workers, in the last minute.",
                f"query:evenflow_imbalance_ratio:rate1m{QUERY}",
                "percentunit",
                (None, GREEN),
                (0.05, YELLOW),
                (0.1, RED),
            ),
            number(
                "replication factor",
                "Workers that a key was at, on average. 1: no key is split.",
                f"max(evenflow_replication_factor{QUERY})",
                "short",
                (None, GREEN),
                (1.5, YELLOW),
                (3, RED),
            ),
            number(
                "hottest key",
                "Its share of all tuples.",
                'max(evenflow_hot_key_share_ratio{rank="1",' + CHOSEN + "})",
                "percentunit",
            ),
            number(
                "workers of the hottest key",
                "Its fragmentation.",
                'max(evenflow_hot_key_workers{rank="1",' + CHOSEN + "})",
                "short",
            ),
            number(
                "rejected",
                "Share of the records that are late, unreadable or otherwise rejected.",
                f"query:evenflow_rejected_ratio:rate1m{QUERY}",
                "percentunit",
                (None, GREEN),
                (0.001, YELLOW),
                (0.01, RED),
            ),
            number(
                "parts that answer",
                "Targets of Prometheus that do, over those that there are.",
                'avg(up{job=~"evenflow.*"})',
                "percentunit",
                (None, RED),
                (1, GREEN),
            ),
        ],
    )


def _over_time() -> Row:
    return (
        "Over time",
        [
            lines(
                "Rate in, and rate merged",
                "What partitioners route and what combiners take in are equal on average.",
                "short",
                (f"query:evenflow_tuples_routed:rate1m{QUERY}", "routed"),
                ('sum(rate(evenflow_part_rows_total{work="combine",' + CHOSEN + "}[1m]))", "combined"),
                (f"sum(query:evenflow_tuples_rejected:rate1m{QUERY})", "rejected"),
                (f"query:evenflow_records_filtered:rate1m{QUERY}", "filtered"),
            ),
            lines(
                "W and its zones",
                "Blue: under-used, green: stable, red: overload (001, chapter 3.3).",
                "percentunit",
                (f"max by (stage) (evenflow_load_ratio{QUERY})", "{{stage}}"),
                bands=ZONES,
            ),
            lines(
                "Latency",
                "From the input topic to the end of the micro-batch that took the tuple in; and from the"
                " newest tuple of a window to its results.",
                "s",
                (quantile("0.5", "evenflow_end_to_end_latency_seconds", only=_TO_RESULTS), "50 %"),
                (quantile("0.95", "evenflow_end_to_end_latency_seconds", only=_TO_RESULTS), "95 %"),
                (quantile("0.99", "evenflow_end_to_end_latency_seconds", only=_TO_RESULTS), "99 %"),
                (quantile("0.99", "evenflow_result_latency_seconds"), "results, 99 %"),
            ),
            lines(
                "Unread records",
                "By input partition; the ten that lag most.",
                "short",
                (
                    f"topk(10, max by (partition) (evenflow_input_lag_records{QUERY}))",
                    "partition {{partition}}",
                ),
            ),
        ],
    )
