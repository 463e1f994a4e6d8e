"""The lines of a planned pipeline: for `evenflow.toml`, and for an overlay of Kubernetes."""

from __future__ import annotations

import math

from evenflow.scale.sizes import Sizes

_MIB, _GIB = 2**20, 2**30
_FIRST_TRANSACTION = 0.06
"""Seconds for each routed partition that the first transaction registers:
a minute for 1,000 on a busy broker.
"""
_DEFAULT_TIMEOUT = 10.0
_BLOCK_WORK = 1.0
_CONTROLLERS, _VERIFY = (3, 0.5, 1.0, 0.5), (1, 0.5, 4.0, 20.0)
"""Pods, cores, GiB of memory and GiB of disk of each, in `k8s/overlays/production`: the third controller is
there while one is replaced.
"""
_INSTANCE_DISK, _DRIVER_DISK, _EXECUTOR_DISK = 1.0, 4.0, 16.0
_STREAM_RESERVE = 4
"""Pods of the class `evenflow-stream` that are there while others are replaced or a node is lost."""


def settings_lines(sizes: Sizes) -> str:
    """The tables of `evenflow.toml` that the plan rests on.
    The query, and where Kafka is, are not among them.
    """
    how = sizes.shape
    timeout = max(_DEFAULT_TIMEOUT, how.commit + how.linger + _BLOCK_WORK, _FIRST_TRANSACTION * how.routed)
    tables: dict[str, dict[str, int | str]] = {
        "kafka": {"replication_factor": how.replicas},
        "input": {"partitions": how.inputs},
        "partitioner": {
            "workers": sizes.demand.workers,
            "routed_partitions": how.routed,
            "instances": how.instances,
            "block_tuples": how.block,
            "linger": _duration(how.linger),
            "commit_interval": _duration(how.commit),
            "transaction_timeout": _duration(math.ceil(timeout)),
        },
        "spark": {
            "buckets": how.buckets,
            "batch_interval": _duration(how.batch),
            # Twice what comes, so that a backlog shrinks.
            "max_frames_per_batch": max(400, _two_digits(2 * sizes.frames_per_batch)),
            "combine_tasks": how.tasks,
            "executor_cores": sizes.demand.executor_cores,
            "partitions_per_slot": sizes.partitions_per_slot,
            "executor_memory": _memory(sizes.memory.executor_heap, "m"),
            "driver_memory": _memory(sizes.memory.driver_heap, "m"),
        },
        "spark.conf": {
            '"spark.executor.memoryOverhead"': _memory(sizes.memory.executor_overhead, "m"),
        },
    }
    return "\n\n".join(
        f"[{table}]\n" + "\n".join(f"{name} = {_toml(value)}" for name, value in fields.items())
        for table, fields in tables.items()
    )


def overlay_lines(sizes: Sizes) -> str:
    """Patches for an overlay of Kubernetes: requests and limits of partitioners and drivers, the brokers, and
    what all pods of the namespace may take together.

    How many partitioners run is the controller's to say, so it stands in the settings
    (`control.replicas_min`).
    """
    memory, how = sizes.memory, sizes.shape
    driver = _memory(memory.driver_heap + _GIB, "Mi")
    parts = [
        _workload("evenflow-partitioner", "partitioner", "1", _memory(memory.instance, "Mi")),
        _workload("evenflow-combiner", "driver", "1", driver),
        _workload("evenflow-reducer", "driver", "1", driver),
    ]
    broker = _memory(8 * _GIB + math.ceil(memory.page_cache / _GIB) * _GIB, "Mi")
    pool = (
        "# kafka/kafka.yaml, KafkaNodePool brokers\n"
        "spec:\n"
        f"  replicas: {how.brokers}\n"
        "  resources:\n"
        f'    requests: {{cpu: "{how.broker_cores}", memory: {broker}}}\n'
        f"    limits: {{memory: {broker}}}"
    )
    settings = (
        "# evenflow.toml of the overlay, besides the lines above\n"
        "# [spark.conf]\n"
        f'# "spark.kubernetes.executor.request.cores" = "{sizes.demand.executor_cores}"\n'
        "# [control]\n"
        f"# replicas_min = {how.instances}"
    )
    return "\n\n".join(("# parts.yaml\n" + "\n---\n".join(parts), pool, quota_lines(sizes), settings))


def quota_lines(sizes: Sizes) -> str:
    """Patches of `limits.yaml`: twice what the pods need, since the executors of a driver that is replaced
    may still be there beside those of its successor. `overlays/production` has `wiring = "split"`, so the
    executors of the plan are counted for each of its two applications.
    """
    memory, instances = sizes.memory, sizes.shape.instances
    pods = (
        (instances, 1.0, memory.instance / _GIB, _INSTANCE_DISK),
        (2, 1.0, memory.driver_heap / _GIB + 1, _DRIVER_DISK),
        (
            2 * sizes.executors,
            float(sizes.demand.executor_cores),
            (memory.executor_heap + memory.executor_overhead) / _GIB,
            _EXECUTOR_DISK,
        ),
        _CONTROLLERS,
        _VERIFY,
    )
    cores, room, disk = (_two_digits(2 * sum(pod[0] * pod[measure] for pod in pods)) for measure in (1, 2, 3))
    return (
        "# limits.yaml: these values in place of those that stand there\n"
        "apiVersion: v1\n"
        "kind: ResourceQuota\n"
        "metadata: {name: evenflow}\n"
        "spec:\n"
        "  hard:\n"
        f'    pods: "{2 * sum(pod[0] for pod in pods)}"\n'
        f'    requests.cpu: "{cores}"\n'
        f"    limits.memory: {room}Gi\n"
        f"    limits.ephemeral-storage: {disk}Gi\n"
        "---\n"
        "apiVersion: v1\n"
        "kind: ResourceQuota\n"
        "metadata: {name: evenflow-stream}\n"
        f'spec: {{hard: {{pods: "{instances + 2 + 2 + _STREAM_RESERVE}"}}}}'
    )


def _workload(name: str, container: str, cpu: str, memory: str) -> str:
    return (
        "apiVersion: apps/v1\n"
        "kind: StatefulSet\n"
        f"metadata: {{name: {name}}}\n"
        "spec:\n"
        "  template:\n"
        "    spec:\n"
        "      containers:\n"
        f"        - name: {container}\n"
        f'          resources: {{requests: {{cpu: "{cpu}", memory: {memory}}}, limits: {{memory: {memory}}}}}'
    )


def _toml(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f'"{value}"'


def _duration(seconds: float) -> str:
    milliseconds = round(1000 * seconds)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def _memory(size: float, unit: str) -> str:
    return f"{math.ceil(size / _MIB)}{unit}"


def _two_digits(number: float) -> int:
    digit = 10 ** max(0, math.floor(math.log10(max(1.0, number))) - 1)
    return math.ceil(number / digit) * digit
