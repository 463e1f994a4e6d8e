"""The Spark jobs: how they are wired, where they run, and how long and large a micro-batch is."""

from __future__ import annotations

import os
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from evenflow.settings.durations import Duration
from evenflow.settings.places import state_folder, without_password
from evenflow.settings.sections.section import Section

_IN_THE_DRIVER = re.compile(r"local(\[[^\]]*\])?")


Wait = Annotated[float, Field(ge=0, le=1_000_000)]


class SparkSettings(Section):
    """The Spark jobs."""

    wiring: Literal["fused", "split"] = Field(
        default="fused",
        description=(
            "fused: combiner and reducer in one query. split: two queries"
            " with the partials topic between them."
        ),
    )
    master: str = Field(default="local[2]", description="Spark master.")
    buckets: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description=(
            "Reduce buckets, fixed for the life of a query (shuffle partitions). None: one for 16 workers"
            " (partitioner.max_workers), at least 2 and at most 64."
        ),
    )
    reduce: Literal["hash", "prompt"] = Field(
        default="hash",
        description=(
            "How the fused wiring brings partials to their bucket. hash: each by its key, at once. prompt: as"
            " many reduce tasks as there are buckets merge them first, allocated by Prompt's Algorithm 3. It"
            " needs a partitioner that routes in micro-batches, else every key counts as split. Results are"
            " the same, but float sums may differ in their last bits, because the"
            " order differs in which floats are added."
        ),
    )
    batch_interval: Duration = Field(default=1_000, description="Trigger interval of the micro-batches.")
    max_frames_per_batch: int | None = Field(
        default=None,
        ge=1,
        description=(
            "Most frames (offsets) that one micro-batch reads. It bounds the length of a micro-batch that"
            " catches up. None: twice as many as the partitioners' linger and commits can make in a batch"
            " interval, at least 400."
        ),
    )
    checkpoint: Annotated[str, AfterValidator(without_password)] | None = Field(
        default=None,
        description=(
            "Folder (or URI: s3a://bucket/path, hdfs://...) of the checkpoints. It must outlive the process."
            " None: evenflow/checkpoint in $XDG_STATE_HOME, which is ~/.local/state unless set."
        ),
    )
    driver_memory: str = Field(default="2g", description="Heap of the driver.")
    conf: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Raw Spark configuration. It overrides ours."
    )
    reducers: int | None = Field(
        default=None,
        ge=1,
        description="Reduce buckets in use at once (r) until a plan says otherwise. None: all buckets.",
    )
    partitions_per_slot: int = Field(
        default=4,
        ge=1,
        description=(
            "Workers for each core of the executors. On a cluster manager, p / partitions_per_slot cores are"
            " asked for, but no more than there are routed partitions."
        ),
    )
    executor_cores: int = Field(default=1, ge=1, description="Cores of an executor, on a cluster manager.")
    executor_memory: str = Field(default="1g", description="Heap of an executor, on a cluster manager.")
    max_executors: int | None = Field(
        default=None, ge=1, description="Most executors to ask for. None: as many as a plan needs."
    )
    reserve_executors: int = Field(
        default=0,
        ge=0,
        description=(
            "Executors beyond those that a plan needs, within max_executors. They share the work, so a load"
            " that grows finds warm cores. Each costs its cores and its memory all the time. Without effect"
            " where the driver runs all tasks; two applications of the split wiring have one reserve each."
        ),
    )
    combine_tasks: int | None = Field(
        default=None,
        ge=1,
        description=(
            "Most tasks of the combiner in a micro-batch. None: in one process, as many as there are cores,"
            " and twice as many if routed_partitions exceeds workers. On a cluster manager, one for each"
            " routed partition, so that more executors have work. Of more than 64 tasks there is one for each"
            " core that all routed partitions ask for."
        ),
    )
    driver_host: str = Field(
        default="127.0.0.1",
        description=(
            "Address at which executors reach the driver. On several machines,"
            " it must be one that they can reach."
        ),
    )
    driver_bind_address: str = Field(
        default="127.0.0.1", description="Address that the driver listens on. 0.0.0.0: all."
    )
    executor_python: str | None = Field(
        default=None,
        description=(
            "Python of the executors, with evenflow's packages and folders on its path. None: the path of the"
            " driver's own Python, which is right on one machine or in one image."
        ),
    )
    executor_jars: str | None = Field(
        default=None,
        description=(
            "Class path of the executors for what pyspark lacks: Spark's Kafka connector, and S3A if it is"
            " used. None: the driver sends its jars to the executors."
        ),
    )
    preloading_daemon: bool = Field(
        default=True,
        description=(
            "Start Python workers from a process that has imported everything. Needs"
            " spark_consumers on the executors' path."
        ),
    )
    web_host: str = Field(default="127.0.0.1", description="Address of the metrics (`/metrics/`).")
    web_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description=(
            "Port of the metrics. 0: a free port, which is logged. Two"
            " applications on one machine need one each."
        ),
    )
    combine_wait: Wait | tuple[Wait, ...] = Field(
        default=0,
        description=(
            "For experiments: microseconds (at most 1000000) that the combiner waits for each tuple, as if it"
            " were work. A list has those of worker 0, 1, ..., and 0 for further workers,"
            " as if these were slower than others."
        ),
    )

    @model_validator(mode="after")
    def _reduce_tasks_stand_between_two_steps_of_one_query(self) -> SparkSettings:
        if self.reduce == "prompt" and self.wiring == "split":
            raise ValueError(
                "spark.reduce = 'prompt' needs spark.wiring = 'fused': in the split wiring the blobs of a"
                " micro-batch wait in the partials topic, where no step sees all of them together. Leave"
                " spark.reduce at 'hash', or give the query a new name and wiring = 'fused'"
            )
        return self

    @property
    def in_one_process(self) -> bool:
        """Whether the driver itself runs all tasks: there is no cluster manager, and there are no
        executors.
        """
        return _IN_THE_DRIVER.fullmatch(self.master.strip()) is not None

    @property
    def checkpoint_folder(self) -> str:
        """Folder or URI of the checkpoints. The default does not depend on the working directory."""
        if self.checkpoint is not None:
            return self.checkpoint
        return os.path.join(state_folder(), "checkpoint")
