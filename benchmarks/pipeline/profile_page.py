"""`python -m benchmarks.pipeline.profile_page [ROWS]`: docs/profile.md, of the kept row of `tuple-profile`.

evenflow bench tuple-profile --json > rows
python -m benchmarks.pipeline.profile_page rows
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.pages.rows import keep_files, kept_rows
from benchmarks.pages.tables import table
from benchmarks.pipeline.combiner import GOAL
from benchmarks.pipeline.tuple_profile import CLIENT, COMBINER, ID, PARTITIONER, REDUCER, WAYS, Step, judged

PAGE = Path("docs/profile.md")
_HEAD = ("step", "ns a tuple", "of all", "limit", "function")
_SPARK_HEAD = ("what Spark does", "JVM", "Python", "more in the JVM", "more in Python")


def page(figures: Mapping[str, Any]) -> str:
    """The text of the page. figures: what the scenario `tuple-profile` reports."""
    limits, spark = figures["limits"], figures["spark"]
    client = limits["fetched"] + limits["produced"]
    routing = judged(figures["partitioner"])
    facts = figures["machine"]
    return f"""# Where the time of a tuple goes

CPU time in nanoseconds a tuple, from the input topic to the row, by process and by function.
`evenflow bench tuple-profile` measures it, and `python -m benchmarks.pipeline.profile_page` makes this page.
The stream has {figures["tuples"]:,} tuples of {figures["keys"]:,} keys, Zipf 1.0, and
{figures["workers"]} workers. The query counts and sums over windows of 60 s by 1 s, which makes
{figures["rows_a_tuple"]} rows a tuple. The machine has {facts["cores"]} cores ({facts["cpu"]}), and its load
before was {facts["load_average"]}.

A limit is what does less with the same bytes. Where there is none, nothing simpler does the same. The broker
is not among these figures ([it is
here](measurements.md#end-to-end-service-end-to-end-fused-service-end-to-end-split)).

CPU time moves less than speed does when others use the machine, but it moves. So read shares, not digits.

## Limits

{table(("limit", "ns a tuple", "what"), _limit_rows(limits))}

## Partitioner

The partitioner is `evenflow`. These are the steps of the data plane's thread. The threads of the Kafka client
run beside it. In a run of their own they take {client:.0f} ns to fetch and to produce. That run has other
batches, so the two figures need not agree. Each step is timed, which costs something too. So the sum is above
what `service-partitioner-evenflow` measures ([figures](measurements.md#services-one-by-one)). To parse, to
judge times, to choose workers and to make frames takes {routing["ns"]:.0f} ns. The goal of
{routing["goal"]:.0f} ns is {"met" if routing["met"] else "**not met**"}.

{table(_HEAD, _rows(PARTITIONER, figures["partitioner"], limits))}

## Combiner and reducer

The cores by themselves, without Spark, and with the state in memory. First the combiner:

{table(_HEAD, _rows(COMBINER, figures["combiner"], limits))}

The reducer:

{table(_HEAD, _rows(REDUCER, figures["reducer"], limits))}

## Spark

Each way does something more than the one before it. *More* is what that costs. The limit of all is the bare
scan. {_room(spark)}

{table(_SPARK_HEAD, _spark_rows(spark))}
"""


def _room(spark: Mapping[str, Mapping[str, float]]) -> str:
    """What the goal for the combiner's speed would leave for the combiner, in words, if CPU time decides."""
    scan, dropped, combined = (sum(spark[way].values()) for way in WAYS[:3])
    allowed = scan / GOAL
    left = round(allowed) - round(dropped)
    return "\n".join(
        (
            f"The combiner takes {combined / scan:.2f} times its CPU time."
            f" A speed of {GOAL:g} of the scan allows {1 / GOAL:.2f}.",
            f"That is {allowed:.0f} ns. {WAYS[1]} takes {dropped:.0f} ns already. So"
            f" {f'{left} ns' if left > 0 else 'nothing'} would be left for the",
            f"combiner, which adds {combined - dropped:.0f} ns.",
        )
    )


def _limit_rows(limits: Mapping[str, float]) -> Iterator[tuple[object, ...]]:
    yield (
        "fetched",
        f"{limits['fetched']:.0f}",
        "threads of the client while it fetches the topic, and nothing else is done",
    )
    yield (
        "produced",
        f"{limits['produced']:.0f}",
        "threads of the client while it writes the same frames, without transactions",
    )
    yield "copied", f"{limits['copied']:.0f}", "the bytes of a record are copied once"


def _rows(
    steps: Sequence[Step], found: Mapping[str, float], limits: Mapping[str, float]
) -> Iterator[tuple[object, ...]]:
    whole = sum(found.values())
    by_description = {step.description: step for step in steps}
    for description, ns in found.items():
        step = by_description.get(description)
        yield (
            description,
            f"{ns:.0f}",
            f"{100 * ns / whole if whole else 0:.0f} %",
            _limit(description, step, limits),
            ", ".join(f"`{function}`" for function in step.functions) if step else "",
        )
    yield "**all**", f"**{whole:.0f}**", "", "", ""


def _limit(description: str, step: Step | None, limits: Mapping[str, float]) -> str:
    if description == CLIENT:
        return f"fetched and produced: {limits['fetched'] + limits['produced']:.0f}"
    return f"{step.limit}: {limits[step.limit]:.0f}" if step and step.limit else ""


def _spark_rows(spark: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[object, ...]]:
    first = spark[WAYS[0]]
    yield WAYS[0], f"{first['spark_jvm']:.0f}", f"{first['spark_python']:.0f}", "", ""
    for before, way in pairwise(WAYS):
        now = spark[way]
        yield (
            way,
            *(f"{now[process]:.0f}" for process in ("spark_jvm", "spark_python")),
            *(f"{now[process] - spark[before][process]:.0f}" for process in ("spark_jvm", "spark_python")),
        )


def main() -> int:
    """Keep the rows of the files that are named, if any, and write the page. The working directory is the
    repository.
    """
    keep_files(sys.argv[1:])
    PAGE.write_text(page(kept_rows([ID])[ID]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
