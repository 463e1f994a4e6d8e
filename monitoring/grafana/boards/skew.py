"""Which worker is hot, which key is, and what does the split cost?"""

from __future__ import annotations

from typing import Any

from monitoring.grafana.panels import GREEN, INSTANCES, QUERY, RED, YELLOW, Row, board, heat, lines


def build() -> Any:
    """The dashboard."""
    return board(
        "skew",
        "evenflow: skew",
        "Which worker is hot, which key is, and what does splitting it cost?",
        _workers(),
        _micro_batches(),
        _exchange(),
        _hot_keys(),
    )


def _workers() -> Row:
    return (
        "Workers",
        [
            heat(
                "Load of each worker",
                "Per second by worker: tuples, or the sum of their costs with partitioner.cost.",
                "short",
                (f"query_worker:evenflow_worker_cost:rate1m{QUERY}", "{{worker}}"),
            ),
            lines(
                "Imbalance against replication",
                "Less imbalance costs replication: partitioners differ in what they pay for it. Of the"
                " last minute, and of the newest window of the instance that has most.",
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
            heat(
                "Tuples of each worker",
                "Per second, whatever they cost.",
                "short",
                (f"sum by (worker) (rate(evenflow_worker_tuples_total{QUERY}[1m]))", "{{worker}}"),
            ),
            lines(
                "Costs out of range",
                "Tuples per second whose partitioner.cost is below 1 or no number, or above 1,000,000.",
                "short",
                (
                    f"sum by (reason) (rate(evenflow_costs_out_of_range_total{QUERY}[1m]))",
                    "{{reason}}",
                ),
            ),
        ],
    )


def _micro_batches() -> Row:
    return (
        "Micro-batches of the partitioner",
        [
            lines(
                "Lateness",
                "Of the last batch: how long after the end of its interval it was written, as a share of"
                " the interval; the ten instances where that is most. By processing time only.",
                "percentunit",
                (
                    f"topk(10, max by (instance) (evenflow_partitioner_batch_lateness_ratio{INSTANCES}))",
                    "{{instance}}",
                ),
                bands=((None, GREEN), (0.05, YELLOW), (0.1, RED)),
            ),
            lines(
                "Time of a batch",
                "From its cut to its last frame, and how early the next one is cut (by processing time),"
                " against its interval; of the slowest instance.",
                "s",
                (f"max(evenflow_partitioner_batch_seconds{INSTANCES})", "from cut to last frame"),
                (f"max(evenflow_partitioner_batch_early_release_seconds{INSTANCES})", "early release"),
                (
                    f"max by (clock) (evenflow_partitioner_batch_interval_seconds{INSTANCES})",
                    "interval ({{clock}} time)",
                ),
            ),
            lines(
                "Batches, and those cut short",
                "Per second, all instances together: all, and by reason those"
                " that were cut before they were whole.",
                "short",
                (f"sum(rate(evenflow_partitioner_batches_total{QUERY}[1m]))", "all"),
                (
                    f"sum by (reason) (rate(evenflow_partitioner_batches_cut_short_total{QUERY}[1m]))",
                    "cut short: {{reason}}",
                ),
                (
                    f"sum(rate(evenflow_partitioner_batches_by_fallback_total{QUERY}[1m]))",
                    "planned by the fallback",
                ),
            ),
            lines(
                "Tuples and keys of a batch",
                "Of the last batch, and what waits for the end of its own; the largest of the instances.",
                "short",
                (f"max(evenflow_partitioner_batch_tuples{INSTANCES})", "tuples"),
                (f"max(evenflow_partitioner_batch_keys{INSTANCES})", "keys"),
                (f"max(evenflow_partitioner_batch_split_keys{INSTANCES})", "split keys"),
                (f"max(evenflow_partitioner_held_tuples{INSTANCES})", "tuples that wait"),
            ),
            lines(
                "Memory of what waits",
                "The ten instances with most. A batch is cut short at partitioner.batch_bytes.",
                "bytes",
                (
                    f"topk(10, max by (instance) (evenflow_partitioner_held_bytes{INSTANCES}))",
                    "{{instance}}",
                ),
            ),
            lines(
                "BSI: how uneven the sizes are",
                "Fullest less mean: data blocks in tuples (map), reduce buckets by hashing in clusters"
                " (reduce). Of the most uneven instance.",
                "short",
                (
                    f"max by (stage) (evenflow_partitioner_batch_size_imbalance{INSTANCES})",
                    "{{stage}}",
                ),
            ),
            lines(
                "BCI: how uneven the keys are",
                "Most less mean, in distinct keys of a data block (map) or a reduce bucket (reduce). Of"
                " the most uneven instance.",
                "short",
                (
                    f"max by (stage) (evenflow_partitioner_batch_cardinality_imbalance{INSTANCES})",
                    "{{stage}}",
                ),
            ),
            lines(
                "KSR and MPI",
                "Fragments of keys over keys (1: no key is split), and the mean of BSI, BCI and KSR. Of"
                " the instance with most.",
                "short",
                (
                    f"max by (stage) (evenflow_partitioner_batch_key_split_ratio{INSTANCES})",
                    "KSR, {{stage}}",
                ),
                (f"max by (stage) (evenflow_partitioner_batch_index{INSTANCES})", "MPI, {{stage}}"),
            ),
        ],
    )


def _exchange() -> Row:
    return (
        "What instances tell each other",
        [
            lines(
                "Age of the newest table",
                "Since an instance heard one; the ten instances where that is longest ago.",
                "s",
                (
                    (
                        "topk(10, time() - max by (instance)"
                        f" (evenflow_exchange_table_timestamp_seconds{INSTANCES}))"
                    ),
                    "{{instance}}",
                ),
            ),
            lines(
                "Messages without a table",
                "That an instance has told since the newest table; the ten instances with most. 1 is usual.",
                "short",
                (
                    f"topk(10, max by (instance) (evenflow_exchange_unanswered{INSTANCES}))",
                    "{{instance}}",
                ),
                bands=((None, GREEN), (3, YELLOW), (6, RED)),
            ),
            lines(
                "Who is in it",
                "Instances that the newest table was made of, and instances"
                " that make tables: one, but for a moment.",
                "short",
                (f"min(evenflow_exchange_members{QUERY})", "members"),
                (f"sum(evenflow_exchange_elected{QUERY})", "elected"),
                steady=True,
            ),
            lines(
                "Rounds",
                "Tables per minute.",
                "short",
                (f"60 * max(deriv(evenflow_exchange_round{QUERY}[5m]))", "per minute"),
            ),
            lines(
                "Sync topic",
                "Bytes per second to it and from it, all instances together.",
                "Bps",
                (f"sum by (direction) (rate(evenflow_exchange_bytes_total{QUERY}[1m]))", "{{direction}}"),
            ),
            lines(
                "Sync records that are not used",
                "Per second, by reason, and those that could not be written.",
                "short",
                (
                    f"sum by (reason) (rate(evenflow_exchange_ignored_total{QUERY}[1m]))",
                    "{{reason}}",
                ),
                (f"sum(rate(evenflow_exchange_lost_total{QUERY}[1m]))", "lost"),
            ),
        ],
    )


def _hot_keys() -> Row:
    return (
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
                "Distinct keys of a period, and those that the partitioner may split;"
                " the ten instances with most.",
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
    )
