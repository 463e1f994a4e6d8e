"""Which worker is hot, which key is, and what does the split cost?"""

from __future__ import annotations

from typing import Any

from monitoring.grafana.panels import GREEN, INSTANCES, QUERY, RED, YELLOW, board, heat, lines


def build() -> Any:
    """The dashboard."""
    return board(
        "skew",
        "evenflow: skew",
        "Which worker is hot, which key is, and what does splitting it cost?",
        (
            "Workers",
            [
                heat(
                    "Load of each worker",
                    "Tuples per second by worker.",
                    "short",
                    (f"query_worker:evenflow_worker_tuples:rate1m{QUERY}", "{{worker}}"),
                ),
                lines(
                    "Imbalance against replication",
                    "Less imbalance costs replication: partitioners differ in what they pay for it. Of the last minute, and "
                    "of the newest window of the instance that has most.",
                    "short",
                    (f"query:evenflow_imbalance_ratio:rate1m{QUERY}", "imbalance"),
                    (f"max(evenflow_window_imbalance_ratio{INSTANCES})", "imbalance of a window"),
                    (f"max(evenflow_replication_factor{QUERY}) - 1", "replication factor - 1"),
                ),
                lines(
                    "The fullest worker",
                    "Its load over the mean load.",
                    "short",
                    (f"query:evenflow_worker_over_mean_ratio:rate1m{QUERY}", "fullest over mean"),
                    bands=((None, GREEN), (1.5, YELLOW), (2, RED)),
                ),
            ],
        ),
        (
            "Hot keys, by rank",
            [
                lines(
                    "Share of the hottest keys",
                    "By rank, from a sample; a key has no name here.",
                    "percentunit",
                    (f"max by (rank) (evenflow_hot_key_share_ratio{INSTANCES})", "rank {{rank}}"),
                ),
                lines(
                    "Workers of the hottest keys",
                    "Fragmentation by rank: 1 is a key that is not split.",
                    "short",
                    (f"max by (rank) (evenflow_hot_key_workers{INSTANCES})", "rank {{rank}}"),
                    steady=True,
                ),
                lines(
                    "Keys",
                    "Distinct keys of a period, and those that the partitioner may split; the ten instances with most.",
                    "short",
                    (
                        f"topk(10, max by (instance) (evenflow_distinct_keys{INSTANCES}))",
                        "distinct, {{instance}}",
                    ),
                    (
                        f"topk(10, max by (instance) (evenflow_head_keys{INSTANCES}))",
                        "may be split, {{instance}}",
                    ),
                ),
                lines(
                    "Imbalance by instance",
                    "As an instance measured it in its last period; the ten with most.",
                    "percentunit",
                    (f"topk(10, max by (instance) (evenflow_imbalance_ratio{INSTANCES}))", "{{instance}}"),
                ),
            ],
        ),
    )
