"""The tables of docs/scale.md, made from the kept figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.pages.tables import figure, table
from benchmarks.scale.load import groups_skew
from benchmarks.scale.setups import AS_SET, SETUPS, Setup, bill_of, cores_in
from evenflow.scale.costs import (
    BUDGET,
    Place,
    Side,
    Units,
    broker_partitions,
    broker_traffic,
    by_place,
    cores_of,
    furthest,
    sync_message_bytes,
    terms,
)
from evenflow.scale.law import LAWS
from evenflow.scale.measurements import Measurements, loads_of
from evenflow.scale.runs import factor, runs
from evenflow.scale.shape import RANGE_END, StreamLoad

MOST_MESSAGE = 4_000_000
"""Most bytes of a record in topics that evenflow makes."""

WORKERS = Side(("routed", "tasks", "buckets"), 1, 10_000)
"""Number of workers. There are as many tasks and buckets as workers."""
_LONG_BLOCKS = Side(("linger",), 0.05, 60.0, False, (("block", 1_000_000),))
_COMMIT = Side(("commit",), 0.05, 60.0, False)
_BATCH = Side(("batch",), 0.05, 60.0, False)
_INSTANCES = Side(("instances",), 1, 100)
_FEW_BUCKETS = Side(("buckets",), 1, 1_000)
_TASKS = Side(("tasks",), 1, 1_000, True, (("buckets", 64), ("batch", 5.0)))
ADVICE: dict[tuple[str, Place], tuple[Side, str]] = {
    ("frames", "brokers"): (
        _LONG_BLOCKS,
        "longer `linger` with larger `block_tuples`, fewer instances, or fewer routed partitions",
    ),
    ("frames", "instances"): (_LONG_BLOCKS, "the same"),
    ("frames", "executors"): (_LONG_BLOCKS, "the same"),
    ("punctuation", "brokers"): (
        _INSTANCES,
        "nothing where it rides on frames with tuples, else fewer instances or a longer slide",
    ),
    ("transactions", "brokers"): (_COMMIT, "longer `commit_interval`, fewer instances, or several queries"),
    ("transactions", "instances"): (_COMMIT, "the same"),
    ("tasks", "driver"): (_TASKS, "`combine_tasks`, fewer buckets, longer `batch_interval`"),
    ("micro-batches", "driver"): (_BATCH, "longer `batch_interval`"),
    ("blobs", "executors"): (_TASKS, "the same"),
    ("segments", "executors"): (_FEW_BUCKETS, "fewer buckets, longer `batch_interval`"),
    ("marks in blobs", "executors"): (_FEW_BUCKETS, "the same"),
    ("lanes kept", "executors"): (_FEW_BUCKETS, "the same, or several queries"),
    ("telemetry", "controller"): (_INSTANCES, "longer `commit_interval`"),
    ("decisions", "controller"): (_INSTANCES, "-"),
    ("plans", "instances"): (_INSTANCES, "-"),
    ("peers' progress", "instances"): (_INSTANCES, "-"),
    ("snapshots", "instances"): (_INSTANCES, "-"),
    ("sync", "table reducer"): (
        _INSTANCES,
        "nothing with other partitioners: only `dalton-cooperative` exchanges tables",
    ),
}
"""For each term that could break: the setting that moves the term, and what to do, in words."""


def units_table(measurements: Measurements) -> str:
    """Each unit cost in microseconds, or in bytes if its name ends so."""
    rows = []
    for name, value in measurements.units.rounded().items():
        shown = f"{value:,.0f} bytes" if name.endswith("_bytes") else _microseconds(value)
        rows.append((f"`{name}`", shown, WORDS[name]))
    return table(("unit", "microseconds of CPU", "what"), rows)


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f}" if seconds >= 1e-4 else f"{1e6 * seconds:.2g}"


def routing_table(measurements: Measurements) -> str:
    """Imbalance and replication of each partitioner by law, with 1 and with 100 instances."""
    names = list(dict.fromkeys(row["partitioner"] for row in measurements.routing))
    routes = {(row["law"], row["partitioner"], row["instances"]): row for row in measurements.routing}
    rows = []
    for law in LAWS:
        for instances in (1, 100):
            cells = [
                f"{1 + routes[law.name, name, instances]['imbalance']:.2f} /"
                f" {routes[law.name, name, instances]['ksr']:.3f}"
                for name in names
            ]
            rows.append((law.name, instances, *cells))
    return table(("law", "instances", *names), rows)


def loads_table(measurements: Measurements) -> str:
    """The keys of each law at 10 M tuples/s."""
    loads = loads_of(measurements)
    rows = [
        (
            law.name,
            f"{law.zipf:g}",
            f"{law.keys:,}",
            law.like,
            f"{100 * loads[law.name].top:.2g} %",
            loads[law.name].hot,
            f"{loads[law.name].slide_keys:,.0f}",
            f"{groups_skew(law, 10):.2f}",
        )
        for law in LAWS
    ]
    head = (
        "law",
        "Zipf",
        "keys",
        "fitted to",
        "first key",
        "hot keys",
        "keys in a slide",
        "fullest of ten queries",
    )
    return table(head, rows)


def bill_table(measurements: Measurements, law: str) -> str:
    """Cores of each term in each setup. Below them the cores that each place needs, beside the cores that
    it has.
    """
    load = loads_of(measurements)[law]
    bills = {name: bill_of(setup, load, measurements.units) for name, setup in SETUPS.items()}
    keys = [(term.topic, term.place) for term in bills["as set"]]
    rows = []
    for key in keys:
        cells = [
            next(term.cores for term in bill if (term.topic, term.place) == key) for bill in bills.values()
        ]
        rows.append((key[0], key[1], *map(figure, cells)))
    for place in cores_of(AS_SET):
        needed = [by_place(bill).get(place, 0.0) for bill in bills.values()]
        if any(needed):
            has = [cores_in(setup)[place] for setup in SETUPS.values()]
            written = [f"**{figure(cores)}** of {most:,.0f}" for cores, most in zip(needed, has, strict=True)]
            rows.append(("**all**", place, *written))
    return table(("term", "where", *SETUPS), rows)


def breaks_table(measurements: Measurements, law: str) -> str:
    """Of each term: its cores in each setup, where it leaves its budget, and what to do."""
    load, units = loads_of(measurements)[law], measurements.units
    bills = {name: bill_of(setup, load, units, cooperative=True) for name, setup in SETUPS.items()}
    rows = []
    for (topic, place), (side, words) in ADVICE.items():
        cells = []
        for name, bill in bills.items():
            term = next(term for term in bill if (term.topic, term.place) == (topic, place))
            share = 100 * term.cores / cores_in(SETUPS[name])[place]
            shown = f"{figure(term.cores)} ({figure(share)} %)"
            cells.append(f"**{shown}**" if share > 100 * BUDGET else shown)
        most = furthest(AS_SET, load, units, topic, place, WORKERS)
        rows.append((topic, place, *cells, _most(most), _furthest(load, units, topic, place, side), words))
    return table(
        ("term", "where", *SETUPS, "workers in budget, as set", "or, as set but for", "what to do"), rows
    )


def _most(workers: float | None) -> str:
    if workers is None:
        return "none"
    return "over 10,000" if workers == WORKERS.high else f"{workers:,.0f}"


def _furthest(load: StreamLoad, units: Units, topic: str, place: Place, side: Side) -> str:
    limit = furthest(AS_SET, load, units, topic, place, side)
    (name,) = side.fields
    conditions = "".join(f", {field} {value:,.0f}" for field, value in side.fixed)
    if limit is None:
        return f"no {name} does{conditions}"
    # At the end of the range the term is within its budget everywhere.
    if limit == (side.high if side.whole else side.low):
        return f"any {name}{conditions}"
    return f"{name} " + (f"{limit:,.0f}" if side.whole else f"{limit:.2g} s") + conditions


def transactions_table(measurements: Measurements) -> str:
    """The rows that the unit costs of transactions were fitted to, in milliseconds per transaction."""
    rows = [
        (
            f"{row['partitions']:,.0f}",
            f"{row['frames_a_partition']:.0f}",
            *(f"{1000 * row[name]:.1f}" for name in ("seconds", "broker_cpu", "client_cpu")),
        )
        for row in measurements.transactions
    ]
    head = ("partitions", "frames to each", "ms", "ms of CPU, broker", "ms of CPU, client")
    return table(head, rows)


def dominant_table(measurements: Measurements, law: str) -> str:
    """The dearest term besides the work, by workers and rate.

    The rhythm is that of a small pipeline, with an instance for each 100,000 tuples/s.
    """
    rates = (1e5, 1e6, 1e7)
    rows = []
    for workers in (10, 64, 256, 1_000):
        cells = []
        for rate in rates:
            shape = replace(WORKERS.variant(AS_SET, workers), rate=rate, instances=round(rate / 1e5))
            load = loads_of(measurements, rate=rate)[law]
            work = sum(term.cores for term in terms(shape, load, measurements.units) if term.work)
            most = max(
                (term for term in terms(shape, load, measurements.units) if not term.work),
                key=lambda term: term.cores,
            )
            cells.append(f"{most.topic}, {most.place}: {figure(most.cores)} (work {figure(work)})")
        rows.append((workers, *cells))
    return table(("workers", *(f"{rate:,.0f} tuples/s" for rate in rates)), rows)


def runs_table(measurements: Measurements) -> str:
    """Every measured run beside the model, and how far the model is off."""
    compared = runs(measurements)
    rows: list[tuple[object, ...]] = [
        (
            run.setting + (" (fitted)" if run.fitted else ""),
            run.quantity,
            f"{run.measured:.3g}",
            f"{run.model:.3g}",
            f"{run.ratio:.2f}",
        )
        for run in compared
    ]
    middle, largest = factor([run for run in compared if not run.fitted])
    rows.append(
        (
            "**off by a factor of, in the middle / at most** (without fitted)",
            "",
            "",
            "",
            f"**{middle:.1f} / {largest:.1f}**",
        )
    )
    return table(("setting", "of what", "measured, CPU s", "model, CPU s", "ratio"), rows)


def limits_table(measurements: Measurements, law: str) -> str:
    """Figures that are counted, not timed: rates, bytes, partitions, delay."""
    load = loads_of(measurements)[law]
    rows: list[tuple[object, ...]] = []

    def row(label: str, allowance: object, value: Callable[[Setup], object]) -> None:
        cells = [value(setup) for setup in SETUPS.values()]
        rows.append((label, *cells, allowance))

    row("frames a second", "", lambda setup: figure(setup.queries * setup.shape.all_frames))
    row("tuples in a frame", "", lambda setup: figure(setup.shape.rate / setup.shape.frames))
    row("transaction markers a second", "", lambda setup: figure(setup.queries * setup.shape.markers))
    row(
        "blobs a micro-batch",
        "",
        lambda setup: figure(setup.queries * setup.shape.tasks * setup.shape.buckets),
    )
    row(
        "MB/s into / out of a broker",
        "1,250 each way (10 Gbit/s)",
        lambda setup: " / ".join(
            figure(setup.queries * side / 1e6)
            for side in broker_traffic(setup.shape, load, measurements.units)
        ),
    )
    row(
        "partition replicas on a broker",
        "4,000 (KIP-578)",
        lambda setup: figure(setup.queries * broker_partitions(setup.shape)),
    )
    row(
        "frames a micro-batch of one query",
        "`max_frames_per_batch` (twice that unless set)",
        lambda setup: figure(setup.shape.all_frames * setup.shape.batch),
    )
    row(
        "a task waits at ends of ranges, s a micro-batch",
        "`batch_interval`",
        lambda setup: figure(setup.shape.routed / setup.shape.tasks * RANGE_END),
    )
    row(
        "MB of lanes in one bucket / in all",
        "",
        lambda setup: " / ".join(
            figure(setup.shape.bucket_lanes * count / 1e6)
            for count in (1, setup.queries * setup.shape.buckets)
        ),
    )
    row(
        "MB a message of `dalton-cooperative`",
        f"{MOST_MESSAGE / 1e6:g} (largest record)",
        lambda setup: figure(sync_message_bytes(setup.shape, load) / 1e6),
    )
    row("a tuple waits at most, s", "", lambda setup: f"{setup.shape.delay:g}")
    return table(("what", *SETUPS, "limit"), rows)


WORDS = {
    "tuple_partitioned": (
        "a tuple through the partitioner's process, with parsing and client (`service-partitioner-evenflow`)"
    ),
    "tuple_brokered": "a tuple and its part of a frame in and out of a broker, one replica",
    "tuple_combined": "a tuple in the combiner's core",
    "partial_merged": "a partial in the reducer's core",
    "row_emitted": "a JSON result row, all processes (`service-results`)",
    "header_packed": "the header of a block",
    "frame_packed": "a frame under a header that is packed already",
    "frame_produced": "a frame in the partitioner's Kafka client",
    "frame_appended": "a frame that is a record batch of its own, at the broker",
    "frame_scanned": "a record in Spark's Kafka source (bare scan, two cores busy: an upper bound)",
    "frame_decoded": "a frame in the combiner whose header is remembered",
    "header_decoded": "a header that is not remembered",
    "transaction_client": "a transaction, partitioner's client",
    "transaction_broker": "a transaction, broker",
    "marker": "a partition in a transaction, broker: registration, marker, index",
    "enlisted": "a partition in a transaction, partitioner's client",
    "range": "a routed partition in a micro-batch of the combiner, a frame that tells included",
    "blob": "a blob of one segment, packed, read and merged",
    "segment": "a segment in a blob, packed, read and merged",
    "mark": "a mark of one input partition in a blob",
    "lane": "a lane told in a blob",
    "bucket": "a bucket in a micro-batch without tuples",
    "lane_state": "a lane that a bucket keeps, a micro-batch",
    "task": "a task of Spark that does nothing, JVM (driver and executor in one: an upper bound)",
    "micro_batch": "a micro-batch of Spark by itself, JVM (driver and executor in one: an upper bound)",
    "telemetry_written": "a partitioner's telemetry record with the loads of 1,000 workers",
    "telemetry_read": "a partitioner's telemetry record read, without the loads",
    "load_read": "a worker's load in a telemetry record, read",
    "judged": "an observation judged and exported (policy `fixed`)",
    "plan_read": "a plan read by one reader",
    "value_sent": "a value in a message of `dalton-cooperative`, written",
    "value_read": "a value in such a message, read",
    "value_merged": "a value in such a message, merged into the common table",
    "snapshot": "a snapshot of an instance's learned state at 1,000 workers",
    "peer_read": "the progress of one input partition as another instance reads it",
    "frame_bytes": "a frame without its rows",
    "snapshot_bytes": "a snapshot",
}
"""What each unit is, in words."""
