"""Where does the time of a micro-batch go?"""

from __future__ import annotations

from typing import Any

from monitoring.grafana.panels import INSTANCES, Row, board, lines, quantile


def build() -> Any:
    """The dashboard."""
    return board(
        "spark",
        "evenflow: Spark stages",
        "Where the time of a micro-batch goes, in combiner and reducer.",
        _micro_batches(),
        _combiner_and_reducer(),
    )


def _micro_batches() -> Row:
    return (
        "Micro-batches",
        [
            lines(
                "Processing time",
                "Mean of the micro-batches by stage, beside the batch interval.",
                "s",
                (
                    f"sum by (stage) (rate(evenflow_batch_seconds_sum{INSTANCES}[1m]))"
                    f" / sum by (stage) (rate(evenflow_batch_seconds_count{INSTANCES}[1m]))",
                    "{{stage}}",
                ),
                (f"max by (stage) (evenflow_batch_interval_seconds{INSTANCES})", "interval of {{stage}}"),
            ),
            lines(
                "Present micro-batch",
                "For how long it runs; 0 while one ends every few seconds, or the stage waits.",
                "s",
                (f"max by (stage) (evenflow_batch_running_seconds{INSTANCES})", "{{stage}}"),
            ),
            lines(
                "Records read",
                "Frames or blobs per second.",
                "short",
                (f"sum by (stage) (rate(evenflow_batch_rows_total{INSTANCES}[1m]))", "{{stage}}"),
            ),
            lines(
                "Backlog",
                "Records behind the last micro-batch when it was planned.",
                "short",
                (f"max by (stage) (evenflow_backlog_records{INSTANCES})", "{{stage}}"),
            ),
        ],
    )


def _combiner_and_reducer() -> Row:
    return (
        "Combiner and reducer",
        [
            lines(
                "Busy tasks",
                "Task seconds per second.",
                "short",
                (f"sum by (work) (rate(evenflow_part_seconds_total{INSTANCES}[1m]))", "{{work}}"),
            ),
            lines(
                "Spread of tasks",
                "Longest over mean task: 1 is even. The longest decides how long a micro-batch takes.",
                "short",
                (f"max by (work) (evenflow_task_spread_ratio{INSTANCES})", "{{work}}"),
            ),
            lines(
                "Rows",
                "Tuples combined, partial rows reduced, result rows.",
                "short",
                (f"sum by (work) (rate(evenflow_part_rows_total{INSTANCES}[1m]))", "{{work}}"),
                (f"sum(rate(evenflow_result_rows_total{INSTANCES}[1m]))", "results"),
            ),
            lines(
                "Distinct keys",
                "Of the last micro-batch.",
                "short",
                (f"max by (work) (evenflow_part_keys{INSTANCES})", "{{work}}"),
            ),
            lines(
                "Windows and panes",
                "Open ones, and windows closed per minute.",
                "short",
                (f"max(evenflow_open_windows{INSTANCES})", "open windows"),
                (f"max(evenflow_open_panes{INSTANCES})", "open panes"),
                (
                    f"60 * sum(rate(evenflow_windows_closed_total{INSTANCES}[1m]))",
                    "windows closed per minute",
                ),
            ),
            lines(
                "State",
                "Memory of the reducer's state stores.",
                "bytes",
                (f"sum(evenflow_state_bytes{INSTANCES})", "state stores"),
                (
                    'sum(process_resident_memory_bytes{job="evenflow-spark",instance=~"$instance"})',
                    "driver's Python",
                ),
            ),
            lines(
                "Delay of windows",
                "From when a window was due to its results.",
                "s",
                (quantile("0.5", "evenflow_window_close_delay_seconds"), "50 %"),
                (quantile("0.99", "evenflow_window_close_delay_seconds"), "99 %"),
            ),
            lines(
                "Event time",
                "How far behind the clock the results' state is. Only where event times are live.",
                "s",
                (f"time() - max(evenflow_merged_mark_timestamp_seconds{INSTANCES})", "merged"),
                (f"time() - max(evenflow_window_end_timestamp_seconds{INSTANCES})", "newest window"),
            ),
        ],
    )
