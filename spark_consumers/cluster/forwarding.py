"""Forwarding: the bucket of a key is that of its home, so what is not split is reduced where it was combined.

Worker w is combined by one task, that of its routed partition. Kafka's source prefers an executor for it, by
the number of the partition.
Bucket b gets nearly all its partials from workers w with w mod buckets = b. Spark prefers to run the bucket
on the host where most of its input lies, and then where its state is. So such partials stay on their machine.
Nothing depends on that: a bucket is a function of the key, so the parts of a split key meet in one bucket.
"""

from __future__ import annotations

import logging

from evenflow.settings import Settings
from spark_consumers.cluster.machines import with_children

_LOG = logging.getLogger("evenflow.spark")
_LOCALITY_WAIT = "3s"
"""How long a task waits for a core of the executor that has its input, instead of taking any free core."""


def forwarding_conf(settings: Settings) -> dict[str, str]:
    """The part of Spark's configuration that forwarding needs. Empty where it changes nothing."""
    if settings.partitioner.forwarding == "off" or settings.spark.in_one_process:
        return {}
    return {"spark.locality.wait": _LOCALITY_WAIT}


def obstacles(settings: Settings) -> list[str]:
    """Why partials will travel although forwarding is on, one sentence each.
    Empty if nothing is in the way, or if forwarding is off.
    """
    if settings.partitioner.forwarding == "off":
        return []
    spark, buckets, workers = settings.spark, settings.buckets.number, settings.partitioner.workers
    reasons = []
    if spark.wiring == "split":
        reasons.append("with spark.wiring = 'split' every partial goes through Kafka")
    elif spark.in_one_process:
        reasons.append(f"spark.master is {spark.master}: all tasks run in one process")
    elif with_children(settings):
        reasons.append(f"spark.master is {spark.master}: all executors are on one machine")
    if spark.reduce == "prompt":
        reasons.append("with spark.reduce = 'prompt' partials go to reduce tasks first")
    if workers % buckets and buckets % workers:
        reasons.append(
            f"of {workers} workers (partitioner.workers) and {buckets} buckets (spark.buckets) neither is a"
            " multiple of the other, so a bucket gets the keys of many workers"
        )
    partitions = settings.routed_partitions
    # If the partitions divide the buckets, all partials of a bucket come from one partition.
    crossed = partitions % buckets and buckets % partitions and buckets % workers
    if settings.workers_per_partition > 1 and crossed:
        reasons.append(
            f"workers share {partitions} routed partitions (partitioner.routed_partitions), and of these and"
            f" {buckets} buckets (spark.buckets) neither is a multiple of the other, so a partition has keys"
            " of many buckets"
        )
    return reasons


def warn_of_travel(settings: Settings) -> None:
    """Log the `obstacles`, if there are any, in one warning."""
    if reasons := obstacles(settings):
        _LOG.warning(
            "partitioner.forwarding is on, and brings little or nothing here: %s. Results are the same",
            "; ".join(reasons),
        )
