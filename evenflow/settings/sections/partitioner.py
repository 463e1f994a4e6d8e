"""The partitioner service."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from evenflow.limits import MOST_WORKERS
from evenflow.settings.durations import Duration
from evenflow.settings.sections.choices import CHOICES, checked_apart
from evenflow.settings.sections.rhythm import BLOCK_WORK, shortest_transaction
from evenflow.settings.sections.section import Section


class PartitionerSettings(Section):
    """The partitioner service."""

    name: str = Field(
        default="evenflow",
        description=(
            "Registered partitioner (`evenflow partitioners`), or a class of your own as module:Class "
            "(docs/your-own.md). Options may stand behind it (pkg:d=3) or in options, not in both."
        ),
    )
    options: dict[str, int | float | bool | str | list[int | float]] = Field(
        default_factory=dict,
        description="Options of the partitioner. A window and slide that are not set are the query's.",
    )
    workers: int = Field(default=8, ge=1, description="Workers in use (p), at most max_workers.")
    max_workers: int | None = Field(
        default=None,
        ge=1,
        le=MOST_WORKERS,
        description=(
            "Largest number of workers that a plan may ask for. Fixed for the life of a query. None:"
            " routed_partitions, or workers if that is more."
        ),
    )
    routed_partitions: int | None = Field(
        default=None,
        ge=1,
        le=MOST_WORKERS,
        description=(
            "Partitions of the routed topic. Worker w has partition w mod routed_partitions, so several"
            " workers share a partition if there are fewer partitions than workers"
            " (docs/operations/workers-and-partitions.md). Combining uses at most one core for each. Fixed"
            " for the life of a query. None: one for each of max_workers, and from 129 workers on 43 to 64,"
            " which cost far less."
        ),
    )
    cost: str | None = Field(
        default=None,
        description=(
            "How much work a tuple is for its worker: a column of numbers, or a SQL expression as in"
            " 'length(text) / 100' or 'size(items)', the number of elements of a list (docs/expressions.md)."
            " It is rounded to a whole number from 1 to 1,000,000. Only some partitioners weigh tuples. This"
            " affects the balance, never the results, and may change at any restart."
            " None: each tuple costs 1."
        ),
    )
    speeds: Literal["settings", "measured"] = Field(
        default="settings",
        description=(
            "How fast the workers are. settings: as an option of the partitioner says (evenflow's weights),"
            " or all alike. measured: Spark measures how long each worker's tuples take to combine, and"
            " workers that take longer get less, whether their machine is slow or their tuples are much work."
            " Only 'evenflow' can be told. This affects the balance, never the results."
        ),
    )
    seed: int = Field(
        default=7,
        ge=0,
        description=(
            "Seed of the hash family and of every random choice. With forwarding it is fixed for the life of"
            " a query."
        ),
    )
    instance: str = Field(
        default="0",
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description=(
            "Identity of this instance: its transactional.id, snapshots and status page. It must be unique"
            " within the query. It should end in a number of its own (partitioner-3)."
        ),
    )
    instances: int = Field(
        default=1,
        ge=1,
        le=256,
        description=(
            "How many instances share the input. With more than one, partitioners that remember where keys"
            " live agree on each key's home by hash instead. This affects the balance, never the results."
        ),
    )
    exchange: Literal["on", "off"] = Field(
        default="on",
        description=(
            "Whether instances tell each other what they know, if there are several and their partitioner"
            " can. They do so over the topic '<query name>.sync'. This"
            " affects the balance, never the results."
        ),
    )
    forwarding: Literal["on", "off"] = Field(
        default="off",
        description=(
            "on: the reduce bucket of a key is that of its home, so partials of keys that are not split stay"
            " on the machine of their worker. off: buckets divide the keys by a hash of their own. It is for"
            " the fused wiring on several executors, where workers are a multiple of buckets and buckets of"
            " executors, and for partitioners whose homes are F_1, as those of hashing, dalton, and evenflow"
            " with several instances. Fixed for the life of a query, and the seed with it. Results are the"
            " same."
        ),
    )
    exchange_patience: Duration = Field(
        default=2_000,
        gt=0,
        description=(
            "How long (processing time) a round of the exchange waits for instances that have not told yet,"
            " from its first message on. An instance tells between two blocks, each of up to a second. So an"
            " instance that is at work tells within the default. Nobody stands still meanwhile."
        ),
    )
    block_tuples: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description=(
            "Most records that are read, routed and framed at once. None:"
            " 200 for each worker, at least 50000."
        ),
    )
    reading: Literal["queues", "consume"] = Field(
        default="queues",
        description=(
            "How records come from Kafka's client. queues: into one buffer, without an object of Python for"
            " each record. consume: through confluent-kafka's `consume`, which takes twice as much CPU time a"
            " tuple. Where queues were not proven for the installed confluent-kafka, the service reads by"
            " consume and says so. This affects the speed, never the results."
        ),
    )
    linger: Duration | None = Field(
        default=None,
        description=(
            "How long a block waits to fill while records are scarce. It bounds the frames per second, and"
            " the time until a stop is noticed. None: chosen by the rate and the number of workers (50ms to"
            " 1s), such that frames have 200 tuples or are few, within max_delay. The log and"
            " the status page say what was chosen."
        ),
    )
    max_delay: Duration = Field(
        default=2_000,
        ge=20,
        description=(
            "How long a tuple may wait in a block and in a transaction together, where linger or"
            " commit_interval is chosen. What is set counts as it is. This affects the delay and the load of"
            " the brokers, never the results."
        ),
    )
    batch_interval: Duration | None = Field(
        default=None,
        ge=10,
        description=(
            "Length of a micro-batch, for partitioners that decide on whole batches (prompt, partly,"
            " time-based, dalton-batch). With a length, any other partitioner routes in batches too. None:"
            " the query's slide for the former, no batches for the latter."
        ),
    )
    batch_clock: Literal["event", "processing"] = Field(
        default="event",
        description=(
            "What ends a micro-batch: event time, once every input partition of the instance has passed an"
            " interval (batch_interval divides the slide), or processing time. This"
            " affects the balance, never the results."
        ),
    )
    batch_release: Literal["early", "off"] = Field(
        default="early",
        description=(
            "With batch_clock = 'processing': early cuts a batch before its interval is over, by as long as"
            " the slowest of the last 8 batches took, at most half of the interval."
            " off: cut at the end of the interval."
        ),
    )
    batch_bytes: int = Field(
        default=128_000_000,
        ge=1_000_000,
        le=2_000_000_000,
        description=(
            "Bytes of tuples that may wait for the end of their micro-batch. A batch is cut short when there"
            " are more. The process needs about four times as much while it frames a batch."
        ),
    )
    commit_interval: Duration | None = Field(
        default=None,
        description=(
            "Length of a transaction (processing time). Up to one linger and the work of one block are added."
            " None: 500ms, and longer with more than 200 workers, because each commit writes a marker for"
            " every worker, within max_delay."
        ),
    )
    transaction_timeout: Duration = Field(
        default=10_000,
        description=(
            "Longest time for which a crashed instance holds back readers. It must be at least"
            " commit_interval + linger + 1s, or the broker would abort"
            " transactions before they are committed."
        ),
    )
    idle_timeout: Duration | None = Field(
        default=None,
        description=(
            "An input partition with nothing to read for this long stops holding back the others. None: the"
            " others wait for it for ever, which is right for replays. Idle partitions do not follow a step"
            " of more than max_skew: where only one partition has tuples, set max_skew to more than the"
            " longest gap between them."
        ),
    )
    max_skew: Duration | None = Field(
        default=None,
        description=(
            "An input partition that is further than this (event time) ahead of the slowest is not read"
            " until the slowest has caught up. Idle partitions do not follow a larger step of the only"
            " partition with tuples, so no window closes until a second one is as far. None: the window plus"
            " ten slides."
        ),
    )
    frame_bytes: int = Field(
        default=1_000_000,
        ge=1_000,
        le=8_000_000,
        description="Frames and blobs are cut into parts near this size.",
    )
    snapshot_interval: Duration = Field(
        default=30_000, description="How often learnt state is saved, so that a restart continues with it."
    )
    web_host: str = Field(
        default="127.0.0.1", description="Address of the status page and the metrics (`/metrics/`)."
    )
    web_port: int = Field(
        default=0, ge=0, le=65535, description="Port of the status page. 0: a free port, which is logged."
    )

    @model_validator(mode="before")
    @classmethod
    def _options_behind_the_name(cls, values: Any) -> Any:
        return checked_apart(values, CHOICES["partitioner"])

    @model_validator(mode="after")
    def _transactions_end_in_time(self) -> PartitionerSettings:
        # A service asks only after each block whether it is time to commit, so a block may begin just before
        # that time.
        shortest = shortest_transaction(self)
        if shortest > self.transaction_timeout:
            parts = [
                f"{name} ({'chosen' if value is None else f'{value} ms'})"
                for name, value in (("commit_interval", self.commit_interval), ("linger", self.linger))
            ]
            raise ValueError(
                f"{' + '.join(parts)} + {BLOCK_WORK} ms for a block's work, {shortest} ms together, must not"
                f" exceed transaction_timeout ({self.transaction_timeout} ms): a transaction is as long as"
                " that, and the broker would abort each before it is committed. Lower the first two"
            )
        return self

    @model_validator(mode="after")
    def _batches_of_processing_time_have_a_length(self) -> PartitionerSettings:
        if self.batch_clock == "processing" and self.batch_interval is None:
            raise ValueError("batch_clock = 'processing' needs batch_interval, the length of a micro-batch")
        return self
