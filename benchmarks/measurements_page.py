"""`python -m benchmarks.measurements_page [ROWS]`: tables of docs/measurements.md, of rows that are kept.

    evenflow bench readme service-costly-live --json > rows
    python -m benchmarks.measurements_page rows

The rows become docs/measurements/SCENARIO.json, one object each. Each table goes below its comment
`<!-- measured NAME -->`. Without ROWS the kept rows make the tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.pages.cells import Figures, by_process, cpu, met, middle, rate, three
from benchmarks.pages.rows import Rows, keep_files, kept_rows
from benchmarks.pages.tables import into_page, table
from benchmarks.runner import README_SCENARIOS
from benchmarks.spark import costly_tables

PAGE = Path("docs/measurements.md")
_SKEWS = ("1.0", "1.4")


def peers(rows: Rows) -> str:
    """evenflow beside Flink, Spark's own windows and a plain program."""
    figures = rows["service-peers"]
    systems = {
        "evenflow_kafka": f"evenflow, JSON rows ({_rows(figures['evenflow_kafka'])} of them)",
        "evenflow_frames": "evenflow, Arrow frames",
        "flink": "Flink 2.3 SQL",
        "spark_windows": "Spark's own windows",
        "plain_program": "a plain program",
    }
    return table(
        (
            "system",
            "evenflow with JSON rows / frames: times as fast",
            "CPU time: times evenflow's",
            "CPU seconds per million tuples",
            "of which",
            "compilers' share of the JVM",
            "tuples/s",
        ),
        [
            (
                words,
                *_beside(figures["ratios"], name),
                cpu(figures[name]),
                by_process(figures[name]["cpu_seconds_per_million_tuples"]),
                _compilers(figures[name]) if name != "plain_program" else "",
                rate(figures[name]["tuples_per_second"]),
            )
            for name, words in systems.items()
        ],
    )


def _beside(ratios: Figures, system: str) -> tuple[str, str]:
    """How many times as fast evenflow is as a system, with either form of its rows, and how many times its
    CPU time that system takes.
    """
    names = [f"evenflow_{sink}_to_{system}" for sink in ("kafka", "frames")]
    each = [ratios[name] for name in names if name in ratios]
    return (
        " / ".join(_with_goal(ratio, "speed", "goal_speed", "goal_met") for ratio in each),
        " / ".join(_with_goal(ratio, "cpu", "goal_cpu", "goal_cpu_met") for ratio in each),
    )


def _with_goal(ratio: Figures, name: str, goal: str, goal_met: str) -> str:
    value = f"{ratio[name]:.0f}" if ratio[name] >= 10 else f"{ratio[name]:.1f}"
    return f"**{value}** (goal {ratio[goal]:g}, {met(ratio[goal_met])})" if goal in ratio else value


def end_to_end(rows: Rows) -> str:
    """The fused wiring: catch-up, sustained rate, and latency at half of it."""
    return table(
        (
            "Zipf",
            "catch-up: times the CPU time of a bare read",
            "CPU s per million tuples",
            "compilers' share of the JVM",
            "tuples/s (rows/s)",
            "sustained",
            "W there",
            "p99 there",
            "at half: p50",
            "p99",
            "W",
        ),
        [_end_to_end(skew, rows["service-end-to-end-fused"][f"zipf_{skew}"]) for skew in _SKEWS],
    )


def _end_to_end(skew: str, figures: Figures) -> tuple[str, ...]:
    catch_up, full, half = (figures[name] for name in ("catch_up", "full_load", "half_load"))
    return (
        skew,
        f"{figures['cpu_times_bare_read']:.1f}",
        f"{cpu(catch_up)}: {by_process(catch_up['cpu_seconds_per_million_tuples'])}",
        _compilers(catch_up),
        f"{rate(catch_up['tuples_per_second'])} ({rate(catch_up['result_rows_per_second'])})",
        rate(figures["sustained_tuples_per_second"]),
        f"{full['W']:.2f}",
        _seconds(full["latency_p99_ms"]),
        _seconds(half["latency_p50_ms"]),
        f"**{_seconds(half['latency_p99_ms'])}** (goal {figures['goal_p99_at_half_ms'] / 1000:g} s,"
        f" {met(figures['goal_met'])})",
        f"{half['W']:.2f}",
    )


def results(rows: Rows) -> str:
    """CPU time of a result row, by sink."""
    figures = rows["service-results"]
    sinks = {"kafka": "JSON rows", "frames": "Arrow frames"}
    return table(
        ("rows", "CPU, us a row", "of which", "rows measured"),
        [(words, *_result(figures[sink])) for sink, words in sinks.items()],
    )


def _result(figures: Figures) -> tuple[str, str, str]:
    used = figures["cpu_seconds_per_million_rows"]
    return (
        f"**{used['all']:.2f}** (goal {figures['goal']:g}, {met(figures['goal_met'])})",
        by_process(used, 2),
        _rows(figures),
    )


def one_by_one(rows: Rows) -> str:
    """The partitioner and the combiner, each beside what does less with the same records."""
    beside = {
        "": ("bare", "bare client loop, same frames and transactions"),
        "beside_usual_loop": ("usual", "the loop as people write it"),
        "beside_queues_alone": ("queues_alone", "its queues alone, nothing parsed or written"),
    }
    lines = []
    for partitioner in ("hashing", "d-choices", "evenflow"):
        scenario = f"service-partitioner-{partitioner}"
        for part, (other, words) in beside.items():
            figures = rows[scenario][part] if part else rows[scenario]
            lines.append(_two_of_a_service(scenario, figures, "service", other, words))
    combiner = rows["service-combiner"]
    lines.append(
        _two_of_a_service(
            "service-combiner", combiner, "combiner", "scan", "Spark's bare scan of the same frames"
        )
    )
    lines.append(
        _two_of_a_service(
            "service-combiner",
            combiner["beside_frames_that_python_drops"],
            "combiner",
            "handed_over",
            "Python that takes the frames and drops them",
        )
    )
    return table(
        ("scenario", "beside it", "times as fast", "CPU, us a tuple", "beside it", "M tuples/s", "beside it"),
        lines,
    )


def _two_of_a_service(
    scenario: str, figures: Figures, service: str, other: str, words: str
) -> tuple[str, ...]:
    """A line of a service and what ran beside it. Its scenario's name stands where the goal is."""
    goal = _goal(figures.get("goal"), figures.get("met"))
    speed, seconds = "tuples_per_second", "cpu_seconds_per_million_tuples"
    alone = ""
    if "goal_cpu" in figures:
        alone = (
            f" (without the broker {middle(figures, 'cpu_microseconds_without_broker')}:"
            f" goal {figures['goal_cpu']:g}, {met(figures['goal_cpu_met'])})"
        )
    return (
        f"`{scenario}`" if goal else "",
        words,
        three(figures, "ratio") + goal,
        three(figures, f"{service}_{seconds}") + alone,
        three(figures, f"{other}_{seconds}"),
        *(three(figures, f"{who}_{speed}", unit=1e6) for who in (service, other)),
    )


def replay(rows: Rows) -> str:
    """What a replayed tuple costs, handed over from arrays and by one call a record."""
    figures = rows["service-replay"]
    kinds = {
        "live_37500_tuples_per_second": "live, 37,500 tuples/s",
        "live_200000_tuples_per_second": "live, 200,000 tuples/s",
        "full_speed": "full speed",
    }
    columns = {
        "CPU time of calls over that of arrays": "calls_over_arrays",
        "CPU, us a tuple: from arrays": "arrays_cpu_microseconds",
        "of this, the replay's own thread": "arrays_own_thread_microseconds",
        "one call a record": "calls_cpu_microseconds",
        "its own thread": "calls_own_thread_microseconds",
    }
    return table(
        ("replay", *columns, "M tuples/s: from arrays"),
        [
            (
                words,
                *(three(figures[kind], name) for name in columns.values()),
                three(figures[kind], "arrays_tuples_per_second", 3, 1e6),
            )
            for kind, words in kinds.items()
        ],
    )


def start(rows: Rows) -> str:
    """Seconds from the start of a process, of the small shape and the wide one."""
    figures = rows["service-start"]
    descriptions = {
        "partition": "`partition` to its first committed frame",
        "aggregate": "`aggregate` to its first result row",
        "restart": "SIGKILL, start, to the next window",
        "end": "last micro-batch to the end of the process",
    }
    return table(
        ("seconds", "8 workers", "1,000 workers and 100 input partitions"),
        [
            (words, *(_start(figures, f"{shape}{name}") for shape in ("", "wide_")))
            for name, words in descriptions.items()
        ],
    )


def _start(figures: Figures, name: str) -> str:
    return three(figures, name, 1) + _goal(figures["goals"].get(name), figures["met"].get(name))


def growth(rows: Rows) -> str:
    """The service with many workers and input partitions, beside few of both."""
    figures = rows["growth-service"]
    return table(
        (
            "partitions, commits",
            "speed of 1,000 x 100 over that of 8 x 4",
            "CPU, us a tuple (mean of the turns): 1,000 x 100",
            "8 x 4",
            "M tuples/s: 1,000 x 100",
            "8 x 4",
        ),
        [
            _growth("one a worker, every 0.5 s", figures),
            _growth("as evenflow chooses", figures["as_chosen"]),
        ],
    )


def _growth(words: str, figures: Figures) -> tuple[str, ...]:
    goal = _goal(figures.get("goal"), figures.get("met"))
    return (
        words,
        three(figures, "ratio") + goal,
        *(
            by_process(figures[f"{shape}_by_process"]["cpu_seconds_per_million_tuples"], 2)
            for shape in ("large", "small")
        ),
        *(three(figures, f"{shape}_tuples_per_second", unit=1e6) for shape in ("large", "small")),
    )


def _goal(goal: float | None, reached: object) -> str:
    """What stands behind a figure: its goal and whether it is met, or nothing if it has none."""
    return "" if goal is None else f" (goal {goal:g}, **{met(reached)}**)"


def _compilers(figures: Figures) -> str:
    return f"{100 * figures['compilers_share_of_jvm']:.0f} %"


def speed(rows: Rows) -> str:
    """Nanoseconds that each partitioner takes for a tuple."""
    return table(
        ("partitioner", "times hashing", "ns a tuple: best / median", "goal"),
        [
            (
                f"`{row['partitioner']}`",
                f"{row['times_hashing']:.2f}",
                f"{row['ns']:.1f} / {row['median']:.1f}",
                f"{row['goal']}: {row['is']:.2f}, **{met(row['met'])}**" if "goal" in row else "",
            )
            for row in rows["partitioners-speed"]["partitioners"]
        ],
    )


def _rows(figures: Figures) -> str:
    return f"{figures['result_rows'] / 1e6:.1f} M"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s"


PARTS: Mapping[str, Callable[[Rows], str]] = {
    "peers": peers,
    "end-to-end": end_to_end,
    "results": results,
    "one-by-one": one_by_one,
    "replay": replay,
    "start": start,
    "growth": growth,
    "speed": speed,
    "costly-peers": lambda rows: costly_tables.peers_table(rows["service-costly-peers"]),
    "costly-live": lambda rows: costly_tables.live_table(rows["service-costly-live"]),
}
"""Name of a table -> what makes it of the rows."""
SCENARIOS = (*README_SCENARIOS, "service-costly-live")
"""The scenarios whose rows the tables are made of."""


def page(text: str, rows: Rows) -> str:
    """The page with these tables. ValueError if it has no place for one."""
    for name, made in PARTS.items():
        text = into_page(text, "measured", name, made(rows))
    return text


def main() -> int:
    """Keep the rows of the files that are named, if any, and write the tables."""
    keep_files(sys.argv[1:])
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), kept_rows(SCENARIOS)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
