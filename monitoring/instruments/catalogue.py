"""Every metric that evenflow exports.

Labels are bounded: no label holds a key, or any other value of a tuple. All metrics have the label `query`.
Names follow Prometheus: base units, and `_total` for counters. A counter starts at 0 with its process. Event
times are Unix timestamps in seconds. So `time() - x` is a lag, which means something only if event times are
live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric. Making one does not register it: use `_counter`, `_gauge` or `_histogram`."""

    name: str
    """Without `_total`, which counters get."""
    kind: Kind
    """Type of the metric in Prometheus."""
    help: str
    """The meaning, as Prometheus and docs/metrics.md show it."""
    labels: tuple[str, ...] = ()
    """Names of the labels besides `query`, which every metric has."""
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's ranges. Empty for other kinds."""

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series under which Prometheus stores the metric."""
        match self.kind:
            case "counter":
                return (f"{self.name}_total",)
            case "histogram":
                return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")
            case "gauge":
                return (self.name,)


_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SLOW = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0)
METRICS: dict[str, Metric] = {}


def _metric(name: str, kind: Kind, text: str, *labels: str, bounds: tuple[float, ...] = ()) -> Metric:
    METRICS[name] = Metric(name=name, kind=kind, help=text, labels=labels, bounds=bounds)
    return METRICS[name]


def _counter(name: str, text: str, *labels: str) -> Metric:
    return _metric(name, "counter", text, *labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return _metric(name, "gauge", text, *labels)


def _histogram(name: str, text: str, *labels: str, bounds: tuple[float, ...]) -> Metric:
    return _metric(name, "histogram", text, *labels, bounds=bounds)


# ---- all parts

BUILD = _gauge("evenflow_build_info", "Always 1; labels say what runs.", "part", "version", "python")
CERTIFICATE_END = _gauge(
    "evenflow_certificate_end_timestamp_seconds",
    "When the first certificate ends of those in a file that a setting names, as"
    " the file was when this process started. That of the pages: as it is now.",
    "setting",
)
PLAN_EPOCH = _gauge("evenflow_plan_epoch", "Epoch of the plan in force, 0 for none.", "part")

# ---- a partitioner instance

READ = _counter("evenflow_records_read", "Records that were read: routed, rejected or filtered.")
FILTERED = _counter(
    "evenflow_records_filtered",
    "Records in time that become no tuple: `query.where` keeps nothing of them, or"
    " `query.explode` finds nothing in them.",
)
ROUTED = _counter("evenflow_tuples_routed", "Tuples that were given a worker.")
REJECTED = _counter(
    "evenflow_tuples_rejected", "Records sent unchanged to the rejected topic, by reason.", "reason"
)
BLOCK_SECONDS = _histogram("evenflow_block_seconds", "Time to parse, route and frame a block.", bounds=_FAST)
COMMIT_SECONDS = _histogram("evenflow_commit_seconds", "Time to commit a transaction.", bounds=_FAST)
BUSY_SECONDS = _counter("evenflow_busy_seconds", "Time spent on blocks: parse, route, frame and write.")
REBALANCES = _counter("evenflow_rebalances", "Assignments of input partitions.")
READING = _gauge(
    "evenflow_reading_from_queues",
    "1 if records come from queues without an object of Python each, 0 if through consume(), which takes"
    " twice as much CPU time: because partitioner.reading says so, or because queues"
    " were not proven here (the log says).",
)
BLOCK_TUPLES = _gauge("evenflow_block_tuples", "Most tuples of a block, as set or chosen.")
LINGER = _gauge(
    "evenflow_linger_seconds",
    "How long a block waits to fill, as set or chosen (docs/operations/changing-settings.md#rhythm).",
)
COMMIT_INTERVAL = _gauge("evenflow_commit_interval_seconds", "Length of a transaction, as set or chosen.")
ROUTED_PARTITIONS = _gauge(
    "evenflow_routed_partitions", "Partitions of the routed topic, as set or chosen; workers share them."
)
PARTITIONS = _gauge("evenflow_input_partitions_owned", "Input partitions that this instance reads.")
INPUT_LAG = _gauge("evenflow_input_lag_records", "Records of an input partition not yet read.", "partition")
WATERMARK = _gauge(
    "evenflow_input_watermark_timestamp_seconds",
    "Watermark of an input partition, as an event time; none before its first tuple and after its end.",
    "partition",
)
ASLEEP = _gauge(
    "evenflow_input_idle", "1 for an input partition without data that no window waits for.", "partition"
)
WORKER_TUPLES = _counter("evenflow_worker_tuples", "Tuples that a worker was given.", "worker")
WORKER_COST = _counter(
    "evenflow_worker_cost",
    "Load of a worker: sum of the costs of the tuples that it was given. Without"
    " `partitioner.cost` each tuple costs 1.",
    "worker",
)
COSTS_OUT_OF_RANGE = _counter(
    "evenflow_costs_out_of_range",
    "Tuples whose `partitioner.cost` is out of range: below 1 or no number (they count as 1), or above"
    " 1,000,000 (they count as that).",
    "reason",
)
IMBALANCE = _gauge(
    "evenflow_imbalance_ratio", "(max load - mean load) / all load over the workers, of the last period."
)
WINDOW_IMBALANCE = _gauge(
    "evenflow_window_imbalance_ratio",
    "(max load - mean load) / all load over the workers, of the newest event-time window that the watermark"
    " of this instance has passed, as far as it routed it.",
)
DISTINCT_KEYS = _gauge("evenflow_distinct_keys", "About how many distinct keys the last period had.")
HEAD_KEYS = _gauge("evenflow_head_keys", "Keys that the partitioner may split now.")
HOT_KEY_SHARE = _gauge(
    "evenflow_hot_key_share_ratio", "Share of the key of this rank in the tuples of the last period.", "rank"
)
HOT_KEY_WORKERS = _gauge(
    "evenflow_hot_key_workers", "Fragmentation of the key of this rank: workers that got it.", "rank"
)
SNAPSHOT = _gauge("evenflow_snapshot_timestamp_seconds", "When learned state was last saved or restored.")
LEARNING = _gauge(
    "evenflow_learning_begin_timestamp_seconds",
    "When this process began to learn, with saved state or without; none"
    " for a partitioner that learns nothing.",
)
SNAPSHOT_INTERVAL = _gauge(
    "evenflow_snapshot_interval_seconds", "How often learned state is to be saved; none likewise."
)
WORKERS = _gauge("evenflow_workers", "p: workers in use by the plan in force.")
PLANS_IGNORED = _counter(
    "evenflow_plans_ignored", "Records of the plan topic that are no plan of this query."
)
EXCHANGE_ELECTED = _gauge(
    "evenflow_exchange_elected",
    "1 for the instance that makes the tables of the exchange; none where instances tell each other nothing.",
)
EXCHANGE_ROUND = _gauge("evenflow_exchange_round", "Round of the newest table that this instance heard.")
EXCHANGE_MEMBERS = _gauge("evenflow_exchange_members", "Instances that the newest table was made of.")
EXCHANGE_TABLE = _gauge(
    "evenflow_exchange_table_timestamp_seconds", "When this instance heard the newest table."
)
EXCHANGE_UNANSWERED = _gauge(
    "evenflow_exchange_unanswered", "Messages that this instance told since it heard a table; 1 is usual."
)
EXCHANGE_BYTES = _counter(
    "evenflow_exchange_bytes", "Bytes that went to the sync topic (out), or came from it (in).", "direction"
)
EXCHANGE_LOST = _counter(
    "evenflow_exchange_lost", "Messages and tables that could not be written, or were too large to be."
)
EXCHANGE_IGNORED = _counter(
    "evenflow_exchange_ignored", "Records of the sync topic that are not used, by reason.", "reason"
)
PARTITIONER_BATCHES = _counter(
    "evenflow_partitioner_batches",
    "Micro-batches with tuples that this instance cut and routed; none where it routes tuple by tuple.",
)
PARTITIONER_BATCHES_SHORT = _counter(
    "evenflow_partitioner_batches_cut_short",
    "Micro-batches that this instance cut before they were whole, by reason.",
    "reason",
)
PARTITIONER_BATCHES_FALLBACK = _counter(
    "evenflow_partitioner_batches_by_fallback",
    "Micro-batches that another rule planned in place of the partitioner's own (`partly`: Prompt).",
)
PARTITIONER_BATCH_INTERVAL = _gauge(
    "evenflow_partitioner_batch_interval_seconds",
    "Length of a micro-batch of this instance, of event time or of processing time (`clock`).",
    "clock",
)
PARTITIONER_HELD_TUPLES = _gauge(
    "evenflow_partitioner_held_tuples", "Tuples that wait for the end of their micro-batch."
)
PARTITIONER_HELD_BYTES = _gauge(
    "evenflow_partitioner_held_bytes", "Memory of what waits for the end of its micro-batch."
)
PARTITIONER_BATCH_TUPLES = _gauge("evenflow_partitioner_batch_tuples", "Tuples of the last micro-batch.")
PARTITIONER_BATCH_KEYS = _gauge("evenflow_partitioner_batch_keys", "Distinct keys of the last micro-batch.")
PARTITIONER_BATCH_SPLIT = _gauge(
    "evenflow_partitioner_batch_split_keys", "Keys of the last micro-batch that lie in several data blocks."
)
PARTITIONER_BATCH_SIZE = _gauge(
    "evenflow_partitioner_batch_size_imbalance",
    "BSI of the last micro-batch, fullest less mean: in tuples over its data blocks (map), in clusters over"
    " the reduce buckets that hashing gives (reduce).",
    "stage",
)
PARTITIONER_BATCH_CARDINALITY = _gauge(
    "evenflow_partitioner_batch_cardinality_imbalance",
    "BCI of the last micro-batch, most less mean: in distinct keys over its data"
    " blocks (map) or reduce buckets (reduce).",
    "stage",
)
PARTITIONER_BATCH_SPLITTING = _gauge(
    "evenflow_partitioner_batch_key_split_ratio",
    "KSR of the last micro-batch: fragments of keys over keys; 1 if no key is split.",
    "stage",
)
PARTITIONER_BATCH_INDEX = _gauge(
    "evenflow_partitioner_batch_index", "MPI of the last micro-batch: mean of its BSI, BCI and KSR.", "stage"
)
PARTITIONER_BATCH_TOOK = _gauge(
    "evenflow_partitioner_batch_seconds",
    "From the cut of the last micro-batch until its last frame was handed to Kafka's client.",
)
PARTITIONER_BATCH_LATE = _gauge(
    "evenflow_partitioner_batch_lateness_ratio",
    "How long after the end of its interval the last micro-batch was written, as a share of the interval;"
    " none by event time, and for a batch that was cut short.",
)
PARTITIONER_BATCH_RELEASE = _gauge(
    "evenflow_partitioner_batch_early_release_seconds",
    "How long before the end of its interval the next micro-batch is cut; none by event time.",
)
STILL = _gauge("evenflow_since_progress_seconds", "Time since the data plane last did something.")

# ---- a Spark application

BATCH_SECONDS = _histogram(
    "evenflow_batch_seconds", "Processing time of a micro-batch.", "stage", bounds=_SLOW
)
LOAD = _gauge(
    "evenflow_load_ratio",
    "W of the last micro-batch, or of the present one once it is longer than an interval: processing time"
    " over batch interval; 0 while the stage waits for input.",
    "stage",
)
BATCH_RUNNING = _gauge(
    "evenflow_batch_running_seconds",
    "For how long the present micro-batch runs, 0 while the stage waits; known"
    " once it has finished none for a while.",
    "stage",
)
BATCH_INTERVAL = _gauge(
    "evenflow_batch_interval_seconds", "Batch interval that W is measured against.", "stage"
)
FRAMES_PER_BATCH = _gauge(
    "evenflow_max_frames_per_batch",
    "Most frames, or blobs, that a micro-batch reads, as set or chosen"
    " (docs/operations/changing-settings.md#rhythm).",
    "stage",
)
COMBINE_TASKS = _gauge(
    "evenflow_combine_tasks", "Most tasks of the combiner in a micro-batch, as set or chosen.", "stage"
)
BUCKETS = _gauge("evenflow_buckets", "Buckets that reduce, as set or chosen.", "stage")
BATCH_ROWS = _counter("evenflow_batch_rows", "Records that micro-batches read: frames, or blobs.", "stage")
BACKLOG = _gauge(
    "evenflow_backlog_records", "Records that lay behind the last micro-batch when it was planned.", "stage"
)
PART_ROWS = _counter(
    "evenflow_part_rows", "Tuples that combiners took in, or partial rows that reducers did.", "work"
)
PART_SECONDS = _counter("evenflow_part_seconds", "Time of all tasks that combined, or reduced.", "work")
PART_KEYS = _gauge("evenflow_part_keys", "About how many distinct keys the last micro-batch had.", "work")
REPEATED = _counter(
    "evenflow_duplicates_dropped",
    "Partial rows that had been merged before and changed nothing: repeated work.",
)
REPLICATION = _gauge(
    "evenflow_replication_factor",
    "Routed partitions a key was at, on average, in the last micro-batch; 1 is no split.",
)
LATENCY = _histogram(
    "evenflow_end_to_end_latency_seconds",
    "From a tuple's record in the input topic to the end of this stage's micro-batch with it; an upper bound"
    " where record timestamps grow.",
    "stage",
    bounds=_SLOW,
)
RESULT_LATENCY = _histogram(
    "evenflow_result_latency_seconds",
    "From the newest tuple of a window, in the input topic, to the end of the micro-batch that emitted it, by"
    " result row; an upper bound. Unlike the delay of a window it needs no live event times.",
    bounds=_SLOW,
)
STATE_BYTES = _gauge("evenflow_state_bytes", "Memory of the reducer's state stores.")
TASK_SPREAD = _gauge("evenflow_task_spread_ratio", "Longest over mean task of the last micro-batch.", "work")
RESULT_ROWS = _counter("evenflow_result_rows", "Result rows emitted.")
WINDOWS_CLOSED = _counter("evenflow_windows_closed", "Windows emitted.")
UNFIT = _counter(
    "evenflow_unfit_values", "Result values that are null because they do not fit their type or their room."
)
OPEN_PANES = _gauge(
    "evenflow_open_panes", "Panes from the first to the last that has tuples and is not closed."
)
OPEN_WINDOWS = _gauge("evenflow_open_windows", "Windows that have tuples and are not closed.")
MERGED = _gauge(
    "evenflow_merged_mark_timestamp_seconds", "Event time up to which all input is in the results' state."
)
WINDOW_END = _gauge("evenflow_window_end_timestamp_seconds", "End of the newest window among the results.")
CLOSE_DELAY = _histogram(
    "evenflow_window_close_delay_seconds",
    "From when the newest window of a micro-batch was due (its end, out_of_orderness, and allowed_lateness"
    " unless late is 'update') to its results.",
    bounds=_SLOW,
)
EXECUTORS = _gauge("evenflow_executors", "Executors in use, of an application that has a cluster manager.")
REDUCERS = _gauge("evenflow_reducers", "r: reduce buckets at once, by the plan in force or the settings.")
SLOTS = _gauge("evenflow_slots", "Tasks that can run at once.")

# ---- the controller

DECISIONS = _counter(
    "evenflow_decisions",
    "Judged observations, by outcome (out, in, both ways: mixed, none, or held) and by what it rests on.",
    "outcome",
    "cause",
)
ZONE = _gauge("evenflow_zone", "1 under-used, 2 stable, 3 overload.")
OBSERVED_LOAD = _gauge("evenflow_observed_load_ratio", "W that the last decision rests on.")
PLANNED_WORKERS = _gauge("evenflow_planned_workers", "p when the last decision was taken.")
PLANNED_REDUCERS = _gauge("evenflow_planned_reducers", "r when the last decision was taken.")
WANTED_WORKERS = _gauge("evenflow_wanted_workers", "p that the policy asks for.")
WANTED_REDUCERS = _gauge("evenflow_wanted_reducers", "r that the policy asks for.")
DECIDED = _gauge("evenflow_decision_timestamp_seconds", "When the last decision was taken.")
HEARD = _counter("evenflow_telemetry_records", "Telemetry records of this query's parts.")
IGNORED = _counter(
    "evenflow_telemetry_ignored", "Records of telemetry and plans that count for nothing.", "kind"
)
PATIENCE = _gauge(
    "evenflow_patience_seconds", "Time after which the controller takes the last word of a part for too old."
)
SILENCE = _gauge("evenflow_part_silence_seconds", "Time since a part of the pipeline was last heard.", "part")
