"""A sample of a topic for `evenflow advise`: the newest records of each partition, or the first ones.

The sample of a file is in `evenflow.sources.sample`. Tuples are put in order of event time. That is how a
replay sends them, and how the partitions of a topic look when taken together.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from evenflow.advice import Sample, Strays
from evenflow.errors import ConfigError, ServiceError
from evenflow.numeric.arrays import Bools, Float64s, Int64s
from evenflow.reporting.words import moment
from evenflow.settings import Query, Settings
from evenflow.sources.costs import cost_column
from partitioner_service.fetch.messages import marker_of, timestamp_of
from partitioner_service.reading.parse import Parser
from partitioner_service.reading.registered.schemas import schemas_of
from topics import reader
from topics.admin import describe
from topics.query.input_topic import by_its_rule
from workbench.assist.sample_check.sample import stretch
from workbench.assist.sample_check.strays import strays_by_cause


@dataclass(frozen=True)
class TopicSample:
    """A sample of a topic."""

    sample: Sample
    """The records as partitioners read them."""
    partitions: int
    """How many partitions the topic has."""


def topic_sample(
    settings: Settings,
    *,
    tuples: int,
    first: bool = False,
    progress: Callable[[int], None] = lambda records: None,
    clock: Callable[[], float] = time.time,
) -> TopicSample:
    """The newest (or first) records of the query's input topic, parsed as the partitioner does.

    tuples: about how many records to read. A longer partition gives more of them. first: whether to take the
    first records. progress: called with the number of records read so far. clock: seconds since 1970. Tuples
    whose event time cannot be right are set aside (`workbench.assist.sample_check.strays`). Raises
    ServiceError if there is no broker or no topic, and ConfigError if no record holds a tuple.
    """
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        raise ServiceError(
            f"topic {topic} does not exist", hint="name it with --topic, or input.topic in the settings"
        )
    if state.records == 0:
        raise ConfigError(f"topic {topic} is empty", hint="a recommendation needs a sample of the stream")
    begin, end = stretch(state, tuples, first=first)
    settings = by_its_rule(settings)
    parser = Parser(settings, schemas=schemas_of(settings, ask_for=math.inf))
    keys: list[pa.Array] = []
    times: list[Int64s] = []
    places: list[Int64s] = []
    costs: list[Float64s] = []
    unreadable: Counter[str] = Counter()
    records = filtered = 0
    for batch in reader.read_range(settings.kafka, topic, begin=begin, end=end):
        records += len(batch)
        progress(records)
        tuples_of = [record for record in batch if marker_of(record) is None]
        parsed = parser.parse(
            [record.value() for record in tuples_of],
            keys=[record.key() for record in tuples_of],
            timestamps=[timestamp_of(record) for record in tuples_of],
        )
        keys.append(parsed.keys.cast(pa.large_binary()))  # all keys together may exceed 2 GiB
        times.append(parsed.tuple_times)
        costs += [] if parsed.costs is None else [parsed.costs]
        positions = np.array([(record.partition(), record.offset()) for record in tuples_of], np.int64)
        positions = positions.reshape(-1, 2)[parsed.rows]
        places.append(positions if parsed.counts is None else np.repeat(positions, parsed.counts, axis=0))
        unreadable.update(parsed.bad.counted())
        filtered += parsed.empty
    all_times = np.concatenate([np.empty(0, np.int64), *times])
    if not len(all_times):
        raise _nothing(topic, unreadable, filtered)
    strays, regular = strays_of_tuples(
        settings.query, all_times, np.concatenate(places), now=int(clock() * 1000)
    )
    rows = np.flatnonzero(regular)
    order = rows[np.argsort(all_times[rows], kind="stable")]  # stable: tuples of equal time keep their order
    sample = Sample(
        name=f"topic {topic}",
        keys=pa.chunked_array(keys, pa.large_binary()).combine_chunks().take(pa.array(order)),
        times=all_times[order],
        timed=True,
        complete=begin == state.begin and end == state.end,
        unreadable=unreadable.total(),
        strays=strays,
    )
    if costs and settings.partitioner.cost is not None:
        read = cost_column(
            pa.array(np.concatenate(costs)[order]), name=settings.partitioner.cost, where=sample.name
        )
        values = None if read.same is not None else read.costs
        sample = replace(sample, costs=values, cost=read.name, cost_remarks=read.remarks)
    return TopicSample(sample, state.partitions)


def strays_of_tuples(
    query: Query, times: Int64s, places: Int64s, *, now: int
) -> tuple[tuple[Strays, ...], Bools]:
    """(the strays of a sample, which tuples are none).

    times: event times, ms, shape (n,). places: partition and offset of each tuple, shape (n, 2), in offset
    order within a partition. now: ms since 1970.
    """
    rows = [np.flatnonzero(places[:, 0] == partition) for partition in np.unique(places[:, 0])]
    regular = np.ones(len(times), bool)
    strays = []
    for cause, masks in strays_by_cause(query, [times[some] for some in rows], now=now).items():
        which = np.concatenate([some[mask] for some, mask in zip(rows, masks, strict=True)])
        regular[which] = False
        (partition, offset), at = places[which[0]].tolist(), moment(int(times[which[0]]))
        strays.append(
            Strays(
                tuples=len(which),
                share=len(which) / len(times),
                cause=cause,
                example=f"offset {offset} of partition {partition}, read as {at}",
            )
        )
    return tuple(sorted(strays, key=lambda entry: -entry.tuples)), regular


def _nothing(topic: str, unreadable: Counter[str], filtered: int) -> ConfigError:
    if filtered:
        return ConfigError(
            f"query.where and query.explode leave no tuple of {filtered:,}"
            f" records of topic {topic} that can be read",
            hint="`evenflow query check` shows what the records hold",
        )
    if not unreadable:
        return ConfigError(
            f"the records read of topic {topic} are no tuples, but ends of streams",
            hint="take a larger --sample, or another topic",
        )
    return ConfigError(
        f"none of {unreadable.total():,} records of topic {topic} can be read, mostly: "
        f"{unreadable.most_common(1)[0][0]}",
        hint="do query.key, query.time, query.time_unit and input.format in the settings fit the topic?",
    )
